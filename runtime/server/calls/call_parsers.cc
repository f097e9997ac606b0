// The texts of calls, family by family. All take time linear in the text, as they run on the thread that all answers wait for.
#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "models/strict_json.h"
#include "runtime/server/calls/call_reader.h"
#include "runtime/server/calls/python_literal.h"

namespace soliton {
namespace {

using Json = nlohmann::ordered_json;

std::string_view trimmed(std::string_view text) {
  const size_t begin = text.find_first_not_of(kCallSpace);
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(kCallSpace) + 1 - begin);
}

bool take(std::string_view& text, std::string_view word) {
  if (!text.starts_with(word)) return false;
  text.remove_prefix(word.size());
  return true;
}

/// What stands before a word, which is taken too; nothing if it is not there, or another word stands before it.
std::optional<std::string_view> take_until(std::string_view& text, std::string_view word) {
  const size_t end = text.find(word);
  if (end == std::string_view::npos) return std::nullopt;
  const std::string_view before = text.substr(0, end);
  text.remove_prefix(end + word.size());
  return before;
}

/// Where the JSON object that the text begins with ends; npos if it does not.
size_t end_of_object(std::string_view text) {
  int depth = 0;
  bool in_string = false;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (in_string) {
      if (c == '\\') ++i;
      if (c == '"') in_string = false;
    } else if (c == '"') {
      in_string = true;
    } else if (c == '{') {
      ++depth;
    } else if (c == '}' && --depth == 0) {
      return i + 1;
    }
  }
  return std::string_view::npos;
}

/// What a model has written as JSON; null if it is none, or more than the reader takes.
Json json_of(std::string_view text) {
  try {
    return parse_if_json(text, "call").value_or(nullptr);
  } catch (const Error&) {
    return nullptr;
  }
}

class Parser {
 public:
  Parser(const CallFormat& format, const std::vector<Tool>& tools) : format_(format), tools_(tools) {
    for (const Tool& tool : tools) names_.insert(tool.name);
  }

  bool run(std::string_view text) {
    text = trimmed(text);
    if (!format_.may_open.empty() && take(text, format_.may_open)) text = trimmed(text);
    switch (format_.style) {
      case CallStyle::kTags:
      case CallStyle::kArgumentTags:
        return read_tags(text);
      case CallStyle::kObjects:
        return read_objects(text);
      case CallStyle::kMarker:
        return read_marked(text);
      case CallStyle::kPython:
        return read_python(text);
      case CallStyle::kDeepSeek:
        return read_deepseek(text);
      case CallStyle::kHarmony:
        return read_harmony(text);
    }
    return false;
  }

  std::vector<ToolCall> calls;

 private:
  bool add(std::string_view name, const Json& arguments) {
    if (!arguments.is_object() || !names_.contains(name)) return false;
    calls.push_back({std::string(name), arguments.dump()});
    return true;
  }

  /// {"name": ..., "arguments": {...}}, or "parameters".
  bool add_object(const Json& json) {
    if (!json.is_object() || !json.contains("name") || !json["name"].is_string()) return false;
    for (const char* member : {"arguments", "parameters"}) {
      if (json.contains(member) && json[member].is_object())
        return add(json["name"].get_ref<const std::string&>(), json[member]);
    }
    return false;
  }

  /// The object that the text begins with, which is taken too.
  bool add_named(std::string_view name, std::string_view& text) {
    const size_t end = text.starts_with('{') ? end_of_object(text) : std::string_view::npos;
    if (end == std::string_view::npos || !add(trimmed(name), json_of(text.substr(0, end)))) return false;
    text = trimmed(text.substr(end));
    return true;
  }

  /// A call goes up to the next tag of either kind.
  bool read_tags(std::string_view text) {
    constexpr std::string_view kBegin = "<tool_call>";
    constexpr std::string_view kEnd = "</tool_call>";
    size_t next_end = 0;  // found once, not for each call: there may be many, and no further one
    for (size_t at = 0; at < text.size();) {
      if (!text.substr(at).starts_with(kBegin)) return false;
      at += kBegin.size();
      if (next_end < at) next_end = std::min(text.find(kEnd, at), text.size());
      const size_t end = std::min(text.substr(0, next_end).find(kBegin, at), next_end);
      const std::string_view inside = text.substr(at, end - at);
      const bool is_call =
          format_.style == CallStyle::kTags ? add_object(json_of(inside)) : read_arguments(inside);
      if (!is_call) return false;
      at = text.substr(end).starts_with(kEnd) ? end + kEnd.size() : end;
      at = std::min(text.find_first_not_of(kCallSpace, at), text.size());
    }
    return true;
  }

  /// name\n<arg_key>a</arg_key>\n<arg_value>1</arg_value>...
  bool read_arguments(std::string_view text) {
    const std::string_view name = trimmed(text.substr(0, text.find("<arg_key>")));
    text.remove_prefix(std::min(text.find("<arg_key>"), text.size()));
    const auto tool = std::ranges::find(tools_, name, &Tool::name);
    if (tool == tools_.end()) return false;
    Json arguments = Json::object();
    std::set<std::string_view> keys;
    while (take(text, "<arg_key>")) {
      const auto key = take_until(text, "</arg_key>");
      text = trimmed(text);
      if (!key || !take(text, "<arg_value>") || !keys.insert(*key).second) return false;
      const auto value = take_until(text, "</arg_value>");
      if (!value) return false;
      // The keys are told apart above: push_back looks for none.
      arguments.get_ref<Json::object_t&>().push_back({std::string(*key), value_of(*tool, *key, *value)});
      text = trimmed(text);
    }
    return text.empty() && add(name, arguments);
  }

  /// A text stands as it is where the schema wants one, and where it is no JSON.
  static Json value_of(const Tool& tool, std::string_view key, std::string_view value) {
    const Json& schema = tool.parameters;
    if (schema.is_object() && schema.contains("properties") && schema["properties"].is_object()) {
      const auto property = schema["properties"].find(std::string(key));
      if (property != schema["properties"].end() && property->is_object() &&
          property->value("type", Json()) == "string")
        return std::string(value);
    }
    Json json = json_of(value);
    if (json.is_null() && trimmed(value) != "null") return std::string(value);
    return json;
  }

  bool read_objects(std::string_view text) {
    for (; !text.empty(); text = trimmed(text)) {
      const size_t end = text[0] == '{' ? end_of_object(text) : std::string_view::npos;
      if (end == std::string_view::npos || !add_object(json_of(text.substr(0, end)))) return false;
      text = trimmed(text.substr(end));
      take(text, ";");
    }
    return true;
  }

  bool read_marked(std::string_view text) {
    while (take(text, "[TOOL_CALLS]")) {
      text = trimmed(text);
      if (text.starts_with('[')) {
        const Json list = json_of(text);
        if (!list.is_array()) return false;
        return std::all_of(list.begin(), list.end(), [&](const Json& call) { return add_object(call); });
      }
      const size_t begin = text.find('{');
      if (begin == std::string_view::npos) return false;
      std::string_view name = text.substr(0, begin);
      for (const std::string_view mark : {"[ARGS]", "[CALL_ID]"}) name = name.substr(0, name.find(mark));
      text.remove_prefix(begin);
      if (!add_named(name, text)) return false;
    }
    return text.empty();
  }

  /// [name(a=1, b="x"), ...]
  bool read_python(std::string_view text) {
    if (!take(text, "[")) return false;
    for (text = trimmed(text); !take(text, "]"); text = trimmed(text)) {
      if (!calls.empty() && !take(text, ",")) return false;
      text = trimmed(text);
      const auto name = take_until(text, "(");
      if (!name || !names_.contains(*name)) return false;
      const std::optional<Json> arguments = read_keyword_arguments(text);
      if (!arguments || !add(*name, *arguments)) return false;
      text = trimmed(text);
    }
    return trimmed(text).empty();
  }

  bool read_deepseek(std::string_view text) {
    if (!take(text, "<｜tool▁calls▁begin｜>")) return false;
    for (text = trimmed(text); take(text, "<｜tool▁call▁begin｜>"); text = trimmed(text)) {
      const auto type = take_until(text, "<｜tool▁sep｜>");
      if (!type) return false;
      std::string_view name = trimmed(*type);
      if (!text.starts_with('{')) {  // name\n```json\n{...}\n```, behind the type
        const size_t begin = text.find('{');
        if (begin == std::string_view::npos) return false;
        name = text.substr(0, std::min(text.find_first_of("`\n"), begin));
        text.remove_prefix(begin);
      }
      if (!add_named(name, text)) return false;
      if (take(text, "```")) text = trimmed(text);
      if (!take(text, "<｜tool▁call▁end｜>")) break;
    }
    take(text, "<｜tool▁calls▁end｜>");
    return trimmed(text).empty();
  }

  /// <|channel|>commentary to=functions.name <|constrain|>json<|message|>{...}
  bool read_harmony(std::string_view text) {
    const auto before = take_until(text, "to=functions.");
    const auto header = take_until(text, "<|message|>");
    if (!before || !header) return false;
    text = trimmed(text);
    return add_named(header->substr(0, header->find_first_of(" <\n")), text) && text.empty();
  }

  const CallFormat& format_;
  const std::vector<Tool>& tools_;
  std::set<std::string, std::less<>> names_;
};

}  // namespace

std::optional<std::vector<ToolCall>> read_calls(const CallFormat& format, const std::vector<Tool>& tools,
                                                std::string_view text) {
  Parser parser(format, tools);
  if (!parser.run(text)) return std::nullopt;
  return std::move(parser.calls);
}

}  // namespace soliton
