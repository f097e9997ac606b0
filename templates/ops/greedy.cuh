// Greedy choice: every CTA offers its best logit, everyone picks the best offer, ties to the lower token.
//
// The offers are one vector of 64-bit words, one of each CTA, and one more in which CTA 0 passes on the
// host's wish to stop, so that all CTAs decide alike.
#pragma once

#include "kernel.cuh"
#include "ops/input.cuh"

namespace soliton {

constexpr uint64_t kNoOffer = 0;

/// Larger is better: the float's bits in sortable order above the complement of the token.
SOLITON_DEVICE uint64_t make_offer(float logit, uint32_t token) {
  const uint32_t bits = float_bits(logit);
  const uint32_t sortable = bits & 0x80000000u ? ~bits : bits | 0x80000000u;
  return static_cast<uint64_t>(sortable) << 32 | (0x7fffffffu - token);
}
SOLITON_DEVICE int offered_token(uint64_t offer) {
  return static_cast<int>(0x7fffffffu - static_cast<uint32_t>(offer));
}

struct Choice {
  int token;
  bool stop;
};

/// The token that the step before chose. All lanes return the same.
template <class Plan>
SOLITON_DEVICE Choice read_choice(const Context<Plan>& context) {
  wait_for_grid(context);
  constexpr int kWords = Plan::kNumCtas + 1;
  constexpr int kLoads = ceil_divide(kWords, kWarpLanes);
  const uint64_t* offers = context.template workspace<uint64_t>(Plan::kOffers.offset);
  PolledLoads<uint64_t, kLoads, Plan::kSync> loads;
  const auto address = [&](int i) { return offers + i * kWarpLanes + context.lane; };
  const auto present = [&](int i) { return i * kWarpLanes + context.lane < kWords; };
  loads.issue(address, present);
  wait_for_words(context, WaitKind::kVector, [&] { return loads.retry(address); });
  uint64_t best = kNoOffer;
  bool stop = false;
  SOLITON_UNROLL
  for (int i = 0; i < kLoads; ++i) {
    const int word = i * kWarpLanes + context.lane;
    if (word < Plan::kNumCtas && loads.value[i] > best) best = loads.value[i];
    if (word == Plan::kNumCtas) stop = loads.value[i] != 0;
  }
  for (int mask = kWarpLanes / 2; mask > 0; mask /= 2) {
    const uint64_t other = shuffle_xor(best, mask);
    if (other > best) best = other;
  }
  return {best == kNoOffer ? 0 : offered_token(best), warp_any(stop)};
}

SOLITON_DEVICE bool is_stop_token(const LaunchParams& params, int token) {
  for (int i = 0; i < params.num_stop_tokens; ++i) {
    if (load_constant(params.stop_tokens + i) == token) return true;
  }
  return false;
}

}  // namespace soliton
