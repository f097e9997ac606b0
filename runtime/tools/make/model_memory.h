// What a model needs of a device's memory.
#pragma once

#include <cstdint>

#include "layout/model_facts.h"

namespace soliton {

/// Bytes of a model on the device, without padding: its matrices in bf16 or as integers with their scales and
/// zeros, lm_head among them if it is tied too; and its tables.
int64_t device_weight_bytes(const ModelFacts& facts);

/// Of these, what every token reads: all but the embedding.
int64_t read_weight_bytes(const ModelFacts& facts);

/// Tokens of context, the model's at most, that `free_bytes` hold beside the weights; 0 if these do not fit.
int32_t fitting_context(const ModelFacts& facts, int64_t free_bytes);

}  // namespace soliton
