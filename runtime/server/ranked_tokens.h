// Which tokens were likely in the place of one, by the logits of its row.
#pragma once

#include <span>
#include <vector>

#include "runtime/server/generation.h"

namespace soliton {

/// What a logit is more than its token's logprob, by a token of which both are known.
float normaliser_of(std::span<const float> logits, const ChosenToken& known);

/// The most likely tokens, at most `count`, the best one first; of those that are allowed, if not all are (see
/// Generation::allowed).
std::vector<RankedToken> best_tokens(std::span<const float> logits, int count, const ChosenToken& known,
                                     std::span<const uint32_t> allowed);

}  // namespace soliton
