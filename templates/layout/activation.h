// The functions that a gate goes through before it is multiplied by up. A further one is an enumerator, a name and a line
// here, and a line in ops/activation.cuh.
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
