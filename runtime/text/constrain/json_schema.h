// JSON schemas as grammars: every text of the grammar is JSON that the schema takes. Not all that it takes is written:
// members come in the order of `properties`, and where these are listed, others only if additionalProperties says so; bounds
// and white space are those of json_rules.h.
#pragma once

#include <nlohmann/json.hpp>
#include <string_view>

#include "runtime/text/constrain/grammar.h"
#include "runtime/text/constrain/json_rules.h"

namespace soliton::constrain {

inline constexpr size_t kMaxSchemaRules =
    40'000;  // of a schema; what they cost together is the automaton's to limit

/// Any JSON object.
Grammar json_object_grammar();

/// What `schema` takes. `name` is what errors call it. Throws Error, naming path and keyword: kMismatch for what is not
/// supported, kBadFile for what is malformed or takes nothing, kOutOfMemory above a limit.
Grammar json_schema_grammar(const nlohmann::ordered_json& schema, std::string_view name);
/// Several schemas in one grammar: they share its rules of JSON, and what making them may cost.
class JsonSchemas {
 public:
  /// Must outlive it.
  explicit JsonSchemas(Grammar& grammar) : grammar_(grammar), json_(grammar) {}

  /// The index of a rule for what `schema` takes; throws as json_schema_grammar(), and then leaves rules that nothing refers
  /// to.
  int add(const nlohmann::ordered_json& schema, std::string_view name);
  JsonRules& json() { return json_; }

 private:
  Grammar& grammar_;
  JsonRules json_;
  int num_schemas_ = 0;
  size_t num_steps_ = 0;
};

/// Of a schema as text. Throws the same, and what parse_json() does.
Grammar parse_json_schema(std::string_view text, const std::string& name);

}  // namespace soliton::constrain
