// The angles by which queries and keys are turned, for every kind of RoPE that models/*.yaml may state.
#pragma once

#include <vector>

#include "layout/model_facts.h"

namespace soliton {

/// [num_positions][rope_tables()][head_dim / 2]{cos, sin} of position x frequency, times the attention factor; as transformers
/// computes them: frequencies and their product with the position in float. Pairs that are not rotated come last, as {1, 0}.
/// `context`: of all tokens there may be; longrope turns by other frequencies where it is longer than the original one.
std::vector<float> make_rotary_table(const ModelFacts& facts, int num_positions, int context);

}  // namespace soliton
