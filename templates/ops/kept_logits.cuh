// The logits of a step that are kept for drawing, and what the host is told of the one that was drawn.
#pragma once

#include "layout/kernel_plan.h"
#include "primitives/primitives.h"

namespace soliton {

/// See ExchangeLayout.
SOLITON_DEVICE float2* normaliser(const SamplingView& view, int row) {
  return reinterpret_cast<float2*>(view.exchange) + row;
}

/// Keeps a logit of this step for the warp that draws; NaN where a row's tokens end within a tile and there is none. What
/// is not finite must be seen in any case.
SOLITON_DEVICE void keep_any_logit(const SamplingView& view, int row, int token, float logit) {
  const int64_t line = sampling_line(view.vocabulary);
  const float kept = is_finite(logit) ? logit : INFINITY;
  store_global(view.logits + row * line + token,
               token < view.vocabulary ? kept : float_from_bits(kCanonicalNan));
}

/// The same; NaN too, if it is finite, where the token may not be chosen. Where rows are several and registers few, whoever
/// draws calls RowSampler::forbid() instead.
SOLITON_DEVICE void keep_logit(const SamplingView& view, int row, int token, float logit) {
  const int64_t line = sampling_line(view.vocabulary);
  bool counts = token < view.vocabulary;
  if (view.allowed != nullptr && is_finite(logit)) {
    const uint32_t allowed = load_constant(view.allowed + row * (line / kTileRows) + token / kTileRows);
    counts = counts && (allowed >> token % kTileRows & 1) != 0;
  }
  const float kept = is_finite(logit) ? logit : INFINITY;
  store_global(view.logits + row * line + token, counts ? kept : float_from_bits(kCanonicalNan));
}

/// Tells the host the logprob of the token that a row has chosen, before the token's record: by the first CTA.
template <const KernelPlan& kPlan>
SOLITON_DEVICE void record_logprob(const LaunchParams& params, int row, int token, int output) {
  const SamplingView& view = params.sampling;
  if (token == kNotFiniteToken) return;
  const float* own = view.logits + static_cast<int64_t>(row) * sampling_line(view.vocabulary) + token;
  float logit;
  if constexpr (kPlan.num_cards == 1) {
    logit = load_global(own);
  } else {
    const int64_t offset = params.peers[token / kTileRows % kPlan.num_cards].logits;
    logit = load_relaxed_system(
        reinterpret_cast<const float*>(reinterpret_cast<const unsigned char*>(own) + offset));
  }
  const float2 norm = load_global(normaliser(view, row));
  store_system(view.logprobs + output, (logit == norm.x ? 0.0f : logit - norm.x) - norm.y);
  fence_system();
}

}  // namespace soliton
