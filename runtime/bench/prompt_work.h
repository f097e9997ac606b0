// What reading a prompt takes of a card's multipliers.
#pragma once

#include "layout/model_facts.h"

namespace soliton {

/// Floating-point operations of a prompt of so many tokens in an empty cache, two for each product that is added: the layers'
/// matrices for every token, attention over those tokens that each sees, and lm_head for the last one, which alone chooses.
double prompt_flops(const ModelFacts& facts, int num_tokens);

}  // namespace soliton
