// Part of primitives/host.h: loads, stores and fences. All accesses to memory go through memcpy, because kernels view the
// same bytes as different types.
#pragma once

#include <atomic>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "primitives/emulation/emulator.h"

namespace soliton {

namespace emulation {

template <class T>
constexpr void require_word() {
  static_assert(std::is_trivially_copyable_v<T>);
  static_assert(sizeof(T) == 1 || sizeof(T) == 2 || sizeof(T) == 4 || sizeof(T) == 8 || sizeof(T) == 16);
}

template <Access access, Space space, class T>
T load(const T* address) {
  require_word<T>();
  if (checking) [[unlikely]]
    check_access(access, space, address, sizeof(T));
  T value;
  std::memcpy(&value, address, sizeof(T));
  return value;
}

template <Access access, Space space, class T>
void store(T* address, T value) {
  require_word<T>();
  if (checking) [[unlikely]]
    check_access(access, space, address, sizeof(T));
  ++num_stores;
  std::memcpy(address, &value, sizeof(T));
}

}  // namespace emulation

template <class T>
T load_shared(const T* address) {
  return emulation::load<emulation::Access::kLoad, emulation::Space::kShared>(address);
}

/// Each lane loads what it receives: no lane waits for others.
template <int kNextRows, int kNextColumns>
uint4 load_matrices(const unsigned char* first, int lane) {
  const auto word = [&](int matrix) {
    return load_shared(reinterpret_cast<const uint32_t*>(first + matrix % 2 * kNextRows +
                                                         matrix / 2 * kNextColumns + lane / 4 * 16) +
                       lane % 4);
  };
  return make_uint4(word(0), word(1), word(2), word(3));
}

template <class T>
void store_shared(T* address, std::type_identity_t<T> value) {
  emulation::store<emulation::Access::kStore, emulation::Space::kShared>(address, value);
}

template <class T>
T load_constant(const T* address) {
  return emulation::load<emulation::Access::kConstantLoad, emulation::Space::kGlobal>(address);
}

template <class T>
T load_global(const T* address) {
  return emulation::load<emulation::Access::kLoad, emulation::Space::kGlobal>(address);
}

template <class T>
void store_global(T* address, std::type_identity_t<T> value) {
  emulation::store<emulation::Access::kStore, emulation::Space::kGlobal>(address, value);
}

template <class T>
T load_relaxed(const T* address) {
  return emulation::load<emulation::Access::kRelaxedLoad, emulation::Space::kGlobal>(address);
}

template <class T>
void store_relaxed(T* address, std::type_identity_t<T> value) {
  constexpr auto kAccess = emulation::Access::kRelaxedStore;
  if (emulation::delaying) [[unlikely]]
    return emulation::store_wide(kAccess, address, &value, sizeof value);
  emulation::store<kAccess, emulation::Space::kGlobal>(address, value);
}

inline uint32_t load_hint(const uint32_t* address) {
  return emulation::load<emulation::Access::kRelaxedLoad, emulation::Space::kShared>(address);
}
inline void store_hint(uint32_t* address, uint32_t value) {
  if (value != 0 && emulation::drops_hints()) return;
  emulation::store<emulation::Access::kRelaxedStore, emulation::Space::kShared>(address, value);
}

inline uint32_t load_acquire(const uint32_t* address) {
  return emulation::load<emulation::Access::kAcquireLoad, emulation::Space::kGlobal>(address);
}

inline void add_release(uint32_t* address, uint32_t value) {
  using emulation::Access, emulation::Space;
  if (emulation::delaying) [[unlikely]]
    emulation::land_stores_before();
  if (emulation::checking) [[unlikely]] {
    emulation::check_access(Access::kReleaseAdd, Space::kGlobal, address, sizeof *address);
  }
  ++emulation::num_stores;
  *address += value;
}

namespace emulation {

template <Space space, class T>
void add(T* address, T value) {
  if (checking) [[unlikely]]
    check_access(Access::kRelaxedAdd, space, address, sizeof *address);
  ++num_stores;
  *address += value;
}

}  // namespace emulation

inline void add_relaxed(uint64_t* address, uint64_t value) {
  emulation::add<emulation::Space::kGlobal>(address, value);
}
inline void add_shared(uint32_t* address, uint32_t value) {
  emulation::add<emulation::Space::kShared>(address, value);
}

/// The host is another OS thread: words of 4 and 8 bytes are really atomic.
template <class T>
T load_system(const T* address) {
  emulation::note_host_load();
  if constexpr (sizeof(T) == 4 || sizeof(T) == 8) {
    emulation::require_word<T>();
    using emulation::Access, emulation::Space;
    if (emulation::checking) [[unlikely]] {
      emulation::check_access(Access::kSystemLoad, Space::kGlobal, address, sizeof(T));
    }
    return std::atomic_ref(*const_cast<T*>(address)).load(std::memory_order_acquire);
  } else {
    return emulation::load<emulation::Access::kSystemLoad, emulation::Space::kGlobal>(address);
  }
}

template <class T>
void store_system(T* address, std::type_identity_t<T> value) {
  if constexpr (sizeof(T) == 4 || sizeof(T) == 8) {
    emulation::require_word<T>();
    using emulation::Access, emulation::Space;
    if (emulation::checking) [[unlikely]] {
      emulation::check_access(Access::kSystemStore, Space::kGlobal, address, sizeof(T));
    }
    ++emulation::num_stores;
    std::atomic_ref(*address).store(value, std::memory_order_release);
  } else {
    emulation::store<emulation::Access::kSystemStore, emulation::Space::kGlobal>(address, value);
  }
}

inline void fence_device() {
  emulation::fence_device();
}
inline void fence_system() {
  emulation::fence_system();
}
inline void fence_async_global() {
  emulation::fence_async_global();
}
inline void fence_async_shared() {
  emulation::fence_async_shared();
}

}  // namespace soliton
