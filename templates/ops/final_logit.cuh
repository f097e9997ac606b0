// What a model makes of the sums of lm_head: nothing, or a multiple, or a bounded one.
#pragma once

#include <numbers>

#include "ops/choice.cuh"
#include "ops/quotient.cuh"

namespace soliton {

/// What is not finite stays so: it ends the launch.
template <const KernelPlan& kPlan>
SOLITON_DEVICE float final_logit(float logit) {
  if constexpr (kPlan.model.logit_scale != 1) logit *= kPlan.model.logit_scale;
  if constexpr (kPlan.model.logit_soft_cap != 0) {
    // cap * tanh(x), where tanh(x) is 1 - 2 / (e^2x + 1).
    constexpr float kCap = kPlan.model.logit_soft_cap;
    constexpr float kExponent = 2 * std::numbers::log2e_v<float> / kCap;
    if (is_finite(logit)) logit = kCap - quotient<kPlan>(2 * kCap, exp2_fast(logit * kExponent) + 1.0f);
  }
  return logit;
}

}  // namespace soliton
