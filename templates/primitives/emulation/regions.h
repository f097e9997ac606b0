// The memory that kernels are given: what Library::allocate and allocate_shared returned and is not yet
// released.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace soliton::emulation {

struct Region {
  uintptr_t begin = 0;
  size_t bytes = 0;
  int ordinal = 0;  // of the allocation, from 0 on
  int card = 0;     // whose memory it is; -1: the host's
};

/// A copy of the list, sorted by address.
std::vector<Region> list_regions();

}  // namespace soliton::emulation
