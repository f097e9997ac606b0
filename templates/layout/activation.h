// The function that a gate goes through before it is multiplied by up, for hosts; ops/activation.cuh has it for kernels. There
// is one: with a second, facts of models have to say which, and the plan has to tell the kernel.
#pragma once

#include <cmath>
#include <cstdint>

namespace soliton {

enum class Activation : int32_t { kSilu = 0 };

/// As config.json's hidden_act calls them, by enumerator.
constexpr const char* kActivationNames[] = {"silu"};

/// What kernels are compared with.
inline float activate(Activation activation, float gate) {
  switch (activation) {
    case Activation::kSilu:
      break;
  }
  return gate / (1 + std::exp(-gate));
}

}  // namespace soliton
