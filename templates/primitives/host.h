// The contract of primitives.h for the host: thin wrappers around the emulator. All accesses to memory go
// through memcpy, because kernels view the same bytes as different types.
#pragma once

#include <algorithm>
#include <atomic>
#include <bit>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "layout/f16.h"
#include "layout/launch.h"
#include "primitives/emulation/emulator.h"

#define SOLITON_DEVICE inline
#define SOLITON_KERNEL(threads) void
#define SOLITON_CONSTANT constexpr
#define SOLITON_UNROLL
#define SOLITON_UNROLL_BY_2
#define SOLITON_UNROLL_BY_8
#define SOLITON_NO_UNROLL

namespace soliton {

struct alignas(8) uint2 {
  uint32_t x, y;
};
struct alignas(16) uint4 {
  uint32_t x, y, z, w;
};
struct alignas(8) float2 {
  float x, y;
};
struct alignas(16) float4 {
  float x, y, z, w;
};
constexpr uint2 make_uint2(uint32_t x, uint32_t y) {
  return {x, y};
}
constexpr uint4 make_uint4(uint32_t x, uint32_t y, uint32_t z, uint32_t w) {
  return {x, y, z, w};
}
constexpr float2 make_float2(float x, float y) {
  return {x, y};
}
constexpr float4 make_float4(float x, float y, float z, float w) {
  return {x, y, z, w};
}

inline int thread_index() {
  return emulation::running->thread;
}
inline int cta_index() {
  return emulation::running->cta % emulation::running->num_ctas;
}
inline int num_ctas() {
  return emulation::running->num_ctas;
}
inline unsigned char* shared_memory() {
  return emulation::running->shared;
}
inline void cta_sync() {
  emulation::synchronise_cta();
}

inline int opaque(int value) {
  return value;
}

// Warp collectives.
namespace emulation {

template <class T>
struct ShuffleOperand {
  T value;
  int lane;  // that it takes its value from
  T result;
};

template <class T>
void exchange(void* const* operands) {
  for (int lane = 0; lane < 32; ++lane) {
    auto& operand = *static_cast<ShuffleOperand<T>*>(operands[lane]);
    operand.result = static_cast<const ShuffleOperand<T>*>(operands[operand.lane])->value;
  }
}

inline void vote_any(void* const* operands) {
  bool any = false;
  for (int lane = 0; lane < 32; ++lane) any |= *static_cast<const bool*>(operands[lane]);
  for (int lane = 0; lane < 32; ++lane) *static_cast<bool*>(operands[lane]) = any;
}

inline void find_max(void* const* operands) {
  uint32_t most = 0;
  for (int lane = 0; lane < 32; ++lane) most = std::max(most, *static_cast<const uint32_t*>(operands[lane]));
  for (int lane = 0; lane < 32; ++lane) *static_cast<uint32_t*>(operands[lane]) = most;
}

inline void do_nothing(void* const*) {}

template <class T>
T shuffle_from(T value, int lane, const char* name) {
  static_assert(std::is_trivially_copyable_v<T>);
  ShuffleOperand<T> operand{value, lane, value};
  collective(exchange<T>, name, &operand);
  return operand.result;
}

}  // namespace emulation

template <int kCount>
void take_registers() {}
template <int kCount>
void give_registers() {}

inline bool elect_lane() {
  return thread_index() % 32 == 0;
}
inline void warp_sync() {
  emulation::collective(emulation::do_nothing, "warp_sync", nullptr);
}

template <class T>
T shuffle(T value, int lane) {
  return emulation::shuffle_from(value, lane & 31, "shuffle");
}

template <class T>
T shuffle_xor(T value, int mask) {
  return emulation::shuffle_from(value, ((thread_index() % 32) ^ mask) & 31, "shuffle_xor");
}

/// Lanes whose source lies past the warp keep their value.
template <class T>
T shuffle_down(T value, int delta) {
  const int lane = thread_index() % 32;
  return emulation::shuffle_from(value, lane + delta < 32 ? lane + delta : lane, "shuffle_down");
}

inline bool warp_any(bool condition) {
  emulation::collective(emulation::vote_any, "warp_any", &condition);
  return condition;
}

inline int lowest_lane(bool condition) {
  struct Operand {
    bool condition;
    int lane;
  } operand{condition, 0};
  emulation::collective(
      [](void* const* operands) {
        int lane = 0;
        while (lane < 31 && !static_cast<const Operand*>(operands[lane])->condition) ++lane;
        for (int i = 0; i < 32; ++i) static_cast<Operand*>(operands[i])->lane = lane;
      },
      "lowest_lane", &operand);
  return operand.lane;
}

inline uint32_t warp_max(uint32_t value) {
  emulation::collective(emulation::find_max, "warp_max", &value);
  return value;
}

/// The sum over k = 0..15 is made in that order in fp32, then added to c. The tensor core sums in another
/// order and truncates: results differ in the last bits.
inline void mma_bf16(float (&c)[4], uint4 a, uint2 b) {
  emulation::MmaOperand operand{c, {a.x, a.y, a.z, a.w}, {b.x, b.y}};
  emulation::collective(emulation::multiply_accumulate, "mma_bf16", &operand);
}

inline void mma_f16(float (&c)[4], uint4 a, uint2 b) {
  emulation::MmaOperand operand{c, {a.x, a.y, a.z, a.w}, {b.x, b.y}};
  emulation::collective(emulation::multiply_accumulate_f16, "mma_f16", &operand);
}

inline void mma_u8_s8(int32_t (&c)[4], uint4 a, uint2 b) {
  emulation::IntegerMmaOperand operand{c, {a.x, a.y, a.z, a.w}, {b.x, b.y}};
  emulation::collective(emulation::multiply_accumulate_u8, "mma_u8_s8", &operand);
}

inline void mma_s8_s8(int32_t (&c)[4], uint4 a, uint2 b) {
  emulation::IntegerMmaOperand operand{c, {a.x, a.y, a.z, a.w}, {b.x, b.y}};
  emulation::collective(emulation::multiply_accumulate_s8, "mma_s8_s8", &operand);
}

inline uint32_t transpose_8x8(uint32_t value) {
  emulation::collective(emulation::transpose, "transpose_8x8", &value);
  return value;
}

// Memory.

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
inline void fence_async() {
  emulation::fence_async();
}

}  // namespace soliton

#include "primitives/host_arithmetic.h"  // with the macros from here
#include "primitives/host_system.h"
#include "primitives/host_waits.h"
