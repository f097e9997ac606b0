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
  emulation::wait_products();
}
template <int kSums>
void warpgroup_multiply(float (&c)[kSums], uint4 a, const void* b) {
  emulation::issue_product({c, 2 * kSums, {a.x, a.y, a.z, a.w}, b});
}

}  // namespace soliton
