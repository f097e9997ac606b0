// What layout/activation.h has for the host.
#pragma once

#include "layout/activation.h"
#include "primitives/primitives.h"

namespace soliton {

/// `kShort`: by few instructions, where code is long.
template <Activation kActivation, bool kShort>
SOLITON_DEVICE float activate(float gate) {
  float exponent = gate;
  if constexpr (kActivation == Activation::kGeluTanh)
    exponent = kGeluScale * (gate + kGeluCube * gate * gate * gate);
  const float divisor = 1.0f + exp_fast(-exponent);
  return kShort ? divide_fast(gate, divisor) : gate / divisor;
}

}  // namespace soliton
