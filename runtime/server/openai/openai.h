// OpenAI's API for chats and completions.
#pragma once

#include "runtime/server/routes.h"

namespace soliton {

HttpReply answer_chat(Service& service, const HttpRequest& request, const HttpHeaders& headers);
HttpReply answer_completion(Service& service, const HttpRequest& request, const HttpHeaders& headers);
HttpResponse tell_models(Service& service, const HttpRequest& request);
HttpResponse tell_model(Service& service, const HttpRequest& request);
/// 501: what a model here has learnt are answers.
HttpResponse refuse_embeddings(Service& service, const HttpRequest& request);

}  // namespace soliton
