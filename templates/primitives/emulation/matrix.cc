// Matrix instructions and the transposition: what a warp's lanes hand over, as matrices.
#include <bit>
#include <cstring>

#include "layout/wide_vectors.h"
#include "primitives/emulation/emulator.h"
#include "primitives/emulation/fibers.h"
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
