// Fibers, and the scheduler that picks which one runs. A warp is ready when any of its lanes is; the
// scheduler draws a ready warp, then a ready lane. Nothing here knows why a fiber waits.
#pragma once

#include <bit>
#include <cstdint>
#include <deque>
#include <memory>
#include <vector>

#include "primitives/emulation/context.h"
#include "primitives/emulation/emulator.h"

namespace soliton::emulation {

constexpr int kLanes = 32;

enum class FiberState : uint8_t { kReady, kCollective, kBarrier, kCopies, kCtaSync, kPolling, kReturned };

struct Warp;
using FiberEntry = void (*)();

struct Fiber : RunningThread {
  Context context = nullptr;
  Warp* warp = nullptr;
  int id = 0;    // over all CTAs
  int lane = 0;  // within the warp
  FiberState state = FiberState::kReady;
  bool polls_host = false;
  int batched = -1;              // products of the batch that it has put off; -1: it is in none
  uint64_t releases = 0;         // of its warp, that it has come to
  uint64_t waits_since = 0;      // ordinal of the switch with which the present wait began
  WaitSite site;                 // of its last wait
  Fiber* next_waiter = nullptr;  // on the same barrier
};

/// Products that all lanes of a warp have put off, in the order in which they are made.
struct BatchedProducts {
  static constexpr int kMost = 32;
  struct Entry {
    Operation operation = nullptr;  // of the lane that came first
    const char* name = nullptr;
    int lanes = 0;  // that have come
    MmaOperand operands[kLanes];
  };
  Entry entries[kMost];
  bool differs = false;  // Have lanes put off different numbers of them?
};

/// Arrivals of a warp on a barrier that some lanes have not come to yet.
struct WarpRelease {
  Barrier* barrier = nullptr;
  int lanes = 0;  // that have come
};

struct Warp {
  Fiber* fibers = nullptr;  // [kLanes]
  uint32_t ready = 0;       // lane masks
  uint32_t polling = 0;
  uint32_t arrived = 0;
  bool in_ready_list = false;
  bool in_polling_list = false;
  bool is_slow = false;           // see EmulationOptions::delays_warps
  Operation operation = nullptr;  // of the collective that gathers
  const char* name = nullptr;
  void* operands[kLanes] = {};
  std::unique_ptr<BatchedProducts> batch;  // once there is any
  std::deque<WarpRelease> releases;
  uint64_t first_release = 0;  // the number of the first of these
};

/// Stacks of all fibers in one mapping, kept from launch to launch.
class StackPool {
 public:
  ~StackPool();
  /// Makes room for `count` stacks of `bytes` each; false if the system has no memory.
  bool reserve(int count, size_t bytes);
  void* top(int index) const { return base_ + (index + 1) * stride_; }
  size_t bytes() const { return bytes_; }

 private:
  void unmap();
  unsigned char* base_ = nullptr;
  size_t mapped_ = 0;
  size_t stride_ = 0;
  size_t bytes_ = 0;
  int count_ = 0;
};

/// The one of this library.
StackPool& stack_pool();

/// splitmix64.
class Random {
 public:
  explicit Random(uint64_t seed) : state_(seed) {}
  uint32_t below(uint32_t bound) { return static_cast<uint32_t>((next() >> 32) * bound >> 32); }

 private:
  uint64_t next() {
    uint64_t z = state_ += 0x9e3779b97f4a7c15ull;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
    return z ^ (z >> 31);
  }
  uint64_t state_;
};

class Scheduler {
 public:
  Scheduler(int num_cards, int num_ctas, int threads_per_cta, const EmulationOptions& options);

  /// Gives every fiber its stack; `entry` must not return.
  bool prepare(StackPool& stacks, size_t stack_bytes, FiberEntry entry);
  /// Leaves the calling context for the fibers, until one calls leave().
  void enter();
  [[noreturn]] void leave();

  Fiber& current() { return *current_; }
  std::vector<Fiber>& fibers() { return fibers_; }
  Random& random() { return random_; }

  /// The running fiber waits from now on. The caller then gives the processor away.
  void block(FiberState state);
  void wake(Fiber& fiber);
  /// All lanes of a warp; each sets its own state once it runs.
  void wake_warp(Warp& warp);
  /// Runs a fiber drawn from the ready ones; returns false at once if there is none, or `holds_back` those that there are.
  bool switch_to_any(bool holds_back);
  /// The running fiber waits for the other lanes of its warp. Runs the next ready one; false if there is none.
  bool block_and_switch_to_neighbour();

  bool anybody_polls() const { return !polling_.empty(); }
  void wake_one_poller();
  void wake_all_pollers();

  uint64_t switches = 0;

 private:
  void switch_to(Fiber& fiber);
  void list_ready(Warp& warp);
  void wake_pollers(Warp& warp);

  std::vector<Fiber> fibers_;
  std::vector<Warp> warps_;
  std::vector<Warp*> ready_;    // May hold warps that are no longer ready: dropped when drawn.
  std::vector<Warp*> polling_;  // Exactly the warps with a polling lane.
  Random random_;
  uint32_t slow_one_in_;  // EmulationOptions::goes_on_one_in
  Fiber* current_ = nullptr;
  Context outside_ = nullptr;
};

// Here, to become one function with the collectives: most switches are made by it.
inline bool Scheduler::block_and_switch_to_neighbour() {
  Fiber& self = *current_;
  Warp& warp = *self.warp;
  self.state = FiberState::kCollective;
  self.waits_since = switches;
  warp.ready &= ~(1u << self.lane);
  if (warp.ready == 0) return false;
  const auto turn = static_cast<uint32_t>(self.lane);
  Fiber& next =
      warp.fibers[(static_cast<uint32_t>(std::countr_zero(std::rotr(warp.ready, self.lane))) + turn) %
                  kLanes];
  ++switches;
  current_ = &next;
  running = &next;
  switch_context(&self.context, next.context);
  return true;
}

}  // namespace soliton::emulation
