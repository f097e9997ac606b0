// Conversations become the tokens that stand before an answer.
//
// The template's text and the messages are tokenised as one, since tokens may merge across them, but a
// special token counts only where the template wrote every byte of it. Where the messages hold one, or one
// would arise at their edges, a break is put into it: some special token that the tokenizer is bound to find,
// which makes it tokenise both sides apart, and whose ids are taken out afterwards.
//
//   rendered   <|user|> say <|end|> <|end|>        the first <|end|> is the user's
//   encoded    <|user|> say <B|end|> <|end|>       B: the break
//   ids        <|user|>  say < |end|>  <|end|>     of which only the first and the last are special
//
// What comes out is checked: its special tokens must be those that the template wrote, one by one.
#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "runtime/answer/conversation.h"
#include "runtime/text/chat_template/chat_template.h"
#include "runtime/text/tokenizer.h"

namespace soliton {

/// Encodes rendered conversations. Immutable.
class ChatEncoder {
 public:
  /// The tokenizer must outlive it.
  explicit ChatEncoder(const Tokenizer& tokenizer);

  /// Token ids of the text with the tokenizer's prefix_ids() before it, unless the template wrote them itself.
  /// Throws kMismatch if the tokenizer finds other special tokens than the template wrote.
  std::vector<int32_t> encode(const RenderedChat& chat) const;

 private:
  struct Special {
    std::string text;
    int id;
  };
  struct Expected {
    int id;
    bool is_break;
  };
  /// A text to be encoded and the special tokens that are to be found in it.
  struct Marked {
    std::string text;
    std::vector<Expected> specials;
  };

  bool can_break(const Special& special) const;
  const Special* longest_at(std::string_view text, size_t at, size_t limit) const;
  Marked mark(const RenderedChat& chat) const;

  const Tokenizer& tokenizer_;
  std::vector<Special> specials_;           // the longest first
  std::array<bool, 256> begins_special_{};  // by byte
  std::optional<Special> break_;
};

/// The prompts of one model: by its chat template, or the text itself where there is none. Immutable.
class Prompter {
 public:
  /// Takes the folder's template if there is one, or that of `template_file`, or none if `raw`. The tokenizer
  /// must outlive it. Throws what ChatTemplate does.
  static Prompter open(const Tokenizer& tokenizer, const std::filesystem::path& folder,
                       const std::filesystem::path& template_file, bool raw);
  Prompter(const Tokenizer& tokenizer, std::optional<ChatTemplate> chat_template, ChatOptions options);

  bool has_template() const { return template_.has_value(); }
  /// What errors of the template begin with; there must be one.
  const std::string& template_name() const { return template_.value().name(); }

  /// Whether the template's source has a text; false without one.
  bool mentions(std::string_view text) const { return template_ && template_->mentions(text); }

  /// What stands before the next answer of the assistant: the whole conversation, or without a template the
  /// last turn alone. At least one token. Throws kUsage if there is none, and what ChatTemplate::render() and
  /// ChatEncoder::encode() throw.
  std::vector<int32_t> prompt(const Conversation& conversation) const;
  /// The same of messages, functions and variables as the template takes them, of which there must be one; null: none.
  std::vector<int32_t> prompt(const nlohmann::ordered_json& messages, const nlohmann::ordered_json& tools,
                              const nlohmann::ordered_json& variables) const;
  /// The text of such a prompt, and the tokens of such a text. Throw what prompt() does.
  RenderedChat render(const nlohmann::ordered_json& messages, const nlohmann::ordered_json& tools,
                      const nlohmann::ordered_json& variables, bool begins_answer = true) const;
  std::vector<int32_t> encode(const RenderedChat& chat) const { return encoder_.encode(chat); }

 private:
  const Tokenizer& tokenizer_;
  ChatEncoder encoder_;
  std::optional<ChatTemplate> template_;
  ChatOptions options_;
};

}  // namespace soliton
