// Quantised blocks of GGUF files: what they hold, and the floats that this stands for, bit for bit as the reference (the
// Python package gguf) has them.
//
//   weight(column) = scale(group) * code(column) + offset(group)
//
// Products are rounded to float before the sum.
#pragma once

#include <cstddef>
#include <cstdint>

#include "models/gguf_types.h"

namespace soliton {

/// The most columns that a block has.
inline constexpr int kMostBlockColumns = 256;

/// Of all blocks of a type.
struct BlockFormat {
  int group = 0;             // neighbouring columns that share scale and offset
  bool has_offsets = false;  // else all are 0
  int least_code = 0;
  int greatest_code = 0;
};

/// Of a type that is one of blocks.
BlockFormat block_format(GgufType type);

/// Unpacks whole blocks from `first` on (a multiple of the block's columns), which hold `count` columns: codes[count],
/// scales[count / group], and offsets of as many. Products of a block's scale and a group's are rounded to float.
/// Thread-safe.
void unpack_blocks(GgufType type, const std::byte* data, int64_t first, int64_t count, int8_t* codes,
                   float* scales, float* offsets);

/// What is unpacked of a type whose groups have scales in two levels: the block's own scale and offset, f16 in the file, and
/// integers of groups, so that scale(group) = scale * group_scales[group], and offset(group) = -(offset *
/// group_offsets[group]) where there are offsets.
struct TwoLevels {
  float scale = 0;
  float offset = 0;
  int8_t codes[kMostBlockColumns];
  int8_t group_scales[kMostBlockColumns / 16];
  uint8_t group_offsets[kMostBlockColumns / 16];
};

/// Whether scales of the type are in two levels: those of 256 columns.
bool has_two_levels(GgufType type);
/// One block of such a type.
void unpack_block(GgufType type, const std::byte* block, TwoLevels& unpacked);

/// The floats of whole blocks from element `first` on, values[count].
void dequantise_blocks(GgufType type, const std::byte* data, int64_t first, int64_t count, float* values);

}  // namespace soliton
