// Of SchemaCompiler what one of several schemas says: anyOf, oneOf, if, and what `not` leaves.
#include <algorithm>
#include <set>

#include "runtime/text/constrain/schema_compiler.h"
#include "runtime/text/constrain/schema_exclusion.h"
#include "runtime/text/constrain/schema_negation.h"

namespace soliton::constrain {
namespace {

constexpr std::array<const char*, 2> kUnevaluated = {"unevaluatedItems", "unevaluatedProperties"};
constexpr size_t kMostNots = 2;  // of which all that they leave is written; of more the first that fits

/// A list of a schema without one of its entries.
void drop(Schema& schema, const char* keyword, size_t index) {
  Schema& list = schema[keyword];
  list.erase(index);
  if (list.empty()) schema.erase(keyword);
}

}  // namespace

/// An alternative with what stands beside it. What is not evaluated is known when no alternatives are left.
Schema SchemaCompiler::whole(const Schema& rest, const Schema& alternative, const std::string& path) const {
  Schema beside = rest;
  Schema pending = Schema::object();
  for (const char* keyword : kUnevaluated) {
    if (!beside.contains(keyword)) continue;
    pending[keyword] = beside[keyword];
    beside.erase(keyword);
  }
  document_.spend(weight(rest), path);
  if (beside.empty() && pending.empty()) return alternative;
  Schema made = document_.merged(beside, alternative, path);
  if (made == true) made = Schema::object();
  for (const auto& [keyword, value] : pending.items()) {
    if (made.contains(keyword))
      throw document_.unsupported(path, keyword, "of a schema in one that has it too");
    if (made.is_object()) made[keyword] = value;
  }
  return made;
}

Expression SchemaCompiler::any_of(const Schema& schema, const std::string& path, int depth) {
  const auto [at, alternatives] = document_.alternatives(schema["~choices"][0], path);
  Schema rest = schema;
  drop(rest, "~choices", 0);
  std::vector<Expression> values;
  std::optional<NoValue> none;
  for (size_t i = 0; i < alternatives.size(); ++i) {
    const std::string here = fmt::format("{}[{}]", at, i);
    try {
      values.push_back(rule(rule_of(whole(rest, alternatives[i], here), here, depth + 1)));
    } catch (const NoValue& error) {
      if (!none) none = error;
    }
  }
  if (values.empty()) throw *none;
  return choice(std::move(values));
}

/// Alternatives of which only one may hold: where they do not exclude each other already, each without the others.
Expression SchemaCompiler::one_of(const Schema& schema, const std::string& path, int depth) {
  const auto [at, alternatives] = document_.alternatives(schema["~ones"][0], path);
  Schema rest = schema;
  drop(rest, "~ones", 0);
  std::vector<Schema> wholes;
  std::optional<NoValue> none;
  for (size_t i = 0; i < alternatives.size(); ++i) {
    try {
      wholes.push_back(whole(rest, alternatives[i], fmt::format("{}[{}]", at, i)));
    } catch (const NoValue& error) {
      if (!none) none = error;
      wholes.emplace_back(false);
    }
  }
  exclude(wholes, alternatives, path, schema["~ones"][0].begin().key());
  std::vector<Expression> values;
  for (size_t i = 0; i < wholes.size(); ++i) {
    const std::string here = fmt::format("{}[{}]", at, i);
    try {
      values.push_back(rule(rule_of(wholes[i], here, depth + 1)));
    } catch (const NoValue& error) {
      if (!none) none = error;
    }
  }
  if (values.empty()) throw *none;
  return choice(std::move(values));
}

/// Leaves of each what no other one takes: with a member that tells them apart, be it required or not, or without the others.
void SchemaCompiler::exclude(std::vector<Schema>& wholes, const Schema& alternatives, const std::string& path,
                             const std::string& label) {
  std::vector<std::vector<size_t>> beside(wholes.size());  // which others may hold too
  std::vector<std::set<std::string>> required(wholes.size());
  {
    std::vector<Outline> outlines;
    for (size_t i = 0; i < wholes.size(); ++i)
      outlines.emplace_back(document_, wholes[i], fmt::format("{}[{}]", member_path(path, label), i));
    if (Outline::are_listed_apart(outlines)) return;
    for (size_t i = 0; i < wholes.size(); ++i) {
      for (size_t k = 0; k < i; ++k) {
        if (outlines[k].excludes(outlines[i])) continue;
        if (const std::optional<std::string> name = outlines[k].telling_member(outlines[i])) {
          required[i].insert(*name);
          required[k].insert(*name);
          continue;
        }
        beside[i].push_back(k);
        beside[k].push_back(i);
      }
    }
  }
  for (size_t i = 0; i < wholes.size(); ++i) {
    Schema nots = Schema::array();
    for (const size_t k : beside[i]) nots.push_back(alternatives[k]);
    Schema further = Schema::object();
    if (!required[i].empty()) further["required"] = required[i];
    if (!nots.empty()) further["~nots"] = std::move(nots);
    if (further.empty() || wholes[i] == false) continue;
    wholes[i] = whole(wholes[i], further, fmt::format("{}[{}]", member_path(path, label), i));
  }
}

Expression SchemaCompiler::none_of_nots(const Schema& schema, const std::string& path, int depth) {
  const std::string at = member_path(path, "not");
  const Negated others = negated(document_, schema["~nots"][0], schema, at);
  const bool is_first_enough = schema["~nots"].size() > kMostNots;
  Schema rest = schema;
  drop(rest, "~nots", 0);
  std::vector<Expression> values;
  std::optional<NoValue> none;
  std::optional<Error> unsaid;  // may be left out where there is something else
  for (const Schema& other : others.schemas) {
    try {
      values.push_back(rule(rule_of(whole(rest, other, at), at, depth + 1)));
      if (is_first_enough) break;
    } catch (const NoValue& error) {
      if (!none) none = error;
    } catch (const Error& error) {
      if (error.code() != ExitCode::kMismatch) throw;
      if (!unsaid) unsaid = error;
    }
  }
  if (!values.empty()) return choice(std::move(values));
  if (unsaid) throw *unsaid;
  if (!others.unsaid.empty()) throw document_.unsupported(at, others.unsaid, "where it must not hold");
  if (none) throw *none;
  throw document_.no_value(at, "expected something that fits, got nothing");
}

/// Schemas that have neither alternatives nor `not`, but for oneOf, one of which takes what a flat schema does. What cannot be said
/// is left out.
std::vector<Schema> SchemaCompiler::without_alternatives(const Schema& flat, const std::string& path,
                                                         int depth) const {
  constexpr size_t kMost = 16;
  const bool is_choice = flat.is_object() && flat.contains("~choices");
  if (!is_choice && (!flat.is_object() || !flat.contains("~nots"))) return {flat};
  if (depth > kMaxNesting)
    throw document_.unsupported(path, "", "of so many alternatives inside one another");
  const std::vector<Schema> kinds = [&]() -> std::vector<Schema> {
    if (!is_choice) return negated(document_, flat["~nots"][0], flat, path).schemas;
    const Schema& list = document_.alternatives(flat["~choices"][0], path).second;
    return {list.begin(), list.end()};
  }();
  Schema rest = flat;
  drop(rest, is_choice ? "~choices" : "~nots", 0);
  std::vector<Schema> all;
  for (const Schema& kind : kinds) {
    try {
      const Schema next = document_.flattened(whole(rest, kind, path), path);
      for (Schema& each : without_alternatives(next, path, depth + 1)) all.push_back(std::move(each));
    } catch (const NoValue&) {
    }
    if (all.size() > kMost)
      throw document_.unsupported(path, "", fmt::format("of more than {} alternatives", kMost));
  }
  return all;
}

}  // namespace soliton::constrain
