// What is to be answered once: a prompt, or a conversation whose last message is one. Both come from flags, files or
// stdin.
#pragma once

#include <optional>
#include <string>

#include "runtime/answer/conversation.h"
#include "runtime/chat/options.h"

namespace soliton {

/// A text as an editor leaves it, without the end of its last line. Throws what load_text() does.
std::string load_prompt(const std::string& file);

/// With the system prompt and at least one turn, the last of the user; nothing if the flags name no prompt and stdin is
/// a terminal. Throws Error: kUsage if there is no prompt or a flag contradicts the messages, and what
/// read_conversation() throws.
std::optional<Conversation> read_question(const Options& options);

}  // namespace soliton
