#include "runtime/text/constrain/grammar.h"

#include <algorithm>

namespace soliton::constrain {

CodeSet code_set(std::vector<CodeRange> ranges) {
  std::sort(ranges.begin(), ranges.end(),
            [](const CodeRange& a, const CodeRange& b) { return a.first < b.first; });
  CodeSet set;
  for (const CodeRange& range : ranges) {
    if (range.first > range.last) continue;
    if (!set.empty() && range.first <= set.back().last + 1) {
      set.back().last = std::max(set.back().last, range.last);
    } else {
      set.push_back(range);
    }
  }
  return set;
}

CodeSet complement(const CodeSet& set) {
  CodeSet rest;
  char32_t next = 0;
  for (const CodeRange& range : set) {
    if (range.first > next) rest.push_back({next, range.first - 1});
    next = range.last + 1;
  }
  if (next <= kMaxCode) rest.push_back({next, kMaxCode});
  return rest;
}

CodeSet intersection(const CodeSet& a, const CodeSet& b) {
  CodeSet both;
  for (auto x = a.begin(), y = b.begin(); x != a.end() && y != b.end();) {
    const CodeRange common{std::max(x->first, y->first), std::min(x->last, y->last)};
    if (common.first <= common.last) both.push_back(common);
    ++(x->last < y->last ? x : y);
  }
  return both;
}

Expression text(std::string_view bytes) {
  return {.kind = Expression::kText, .text = std::string(bytes)};
}

Expression codes(CodeSet set) {
  return {.kind = Expression::kCodes, .codes = std::move(set)};
}

Expression rule(int index) {
  return {.kind = Expression::kRule, .rule = index};
}

Expression sequence(std::vector<Expression> parts) {
  if (parts.size() == 1) return std::move(parts.front());
  return {.kind = Expression::kSequence, .parts = std::move(parts)};
}

Expression choice(std::vector<Expression> alternatives) {
  if (alternatives.size() == 1) return std::move(alternatives.front());
  return {.kind = Expression::kChoice, .parts = std::move(alternatives)};
}

Expression repeat(Expression part, int min, int max) {
  std::vector<Expression> parts;
  parts.push_back(std::move(part));
  return {.kind = Expression::kRepeat, .parts = std::move(parts), .min = min, .max = max};
}

Expression optional(Expression part) {
  return repeat(std::move(part), 0, 1);
}

Expression counted(int index, int min, int max) {
  return {.kind = Expression::kCounted, .rule = index, .min = min, .max = max};
}

namespace {

void renumber(Expression& expression, int by) {
  if (expression.kind == Expression::kRule || expression.kind == Expression::kCounted) expression.rule += by;
  for (Expression& part : expression.parts) renumber(part, by);
}

}  // namespace

int Grammar::add(std::string rule_name, Expression expression, int line) {
  if (rules.size() == max_rules) {
    throw file_error(ExitCode::kOutOfMemory, name, "expected at most {} rules, got more", max_rules);
  }
  rules.push_back({std::move(rule_name), std::move(expression), line});
  return static_cast<int>(rules.size()) - 1;
}

int Grammar::include(Grammar other) {
  const auto first = static_cast<int>(rules.size());
  for (Rule& each : other.rules) {
    renumber(each.expression, first);
    add(std::move(each.name), std::move(each.expression), each.line);
  }
  return first + other.root;
}

}  // namespace soliton::constrain
