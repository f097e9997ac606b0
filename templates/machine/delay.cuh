// Random delays: nothing unless the kernel is compiled with SOLITON_FUZZ.
#pragma once

#include "layout/delay.h"
#include "layout/random.h"
#include "primitives/primitives.h"

namespace soliton {

/// Called by every warp of every CTA as it begins a phase, the `phases_done`th of the launch. One CTA in 32
/// is held up for tens of microseconds, many times what a phase takes; one warp in 4 for up to some
/// microseconds, so that the warps of a CTA change their order too. The seed alone decides who.
SOLITON_DEVICE void hold_up(uint32_t delay_seed, uint32_t phases_done, int cta) {
  if constexpr (kFuzz) {
    constexpr uint32_t kCtaOdds = 32, kCtaNs = 1 << 16;
    constexpr uint32_t kWarpOdds = 4, kWarpNs = 1 << 12;
    const uint64_t instance = static_cast<uint64_t>(phases_done) << 32 | static_cast<uint32_t>(cta) << 8;
    const uint32_t cta_draw = random_bits(instance, delay_seed);
    const uint32_t warp_draw = random_bits(instance + 1 + thread_index() / 32, delay_seed);
    if (cta_draw % kCtaOdds == 0) sleep_ns(cta_draw / kCtaOdds % kCtaNs);
    if (warp_draw % kWarpOdds == 0) sleep_ns(warp_draw / kWarpOdds % kWarpNs);
  }
}

}  // namespace soliton
