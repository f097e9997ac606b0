#include "runtime/text/constrain/string_pattern.h"

#include <algorithm>
#include <array>
#include <functional>
#include <optional>
#include <utility>

#include "runtime/text/constrain/json_rules.h"

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

/// Characters as they are written. No anchors may be left.
void write(Expression& expression, Written written, std::string_view place) {
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
Expression without_anchors(TextPattern pattern, const std::optional<Expression>& open, Written written,
                           std::string_view place) {
  if (!pattern.ahead.empty())
    throw file_error(ExitCode::kMismatch, place, "a group of the kind (? is not supported");
  std::vector<Expression> alternatives;
  if (pattern.expression.kind == Expression::kChoice) {
    alternatives = std::move(pattern.expression.parts);
  } else {
    alternatives.push_back(std::move(pattern.expression));
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

bool is_plain(const TextPattern& pattern) {
  const auto is_anchor = [](const Expression& part) {
    return part.kind == Expression::kStart || part.kind == Expression::kEnd;
  };
  const std::function<bool(const Expression&)> has_anchor = [&](const Expression& part) {
    return is_anchor(part) || std::any_of(part.parts.begin(), part.parts.end(), has_anchor);
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
  if (!pattern.ahead.empty()) return false;
  const Expression& all = pattern.expression;
  if (all.kind != Expression::kChoice) return is_plain_alternative(all);
  return std::all_of(all.parts.begin(), all.parts.end(), is_plain_alternative);
}

Expression pattern_grammar(TextPattern pattern, std::string_view place) {
  return without_anchors(std::move(pattern), repeat(in_json({{0, kMaxCode}}), 0), in_json, place);
}

Grammar parse_pattern(std::string_view pattern, const std::string& name) {
  if (pattern.size() > kMaxSourceBytes)
    throw file_error(ExitCode::kOutOfMemory, name, "expected at most {} bytes, got {}", kMaxSourceBytes,
                     pattern.size());
  Grammar grammar{.name = name, .rules = {}};
  const Written as_is = [](const CodeSet& set) { return codes(set); };
  grammar.root = grammar.add("pattern", without_anchors(parse_text_pattern(pattern, name), {}, as_is, name));
  return grammar;
}

}  // namespace soliton::constrain
