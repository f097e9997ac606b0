// Random weights as a function of seed and index alone: the same on every target.
#pragma once

#include <cstdint>

#include "layout/target.h"
#include "layout/weight_format.h"

namespace soliton {

/// A 32-bit hash of (seed, index): splitmix64's finaliser.
SOLITON_HOST_DEVICE constexpr uint32_t random_bits(uint64_t index, uint64_t seed) {
  uint64_t z = index * 0x9e3779b97f4a7c15ull + seed;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
  return static_cast<uint32_t>((z ^ (z >> 31)) >> 32);
}

/// Uniform in [-1, 1).
SOLITON_HOST_DEVICE constexpr float random_unit(uint64_t index, uint64_t seed) {
  return static_cast<float>(random_bits(index, seed) >> 8) * (2.0f / 16777216.0f) - 1.0f;
}

/// Values that are every `stride`th run of `run` ones, from run `first` on: what one of several cards has of them.
struct RandomShare {
  int64_t run = 1;
  int64_t first = 0;
  int64_t stride = 1;

  /// Which of all values is value `index` of the share.
  SOLITON_HOST_DEVICE constexpr int64_t of_all(int64_t index) const {
    return stride == 1 ? index : (index / run * stride + first) * run + index % run;
  }
};

/// Tiles of integers, all with the same scale.
struct RandomTiles {
  WeightFormat format = {};
  int32_t padded = 0;  // columns
  int64_t num_tiles = 0;
  uint16_t scale =
      0;  // bits of an f16, of E2M1 the byte of its scales, of E4M3 bits of a bf16: of groups, or of blocks, whose groups have kRandomBlockScale times as much
  uint16_t minimum = 0;  // likewise: of half of the values
  bool is_part = false;  // do scales of all columns come last, as in experts side by side? Else page by page

  SOLITON_HOST_DEVICE constexpr int64_t num_words() const {
    return num_tiles * (tile_bytes(format, padded) / 4);
  }
};

constexpr uint32_t kRandomBlockScale = 32;  // of each group, in formats with blocks

/// A word of the scales at byte `offset` of them: all scales are alike, as are zeros and minima.
SOLITON_HOST_DEVICE constexpr uint32_t random_scale_word(const RandomTiles& tiles, int offset) {
  const WeightFormat format = tiles.format;
  if (format.type == WeightType::kE2m1) return tiles.scale * 0x01010101u;
  if (format.has_float_scales()) return uint32_t{tiles.scale} << 16;
  const uint32_t second = format.has_minima  ? tiles.minimum
                          : format.has_zeros ? static_cast<uint32_t>(format.symmetric_zero())
                                             : uint32_t{tiles.scale};
  if (format.block == 0 || offset % format.block_scale_bytes() < format.block_head_bytes())
    return tiles.scale | second << 16;
  return kRandomBlockScale * 0x01010101u;
}

/// Eight random integers of 4 bits whose mean is their zero, 8: in place of the least there is a zero. With a mean of -0.5 all tokens
/// look alike a few layers on, and go through the same experts of a mixture.
SOLITON_HOST_DEVICE constexpr uint32_t balanced_integers(uint32_t word) {
  constexpr uint32_t kFirstBits = 0x11111111u;
  const uint32_t others = (word | word >> 1 | word >> 2 | word >> 3) & kFirstBits;  // those that are not 0
  return word | (others ^ kFirstBits) << 3;
}

/// The 32-bit word `index` of the tiles: random integers, or what goes with their groups.
SOLITON_HOST_DEVICE constexpr uint32_t random_weight_word(const RandomTiles& tiles, int64_t index,
                                                          uint64_t seed) {
  int offset = static_cast<int>(index % (tile_bytes(tiles.format, tiles.padded) / 4)) * 4;
  int column = 0;
  for (;;) {
    const int columns = tiles.is_part ? tiles.padded : page_columns(tiles.format, tiles.padded - column);
    if (tiles.format.type == WeightType::kE2m1 && offset % tiles.format.e2m1_block_bytes() >= kE2m1CodeBytes)
      return random_scale_word(tiles, offset);
    const int values = tiles.format.value_bytes(columns);
    if (offset < values) {
      const uint32_t word = random_bits(index, seed);
      return tiles.format.type == WeightType::kInt4 ? balanced_integers(word) : word;
    }
    const int bytes = weight_bytes(tiles.format, columns);
    if (offset < bytes) return random_scale_word(tiles, offset - values);
    offset -= bytes;
    column += columns;
  }
}

}  // namespace soliton
