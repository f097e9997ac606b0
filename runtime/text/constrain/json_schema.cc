#include "runtime/text/constrain/json_schema.h"

#include "models/strict_json.h"
#include "runtime/text/constrain/schema_compiler.h"

namespace soliton::constrain {

Grammar json_object_grammar() {
  Grammar grammar{.name = "response_format", .rules = {}};
  JsonRules json(grammar);
  grammar.root = json.object().rule;
  return grammar;
}

int JsonSchemas::add(const nlohmann::ordered_json& schema, std::string_view name) {
  return SchemaCompiler(schema, name, grammar_, json_, num_schemas_, num_steps_).run();
}

Grammar json_schema_grammar(const nlohmann::ordered_json& schema, std::string_view name) {
  Grammar grammar{.name = std::string(name), .rules = {}, .max_rules = kMaxSchemaRules};
  grammar.root = JsonSchemas(grammar).add(schema, name);
  return grammar;
}

Grammar parse_json_schema(std::string_view text, const std::string& name) {
  return json_schema_grammar(parse_ordered_json(text, name, {.bytes = kMaxSourceBytes}), name);
}

}  // namespace soliton::constrain
