// The bit work of checkpoints of integers: nibbles and bytes of little-endian 32-bit words to bytes, and 16-bit floats. Loads
// go through memcpy, because tensors need not be aligned.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace soliton {

inline constexpr int kNibblesPerWord = 8;
static_assert(std::endian::native == std::endian::little, "words are read as they lie in the file");

template <class T>
T load(const std::byte* data, int64_t index) {
  T value;
  std::memcpy(&value, data + index * static_cast<int64_t>(sizeof(T)), sizeof(T));
  return value;
}

/// values[2 i] and values[2 i + 1] are the low and the high nibble of byte i.
inline void spread_nibbles(const uint8_t* packed, int64_t num_bytes, uint8_t* values) {
  for (int64_t i = 0; i < num_bytes; ++i) {
    values[2 * i] = packed[i] & 0xf;
    values[2 * i + 1] = packed[i] >> 4;
  }
}

/// The same of integers of `bits` bits, 4 or 8: values[num_bytes * 8 / bits].
inline void spread_integers(int bits, const uint8_t* packed, int64_t num_bytes, uint8_t* values) {
  if (bits == 4) return spread_nibbles(packed, num_bytes, values);
  std::memcpy(values, packed, static_cast<size_t>(num_bytes));
}

inline int nibble(uint32_t word, int index) {
  return static_cast<int>(word >> (4 * index)) & 0xf;
}

/// Where AWQ keeps output i of eight: its nibbles hold outputs 0, 2, 4, 6, 1, 3, 5, 7.
constexpr int awq_nibble(int output) {
  return output / 2 + output % 2 * (kNibblesPerWord / 2);
}

/// Transposes matrices of 8 x 8 nibbles, as many as there are columns of words: nibble j of words[i][k] and
/// nibble i of words[j][k] change places.
template <int kCount>
void transpose_nibbles(uint32_t (&words)[kNibblesPerWord][kCount]) {
  const auto swap_blocks = [&](int size, uint32_t mask) {  // off the diagonal, of size x size nibbles
    for (int i = 0; i < kNibblesPerWord; ++i) {
      if ((i & size) != 0) continue;
      for (int k = 0; k < kCount; ++k) {
        const uint32_t difference = (words[i][k] >> (4 * size) ^ words[i + size][k]) & mask;
        words[i + size][k] ^= difference;
        words[i][k] ^= difference << (4 * size);
      }
    }
  };
  swap_blocks(4, 0x0000ffff);
  swap_blocks(2, 0x00ff00ff);
  swap_blocks(1, 0x0f0f0f0f);
}

/// Exact, subnormal numbers, infinities and NaN included. Masks for branches, and no subnormal floats, which are slow:
/// loops over many values become wide.
inline float f16_bits_to_float(uint16_t bits) {
  constexpr int32_t kInfinity = 0x7c00;
  constexpr int32_t kLeastNormal = 0x0400;
  constexpr int32_t kBiasDifference = 112 << 23;
  const auto mask = [](bool condition) { return -static_cast<int32_t>(condition); };
  const int32_t sign = static_cast<int32_t>(static_cast<uint32_t>(bits & 0x8000) << 16);
  const int32_t magnitude = bits & 0x7fff;
  const auto subnormal = std::bit_cast<int32_t>(static_cast<float>(magnitude) * 0x1p-24f);
  const int32_t normal =
      (magnitude << 13) + kBiasDifference + (mask(magnitude >= kInfinity) & kBiasDifference);
  const int32_t is_subnormal = mask(magnitude < kLeastNormal);
  return std::bit_cast<float>(sign | (subnormal & is_subnormal) | (normal & ~is_subnormal));
}

/// The value of an f16 that stands there.
inline float load_f16(const std::byte* bytes) {
  return f16_bits_to_float(load<uint16_t>(bytes, 0));
}

inline float bf16_bits_to_float(uint16_t bits) {
  return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16);
}

}  // namespace soliton
