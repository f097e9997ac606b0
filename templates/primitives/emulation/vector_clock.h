// Vector clocks: element u of a thread's clock is the latest epoch of thread u that is known to lie before
// it.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

namespace soliton::emulation {

using Epoch = uint32_t;
using VectorClock = std::vector<Epoch>;

/// Clocks have a multiple of this many elements, or none.
constexpr size_t kClockChunk = 8;

/// into[i] = max(into[i], from[i]) for i below `size`, a multiple of kClockChunk. The hot spot of checked launches.
void merge_epochs(Epoch* into, const Epoch* from, size_t size);

inline void merge(VectorClock& into, const VectorClock& from) {
  if (into.size() < from.size()) into.resize(from.size());
  merge_epochs(into.data(), from.data(), from.size());
}

/// A clock as it stood in epoch `epoch` of thread `owner`; whoever has seen that epoch has merged it already.
struct Snapshot {
  int owner = 0;
  Epoch epoch = 0;
  VectorClock clock;
};
using SnapshotPointer = std::shared_ptr<const Snapshot>;

/// The two orders of the memory model: writes before me, and reads before me. Reads are performed when they
/// return, writes only once a fence says so, hence after a fence-less message `reads` is ahead of `writes`.
struct ClockPair {
  VectorClock writes;
  VectorClock reads;

  void merge_pair(const ClockPair& from) {
    merge(writes, from.writes);
    merge(reads, from.reads);
  }
};

/// The clocks of thread `owner` in its epoch `epoch`, which is its own element; all others are in `clocks`, which lanes share
/// that have acquired nothing since their warp met, and what one thread makes until it acquires something.
struct SharedClocks {
  std::shared_ptr<const ClockPair> clocks;
  int owner = -1;
  Epoch epoch = 0;

  Epoch writes(int thread) const { return thread == owner ? epoch : clocks->writes[thread]; }
  Epoch reads(int thread) const { return thread == owner ? epoch : clocks->reads[thread]; }
};

}  // namespace soliton::emulation
