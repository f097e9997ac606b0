// Accesses of several cards' memory, in emulation.
#pragma once

#include "primitives/host.h"

namespace soliton {

namespace emulation {

template <Access access, class T>
T load_wide(const T* address) {
  require_word<T>();
  T value;
  load_wide(access, address, &value, sizeof value);
  return value;
}
template <Access access, class T>
void store_wide(T* address, T value) {
  require_word<T>();
  store_wide(access, address, &value, sizeof value);
}

}  // namespace emulation

template <class T>
T load_relaxed_system(const T* address) {
  return emulation::load_wide<emulation::Access::kSystemRelaxedLoad>(address);
}
template <class T>
void store_relaxed_system(T* address, std::type_identity_t<T> value) {
  emulation::store_wide<emulation::Access::kSystemRelaxedStore>(address, value);
}
inline uint32_t load_acquire_system(const uint32_t* address) {
  return emulation::load_wide<emulation::Access::kSystemAcquireLoad>(address);
}
inline void add_release_system(uint32_t* address, uint32_t value) {
  emulation::store_wide<emulation::Access::kSystemReleaseAdd>(address, value);
}
inline void add_fenced_system(uint32_t* address, uint32_t value) {
  emulation::store_wide<emulation::Access::kSystemFencedAdd>(address, value);
}
inline void add_relaxed_system(uint64_t* address, uint64_t value) {
  emulation::store_wide<emulation::Access::kSystemRelaxedAdd>(address, value);
}

}  // namespace soliton
