// Products of warpgroups in emulation, a part of host.h: nothing is multiplied before its thread waits, so that whoever
// looks at a sum too early, or changes an operand too early, is found.
#pragma once

#include "primitives/host.h"

namespace soliton {

inline void warpgroup_fence() {
  emulation::fence_products();
}
inline void warpgroup_commit() {
  emulation::commit_products();
}
template <int kSums>
void warpgroup_wait(float (&)[kSums]) {
  emulation::wait_products(0);
}
inline void warpgroup_wait_but_last() {
  emulation::wait_products(1);
}
struct CoreMatrices {
  const unsigned char* place;

  explicit CoreMatrices(const void* b) : place(static_cast<const unsigned char*>(b)) {}
  CoreMatrices behind(int bytes) const { return CoreMatrices(place + bytes); }
};
template <int kSums>
void warpgroup_multiply(float (&c)[kSums], uint4 a, CoreMatrices b) {
  emulation::issue_product({c, 2 * kSums, {a.x, a.y, a.z, a.w}, b.place, 2 * kSums * 16, 128, false});
}
template <int kNextK, int kNextRows, int kSums>
void warpgroup_multiply_f16(float (&c)[kSums], uint4 a, CoreMatrices b) {
  emulation::issue_product({c, 2 * kSums, {a.x, a.y, a.z, a.w}, b.place, kNextK, kNextRows, true});
}

}  // namespace soliton
