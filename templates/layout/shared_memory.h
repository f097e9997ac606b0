// What a CTA's shared memory is divided into: regions, and behind them mbarriers.
#pragma once

namespace soliton {

/// A piece of a CTA's shared memory.
struct Region {
  const char* name = nullptr;
  int offset = 0;
  int bytes = 0;
};

/// The mbarriers that one kind of hand-over uses in turn.
struct BarrierSet {
  const char* name = nullptr;
  int slots = 0;
  int arrivals = 0;       // that complete a phase of one of them
  bool by_warps = false;  // do whole warps arrive, or single lanes?
};

constexpr int kMaxRegions = 16;
constexpr int kMaxBarriers = 20;
constexpr int kBarrierBytes = 8;

}  // namespace soliton
