// Rows of floats as symmetric integers, bit for bit as the Python package gguf rounds to Q8_0 and Q4_0.
#pragma once

#include <cstdint>

#include "runtime/weights/float_rows.h"

namespace soliton {

/// Columns that share a scale.
inline constexpr int kRoundedGroup = 32;

/// Columns [first, first + count) of a row, as integers of 4 or 8 bits to nearest: values[count], whose zero is half of their
/// range, and scales[count / 32], each what an f16 has. Both counts are multiples of 32. Thread-safe.
void round_row(const FloatRows& floats, int64_t row, int64_t first, int64_t count, int bits, uint8_t* values,
               float* scales);

}  // namespace soliton
