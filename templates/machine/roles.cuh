// How the warps of a CTA become roles, and its barriers are made.
//
//   consumers          multiply, and compute attention
//   producers          walk the page stream of this CTA and fill the ring, together
//   partner            one row: the epilogue; several rows: the input loader
//   watch (one lane)   ends the kernel with a report if the others stop moving; warps behind it only make up a warpgroup
#pragma once

#include "machine/walk.cuh"

namespace soliton {

/// Initialises set kSet and those behind it.
template <const KernelPlan& kPlan, int kSet = 0>
SOLITON_DEVICE void init_barriers(unsigned char* shared) {
  if constexpr (kSet < kPlan.num_barriers) {
    constexpr BarrierSet kBarriers = kPlan.barriers[kSet];
    constexpr int kOffset = kPlan.barrier_offset(kSet);
    Barrier* first = reinterpret_cast<Barrier*>(shared + kOffset);
    for (int slot = 0; slot < kBarriers.slots; ++slot) {
      if constexpr (kBarriers.by_warps) {
        barrier_init_warps(first + slot, kBarriers.arrivals);
      } else {
        barrier_init(first + slot, kBarriers.arrivals);
      }
    }
    init_barriers<kPlan, kSet + 1>(shared);
  } else {
    barrier_init_fence();
  }
}

/// Of a warp of which one lane does the work: true for that one, which is lane 0 from now on.
SOLITON_DEVICE bool goes_on_alone(int& lane) {
  if (!elect_lane()) return false;
  lane = 0;
  return true;
}

/// Body of a kernel. Roles: Context, Consumer, Producer and Partner; BarrierId and RegionId.
template <const KernelPlan& kPlan, class Roles>
SOLITON_DEVICE void run_roles(const LaunchParams& params) {
  using BarrierId = typename Roles::BarrierId;
  using RegionId = typename Roles::RegionId;
  constexpr int kProducer = kPlan.consumer_warps;
  constexpr int kPartner = kProducer + kPlan.producer_warps;
  constexpr int kWorkingWarps = kPlan.working_warps();
  static_assert(kPlan.regions[static_cast<int>(RegionId::kStatus)].bytes >=
                kWorkingWarps * static_cast<int>(sizeof(WarpStatus)));
  const int warp = thread_index() / kWarpLanes;
  typename Roles::Context context{{params, shared_memory(), cta_index(), thread_index() % kWarpLanes}};
  if (warp < kWorkingWarps) set_status(context.bound(), 0, 0);
  if (thread_index() == 0) init_barriers<kPlan>(context.shared);
  context.set_up();
  cta_sync();

  if constexpr (kPlan.shares_registers) {
    static_assert(kProducer == 2 * kGroupWarps);
    if (warp < kProducer) {
      take_registers<kPlan.shape().worker_registers>();
    } else {
      give_registers<other_registers(kPlan.shape().worker_registers)>();
      if (warp > kWorkingWarps) return;
    }
  }
  if (warp < kProducer) {
    typename Roles::Consumer consumer(context, warp);
    walk<kPlan>(consumer);
  } else if (warp < kPartner) {
    if (kPlan.copy_lanes() == 1 && !goes_on_alone(context.lane)) return;
    typename Roles::Producer producer(context, warp - kProducer);
    walk<kPlan>(producer);
    producer.drain();
  } else if (warp == kPartner) {
    if (Roles::kPartnerLanes == 1 && !goes_on_alone(context.lane)) return;
    typename Roles::Partner partner(context);
    walk<kPlan>(partner);
  } else {
    if (warp == kWorkingWarps && context.lane == 0) {
      watch_waits(context.template region<WarpStatus>(RegionId::kStatus), kWorkingWarps,
                  &context.barrier(BarrierId::kEnded), params, context.counter(kStallClaimWord));
    }
    return;
  }
  if (context.lane == 0) barrier_arrive(&context.barrier(BarrierId::kEnded));
}

}  // namespace soliton
