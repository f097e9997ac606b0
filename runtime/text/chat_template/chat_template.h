// Chat templates of Hugging Face models: a conversation becomes the text that the model was trained on.
// Templates are written in Jinja; this renders what jinja2 would as transformers sets it up, and refuses by
// name what it cannot.
//
// Text that a user typed must not become special tokens, so every byte of the result knows where it came
// from. Each character keeps its origin through everything that moves characters: concatenation, slices,
// strip, split, join, replace, case mappings, indent, format, tojson. What the engine makes up itself
// (digits, quotes, "True") and what the template spells out is the template's; strings in messages, tools and
// variables are the messages'.
#pragma once

#include <ctime>
#include <filesystem>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace soliton {

/// A stretch of rendered text of one origin, never empty.
struct TextPiece {
  std::string text;
  /// Whether it came from a message, tool or variable. Special tokens count only where this is false: a
  /// tokenizer must not find one that even one byte of such text takes part in.
  bool from_message = false;

  bool operator==(const TextPiece&) const = default;
};

struct RenderedChat {
  std::vector<TextPiece> pieces;  // neighbours differ in origin

  /// All pieces joined. A tokenizer should merge across pieces, as the reference does; only special tokens
  /// end there.
  std::string text() const;
  /// Whether the template itself wrote `token` first. With the BOS token: if true, the tokenizer must not add
  /// its own; if false, it should, if it does so for plain text.
  bool begins_with(std::string_view token) const;
};

struct ChatOptions {
  bool add_generation_prompt = true;
  /// Functions that the model may call, as JSON; null for none. A template named "tool_use" is taken if there
  /// is one.
  nlohmann::ordered_json tools;
  /// More variables by name, such as {"enable_thinking": false}; null for none.
  nlohmann::ordered_json variables;
  /// Override those of tokenizer_config.json. They count as the template's own text.
  std::optional<std::string> bos_token;
  std::optional<std::string> eos_token;
  /// What strftime_now sees; the local time if empty.
  std::function<std::tm()> clock;
};

/// A parsed template; immutable, so any number of threads may use one.
class ChatTemplate {
 public:
  /// Reads the template of a model: chat_template.jinja, else chat_template in tokenizer_config.json (a
  /// string, or a list of {name, template}), else in chat_template.json. Special tokens come from
  /// tokenizer_config.json. A GGUF file has all of these in its metadata. Throws kNotFound if there is none, kBadFile if
  /// a file is malformed, and what parse() does.
  static ChatTemplate open(const std::filesystem::path& folder);

  /// A template's text. `name` is what errors call it; they read "name:line: expected ..., got ...". Throws
  /// kBadFile for what is no template, kMismatch for a tag that is not supported, kOutOfMemory above 1 MiB or
  /// if it nests too deep.
  static ChatTemplate parse(std::string_view source, std::string_view name);

  ChatTemplate(ChatTemplate&&) noexcept;
  ChatTemplate& operator=(ChatTemplate&&) noexcept;
  ~ChatTemplate();

  /// What errors call it: its file, or its place there.
  const std::string& name() const;

  /// Whether the source of the template, or of one of several, has this text.
  bool mentions(std::string_view text) const;

  /// Renders a list of messages, each {"role": ..., "content": ...} and what else the template knows. Throws
  /// kMismatch if the template refuses the conversation (raise_exception, whose message the error has) or
  /// needs what is not supported, kBadFile if it does what jinja2 would fail at, and kOutOfMemory at the
  /// limits in fault.h, which end every template.
  RenderedChat render(const nlohmann::ordered_json& messages, const ChatOptions& options = {}) const;

 private:
  struct State;
  explicit ChatTemplate(std::unique_ptr<const State> state);

  std::unique_ptr<const State> state_;
};

}  // namespace soliton
