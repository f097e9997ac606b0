// Vector clocks: element u of a thread's clock is the latest epoch of thread u that is known to lie before it.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <vector>

namespace soliton::emulation {

using Epoch = uint32_t;
using VectorClock = std::vector<Epoch>;

inline void merge(VectorClock& into, const VectorClock& from) {
  if (into.size() < from.size()) into.resize(from.size());
  Epoch* target = into.data();
  const Epoch* source = from.data();
  for (size_t i = 0; i < from.size(); ++i) target[i] = std::max(target[i], source[i]);
}

/// A clock as it stood in epoch `epoch` of thread `owner`; whoever has seen that epoch has merged it already.
struct Snapshot {
  int owner = 0;
  Epoch epoch = 0;
  VectorClock clock;
};
using SnapshotPointer = std::shared_ptr<const Snapshot>;

/// The two orders of the memory model: writes before me, and reads before me. Reads are performed when they return,
/// writes only once a fence says so, hence after a fence-less message `reads` is ahead of `writes`.
struct ClockPair {
  VectorClock writes;
  VectorClock reads;

  void merge_pair(const ClockPair& from) {
    merge(writes, from.writes);
    merge(reads, from.reads);
  }
};

}  // namespace soliton::emulation
