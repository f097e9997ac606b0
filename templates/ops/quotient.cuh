// Quotients where registers are short.
#pragma once

#include "layout/kernel_plan.h"
#include "primitives/primitives.h"

namespace soliton {

/// a / b; where warpgroups multiply to two units in the last place, of b below 2^126. An exact quotient calls a function where it
/// is hard to round, and in kernels that call anything ptxas spills what it has registers for in others.
template <const KernelPlan& kPlan>
SOLITON_DEVICE float quotient(float a, float b) {
  if constexpr (kPlan.warpgroups) return divide_fast(a, b);
  return a / b;
}

}  // namespace soliton
