#include "primitives/emulation/fibers.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <bit>

namespace soliton::emulation {

RunningThread* running = nullptr;

namespace {

/// Every guard page splits the mapping, and the kernel allows 65530 parts.
constexpr int kMaxGuarded = 16384;

/// Lanes of a warp stand at the same place of their stacks: without this, in the same lines of the cache.
constexpr size_t kLaneOffset = 128;

}  // namespace

StackPool::~StackPool() {
  unmap();
}

StackPool& stack_pool() {
  static StackPool pool;
  return pool;
}

void StackPool::unmap() {
  if (base_ != nullptr) munmap(base_, mapped_);
  base_ = nullptr;
  count_ = 0;
}

bool StackPool::reserve(int count, size_t bytes) {
  const size_t page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  bytes = (bytes + page - 1) / page * page;
  if (count <= count_ && bytes == bytes_) return true;
  unmap();
  stride_ = page + bytes;  // the guard below the stack
  mapped_ = stride_ * count;
  void* memory =
      mmap(nullptr, mapped_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) return false;
  base_ = static_cast<unsigned char*>(memory);
  bytes_ = bytes;
  count_ = count;
  for (int i = 0; i < count && count <= kMaxGuarded; ++i) mprotect(base_ + i * stride_, page, PROT_NONE);
  return true;
}

Scheduler::Scheduler(int num_cards, int num_ctas, int threads_per_cta, const EmulationOptions& options)
    : fibers_(static_cast<size_t>(num_cards) * num_ctas * threads_per_cta),
      warps_(fibers_.size() / kLanes),
      random_(options.seed),
      slow_one_in_(options.goes_on_one_in) {
  for (int id = 0; id < static_cast<int>(fibers_.size()); ++id) {
    Fiber& fiber = fibers_[id];
    fiber.id = id;
    fiber.cta = id / threads_per_cta;
    fiber.thread = id % threads_per_cta;
    fiber.lane = id % kLanes;
    fiber.num_ctas = num_ctas;
    fiber.card = fiber.cta / num_ctas;
    fiber.warp = &warps_[id / kLanes];
  }
  ready_.reserve(warps_.size());
  polling_.reserve(warps_.size());
  for (size_t i = 0; i < warps_.size(); ++i) {
    warps_[i].fibers = &fibers_[i * kLanes];
    warps_[i].ready = ~0u;
    list_ready(warps_[i]);
  }
  const auto cta_warps = static_cast<uint32_t>(threads_per_cta / kLanes);
  for (size_t first = 0; options.delays_warps && first < warps_.size(); first += cta_warps) {
    const bool is_meant =
        options.delayed_cta < 0 || first / cta_warps == static_cast<size_t>(options.delayed_cta);
    if (is_meant) warps_[first + random_.below(cta_warps)].is_slow = true;
  }
}

bool Scheduler::prepare(StackPool& stacks, size_t stack_bytes, FiberEntry entry) {
  if (!stacks.reserve(static_cast<int>(fibers_.size()), stack_bytes + kLanes * kLaneOffset)) return false;
  for (Fiber& fiber : fibers_) {
    const size_t offset = static_cast<size_t>(fiber.lane) * kLaneOffset;
    auto* top = static_cast<unsigned char*>(stacks.top(fiber.id)) - offset;
    fiber.context = make_context(top, stacks.bytes() - offset, entry);
  }
  return true;
}

void Scheduler::enter() {
  Warp& warp = *ready_[random_.below(static_cast<uint32_t>(ready_.size()))];
  current_ = &warp.fibers[random_.below(kLanes)];
  running = current_;
  switch_context(&outside_, current_->context);
  running = nullptr;
}

void Scheduler::leave() {
  switch_context(&current_->context, outside_);
  __builtin_unreachable();
}

void Scheduler::block(FiberState state) {
  Fiber& fiber = *current_;
  fiber.state = state;
  fiber.waits_since = switches;
  Warp& warp = *fiber.warp;
  warp.ready &= ~(1u << fiber.lane);
  if (state != FiberState::kPolling) return;
  warp.polling |= 1u << fiber.lane;
  if (!warp.in_polling_list) {
    warp.in_polling_list = true;
    polling_.push_back(&warp);
  }
}

void Scheduler::list_ready(Warp& warp) {
  if (warp.in_ready_list) return;
  warp.in_ready_list = true;
  ready_.push_back(&warp);
}

void Scheduler::wake(Fiber& fiber) {
  fiber.state = FiberState::kReady;
  fiber.warp->ready |= 1u << fiber.lane;
  list_ready(*fiber.warp);
}

void Scheduler::wake_warp(Warp& warp) {
  warp.ready = ~0u;
  list_ready(warp);
}

void Scheduler::wake_pollers(Warp& warp) {
  for (uint32_t lanes = warp.polling; lanes != 0; lanes &= lanes - 1)
    wake(warp.fibers[std::countr_zero(lanes)]);
  warp.polling = 0;
  warp.in_polling_list = false;
}

void Scheduler::wake_one_poller() {
  const uint32_t index = random_.below(static_cast<uint32_t>(polling_.size()));
  wake_pollers(*polling_[index]);
  polling_[index] = polling_.back();
  polling_.pop_back();
}

void Scheduler::wake_all_pollers() {
  for (Warp* warp : polling_) wake_pollers(*warp);
  polling_.clear();
}

bool Scheduler::switch_to_any(bool holds_back) {
  while (!ready_.empty()) {
    const uint32_t index = random_.below(static_cast<uint32_t>(ready_.size()));
    Warp& warp = *ready_[index];
    if (warp.ready == 0) {
      warp.in_ready_list = false;
      ready_[index] = ready_.back();
      ready_.pop_back();
      continue;
    }
    if (warp.is_slow && holds_back && random_.below(slow_one_in_) != 0) {
      if (std::all_of(ready_.begin(), ready_.end(), [](const Warp* each) { return each->is_slow; }))
        return false;
      continue;
    }
    const uint32_t turn = random_.below(kLanes);
    switch_to(warp.fibers[(std::countr_zero(std::rotr(warp.ready, static_cast<int>(turn))) + turn) % kLanes]);
    return true;
  }
  return false;
}

void Scheduler::switch_to(Fiber& fiber) {
  if (&fiber == current_) return;
  ++switches;
  Fiber* self = current_;
  current_ = &fiber;
  running = &fiber;
  switch_context(&self->context, fiber.context);
}

}  // namespace soliton::emulation
