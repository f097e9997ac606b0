// What layout/activation.h has for the host.
#pragma once

#include "layout/activation.h"
#include "primitives/primitives.h"

namespace soliton {

/// NaN stays what it is: it has to spread.
SOLITON_DEVICE float clamp_above(float value, float limit) {
  return value > limit ? limit : value;
}

/// `kShort`: by few instructions, where code is long.
template <Activation kActivation, bool kShort>
SOLITON_DEVICE float activate(float gate) {
  if constexpr (kActivation == Activation::kGelu) {
    constexpr float kSqrtHalf = 0.70710678f;
    return 0.5f * gate * (1.0f + erff(gate * kSqrtHalf));
  }
  if constexpr (kActivation == Activation::kReluSquared)
    return gate < 0.0f ? 0.0f : gate * gate;  // of NaN: NaN
  float exponent = gate;
  if constexpr (kActivation == Activation::kGeluTanh)
    exponent = kGeluScale * (gate + kGeluCube * gate * gate * gate);
  if constexpr (kActivation == Activation::kClampedSwiglu) {
    gate = clamp_above(gate, kSwigluLimit);
    exponent = kSwigluAlpha * gate;
  }
  const float divisor = 1.0f + exp_fast(-exponent);
  return kShort ? divide_fast(gate, divisor) : gate / divisor;
}

/// What a gate is multiplied with.
template <Activation kActivation>
SOLITON_DEVICE float multiplier(float up) {
  if constexpr (kActivation != Activation::kClampedSwiglu) return up;
  return -clamp_above(-clamp_above(up, kSwigluLimit), kSwigluLimit) + 1.0f;
}

}  // namespace soliton
