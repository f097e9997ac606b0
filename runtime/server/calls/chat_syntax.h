// What a model's chat template and tokens say of how it writes calls and reasoning. Found by trying the template.
#pragma once

#include <optional>

#include "runtime/answer/reasoning.h"
#include "runtime/server/calls/call_format.h"

namespace soliton {

struct ChatSyntax {
  const CallFormat* calls = nullptr;
  bool describes_tools = false;     // to the model
  bool has_null_content = false;    // beside calls, where others have an empty text
  bool has_text_arguments = false;  // JSON in text, where others have objects
  std::optional<ReasoningTags> reasoning = {};
  AnswerMarks marks = {};                     // of both
  std::vector<int32_t> reasoning_marks = {};  // of these, the tags of reasoning
};

/// Also of models without a template. `vocabulary` is the number of the model's tokens.
ChatSyntax find_chat_syntax(const Prompter& prompter, const Tokenizer& tokenizer, int vocabulary);

/// Messages as the template takes calls in them; of those whose contents are texts and whose arguments are objects.
nlohmann::ordered_json written_for(const ChatSyntax& syntax, nlohmann::ordered_json messages);

}  // namespace soliton
