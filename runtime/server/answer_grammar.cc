#include "runtime/server/answer_grammar.h"

#include "runtime/server/api_error.h"
#include "runtime/text/constrain/ebnf.h"
#include "runtime/text/constrain/json_schema.h"

namespace soliton {
namespace {

using constrain::Grammar;
using Json = nlohmann::ordered_json;

/// Of a member that is called `param`.
Grammar schema_grammar(const Json& schema, const std::string& param) {
  try {
    return constrain::json_schema_grammar(schema, param);
  } catch (const Error& error) {
    throw ApiError(400, error.what(), param, error.code() == ExitCode::kMismatch ? "unsupported" : "");
  }
}

Grammar text_grammar(const std::string& text) {
  try {
    return constrain::parse_ebnf(text, "grammar");
  } catch (const Error& error) {
    throw ApiError(400, error.what(), "grammar");
  }
}

std::optional<Grammar> format_grammar(const JsonView& format, const Json& ordered) {
  const std::string& type = format["type"].string();
  if (type == "text") return {};
  if (type == "json_object") {  // llama.cpp takes a schema here
    if (format["schema"].is_null()) return constrain::json_object_grammar();
    return schema_grammar(ordered["schema"], "response_format.schema");
  }
  if (type != "json_schema")
    throw format["type"].error("expected text, json_object or json_schema, got {}",
                               format["type"].describe());
  const JsonView schema = format["json_schema"]["schema"];
  if (schema.is_null()) throw schema.error("expected a schema, got nothing");
  return schema_grammar(ordered["json_schema"]["schema"], "response_format.json_schema.schema");
}

}  // namespace

std::optional<Grammar> read_answer_grammar(const JsonView& body, const Json& ordered) {
  std::optional<Grammar> grammar;
  const char* first = nullptr;
  for (const char* name : {"response_format", "json_schema", "grammar"}) {
    const JsonView value = body[name];
    if (value.is_null()) continue;
    std::optional<Grammar> found;
    if (name == std::string_view("grammar")) {
      if (!value.string().empty()) found = text_grammar(value.string());
    } else if (name == std::string_view("json_schema")) {
      found = schema_grammar(ordered[name], name);
    } else {
      found = format_grammar(value, ordered[name]);
    }
    if (!found) continue;
    if (grammar) throw value.error("expected one of {} and {}, got both", first, name);
    first = name;
    grammar = std::move(found);
  }
  return grammar;
}

}  // namespace soliton
