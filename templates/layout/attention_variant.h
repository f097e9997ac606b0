// What attention of a model differs in from softmax(q k^T / sqrt(head_dim)) v over all keys up to the query's own. Kernels
// ask ops/attention_variant.cuh, and what a model does not have is not compiled.
#pragma once

#include "layout/target.h"

namespace soliton {

/// Beside windows, which are layers' own (layout/packed_matrix.h).
struct AttentionVariant {
  float soft_cap = 0;  // a score s becomes soft_cap * tanh(s / soft_cap); 0: stays s
  bool sinks = false;  // has every head the score of a key without a value? See LayerBiases
};

/// The first position that the query at `position` sees.
SOLITON_HOST_DEVICE constexpr int first_seen(int position, int window) {
  return window == 0 || position < window ? 0 : position - window + 1;
}

}  // namespace soliton
