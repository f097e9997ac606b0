#include "runtime/server/calls/tool_request.h"

#include <algorithm>
#include <set>

#include "runtime/server/api_error.h"

namespace soliton {
namespace {

using Json = nlohmann::ordered_json;

constexpr size_t kMaxTools = 1000;

Tool read_tool(const JsonView& tool, const Json& ordered) {
  if (tool["type"].string() != "function")
    throw tool["type"].error("expected function, got {}", tool["type"].describe());
  const JsonView function = tool["function"];
  Tool read{.name = function["name"].string(), .parameters = nullptr};
  if (read.name.empty()) throw function["name"].error("expected text, got \"\"");
  if (!function["strict"].is_null()) read.is_strict = function["strict"].boolean();
  if (!function["parameters"].is_null()) {
    function["parameters"].object();
    read.parameters = ordered["function"]["parameters"];
  }
  return read;
}

/// Keeps the functions of these names; throws where there is none of a name.
void choose(std::vector<Tool>& tools, const std::vector<JsonView>& names) {
  std::set<std::string_view> chosen;
  for (const JsonView& name : names) {
    const bool is_there = std::ranges::find(tools, name.string(), &Tool::name) != tools.end();
    if (!is_there) throw name.error("expected the name of one of the tools, got {}", name.describe());
    chosen.insert(name.string());
  }
  std::erase_if(tools, [&](const Tool& tool) { return !chosen.contains(tool.name); });
}

/// {"mode": "auto" or "required", "tools": [{"type": "function", "function": {"name": ...}}]}
void choose_allowed(const JsonView& allowed, ToolRequest& request) {
  const JsonView mode = allowed["mode"];
  if (mode.string() != "auto" && mode.string() != "required")
    throw mode.error("expected auto or required, got {}", mode.describe());
  request.is_required = mode.string() == "required";
  std::vector<JsonView> names;
  const JsonView tools = allowed["tools"];
  for (size_t i = 0; i < tools.array_size(); ++i) names.push_back(tools[i]["function"]["name"]);
  if (names.empty()) throw tools.error("expected at least one function, got none");
  choose(request.callable, names);
}

/// False: nothing is to be called.
bool read_choice(const JsonView& choice, const Json& ordered, ToolRequest& request) {
  if (choice.is_null()) return true;
  if (ordered.is_object()) {
    const JsonView type = choice["type"];
    if (type.string() == "allowed_tools") {
      choose_allowed(choice["allowed_tools"], request);
    } else if (type.string() == "function") {
      choose(request.callable, {choice["function"]["name"]});
      request.is_required = true;
    } else {
      throw type.error("expected function or allowed_tools, got {}", type.describe());
    }
    return true;
  }
  const std::string& word = choice.string();
  if (word == "none") return false;
  request.is_required = word == "required" || word == "any";  // as Mistral's API calls it
  if (!request.is_required && word != "auto")
    throw choice.error("expected none, auto, required or a function, got {}", choice.describe());
  if (request.is_required && request.callable.empty())
    throw choice.error("expected some tools beside it, got none");
  return true;
}

}  // namespace

ToolRequest read_tool_request(const JsonView& body, const Json& ordered) {
  ToolRequest request;
  const JsonView tools = body["tools"];
  const size_t num_tools = tools.is_null() ? 0 : tools.array_size();
  if (num_tools > kMaxTools) throw tools.error("expected at most {} functions, got {}", kMaxTools, num_tools);
  for (size_t i = 0; i < num_tools; ++i) request.callable.push_back(read_tool(tools[i], ordered["tools"][i]));
  if (num_tools > 0) request.described = ordered["tools"];
  if (!body["parallel_tool_calls"].is_null()) request.may_be_several = body["parallel_tool_calls"].boolean();
  static const Json kNone;
  const Json& choice = ordered.contains("tool_choice") ? ordered["tool_choice"] : kNone;
  if (!read_choice(body["tool_choice"], choice, request)) return {};
  return request;
}

}  // namespace soliton
