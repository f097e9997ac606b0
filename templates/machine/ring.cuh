// Where a warp stands in a ring of barriers that it passes in order.
#pragma once

#include "primitives/primitives.h"

namespace soliton {

/// The slot of the next use, and the parity of the barrier phase that this use completes. A wait by parity is sound as
/// long as the warp passes every slot: it is then never more than one phase off.
template <int kSlots>
class RingPosition {
 public:
  SOLITON_DEVICE int slot() const { return slot_; }
  SOLITON_DEVICE uint32_t parity() const { return parity_; }
  /// Among the slots of two rounds.
  SOLITON_DEVICE int place() const { return parity_ == 0 ? slot_ : kSlots + slot_; }
  /// Of the use before of the same slot.
  SOLITON_DEVICE uint32_t parity_before() const { return parity_ ^ 1; }
  SOLITON_DEVICE RingPosition round_before() const {
    RingPosition position = *this;
    position.parity_ ^= 1;
    return position;
  }
  SOLITON_DEVICE void advance() {
    if (++slot_ == kSlots) {
      slot_ = 0;
      parity_ ^= 1;
    }
  }
  /// Passes so many uses, kSlots at most, for which others wait.
  SOLITON_DEVICE void advance(int uses) {
    slot_ += uses;
    if (slot_ < kSlots) return;
    slot_ -= kSlots;
    parity_ ^= 1;
  }

 private:
  int slot_ = 0;
  uint32_t parity_ = 0;
};

/// Uses from one RingPosition::place() to another, which is less than two rounds behind it.
template <int kSlots>
SOLITON_DEVICE int uses_between(int from, int to) {
  return to >= from ? to - from : to - from + 2 * kSlots;
}

/// The same in one register, for code that has few: counts the slots of two rounds.
template <int kSlots>
class PackedRingPosition {
 public:
  /// `ahead`: uses behind the next.
  SOLITON_DEVICE int slot(int ahead = 0) const {
    const int place = at(ahead);
    return place < kSlots ? place : place - kSlots;
  }
  SOLITON_DEVICE uint32_t parity(int ahead = 0) const { return at(ahead) < kSlots ? 0 : 1; }
  SOLITON_DEVICE int place() const { return at_; }
  SOLITON_DEVICE void advance(int uses = 1) { at_ = at(uses); }

 private:
  SOLITON_DEVICE int at(int ahead) const {
    const int place = at_ + ahead;
    return place < 2 * kSlots ? place : place - 2 * kSlots;
  }

  int at_ = 0;
};

}  // namespace soliton
