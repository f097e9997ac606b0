// Barriers and bulk copies of a launch.
#include <algorithm>
#include <cstring>
#include <tuple>

#include "primitives/emulation/launch.h"
#include "primitives/emulation/report.h"

namespace soliton::emulation {

namespace {

constexpr int kCopyGranularity = 16;            // bytes
constexpr uint64_t kMagic = 0x534f4cull << 40;  // "SOL": a barrier's handle is this plus its index plus 1

std::string name_barrier(const BarrierState& barrier) {
  return "barrier " + std::to_string(barrier.ordinal) + " of CTA " + std::to_string(barrier.cta) +
         " (phase " + std::to_string(barrier.phase) + ", " + std::to_string(barrier.count) + " arrivals)";
}

}  // namespace

void Launch::init_barrier(Barrier* barrier, int arrivals) {
  const Fiber& self = scheduler_.current();
  const int ordinal = cta().num_barriers++;
  if (checking) check_access(Access::kStore, Space::kShared, barrier, sizeof(Barrier));
  if (holds(FaultKind::kBarrierCount) && options_.fault.ordinal == ordinal) arrivals += options_.fault.delta;
  if (arrivals < 1)
    fail("barrier_init with " + std::to_string(arrivals) + " arrivals by " + describe_thread(self));
  barriers_.push_back(std::make_unique<BarrierState>(BarrierState{.address = barrier,
                                                                  .cta = self.cta,
                                                                  .ordinal = ordinal,
                                                                  .count = arrivals,
                                                                  .pending = arrivals,
                                                                  .initialiser = self.id}));
  barrier->handle = kMagic + barriers_.size();
}

void Launch::fence_barrier_init() {
  for (const auto& barrier : barriers_) barrier->fenced |= barrier->initialiser == scheduler_.current().id;
}

void Launch::fail_no_barrier(const Barrier* barrier, const char* user) {
  const Fiber& self = scheduler_.current();
  fail(std::string(user) + " on what is no barrier: shared+" +
       std::to_string(reinterpret_cast<const unsigned char*>(barrier) - self.shared) + ", by " +
       describe_thread(self));
}

BarrierState& Launch::find_barrier(Barrier* barrier, const char* user) {
  if (checking) check_access(Access::kBarrier, Space::kShared, barrier, sizeof(Barrier));
  const uint64_t index = barrier->handle - kMagic - 1;
  if (index >= barriers_.size() || barriers_[index]->address != barrier) fail_no_barrier(barrier, user);
  return *barriers_[index];
}

void Launch::arrive(Barrier* address, int bytes) {
  BarrierState& barrier = find_barrier(address, "barrier_arrive");
  if (barrier.pending == 0) {
    fail("one arrival too many on " + name_barrier(barrier) + " by " + describe_thread(scheduler_.current()));
  }
  if (holds(FaultKind::kSpoilWord) && barrier.ordinal == options_.fault.ordinal) {
    int32_t word = 0;
    std::memcpy(&word, running->shared + options_.fault.place, sizeof word);
    word += options_.fault.delta;
    std::memcpy(running->shared + options_.fault.place, &word, sizeof word);
  }
  barrier.transaction_bytes += bytes;
  --barrier.pending;
  ++barrier.arrivals;
  barrier.warps |= uint64_t{1} << running->thread / kLanes;
  if (checking) races_->release_to(scheduler_.current().id, barrier.arriving);
  complete_if_due(barrier);
}

void Launch::release_by_warp(Barrier* barrier, int times) {
  Fiber& self = scheduler_.current();
  Warp& warp = *self.warp;
  const size_t index = self.releases++ - warp.first_release;
  if (index == warp.releases.size()) warp.releases.push_back({barrier, 0});
  WarpRelease& release = warp.releases[index];
  if (release.barrier != barrier) {
    fail("lanes of one warp release different barriers: " + describe_thread(self) + " " +
         name_barrier(find_barrier(barrier, "warp_release")) + ", others " +
         name_barrier(find_barrier(release.barrier, "warp_release")));
  }
  if (++release.lanes < kLanes) return;
  // Lanes come to them in order: whoever is the last here is the first of those in the queue to be complete.
  warp.releases.pop_front();
  ++warp.first_release;
  for (; times > 0; --times) arrive(barrier, 0);
}

std::vector<BarrierCount> Launch::count_barriers() const {
  std::vector<BarrierCount> counts;
  for (const auto& barrier : barriers_) {
    const auto* shared = shared_.get() + barrier->cta * shared_stride_;
    counts.push_back({.cta = barrier->cta,
                      .offset = reinterpret_cast<const unsigned char*>(barrier->address) - shared,
                      .expected = barrier->count,
                      .phases = barrier->phase,
                      .arrivals = barrier->arrivals,
                      .warps = barrier->warps});
  }
  std::sort(counts.begin(), counts.end(), [](const BarrierCount& a, const BarrierCount& b) {
    return std::tie(a.cta, a.offset) < std::tie(b.cta, b.offset);
  });
  return counts;
}

void Launch::complete_if_due(BarrierState& barrier) {
  if (barrier.pending != 0 || barrier.transaction_bytes != 0) return;
  ++barrier.phase;
  barrier.pending = barrier.count;
  if (checking) {
    barrier.completed = barrier.arriving;
    barrier.id = races_->next_id();
  }
  ++num_stores;
  // Whoever is woken tests again when it runs: should the next phase have completed by then, it waits on, as
  // it would on the GPU.
  while (barrier.waiters != nullptr) {
    Fiber& waiter = *barrier.waiters;
    barrier.waiters = waiter.next_waiter;
    scheduler_.wake(waiter);
  }
}

bool Launch::test_barrier(Barrier* address, uint32_t parity) {
  BarrierState& barrier = find_barrier(address, "barrier_test");
  if (!barrier.test(parity)) return false;
  if (checking) races_->acquire_from(scheduler_.current().id, barrier.completed, barrier.id);
  return true;
}

void Launch::wait_barrier(Barrier* address, uint32_t parity, const WaitSite& site) {
  Fiber& self = scheduler_.current();
  self.site = site;
  BarrierState& barrier = find_barrier(address, "wait_barrier");
  if (skips_wait(site.kind)) return;
  while (!barrier.test(parity)) {
    self.next_waiter = barrier.waiters;
    barrier.waiters = &self;
    scheduler_.block(FiberState::kBarrier);
    give_way();
  }
  if (checking) races_->acquire_from(self.id, barrier.completed, barrier.id);
}

void Launch::copy_page(void* shared, const void* global, int bytes, Barrier* address) {
  BarrierState& barrier = find_barrier(address, "copy_page");
  if (checking && !barrier.fenced)
    fail("copy_page on a barrier without barrier_init_fence: " + name_barrier(barrier));
  issue({.shared = shared, .global = global, .bytes = bytes, .barrier = &barrier}, "copy_page");
}

void Launch::issue(PendingCopy copy, const char* name) {
  const Fiber& self = scheduler_.current();
  const auto alignment = reinterpret_cast<uintptr_t>(copy.shared) | reinterpret_cast<uintptr_t>(copy.global);
  if (copy.bytes <= 0 || copy.bytes % kCopyGranularity != 0 || alignment % kCopyGranularity != 0) {
    fail(std::string(name) + " wants addresses and a size that are multiples of 16, got " +
         std::to_string(copy.bytes) + " bytes by " + describe_thread(self));
  }
  const auto offset = static_cast<unsigned char*>(copy.shared) - self.shared;
  if (offset < 0 || offset + copy.bytes > shape_.shared_bytes) {
    fail(std::string("out of bounds: ") + name + " to shared+" + std::to_string(offset) + ", " +
         std::to_string(copy.bytes) + " bytes, by " + describe_thread(self));
  }
  if (checking) {
    if (std::string text = races_->check_bounds(Space::kGlobal, self.cta, copy.global, copy.bytes);
        !text.empty()) {
      fail(text + ": " + name + " by " + describe_thread(self));
    }
    Race race;
    const int barrier = copy.barrier == nullptr ? -1 : copy.barrier->ordinal;
    if (!races_->copy(self.id, barrier, copy.shared, copy.global, copy.bytes, &copy.engine, &copy.epoch,
                      &race)) {
      fail_race(race);
    }
  }
  ++control_.stats.copies;
  if (copy.barrier == nullptr) note_piece(copy);
  copies_.push_back(copy);
  if (options_.copies == CopyPolicy::kEager) land(copies_.size() - 1);
}

PieceCopies& Launch::pieces() {
  if (pieces_.empty()) pieces_.resize(scheduler_.fibers().size());
  return pieces_[scheduler_.current().id];
}

void Launch::copy_piece(void* shared, const void* global) {
  maybe_preempt();
  const PieceCopies& mine = pieces();
  issue({.shared = shared,
         .global = global,
         .bytes = kCopyGranularity,
         .thread = scheduler_.current().id,
         .set = mine.first + mine.sets.size() - 1},
        "copy of a piece");
}

void Launch::note_piece(const PendingCopy& copy) {
  PieceCopies& mine = pieces_[copy.thread];
  ++mine.sets.back().in_flight;
  mine.sets.back().epoch = copy.epoch;
  mine.engine = copy.engine;
}

void Launch::commit_copies() {
  pieces().sets.emplace_back();
}

/// The sets but the last `sets` that are committed.
void Launch::wait_copies(int sets) {
  PieceCopies& mine = pieces();
  if (holds(FaultKind::kNoCopyWait)) return;
  while (mine.sets.size() > static_cast<size_t>(sets) + 1) {
    while (mine.sets.front().in_flight > 0) {  // land() wakes this thread when none is
      scheduler_.current().site = {WaitKind::kPageFull, 0, 0, 0, 0, 0};
      scheduler_.block(FiberState::kCopies);
      give_way();
    }
    if (checking && mine.engine >= 0)
      races_->see_copies(scheduler_.current().id, mine.engine, mine.sets.front().epoch);
    mine.sets.pop_front();
    ++mine.first;
  }
}

void Launch::land(size_t index) {
  const PendingCopy copy = copies_[index];
  copies_[index] = copies_.back();
  copies_.pop_back();
  std::memcpy(copy.shared, copy.global, copy.bytes);
  if (copy.barrier == nullptr) {
    PieceCopies& pieces = pieces_[copy.thread];
    if (copy.set < pieces.first || --pieces.sets[copy.set - pieces.first].in_flight > 0) return;
    Fiber& copier = scheduler_.fibers()[copy.thread];
    if (copier.state == FiberState::kCopies) scheduler_.wake(copier);
    return;
  }
  BarrierState& barrier = *copy.barrier;
  barrier.transaction_bytes -= copy.bytes;
  if (barrier.transaction_bytes < 0) {
    fail("a copy of " + std::to_string(copy.bytes) + " bytes landed of which " +
         std::to_string(-barrier.transaction_bytes) + " were not expected, on " + name_barrier(barrier));
  }
  if (checking) races_->land(copy.engine, copy.epoch, barrier.arriving);
  complete_if_due(barrier);
}

}  // namespace soliton::emulation
