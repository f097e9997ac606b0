// What gate and up of an element become, in kernels and on the host, against plain formulas in double.
#include "ops/activation.cuh"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

namespace soliton {
namespace {

template <Activation kActivation>
float in_kernels(float gate, float up) {
  return activate<kActivation, false>(gate) * multiplier<kActivation>(up);
}

TEST(Activation, ClampsGatesFromAboveAndUpsFromBothSides) {
  constexpr Activation kActivation = Activation::kClampedSwiglu;
  for (float gate = -20; gate <= 20; gate += 0.25f) {
    for (const float up : {-30.0f, -7.5f, -7.0f, -1.0f, 0.0f, 0.5f, 6.5f, 7.0f, 7.5f, 30.0f}) {
      const double g = std::min<double>(gate, 7);
      const double expected = (std::clamp<double>(up, -7, 7) + 1) * g / (1 + std::exp(-1.702 * g));
      EXPECT_NEAR(gated(kActivation, gate, up), expected, 1e-6 + 1e-6 * std::abs(expected))
          << gate << ", " << up;
      EXPECT_NEAR(in_kernels<kActivation>(gate, up), expected, 1e-6 + 1e-5 * std::abs(expected))
          << gate << ", " << up;
    }
  }
}

TEST(Activation, OfTheGateAloneIsMultipliedByUp) {
  for (float gate = -10; gate <= 10; gate += 0.25f) {
    const double silu = gate / (1 + std::exp(-double{gate}));
    EXPECT_NEAR(gated(Activation::kSilu, gate, 9), 9 * silu, 1e-5);
    EXPECT_NEAR(in_kernels<Activation::kSilu>(gate, 9), 9 * silu, 1e-4);
    EXPECT_NEAR(in_kernels<Activation::kGeluTanh>(gate, 9), gated(Activation::kGeluTanh, gate, 9), 1e-4);
  }
}

TEST(Activation, SquaresWhatIsAboveZero) {
  constexpr Activation kActivation = Activation::kReluSquared;
  for (float gate = -3; gate <= 3; gate += 0.25f) {
    const float expected = gate > 0 ? gate * gate : 0;
    EXPECT_EQ(in_kernels<kActivation>(gate, 1), expected);
    EXPECT_EQ(gated(kActivation, gate, 1), expected);
  }
}

// So that it reaches the logits, which end the launch.
TEST(Activation, PassesOnWhatIsNoNumber) {
  const float nan = std::nanf("");
  EXPECT_TRUE(std::isnan(in_kernels<Activation::kReluSquared>(nan, 1)));
  EXPECT_TRUE(std::isnan(in_kernels<Activation::kClampedSwiglu>(nan, 1)));
  EXPECT_TRUE(std::isnan(in_kernels<Activation::kClampedSwiglu>(1, nan)));
}

}  // namespace
}  // namespace soliton
