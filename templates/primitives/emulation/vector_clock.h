// Vector clocks: element u of a thread's clock is the latest epoch of thread u that is known to lie before
// it.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <memory>
#include <vector>

namespace soliton::emulation {

using Epoch = uint32_t;
using VectorClock = std::vector<Epoch>;

/// Clocks have a multiple of this many elements, or none.
constexpr size_t kClockChunk = 4;
typedef Epoch ClockChunk __attribute__((vector_size(kClockChunk * sizeof(Epoch))));

/// The hot spot of checked launches: by hand, because -O2 does not vectorise it.
inline void merge(VectorClock& into, const VectorClock& from) {
  if (into.size() < from.size()) into.resize(from.size());
  for (size_t i = 0; i < from.size(); i += kClockChunk) {
    ClockChunk a;
    ClockChunk b;
    std::memcpy(&a, &into[i], sizeof a);
    std::memcpy(&b, &from[i], sizeof b);
    a = a > b ? a : b;
    std::memcpy(&into[i], &a, sizeof a);
  }
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

}  // namespace soliton::emulation
