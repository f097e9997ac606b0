#include "runtime/answer/reasoning.h"

#include <algorithm>
#include <array>
#include <utility>

namespace soliton {
namespace {

constexpr std::string_view kBlank = " \t\r\n";

// As Qwen, DeepSeek, GLM and most others write them, Magistral, Seed-OSS, Command A.
constexpr std::array<std::pair<std::string_view, std::string_view>, 4> kTags = {
    {{"<think>", "</think>"},
     {"[THINK]", "[/THINK]"},
     {"<seed:think>", "</seed:think>"},
     {"<|START_THINKING|>", "<|END_THINKING|>"}}};

/// Of harmony. Calls of functions stand in the channel of commentary too, and keep what says so.
const ReasoningTags kChannels = {
    .open = "<|channel|>analysis<|message|>",
    .close = "<|end|><|start|>assistant",
    .headers = {"<|channel|>final<|message|>", "<|channel|>commentary<|message|>"},
    .tokens = {"<|start|>", "<|channel|>", "<|message|>", "<|end|>"}};

constexpr std::string_view kRecipient = " to=functions.";
constexpr std::string_view kCallChannel = "<|channel|>commentary";

size_t leading_blank(std::string_view text) {
  return std::min(text.find_first_not_of(kBlank), text.size());
}

size_t without_trailing_blank(std::string_view text) {
  return text.find_last_not_of(kBlank) + 1;  // of npos 0
}

/// Bytes at the end of the text that may belong to the tag.
size_t begun(std::string_view text, std::string_view tag) {
  size_t length = std::min(tag.size() - 1, text.size());
  while (length > 0 && !text.ends_with(tag.substr(0, length))) --length;
  return length;
}

/// And white space before them.
size_t unsettled(std::string_view text, std::string_view tag) {
  const size_t length = begun(text, tag);
  return text.size() - without_trailing_blank(text.substr(0, text.size() - length));
}

}  // namespace

std::optional<ReasoningTags> find_reasoning_tags(const Prompter& prompter) {
  for (const auto& [open, close] : kTags) {
    if (prompter.mentions(open) || prompter.mentions(close))
      return ReasoningTags{std::string(open), std::string(close)};
  }
  if (prompter.mentions(kChannels.open)) return kChannels;
  return std::nullopt;
}

std::string kept_answer(const std::optional<ReasoningTags>& tags, const std::string& text) {
  if (!tags || !tags->has_messages()) return text;
  ReasoningReader reader(*tags, ReasoningState::kMay);
  std::string kept = reader.push(text).content;
  return kept + reader.finish().content;
}

ReasoningState reasoning_state(const ReasoningTags& tags, std::string_view prompt) {
  const std::string_view text = prompt.substr(0, without_trailing_blank(prompt));
  if (text.ends_with(tags.open)) return ReasoningState::kInside;
  return text.ends_with(tags.close) ? ReasoningState::kNone : ReasoningState::kMay;
}

ReasoningReader::Piece ReasoningReader::push(std::string_view text) {
  held_ += text;
  Piece piece;
  if (state_ == ReasoningState::kMay) open(piece);
  if (state_ == ReasoningState::kInside) pass(piece);
  if (state_ == ReasoningState::kNone) tell_content(piece);
  return piece;
}

ReasoningReader::Piece ReasoningReader::finish() {
  Piece piece;
  if (state_ != ReasoningState::kInside) {
    piece.content = std::exchange(held_, {});
    return piece;
  }
  const size_t num_bytes = keeps_tags_ ? held_.size() : without_trailing_blank(held_);
  piece.reasoning = std::exchange(held_, {}).substr(0, num_bytes);
  return piece;
}

/// Whether the answer begins with the first tag.
void ReasoningReader::open(Piece& piece) {
  const size_t num_blank = leading_blank(held_);
  const std::string_view text = std::string_view(held_).substr(num_blank);
  if (text.starts_with(tags_.open)) {
    state_ = ReasoningState::kInside;
    const size_t num_bytes = num_blank + tags_.open.size();
    if (keeps_tags_) piece.reasoning += held_.substr(0, num_bytes);
    held_.erase(0, num_bytes);
  } else if (!std::string_view(tags_.open).starts_with(text)) {
    state_ = ReasoningState::kNone;
    skips_space_ = false;
  }
}

void ReasoningReader::pass(Piece& piece) {
  if (skips_space_ && !keeps_tags_) held_.erase(0, leading_blank(held_));
  skips_space_ = skips_space_ && held_.empty();
  const size_t end = held_.find(tags_.close);
  if (end == std::string::npos) {
    const size_t num_settled = held_.size() - unsettled(held_, tags_.close);
    piece.reasoning += held_.substr(0, num_settled);
    held_.erase(0, num_settled);
    return;
  }
  const size_t behind = end + tags_.close.size();
  const std::string_view reasoning = std::string_view(held_).substr(0, end);
  piece.reasoning += keeps_tags_ ? std::string_view(held_).substr(0, behind)
                                 : reasoning.substr(0, without_trailing_blank(reasoning));
  held_.erase(0, behind);
  begins_message_ = true;
  state_ = ReasoningState::kNone;
  skips_space_ = !keeps_tags_;
}

void ReasoningReader::tell_content(Piece& piece) {
  if (tags_.has_messages()) return tell_messages(piece);
  if (skips_space_) held_.erase(0, leading_blank(held_));
  skips_space_ = skips_space_ && held_.empty();
  piece.content += std::exchange(held_, {});
}

/// A message may say before its channel which function it calls. It is told as if it said so after it, as calls are read. False
/// while that is not known yet.
bool ReasoningReader::knows_recipient(Piece& piece) {
  if (!begins_message_) return true;
  if (kRecipient.starts_with(held_)) return false;
  begins_message_ = false;
  if (held_.starts_with(kRecipient)) piece.content += kCallChannel;
  return true;
}

/// Without what stands between the texts of messages. One may be reasoning again.
void ReasoningReader::tell_messages(Piece& piece) {
  skips_space_ = false;
  std::vector<std::string_view> marks(tags_.headers.begin(), tags_.headers.end());
  marks.insert(marks.end(), {tags_.open, tags_.close});
  while (knows_recipient(piece)) {
    size_t first = std::string::npos;
    size_t num_held = 0;
    std::string_view mark;
    for (const std::string_view each : marks) {
      num_held = std::max(num_held, begun(held_, each));
      const size_t at = held_.find(each);
      if (at >= first) continue;
      first = at;
      mark = each;
    }
    if (mark.empty()) {
      piece.content += held_.substr(0, held_.size() - num_held);
      held_.erase(0, held_.size() - num_held);
      return;
    }
    piece.content += held_.substr(0, first);
    held_.erase(0, first + mark.size());
    begins_message_ = mark == tags_.close;
    if (mark != tags_.open) continue;
    state_ = ReasoningState::kInside;
    pass(piece);
    if (state_ == ReasoningState::kInside) return;
  }
}

}  // namespace soliton
