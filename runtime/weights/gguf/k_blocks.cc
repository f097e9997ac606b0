#include "runtime/weights/gguf/k_blocks.h"

#include "runtime/weights/quantization/nibbles.h"

namespace soliton {
namespace {

constexpr int kColumns = kMostBlockColumns;
constexpr int kSixBitScales = 12;  // bytes of Q4_K's and Q5_K's scales and offsets

int byte_at(const std::byte* bytes, int index) {
  return std::to_integer<int>(bytes[index]);
}

/// Of 64 columns the first 32 are the low nibbles of 32 bytes, and the others the high ones.
int nibble_of(const std::byte* nibbles, int column) {
  const int byte = byte_at(nibbles, column / 64 * 32 + column % 32);
  return column % 64 < 32 ? byte & 0xf : byte >> 4;
}

/// Of 128 columns each 32 are one of the four pairs of bits of 32 bytes.
int pair_of(const std::byte* pairs, int column) {
  return byte_at(pairs, column / 128 * 32 + column % 32) >> (column % 128 / 32 * 2) & 3;
}

/// Eight scales and eight offsets of six bits: those of the first four groups have bytes of their own, whose upper two bits
/// are those of the last four's.
void unpack_six_bits(const std::byte* bytes, TwoLevels& unpacked) {
  for (int i = 0; i < 4; ++i) {
    const int scale = byte_at(bytes, i);
    const int offset = byte_at(bytes, 4 + i);
    const int low = byte_at(bytes, 8 + i);
    unpacked.group_scales[i] = static_cast<int8_t>(scale & 0x3f);
    unpacked.group_offsets[i] = static_cast<uint8_t>(offset & 0x3f);
    unpacked.group_scales[4 + i] = static_cast<int8_t>((low & 0xf) | (scale >> 2 & 0x30));
    unpacked.group_offsets[4 + i] = static_cast<uint8_t>(low >> 4 | (offset >> 2 & 0x30));
  }
}

}  // namespace

/// 16 bytes of scales and offsets of four bits, 64 of pairs of bits, f16 scale and offset.
void unpack_q2_k(const std::byte* block, TwoLevels& unpacked) {
  constexpr int kPairs = kColumns / 16;
  constexpr int kScale = kPairs + kColumns / 4;
  unpacked.scale = load_f16(block + kScale);
  unpacked.offset = load_f16(block + kScale + 2);
  for (int group = 0; group < kColumns / 16; ++group) {
    const int both = byte_at(block, group);
    unpacked.group_scales[group] = static_cast<int8_t>(both & 0xf);
    unpacked.group_offsets[group] = static_cast<uint8_t>(both >> 4);
  }
  for (int column = 0; column < kColumns; ++column)
    unpacked.codes[column] = static_cast<int8_t>(pair_of(block + kPairs, column));
}

/// 32 bytes of third bits, one a multiple of 32 columns; 64 of pairs of bits; 12 of scales of six bits; f16 scale.
void unpack_q3_k(const std::byte* block, TwoLevels& unpacked) {
  constexpr int kPairs = kColumns / 8;
  constexpr int kScales = kPairs + kColumns / 4;
  const std::byte* const scales = block + kScales;
  unpacked.scale = load_f16(scales + kSixBitScales);
  for (int group = 0; group < kColumns / 16; ++group) {
    const int low = byte_at(scales, group % 8) >> (group / 8 * 4) & 0xf;
    const int high = byte_at(scales, 8 + group % 4) >> (group / 4 * 2) & 3;
    unpacked.group_scales[group] = static_cast<int8_t>((low | high << 4) - 32);
  }
  for (int column = 0; column < kColumns; ++column) {
    const int third = byte_at(block, column % 32) >> (column / 32) & 1;
    unpacked.codes[column] = static_cast<int8_t>(pair_of(block + kPairs, column) - (third == 0 ? 4 : 0));
  }
}

/// f16 scale and offset, 12 bytes of scales and offsets, 128 of nibbles.
void unpack_q4_k(const std::byte* block, TwoLevels& unpacked) {
  constexpr int kScales = 4;
  unpacked.scale = load_f16(block);
  unpacked.offset = load_f16(block + 2);
  unpack_six_bits(block + kScales, unpacked);
  for (int column = 0; column < kColumns; ++column)
    unpacked.codes[column] = static_cast<int8_t>(nibble_of(block + kScales + kSixBitScales, column));
}

/// The same, with 32 bytes of fifth bits before the nibbles, one a multiple of 32 columns.
void unpack_q5_k(const std::byte* block, TwoLevels& unpacked) {
  constexpr int kScales = 4;
  const std::byte* const fifths = block + kScales + kSixBitScales;
  unpacked.scale = load_f16(block);
  unpacked.offset = load_f16(block + 2);
  unpack_six_bits(block + kScales, unpacked);
  for (int column = 0; column < kColumns; ++column) {
    const int fifth = byte_at(fifths, column % 32) >> (column / 32) & 1;
    unpacked.codes[column] = static_cast<int8_t>(nibble_of(fifths + kColumns / 8, column) | fifth << 4);
  }
}

/// 128 bytes of lower nibbles, 64 of upper pairs of bits, 16 of scales, f16 scale. Of 128 columns the first 64 are the low
/// nibbles of 64 bytes, and the others the high ones.
void unpack_q6_k(const std::byte* block, TwoLevels& unpacked) {
  constexpr int kPairs = kColumns / 2;
  constexpr int kScales = kPairs + kColumns / 4;
  unpacked.scale = load_f16(block + kScales + kColumns / 16);
  for (int group = 0; group < kColumns / 16; ++group)
    unpacked.group_scales[group] = static_cast<int8_t>(byte_at(block, kScales + group));
  for (int column = 0; column < kColumns; ++column) {
    const int both = byte_at(block, column / 128 * 64 + column % 64);
    const int low = column % 128 < 64 ? both & 0xf : both >> 4;
    unpacked.codes[column] = static_cast<int8_t>((low | pair_of(block + kPairs, column) << 4) - 32);
  }
}

/// f16 scale; 2 bytes of upper pairs of bits of eight scales and 4 of their lower nibbles; 128 bytes of nibbles, of each 32
/// columns the first 16 low and the others high.
void unpack_iq4_xs(const std::byte* block, TwoLevels& unpacked) {
  constexpr int kLow = 4;
  constexpr int kNibbles = 8;
  unpacked.scale = load_f16(block);
  const int high = load<uint16_t>(block + 2, 0);
  for (int group = 0; group < kColumns / 32; ++group) {
    const int low = byte_at(block, kLow + group / 2) >> (group % 2 * 4) & 0xf;
    unpacked.group_scales[group] = static_cast<int8_t>((low | (high >> (2 * group) & 3) << 4) - 32);
  }
  for (int column = 0; column < kColumns; ++column) {
    const int both = byte_at(block, kNibbles + column / 32 * 16 + column % 16);
    unpacked.codes[column] = kNonLinearCodes[column % 32 < 16 ? both & 0xf : both >> 4];
  }
}

}  // namespace soliton
