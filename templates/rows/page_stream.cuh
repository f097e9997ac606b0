// Where a worker stands in the page stream. All workers meet every slot.
#pragma once

#include <type_traits>

#include "machine/ring.cuh"
#include "rows/context.cuh"

namespace soliton::rows {

template <const KernelPlan& kPlan>
class PageStream {
 public:
  SOLITON_DEVICE explicit PageStream(Context<kPlan>& context) : context_(context) {}

  /// Waits for the next slot and returns it. Pairs with the copy's completion. The slot before it was waited
  /// for too: the parity is never more than one phase off.
  SOLITON_DEVICE int wait() {
    const int slot = page_.slot();
    context_.wait(context_.barrier(BarrierId::kPageFull, slot), page_.parity(), WaitKind::kPageFull, slot);
    warp_sync();
    page_.advance();
    return slot;
  }
  /// The slot that wait() will return next.
  SOLITON_DEVICE int next() const { return page_.slot(); }
  SOLITON_DEVICE const unsigned char* bytes(int slot) const {
    return context_.region(RegionId::kPages) + slot * kPlan.slot_bytes;
  }
  /// Pairs with the producer's wait for page_empty.
  SOLITON_DEVICE void release(int slot) const { warp_arrive(&context_.barrier(BarrierId::kPageEmpty, slot)); }

 private:
  Context<kPlan>& context_;
  std::conditional_t<kPlan.warpgroups, PackedRingPosition<kPlan.ring_slots>, RingPosition<kPlan.ring_slots>>
      page_;
};

}  // namespace soliton::rows
