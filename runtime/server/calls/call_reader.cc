#include "runtime/server/calls/call_reader.h"

#include <algorithm>

namespace soliton {
namespace {

/// Bytes at the end of the text that `word` begins with.
size_t begun(std::string_view text, std::string_view word) {
  for (size_t length = std::min(word.size() - 1, text.size()); length > 0; --length) {
    if (text.ends_with(word.substr(0, length))) return length;
  }
  return 0;
}

/// Whether calls of a format that are all of an answer may begin with this character.
bool may_begin(const CallFormat& format, char c) {
  const std::string_view first = format.open.empty() ? format.call : format.open;
  return c == first[0] || (!format.may_open.empty() && c == format.may_open[0]);
}

}  // namespace

std::string ToolCallReader::push(std::string_view piece) {
  held_ += piece;
  return release();
}

/// The text that is held and cannot be part of a call.
std::string ToolCallReader::release() {
  if (is_call_) return {};
  size_t num_kept = 0;
  if (format_->trigger.empty()) {
    const size_t begin = held_.find_first_not_of(kCallSpace, num_blank_);
    num_blank_ = std::min(begin, held_.size());
    const bool begins_call = begin != std::string::npos && may_begin(*format_, held_[begin]);
    if (!has_text_ && (begin == std::string::npos || begins_call)) num_kept = held_.size();
    is_call_ = !has_text_ && begins_call;
  } else if (const size_t begin = held_.find(format_->trigger); begin != std::string::npos) {
    num_kept = held_.size() - begin;
    is_call_ = true;
  } else {
    num_kept = begun(held_, format_->trigger);
  }
  std::string text = held_.substr(0, held_.size() - num_kept);
  held_.erase(0, text.size());
  has_text_ = has_text_ || !text.empty();
  return text;
}

ToolCallReader::Rest ToolCallReader::finish(std::string_view piece) {
  Rest rest;
  rest.text = push(piece);
  std::optional<std::vector<ToolCall>> calls;
  if (is_call_) calls = read_calls(*format_, *tools_, held_);
  if (calls && !calls->empty()) {
    rest.calls = std::move(*calls);
  } else {
    rest.text += held_;
  }
  held_.clear();
  return rest;
}

}  // namespace soliton
