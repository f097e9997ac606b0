// Greedy choice: everyone picks the best of the CTAs' candidates.
//
// The candidates are one vector of 64-bit words, one of each CTA, and one more in which the first CTA passes on the
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
  const uint32_t tag = tag_of(context.step - 1);  // written once a step
  constexpr int kCandidates = kPlan.all_ctas();
  constexpr int kWords = kCandidates + 1;
  constexpr int kMostLoads = 9;  // at once: registers are few
  constexpr int kBatches = ceil_divide(kWords, kMostLoads * kWarpLanes);
  constexpr int kLoads = ceil_divide(kWords, kBatches * kWarpLanes);
  const uint64_t* candidates = context.template workspace<uint64_t>(kPlan.candidates().offset);
  uint64_t best = kNoCandidate;
  bool stop = false;
  SOLITON_NO_UNROLL
  for (int batch = 0; batch < kBatches; ++batch) {
    PolledLoads<uint64_t, kLoads, kPlan> loads;
    const auto word = [&](int i) { return (batch * kLoads + i) * kWarpLanes + context.lane; };
    const auto address = [&](int i) { return candidates + word(i); };
    loads.issue(address, [&](int i) { return word(i) < kWords; });
    wait_for_words(context, WaitKind::kVector, tag, [&] { return loads.retry(address, tag); });
    SOLITON_UNROLL
    for (int i = 0; i < kLoads; ++i) {
      const uint64_t candidate = without_tag(loads.value[i]);
      if (word(i) < kCandidates && candidate > best) best = candidate;
      if (word(i) == kCandidates) stop = candidate != 0;
    }
  }
  for (int mask = kWarpLanes / 2; mask > 0; mask /= 2) {
    const uint64_t other = shuffle_xor(best, mask);
    if (other > best) best = other;
  }
  return {candidate_token(best), warp_any(stop)};
}

}  // namespace soliton::one_row
