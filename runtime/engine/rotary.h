// The angles by which queries and keys are turned, for every kind of RoPE that models/*.yaml may state.
#pragma once

#include <vector>

#include "layout/model_facts.h"

namespace soliton {

/// [context][rope_tables()][head_dim / 2]{cos, sin} of position x frequency, times the attention factor; as transformers computes
/// them: frequencies and their product with the position in float. Pairs that are not rotated come last, as {1, 0}.
std::vector<float> make_rotary_table(const ModelFacts& facts, int context);

}  // namespace soliton
