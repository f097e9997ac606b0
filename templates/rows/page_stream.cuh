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
    const int slot = see_turn(turn);
    page_.advance(kWarpgroups);
    return slot;
  }
  /// The same, where more than once something is looked for in a slot, until end_turn().
  SOLITON_DEVICE int see_turn(int turn) const {
    const int slot = page_.slot(turn);
    context_.wait(context_.barrier(BarrierId::kPageFull, slot), page_.parity(turn), WaitKind::kPageFull,
                  slot);
    warp_sync();
    return slot;
  }
  SOLITON_DEVICE void end_turn(int slot) {
    release_turn(slot);
    page_.advance(kWarpgroups);
  }
  /// Of such a slot, for the others too.
  SOLITON_DEVICE void release_turn(int slot) const {
    warp_release(&context_.barrier(BarrierId::kPageEmpty, slot), kWarpgroups);
  }
  /// Where workers take slots in turn: of the next `count` those of this worker; visit(i, bytes) of the i-th. `turn`: slots that
  /// were taken before. Where every slot of the ring has one owner while a phase lasts, nobody waits for those of others, as
  /// wait_turn() has it.
  template <class Visit>
  SOLITON_DEVICE void take_turns(uint32_t turn, int worker, int count, const Visit& visit) {
    constexpr bool kOwned = kPlan.ring_slots % kWorkers == 0;
    constexpr uint32_t kTurns = kWorkers - 1;
    static_assert((kWorkers & kTurns) == 0);
    int at = 0;
    const int first = static_cast<int>((static_cast<uint32_t>(worker) - turn) & kTurns);
    SOLITON_NO_UNROLL
    for (int own = first; own < count; own += kWorkers) {
      pass_turns<kOwned>(own - at);
      const int slot = wait();
      visit(own, bytes(slot));
      warp_release(&context_.barrier(BarrierId::kPageEmpty, slot), kOwned ? kWorkers : 1);
      at = own + 1;
    }
    pass_turns<kOwned>(count - at);
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
  /// Slots of others, fewer than there are workers.
  template <bool kOwned>
  SOLITON_DEVICE void pass_turns(int count) {
    if constexpr (kOwned) {
      page_.advance(count);
    } else {
      SOLITON_NO_UNROLL
      for (; count > 0; --count) release(wait());
    }
  }

  Context<kPlan>& context_;
  std::conditional_t<kPlan.warpgroups, PackedRingPosition<kPlan.ring_slots>, RingPosition<kPlan.ring_slots>>
      page_;
};

}  // namespace soliton::rows
