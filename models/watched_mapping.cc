// The handler may interrupt any thread anywhere. So it takes no lock and allocates nothing: it walks a list of slots,
// which are used again but never freed. It puts zeros under the read that failed, which then goes on.
#include "models/watched_mapping.h"

#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdint>
#include <mutex>

namespace soliton {

/// What the handler knows of a mapping. Free while `end` is 0.
struct MappingSlot {
  std::atomic<uintptr_t> begin{0};
  std::atomic<uintptr_t> end{0};
  std::atomic<bool> has_lost_bytes{false};
  MappingSlot* next = nullptr;  // set before the slot is in the list
};

namespace {

static_assert(std::atomic<uintptr_t>::is_always_lock_free && std::atomic<bool>::is_always_lock_free &&
                  std::atomic<MappingSlot*>::is_always_lock_free,
              "a handler cannot wait for the thread that it interrupts");

std::mutex slots_lock;  // of all that take a slot
std::atomic<MappingSlot*> first_slot{nullptr};
// Both are set before the handler is.
uintptr_t page_bytes = 0;
struct sigaction handler_before = {};

MappingSlot* slot_of(uintptr_t address) {
  for (MappingSlot* slot = first_slot.load(); slot != nullptr; slot = slot->next) {
    if (slot->begin.load() <= address && address < slot->end.load()) return slot;
  }
  return nullptr;
}

/// Zeros from the address's page to the mapping's end: where one page is gone, those behind it mostly are.
bool put_zeros(const MappingSlot& slot, uintptr_t address) {
  const uintptr_t page = address / page_bytes * page_bytes;
  void* const zeros = ::mmap(reinterpret_cast<void*>(page), slot.end.load() - page, PROT_READ,
                             MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
  return zeros != MAP_FAILED;
}

void on_bus_error(int number, siginfo_t* info, void*) {
  const int error = errno;
  const bool is_of_a_read = info->si_code > 0;  // else somebody sent it
  const auto address = reinterpret_cast<uintptr_t>(info->si_addr);
  MappingSlot* const slot = is_of_a_read ? slot_of(address) : nullptr;
  // Known before any thread can read a zero.
  if (slot != nullptr) slot->has_lost_bytes.store(true);
  if (slot == nullptr || !put_zeros(*slot, address)) {
    // The handler before has it once this one returns: the read fails again, or the signal is delivered again.
    ::sigaction(number, &handler_before, nullptr);
    if (!is_of_a_read) ::raise(number);
  }
  errno = error;
}

void set_handler() {
  page_bytes = static_cast<uintptr_t>(::sysconf(_SC_PAGESIZE));
  struct sigaction action {};
  action.sa_sigaction = on_bus_error;
  action.sa_flags = SA_SIGINFO | SA_RESTART | SA_ONSTACK;
  ::sigemptyset(&action.sa_mask);
  ::sigaction(SIGBUS, nullptr, &handler_before);
  ::sigaction(SIGBUS, &action, nullptr);
}

MappingSlot* take_slot(uintptr_t begin, uintptr_t end) {
  const std::lock_guard guard(slots_lock);
  MappingSlot* slot = first_slot.load();
  if (slot == nullptr) set_handler();
  while (slot != nullptr && slot->end.load() != 0) slot = slot->next;
  if (slot == nullptr) {
    slot = new MappingSlot;
    slot->next = first_slot.load();
    first_slot.store(slot);
  }
  slot->begin.store(begin);
  slot->has_lost_bytes.store(false);
  slot->end.store(end);
  return slot;
}

}  // namespace

WatchedMapping::WatchedMapping(void* address, size_t num_bytes)
    : bytes_(static_cast<const std::byte*>(address), num_bytes),
      slot_(take_slot(reinterpret_cast<uintptr_t>(address),
                      reinterpret_cast<uintptr_t>(address) + num_bytes)) {}

WatchedMapping::~WatchedMapping() {
  slot_->end.store(0);  // first: what is unmapped may be another mapping at once
  ::munmap(const_cast<std::byte*>(bytes_.data()), bytes_.size());
}

bool WatchedMapping::has_lost_bytes() const {
  return slot_->has_lost_bytes.load();
}

}  // namespace soliton
