// Schemas tried out: texts that are answers and texts that are none, and what is refused by name.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "constrain_testing.h"
#include "error_of.h"

namespace soliton::constrain {

inline std::string refusal(const std::string& schema) {
  return error_of([&] { ready(schema_grammar(schema)); });
}

inline void expect_takes(const std::string& schema, const std::vector<std::string>& good,
                         const std::vector<std::string>& bad) {
  const auto grammar = ready(schema_grammar(schema));
  const auto takes_it = [&](const std::string& text) {
    TokenConstraint constraint(grammar, {});
    return constraint.accept_bytes(text) && constraint.may_end();
  };
  for (const std::string& text : good) EXPECT_TRUE(takes_it(text)) << schema << "\n" << text;
  for (const std::string& text : bad) EXPECT_FALSE(takes_it(text)) << schema << "\n" << text;
}

}  // namespace soliton::constrain
