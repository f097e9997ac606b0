// Accesses of several cards' memory: of system scope.
#pragma once

#include "primitives/cuda.h"

namespace soliton {

SOLITON_DEVICE float4 load_relaxed_system(const float4* pointer) {
  float4 v;
  asm volatile("ld.relaxed.sys.global.v4.f32 {%0,%1,%2,%3}, [%4];"
               : "=f"(v.x), "=f"(v.y), "=f"(v.z), "=f"(v.w)
               : "l"(pointer)
               : "memory");
  return v;
}
SOLITON_DEVICE float load_relaxed_system(const float* pointer) {
  float v;
  asm volatile("ld.relaxed.sys.global.f32 %0, [%1];" : "=f"(v) : "l"(pointer) : "memory");
  return v;
}
SOLITON_DEVICE uint64_t load_relaxed_system(const uint64_t* pointer) {
  uint64_t v;
  asm volatile("ld.relaxed.sys.global.u64 %0, [%1];" : "=l"(v) : "l"(pointer) : "memory");
  return v;
}
SOLITON_DEVICE void store_relaxed_system(float4* pointer, float4 v) {
  asm volatile("st.relaxed.sys.global.v4.f32 [%0], {%1,%2,%3,%4};" ::"l"(pointer), "f"(v.x), "f"(v.y),
               "f"(v.z), "f"(v.w)
               : "memory");
}
SOLITON_DEVICE void store_relaxed_system(float* pointer, float value) {
  asm volatile("st.relaxed.sys.global.f32 [%0], %1;" ::"l"(pointer), "f"(value) : "memory");
}
SOLITON_DEVICE void store_relaxed_system(float2* pointer, float2 v) {
  asm volatile("st.relaxed.sys.global.v2.f32 [%0], {%1,%2};" ::"l"(pointer), "f"(v.x), "f"(v.y) : "memory");
}
SOLITON_DEVICE void store_relaxed_system(uint16_t* pointer, uint16_t value) {
  asm volatile("st.relaxed.sys.global.u16 [%0], %1;" ::"l"(pointer), "h"(value) : "memory");
}
SOLITON_DEVICE void store_relaxed_system(uint32_t* pointer, uint32_t value) {
  asm volatile("st.relaxed.sys.global.u32 [%0], %1;" ::"l"(pointer), "r"(value) : "memory");
}
SOLITON_DEVICE void store_relaxed_system(uint2* pointer, uint2 v) {
  asm volatile("st.relaxed.sys.global.v2.u32 [%0], {%1,%2};" ::"l"(pointer), "r"(v.x), "r"(v.y) : "memory");
}
SOLITON_DEVICE void store_relaxed_system(uint64_t* pointer, uint64_t value) {
  asm volatile("st.relaxed.sys.global.u64 [%0], %1;" ::"l"(pointer), "l"(value) : "memory");
}
SOLITON_DEVICE uint32_t load_acquire_system(const uint32_t* pointer) {
  uint32_t v;
  asm volatile("ld.acquire.sys.global.u32 %0, [%1];" : "=r"(v) : "l"(pointer) : "memory");
  return v;
}
SOLITON_DEVICE void add_release_system(uint32_t* pointer, uint32_t value) {
  asm volatile("red.release.sys.global.add.u32 [%0], %1;" ::"l"(pointer), "r"(value) : "memory");
}
SOLITON_DEVICE void add_fenced_system(uint32_t* pointer, uint32_t value) {
  asm volatile("red.relaxed.sys.global.add.u32 [%0], %1;" ::"l"(pointer), "r"(value) : "memory");
}
SOLITON_DEVICE void add_relaxed_system(uint64_t* pointer, uint64_t value) {
  asm volatile("red.relaxed.sys.global.add.u64 [%0], %1;" ::"l"(pointer), "l"(value) : "memory");
}

}  // namespace soliton
