#include "primitives/emulation/regions.h"

#include <cstdlib>
#include <map>
#include <mutex>

#include "primitives/emulation/emulator.h"

namespace soliton::emulation {

namespace {

constexpr size_t kAlignment = 256;

struct Allocations {
  std::mutex mutex;
  std::map<uintptr_t, Region> regions;
  int count = 0;
};

Allocations& allocations() {
  static Allocations allocations;
  return allocations;
}

}  // namespace

void* allocate(size_t bytes, int card) {
  void* memory = std::aligned_alloc(kAlignment, (bytes + kAlignment) / kAlignment * kAlignment);
  if (memory == nullptr) return nullptr;
  const auto begin = reinterpret_cast<uintptr_t>(memory);
  const std::lock_guard lock(allocations().mutex);
  allocations().regions[begin] = {begin, bytes, allocations().count++, card};
  return memory;
}

void release(void* memory) {
  {
    const std::lock_guard lock(allocations().mutex);
    allocations().regions.erase(reinterpret_cast<uintptr_t>(memory));
  }
  std::free(memory);
}

std::vector<Region> list_regions() {
  const std::lock_guard lock(allocations().mutex);
  std::vector<Region> list;
  for (const auto& [begin, region] : allocations().regions) list.push_back(region);
  return list;
}

}  // namespace soliton::emulation
