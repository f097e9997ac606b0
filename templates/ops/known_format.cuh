// weight_bytes() and page_columns() with what the compiler knows of the plan's formats: no divisions are left for the
// producer, whose every instruction delays a page.
#pragma once

#include "layout/weight_format.h"
#include "primitives/primitives.h"

namespace soliton {

template <class Plan>
SOLITON_DEVICE bool is_integer(WeightType type) {
  return Plan::kIntegers.is_quantized() && type == WeightType::kInt4;
}

template <class Plan>
SOLITON_DEVICE int known_weight_bytes(WeightType type, int columns) {
  return columns / kColumnBlock *
         (is_integer<Plan>(type) ? block_bytes(Plan::kIntegers) : block_bytes(WeightFormat{}));
}

template <class Plan>
SOLITON_DEVICE int known_page_columns(WeightType type, int rest) {
  return is_integer<Plan>(type) ? page_columns(Plan::kIntegers, rest) : page_columns(WeightFormat{}, rest);
}

}  // namespace soliton
