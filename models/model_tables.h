// What a device holds of a model beside its packed matrices, counted in one place for those who allocate it and for
// those who say beforehand how much that will be.
#pragma once

#include <cstdint>

#include "layout/model_facts.h"

namespace soliton {

/// Elements of each table, as LaunchParams describes them; 0: the model has none.
struct ModelTables {
  int64_t embedding = 0;      // bf16 [vocabulary][hidden]
  int64_t norms = 0;          // bf16 [Graph::num_norms()][hidden]
  int64_t head_norms = 0;     // bf16 [num_layers][head_norm_weights()]
  int64_t qkv_biases = 0;     // float [num_layers][rows of qkv]
  int64_t router_biases = 0;  // float, see LaunchParams
  int64_t layer_biases = 0;   // the same
  int64_t positions = 0;      // int32, see layout/order.h

  int64_t embedding_bytes() const;
  /// Of all of them.
  int64_t bytes() const;
};

ModelTables model_tables(const ModelFacts& facts);

/// Words of a layer's biases of experts' scores; 0: it has none.
int64_t router_bias_words(const ModelFacts& facts);

/// Of the rotary tables, for each token of context: cosine and sine of each pair of dims, as floats.
int64_t rotary_token_bytes(const ModelFacts& facts);

/// Device memory for each token of a context that is longer than all windows, in bytes: rotations, and keys and values of layers
/// without a window. Of all memory see context_bytes() (models/kv_pages.h).
int64_t context_token_bytes(const ModelFacts& facts);

}  // namespace soliton
