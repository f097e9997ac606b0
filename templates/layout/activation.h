// What gate and up of an element become, for hosts; ops/activation.cuh has the same for kernels. A further one is an
// enumerator, its name, and its formula in both files.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <iterator>
#include <string_view>

namespace soliton {

enum class Activation : int32_t {
  kSilu = 0,
  kGeluTanh = 1,
  kClampedSwiglu = 2,  // gpt-oss's: no function of the gate alone
  kGelu = 3,           // exact
  kReluSquared = 4,
};

/// As models/*.yaml call them, by enumerator, and config.json's hidden_act all that are functions of the gate alone.
constexpr const char* kActivationNames[] = {"silu", "gelu_pytorch_tanh", "clamped_swiglu", "gelu", "relu2"};

/// The enumerator of a name; -1: none.
constexpr int32_t find_activation(std::string_view name) {
  for (int32_t i = 0; i < static_cast<int32_t>(std::size(kActivationNames)); ++i) {
    if (name == kActivationNames[i]) return i;
  }
  return -1;
}

/// GELU's approximation by tanh is gate * sigmoid(kGeluScale * (gate + kGeluCube * gate^3)).
constexpr float kGeluScale = 1.5957691216f;  // 2 sqrt(2 / pi)
constexpr float kGeluCube = 0.044715f;

/// Of kClampedSwiglu, which is (clamp(up) + 1) * g * sigmoid(kSwigluAlpha * g), where g is the gate, clamped from above alone.
constexpr float kSwigluAlpha = 1.702f;
constexpr float kSwigluLimit = 7.0f;

/// What kernels are compared with: the gate's activation times up, or what there is in their place.
inline float gated(Activation activation, float gate, float up) {
  if (activation == Activation::kClampedSwiglu) {
    const float g = std::min(gate, kSwigluLimit);
    return (std::clamp(up, -kSwigluLimit, kSwigluLimit) + 1) * g / (1 + std::exp(-kSwigluAlpha * g));
  }
  if (activation == Activation::kReluSquared) return gate > 0 ? gate * gate * up : 0.0f;
  constexpr float kSqrtHalf = 0.70710678f;
  if (activation == Activation::kGelu) return 0.5f * gate * (1 + std::erf(gate * kSqrtHalf)) * up;
  const float exponent =
      activation == Activation::kSilu ? gate : kGeluScale * (gate + kGeluCube * gate * gate * gate);
  return gate / (1 + std::exp(-exponent)) * up;
}

}  // namespace soliton
