// Keys of a cache of bytes on their way to other positions; those of f16 are tested by whole kernels.
#include "runtime/engine/shift_keys.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "layout/e4m3.h"
#include "layout/random.h"

namespace soliton {
namespace {

TEST(KeyShift, TurnsBytesUpToTheirRounding) {
  constexpr int kBack = 5;
  constexpr int kFirst = 3;
  constexpr int kEnd = 21;
  ModelFacts facts;
  facts.num_layers = 1;
  facts.num_heads = facts.num_kv_heads = 1;
  facts.head_dim = 64;
  facts.kv_bits = 8;
  facts.max_context = 64;
  facts.rope_theta = 10000;
  const KvShape kv = kv_shape(facts);
  std::vector<unsigned char> page(static_cast<size_t>(kv.page_offset(1, 0, 0)));
  for (int token = 0; token < kKvPageTokens; ++token) {
    page[kv.exponent_offset(token)] = static_cast<unsigned char>(kLeastExponent + 6 + token % 5);
    for (int dim = 0; dim < kv.head_dim; ++dim) {
      page[kv.key_offset(token, dim)] =
          static_cast<unsigned char>(random_bits(static_cast<uint64_t>(token * 64 + dim), 1) % 0x70);
    }
  }
  const std::vector<unsigned char> before = page;
  const auto value = [&](const std::vector<unsigned char>& keys, int token, int dim) {
    return e4m3_to_float(keys[kv.key_offset(token, dim)]) * e4m3_scale(keys[kv.exponent_offset(token)]);
  };
  KeyShift(facts, kBack, 64).turn(page.data(), kv, false, kFirst, kEnd);
  for (int token = 0; token < kKvPageTokens; ++token) {
    const bool turns = token >= kFirst && token < kEnd;
    float largest = 0;
    for (int dim = 0; dim < 64; ++dim) largest = std::fmax(largest, std::abs(value(before, token, dim)));
    for (int pair = 0; pair < 32; ++pair) {
      const double angle = turns ? -kBack * std::pow(10000.0, -pair / 32.0) : 0;
      const double a = value(before, token, pair);
      const double b = value(before, token, pair + 32);
      const double first = a * std::cos(angle) - b * std::sin(angle);
      const double second = b * std::cos(angle) + a * std::sin(angle);
      // Half a unit in the last of 4 places, or of the least that the key's power of two has.
      const double unit = turns ? std::ldexp(largest, -17) : 0;
      EXPECT_NEAR(value(page, token, pair), first, std::abs(first) / 16 + unit) << token << ", " << pair;
      EXPECT_NEAR(value(page, token, pair + 32), second, std::abs(second) / 16 + unit) << token;
    }
  }
}

}  // namespace
}  // namespace soliton
