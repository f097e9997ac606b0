// The reasoning of models that think before they answer, apart from the answer: text between two tags at its begin, of which
// the prompt may have written the first.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "runtime/answer/prompter.h"

namespace soliton {

struct ReasoningTags {
  std::string open;
  std::string close;

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

  ReasoningTags tags_;
  ReasoningState state_;
  bool keeps_tags_;
  bool skips_space_;       // at the begin of the reasoning, or of what stands behind it
  std::string held_ = {};  // neither has been told
};

}  // namespace soliton
