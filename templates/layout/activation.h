// The functions that a gate goes through before it is multiplied by up, for hosts; ops/activation.cuh has them for kernels. A
// further one is an enumerator, its name, and its formula in both files.
#pragma once

#include <cmath>
#include <cstdint>
#include <iterator>
#include <string_view>

namespace soliton {

enum class Activation : int32_t { kSilu = 0, kGeluTanh = 1 };

/// As models/*.yaml and config.json's hidden_act call them, by enumerator.
constexpr const char* kActivationNames[] = {"silu", "gelu_pytorch_tanh"};

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

/// What kernels are compared with.
inline float activate(Activation activation, float gate) {
  const float exponent =
      activation == Activation::kSilu ? gate : kGeluScale * (gate + kGeluCube * gate * gate * gate);
  return gate / (1 + std::exp(-exponent));
}

}  // namespace soliton
