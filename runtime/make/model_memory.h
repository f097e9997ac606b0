// What a model needs of a device's memory.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "layout/model_facts.h"

namespace soliton {

/// Bytes of a model on the device, without padding: its matrices in bf16 or as integers with their scales and
/// zeros, all experts, lm_head if it is tied too; and its tables.
int64_t device_weight_bytes(const ModelFacts& facts);

/// Of these, what a token reads: all but the embedding and the experts that it does not go through.
int64_t read_weight_bytes(const ModelFacts& facts);

/// What several cards with `free_bytes` each hold of a model that they share, as if it were one card's: tables are on
/// every one.
int64_t free_bytes_of_cards(const ModelFacts& facts, int64_t free_bytes, int num_cards);

/// Tokens of many sequences, see pages_of_many(), that `free_bytes` hold beside the weights; 0 if these do not fit.
int64_t fitting_tokens(const ModelFacts& facts, int64_t free_bytes);

/// Tokens of context, of one sequence, the model's at most, that `free_bytes` hold beside the weights; 0 if these do not fit.
int32_t fitting_context(const ModelFacts& facts, int64_t free_bytes);

/// What the model takes of a device's memory with a context of so many tokens.
int64_t device_bytes(const ModelFacts& facts, int32_t context);

/// A model of the same shape in fewer bytes.
struct SmallerFormat {
  std::string name;  // "4-bit layers"
  ModelFacts facts;
};

/// Formats that checkpoints of the model could have, each smaller than the one before; none if it has the smallest.
std::vector<SmallerFormat> smaller_formats(const ModelFacts& facts);

/// Throws Error (kOutOfMemory) unless `free_bytes` hold the model of the file `source` with a context of so many tokens,
/// or with any if that is 0. It says what is needed and what there is, and what would fit instead.
void check_memory(const std::string& source, const ModelFacts& facts, int32_t context, int64_t free_bytes);

}  // namespace soliton
