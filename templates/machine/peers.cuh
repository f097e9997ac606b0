// Several cards in one launch: each has a copy of what all CTAs exchange, at the same place of its own memory. Whoever
// has something to say stores it to every copy, and everyone looks at the copy of its own card. Of one card nothing of
// this is left.
#pragma once

#include "layout/kernel_plan.h"
#include "layout/launch.h"
#include "primitives/primitives.h"

namespace soliton {

/// A CTA's number among those of all cards.
template <const KernelPlan& kPlan>
SOLITON_DEVICE int number_of_all(const LaunchParams& params, int cta) {
  return kPlan.num_cards == 1 ? cta : cta * kPlan.num_cards + params.card;
}

/// Calls body(pointer) with the address on every card; `offsets`: to the memory that this card's `own` lies in.
template <const KernelPlan& kPlan, class T, class Body>
SOLITON_DEVICE void on_every_card(const LaunchParams& params, int64_t PeerOffsets::*offsets, T* own,
                                  const Body& body) {
  if constexpr (kPlan.num_cards == 1) {
    body(own);
  } else {
    SOLITON_UNROLL
    for (int card = 0; card < kPlan.num_cards; ++card)
      body(reinterpret_cast<T*>(reinterpret_cast<unsigned char*>(own) + params.peers[card].*offsets));
  }
}

/// Ordinary stores of one card; of several, whoever reads them is ordered by arrivals.
template <const KernelPlan& kPlan, class T>
SOLITON_DEVICE void store_to_all(const LaunchParams& params, int64_t PeerOffsets::*offsets, T* own, T value) {
  on_every_card<kPlan>(params, offsets, own, [&](T* word) {
    if constexpr (kPlan.num_cards == 1) {
      store_global(word, value);
    } else {
      store_relaxed_system(word, value);
    }
  });
}

/// The same for the copy of one card.
template <const KernelPlan& kPlan, class T>
SOLITON_DEVICE void store_to_card(const LaunchParams& params, int64_t PeerOffsets::*offsets, int card, T* own,
                                  T value) {
  if constexpr (kPlan.num_cards == 1) {
    store_global(own, value);
  } else {
    store_relaxed_system(
        reinterpret_cast<T*>(reinterpret_cast<unsigned char*>(own) + params.peers[card].*offsets), value);
  }
}

/// Arrives on a counter of which every card has one: after all that this thread and those before it have stored.
template <const KernelPlan& kPlan>
SOLITON_DEVICE void arrive_on_all(const LaunchParams& params, int64_t PeerOffsets::*offsets,
                                  uint32_t* counter) {
  on_every_card<kPlan>(params, offsets, counter, [](uint32_t* each) {
    if constexpr (kPlan.num_cards == 1) {
      add_release(each, 1);
    } else {
      add_release_system(each, 1);
    }
  });
}
/// The same where one fence serves all of them.
template <const KernelPlan& kPlan>
SOLITON_DEVICE void fence_and_arrive_on_all(const LaunchParams& params, int64_t PeerOffsets::*offsets,
                                            uint32_t* counter) {
  if constexpr (kPlan.num_cards == 1) {
    add_release(counter, 1);
  } else {
    fence_system();
    on_every_card<kPlan>(params, offsets, counter, [](uint32_t* each) { add_fenced_system(each, 1); });
  }
}
/// Pairs with arrive_on_all() and fence_and_arrive_on_all().
template <const KernelPlan& kPlan>
SOLITON_DEVICE uint32_t load_arrivals(const uint32_t* counter) {
  return kPlan.num_cards == 1 ? load_acquire(counter) : load_acquire_system(counter);
}

/// Orders what this thread has stored, and what it has seen, before what it stores from here on, for all cards.
template <const KernelPlan& kPlan>
SOLITON_DEVICE void fence_cards() {
  if constexpr (kPlan.num_cards == 1) {
    fence_device();
  } else {
    fence_system();
  }
}

}  // namespace soliton
