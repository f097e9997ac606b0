// The primitives on an NVIDIA GPU of compute capability 8.0 and up: every line of PTX of the project stands here and in
// the headers cuda_*.h beside it. The contract is in primitives.h. Bulk copies, and barriers that a thread sleeps at, are
// only in code for cards that have them (SOLITON_BULK_COPY_CAPABILITY).
#pragma once

#include <cuda_fp16.h>

#include <cstdint>

#include "layout/launch.h"

#define SOLITON_DEVICE __device__ __forceinline__
#define SOLITON_KERNEL(threads) __global__ void __launch_bounds__(threads, 1)
#define SOLITON_CONSTANT __constant__ constexpr
#define SOLITON_UNROLL _Pragma("unroll")
#define SOLITON_PRAGMA(text) _Pragma(#text)
#define SOLITON_UNROLL_BY(count) SOLITON_PRAGMA(unroll count)
#define SOLITON_NO_UNROLL _Pragma("unroll 1")

namespace soliton {

#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 10 * SOLITON_BULK_COPY_CAPABILITY
#define SOLITON_SM_90
#endif
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 890
#define SOLITON_SM_89
#endif

SOLITON_DEVICE int thread_index() {
  return static_cast<int>(threadIdx.x);
}
SOLITON_DEVICE int cta_index() {
  return static_cast<int>(blockIdx.x);
}
SOLITON_DEVICE int num_ctas() {
  return static_cast<int>(gridDim.x);
}
SOLITON_DEVICE void cta_sync() {
  __syncthreads();
}

SOLITON_DEVICE unsigned char* shared_memory() {
  extern __shared__ __align__(1024) unsigned char shared[];
  return shared;
}

SOLITON_DEVICE uint32_t shared_address(const void* pointer) {
  return static_cast<uint32_t>(__cvta_generic_to_shared(pointer));
}

/// The value as it is, but unknown to the optimiser: what is derived from it is computed here and not kept in
/// registers from phase to phase.
SOLITON_DEVICE int opaque(int value) {
  asm volatile("" : "+r"(value));
  return value;
}

SOLITON_DEVICE void demand(bool /*holds*/, const char* /*what*/) {}

// Registers of warpgroups.
#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
template <int kCount>
SOLITON_DEVICE void take_registers() {
  asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(kCount));
}
template <int kCount>
SOLITON_DEVICE void give_registers() {
  asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(kCount));
}
#else
template <int kCount>
SOLITON_DEVICE void take_registers() {}
template <int kCount>
SOLITON_DEVICE void give_registers() {}
#endif

// Warp collectives.

constexpr unsigned kAllLanes = 0xffffffffu;

SOLITON_DEVICE void warp_sync() {
  __syncwarp();
}
/// True in one lane, the first, of a whole warp. The compiler knows that one lane goes on, and gives bulk copies their
/// operands without asking all.
SOLITON_DEVICE bool elect_lane() {
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900
  uint32_t elected;
  asm volatile(
      "{\n\t.reg .pred elected;\n\telect.sync _|elected, 0xffffffff;\n\tselp.u32 %0, 1, 0, elected;\n\t}"
      : "=r"(elected));
  return elected != 0;
#else
  return thread_index() % 32 == 0;
#endif
}
SOLITON_DEVICE bool warp_any(bool condition) {
  return __any_sync(kAllLanes, condition);
}
template <class T>
SOLITON_DEVICE T shuffle(T value, int lane) {
  return __shfl_sync(kAllLanes, value, lane);
}
template <class T>
SOLITON_DEVICE T shuffle_xor(T value, int mask) {
  return __shfl_xor_sync(kAllLanes, value, mask);
}
template <class T>
SOLITON_DEVICE T shuffle_down(T value, int delta) {
  return __shfl_down_sync(kAllLanes, value, delta);
}

SOLITON_DEVICE int lowest_lane(bool condition) {
  return __ffs(static_cast<int>(__ballot_sync(kAllLanes, condition))) - 1;
}

SOLITON_DEVICE uint32_t warp_max(uint32_t value) {
  return __reduce_max_sync(kAllLanes, value);
}

SOLITON_DEVICE int32_t warp_sum(int32_t value) {
  return __reduce_add_sync(kAllLanes, value);
}

struct MmaBatch {
  SOLITON_DEVICE MmaBatch() {}
  SOLITON_DEVICE void end() {}
};
SOLITON_DEVICE void mma_bf16(float (&c)[4], uint4 a, uint2 b) {
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, "
      "{%0,%1,%2,%3};"
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
      : "r"(a.x), "r"(a.y), "r"(a.z), "r"(a.w), "r"(b.x), "r"(b.y));
}

SOLITON_DEVICE void mma_f16(float (&c)[4], uint4 a, uint2 b) {
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, "
      "{%0,%1,%2,%3};"
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
      : "r"(a.x), "r"(a.y), "r"(a.z), "r"(a.w), "r"(b.x), "r"(b.y));
}

SOLITON_DEVICE void mma_u8_s8(int32_t (&c)[4], uint4 a, uint2 b) {
  asm volatile(
      "mma.sync.aligned.m16n8k32.row.col.s32.u8.s8.s32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, "
      "{%0,%1,%2,%3};"
      : "+r"(c[0]), "+r"(c[1]), "+r"(c[2]), "+r"(c[3])
      : "r"(a.x), "r"(a.y), "r"(a.z), "r"(a.w), "r"(b.x), "r"(b.y));
}

SOLITON_DEVICE void mma_s8_s8(int32_t (&c)[4], uint4 a, uint2 b) {
  asm volatile(
      "mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, "
      "{%0,%1,%2,%3};"
      : "+r"(c[0]), "+r"(c[1]), "+r"(c[2]), "+r"(c[3])
      : "r"(a.x), "r"(a.y), "r"(a.z), "r"(a.w), "r"(b.x), "r"(b.y));
}

SOLITON_DEVICE uint32_t transpose_8x8(uint32_t value) {
  uint32_t result;
  asm volatile("movmatrix.sync.aligned.m8n8.trans.b16 %0, %1;" : "=r"(result) : "r"(value));
  return result;
}

template <int kNextRows, int kNextColumns>
SOLITON_DEVICE uint4 load_matrices(const unsigned char* first, int lane) {
  const uint32_t row =
      shared_address(first) + lane / 8 % 2 * kNextRows + lane / 16 * kNextColumns + lane % 8 * 16;
  uint4 v;
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared::cta.b16 {%0,%1,%2,%3}, [%4];"
               : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
               : "r"(row));
  return v;
}

// Shared memory.

template <class T>
SOLITON_DEVICE T load_shared(const T* pointer) {
  return *pointer;
}
template <class T>
SOLITON_DEVICE void store_shared(T* pointer, T value) {
  *pointer = value;
}

// Global memory.

template <class T>
SOLITON_DEVICE T load_constant(const T* pointer) {
  return __ldg(pointer);
}
template <class T>
SOLITON_DEVICE T load_global(const T* pointer) {
  return __ldcg(pointer);
}
template <class T>
SOLITON_DEVICE void store_global(T* pointer, T value) {
  *pointer = value;
}

SOLITON_DEVICE float4 load_relaxed(const float4* pointer) {
  float4 v;
  asm volatile("ld.relaxed.gpu.global.v4.f32 {%0,%1,%2,%3}, [%4];"
               : "=f"(v.x), "=f"(v.y), "=f"(v.z), "=f"(v.w)
               : "l"(pointer)
               : "memory");
  return v;
}
SOLITON_DEVICE uint2 load_relaxed(const uint2* pointer) {
  uint2 v;
  asm volatile("ld.relaxed.gpu.global.v2.u32 {%0,%1}, [%2];"
               : "=r"(v.x), "=r"(v.y)
               : "l"(pointer)
               : "memory");
  return v;
}
SOLITON_DEVICE uint4 load_relaxed(const uint4* pointer) {
  uint4 v;
  asm volatile("ld.relaxed.gpu.global.v4.u32 {%0,%1,%2,%3}, [%4];"
               : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
               : "l"(pointer)
               : "memory");
  return v;
}
SOLITON_DEVICE float load_relaxed(const float* pointer) {
  float v;
  asm volatile("ld.relaxed.gpu.global.f32 %0, [%1];" : "=f"(v) : "l"(pointer) : "memory");
  return v;
}
SOLITON_DEVICE uint64_t load_relaxed(const uint64_t* pointer) {
  uint64_t v;
  asm volatile("ld.relaxed.gpu.global.u64 %0, [%1];" : "=l"(v) : "l"(pointer) : "memory");
  return v;
}
SOLITON_DEVICE void store_relaxed(float4* pointer, float4 v) {
  asm volatile("st.relaxed.gpu.global.v4.f32 [%0], {%1,%2,%3,%4};" ::"l"(pointer), "f"(v.x), "f"(v.y),
               "f"(v.z), "f"(v.w)
               : "memory");
}
SOLITON_DEVICE void store_relaxed(uint4* pointer, uint4 v) {
  asm volatile("st.relaxed.gpu.global.v4.u32 [%0], {%1,%2,%3,%4};" ::"l"(pointer), "r"(v.x), "r"(v.y),
               "r"(v.z), "r"(v.w)
               : "memory");
}
SOLITON_DEVICE void store_relaxed(uint32_t* pointer, uint32_t value) {
  asm volatile("st.relaxed.gpu.global.u32 [%0], %1;" ::"l"(pointer), "r"(value) : "memory");
}
SOLITON_DEVICE void store_relaxed(uint2* pointer, uint2 v) {
  asm volatile("st.relaxed.gpu.global.v2.u32 [%0], {%1,%2};" ::"l"(pointer), "r"(v.x), "r"(v.y) : "memory");
}
SOLITON_DEVICE void store_relaxed(float2* pointer, float2 v) {
  asm volatile("st.relaxed.gpu.global.v2.f32 [%0], {%1,%2};" ::"l"(pointer), "f"(v.x), "f"(v.y) : "memory");
}
SOLITON_DEVICE void store_relaxed(float* pointer, float value) {
  asm volatile("st.relaxed.gpu.global.f32 [%0], %1;" ::"l"(pointer), "f"(value) : "memory");
}
SOLITON_DEVICE void store_relaxed(uint64_t* pointer, uint64_t value) {
  asm volatile("st.relaxed.gpu.global.u64 [%0], %1;" ::"l"(pointer), "l"(value) : "memory");
}
SOLITON_DEVICE uint32_t load_acquire(const uint32_t* pointer) {
  uint32_t v;
  asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(v) : "l"(pointer) : "memory");
  return v;
}
SOLITON_DEVICE void add_release(uint32_t* pointer, uint32_t value) {
  asm volatile("red.release.gpu.global.add.u32 [%0], %1;" ::"l"(pointer), "r"(value) : "memory");
}
SOLITON_DEVICE void add_relaxed(uint64_t* pointer, uint64_t value) {
  asm volatile("red.relaxed.gpu.global.add.u64 [%0], %1;" ::"l"(pointer), "l"(value) : "memory");
}
// compute-sanitizer's racecheck takes relaxed accesses for races: in a build for it no hint is given.
#if defined(SOLITON_RACECHECK)
constexpr bool kGivesHints = false;
#else
constexpr bool kGivesHints = true;
#endif

SOLITON_DEVICE uint32_t load_hint(const uint32_t* pointer) {
  if (!kGivesHints) return 0;
  uint32_t v;
  asm volatile("ld.relaxed.cta.shared::cta.u32 %0, [%1];"
               : "=r"(v)
               : "r"(shared_address(pointer))
               : "memory");
  return v;
}
SOLITON_DEVICE void store_hint(uint32_t* pointer, uint32_t value) {
  if (!kGivesHints) return;
  asm volatile("st.relaxed.cta.shared::cta.u32 [%0], %1;" ::"r"(shared_address(pointer)), "r"(value)
               : "memory");
}
SOLITON_DEVICE void add_shared(uint32_t* pointer, uint32_t value) {
  asm volatile("red.relaxed.cta.shared::cta.add.u32 [%0], %1;" ::"r"(shared_address(pointer)), "r"(value)
               : "memory");
}
SOLITON_DEVICE uint32_t load_system(const uint32_t* pointer) {
  uint32_t v;
  asm volatile("ld.relaxed.sys.global.u32 %0, [%1];" : "=r"(v) : "l"(pointer) : "memory");
  return v;
}
SOLITON_DEVICE void store_system(uint64_t* pointer, uint64_t value) {
  asm volatile("st.relaxed.sys.global.u64 [%0], %1;" ::"l"(pointer), "l"(value) : "memory");
}
SOLITON_DEVICE void store_system(float* pointer, float value) {
  asm volatile("st.relaxed.sys.global.f32 [%0], %1;" ::"l"(pointer), "f"(value) : "memory");
}
SOLITON_DEVICE void fence_device() {
  __threadfence();
}
SOLITON_DEVICE void fence_system() {
  __threadfence_system();
}
SOLITON_DEVICE void fence_async_global() {
  asm volatile("fence.proxy.async.global;" ::: "memory");
}
SOLITON_DEVICE void fence_async_shared() {
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}

}  // namespace soliton

#include "primitives/cuda_arithmetic.h"  // with the macros from here
#include "primitives/cuda_copies.h"
#include "primitives/cuda_system.h"
#include "primitives/cuda_waits.h"
