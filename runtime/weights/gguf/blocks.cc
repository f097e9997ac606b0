#include "runtime/weights/gguf/blocks.h"

#include <algorithm>
#include <bit>

#include "models/error.h"
#include "runtime/weights/gguf/k_blocks.h"
#include "runtime/weights/quantization/nibbles.h"

namespace soliton {
namespace {

using enum GgufType;

constexpr int kSmallColumns = 32;  // of blocks with one scale

/// What MXFP4's four bits stand for, doubled: sign, two bits of exponent, one of mantissa.
constexpr int8_t kMxCodes[16] = {0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12};

/// Byte j holds column j, low, and column j + 16.
template <class Code>
void spread(const std::byte* nibbles, int8_t* codes, const Code& code) {
  for (int j = 0; j < kSmallColumns / 2; ++j) {
    const int both = std::to_integer<int>(nibbles[j]);
    codes[j] = static_cast<int8_t>(code(both & 0xf, j));
    codes[j + kSmallColumns / 2] = static_cast<int8_t>(code(both >> 4, j + kSmallColumns / 2));
  }
}

/// Half of a power of two: its exponent is the byte.
float e8m0_half(int exponent) {
  const auto bits =
      exponent < 2 ? uint32_t{0x00200000} << exponent : static_cast<uint32_t>(exponent - 1) << 23;
  return std::bit_cast<float>(bits);
}

/// One block of 32 columns, which are one group.
void unpack_small(GgufType type, const std::byte* block, int8_t* codes, float& scale, float& offset) {
  offset = 0;
  if (type == kMXFP4) {
    scale = e8m0_half(std::to_integer<int>(block[0]));
    return spread(block + 1, codes, [](int bits, int) { return kMxCodes[bits]; });
  }
  scale = load_f16(block);
  const bool has_offset = type == kQ4_1 || type == kQ5_1;
  if (has_offset) offset = load_f16(block + 2);
  const std::byte* const rest = block + (has_offset ? 4 : 2);
  if (type == kQ8_0) {
    for (int i = 0; i < kSmallColumns; ++i) codes[i] = load<int8_t>(rest, i);
  } else if (type == kQ5_0 || type == kQ5_1) {
    const auto fifths = load<uint32_t>(rest, 0);
    const int zero = has_offset ? 0 : 16;
    spread(rest + 4, codes,
           [=](int bits, int column) { return (bits | static_cast<int>(fifths >> column & 1) << 4) - zero; });
  } else if (type == kIQ4_NL) {
    spread(rest, codes, [](int bits, int) { return kNonLinearCodes[bits]; });
  } else {
    const int zero = has_offset ? 0 : 8;
    spread(rest, codes, [=](int bits, int) { return bits - zero; });
  }
}

}  // namespace

BlockFormat block_format(GgufType type) {
  switch (type) {
    case kQ4_0:
      return {.group = 32, .least_code = -8, .greatest_code = 7};
    case kQ4_1:
      return {.group = 32, .has_offsets = true, .greatest_code = 15};
    case kQ5_0:
      return {.group = 32, .least_code = -16, .greatest_code = 15};
    case kQ5_1:
      return {.group = 32, .has_offsets = true, .greatest_code = 31};
    case kQ8_0:
      return {.group = 32, .least_code = -128, .greatest_code = 127};
    case kQ2_K:
      return {.group = 16, .has_offsets = true, .greatest_code = 3};
    case kQ3_K:
      return {.group = 16, .least_code = -4, .greatest_code = 3};
    case kQ4_K:
      return {.group = 32, .has_offsets = true, .greatest_code = 15};
    case kQ5_K:
      return {.group = 32, .has_offsets = true, .greatest_code = 31};
    case kQ6_K:
      return {.group = 16, .least_code = -32, .greatest_code = 31};
    case kIQ4_NL:
    case kIQ4_XS:
      return {.group = 32, .least_code = -127, .greatest_code = 113};
    case kMXFP4:
      return {.group = 32, .least_code = -12, .greatest_code = 12};
    case kF32:
    case kF16:
    case kBF16:
      break;
  }
  throw Error(ExitCode::kInternal, fmt::format("block_format: {} has no blocks", gguf_type(type).name));
}

bool has_two_levels(GgufType type) {
  return gguf_type(type).block_columns == kMostBlockColumns;
}

void unpack_block(GgufType type, const std::byte* block, TwoLevels& unpacked) {
  switch (type) {
    case kQ2_K:
      return unpack_q2_k(block, unpacked);
    case kQ3_K:
      return unpack_q3_k(block, unpacked);
    case kQ4_K:
      return unpack_q4_k(block, unpacked);
    case kQ5_K:
      return unpack_q5_k(block, unpacked);
    case kQ6_K:
      return unpack_q6_k(block, unpacked);
    case kIQ4_XS:
      return unpack_iq4_xs(block, unpacked);
    default:
      break;
  }
  throw Error(ExitCode::kInternal,
              fmt::format("unpack_block: {} has one level of scales", gguf_type(type).name));
}

void unpack_blocks(GgufType type, const std::byte* data, int64_t first, int64_t count, int8_t* codes,
                   float* scales, float* offsets) {
  const GgufTypeFacts& facts = gguf_type(type);
  const BlockFormat format = block_format(type);
  const int groups = facts.block_columns / format.group;
  const std::byte* block = data + first / facts.block_columns * facts.block_bytes;
  for (int64_t done = 0; done < count; done += facts.block_columns, block += facts.block_bytes) {
    if (!has_two_levels(type)) {
      unpack_small(type, block, codes, *scales, *offsets);
    } else {
      TwoLevels unpacked;
      unpack_block(type, block, unpacked);
      std::copy_n(unpacked.codes, facts.block_columns, codes);
      for (int group = 0; group < groups; ++group) {
        scales[group] = unpacked.scale * static_cast<float>(unpacked.group_scales[group]);
        offsets[group] = format.has_offsets
                             ? -(unpacked.offset * static_cast<float>(unpacked.group_offsets[group]))
                             : 0.0f;
      }
    }
    codes += facts.block_columns;
    scales += groups;
    offsets += groups;
  }
}

void dequantise_blocks(GgufType type, const std::byte* data, int64_t first, int64_t count, float* values) {
  const GgufTypeFacts& facts = gguf_type(type);
  const BlockFormat format = block_format(type);
  int8_t codes[kMostBlockColumns];
  float scales[kMostBlockColumns / 16];
  float offsets[kMostBlockColumns / 16];
  for (int64_t done = 0; done < count; done += facts.block_columns) {
    unpack_blocks(type, data, first + done, facts.block_columns, codes, scales, offsets);
    for (int i = 0; i < facts.block_columns; ++i) {
      const float product = scales[i / format.group] * static_cast<float>(codes[i]);
      values[done + i] = format.has_offsets ? product + offsets[i / format.group] : product;
    }
  }
}

}  // namespace soliton
