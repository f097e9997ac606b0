// The formats of a plan's matrices: bf16, and another one. What is asked through with_format() is computed of numbers that
// the compiler knows: no divisions are left for the producer, whose every instruction delays a page.
#pragma once

#include "formats/bf16.cuh"
#include "formats/integers.cuh"

namespace soliton {

/// Are these the weights that are not bf16? Never, in plans that have none.
template <const KernelPlan& kPlan>
SOLITON_DEVICE bool has_scales(WeightType type) {
  constexpr WeightFormat kFormat = kPlan.model.integers;
  return kFormat.has_scales() && type == kFormat.type;
}

/// Calls body<format>() for the format of this type.
template <const KernelPlan& kPlan, class Body>
SOLITON_DEVICE auto with_format(WeightType type, const Body& body) {
  if constexpr (kPlan.model.integers.has_scales()) {
    if (has_scales<kPlan>(type)) return body.template operator()<kPlan.model.integers>();
  }
  return body.template operator()<WeightFormat{}>();
}

template <const KernelPlan& kPlan>
SOLITON_DEVICE int known_weight_bytes(WeightType type, int columns) {
  return columns / kColumnBlock *
         with_format<kPlan>(type, [&]<WeightFormat kFormat>() { return kFormat.block_bytes(); });
}

template <const KernelPlan& kPlan>
SOLITON_DEVICE int known_page_columns(WeightType type, int rest) {
  return with_format<kPlan>(type, [&]<WeightFormat kFormat>() { return page_columns(kFormat, rest); });
}

}  // namespace soliton
