// What an RMS norm multiplies with, as a model has it: its weights, or 1 + them.
#pragma once

#include "ops/split.cuh"

namespace soliton {

template <const KernelPlan& kPlan>
SOLITON_DEVICE float norm_weight(uint16_t bits) {
  const float weight = bf16_to_float(bits);
  if constexpr (kPlan.model.norm_offset) return 1.0f + weight;
  return weight;
}

/// Of four neighbouring elements.
template <const KernelPlan& kPlan>
SOLITON_DEVICE float4 norm_weights(uint2 bits) {
  const float4 w = unpack_bf16(bits);
  if constexpr (kPlan.model.norm_offset) return make_float4(1.0f + w.x, 1.0f + w.y, 1.0f + w.z, 1.0f + w.w);
  return w;
}

/// Bits of weights by which four elements stay as they are.
template <const KernelPlan& kPlan>
SOLITON_DEVICE uint2 unit_norm_weights() {
  constexpr uint32_t kTwo = kPlan.model.norm_offset ? 0 : 0x3f803f80u;  // bf16
  return make_uint2(kTwo, kTwo);
}

}  // namespace soliton
