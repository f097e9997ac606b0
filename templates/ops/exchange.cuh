// What the CTAs must agree on before a token is drawn: histograms, added up in device memory, and words of
// each CTA. The warps of one number exchange with each other, one of every CTA, and with nobody else.
//
// Exchange e of a launch uses area e % 3. Why it may be cleared when it is. All CTAs take part in all
// exchanges, in the same order. A CTA arrives at exchange e after what it has to say in it, and after it has
// read exchange e - 1. "A has e" says that A has seen the arrivals of all CTAs.
//  1. Who has e, knows that every CTA has read exchange e - 1: so it may clear its share of that area, and
//     its word may be overwritten.
//  2. A clears it before it arrives at e + 1. It is used next in exchange e + 2 (which is e - 1 modulo 3), to
//     which a CTA adds only once it has e + 1, and so has A's clearing.
// With two areas 2. would not hold: a CTA that has e may add to the area of e - 1 at once.
// All areas are clear at launch. Exchanges are counted through the whole launch, so all of this holds from step
// to step too.
#pragma once

#include "layout/kernel_plan.h"
#include "machine/delay.cuh"
#include "machine/peers.cuh"
#include "primitives/primitives.h"

namespace soliton {

/// A histogram as one lane sees it: its four neighbouring bins.
struct LaneBins {
  uint64_t bin[kHistogramBins / kWarpLanes];
};

template <const KernelPlan& kPlan, class Context>
class Exchange {
  static constexpr int kAreaBytes = ExchangeLayout{kPlan.all_ctas()}.area_bytes();
  static constexpr int kLaneBins = kHistogramBins / kWarpLanes;

 public:
  SOLITON_DEVICE Exchange(const Context& context, int warp)
      : context_(context),
        memory_(context.params.sampling.exchange + ExchangeLayout{kPlan.all_ctas()}.warp_offset(warp)) {}

  /// Before the first of some exchanges. How many there have been in the launch, the counter knows: all CTAs
  /// have arrived at each of them, and this one has not arrived at the next.
  SOLITON_DEVICE void begin() { count_ = load_arrivals<kPlan>(counter()) / kPlan.all_ctas(); }

  /// Adds to a bin of the histogram that end_histogram() returns.
  SOLITON_DEVICE void add(int bin, uint64_t value) const {
    on_every_card<kPlan>(context_.params, &PeerOffsets::exchange, area(count_) + bin, [&](uint64_t* each) {
      if constexpr (kPlan.num_cards == 1) {
        add_relaxed(each, value);
      } else {
        add_relaxed_system(each, value);
      }
    });
  }

  /// The sum over all CTAs.
  SOLITON_DEVICE LaneBins end_histogram() {
    meet();
    const uint4* bins = reinterpret_cast<const uint4*>(area(count_ - 1) + context_.lane * kLaneBins);
    LaneBins sums;
    for (int i = 0; i < kLaneBins; i += 2) {
      const uint4 words = load_global(bins + i / 2);
      sums.bin[i] = static_cast<uint64_t>(words.y) << 32 | words.x;
      sums.bin[i + 1] = static_cast<uint64_t>(words.w) << 32 | words.z;
    }
    return sums;
  }

  /// Gives every CTA's word to all: visit(word) is called for each, by one lane or another.
  template <class Visit>
  SOLITON_DEVICE void swap_words(uint64_t word, const Visit& visit) {
    if (context_.lane == 0)
      store_to_all<kPlan>(context_.params, &PeerOffsets::exchange, area(count_) + kHistogramBins + number(),
                          word);
    meet();
    const uint64_t* words = area(count_ - 1) + kHistogramBins;
    SOLITON_UNROLL_BY(8)
    for (int i = context_.lane; i < kPlan.all_ctas(); i += kWarpLanes) visit(load_global(words + i));
  }

 private:
  /// Waits until all CTAs have come here as often; then the area of `count_ - 1` can be read. Clears this CTA's
  /// share of the one before, see above.
  SOLITON_DEVICE void meet() {
    hold_up(context_.params.delay_seed, ~count_, number());
    warp_sync();
    if (context_.lane == 0) arrive_on_all<kPlan>(context_.params, &PeerOffsets::exchange, counter());
    const uint32_t target = (count_ + 1) * kPlan.all_ctas();
    Spin spin(context_.bound());
    // Every lane observes the counter itself, so that its own later loads are ordered.
    for (;;) {
      const uint32_t seen = load_arrivals<kPlan>(counter());
      if (!warp_any(seen < target)) break;
      spin.pause(context_.site(WaitKind::kExchange, count_, target, seen));
    }
    if (count_ > 0) {
      uint64_t* before = area(count_ - 1);
      for (int bin = context_.cta * kWarpLanes + context_.lane; bin < kHistogramBins;
           bin += kPlan.num_ctas * kWarpLanes) {
        store_global(before + bin, uint64_t{0});
      }
    }
    ++count_;
  }

  SOLITON_DEVICE int number() const { return number_of_all<kPlan>(context_.params, context_.cta); }
  SOLITON_DEVICE uint32_t* counter() const { return reinterpret_cast<uint32_t*>(memory_); }
  SOLITON_DEVICE uint64_t* area(uint32_t exchange) const {
    return reinterpret_cast<uint64_t*>(memory_ + ExchangeLayout::kCounterBytes +
                                       exchange % kExchangeAreas * kAreaBytes);
  }

  const Context& context_;
  unsigned char* memory_;
  uint32_t count_ = 0;
};

}  // namespace soliton
