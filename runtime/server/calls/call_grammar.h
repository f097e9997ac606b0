// What an answer may be where functions may be called: calls of a format whose arguments follow the functions' schemas, or
// texts of another grammar in their place, both behind the model's reasoning.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "runtime/server/calls/call_reader.h"
#include "runtime/text/constrain/grammar.h"

namespace soliton {

struct CallGrammarRequest {
  const CallFormat& format;
  const AnswerMarks& marks;
  std::vector<Tool> tools = {};  // those that may be called
  bool may_be_several = true;
};

/// Calls of the format: one, or several one behind the other. Where arguments cannot follow a function's schema, because it
/// says what grammars cannot or more than they hold, they are any JSON object, unless the function is strict. Throws Error,
/// naming the function's place in the request, for what is malformed, and for strict functions as json_schema_grammar()
/// does.
constrain::Grammar call_grammar(const CallGrammarRequest& request);

/// Texts of either grammar; of errors the name of the first.
constrain::Grammar either(constrain::Grammar first, constrain::Grammar second);

/// How an answer's reasoning stands before what it says.
struct ReasoningMarks {
  std::string open;  // as grammars write it
  std::string close;
  bool has_begun = false;  // the prompt ends inside of it
};
/// The same texts behind what begins the message that they are.
constrain::Grammar behind_header(constrain::Grammar grammar, const std::string& header);

/// The same texts behind reasoning: one that has begun, or may.
constrain::Grammar behind_reasoning(constrain::Grammar grammar, const ReasoningMarks& marks);

}  // namespace soliton
