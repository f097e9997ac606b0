#include "runtime/server/tool_calls.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "models/strict_json.h"

namespace soliton {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::string_view kTagBegin = "<tool_call>";
constexpr std::string_view kTagEnd = "</tool_call>";
constexpr std::string_view kMarker = "[TOOL_CALLS]";
constexpr std::string_view kArguments = "[ARGS]";
constexpr std::string_view kBlank = " \t\r\n";

std::string_view trimmed(std::string_view text) {
  const size_t begin = text.find_first_not_of(kBlank);
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(kBlank) + 1 - begin);
}

/// Bytes at the end of the text that `word` begins with.
size_t begun(std::string_view text, std::string_view word) {
  for (size_t length = std::min(word.size() - 1, text.size()); length > 0; --length) {
    if (text.ends_with(word.substr(0, length))) return length;
  }
  return 0;
}

/// Where the JSON object that the text begins with ends; npos if it does not.
size_t end_of_object(std::string_view text) {
  int depth = 0;
  bool in_string = false;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (in_string) {
      if (c == '\\') ++i;
      if (c == '"') in_string = false;
    } else if (c == '"') {
      in_string = true;
    } else if (c == '{') {
      ++depth;
    } else if (c == '}' && --depth == 0) {
      return i + 1;
    }
  }
  return std::string_view::npos;
}

/// What a model has written as JSON; null if it is none, or more than the reader takes.
Json json_of(std::string_view text) {
  try {
    return parse_if_json(text, "call").value_or(nullptr);
  } catch (const Error&) {
    return nullptr;
  }
}

}  // namespace

ToolSyntax ToolSyntax::of(const Tokenizer& tokenizer) {
  if (const auto id = tokenizer.token_id(kMarker)) return {ToolStyle::kMarker, id};
  if (const auto id = tokenizer.token_id(kTagBegin)) return {ToolStyle::kTags, id};
  if (const auto id = tokenizer.token_id("<|python_tag|>")) return {ToolStyle::kObjects, id};
  return {ToolStyle::kTags, std::nullopt};
}

/// What a call begins with; for objects nothing that is text alone.
std::string_view ToolCallReader::opening() const {
  if (syntax_.style == ToolStyle::kTags) return kTagBegin;
  return syntax_.style == ToolStyle::kMarker ? kMarker : std::string_view("{");
}

void ToolCallReader::add(std::string_view piece) {
  held_ += piece;
}

std::string ToolCallReader::push(int32_t token, std::string_view piece) {
  // Where the marker is a special token, its text is not part of the answer's.
  if (token == syntax_.marker && piece.find(opening()) == std::string_view::npos) {
    if (syntax_.style != ToolStyle::kObjects) add(opening());
    is_call_ = true;
  }
  add(piece);
  return release();
}

/// The text that is held and cannot be part of a call.
std::string ToolCallReader::release() {
  if (is_call_) return {};
  size_t num_kept = 0;
  if (syntax_.style == ToolStyle::kObjects) {
    // A call is all of an answer.
    const size_t begin = held_.find_first_not_of(kBlank, num_blank_);
    num_blank_ = std::min(begin, held_.size());
    if (!has_text_ && (begin == std::string::npos || held_[begin] == '{')) num_kept = held_.size();
    is_call_ = !has_text_ && begin != std::string::npos && held_[begin] == '{';
  } else if (const size_t begin = held_.find(opening()); begin != std::string::npos) {
    num_kept = held_.size() - begin;
    is_call_ = true;
  } else {
    num_kept = begun(held_, opening());
  }
  std::string text = held_.substr(0, held_.size() - num_kept);
  held_.erase(0, text.size());
  has_text_ = has_text_ || !text.empty();
  return text;
}

ToolCallReader::Rest ToolCallReader::finish(std::string_view piece) {
  Rest rest;
  add(piece);
  rest.text = release();
  std::vector<ToolCall> calls;
  if (is_call_ && read_calls(held_, calls) && !calls.empty()) {
    rest.calls = std::move(calls);
  } else {
    rest.text += held_;
  }
  held_.clear();
  return rest;
}

// ---- Calls

bool ToolCallReader::read_calls(std::string_view text, std::vector<ToolCall>& calls) const {
  switch (syntax_.style) {
    case ToolStyle::kTags:
      return read_tags(text, calls);
    case ToolStyle::kObjects:
      return read_objects(text, calls);
    case ToolStyle::kMarker:
      return read_marked(text, calls);
  }
  return false;
}

/// A call goes up to the next tag of either kind.
bool ToolCallReader::read_tags(std::string_view text, std::vector<ToolCall>& calls) const {
  text = trimmed(text);
  size_t next_end = 0;  // found once, not for each call: there may be many, and no further one
  for (size_t at = 0; at < text.size();) {
    if (!text.substr(at).starts_with(kTagBegin)) return false;
    at += kTagBegin.size();
    if (next_end < at) next_end = std::min(text.find(kTagEnd, at), text.size());
    const size_t end = std::min(text.substr(0, next_end).find(kTagBegin, at), next_end);
    if (!add_call(read_call(text.substr(at, end - at)), calls)) return false;
    at = text.substr(end).starts_with(kTagEnd) ? end + kTagEnd.size() : end;
    at = std::min(text.find_first_not_of(kBlank, at), text.size());
  }
  return true;
}

bool ToolCallReader::read_objects(std::string_view text, std::vector<ToolCall>& calls) const {
  for (text = trimmed(text); !text.empty(); text = trimmed(text)) {
    const size_t end = text[0] == '{' ? end_of_object(text) : std::string_view::npos;
    if (end == std::string_view::npos || !add_call(read_call(text.substr(0, end)), calls)) return false;
    text = trimmed(text.substr(end));
    if (text.starts_with(';')) text.remove_prefix(1);
  }
  return true;
}

bool ToolCallReader::read_marked(std::string_view text, std::vector<ToolCall>& calls) const {
  for (text = trimmed(text); text.starts_with(kMarker); text = trimmed(text)) {
    text = trimmed(text.substr(kMarker.size()));
    if (text.starts_with('[')) {
      const Json list = json_of(text);
      if (!list.is_array()) return false;
      return std::all_of(list.begin(), list.end(),
                         [&](const Json& call) { return add_call(read_call(call.dump()), calls); });
    }
    const size_t begin = text.find('{');
    if (begin == std::string_view::npos) return false;
    std::string_view name = trimmed(text.substr(0, begin));
    if (name.ends_with(kArguments)) name = trimmed(name.substr(0, name.size() - kArguments.size()));
    text.remove_prefix(begin);
    const size_t end = end_of_object(text);
    const Json arguments = json_of(text.substr(0, end));
    if (!arguments.is_object()) return false;
    if (!add_call(ToolCall{std::string(name), arguments.dump()}, calls)) return false;
    text.remove_prefix(end);
  }
  return text.empty();
}

std::optional<ToolCall> ToolCallReader::read_call(std::string_view text) const {
  const Json json = json_of(text);
  if (!json.is_object() || !json.contains("name") || !json["name"].is_string()) return std::nullopt;
  for (const char* member : {"arguments", "parameters"}) {
    if (json.contains(member) && json[member].is_object()) {
      return ToolCall{json["name"].get<std::string>(), json[member].dump()};
    }
  }
  return std::nullopt;
}

bool ToolCallReader::add_call(std::optional<ToolCall> call, std::vector<ToolCall>& calls) const {
  if (!call || std::find(names_->begin(), names_->end(), call->name) == names_->end()) return false;
  calls.push_back(std::move(*call));
  return true;
}

}  // namespace soliton
