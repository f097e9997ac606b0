// What attention of a model differs in from softmax(q k^T / sqrt(head_dim)) v over all keys up to the query's own. Kernels
// ask ops/attention_variant.cuh, and what a model does not have is not compiled.
#pragma once

#include "layout/target.h"

namespace soliton {

/// Beside windows and chunks, which are layers' own (layout/packed_matrix.h).
struct AttentionVariant {
  float soft_cap = 0;  // a score s becomes soft_cap * tanh(s / soft_cap); 0: stays s
  bool sinks = false;  // has every head the score of a key without a value? See LayerBiases
  float alibi = 0;     // scores lose by distance, see alibi_exponent(); 0: they do not
};

/// The first position that the query at `position` sees of a window of so many keys, of which its own is the last; 0: of all.
SOLITON_HOST_DEVICE constexpr int first_of_window(int position, int window) {
  return window == 0 || position < window ? 0 : position - window + 1;
}
/// The same of chunks of so many positions; 0: there is one.
SOLITON_HOST_DEVICE constexpr int first_of_chunk(int position, int chunk) {
  return chunk == 0 ? 0 : position / chunk * chunk;
}
/// The same of a layer that may have both.
SOLITON_HOST_DEVICE constexpr int first_seen(int position, int window, int chunk = 0) {
  const int of_window = first_of_window(position, window);
  const int of_chunk = first_of_chunk(position, chunk);
  return of_window > of_chunk ? of_window : of_chunk;
}

/// ALiBi ("Train Short, Test Long"): a score of head h loses 2^-alibi_exponent(h) for every position between query and key.
/// Of n heads, a power of two, exponents are most / n, 2 most / n, ... most; of others they are those of the next power that
/// is larger: every second one, then what is between these.
SOLITON_HOST_DEVICE constexpr float alibi_exponent(int head, int num_heads, float most) {
  int power = 1;
  while (power < num_heads) power *= 2;
  const int number = power == num_heads ? head + 1
                     : head < power / 2 ? 2 * (head + 1)
                                        : 2 * (head - power / 2) + 1;
  return most * static_cast<float>(number) / static_cast<float>(power);
}

}  // namespace soliton
