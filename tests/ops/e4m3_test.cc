// E4M3 against its definition, value by value; what a cache of bytes makes of keys and values of any size.
#include "primitives/e4m3.cuh"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <span>
#include <vector>

#include "emulator_testing.h"
#include "reference_model.h"

namespace soliton {
namespace {

constexpr uint32_t kCodes = 256;

bool is_nan_code(uint32_t code) {
  return (code & kE4m3Nan) == kE4m3Nan;
}

double meaning_of(uint32_t code) {
  const int exponent = static_cast<int>(code >> 3 & 15);
  const int mantissa = static_cast<int>(code & 7);
  const double value = exponent == 0 ? std::ldexp(mantissa, -9) : std::ldexp(8 + mantissa, exponent - 10);
  return (code & 0x80) != 0 ? -value : value;
}

TEST(E4m3, CodesMeanWhatTheFormatSays) {
  for (uint32_t code = 0; code < kCodes; ++code) {
    const uint16_t bits = static_cast<uint16_t>(two_e4m3_to_f16(code << 8) >> 16);
    if (is_nan_code(code)) {
      EXPECT_TRUE(std::isnan(e4m3_to_float(code)));
      continue;
    }
    EXPECT_EQ(e4m3_to_float(code), meaning_of(code)) << code;
    EXPECT_EQ(float_to_e4m3(e4m3_to_float(code)), code);
    EXPECT_EQ(f16_to_float(bits), meaning_of(code)) << code;
    const uint2 four = four_e4m3_to_f16(code << 16 | 0x38);  // 1, 0, the code, 0
    EXPECT_EQ(four.x, 0x3c00u);
    EXPECT_EQ(four.y, bits);
  }
}

// Of all f16: the nearest code, of two the even one.
TEST(E4m3, RoundsToTheNearest) {
  uint32_t above = 0;  // the least code that is not below the value
  for (uint32_t bits = 0; bits < 0x7c00; ++bits) {
    const double value = f16_to_float(static_cast<uint16_t>(bits));
    while (above < kE4m3Nan - 1 && meaning_of(above) < value) ++above;
    uint32_t expected = above;
    if (above > 0 && meaning_of(above) >= value) {
      const double to_above = meaning_of(above) - value;
      const double to_below = value - meaning_of(above - 1);
      if (to_below < to_above || (to_below == to_above && above % 2 == 1)) expected = above - 1;
    }
    ASSERT_EQ(two_f16_to_e4m3(bits | (bits | 0x8000) << 16), expected | (expected | 0x80) << 8) << value;
  }
  EXPECT_EQ(two_f16_to_e4m3(0x7e00) & kE4m3Nan, kE4m3Nan);
}

/// As the reference has it, which does not use what kernels do.
float reference_of(float value, float largest) {
  std::vector<double> head = {value, largest};
  round_to_bytes(head, 2);
  return static_cast<float>(head[0]);
}

// Whatever the largest of a head is, its values become f16 again, and stay as they are if they are rounded anew.
TEST(E4m3, HeadsOfAnySizeStayF16) {
  for (const float largest : {0.0f, 0x1p-24f, 0.003f, 1.0f, 1.75f, 1.76f, 448.0f, 57000.0f, 65504.0f}) {
    const int exponent = e4m3_exponent(largest);
    float most = 0;
    for (uint32_t bits = 0; bits < 0x7c00; bits += 7) {
      const float value = f16_to_float(static_cast<uint16_t>(bits));
      if (value > largest) break;
      const float rounded = round_to_e4m3(value, exponent);
      ASSERT_EQ(rounded, reference_of(value, largest)) << value << " of " << largest;
      ASSERT_EQ(f16_to_float(float_to_f16(rounded)), rounded) << value << " of " << largest;
      most = std::max(most, rounded);
    }
    for (uint32_t code = 0; code < kE4m3Nan; ++code) {
      const float value = e4m3_to_float(code) * e4m3_scale(exponent);
      if (value > most) break;
      ASSERT_EQ(round_to_e4m3(value, e4m3_exponent(most)), value) << largest;
    }
  }
}

}  // namespace
}  // namespace soliton
