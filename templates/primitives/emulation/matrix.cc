// Matrix instructions and the transposition: what a warp's lanes hand over, as matrices.
#include <cstring>

#include "layout/wide_vectors.h"
#include "primitives/emulation/emulator.h"
#include "primitives/emulation/fibers.h"

namespace soliton::emulation {

namespace {

constexpr int kRows = 16;
constexpr int kColumns = 8;
constexpr int kDepth = 16;
constexpr int kDepthOfBytes = 32;

typedef float Row __attribute__((vector_size(kColumns * sizeof(float))));
typedef int32_t IntegerRow __attribute__((vector_size(kColumns * sizeof(int32_t))));
typedef uint32_t Words __attribute__((vector_size(8 * sizeof(uint32_t))));
typedef uint16_t HalfWords __attribute__((vector_size(8 * sizeof(uint16_t))));
typedef float Pair __attribute__((vector_size(2 * sizeof(float))));

struct Operands {
  // Of lane row % 8 * 4 + k % 8 / 2: [k / 8][row / 8][k % 2], as it hands them over.
  alignas(Row) float a[kLanes][8];
  Words words[2][4];  // of b: [k / 8][k % 8 / 2], of each column the two of k % 2
  Row b[kDepth];
  Row sums[kRows];
};

/// Every sum is made in the order of k, whatever the width of the machine's vectors.
[[gnu::always_inline]] inline void multiply_rows(Operands& all) {
  for (int row = 0; row < kRows / 2; ++row) {
    Row first = {};
    Row second = {};
#pragma GCC unroll 16
    for (int k = 0; k < kDepth; ++k) {
      const float* const own = all.a[row * 4 + k % 8 / 2] + k / 8 * 4 + k % 2;
      first += own[0] * all.b[k];
      second += own[2] * all.b[k];
    }
    all.sums[row] = first;
    all.sums[row + 8] = second;
  }
}

/// `Widen` makes floats of the bits of operands.
template <class Widen>
[[gnu::always_inline]] inline void multiply_by(void* const* operands) {
  Operands all;
  for (int lane = 0; lane < kLanes; ++lane) {
    const auto& operand = *static_cast<const MmaOperand*>(operands[lane]);
    HalfWords halves;
    std::memcpy(&halves, operand.a, sizeof halves);
    Row row;
    Widen::widen(__builtin_convertvector(halves, Words), row);
    std::memcpy(all.a[lane], &row, sizeof row);
    for (int reg = 0; reg < 2; ++reg) all.words[reg][lane % 4][lane / 4] = operand.b[reg];
  }
  for (int pair = 0; pair < 8; ++pair) {
    const Words& words = all.words[pair / 4][pair % 4];
    Widen::widen(words & 0xffff, all.b[pair * 2]);
    Widen::widen(words >> 16, all.b[pair * 2 + 1]);
  }
  multiply_rows(all);
  for (int lane = 0; lane < kLanes; ++lane) {
    float* const c = static_cast<float*>(static_cast<const MmaOperand*>(operands[lane])->c);
    for (int half = 0; half < 2; ++half) {
      const auto* const sums = reinterpret_cast<const unsigned char*>(&all.sums[lane / 4 + half * 8]);
      Pair mine, sum;
      std::memcpy(&mine, c + half * 2, sizeof mine);
      std::memcpy(&sum, sums + lane % 4 * sizeof sum, sizeof sum);
      mine += sum;
      std::memcpy(c + half * 2, &mine, sizeof mine);
    }
  }
}

struct Bf16 {
  [[gnu::always_inline]] static void widen(const Words& bits, Row& to) { to = (Row)(bits << 16); }
};

struct Ieee16 {
  [[gnu::always_inline]] static void widen(const Words& bits, Row& to) {
    constexpr uint32_t kExponent = 0x7f800000;
    constexpr uint32_t kOffset = 112u << 23;  // from its exponent to that of a float
    const Words magnitude = (bits & 0x7fff) << 13;
    // Without an exponent there is no one before the point: it is put there, and taken away.
    const Words small = (Words)((Row)(magnitude + kOffset + (1u << 23)) - 0x1p-14f);
    Words all = magnitude < (1u << 23) ? small : magnitude + kOffset;
    all = magnitude >= (31u << 23) ? magnitude | kExponent : all;
    to = (Row)(all | (bits & 0x8000) << 16);
  }
};

struct IntegerOperands {
  // As it is of floats, with k % 16 / 4 in the place of k % 8 / 2, and k % 4 last.
  alignas(IntegerRow) int32_t a[kLanes][16];
  Words words[2][4];  // of b: [k / 16][k % 16 / 4], of each column the four of k % 4
  IntegerRow b[kDepthOfBytes];
  IntegerRow sums[kRows];
};

SOLITON_WIDE_VECTORS void multiply_bf16(void* const* operands) {
  multiply_by<Bf16>(operands);
}
SOLITON_WIDE_VECTORS void multiply_f16(void* const* operands) {
  multiply_by<Ieee16>(operands);
}

/// `Byte`: of a.
template <class Byte>
[[gnu::always_inline]] inline void multiply_bytes(void* const* operands) {
  IntegerOperands all;
  for (int lane = 0; lane < kLanes; ++lane) {
    const auto& own = *static_cast<const MmaOperand*>(operands[lane]);
    Byte bytes[16];
    std::memcpy(bytes, own.a, sizeof bytes);
    for (int i = 0; i < 16; ++i) all.a[lane][i] = bytes[i];
    for (int reg = 0; reg < 2; ++reg) all.words[reg][lane % 4][lane / 4] = own.b[reg];
  }
  for (int k = 0; k < kDepthOfBytes; ++k)
    all.b[k] = (IntegerRow)(all.words[k / 16][k % 16 / 4] << (24 - k % 4 * 8)) >> 24;
  for (int row = 0; row < kRows / 2; ++row) {
    IntegerRow first = {};
    IntegerRow second = {};
#pragma GCC unroll 32
    for (int k = 0; k < kDepthOfBytes; ++k) {
      const int32_t* const from = all.a[row * 4 + k % 16 / 4] + k / 16 * 8 + k % 4;
      first += from[0] * all.b[k];
      second += from[4] * all.b[k];
    }
    all.sums[row] = first;
    all.sums[row + 8] = second;
  }
  for (int lane = 0; lane < kLanes; ++lane) {
    auto* const c = static_cast<int32_t*>(static_cast<const MmaOperand*>(operands[lane])->c);
    for (int i = 0; i < 4; ++i) c[i] += all.sums[lane / 4 + i / 2 * 8][lane % 4 * 2 + i % 2];
  }
}

SOLITON_WIDE_VECTORS void multiply_u8(void* const* operands) {
  multiply_bytes<uint8_t>(operands);
}
SOLITON_WIDE_VECTORS void multiply_s8(void* const* operands) {
  multiply_bytes<int8_t>(operands);
}

}  // namespace

void multiply_accumulate(void* const* operands) {
  multiply_bf16(operands);
}

void multiply_accumulate_f16(void* const* operands) {
  multiply_f16(operands);
}

namespace {

/// As so many products of 8 rows: each lane's b as those of a warp have it.
template <class Sum, class Multiply>
void multiply_by_rows(void* const* operands, const Multiply& multiply) {
  const auto& first = *static_cast<const Product*>(operands[0]);
  const auto* b = static_cast<const unsigned char*>(first.b);
  for (int row = 0; row < first.rows; row += kColumns) {
    MmaOperand own[kLanes];
    void* pointers[kLanes];
    for (int lane = 0; lane < kLanes; ++lane) {
      const auto& product = *static_cast<const Product*>(operands[lane]);
      own[lane].c = static_cast<Sum*>(product.c) + row / 2;
      std::memcpy(own[lane].a, product.a, sizeof product.a);
      for (int reg = 0; reg < 2; ++reg)
        std::memcpy(&own[lane].b[reg],
                    b + reg * first.next_k + row / kColumns * first.next_rows + lane / 4 * 16 + lane % 4 * 4,
                    4);
      pointers[lane] = &own[lane];
    }
    multiply(pointers);
  }
}

}  // namespace

void multiply_product(void* const* operands) {
  switch (static_cast<const Product*>(operands[0])->of) {
    case ProductOf::kBf16:
      multiply_by_rows<float>(operands, multiply_bf16);
      break;
    case ProductOf::kF16:
      multiply_by_rows<float>(operands, multiply_f16);
      break;
    case ProductOf::kBytes:
      multiply_by_rows<int32_t>(operands, multiply_u8);
      break;
    case ProductOf::kSignedBytes:
      multiply_by_rows<int32_t>(operands, multiply_s8);
      break;
  }
}

void multiply_accumulate_u8(void* const* operands) {
  multiply_u8(operands);
}

void multiply_accumulate_s8(void* const* operands) {
  multiply_s8(operands);
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
