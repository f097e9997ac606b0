// The grammar that the flags ask answers to follow.
#pragma once

#include <memory>

#include "runtime/answer/model.h"
#include "runtime/text/constrain/token_constraint.h"

namespace soliton {

/// Of --json-schema or --grammar, for the model's tokens; null without. Throws Error, naming the file: kNotFound if there is
/// none, else what constrain::json_schema_grammar() and constrain::parse_ebnf() throw.
std::shared_ptr<TokenGrammar> open_answer_grammar(const Options& options, const TextSide& text);

}  // namespace soliton
