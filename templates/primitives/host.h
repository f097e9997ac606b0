// The contract of primitives.h for the host: thin wrappers around the emulator. Here words and threads; the parts below have
// the rest.
#pragma once

#include <cstdint>

#include "primitives/emulation/emulator.h"

#define SOLITON_DEVICE inline
#define SOLITON_KERNEL(threads) void
#define SOLITON_CONSTANT constexpr
#define SOLITON_UNROLL
#define SOLITON_UNROLL_BY(count)
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

inline void demand(bool holds, const char* what) {
  if (!holds) emulation::fail_demand(what);
}

template <int kCount>
void take_registers() {}
template <int kCount>
void give_registers() {}

}  // namespace soliton

#include "primitives/host_arithmetic.h"  // with the macros from here
#include "primitives/host_collectives.h"
#include "primitives/host_memory.h"
#include "primitives/host_system.h"
#include "primitives/host_waits.h"
