// Where the grammar of calls begins to hold in an answer that may be text: at what the first call begins with, behind the
// model's reasoning. It looks at the bytes of tokens, as grammars do.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "runtime/server/calls/call_grammar.h"
#include "runtime/server/generation.h"

namespace soliton {

struct CallGateSetup {
  const CallFormat& format;
  std::vector<std::string> names;  // of the functions
  AnswerMarks marks;
  std::optional<ReasoningMarks> reasoning;  // of a model that has some
};

/// Of one answer. The tokenizer and the setup's format must outlive it.
std::unique_ptr<GrammarGate> make_call_gate(const Tokenizer& tokenizer,
                                            std::shared_ptr<const CallGateSetup> setup);

}  // namespace soliton
