// The members of a JSON object whose names are known, with commas between those that are there.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "runtime/text/constrain/json_rules.h"

namespace soliton::constrain {

struct Member {
  std::string name;
  Expression written;  // name and value
  bool is_required;
  bool is_written = true;  // else there may be none of this name
};

/// An object of the members, in their order, and behind them any number of `others`, each of which is a member.
Expression members_object(Grammar& grammar, JsonRules& json, std::vector<Member> members,
                          std::optional<Expression> others);

/// A key in quotes, written without escapes, that is none of the names.
Expression key_but(const std::vector<std::string>& names);

}  // namespace soliton::constrain
