// weight_bytes() and page_columns() with what the compiler knows of the plan's formats: no divisions are left for the
// producer, whose every instruction delays a page.
#pragma once

#include "layout/weight_format.h"
#include "primitives/primitives.h"

namespace soliton {

template <const KernelPlan& kPlan>
SOLITON_DEVICE bool is_integer(WeightType type) {
  return kPlan.model.integers.is_quantized() && type == WeightType::kInt4;
}

template <const KernelPlan& kPlan>
SOLITON_DEVICE int known_weight_bytes(WeightType type, int columns) {
  return columns / kColumnBlock *
         (is_integer<kPlan>(type) ? block_bytes(kPlan.model.integers) : block_bytes(WeightFormat{}));
}

template <const KernelPlan& kPlan>
SOLITON_DEVICE int known_page_columns(WeightType type, int rest) {
  return is_integer<kPlan>(type) ? page_columns(kPlan.model.integers, rest)
                                 : page_columns(WeightFormat{}, rest);
}

}  // namespace soliton
