// Finds the template of a model, and renders it.
#include "runtime/text/chat_template/chat_template.h"

#include <algorithm>
#include <array>
#include <map>

#include "models/gguf.h"
#include "models/mapped_file.h"
#include "models/strict_json.h"
#include "runtime/text/chat_template/evaluator.h"
#include "runtime/text/chat_template/json_text.h"
#include "runtime/text/chat_template/parser.h"
#include "runtime/text/text_config.h"

namespace soliton {
namespace {

namespace fs = std::filesystem;
using jinja::Origin;
using jinja::Text;
using jinja::Value;

constexpr const char* kDefault = "default";
constexpr const char* kToolUse = "tool_use";
constexpr std::array<const char*, 7> kSpecialTokens = {"bos_token", "eos_token", "unk_token", "sep_token",
                                                       "pad_token", "cls_token", "mask_token"};

std::tm local_time() {
  const std::time_t now = std::time(nullptr);
  std::tm parts{};
  ::localtime_r(&now, &parts);
  return parts;
}

}  // namespace

std::string RenderedChat::text() const {
  std::string joined;
  for (const TextPiece& piece : pieces) joined += piece.text;
  return joined;
}

bool RenderedChat::begins_with(std::string_view token) const {
  return !token.empty() && !pieces.empty() && !pieces.front().from_message &&
         pieces.front().text.starts_with(token);
}

struct ChatTemplate::State {
  struct Parsed {
    std::string name;
    std::string source;
    jinja::Block block;
  };

  std::map<std::string, Parsed> templates;  // by name; one alone is the default
  std::map<std::string, std::string> special_tokens;

  void add(const std::string& key, std::string_view source, const std::string& name) {
    templates[key] = {name, std::string(source), jinja::parse(source, name)};
  }

  /// Adds what `chat_template` holds; false if it is absent.
  bool add_all(const JsonView& chat_template, const std::string& path) {
    if (chat_template.is_null()) return false;
    if (!chat_template.is_array()) {
      add(kDefault, chat_template.string(), path + ": chat_template");
      return true;
    }
    for (size_t i = 0; i < chat_template.array_size(); ++i) {
      const std::string& name = chat_template[i]["name"].string();
      add(name, chat_template[i]["template"].string(), fmt::format("{}: chat_template {}", path, name));
    }
    if (!templates.contains(kDefault))
      throw chat_template.error("expected a template named default, got none");
    return true;
  }
};

ChatTemplate::ChatTemplate(std::unique_ptr<const State> state) : state_(std::move(state)) {}
ChatTemplate::ChatTemplate(ChatTemplate&&) noexcept = default;
ChatTemplate& ChatTemplate::operator=(ChatTemplate&&) noexcept = default;
ChatTemplate::~ChatTemplate() = default;

ChatTemplate ChatTemplate::parse(std::string_view source, std::string_view name) {
  auto state = std::make_unique<State>();
  state->add(kDefault, source, std::string(name));
  return ChatTemplate(std::move(state));
}

ChatTemplate ChatTemplate::open(const fs::path& folder) {
  const fs::path own_file = folder / "chat_template.jinja";
  const fs::path processor_file = folder / "chat_template.json";
  auto state = std::make_unique<State>();
  bool found = is_present(own_file);
  if (found) state->add(kDefault, load_text(own_file), own_file.string());
  if (const auto config = read_text_config(folder)) {
    const JsonView view = config->view();
    for (const char* name : kSpecialTokens) {
      if (const auto token = special_token(view, name)) state->special_tokens[name] = *token;
    }
    found = found || state->add_all(view["chat_template"], config->name);
  }
  if (!found && is_present(processor_file)) {
    const nlohmann::json config = read_json(processor_file);
    const std::string path = processor_file.string();
    found = state->add_all(JsonView(config, path)["chat_template"], path);
  }
  if (!found) {
    if (is_gguf(folder))
      throw file_error(ExitCode::kNotFound, folder.string(), "expected tokenizer.chat_template, got nothing");
    throw file_error(ExitCode::kNotFound, folder.string(),
                     "expected chat_template.jinja or a chat_template in tokenizer_config.json, got neither");
  }
  return ChatTemplate(std::move(state));
}

const std::string& ChatTemplate::name() const {
  return state_->templates.at(kDefault).name;
}

bool ChatTemplate::mentions(std::string_view text) const {
  return std::any_of(state_->templates.begin(), state_->templates.end(),
                     [&](const auto& each) { return each.second.source.find(text) != std::string::npos; });
}

RenderedChat ChatTemplate::render(const nlohmann::ordered_json& messages, const ChatOptions& options) const {
  const bool by_tools = !options.tools.is_null() && state_->templates.contains(kToolUse);
  const State::Parsed& parsed = state_->templates.at(by_tools ? kToolUse : kDefault);
  jinja::Machine machine(options.clock ? options.clock : local_time);
  std::map<std::string, Value> variables;
  const auto set_token = [&variables](const std::string& name, const std::string& token) {
    variables.insert_or_assign(name, Text(jinja::to_valid_utf8(token), Origin::kTemplate));
  };
  try {
    if (!messages.is_array()) throw jinja::wrong("messages: expected a list, got {}", messages.type_name());
    if (!options.variables.is_null() && !options.variables.is_object()) {
      throw jinja::wrong("variables: expected an object, got {}", options.variables.type_name());
    }
    for (const auto& [name, token] : state_->special_tokens) set_token(name, token);
    if (options.bos_token) set_token("bos_token", *options.bos_token);
    if (options.eos_token) set_token("eos_token", *options.eos_token);
    variables.insert_or_assign("messages", jinja::from_json(machine, messages));
    variables.insert_or_assign("tools", jinja::from_json(machine, options.tools));
    variables.insert_or_assign("documents", Value());
    variables.insert_or_assign("add_generation_prompt", options.add_generation_prompt);
    if (options.variables.is_object()) {
      for (const auto& [name, value] : options.variables.items()) {
        variables.insert_or_assign(name, jinja::from_json(machine, value));
      }
    }
  } catch (const jinja::Fault& fault) {
    throw file_error(fault.code(), parsed.name, "{}", fault.what());
  }
  const Text text = jinja::render(machine, parsed.block, parsed.name, std::move(variables));
  RenderedChat chat;
  size_t begin = 0;
  for (const Text::Run& run : text.runs()) {
    chat.pieces.push_back({text.bytes().substr(begin, run.end - begin), run.origin == Origin::kMessage});
    begin = run.end;
  }
  return chat;
}

}  // namespace soliton
