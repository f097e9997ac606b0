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
template <bool kAll = true, class Sum, int kSums>
void warpgroup_wait(Sum (&)[kSums]) {
  emulation::wait_products(kAll ? 0 : 1);
}
inline void warpgroup_wait_but_last() {
  emulation::wait_products(1);
}
template <int kSums, int kMmas>
void warpgroup_fence(int32_t (&)[kSums], uint4 (&)[kMmas]) {
  emulation::fence_products();
}
struct CoreMatrices {
  const unsigned char* place;

  explicit CoreMatrices(const void* b) : place(static_cast<const unsigned char*>(b)) {}
  CoreMatrices behind(int bytes) const { return CoreMatrices(place + bytes); }
};
/// On a card `a` are registers that are read while products are made: its thread leaves them as they are until then.
template <bool kAdds = true, int kSums, class A>
void warpgroup_multiply(float (&c)[kSums], A&& a, CoreMatrices b) {
  emulation::issue_product({.c = c,
                            .rows = 2 * kSums,
                            .a = {a.x, a.y, a.z, a.w},
                            .kept = std::is_lvalue_reference_v<A> ? &a : nullptr,
                            .b = b.place,
                            .next_k = 2 * kSums * 16,
                            .next_rows = 128,
                            .of = emulation::ProductOf::kBf16,
                            .adds = kAdds});
}
template <int kSums, class A>
void warpgroup_subtract(float (&c)[kSums], A&& a, CoreMatrices b) {
  constexpr uint32_t kSigns = 0x80008000u;
  emulation::issue_product({.c = c,
                            .rows = 2 * kSums,
                            .a = {a.x ^ kSigns, a.y ^ kSigns, a.z ^ kSigns, a.w ^ kSigns},
                            .b = b.place,
                            .next_k = 2 * kSums * 16,
                            .next_rows = 128,
                            .of = emulation::ProductOf::kBf16});
}
template <int kRows, class A>
void warpgroup_multiply_some(float (&c)[32], A&& a, CoreMatrices b) {
  emulation::issue_product({.c = c,
                            .rows = 64,
                            .a = {a.x, a.y, a.z, a.w},
                            .kept = std::is_lvalue_reference_v<A> ? &a : nullptr,
                            .b = b.place,
                            .next_k = kRows * 16,
                            .next_rows = 128,
                            .of = emulation::ProductOf::kBf16});
}
template <int kNextK, int kNextRows, int kSums>
void warpgroup_multiply_f16(float (&c)[kSums], uint4 a, CoreMatrices b) {
  emulation::issue_product({.c = c,
                            .rows = 2 * kSums,
                            .a = {a.x, a.y, a.z, a.w},
                            .b = b.place,
                            .next_k = kNextK,
                            .next_rows = kNextRows,
                            .of = emulation::ProductOf::kF16});
}
template <bool kSigned, bool kAdds, int kSums>
void warpgroup_multiply_bytes(int32_t (&c)[kSums], uint4 a, CoreMatrices b) {
  emulation::issue_product({.c = c,
                            .rows = 2 * kSums,
                            .a = {a.x, a.y, a.z, a.w},
                            .b = b.place,
                            .next_k = 2 * kSums * 16,
                            .next_rows = 128,
                            .of = kSigned ? emulation::ProductOf::kSignedBytes : emulation::ProductOf::kBytes,
                            .adds = kAdds});
}

}  // namespace soliton
