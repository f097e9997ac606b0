// Greedy choice: everyone picks the best of the CTAs' candidates.
//
// The candidates are one vector of 64-bit words, one of each CTA, and one more in which CTA 0 passes on the
// host's wish to stop, so that all CTAs decide alike.
#pragma once

#include "one_row/context.cuh"
#include "one_row/input.cuh"
#include "ops/choice.cuh"

namespace soliton::one_row {

struct Choice {
  int token;
  bool stop;
};

/// The token that the step before chose. All lanes return the same.
template <const KernelPlan& kPlan>
SOLITON_DEVICE Choice read_choice(const Context<kPlan>& context) {
  wait_for_grid(context);
  constexpr int kWords = kPlan.num_ctas + 1;
  constexpr int kLoads = ceil_divide(kWords, kWarpLanes);
  const uint64_t* candidates =
      context.template workspace<uint64_t>(kPlan.vector(VectorId::kCandidates).offset);
  PolledLoads<uint64_t, kLoads, kPlan.sync> loads;
  const auto address = [&](int i) { return candidates + i * kWarpLanes + context.lane; };
  const auto present = [&](int i) { return i * kWarpLanes + context.lane < kWords; };
  loads.issue(address, present);
  wait_for_words(context, WaitKind::kVector, [&] { return loads.retry(address); });
  uint64_t best = kNoCandidate;
  bool stop = false;
  SOLITON_UNROLL
  for (int i = 0; i < kLoads; ++i) {
    const int word = i * kWarpLanes + context.lane;
    if (word < kPlan.num_ctas && loads.value[i] > best) best = loads.value[i];
    if (word == kPlan.num_ctas) stop = loads.value[i] != 0;
  }
  for (int mask = kWarpLanes / 2; mask > 0; mask /= 2) {
    const uint64_t other = shuffle_xor(best, mask);
    if (other > best) best = other;
  }
  return {candidate_token(best), warp_any(stop)};
}

}  // namespace soliton::one_row
