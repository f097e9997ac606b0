// What llama.cpp's server tells beside OpenAI's API, with vLLM's names for the same: tokens and templates.
#pragma once

#include "runtime/server/routes.h"

namespace soliton {

HttpReply answer_tokenize(Service& service, const HttpRequest& request, const HttpHeaders& headers);
HttpReply answer_detokenize(Service& service, const HttpRequest& request, const HttpHeaders& headers);
HttpReply answer_apply_template(Service& service, const HttpRequest& request, const HttpHeaders& headers);
HttpResponse tell_properties(Service& service, const HttpRequest& request);
HttpResponse tell_slots(Service& service, const HttpRequest& request);
/// As vLLM tells it, for evaluations that tokenise by /tokenize.
HttpResponse tell_tokenizer(Service& service, const HttpRequest& request);

}  // namespace soliton
