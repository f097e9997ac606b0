// What the tests of lookups share.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

#include "models/error.h"
#include "runtime/answer/draft/prompt_lookup.h"

namespace soliton {

using Tokens = std::vector<int32_t>;
constexpr int kDraftSizes[] = {0, 1, 7, 31};

inline void expect_error(const std::function<void()>& action, const std::string& fragment) {
  try {
    action();
    ADD_FAILURE() << "no error; expected: " << fragment;
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::kInternal) << error.what();
    EXPECT_NE(std::string(error.what()).find(fragment), std::string::npos) << error.what();
  }
}

inline PromptLookup lookup_of(const Tokens& tokens) {
  PromptLookup lookup;
  lookup.append(tokens);
  return lookup;
}

}  // namespace soliton
