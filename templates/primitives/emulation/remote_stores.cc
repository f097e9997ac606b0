// Several cards: a store to another card's memory lands late, and out of order with all but what a fence_system of
// its thread, or of one that is ordered behind it, comes between. Relaxed stores of a card do likewise, for any fence, where
// a launch delays stores.
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

size_t RemoteStores::Hash::operator()(const RemotePlace& place) const {
  constexpr size_t kOdd = 0x9e3779b97f4a7c15ull;
  return ((reinterpret_cast<uintptr_t>(place.address) >> 2) * kOdd ^ static_cast<size_t>(place.cta)) * kOdd;
}

void RemoteStores::add(std::unique_ptr<RemoteStore> store) {
  store->number = num_made_++;
  store->index = all_.size();
  RemoteLine& line = lines_[store->place];
  store->line = &line;
  (line.first == nullptr ? line.first : line.last->next) = store.get();
  line.last = store.get();
  all_.push_back(std::move(store));
}

std::unique_ptr<RemoteStore> RemoteStores::take_first(RemoteLine& line, uint64_t last) {
  if (line.first == nullptr || line.first->number > last) return nullptr;
  const size_t index = line.first->index;
  line.first = line.first->next;
  std::unique_ptr<RemoteStore> taken = std::move(all_[index]);
  if (index + 1 < all_.size()) {
    all_[index] = std::move(all_.back());
    all_[index]->index = index;
  }
  all_.pop_back();
  return taken;
}

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
  const Access made = scoped(access);
  if (access == Access::kSystemReleaseAdd && made == access) land_stores_before();
  const int card = card_of(address);
  if (card < 0 || (card == self.card && !delaying)) {
    if (checking) check_access(made, Space::kGlobal, address, bytes);
    perform(made, address, static_cast<const unsigned char*>(value), bytes);
    return;
  }
  ++control_.stats.remote_stores;
  maybe_preempt();
  if (checking) {
    if (std::string text = races_->check_bounds(Space::kGlobal, self.cta, address, bytes); !text.empty())
      fail(text + ": " + std::to_string(bytes) + " bytes used by " + describe_thread(self));
    check_scope(made, address);
  }
  auto store = std::make_unique<RemoteStore>(
      RemoteStore{.access = made, .place = {address, self.cta}, .bytes = bytes});
  std::memcpy(store->value, value, bytes);
  if (checking) store->race = races_->begin_remote(self.id, made);
  stores_.add(std::move(store));
  if (options_.copies == CopyPolicy::kEager) land_store(stores_.size() - 1);
}

/// Does a store come before what the running thread does behind a fence_system? Unchecked launches know no order
/// between threads: there all of a CTA do.
bool Launch::is_before(const RemoteStore& store) const {
  if (checking) return races_->is_known(static_cast<const Fiber*>(running)->id, store.race);
  return store.place.cta == running->cta;
}

void Launch::land_stores_before() {
  before_.clear();
  for (size_t i = 0; i < stores_.size(); ++i) {
    if (is_before(stores_[i])) before_.emplace_back(stores_[i].line, stores_[i].number);
  }
  for (const auto& [line, number] : before_) {
    while (auto store = stores_.take_first(*line, number)) land_store(std::move(store));
  }
}

void Launch::land_some_stores() {
  const size_t before = stores_.size();
  for (size_t i = stores_.size(); i-- > 0;) {
    if (i < stores_.size() && scheduler_.random().below(kLandHalf) == 0) land_store(i);
  }
  if (stores_.size() == before) land_store(scheduler_.random().below(static_cast<uint32_t>(before)));
}

/// Lands a store, or an earlier one of the same place.
void Launch::land_store(size_t index) {
  land_store(stores_.take_first(*stores_[index].line, stores_[index].number));
}

void Launch::land_store(std::unique_ptr<RemoteStore> store) {
  void* const address = store->place.address;
  if (checking) {
    Race race;
    if (!races_->land_remote(store->race, address, store->bytes, &race)) fail_race(race);
  }
  perform(store->access, address, store->value, store->bytes);
}

void Launch::fence_system() {
  maybe_preempt();
  if (holds(FaultKind::kWeakenSystemFence)) return fence_device();
  land_stores_before();
  if (checking) races_->fence_system(scheduler_.current().id);
}

}  // namespace soliton::emulation
