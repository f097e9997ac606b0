// Several cards: a store to another card's memory lands late, and out of order with all but what a fence_system of
// its thread, or of one that is ordered behind it, comes between.
#include <algorithm>
#include <cstring>

#include "primitives/emulation/launch.h"
#include "primitives/emulation/report.h"

namespace soliton::emulation {

namespace {

constexpr uint32_t kLandHalf = 2;  // of the stores on their way, when nobody can go on without one

/// Adds a word of T to what stands at an address.
template <class T>
void add_word(void* address, const unsigned char* value) {
  T sum, addend;
  std::memcpy(&sum, address, sizeof sum);
  std::memcpy(&addend, value, sizeof addend);
  sum += addend;
  std::memcpy(address, &sum, sizeof sum);
}

void perform(Access access, void* address, const unsigned char* value, size_t bytes) {
  ++num_stores;
  if (!is_add(access)) {
    std::memcpy(address, value, bytes);
  } else if (bytes == sizeof(uint32_t)) {
    add_word<uint32_t>(address, value);
  } else {
    add_word<uint64_t>(address, value);
  }
}

}  // namespace

/// What the fault makes of an access of system scope.
Access Launch::scoped(Access access) const {
  if (holds(FaultKind::kWeakenSystemRelease) && access == Access::kSystemReleaseAdd)
    return Access::kReleaseAdd;
  if (!holds(FaultKind::kWeakenSystemAccess)) return access;
  if (access == Access::kSystemRelaxedStore) return Access::kRelaxedStore;
  return access == Access::kSystemRelaxedLoad ? Access::kRelaxedLoad : access;
}

/// -1: of the host, or none that was allocated.
int Launch::card_of(const void* address) const {
  const auto at = reinterpret_cast<uintptr_t>(address);
  const auto after =
      std::upper_bound(regions_.begin(), regions_.end(), at,
                       [](uintptr_t value, const Region& region) { return value < region.begin; });
  if (after == regions_.begin()) return -1;
  const Region& region = *std::prev(after);
  return at - region.begin < region.bytes ? region.card : -1;
}

void Launch::check_scope(Access access, const void* address) {
  if (cards_.size() == 1 || is_wide(access)) return;
  const int card = races_->card_of_address(address);
  if (card < 0 || card == running->card) return;
  fail("memory of card " + std::to_string(card) + " used at the scope of card " +
       std::to_string(running->card) + " by " + describe_thread(scheduler_.current()));
}

void Launch::load_wide(Access access, const void* address, void* value, size_t bytes) {
  if (checking) check_access(scoped(access), Space::kGlobal, address, bytes);
  std::memcpy(value, address, bytes);
}

void Launch::store_wide(Access access, void* address, const void* value, size_t bytes) {
  const Fiber& self = scheduler_.current();
  RemoteStore store{.access = scoped(access), .address = address, .bytes = bytes, .cta = self.cta};
  std::memcpy(store.value, value, bytes);
  if (access == Access::kSystemReleaseAdd && store.access == access) land_stores_before();
  const int card = card_of(address);
  if (card < 0 || card == self.card) {
    if (checking) check_access(store.access, Space::kGlobal, address, bytes);
    perform(store.access, address, store.value, bytes);
    return;
  }
  ++control_.stats.remote_stores;
  maybe_preempt();
  if (checking) {
    if (std::string text = races_->check_bounds(Space::kGlobal, self.cta, address, bytes); !text.empty())
      fail(text + ": " + std::to_string(bytes) + " bytes used by " + describe_thread(self));
    check_scope(store.access, address);
    store.race = races_->begin_remote(self.id, store.access);
  }
  stores_.push_back(std::move(store));
  if (options_.copies == CopyPolicy::kEager) land_store(stores_.size() - 1);
}

/// Does a store come before what the running thread does behind a fence_system? Unchecked launches know no order
/// between threads: there all of a CTA do.
bool Launch::is_before(const RemoteStore& store) const {
  if (checking) return races_->is_known(static_cast<const Fiber*>(running)->id, store.race);
  return store.cta == running->cta;
}

void Launch::land_stores_before() {
  for (size_t i = 0; i < stores_.size();) {
    if (is_before(stores_[i])) {
      land_store(i);
      i = 0;
    } else {
      ++i;
    }
  }
}

void Launch::land_some_stores() {
  const size_t before = stores_.size();
  for (size_t i = stores_.size(); i-- > 0;) {
    if (i < stores_.size() && scheduler_.random().below(kLandHalf) == 0) land_store(i);
  }
  if (stores_.size() == before) land_store(scheduler_.random().below(static_cast<uint32_t>(before)));
}

/// Lands a store, or an earlier one of the same thread to the same address.
void Launch::land_store(size_t index) {
  const auto same = [&](const RemoteStore& other) {
    return other.address == stores_[index].address && other.cta == stores_[index].cta;
  };
  const auto first = std::find_if(stores_.begin(), stores_.end(), same);
  const RemoteStore store = std::move(*first);
  stores_.erase(first);
  if (checking) {
    Race race;
    if (!races_->land_remote(store.race, store.address, store.bytes, &race)) fail_race(race);
  }
  perform(store.access, store.address, store.value, store.bytes);
}

void Launch::fence_system() {
  maybe_preempt();
  if (holds(FaultKind::kWeakenSystemFence)) return fence_device();
  land_stores_before();
  if (checking) races_->fence_system(scheduler_.current().id);
}

}  // namespace soliton::emulation
