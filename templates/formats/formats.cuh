// The formats of a plan's matrices: bf16, and one or two others, which their types tell apart. What is asked through
// with_format() is computed of numbers that the compiler knows: no divisions are left for the producer, whose every
// instruction delays a page.
#pragma once

#include "formats/bf16.cuh"
#include "formats/e2m1.cuh"
#include "formats/e4m3.cuh"
#include "formats/integers.cuh"
#include "layout/kernel_plan.h"

namespace soliton {

/// Are these weights integers? Never, in plans that have none.
template <const KernelPlan& kPlan>
SOLITON_DEVICE bool has_scales(WeightType type) {
  constexpr WeightFormat kFurther = kPlan.model.further;
  if constexpr (!kPlan.model.integers.has_scales()) {
    return false;
  } else {
    return type != WeightType::kBf16 && (kFurther.has_scales() || type != kFurther.type);
  }
}

/// Calls body<format>() for the format of this type, which is one of integers.
template <const KernelPlan& kPlan, class Body>
SOLITON_DEVICE auto with_integers(WeightType type, const Body& body) {
  if constexpr (kPlan.model.further.has_scales()) {
    constexpr WeightFormat kFormat = kPlan.model.further;
    if (type == kFormat.type) return body.template operator()<kFormat>();
  }
  return body.template operator()<kPlan.model.integers>();
}

/// The same of what is multiplied as blocks in bf16.
template <const KernelPlan& kPlan, class Body>
SOLITON_DEVICE auto with_blocks(WeightType type, const Body& body) {
  if constexpr (kPlan.model.further.type != WeightType::kBf16 && !kPlan.model.further.has_scales()) {
    constexpr WeightFormat kFormat = kPlan.model.further;
    if (type == kFormat.type) return body.template operator()<kFormat>();
  }
  return body.template operator()<WeightFormat{}>();
}

/// The same of any type.
template <const KernelPlan& kPlan, class Body>
SOLITON_DEVICE auto with_format(WeightType type, const Body& body) {
  if constexpr (kPlan.model.integers.has_scales()) {
    if (has_scales<kPlan>(type)) return with_integers<kPlan>(type, body);
  }
  return with_blocks<kPlan>(type, body);
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
