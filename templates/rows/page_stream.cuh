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
  /// Where warpgroups take slots in turn: waits for that of `turn` among the next kWarpgroups, and leaves the others of
  /// them. Sound as every slot of the ring has one owner while a phase of a matrix lasts, and nobody begins the next phase
  /// before all have ended this one: its parity is never more than one phase off.
  SOLITON_DEVICE int wait_turn(int turn) {
    static_assert(kPlan.ring_slots % kWarpgroups == 0, "a warpgroup always meets the same slots in a phase");
    const int slot = page_.slot(turn);
    context_.wait(context_.barrier(BarrierId::kPageFull, slot), page_.parity(turn), WaitKind::kPageFull,
                  slot);
    warp_sync();
    page_.advance(kWarpgroups);
    return slot;
  }
  /// Of such a slot, for the others too.
  SOLITON_DEVICE void release_turn(int slot) const {
    warp_release(&context_.barrier(BarrierId::kPageEmpty, slot), kWarpgroups);
  }
  /// Where workers take slots in turn: the next one, for which `turn` tells whose it is; visit(bytes) if it is this worker's. Where
  /// every slot of the ring has one owner while a phase lasts, the others leave it, as wait_turn() has it.
  template <class Visit>
  SOLITON_DEVICE void take_turn(uint32_t turn, int worker, const Visit& visit) {
    constexpr bool kOwned = kPlan.ring_slots % kWorkers == 0;
    const bool is_own = turn % kWorkers == static_cast<uint32_t>(worker);
    if (kOwned && !is_own) return page_.advance();
    const int slot = wait();
    if (is_own) visit(bytes(slot));
    warp_release(&context_.barrier(BarrierId::kPageEmpty, slot), kOwned ? kWorkers : 1);
  }
  /// The slot that wait() will return next.
  SOLITON_DEVICE int next() const { return page_.slot(); }
  SOLITON_DEVICE const unsigned char* bytes(int slot) const {
    return context_.region(RegionId::kPages) + slot * kPlan.slot_bytes;
  }
  /// Pairs with the producer's wait for page_empty.
  SOLITON_DEVICE void release(int slot) const {
    warp_release(&context_.barrier(BarrierId::kPageEmpty, slot));
  }

 private:
  Context<kPlan>& context_;
  std::conditional_t<kPlan.warpgroups, PackedRingPosition<kPlan.ring_slots>, RingPosition<kPlan.ring_slots>>
      page_;
};

}  // namespace soliton::rows
