// One prompt or conversation, answered once or several times: as text, streamed, or as JSON.
#pragma once

#include "runtime/answer/conversation.h"
#include "runtime/answer/model.h"
#include "runtime/chat/options.h"

namespace soliton {

/// Answers on stdout, with statistics on stderr. Returns the exit status: 0, or kInterruptedStatus if Ctrl-C cut
/// the answer. Throws Error; what does not fit the context is found out before the weights are read.
int answer_once(const Options& options, const TextSide& text, const Conversation& question);

}  // namespace soliton
