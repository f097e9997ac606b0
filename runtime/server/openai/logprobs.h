// How OpenAI's APIs tell how likely a token was.
#pragma once

#include "runtime/server/answer_format.h"
#include "runtime/text/tokenizer.h"

namespace soliton {

/// The bytes of a token, be they no text by themselves.
std::string token_text(const Tokenizer& tokenizer, int32_t id);

/// "token_id:" and the id, as vLLM has it.
std::string id_name(int32_t id);

/// {"token", "logprob", "bytes", "top_logprobs"}, as chats have it; tokens by their text, or by id_name().
nlohmann::ordered_json logprob_entry(const Tokenizer& tokenizer, const ToldToken& told,
                                     bool names_ids = false);

}  // namespace soliton
