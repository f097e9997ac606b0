// The reasoning of models that think before they answer, apart from the answer: text between two tags at its begin, of which
// the prompt may have written the first. gpt-oss writes messages in channels (harmony): those of one are reasoning, and the
// answer is what stands in the others.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/answer/prompter.h"

namespace soliton {

struct ReasoningTags {
  std::string open;
  std::string close;
  /// Where an answer is made of messages, what stands before the text of one that is no reasoning. `open` may follow then too,
  /// and `close` ends each message but the last.
  std::vector<std::string> headers = {};
  std::vector<std::string> tokens = {};  // of all of these, where tags are made of several; else the tags are

  bool has_messages() const { return !headers.empty(); }
  /// What may be special tokens.
  std::vector<std::string> marks() const {
    return tokens.empty() ? std::vector<std::string>{open, close} : tokens;
  }

  bool operator==(const ReasoningTags&) const = default;
};

/// Those that the chat template speaks of; nothing if it speaks of none.
std::optional<ReasoningTags> find_reasoning_tags(const Prompter& prompter);

/// Where the answer to a prompt stands.
enum class ReasoningState {
  kNone,    // the prompt has closed it, or the model has none
  kMay,     // it may begin with reasoning
  kInside,  // the prompt has begun it
};
/// Of a prompt's text.
ReasoningState reasoning_state(const ReasoningTags& tags, std::string_view prompt);

/// The answer to be told again in a conversation: of messages those that are no reasoning, else all of the text.
std::string kept_answer(const std::optional<ReasoningTags>& tags, const std::string& text);

/// Takes the text of an answer apart as it comes.
class ReasoningReader {
 public:
  /// `keeps_tags`: what is reasoning has its tags and white space; else neither has what stands around the tags.
  ReasoningReader(ReasoningTags tags, ReasoningState state, bool keeps_tags = false)
      : tags_(std::move(tags)),
        state_(state),
        keeps_tags_(keeps_tags),
        skips_space_(state != ReasoningState::kNone && !keeps_tags) {}

  struct Piece {
    std::string reasoning;
    std::string content;
  };
  /// What is known of the text so far and has not been returned yet.
  Piece push(std::string_view text);
  /// After the last text.
  Piece finish();
  /// Whether the text so far ends within the reasoning.
  bool is_inside() const { return state_ == ReasoningState::kInside; }

 private:
  void open(Piece& piece);
  void pass(Piece& piece);
  void tell_content(Piece& piece);
  void tell_messages(Piece& piece);
  bool knows_recipient(Piece& piece);

  ReasoningTags tags_;
  ReasoningState state_;
  bool keeps_tags_;
  bool skips_space_;            // at the begin of the reasoning, or of what stands behind it
  bool begins_message_ = true;  // what is held, where answers are made of messages
  std::string held_ = {};       // neither has been told
};

}  // namespace soliton
