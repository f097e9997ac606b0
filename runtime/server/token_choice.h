// How a request wants the tokens of its answers chosen.
#pragma once

#include "runtime/server/api_request.h"

namespace soliton {

/// What cannot be done, and is wanted. Of members that say how tokens are chosen, and others.
ApiError not_yet(const std::string& param, const std::string& got);

/// `defaults` are how tokens are chosen where the body does not say. Throws ApiError and Error, also for what would change the
/// answer and cannot be done.
void read_token_choice(const JsonView& body, const Sampling& defaults, ApiRequest& request);

/// Where a grammar says what an answer may be, a bias of logits is no more than one.
void bias_only(ApiRequest& request);

}  // namespace soliton
