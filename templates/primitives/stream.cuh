// S, the ceiling that decoding is measured against: the rate of the better of two kernels that only read device memory,
// with every SM, enough bytes in flight, and nothing to wait for.
//   bulk ring   one ring of pages a CTA, filled by a producer warp's bulk copies, as in the decode kernel of such cards
//   warp rings  a ring a warp, which each lane fills with its own copies of 16 bytes: no producer, no barriers
#pragma once

#include "layout/page.h"
#include "primitives/primitives.h"

namespace soliton {

/// What a launch reads: num_passes times all pages, page i by CTA i % num_ctas(), one pass right behind the other.
struct StreamedPages {
  const unsigned char* source;
  int64_t num_pages;
  int num_passes;
};

/// The sum of 16 bytes as words: by the sum of all it shows that a kernel has read everything.
SOLITON_DEVICE uint32_t sum_of(uint4 v) {
  return v.x + v.y + v.z + v.w;
}

/// Adds what the lanes of a warp have read to *sum. Collective.
SOLITON_DEVICE void add_sums(uint32_t lanes, uint32_t* sum) {
  SOLITON_UNROLL
  for (int mask = kWarpLanes / 2; mask > 0; mask /= 2) lanes += shuffle_xor(lanes, mask);
  if (thread_index() % kWarpLanes == 0) add_release(sum, lanes);
}

/// The pages of one CTA, pass after pass.
class StreamCursor {
 public:
  SOLITON_DEVICE explicit StreamCursor(const StreamedPages& pages)
      : pages_(pages), page_(cta_index()), pass_(page_ < pages.num_pages ? 0 : pages.num_passes) {}
  SOLITON_DEVICE bool at_end() const { return pass_ == pages_.num_passes; }
  SOLITON_DEVICE const unsigned char* page() const { return pages_.source + page_ * kPageBytes; }
  SOLITON_DEVICE void advance() {
    page_ += num_ctas();
    if (page_ < pages_.num_pages) return;
    page_ = cta_index();
    ++pass_;
  }

 private:
  const StreamedPages& pages_;
  int64_t page_;
  int pass_;
};

// ---- The bulk ring

constexpr int kStreamSlots = 4;
constexpr int kStreamConsumers = 8;                              // warps
constexpr int kStreamWarps = kStreamConsumers + 1;               // consumers, producer
constexpr int kStreamThreads = (kStreamWarps + 1) * kWarpLanes;  // and the watch
constexpr int kStreamStatus = kStreamSlots * kPageBytes;
constexpr int kStreamBarriers = kStreamStatus + kStreamWarps * static_cast<int>(sizeof(WarpStatus));
constexpr int kStreamSharedBytes = kStreamBarriers + (2 * kStreamSlots + 1) * 8;

/// Adds all words of the pages, once a pass, to *sum. Code for cards without bulk copies has no body: launch it only where
/// its ptxVersion is at least kBulkCopyCapability.
SOLITON_KERNEL(kStreamThreads)
stream_by_bulk_ring(const __grid_constant__ StreamedPages pages, uint32_t* sum, LaunchParams params,
                    uint32_t* claim) {
#if defined(SOLITON_SM_90)
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
  if (produces && lane > 0) return;  // a bulk copy is one lane's
  uint32_t read_sum = 0;
  uint32_t use = 0;
  for (StreamCursor cursor(pages); !cursor.at_end(); cursor.advance(), ++use) {
    const int slot = use % kStreamSlots;
    const uint32_t parity = use / kStreamSlots & 1;
    if (produces) {
      if (use >= kStreamSlots) {
        wait_barrier(empty + slot, parity ^ 1, {WaitKind::kPageEmpty, 0, 0, use, 0, 0}, bound);
      }
      barrier_arrive_expect(full + slot, kPageBytes);
      copy_page(shared + slot * kPageBytes, cursor.page(), kPageBytes, full + slot);
      continue;
    }
    wait_barrier(full + slot, parity, {WaitKind::kPageFull, 0, 0, use, 0, 0}, bound);
    const uint4* words = reinterpret_cast<const uint4*>(shared + slot * kPageBytes);
    SOLITON_UNROLL
    for (int i = thread_index(); i < kPageBytes / 16; i += kStreamConsumers * kWarpLanes) {
      read_sum += sum_of(load_shared(words + i));
    }
    warp_sync();
    if (lane == 0) barrier_arrive(empty + slot);
  }
  if (lane == 0) barrier_arrive(ended);
  if (!produces) add_sums(read_sum, sum);
#endif
}

// ---- The warp rings

constexpr int kWarpRings = 8;
constexpr int kWarpRingStages = 6;  // in each, of which all but one are in flight
constexpr int kWarpRingThreads = kWarpRings * kWarpLanes;
constexpr int kStageBytes = kPageBytes / kWarpRings;  // a warp's share of a page
constexpr int kStageWords = kStageBytes / (16 * kWarpLanes);
constexpr int kWarpRingSharedBytes = kWarpRings * kWarpRingStages * kStageBytes;
static_assert(kStageWords * 16 * kWarpLanes == kStageBytes, "a lane copies whole words of 16 bytes");
static_assert(kWarpRingSharedBytes <= 99 * 1024, "what a block has on every card from 8.0 on");

/// The same. Nothing in it can wait for ever, so that it needs no watch.
SOLITON_KERNEL(kWarpRingThreads)
stream_by_warp_rings(const __grid_constant__ StreamedPages pages, uint32_t* sum) {
  const int warp = thread_index() / kWarpLanes;
  const int lane = thread_index() % kWarpLanes;
  unsigned char* const ring = shared_memory() + warp * kWarpRingStages * kStageBytes + lane * 16;
  const int share = warp * kStageBytes + lane * 16;  // of a page
  StreamCursor cursor(pages);
  const auto copy_next = [&](uint32_t use) {
    if (!cursor.at_end()) {
      SOLITON_UNROLL
      for (int i = 0; i < kStageWords; ++i) {
        const int word = i * kWarpLanes * 16;
        copy_vector_piece(ring + use % kWarpRingStages * kStageBytes + word, cursor.page() + share + word);
      }
      cursor.advance();
    }
    commit_copies();  // at the end too, with nothing in it: a stage is a group
  };
  constexpr int kAhead = kWarpRingStages - 1;
  for (uint32_t use = 0; use < kAhead; ++use) copy_next(use);
  uint32_t read_sum = 0;
  uint32_t use = 0;
  for (StreamCursor read(pages); !read.at_end(); read.advance(), ++use) {
    wait_copies<kAhead - 1>();
    warp_sync();
    const uint4* words = reinterpret_cast<const uint4*>(ring + use % kWarpRingStages * kStageBytes);
    SOLITON_UNROLL
    for (int i = 0; i < kStageWords; ++i) {
      read_sum += sum_of(load_shared(words + i * kWarpLanes));
    }
    warp_sync();  // before the stage that was read before this one is written again
    copy_next(use + kAhead);
  }
  add_sums(read_sum, sum);
}

// ---- By plain loads

constexpr int kSumThreads = 256;
constexpr int kSumCtas = 1024;

/// The same sum of one pass, to compare with.
SOLITON_KERNEL(kSumThreads)
sum_pages(const StreamedPages pages, uint32_t* sum) {
  const uint4* words = reinterpret_cast<const uint4*>(pages.source);
  const int64_t num_words = pages.num_pages * (kPageBytes / 16);
  uint32_t read_sum = 0;
  for (int64_t i = int64_t{cta_index()} * kSumThreads + thread_index(); i < num_words;
       i += num_ctas() * kSumThreads) {
    read_sum += sum_of(load_global(words + i));
  }
  add_sums(read_sum, sum);
}

}  // namespace soliton
