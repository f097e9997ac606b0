#include "runtime/server/calls/call_format.h"

#include <algorithm>
#include <array>

#include "models/error.h"
#include "runtime/text/constrain/vocabulary.h"

namespace soliton {
namespace {

constexpr size_t kMistralIdCharacters = 9;

constexpr std::array<CallFormat, 9> kFormats = {{
    {.name = "Hermes, Qwen",
     .style = CallStyle::kTags,
     .open = "",
     .call = "<tool_call>\n{\"name\": \"",
     .arguments = "\", \"arguments\": ",
     .call_end = "}\n</tool_call>",
     .separator = "\n",
     .close = "",
     .trigger = "<tool_call>"},
    {.name = "Llama 3",
     .style = CallStyle::kObjects,
     .open = "",
     .call = "{\"name\": \"",
     .arguments = "\", \"parameters\": ",
     .call_end = "}",
     .separator = "; ",
     .close = "",
     .trigger = "",
     .may_open = "<|python_tag|>"},
    {.name = "Mistral",
     .style = CallStyle::kMarker,
     .open = "[TOOL_CALLS] [",
     .call = "{\"name\": \"",
     .arguments = "\", \"arguments\": ",
     .call_end = "}",
     .separator = ", ",
     .close = "]",
     .trigger = "[TOOL_CALLS]",
     .id_characters = kMistralIdCharacters},
    {.name = "Mistral with [ARGS]",
     .style = CallStyle::kMarker,
     .open = "",
     .call = "[TOOL_CALLS]",
     .arguments = "[ARGS]",
     .call_end = "",
     .separator = "",
     .close = "",
     .trigger = "[TOOL_CALLS]",
     .id_characters = kMistralIdCharacters},
    {.name = "Llama, pythonic",
     .style = CallStyle::kPython,
     .open = "[",
     .call = "",
     .arguments = "(",
     .call_end = ")",
     .separator = ", ",
     .close = "]",
     .trigger = "",
     .may_open = "<|python_tag|>",
     .argument_style = ArgumentStyle::kKeywords},
    {.name = "GLM",
     .style = CallStyle::kArgumentTags,
     .open = "",
     .call = "<tool_call>",
     .arguments = "\n",
     .call_end = "</tool_call>",
     .separator = "\n",
     .close = "",
     .trigger = "<tool_call>",
     .argument_style = ArgumentStyle::kTags},
    {.name = "DeepSeek",
     .style = CallStyle::kDeepSeek,
     .open = "<｜tool▁calls▁begin｜>",
     .call = "<｜tool▁call▁begin｜>function<｜tool▁sep｜>",
     .arguments = "\n```json\n",
     .call_end = "\n```<｜tool▁call▁end｜>",
     .separator = "\n",
     .close = "<｜tool▁calls▁end｜>",
     .trigger = "<｜tool▁calls▁begin｜>"},
    {.name = "DeepSeek V3.1",
     .style = CallStyle::kDeepSeek,
     .open = "<｜tool▁calls▁begin｜>",
     .call = "<｜tool▁call▁begin｜>",
     .arguments = "<｜tool▁sep｜>",
     .call_end = "<｜tool▁call▁end｜>",
     .separator = "",
     .close = "<｜tool▁calls▁end｜>",
     .trigger = "<｜tool▁calls▁begin｜>"},
    {.name = "harmony",
     .style = CallStyle::kHarmony,
     .open = "",
     .call = "<|channel|>commentary to=functions.",
     .arguments = " <|constrain|>json<|message|>",
     .call_end = "",
     .separator = "",
     .close = "",
     .trigger = "<|channel|>commentary to=functions.",
     .has_one_call = true},
}};

constexpr std::array<std::string_view, 15> kMarks = {"<tool_call>",
                                                     "</tool_call>",
                                                     "<|python_tag|>",
                                                     "[TOOL_CALLS]",
                                                     "[ARGS]",
                                                     "<arg_key>",
                                                     "</arg_key>",
                                                     "<｜tool▁calls▁begin｜>",
                                                     "<｜tool▁call▁begin｜>",
                                                     "<｜tool▁sep｜>",
                                                     "<｜tool▁call▁end｜>",
                                                     "<｜tool▁calls▁end｜>",
                                                     "<|channel|>",
                                                     "<|constrain|>",
                                                     "<|message|>"};

std::string without_space(std::string_view text) {
  std::string kept;
  std::copy_if(text.begin(), text.end(), std::back_inserter(kept),
               [](char c) { return kCallSpace.find(c) == kCallSpace.npos; });
  return kept;
}

/// What a template of the format makes of the ProbeCall, up to the end of its arguments.
std::string probe_text(const CallFormat& format) {
  std::string text(format.open);
  text.append(format.call).append(ProbeCall::kName).append(format.arguments);
  const std::string key(ProbeCall::kKey);
  const std::string value(ProbeCall::kValue);
  switch (format.argument_style) {
    case ArgumentStyle::kJson:
      return text + "{\"" + key + "\": \"" + value + "\"";
    case ArgumentStyle::kKeywords:
      return text + key + "=";
    case ArgumentStyle::kTags:
      return text + "<arg_key>" + key + "</arg_key><arg_value>" + value;
  }
  return text;
}

}  // namespace

std::span<const CallFormat> call_formats() {
  return kFormats;
}

const CallFormat& call_format(std::string_view name) {
  const auto found = std::ranges::find(kFormats, name, &CallFormat::name);
  if (found == kFormats.end())
    throw Error(ExitCode::kInternal, fmt::format("calls: expected a format, got {}", name));
  return *found;
}

std::vector<std::string> marks_of(const CallFormat& format) {
  std::vector<std::string> marks;
  for (const std::string_view mark : kMarks) {
    const bool is_of_tags = format.argument_style == ArgumentStyle::kTags && mark.find("arg_") != mark.npos;
    const bool is_of_parts = std::ranges::any_of(
        std::initializer_list<std::string_view>{format.open, format.call, format.arguments, format.call_end,
                                                format.close, format.may_open},
        [&](std::string_view part) { return part.find(mark) != part.npos; });
    if (is_of_tags || is_of_parts) marks.emplace_back(mark);
  }
  if (format.argument_style == ArgumentStyle::kTags)
    marks.insert(marks.end(), {"<arg_value>", "</arg_value>"});
  return marks;
}

const CallFormat* format_written(std::string_view text) {
  const std::string dense = without_space(text);
  // The longest: what one writes may be part of what another does.
  const CallFormat* best = nullptr;
  size_t longest = 0;
  for (const CallFormat& format : kFormats) {
    const std::string written = without_space(probe_text(format));
    if (written.size() <= longest || dense.find(written) == std::string::npos) continue;
    longest = written.size();
    best = &format;
  }
  return best;
}

const CallFormat* format_mentioned(std::string_view text) {
  const auto mentions = [&](std::string_view mark) { return text.find(mark) != text.npos; };
  if (mentions("[TOOL_CALLS]")) return &call_format(mentions("[ARGS]") ? "Mistral with [ARGS]" : "Mistral");
  if (mentions("<arg_key>")) return &call_format("GLM");
  if (mentions("<tool_call>")) return &call_format("Hermes, Qwen");
  if (mentions("<｜tool▁calls▁begin｜>"))
    return &call_format(mentions("```json") ? "DeepSeek" : "DeepSeek V3.1");
  if (mentions("to=functions.")) return &call_format("harmony");
  if (mentions("<|python_tag|>")) return &call_format("Llama 3");
  return nullptr;
}

const CallFormat& format_of_tokens(const Tokenizer& tokenizer) {
  if (tokenizer.token_id("[TOOL_CALLS]"))
    return call_format(tokenizer.token_id("[ARGS]") ? "Mistral with [ARGS]" : "Mistral");
  if (tokenizer.token_id("<tool_call>"))
    return call_format(tokenizer.token_id("<arg_key>") ? "GLM" : "Hermes, Qwen");
  if (tokenizer.token_id("<｜tool▁calls▁begin｜>")) return call_format("DeepSeek V3.1");
  if (tokenizer.token_id("<|python_tag|>")) return call_format("Llama 3");
  if (tokenizer.token_id("<|channel|>") && tokenizer.token_id("<|call|>")) return call_format("harmony");
  return call_format("Hermes, Qwen");
}

// ---- Marks

AnswerMarks::AnswerMarks(const Tokenizer& tokenizer, int vocabulary, std::span<const std::string> texts) {
  for (const std::string& text : texts) {
    const std::optional<int> token = tokenizer.token_id(text);
    if (!token || !tokenizer.is_special(*token) || *token >= vocabulary) continue;
    if (std::ranges::find(tokens_, *token) != tokens_.end()) continue;
    tokens_.push_back(*token);
    texts_.push_back(text);
  }
}

std::string AnswerMarks::encoded(std::string_view text) const {
  std::string written(text);
  for (size_t i = 0; i < texts_.size(); ++i) {
    const std::string marker = constrain::Vocabulary::marker(i);
    for (size_t at = 0; (at = written.find(texts_[i], at)) != std::string::npos; at += marker.size())
      written.replace(at, texts_[i].size(), marker);
  }
  return written;
}

std::string AnswerMarks::encoded(const Tokenizer& tokenizer, int32_t token) const {
  const auto found = std::ranges::find(tokens_, token);
  if (found != tokens_.end())
    return constrain::Vocabulary::marker(static_cast<size_t>(found - tokens_.begin()));
  return tokenizer.is_special(token) ? std::string() : tokenizer.piece(token);
}

}  // namespace soliton
