// What the race detector makes of what threads acquire from one another: at barriers, in warps, from copies that landed.
#include <algorithm>

#include "primitives/emulation/race_cells.h"
#include "primitives/emulation/race_detector.h"

namespace soliton::emulation {

/// False if the thread has acquired this already. Keeps of a sequence of acquisitions a number that no other
/// sequence has. (That two have the same is less likely than that the machine errs.)
bool RaceDetector::note_acquired(int thread, uint64_t id) {
  constexpr uint64_t kOdd = 0x9e3779b97f4a7c15ull;
  if (threads_[thread].last_id == id) return false;
  threads_[thread].last_id = id;
  uint64_t& acquired = threads_[thread].acquired;
  acquired = (acquired ^ id * kOdd) * 0xbf58476d1ce4e5b9ull + 1;
  acquired ^= acquired >> 29;
  return true;
}

/// Gives all lanes of a warp what any of them has acquired. Lanes that have acquired nothing still have what they had
/// in common.
void RaceDetector::level(int first_thread) {
  Thread* const lanes = &threads_[first_thread];
  const auto any =
      std::find_if(lanes, lanes + kLaneCount, [](const Thread& lane) { return lane.acquired != 0; });
  const bool alike = std::all_of(lanes, lanes + kLaneCount,
                                 [&](const Thread& lane) { return lane.acquired == lanes[0].acquired; });
  if (alike)
    return;  // All acquired the same, or nothing: their clocks differ in the lanes' own epochs at most.
  ClockPair& sum = any->clocks;
  for (Thread* lane = any + 1; lane != lanes + kLaneCount; ++lane) {
    if (lane->acquired != 0) sum.merge_pair(lane->clocks);
  }
  for (Thread* lane = lanes; lane != lanes + kLaneCount; ++lane) {
    if (lane != any) lane->clocks = sum;
  }
}

/// The lanes of a warp get the same clocks. No one has ticked since they had the epochs with which they meet.
void RaceDetector::meet(int first_thread) {
  Warp& warp = warps_[first_thread / kLaneCount];
  for (int lane = 0; lane < kLaneCount; ++lane) warp.own[lane] = epoch(first_thread + lane);
  warp.clocks = nullptr;
}

void RaceDetector::forget_acquired(int thread) {
  threads_[thread].acquired = threads_[thread].shared_acquired = 0;
  threads_[thread].shared = nullptr;
}

SharedClocks RaceDetector::shared_clocks(int thread) {
  Thread& self = threads_[thread];
  Warp& warp = warps_[thread / kLaneCount];
  if (self.acquired != 0 && self.shared_acquired != self.acquired) {
    self.shared = std::make_shared<const ClockPair>(self.clocks);
    self.shared_acquired = self.acquired;
  }
  if (self.acquired != 0) return {self.shared, thread, epoch(thread)};
  if (warp.clocks == nullptr) {
    auto clocks = std::make_shared<ClockPair>(self.clocks);
    for (VectorClock* clock : {&clocks->writes, &clocks->reads})
      (*clock)[thread] = warp.own[thread % kLaneCount];
    warp.clocks = std::move(clocks);
  }
  return {warp.clocks, thread, epoch(thread)};
}

void RaceDetector::merge_warp(int first_thread) {
  meet(first_thread);
  const std::array<Epoch, kLaneCount>& own = warps_[first_thread / kLaneCount].own;
  level(first_thread);
  for (int lane = 0; lane < kLaneCount; ++lane) {
    ClockPair& clocks = threads_[first_thread + lane].clocks;
    std::copy(own.begin(), own.end(), clocks.writes.begin() + first_thread);
    std::copy(own.begin(), own.end(), clocks.reads.begin() + first_thread);
    forget_acquired(first_thread + lane);
    tick(first_thread + lane);
  }
}

void RaceDetector::merge_cta(int cta) {
  const int first = cta * shape_.threads_per_cta;
  const int end = first + shape_.threads_per_cta;
  ClockPair sum = threads_[first].clocks;
  for (int thread = first + 1; thread < end; ++thread) sum.merge_pair(threads_[thread].clocks);
  for (int thread = first; thread < end; ++thread) {
    threads_[thread].clocks = sum;
    forget_acquired(thread);
  }
  for (int thread = first; thread < end; thread += kLaneCount) meet(thread);
  for (int thread = first; thread < end; ++thread) tick(thread);
}

void RaceDetector::release_to(int thread, ClockPair& clocks) {
  clocks.merge_pair(threads_[thread].clocks);
  tick(thread);
}

void RaceDetector::acquire_from(int thread, const ClockPair& clocks, uint64_t id) {
  if (note_acquired(thread, id)) threads_[thread].clocks.merge_pair(clocks);
}

void RaceDetector::land(int engine, Epoch epoch, ClockPair& clocks) const {
  const size_t width = threads_[0].clocks.writes.size();
  for (VectorClock* clock : {&clocks.writes, &clocks.reads}) {
    clock->resize(width);
    (*clock)[engine] = std::max((*clock)[engine], epoch);
  }
}

void RaceDetector::see_copies(int thread, int engine, Epoch epoch) {
  note_acquired(thread, next_id());
  land(engine, epoch, threads_[thread].clocks);
}

}  // namespace soliton::emulation
