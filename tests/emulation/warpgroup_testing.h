// What the tests of multiplication by warpgroups share: the operands, and how lanes hold them.
#pragma once

#include <bit>
#include <cmath>
#include <cstring>
#include <random>

#include "emulator_testing.h"

namespace soliton {

constexpr int kLanes = 32;
constexpr int kGroupThreads = 4 * kLanes;
constexpr int kRows = 64;
constexpr int kStepWords = 8;  // of a row of a, or a column of b: 16 bf16 or 32 bytes

/// Operands of kSteps multiplications and what becomes of c, as words: pairs of bf16, or four bytes; floats, or integers.
template <int kColumns, int kSteps>
struct Product {
  alignas(16) uint32_t a[kRows][kSteps * kStepWords];
  alignas(16) uint32_t b[kColumns][kSteps * kStepWords];
  uint32_t before[kRows][kColumns];      // c
  uint32_t results[3][kRows][kColumns];  // what kernels say that they are for
};

template <int kColumns, int kSteps>
constexpr int kSharedBytes = kColumns* kSteps* kStepWords * 4;

template <int kColumns>
constexpr int kOperandBytes = kSharedBytes<kColumns, 1>;

/// Puts b where the warpgroup reads it.
template <int kColumns, int kSteps>
void place_b(const Product<kColumns, kSteps>& product) {
  for (int i = thread_index(); i < kColumns * kSteps * 2; i += kGroupThreads) {
    const int part = i / kColumns;  // 16 bytes along k
    const auto* from = reinterpret_cast<const uint4*>(product.b[i % kColumns]) + part;
    store_shared(reinterpret_cast<uint4*>(shared_memory()) + i, load_global(from));
  }
  fence_async();
  cta_sync();
}

template <int kColumns, int kSteps>
uint4 load_a(const Product<kColumns, kSteps>& product, int step) {
  const int row = thread_index() / kLanes * 16 + thread_index() % kLanes / 4;
  const int word = step * kStepWords + thread_index() % 4;
  return {load_global(&product.a[row][word]), load_global(&product.a[row + 8][word]),
          load_global(&product.a[row][word + 4]), load_global(&product.a[row + 8][word + 4])};
}

/// Calls visit(i, word of `matrix`) for each of this lane's c.
template <int kColumns, class Visit>
void for_each_c(uint32_t (&matrix)[kRows][kColumns], const Visit& visit) {
  const int lane = thread_index() % kLanes;
  for (int i = 0; i < kColumns / 2; ++i) {
    const int row = thread_index() / kLanes * 16 + lane / 4 + i / 2 % 2 * 8;
    visit(i, &matrix[row][i / 4 * 8 + lane % 4 * 2 + i % 2]);
  }
}

template <class Sum, int kColumns>
void load_c(Sum (&c)[kColumns / 2], uint32_t (&matrix)[kRows][kColumns]) {
  for_each_c(matrix, [&c](int i, uint32_t* word) { c[i] = std::bit_cast<Sum>(load_global(word)); });
}
template <class Sum, int kColumns>
void store_c(const Sum (&c)[kColumns / 2], uint32_t (&matrix)[kRows][kColumns]) {
  for_each_c(matrix, [&c](int i, uint32_t* word) { store_global(word, std::bit_cast<uint32_t>(c[i])); });
}

template <int kColumns, int kSteps>
void fill_bf16(Product<kColumns, kSteps>& product) {
  std::mt19937 random(kColumns);
  std::uniform_real_distribution<float> uniform(-1, 1);
  const auto fill = [&](uint32_t* words, size_t count) {
    for (size_t i = 0; i < count; ++i) words[i] = pack_bf16(uniform(random), uniform(random));
  };
  fill(&product.a[0][0], sizeof product.a / 4);
  fill(&product.b[0][0], sizeof product.b / 4);
  for (auto& row : product.before) {
    for (uint32_t& value : row) value = float_bits(uniform(random));
  }
}

/// Element k of a row of a or of a column of b.
inline double bf16_at(const uint32_t* words, int k) {
  return bf16_to_float(static_cast<uint16_t>(words[k / 2] >> k % 2 * 16));
}

// A small one.

constexpr int kColumns = 16;
constexpr int kSteps = 2;
using Small = Product<kColumns, kSteps>;
constexpr LaunchShape kShape = {1, kGroupThreads, kSharedBytes<kColumns, kSteps>};

inline const unsigned char* b_of(int step) {
  return shared_memory() + step * kOperandBytes<kColumns>;
}

using Matrix = uint32_t[kRows][kColumns];

inline bool all_nan(const Matrix& matrix) {
  bool all = true;
  for (const auto& row : matrix) {
    for (const uint32_t value : row) all &= std::isnan(float_from_bits(value));
  }
  return all;
}

/// The sums of the first steps.
inline void compute(const Small& product, int steps, Matrix& sums) {
  for (int row = 0; row < kRows; ++row) {
    for (int column = 0; column < kColumns; ++column) {
      float sum = float_from_bits(product.before[row][column]);
      for (int step = 0; step < steps; ++step) {
        float part = 0;
        for (int k = step * 16; k < step * 16 + 16; ++k)
          part += static_cast<float>(bf16_at(product.a[row], k) * bf16_at(product.b[column], k));
        sum += part;
      }
      sums[row][column] = float_bits(sum);
    }
  }
}

inline bool is_sum(const Matrix& matrix, const Small& product, int steps) {
  Matrix sums;
  compute(product, steps, sums);
  return std::memcmp(matrix, sums, sizeof sums) == 0;
}

}  // namespace soliton
