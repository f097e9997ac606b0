// What a request says that its answers may be: JSON, of a schema or any, or texts of a grammar.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>

#include "models/strict_json.h"
#include "runtime/text/constrain/grammar.h"

namespace soliton {

/// Of response_format, as OpenAI's API and llama.cpp's server have it, json_schema or grammar (llama.cpp's), regex or ebnf
/// (SGLang's), structured_outputs or guided_json and the like (vLLM's); nothing if any text will do. `ordered` is the same body. Throws ApiError, with the member's name.
std::optional<constrain::Grammar> read_answer_grammar(const JsonView& body,
                                                      const nlohmann::ordered_json& ordered);

}  // namespace soliton
