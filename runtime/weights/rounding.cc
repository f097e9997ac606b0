#include "runtime/weights/rounding.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "runtime/weights/packing.h"
#include "runtime/weights/quantization/nibbles.h"

namespace soliton {
namespace {

/// 8 bits: the scale takes the largest magnitude to 127; halves are rounded away from zero.
float round_to_8(const float* x, uint8_t* values) {
  float largest = 0;
  for (int i = 0; i < kRoundedGroup; ++i) largest = std::max(largest, std::abs(x[i]));
  const float scale = largest / 127;
  const float inverse = scale == 0 ? 0 : 1 / scale;
  for (int i = 0; i < kRoundedGroup; ++i)
    values[i] = static_cast<uint8_t>(128 + static_cast<int>(std::round(x[i] * inverse)));
  return scale;
}

/// 4 bits: the scale takes the value of the largest magnitude to -8; halves are rounded up.
float round_to_4(const float* x, uint8_t* values) {
  const float extreme =
      *std::max_element(x, x + kRoundedGroup, [](float a, float b) { return std::abs(a) < std::abs(b); });
  const float scale = extreme / -8;
  const float inverse = scale == 0 ? 0 : 1 / scale;
  for (int i = 0; i < kRoundedGroup; ++i) {
    const float product = x[i] * inverse;
    values[i] = static_cast<uint8_t>(std::clamp(static_cast<int>(product + 8.5f), 0, 15));
  }
  return scale;
}

}  // namespace

void round_row(const FloatRows& floats, int64_t row, int64_t first, int64_t count, int bits, uint8_t* values,
               float* scales) {
  std::vector<uint16_t> read(static_cast<size_t>(count));
  const int64_t rows[] = {row};
  floats.read(rows, first, count, read.data());
  float x[kRoundedGroup];
  for (int64_t done = 0; done < count; done += kRoundedGroup) {
    bool is_finite = true;
    for (int i = 0; i < kRoundedGroup; ++i) {
      x[i] = bf16_bits_to_float(read[static_cast<size_t>(done + i)]);
      is_finite = is_finite && std::isfinite(x[i]);
    }
    // A scale that is no number makes logits that are none, which is noticed.
    if (!is_finite) std::fill_n(x, kRoundedGroup, 0.0f);
    const float scale = bits == 8 ? round_to_8(x, values + done) : round_to_4(x, values + done);
    scales[done / kRoundedGroup] = is_finite ? f16_bits_to_float(f16_bits(scale)) : NAN;
  }
}

}  // namespace soliton
