#include "runtime/text/constrain/string_pattern.h"

#include <algorithm>
#include <array>
#include <functional>
#include <optional>
#include <utility>

#include "runtime/text/constrain/json_rules.h"
#include "runtime/text/constrain/text_machine.h"

namespace soliton::constrain {
namespace {

struct ShortEscape {
  char32_t code;
  const char* written;
};
constexpr std::array<ShortEscape, 7> kShortEscapes = {{{'"', "\\\""},
                                                       {'\\', "\\\\"},
                                                       {'\b', "\\b"},
                                                       {'\f', "\\f"},
                                                       {'\n', "\\n"},
                                                       {'\r', "\\r"},
                                                       {'\t', "\\t"}}};

using Written = Expression (*)(const CodeSet& set);

bool is_assertion(const Expression& part) {
  return part.kind == Expression::kAhead || part.kind == Expression::kBehind;
}

/// Characters as they are written. No anchors may be left.
void write(Expression& expression, Written written, std::string_view place) {
  if (is_assertion(expression))
    throw file_error(ExitCode::kMismatch, place, "a group of the kind (? is not supported");
  if (expression.kind == Expression::kStart || expression.kind == Expression::kEnd)
    throw file_error(ExitCode::kMismatch, place,
                     "an anchor that is not at the end of an alternative outside of groups is not supported");
  if (expression.kind == Expression::kCodes) {
    expression = written(expression.codes);
    return;
  }
  for (Expression& part : expression.parts) write(part, written, place);
}

/// Of alternatives with anchors at their ends. Where there is none stands what `open` says, if it says something.
Expression without_anchors(Expression pattern, const std::optional<Expression>& open, Written written,
                           std::string_view place) {
  std::vector<Expression> alternatives;
  if (pattern.kind == Expression::kChoice) {
    alternatives = std::move(pattern.parts);
  } else {
    alternatives.push_back(std::move(pattern));
  }
  for (Expression& alternative : alternatives) {
    std::vector<Expression> parts;
    if (alternative.kind == Expression::kSequence) {
      parts = std::move(alternative.parts);
    } else {
      parts.push_back(std::move(alternative));
    }
    const bool starts = !parts.empty() && parts.front().kind == Expression::kStart;
    if (starts) parts.erase(parts.begin());
    const bool ends = !parts.empty() && parts.back().kind == Expression::kEnd;
    if (ends) parts.pop_back();
    for (Expression& part : parts) write(part, written, place);
    if (open && !starts) parts.insert(parts.begin(), *open);
    if (open && !ends) parts.push_back(*open);
    alternative = sequence(std::move(parts));
  }
  return choice(std::move(alternatives));
}

/// How many code points all texts of it have; nothing if they differ in that.
std::optional<int64_t> length_of_all(const Expression& expression) {
  switch (expression.kind) {
    case Expression::kCodes:
      return 1;
    case Expression::kRepeat: {
      const std::optional<int64_t> once = length_of_all(expression.parts[0]);
      if (!once || expression.min != expression.max || *once * expression.min > kMaxLength) return {};
      return *once * expression.min;
    }
    case Expression::kSequence: {
      int64_t sum = 0;
      for (const Expression& part : expression.parts) {
        const std::optional<int64_t> own = length_of_all(part);
        if (!own || (sum += *own) > kMaxLength) return {};
      }
      return sum;
    }
    case Expression::kChoice: {
      std::optional<int64_t> first;
      for (const Expression& part : expression.parts) {
        const std::optional<int64_t> own = length_of_all(part);
        if (!own || own != first.value_or(*own)) return {};
        first = own;
      }
      return first;
    }
    default:
      return {};
  }
}

bool is_repeated_class(const Expression& part) {
  return part.kind == Expression::kRepeat && part.parts[0].kind == Expression::kCodes &&
         !part.parts[0].codes.empty();
}

}  // namespace

Expression in_json(const CodeSet& set) {
  std::vector<Expression> alternatives;
  CodeSet plain = intersection(set, JsonRules::plain_characters());
  if (!plain.empty()) alternatives.push_back(codes(std::move(plain)));
  for (const ShortEscape& escape : kShortEscapes) {
    if (!intersection(set, {{escape.code, escape.code}}).empty())
      alternatives.push_back(text(escape.written));
  }
  for (Expression& alternative : alternatives) alternative.counts = true;
  return choice(std::move(alternatives));
}

bool is_plain(const Expression& pattern) {
  const auto is_anchor = [](const Expression& part) {
    return part.kind == Expression::kStart || part.kind == Expression::kEnd;
  };
  const std::function<bool(const Expression&)> has_anchor = [&](const Expression& part) {
    return is_anchor(part) || is_assertion(part) ||
           std::any_of(part.parts.begin(), part.parts.end(), has_anchor);
  };
  const auto is_plain_alternative = [&](const Expression& part) {
    if (part.kind != Expression::kSequence) return is_anchor(part) || !has_anchor(part);
    for (size_t i = 0; i < part.parts.size(); ++i) {
      const bool is_outer = (i == 0 && part.parts[i].kind == Expression::kStart) ||
                            (i + 1 == part.parts.size() && part.parts[i].kind == Expression::kEnd);
      if (!is_outer && has_anchor(part.parts[i])) return false;
    }
    return true;
  };
  if (pattern.kind != Expression::kChoice) return is_plain_alternative(pattern);
  return std::all_of(pattern.parts.begin(), pattern.parts.end(), is_plain_alternative);
}

bool is_open_ended(const Expression& pattern) {
  const auto is_open = [](const Expression& alternative) {
    if (alternative.kind == Expression::kEnd) return false;
    if (alternative.kind != Expression::kSequence || alternative.parts.empty()) return true;
    const std::vector<Expression>& parts = alternative.parts;
    if (parts.back().kind != Expression::kEnd) return true;
    return parts.size() > 1 && is_repeated_class(parts[parts.size() - 2]) && parts[parts.size() - 2].max < 0;
  };
  if (pattern.kind != Expression::kChoice) return is_open(pattern);
  return !pattern.parts.empty() && std::all_of(pattern.parts.begin(), pattern.parts.end(), is_open);
}

std::optional<CountedPattern> counted_pattern(const Expression& pattern) {
  constexpr int kFew = 8;  // repetitions that are states
  const std::vector<Expression>& parts = pattern.parts;
  if (pattern.kind != Expression::kSequence || parts.size() < 3) return {};
  if (parts.front().kind != Expression::kStart || parts.back().kind != Expression::kEnd) return {};
  std::optional<size_t> repeated;
  int64_t others = 0;
  for (size_t i = 1; i + 1 < parts.size(); ++i) {
    const std::optional<int64_t> length = length_of_all(parts[i]);
    const bool is_counted = is_repeated_class(parts[i]) && (!length || *length > kFew);
    if ((is_counted && repeated) || (!is_counted && !length)) return {};
    if (is_counted) repeated = i;
    if (!is_counted && (others += *length) > kMaxLength) return {};
  }
  if (!repeated) return {};
  const bool is_last = *repeated + 2 == parts.size();  // else it is a state for each that has to be there
  const int min = parts[*repeated].min;
  const int max = parts[*repeated].max;
  if (std::max(max, is_last ? min : 0) <= kFew) return {};
  const auto least = is_last ? static_cast<int>(others) + min : 0;
  CountedPattern counted{pattern, least, max < 0 ? -1 : static_cast<int>(others) + max};
  counted.pattern.parts[*repeated] = repeat(parts[*repeated].parts[0], is_last ? 0 : min);
  return counted;
}

Expression pattern_grammar(Expression pattern, std::string_view place) {
  return without_anchors(std::move(pattern), repeat(in_json({{0, kMaxCode}}), 0), in_json, place);
}

Grammar parse_pattern(std::string_view pattern, const std::string& name) {
  if (pattern.size() > kMaxSourceBytes)
    throw file_error(ExitCode::kOutOfMemory, name, "expected at most {} bytes, got {}", kMaxSourceBytes,
                     pattern.size());
  Grammar grammar{.name = name, .rules = {}};
  const Written as_is = [](const CodeSet& set) { return codes(set); };
  Expression found = parse_text_pattern(pattern, name);
  std::optional<Expression> all;
  if (is_plain(found)) {
    all = without_anchors(std::move(found), {}, as_is, name);
  } else {
    static const CodeSet kCharacters = {{0, 0xd7ff}, {0xe000, kMaxCode}};
    all = text_graph({{std::move(found)}}, {}, kCharacters, as_is, [](size_t) {});
  }
  if (!all)
    throw file_error(ExitCode::kOutOfMemory, name, "expected a pattern of fewer states, got too many");
  grammar.root = grammar.add("pattern", std::move(*all));
  return grammar;
}

}  // namespace soliton::constrain
