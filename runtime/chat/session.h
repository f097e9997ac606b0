// The state of a conversation: its messages, how answers are drawn, what the last one took. Asks a Generator
// for answers and knows nothing of terminals.
#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/answer/answer_text.h"
#include "runtime/answer/conversation.h"
#include "runtime/answer/generator.h"
#include "runtime/answer/prompter.h"
#include "runtime/answer/reasoning.h"
#include "runtime/answer/timing.h"
#include "runtime/chat/settings.h"

namespace soliton {

/// Why an answer ended.
enum class AnswerEnd {
  kDone,         // a stop token or a stop string
  kInterrupted,  // on_text wanted no more
  kNumTokens,    // Settings::num_tokens
  kContext,      // the context is full
  kNothing       // interrupted before there was any text: the message is not kept
};

struct Answer {
  std::string text;
  AnswerEnd end = AnswerEnd::kDone;
  Timing timing;
  std::vector<int32_t> tokens;  // that the text is made of
  std::vector<float> logprobs;  // [tokens], if Sampling asks for them
  std::string remark;           // at the end of the statistics
};

/// Whatever throws leaves the conversation as it was.
class Session {
 public:
  struct Setup {
    AnswerStyle style;
    Settings settings;
    std::optional<std::string> system;
  };

  /// All must outlive it. Throws what Generator::check() throws of the settings, and kUsage for a system
  /// prompt without a template.
  Session(const Tokenizer& tokenizer, const Prompter& prompter, Generator& generator, Setup setup);

  /// Given the answer's text as it comes, and nothing while the prompt is fed; ends both by returning false.
  using OnText = std::function<bool(std::string_view)>;

  /// Told how many tokens of the prompt are read, while it is.
  using OnRead = std::function<void(size_t num_read, size_t num_tokens)>;

  /// Adds a message of the user and the answer to it. Throws kOutOfMemory if the conversation does not fit
  /// into the context, and what Prompter::prompt() and the generator throw.
  Answer ask(const std::string& message, const OnText& on_text, const OnRead& on_read = {});
  /// Answers the last message anew, with the next seed. Throws kUsage if there is none, else as ask().
  Answer answer_again(const OnText& on_text, const OnRead& on_read = {});

  /// Forgets the messages, but for the system prompt.
  void clear();
  /// From now on, or none if empty. Throws as the constructor.
  void set_system(const std::string& text);
  /// Throws what Settings::set() and Generator::check() throw.
  void set(const std::string& name, const std::string& value);
  /// Throws what save_conversation() throws.
  void save(const std::filesystem::path& path) const;
  /// Throws what load_conversation() throws, and as ask() if the conversation cannot go on here.
  void load(const std::filesystem::path& path);

  /// Of the answer that comes, or the last one, as it stands in its text; nothing if the model has no reasoning.
  std::optional<ReasoningReader> reasoning_reader() const;

  const Conversation& conversation() const { return conversation_; }
  const Settings& settings() const { return settings_; }
  const Prompter& prompter() const { return prompter_; }
  const Tokenizer& tokenizer() const { return tokenizer_; }
  int context() const { return generator_.context(); }
  /// What /stats says.
  std::vector<std::string> statistics_lines() const;

 private:
  std::vector<int32_t> prompt_of(const Conversation& conversation) const;
  Answer answer(Conversation asked, const OnText& on_text, const OnRead& on_read);

  const Tokenizer& tokenizer_;
  const Prompter& prompter_;
  Generator& generator_;
  AnswerStyle style_;
  Settings settings_;
  Conversation conversation_;
  std::optional<ReasoningTags> reasoning_tags_;
  ReasoningState reasoning_ = ReasoningState::kNone;
  uint32_t num_repeats_ = 0;    // of the last answer; added to the seed
  std::optional<Timing> last_;  // of the last answer kept
};

}  // namespace soliton
