// Matrix instructions and the transposition: what a warp's lanes hand over, as matrices.
#include <bit>
#include <cstring>

#include "layout/wide_vectors.h"
#include "primitives/emulation/emulator.h"
#include "primitives/emulation/fibers.h"
#include "primitives/emulation/warpgroups.h"
#include "primitives/host.h"

namespace soliton::emulation {

namespace {

constexpr int kRows = 16;
constexpr int kColumns = 8;
constexpr int kDepth = 16;
constexpr int kDepthOfBytes = 32;

typedef float Row __attribute__((vector_size(kColumns * sizeof(float))));
typedef int32_t IntegerRow __attribute__((vector_size(kColumns * sizeof(int32_t))));

struct Operands {
  float a[kRows][kDepth];
  Row b[kDepth];
  Row sums[kRows];
};

/// Every sum is made in the order of k, whatever the width of the machine's vectors.
SOLITON_WIDE_VECTORS void multiply_rows(Operands& all) {
  for (int row = 0; row < kRows; row += 2) {
    Row first = {};
    Row second = {};
    for (int k = 0; k < kDepth; ++k) {
      first += all.a[row][k] * all.b[k];
      second += all.a[row + 1][k] * all.b[k];
    }
    all.sums[row] = first;
    all.sums[row + 1] = second;
  }
}

struct IntegerOperands {
  int32_t a[kRows][kDepthOfBytes];
  IntegerRow b[kDepthOfBytes];
  IntegerRow sums[kRows];
};

SOLITON_WIDE_VECTORS void multiply_rows(IntegerOperands& all) {
  for (int row = 0; row < kRows; ++row) {
    IntegerRow sum = {};
    for (int k = 0; k < kDepthOfBytes; ++k) sum += all.a[row][k] * all.b[k];
    all.sums[row] = sum;
  }
}

/// `widen` makes a float of the bits of one operand.
template <class Widen>
void multiply_by(void* const* operands, const Widen& widen) {
  Operands all;
  for (int lane = 0; lane < kLanes; ++lane) {
    const auto& operand = *static_cast<const MmaOperand*>(operands[lane]);
    const int group = lane / 4;
    const int pair = lane % 4;
    for (int reg = 0; reg < 4; ++reg) {
      float* to = &all.a[group + reg % 2 * 8][(pair + reg / 2 * 4) * 2];
      to[0] = widen(operand.a[reg] & 0xffff);
      to[1] = widen(operand.a[reg] >> 16);
    }
    for (int reg = 0; reg < 2; ++reg) {
      all.b[(pair + reg * 4) * 2][group] = widen(operand.b[reg] & 0xffff);
      all.b[(pair + reg * 4) * 2 + 1][group] = widen(operand.b[reg] >> 16);
    }
  }
  multiply_rows(all);
  for (int lane = 0; lane < kLanes; ++lane) {
    float* c = static_cast<const MmaOperand*>(operands[lane])->c;
    for (int i = 0; i < 4; ++i) c[i] += all.sums[lane / 4 + i / 2 * 8][lane % 4 * 2 + i % 2];
  }
}

}  // namespace

void multiply_accumulate(void* const* operands) {
  multiply_by(operands, [](uint32_t bits) { return std::bit_cast<float>(bits << 16); });
}

void multiply_accumulate_f16(void* const* operands) {
  multiply_by(operands, [](uint32_t bits) { return f16_to_float(static_cast<uint16_t>(bits)); });
}

void multiply_accumulate_u8(void* const* operands) {
  IntegerOperands all;
  for (int lane = 0; lane < kLanes; ++lane) {
    const auto& own = *static_cast<const IntegerMmaOperand*>(operands[lane]);
    for (int i = 0; i < 16; ++i) {
      const int k = lane % 4 * 4 + i / 8 * 16 + i % 4;
      all.a[lane / 4 + i / 4 % 2 * 8][k] = static_cast<uint8_t>(own.a[i / 4] >> i % 4 * 8);
    }
    for (int i = 0; i < 8; ++i)
      all.b[lane % 4 * 4 + i / 4 * 16 + i % 4][lane / 4] = static_cast<int8_t>(own.b[i / 4] >> i % 4 * 8);
  }
  multiply_rows(all);
  for (int lane = 0; lane < kLanes; ++lane) {
    int32_t* c = static_cast<const IntegerMmaOperand*>(operands[lane])->c;
    for (int i = 0; i < 4; ++i) c[i] += all.sums[lane / 4 + i / 2 * 8][lane % 4 * 2 + i % 2];
  }
}

// Warpgroups: the rows of a warp lie beside each other, so that b, as it lies in shared memory, is what they are
// multiplied by. Their sums, too, are made in the order of k.

namespace {

constexpr int kColumnsAtOnce = 4;
constexpr int kMaxElements = 128 * kDepth;  // of b, as 64 columns of bytes have them too
constexpr int kPart = 8;                    // elements that are widened at once

typedef uint32_t Words __attribute__((vector_size(kPart * sizeof(uint32_t))));
typedef uint16_t Halves __attribute__((vector_size(kPart * sizeof(uint16_t))));
typedef int8_t Bytes __attribute__((vector_size(kPart * sizeof(int8_t))));

struct WarpOperands {
  Row a[kDepthOfBytes][kMmaRows / kPart];
  float b[kMaxElements];  // [column][k]
};

/// [k / 8][column][k % 8], bf16, as floats.
SOLITON_WIDE_VECTORS void widen_bf16(const unsigned char* b, int columns, float* to) {
  for (int part = 0; part < kDepth / kPart; ++part) {
    for (int column = 0; column < columns; ++column, b += sizeof(Halves)) {
      Halves halves;
      std::memcpy(&halves, b, sizeof halves);
      const Words bits = __builtin_convertvector(halves, Words) << 16;
      std::memcpy(to + column * kDepth + part * kPart, &bits, sizeof bits);
    }
  }
}

/// [k / 16][column][k % 16], signed bytes, as floats.
SOLITON_WIDE_VECTORS void widen_s8(const unsigned char* b, int columns, float* to) {
  constexpr int kPartsInLine = 16 / kPart;
  for (int part = 0; part < kDepthOfBytes / kPart; ++part) {
    const unsigned char* line = b + part / kPartsInLine * columns * 16 + part % kPartsInLine * kPart;
    for (int column = 0; column < columns; ++column) {
      Bytes bytes;
      std::memcpy(&bytes, line + column * 16, sizeof bytes);
      const Row floats = __builtin_convertvector(bytes, Row);
      std::memcpy(to + column * kDepthOfBytes + part * kPart, &floats, sizeof floats);
    }
  }
}

/// Sums of products of bytes are below 2^24, so that floats hold them exactly.
SOLITON_WIDE_VECTORS void add_products(const WarpOperands& all, int depth, bool integers, int columns,
                                       MmaColumn* sums) {
  for (int column = 0; column < columns; column += kColumnsAtOnce) {
    const float* b = all.b + column * depth;
    Row products[kColumnsAtOnce][kMmaRows / kPart] = {};
    for (int k = 0; k < depth; ++k) {
#pragma GCC unroll 4
      for (int i = 0; i < kColumnsAtOnce; ++i) {
        products[i][0] += all.a[k][0] * b[i * depth + k];
        products[i][1] += all.a[k][1] * b[i * depth + k];
      }
    }
    for (int i = 0; i < kColumnsAtOnce * 2; ++i) {
      uint32_t* const to = sums[column + i / 2].rows + i % 2 * kPart;
      if (integers) {
        Words sum;
        std::memcpy(&sum, to, sizeof sum);
        sum += reinterpret_cast<Words>(__builtin_convertvector(products[i / 2][i % 2], IntegerRow));
        std::memcpy(to, &sum, sizeof sum);
      } else {
        Row sum;
        std::memcpy(&sum, to, sizeof sum);
        sum += products[i / 2][i % 2];
        std::memcpy(to, &sum, sizeof sum);
      }
    }
  }
}

}  // namespace

void multiply_warp(bool bytes, const MmaFragments& a, const unsigned char* b, int columns, MmaColumn* sums) {
  static WarpOperands all;  // Stacks of fibers are small.
  for (int lane = 0; lane < kLanes; ++lane) {
    for (int reg = 0; reg < 4; ++reg) {
      const uint32_t bits = a[lane][reg];
      const int row = lane / 4 + reg % 2 * 8;
      const auto put = [row](int k, float value) { all.a[k][row / kPart][row % kPart] = value; };
      if (bytes) {
        const int k = lane % 4 * 4 + reg / 2 * 16;
        for (int i = 0; i < 4; ++i) put(k + i, static_cast<float>(bits >> i * 8 & 0xff));
      } else {
        const int k = lane % 4 * 2 + reg / 2 * 8;
        put(k, std::bit_cast<float>(bits << 16));
        put(k + 1, std::bit_cast<float>(bits & 0xffff0000));
      }
    }
  }
  (bytes ? widen_s8 : widen_bf16)(b, columns, all.b);
  add_products(all, bytes ? kDepthOfBytes : kDepth, bytes, columns, sums);
}

void transpose(void* const* operands) {
  uint16_t matrix[8][8];
  for (int lane = 0; lane < kLanes; ++lane) {
    std::memcpy(&matrix[lane / 4][lane % 4 * 2], operands[lane], sizeof(uint32_t));
  }
  for (int lane = 0; lane < kLanes; ++lane) {
    const int row = lane / 4;
    const int column = lane % 4 * 2;
    const uint32_t value = matrix[column][row] | static_cast<uint32_t>(matrix[column + 1][row]) << 16;
    std::memcpy(operands[lane], &value, sizeof value);
  }
}

}  // namespace soliton::emulation
