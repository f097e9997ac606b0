// S, the ceiling that decoding is measured against: a plain read of device memory through a ring of bulk
// copies like the decode kernel's, with every SM, enough pages in flight, and nothing to wait for.
#pragma once

#include "layout/page.h"
#include "primitives/primitives.h"

namespace soliton {

constexpr int kStreamSlots = 4;
constexpr int kStreamConsumers = 8;                              // warps
constexpr int kStreamWarps = kStreamConsumers + 1;               // consumers, producer
constexpr int kStreamThreads = (kStreamWarps + 1) * kWarpLanes;  // and the watch
constexpr int kStreamStatus = kStreamSlots * kPageBytes;
constexpr int kStreamBarriers = kStreamStatus + kStreamWarps * static_cast<int>(sizeof(WarpStatus));
constexpr int kStreamSharedBytes = kStreamBarriers + (2 * kStreamSlots + 1) * 8;

/// Reads `num_pages` pages from `source`, page i by CTA i % num_ctas(). `sink` keeps the reads from being
/// dropped.
SOLITON_KERNEL(kStreamThreads)
stream_pages(const unsigned char* source, int64_t num_pages, uint32_t* sink, LaunchParams params,
             uint32_t* claim) {
  unsigned char* shared = shared_memory();
  WarpStatus* statuses = reinterpret_cast<WarpStatus*>(shared + kStreamStatus);
  Barrier* full = reinterpret_cast<Barrier*>(shared + kStreamBarriers);
  Barrier* empty = full + kStreamSlots;
  Barrier* ended = empty + kStreamSlots;
  const WaitBound bound = make_wait_bound(statuses);
  if (thread_index() == 0) {
    for (int i = 0; i < kStreamSlots; ++i) {
      barrier_init(full + i, 1);
      barrier_init(empty + i, kStreamConsumers);
    }
    barrier_init(ended, kStreamWarps);
    barrier_init_fence();
  }
  cta_sync();
  const int warp = thread_index() / kWarpLanes;
  if (warp == kStreamWarps) {
    if (thread_index() % kWarpLanes == 0) watch_waits(statuses, kStreamWarps, ended, params, claim);
    return;
  }
  const bool produces = warp == kStreamConsumers;
  const int lane = thread_index() % kWarpLanes;
  if (produces && lane >= kCopyLanes) return;
  uint32_t folded = 0;
  uint32_t use = 0;
  for (int64_t page = cta_index(); page < num_pages; page += num_ctas(), ++use) {
    const int slot = use % kStreamSlots;
    const uint32_t parity = use / kStreamSlots & 1;
    if (produces) {
      if (lane == 0) {
        if (use >= kStreamSlots)
          wait_barrier(empty + slot, parity ^ 1, {WaitKind::kPageEmpty, 0, 0, use, 0, 0}, bound);
        barrier_arrive_expect(full + slot, kPageBytes);
      }
      copy_any(false);  // the leading lane has waited
      copy_page(shared + slot * kPageBytes, source + page * kPageBytes, kPageBytes, full + slot);
      continue;
    }
    wait_barrier(full + slot, parity, {WaitKind::kPageFull, 0, 0, use, 0, 0}, bound);
    const uint4* words = reinterpret_cast<const uint4*>(shared + slot * kPageBytes);
    SOLITON_UNROLL
    for (int i = thread_index(); i < kPageBytes / 16; i += kStreamConsumers * kWarpLanes) {
      const uint4 v = load_shared(words + i);
      folded ^= v.x ^ v.y ^ v.z ^ v.w;
    }
    warp_sync();
    if (lane == 0) barrier_arrive(empty + slot);
  }
  if (lane == 0) barrier_arrive(ended);
  if (!produces && folded == kStreamSlots) *sink = folded;
}

}  // namespace soliton
