// Where a worker stands in the page stream. All workers meet every slot.
#pragma once

#include "rows/context.cuh"

namespace soliton::rows {

template <class Plan>
class PageStream {
 public:
  SOLITON_DEVICE explicit PageStream(Context<Plan>& context) : context_(context) {}

  /// Waits for the next slot and returns it. Pairs with the copy's completion. The slot before it was waited
  /// for too: the parity is never more than one phase off.
  SOLITON_DEVICE int wait() {
    const int slot = slot_;
    context_.wait(context_.barriers().page_full[slot], parity_, WaitKind::kPageFull, slot);
    warp_sync();
    if (++slot_ == Plan::kRingSlots) {
      slot_ = 0;
      parity_ ^= 1;
    }
    return slot;
  }
  /// The slot that wait() will return next.
  SOLITON_DEVICE int next() const { return slot_; }
  SOLITON_DEVICE const unsigned char* bytes(int slot) const {
    return context_.shared + SharedMap<Plan>::kPages + slot * Plan::kSlotBytes;
  }
  /// Pairs with the producer's wait for page_empty.
  SOLITON_DEVICE void release(int slot) const { warp_arrive(&context_.barriers().page_empty[slot]); }

 private:
  Context<Plan>& context_;
  int slot_ = 0;
  uint32_t parity_ = 0;
};

}  // namespace soliton::rows
