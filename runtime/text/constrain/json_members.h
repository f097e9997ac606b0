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

/// How many different members there are; the second is negative if there is no bound.
struct Counts {
  int min = 0;
  int max = -1;
};
/// The same of as many members as `counts` say, between brackets: as many rules as there are members times the bound. Of
/// `others`, which may be the same twice, one counts. A choice of nothing if it cannot be.
Expression counted_list(Grammar& grammar, JsonRules& json, const char* open, std::vector<Member> members,
                        std::optional<Expression> others, Counts counts, const char* close);

/// A key in quotes, written without escapes, that is none of the names.
Expression key_but(const std::vector<std::string>& names);

}  // namespace soliton::constrain
