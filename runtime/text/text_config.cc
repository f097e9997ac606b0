#include "runtime/text/text_config.h"

#include <array>
#include <utility>

#include "models/gguf.h"

namespace soliton {
namespace {

using nlohmann::json;

constexpr const char* kTemplateKey = "tokenizer.chat_template";
constexpr const char* kToolTemplateKey = "tokenizer.chat_template.tool_use";

/// Members of tokenizer_config.json, and the keys that have their tokens' ids.
constexpr std::array kTokenKeys = {
    std::pair("bos_token", "tokenizer.ggml.bos_token_id"),
    std::pair("eos_token", "tokenizer.ggml.eos_token_id"),
    std::pair("unk_token", "tokenizer.ggml.unknown_token_id"),
    std::pair("pad_token", "tokenizer.ggml.padding_token_id"),
};

json gguf_text_config(const JsonView& metadata) {
  json config = json::object();
  const JsonView tokens = metadata["tokenizer.ggml.tokens"];
  for (const auto& [name, key] : kTokenKeys) {
    const JsonView id = metadata[key];
    if (id.is_null() || tokens.is_null()) continue;
    config[name] =
        tokens[static_cast<size_t>(id.integer(0, static_cast<int64_t>(tokens.array_size()) - 1))].string();
  }
  const JsonView chat_template = metadata[kTemplateKey];
  const JsonView tool_template = metadata[kToolTemplateKey];
  if (chat_template.is_null()) return config;
  if (tool_template.is_null()) {
    config["chat_template"] = chat_template.string();
  } else {
    config["chat_template"] = {{{"name", "default"}, {"template", chat_template.string()}},
                               {{"name", "tool_use"}, {"template", tool_template.string()}}};
  }
  return config;
}

}  // namespace

std::optional<TextConfig> read_text_config(const std::filesystem::path& model) {
  if (is_gguf(model)) {
    const GgufFile file = GgufFile::open(model);
    return read_whole(file, [&] { return TextConfig{gguf_text_config(file.view()), file.path()}; });
  }
  const std::filesystem::path path = model / "tokenizer_config.json";
  if (!is_present(path)) return std::nullopt;
  return TextConfig{read_json(path), path.string()};
}

std::optional<std::string> special_token(const JsonView& config, const char* name) {
  const JsonView token = config[name];
  if (token.is_null()) return std::nullopt;
  return token.is_object() ? token["content"].string() : token.string();
}

}  // namespace soliton
