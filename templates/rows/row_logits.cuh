// The router's logits of a row, as the lanes of a warp have them.
#pragma once

#include "ops/experts.cuh"
#include "rows/context.cuh"

namespace soliton::rows {

/// Collective of a warp. CTAs that share the columns of the router have put out a slice each.
template <const KernelPlan& kPlan>
SOLITON_DEVICE RouterLogits<kPlan.model.mixture.logits()> row_logits(const Context<kPlan>& context,
                                                                     const Vector& routes, int row) {
  using Logits = RouterLogits<kPlan.model.mixture.logits()>;
  using Slices = RouterSlices<kPlan>;
  constexpr int kSliceWords = kPlan.rows * Slices::kWords;
  const int first = Logits::first_expert(context.lane);
  const float* own = context.template workspace<float>(routes.offset) + row * Slices::kWords + first;
  float4 parts[Slices::kCount][Logits::kLoads] = {};
  SOLITON_UNROLL
  for (int slice = 0; slice < Slices::kCount; ++slice) {
    SOLITON_UNROLL
    for (int i = 0; i < Logits::kLoads; ++i) {
      if (first + 4 * i < Slices::kWords)
        parts[slice][i] = load_global(reinterpret_cast<const float4*>(own + slice * kSliceWords) + i);
    }
  }
  Logits logits;
  SOLITON_UNROLL
  for (int i = 0; i < Logits::kLoads; ++i) {
    float4 sum = parts[0][i];
    SOLITON_UNROLL
    for (int slice = 1; slice < Slices::kCount; ++slice) {
      const float4 v = parts[slice][i];
      sum = make_float4(sum.x + v.x, sum.y + v.y, sum.z + v.z, sum.w + v.w);
    }
    logits.value[i] = sum;
  }
  return logits;
}

}  // namespace soliton::rows
