#include "runtime/server/answer_grammar.h"

#include <array>

#include "runtime/server/api_error.h"
#include "runtime/text/constrain/ebnf.h"
#include "runtime/text/constrain/json_schema.h"
#include "runtime/text/constrain/string_pattern.h"

namespace soliton {
namespace {

using constrain::Grammar;
using Json = nlohmann::ordered_json;

/// What `make` makes of a member that is called `param`.
template <class Make>
Grammar made(const std::string& param, Make&& make) {
  try {
    return make();
  } catch (const Error& error) {
    throw ApiError(400, error.what(), param, error.code() == ExitCode::kMismatch ? "unsupported" : "");
  }
}

/// A schema, or its text.
Grammar schema_grammar(const Json& schema, const std::string& param) {
  return made(param, [&] {
    return schema.is_string() ? constrain::parse_json_schema(schema.get_ref<const std::string&>(), param)
                              : constrain::json_schema_grammar(schema, param);
  });
}

std::optional<Grammar> text_grammar(const JsonView& text, const std::string& param) {
  if (text.string().empty()) return std::nullopt;
  return made(param, [&] { return constrain::parse_ebnf(text.string(), param); });
}

Grammar pattern_grammar(const JsonView& pattern, const std::string& param) {
  return made(param, [&] { return constrain::parse_pattern(pattern.string(), param); });
}

/// One of some texts.
Grammar choice_grammar(const JsonView& choice, const std::string& param) {
  std::vector<constrain::Expression> texts;
  for (size_t i = 0; i < choice.array_size(); ++i) texts.push_back(constrain::text(choice[i].string()));
  if (texts.empty()) throw choice.error("expected at least one text, got none");
  Grammar grammar{.name = param, .rules = {}};
  grammar.root = grammar.add("choice", constrain::choice(std::move(texts)));
  return grammar;
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

/// vLLM's, of which one member says what the answer may be.
std::optional<Grammar> structured_grammar(const JsonView& outputs, const Json& ordered) {
  std::optional<Grammar> grammar;
  outputs.object();
  const auto set = [&](const char* name, std::optional<Grammar> found) {
    if (grammar)
      throw outputs[name].error("expected one of json, regex, choice, grammar and json_object, got two");
    grammar = std::move(found);
  };
  const std::string param = "structured_outputs";
  if (!outputs["json"].is_null()) set("json", schema_grammar(ordered["json"], param + ".json"));
  if (!outputs["regex"].is_null()) set("regex", pattern_grammar(outputs["regex"], param + ".regex"));
  if (!outputs["choice"].is_null()) set("choice", choice_grammar(outputs["choice"], param + ".choice"));
  if (!outputs["grammar"].is_null()) set("grammar", text_grammar(outputs["grammar"], param + ".grammar"));
  if (!outputs["json_object"].is_null() && outputs["json_object"].boolean())
    set("json_object", constrain::json_object_grammar());
  if (!outputs["structural_tag"].is_null())
    throw outputs["structural_tag"].error("not supported by this server, got {}",
                                          outputs["structural_tag"].describe());
  return grammar;
}

using Read = std::optional<Grammar> (*)(const JsonView& value, const Json& ordered, const std::string& name);

constexpr Read kSchema = [](const JsonView&, const Json& ordered, const std::string& name) {
  return std::optional(schema_grammar(ordered, name));
};
constexpr Read kText = [](const JsonView& value, const Json&, const std::string& name) {
  return text_grammar(value, name);
};
constexpr Read kPattern = [](const JsonView& value, const Json&, const std::string& name) {
  return std::optional(pattern_grammar(value, name));
};

struct Way {
  const char* name;
  Read read;
};
/// OpenAI's, llama.cpp's, SGLang's and vLLM's.
const std::array<Way, 10> kWays = {
    {{"response_format", [](const JsonView& value, const Json& ordered,
                            const std::string&) { return format_grammar(value, ordered); }},
     {"json_schema", kSchema},
     {"grammar", kText},
     {"regex", kPattern},
     {"ebnf", kText},
     {"structured_outputs", [](const JsonView& value, const Json& ordered,
                               const std::string&) { return structured_grammar(value, ordered); }},
     {"guided_json", kSchema},
     {"guided_regex", kPattern},
     {"guided_choice", [](const JsonView& value, const Json&,
                          const std::string& name) { return std::optional(choice_grammar(value, name)); }},
     {"guided_grammar", kText}}};

}  // namespace

std::optional<Grammar> read_answer_grammar(const JsonView& body, const Json& ordered) {
  std::optional<Grammar> grammar;
  const char* first = nullptr;
  for (const Way& way : kWays) {
    const JsonView value = body[way.name];
    if (value.is_null()) continue;
    std::optional<Grammar> found = way.read(value, ordered[way.name], way.name);
    if (!found) continue;
    if (grammar) throw value.error("expected one of {} and {}, got both", first, way.name);
    first = way.name;
    grammar = std::move(found);
  }
  return grammar;
}

}  // namespace soliton
