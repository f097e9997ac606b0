#include "primitives/emulation/launch.h"

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <span>
#include <thread>

#include "primitives/emulation/report.h"

namespace soliton::emulation {

namespace {

constexpr size_t kSharedAlignment = 1024;
constexpr int kMaxCheckedThreads = 4096;  // Vector clocks take 8 bytes for each pair of threads.

/// Rounds of polls without a store after which nobody can be helped: in the first, all have seen the last
/// store; in the next, what they told their warps in collectives has come back.
constexpr int kQuietRounds = 3;

constexpr uint32_t kLandOneIn = 4;  // switches, under CopyPolicy::kRandom
// Switches, while others are ready. Every lane of a poller switches: with fewer than 32 the pollers would
// keep each other awake for ever.
constexpr uint32_t kPollOneIn = 128;
constexpr auto kHostNap = std::chrono::microseconds(20);

struct BatchOperand {
  BatchedProducts* batch;
  int count;
};

void multiply_batch(void* const* operands) {
  const auto& [batch, count] = *static_cast<const BatchOperand*>(operands[0]);
  for (int lane = 1; lane < kLanes; ++lane)
    batch->differs |= static_cast<const BatchOperand*>(operands[lane])->count != count;
  if (batch->differs) return;
  for (BatchedProducts::Entry& entry : std::span(batch->entries, count)) {
    void* pointers[kLanes];
    for (int lane = 0; lane < kLanes; ++lane) pointers[lane] = &entry.operands[lane];
    entry.operation(pointers);
    entry.lanes = 0;
  }
}

uint64_t now_ns() {
  return static_cast<uint64_t>(std::chrono::steady_clock::now().time_since_epoch() /
                               std::chrono::nanoseconds(1));
}

}  // namespace

Launch::Launch(Kernel kernel, const std::vector<CardLaunch>& cards, const LaunchShape& shape,
               EmulationControl& control)
    : kernel_(kernel),
      cards_(cards),
      params_(**std::find_if(cards.begin(), cards.end(),
                             [](const CardLaunch& card) { return card.has_value(); })),
      shape_(shape),
      control_(control),
      options_(control.options),
      scheduler_(static_cast<int>(cards.size()), shape.num_ctas, shape.threads_per_cta, control.options),
      ctas_(cards.size() * shape.num_ctas),
      shared_(nullptr, [](void* memory) { std::free(memory); }) {
  shared_stride_ = (shape.shared_bytes + kSharedAlignment) / kSharedAlignment * kSharedAlignment;
  const size_t bytes = shared_stride_ * ctas_.size();
  if (cards.size() > 1 || options_.delays_stores) regions_ = list_regions();
  shared_.reset(static_cast<unsigned char*>(std::aligned_alloc(kSharedAlignment, bytes)));
  if (shared_ == nullptr) return;
  // What is there before it is written must not matter.
  std::memset(shared_.get(), control.options.seed % 2 == 0 ? 0xFF : 0xA5, bytes);
  for (Fiber& fiber : scheduler_.fibers()) fiber.shared = shared_.get() + fiber.cta * shared_stride_;
}

std::string Launch::run(StackPool& stacks, FiberEntry enter_fiber) {
  const int num_ctas = static_cast<int>(ctas_.size());
  const int num_threads = num_ctas * shape_.threads_per_cta;
  if (options_.check && num_threads > kMaxCheckedThreads) {
    return "emulation: " + std::to_string(num_threads) + " threads; checks are made for up to " +
           std::to_string(kMaxCheckedThreads);
  }
  if (shared_ == nullptr || !scheduler_.prepare(stacks, options_.stack_bytes, enter_fiber)) {
    return "emulation: no memory for " + std::to_string(num_threads) + " threads";
  }
  if (options_.check) {
    const RaceShape race_shape = {num_ctas,      shape_.threads_per_cta,           shape_.shared_bytes,
                                  shared_.get(), static_cast<int>(shared_stride_), shape_.num_ctas};
    races_ = std::make_unique<RaceDetector>(race_shape, list_regions());
  }
  checking = options_.check;
  delaying = options_.delays_stores;
  scheduler_.enter();
  checking = delaying = false;
  control_.stats.switches = scheduler_.switches;
  control_.barriers = count_barriers();
  return std::move(error_);
}

void Launch::run_fiber() {
  std::string exception;
  try {
    if (const CardLaunch& mine = cards_[running->card]) kernel_(*mine);
  } catch (const std::exception& error) {
    exception = std::string("exception in the kernel: ") + error.what();
  }
  if (!exception.empty()) fail(std::move(exception));
  Cta& mine = cta();
  scheduler_.block(FiberState::kReturned);
  ++num_returned_;
  if (++mine.returned == shape_.threads_per_cta) {
    for (const PendingCopy& copy : copies_) {
      const auto offset = static_cast<unsigned char*>(copy.shared) - running->shared;
      if (offset < 0 || offset >= shape_.shared_bytes) continue;
      fail("CTA " + std::to_string(running->cta) + " returned with a copy in flight: shared+" +
           std::to_string(offset) + ", " + std::to_string(copy.bytes) + " bytes" +
           (copy.barrier == nullptr ? "" : ", barrier " + std::to_string(copy.barrier->ordinal)));
    }
  }
  if (num_returned_ == static_cast<int>(scheduler_.fibers().size())) {
    while (!stores_.empty()) land_store(0);
    check_warpgroups();
    scheduler_.leave();
  }
  give_way();
  __builtin_unreachable();
}

void Launch::fail(std::string text) {
  error_ = std::move(text);
  scheduler_.leave();
}

void Launch::fail_demand(const char* what) {
  fail(describe_thread(scheduler_.current()) + ": not so: " + what);
}

void Launch::fail_race(const Race& race) {
  fail(describe_race(race, scheduler_.fibers()));
}

void Launch::fail_stuck(const char* what) {
  const Fiber* fiber = longest_waiting(scheduler_.fibers());
  if (fiber != nullptr && cards_[fiber->card]->stall != nullptr) {
    *cards_[fiber->card]->stall = {1, static_cast<uint32_t>(fiber->cta % shape_.num_ctas),
                                   static_cast<uint32_t>(fiber->thread), fiber->site};
  }
  fail(describe_waits(what, scheduler_.fibers()));
}

void Launch::fail_mixed(const char* name, const char* others) {
  fail("lanes of one warp meet in different operations: " + describe_thread(scheduler_.current()) + " in " +
       name + ", others in " + others);
}

void Launch::preempt_at_random() {
  if (scheduler_.random().below(100) < static_cast<uint32_t>(options_.preempt_percent)) give_way();
}

void Launch::give_way() {
  for (;;) {
    if (options_.copies == CopyPolicy::kRandom && !copies_.empty() &&
        scheduler_.random().below(kLandOneIn) == 0) {
      land(scheduler_.random().below(static_cast<uint32_t>(copies_.size())));
    }
    if (options_.copies == CopyPolicy::kRandom && !stores_.empty() &&
        scheduler_.random().below(kLandOneIn) == 0) {
      land_store(scheduler_.random().below(static_cast<uint32_t>(stores_.size())));
    }
    if (scheduler_.anybody_polls() && num_stores != polled_stores_ &&
        scheduler_.random().below(kPollOneIn) == 0) {
      scheduler_.wake_one_poller();
    }
    if (scheduler_.switch_to_any(true)) return;
    // Those that are held back go on when nobody else can: so others look first whether something has come.
    const bool can_look = scheduler_.anybody_polls() && num_stores != polled_stores_;
    if (!can_look && scheduler_.switch_to_any(false)) return;
    advance_idle();
  }
}

void Launch::advance_idle() {
  if (scheduler_.anybody_polls() && num_stores != polled_stores_) {
    polled_stores_ = num_stores;
    quiet_rounds_ = 0;
    idle_since_ns_ = 0;
    scheduler_.wake_all_pollers();
  } else if (!copies_.empty()) {
    land(scheduler_.random().below(static_cast<uint32_t>(copies_.size())));
  } else if (!stores_.empty()) {
    land_some_stores();
  } else if (scheduler_.anybody_polls() && (quiet_rounds_ < kQuietRounds || host_may_help())) {
    ++quiet_rounds_;
    scheduler_.wake_all_pollers();
  } else {
    fail_stuck("deadlock");
  }
}

bool Launch::host_may_help() {
  bool polls_host = false;
  for (const Fiber& fiber : scheduler_.fibers()) {
    polls_host |= fiber.state == FiberState::kPolling && fiber.polls_host;
  }
  if (!polls_host) return false;
  if (idle_since_ns_ == 0) idle_since_ns_ = now_ns();
  if (params_.timeout_ns != 0 && now_ns() - idle_since_ns_ > params_.timeout_ns) fail_stuck("timeout");
  std::this_thread::sleep_for(kHostNap);
  return true;
}

void Launch::pause(const WaitSite& site) {
  Fiber& self = scheduler_.current();
  const bool same_wait =
      self.site.kind == site.kind && self.site.step == site.step && self.site.phase == site.phase;
  const uint64_t waited_since = self.waits_since;
  self.site = site;
  ++control_.stats.polls;
  scheduler_.block(FiberState::kPolling);
  if (same_wait) self.waits_since = waited_since;
  give_way();
  self.polls_host = false;
}

void Launch::check_access(Access access, Space space, const void* address, size_t bytes) {
  maybe_preempt();
  const Fiber& self = scheduler_.current();
  const bool system = access == Access::kSystemLoad || access == Access::kSystemStore;
  if (std::string text = races_->check_bounds(space, self.cta, address, bytes); !text.empty()) {
    fail(text + ": " + std::to_string(bytes) + " bytes used by " + describe_thread(self));
  }
  if (reinterpret_cast<uintptr_t>(address) % bytes != 0) {
    fail("misaligned access of " + std::to_string(bytes) + " bytes by " + describe_thread(self));
  }
  if (system) return;
  if (access == Access::kReleaseAdd && holds(FaultKind::kDropRelease)) access = Access::kRelaxedAdd;
  if (space == Space::kGlobal) check_scope(access, address);
  Race race;
  if (!races_->access(self.id, access, space, address, bytes, &race)) fail_race(race);
}

void Launch::collective(Operation operation, const char* name, void* operand) {
  maybe_preempt();
  Fiber& self = scheduler_.current();
  Warp& warp = *self.warp;
  if (warp.arrived == 0) {
    warp.operation = operation;
    warp.name = name;
  } else if (warp.operation != operation) {
    fail_mixed(name, warp.name);
  }
  warp.operands[self.lane] = operand;
  warp.arrived |= 1u << self.lane;
  if (warp.arrived != ~0u) {
    if (!scheduler_.block_and_switch_to_neighbour()) give_way();
    self.state = FiberState::kReady;
    return;
  }
  operation(warp.operands);
  warp.arrived = 0;
  ++control_.stats.collectives;
  if (checking) races_->merge_warp(self.id - self.lane);
  scheduler_.wake_warp(warp);
}

void Launch::begin_batch() {
  Fiber& self = scheduler_.current();
  if (self.batched >= 0) fail("a batch of products within another, by " + describe_thread(self));
  self.batched = 0;
}

MmaOperand* Launch::put_off(Operation operation, const char* name) {
  Fiber& self = scheduler_.current();
  if (self.batched < 0) return nullptr;
  maybe_preempt();
  if (self.batched == BatchedProducts::kMost) {
    end_batch();
    self.batched = 0;
  }
  Warp& warp = *self.warp;
  if (warp.batch == nullptr) warp.batch = std::make_unique<BatchedProducts>();
  BatchedProducts::Entry& entry = warp.batch->entries[self.batched++];
  if (entry.lanes++ == 0) {
    entry.operation = operation;
    entry.name = name;
  } else if (entry.operation != operation) {
    fail_mixed(name, entry.name);
  }
  return &entry.operands[self.lane];
}

void Launch::end_batch() {
  Fiber& self = scheduler_.current();
  if (self.batched > 0) {
    BatchOperand own = {self.warp->batch.get(), self.batched};
    collective(multiply_batch, "a batch of products", &own);
    if (self.warp->batch->differs)
      fail("lanes of one warp make different numbers of products in a batch, one of them " +
           describe_thread(self));
  }
  self.batched = -1;
}

void Launch::synchronise_cta() {
  maybe_preempt();
  Cta& mine = cta();
  if (++mine.synchronising < shape_.threads_per_cta) {
    scheduler_.block(FiberState::kCtaSync);
    give_way();
    return;
  }
  mine.synchronising = 0;
  if (checking) races_->merge_cta(running->cta);
  const int first = running->cta * shape_.threads_per_cta;
  for (int i = 0; i < shape_.threads_per_cta; ++i) scheduler_.wake(scheduler_.fibers()[first + i]);
}

void Launch::fence_device() {
  maybe_preempt();
  if (holds(FaultKind::kDropDeviceFence)) return;
  if (delaying) land_stores_before();
  if (checking) races_->fence_device(scheduler_.current().id);
}

void Launch::fence_async_global() {
  maybe_preempt();
  if (checking && !holds(FaultKind::kDropAsyncFence)) races_->fence_async_global(scheduler_.current().id);
}

void Launch::fence_async_shared() {
  maybe_preempt();
  if (checking && !holds(FaultKind::kDropAsyncFence)) races_->fence_async_shared(scheduler_.current().id);
}

}  // namespace soliton::emulation
