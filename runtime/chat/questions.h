// Many questions on one document, answered together: the document is read once, and each question is a branch behind it.
#pragma once

#include <string>
#include <vector>

#include "runtime/answer/model.h"
#include "runtime/chat/options.h"

namespace soliton {

/// Each prompt is the document, an empty line, and a question.
struct DocumentQuestions {
  std::string document;
  std::vector<std::string> questions;  // at least one; none is blank
};

/// Those of --document and --questions, a question a line. Throws Error: kBadFile if one of the files holds none, and
/// what load_prompt() throws.
DocumentQuestions read_document_questions(const Options& options);

/// Answers them on stdout, as many at once as the kernel has rows for and the cache has room for, with statistics on
/// stderr. Returns the exit status: 0, or kInterruptedStatus if Ctrl-C cut the answers. Throws Error: kOutOfMemory, before
/// the weights are read, for a document that does not fit the context.
int answer_questions(const Options& options, const TextSide& text, const DocumentQuestions& asked);

}  // namespace soliton
