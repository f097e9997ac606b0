#include "runtime/text/constrain/json_members.h"

#include <algorithm>
#include <map>

#include "runtime/text/constrain/schema_patterns.h"

namespace soliton::constrain {
namespace {

/// Members in order, each behind a comma but the first: what is left to write, from a member on.
class Members {
 public:
  Members(Grammar& grammar, JsonRules& json, std::vector<Member> members, std::optional<Expression> others)
      : grammar_(grammar), json_(json), members_(std::move(members)), others_(std::move(others)) {}

  /// All of them; nothing stands there if none are required and none written.
  Expression written() {
    // Behind the first that is written all is alike: a rule for each that may be the first.
    size_t num_first = 0;
    while (num_first < members_.size() && !members_[num_first].is_required) ++num_first;
    const size_t last = std::min(num_first, members_.size() - (members_.empty() ? 0 : 1));
    std::vector<Expression> alternatives;
    for (size_t i = 0; i < members_.size() && i <= last; ++i)
      alternatives.push_back(sequence({members_[i].written, rule(rest_rule(i + 1, last + 1))}));
    if (num_first == members_.size() && others_)
      alternatives.push_back(sequence({*others_, repeat(behind_comma(*others_), 0)}));
    return choice(std::move(alternatives));
  }
  bool may_be_empty() const {
    return std::none_of(members_.begin(), members_.end(),
                        [](const Member& member) { return member.is_required; });
  }

 private:
  Expression behind_comma(Expression part) { return sequence({text(","), json_.space(), std::move(part)}); }

  Expression member_behind(size_t i) {
    Expression written = behind_comma(members_[i].written);
    return members_[i].is_required ? written : optional(std::move(written));
  }

  /// What may stand behind another member, from member i on; a rule for each up to `most`.
  int rest_rule(size_t i, size_t most) {
    while (rests_.size() <= most) rests_.push_back(grammar_.add("members"));
    std::vector<Expression> parts;
    if (i < most) {
      parts.push_back(member_behind(i));
      parts.push_back(rule(rests_[i + 1]));
    } else {
      for (size_t k = i; k < members_.size(); ++k) parts.push_back(member_behind(k));
      if (others_) parts.push_back(repeat(behind_comma(*others_), 0));
    }
    grammar_.rules[static_cast<size_t>(rests_[i])].expression = sequence(std::move(parts));
    return rests_[i];
  }

  Grammar& grammar_;
  JsonRules& json_;
  std::vector<Member> members_;
  std::optional<Expression> others_;  // a further member
  std::vector<int> rests_;
};

/// Members in order, of which there may be only so many: what is left to write from a member on, with some written. The comma
/// is of none of those that may follow it: a text is in one state there, however many they are.
class CountedList {
 public:
  CountedList(Grammar& grammar, JsonRules& json, std::vector<Member> members,
              std::optional<Expression> others, Counts counts)
      : grammar_(grammar),
        json_(json),
        members_(std::move(members)),
        others_(std::move(others)),
        counts_(counts),
        most_(counts.max >= 0 ? counts.max : std::max(counts.min, 1)) {
    while (num_needed_ > 0 && !members_[num_needed_ - 1].is_required) --num_needed_;
  }

  Expression written() { return or_nothing(rule(next_rule(0, 0)), 0, 0); }

 private:
  Expression behind_comma(Expression part) { return sequence({text(","), json_.space(), std::move(part)}); }

  Expression or_nothing(Expression part, size_t i, int num_written) const {
    const bool may_end = num_written >= counts_.min && i >= num_needed_;
    return may_end ? optional(std::move(part)) : part;
  }
  /// A member from i on, and what is behind it.
  int next_rule(size_t i, int num_written) {
    const auto known = nexts_.find({i, num_written});
    if (known != nexts_.end()) return known->second;
    const int index = grammar_.add("members");
    nexts_.emplace(std::pair(i, num_written), index);
    Expression next = i == members_.size() ? others(num_written) : from(i, num_written);
    grammar_.rules[static_cast<size_t>(index)].expression = std::move(next);
    return index;
  }
  Expression from(size_t i, int num_written) {
    std::vector<Expression> alternatives;
    if (counts_.max < 0 || num_written < counts_.max) {
      const int next = std::min(num_written + 1, most_);
      Expression rest = or_nothing(behind_comma(rule(next_rule(i + 1, next))), i + 1, next);
      alternatives.push_back(sequence({members_[i].written, std::move(rest)}));
    }
    if (!members_[i].is_required) alternatives.push_back(rule(next_rule(i + 1, num_written)));
    return choice(std::move(alternatives));
  }
  /// Behind all members.
  Expression others(int num_written) {
    const int most = counts_.max < 0 ? -1 : counts_.max - num_written;
    if (!others_ || most == 0 || counts_.min - num_written > 1) return choice({});
    return sequence({*others_, repeat(behind_comma(*others_), 0, most < 0 ? -1 : most - 1)});
  }

  Grammar& grammar_;
  JsonRules& json_;
  std::vector<Member> members_;
  std::optional<Expression> others_;
  Counts counts_;
  int most_;                             // that are told apart
  size_t num_needed_ = members_.size();  // up to the last one that is required
  std::map<std::pair<size_t, int>, int> nexts_;
};

using Codes = std::u32string;

const CodeSet& plain_characters() {
  static const CodeSet set = JsonRules::plain_characters();
  return set;
}

bool is_unescaped(char32_t code) {
  return std::any_of(plain_characters().begin(), plain_characters().end(),
                     [code](const CodeRange& range) { return range.first <= code && code <= range.last; });
}

/// Parts are moved: a list in braces would copy all that is in them, at every character of a name.
Expression pair(Expression first, Expression second) {
  std::vector<Expression> parts;
  parts.push_back(std::move(first));
  parts.push_back(std::move(second));
  return sequence(std::move(parts));
}

/// What may stand behind the first `depth` characters, which the names from begin to end have in common; they ascend.
Expression rest_of_key(const std::vector<Codes>& names, size_t begin, size_t end, size_t depth) {
  std::vector<Expression> alternatives;
  if (names[begin].size() == depth) {
    ++begin;
  } else {
    alternatives.push_back(text(""));
  }
  std::vector<CodeRange> next;
  while (begin < end) {
    const char32_t lead = names[begin][depth];
    size_t same = begin;
    while (same < end && names[same][depth] == lead) ++same;
    next.push_back({lead, lead});
    alternatives.push_back(pair(codes({{lead, lead}}), rest_of_key(names, begin, same, depth + 1)));
    begin = same;
  }
  CodeSet others = intersection(plain_characters(), complement(code_set(std::move(next))));
  alternatives.push_back(pair(codes(std::move(others)), repeat(codes(plain_characters()), 0)));
  return choice(std::move(alternatives));
}

}  // namespace

Expression members_object(Grammar& grammar, JsonRules& json, std::vector<Member> members,
                          std::optional<Expression> others) {
  if (members.empty() && !others) return sequence({text("{"), json.space(), text("}")});
  Members all(grammar, json, std::move(members), std::move(others));
  const bool may_be_empty = all.may_be_empty();
  return in_brackets(json, "{", all.written(), may_be_empty, "}");
}

Expression counted_list(Grammar& grammar, JsonRules& json, const char* open, std::vector<Member> members,
                        std::optional<Expression> others, Counts counts, const char* close) {
  CountedList list(grammar, json, std::move(members), std::move(others), counts);
  return sequence({text(open), json.space(), list.written(), json.space(), text(close)});
}

Expression key_but(const std::vector<std::string>& names) {
  std::vector<Codes> plain;  // others have escapes, which this key has not
  for (const std::string& name : names) {
    Codes characters = codes_of(name);
    if (std::all_of(characters.begin(), characters.end(), is_unescaped))
      plain.push_back(std::move(characters));
  }
  std::sort(plain.begin(), plain.end());
  plain.erase(std::unique(plain.begin(), plain.end()), plain.end());
  std::vector<Expression> parts;
  parts.push_back(text("\""));
  parts.push_back(plain.empty() ? repeat(codes(plain_characters()), 0)
                                : rest_of_key(plain, 0, plain.size(), 0));
  parts.push_back(text("\""));
  return sequence(std::move(parts));
}

}  // namespace soliton::constrain
