// Products of warpgroups on an NVIDIA GPU (wgmma), a part of cuda.h: only in code for the architecture that has them.
#pragma once

#include "primitives/cuda.h"

namespace soliton {

#if !defined(__CUDA_ARCH__) || defined(__CUDA_ARCH_FEAT_SM90_ALL)
#define SOLITON_WARPGROUPS
#endif

#if defined(SOLITON_WARPGROUPS)

SOLITON_DEVICE void warpgroup_fence() {
  asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
}
SOLITON_DEVICE void warpgroup_commit() {
  asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}
SOLITON_DEVICE void warpgroup_wait_but_last() {
  asm volatile("wgmma.wait_group.sync.aligned 1;" ::: "memory");
}
/// Nothing that makes or reads these moves over it.
template <int kSums>
SOLITON_DEVICE void hold(float (&c)[kSums]) {
  SOLITON_UNROLL
  for (int i = 0; i < kSums; ++i) asm volatile("" : "+f"(c[i])::"memory");
}
template <int kSums>
SOLITON_DEVICE void hold(int32_t (&c)[kSums]) {
  SOLITON_UNROLL
  for (int i = 0; i < kSums; ++i) asm volatile("" : "+r"(c[i])::"memory");
}
template <bool kAll = true, class Sum, int kSums>
SOLITON_DEVICE void warpgroup_wait(Sum (&c)[kSums]) {
  if constexpr (kAll) {
    asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
  } else {
    warpgroup_wait_but_last();
  }
  hold(c);
}
template <int kSums, int kMmas>
SOLITON_DEVICE void warpgroup_fence(int32_t (&c)[kSums], uint4 (&a)[kMmas]) {
  hold(c);
  SOLITON_UNROLL
  for (int i = 0; i < kMmas; ++i)
    asm volatile("" : "+r"(a[i].x), "+r"(a[i].y), "+r"(a[i].z), "+r"(a[i].w)::"memory");
  warpgroup_fence();
}

/// Where core matrices begin, in units of 16 bytes.
struct CoreMatrices {
  uint32_t place;

  /// The same in all lanes of the warp, which the compiler is to know: descriptors then need no registers of the lanes.
  SOLITON_DEVICE explicit CoreMatrices(const void* b) : place(shuffle(shared_address(b) >> 4, 0)) {}
  SOLITON_DEVICE CoreMatrices behind(int bytes) const {
    CoreMatrices other = *this;
    other.place += bytes / 16;
    return other;
  }
  /// With the distances in bytes of those of the next 8 k and of the next 8 rows; no swizzle.
  template <int kNextK, int kNextRows>
  SOLITON_DEVICE uint64_t descriptor() const {
    // A sum, which the compiler makes one with the way from other core matrices.
    constexpr uint32_t kLow = static_cast<uint32_t>(kNextK / 16) << 16;
    return static_cast<uint64_t>(kNextRows / 16) << 32 | (place + kLow);
  }
};

#define SOLITON_SUMS_4(i, kind) kind(c[i]), kind(c[i + 1]), kind(c[i + 2]), kind(c[i + 3])
#define SOLITON_SUMS_8(i)                                                                     \
  "+f"(c[i]), "+f"(c[i + 1]), "+f"(c[i + 2]), "+f"(c[i + 3]), "+f"(c[i + 4]), "+f"(c[i + 5]), \
      "+f"(c[i + 6]), "+f"(c[i + 7])
#define SOLITON_SUMS_32(i) \
  SOLITON_SUMS_8(i), SOLITON_SUMS_8(i + 8), SOLITON_SUMS_8(i + 16), SOLITON_SUMS_8(i + 24)
#define SOLITON_FIRST_32                                                                           \
  "%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15,%16,%17,%18,%19,%20,%21,%22,%23,%24,%25," \
  "%26,%27,%28,%29,%30,%31"
#define SOLITON_SECOND_32                                                                            \
  "%32,%33,%34,%35,%36,%37,%38,%39,%40,%41,%42,%43,%44,%45,%46,%47,%48,%49,%50,%51,%52,%53,%54,%55," \
  "%56,%57,%58,%59,%60,%61,%62,%63"
#define SOLITON_THIRD_32                                                                        \
  "%64,%65,%66,%67,%68,%69,%70,%71,%72,%73,%74,%75,%76,%77,%78,%79,%80,%81,%82,%83,%84,%85,%86" \
  ",%87,%88,%89,%90,%91,%92,%93,%94,%95"
#define SOLITON_FOURTH_32                                                                      \
  "%96,%97,%98,%99,%100,%101,%102,%103,%104,%105,%106,%107,%108,%109,%110,%111,%112,%113,%114" \
  ",%115,%116,%117,%118,%119,%120,%121,%122,%123,%124,%125,%126,%127"

#define SOLITON_FIRST_8 "%0,%1,%2,%3,%4,%5,%6,%7"
#define SOLITON_FIRST_12 SOLITON_FIRST_8 ",%8,%9,%10,%11"
#define SOLITON_FIRST_16 SOLITON_FIRST_12 ",%12,%13,%14,%15"
#define SOLITON_THIRD_16 "%32,%33,%34,%35,%36,%37,%38,%39,%40,%41,%42,%43,%44,%45,%46,%47"

/// `kAdds`: are the products added to what was there before?
template <bool kAdds = true>
SOLITON_DEVICE void warpgroup_multiply(float (&c)[8], uint4 a, CoreMatrices b) {
  asm volatile("wgmma.mma_async.sync.aligned.m64n16k16.f32.bf16.bf16 {" SOLITON_FIRST_8
               "}, {%8,%9,%10,%11}, %12, %13, 1, 1, 0;"
               : SOLITON_SUMS_8(0)
               : "r"(a.x), "r"(a.y), "r"(a.z), "r"(a.w), "l"(b.descriptor<16 * 16, 128>()),
                 "n"(kAdds ? 1 : 0));
}
template <bool kAdds = true>
SOLITON_DEVICE void warpgroup_multiply(float (&c)[16], uint4 a, CoreMatrices b) {
  asm volatile("wgmma.mma_async.sync.aligned.m64n32k16.f32.bf16.bf16 {" SOLITON_FIRST_16
               "}, {%16,%17,%18,%19}, %20, %21, 1, 1, 0;"
               : SOLITON_SUMS_8(0), SOLITON_SUMS_8(8)
               : "r"(a.x), "r"(a.y), "r"(a.z), "r"(a.w), "l"(b.descriptor<32 * 16, 128>()),
                 "n"(kAdds ? 1 : 0));
}
template <bool kAdds = true>
SOLITON_DEVICE void warpgroup_multiply(float (&c)[32], uint4 a, CoreMatrices b) {
  asm volatile("wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16 {" SOLITON_FIRST_32
               "}, {%32,%33,%34,%35}, %36, %37, 1, 1, 0;"
               : SOLITON_SUMS_32(0)
               : "r"(a.x), "r"(a.y), "r"(a.z), "r"(a.w), "l"(b.descriptor<64 * 16, 128>()),
                 "n"(kAdds ? 1 : 0));
}
/// c -= a b, of 16 rows.
SOLITON_DEVICE void warpgroup_subtract(float (&c)[8], uint4 a, CoreMatrices b) {
  asm volatile("wgmma.mma_async.sync.aligned.m64n16k16.f32.bf16.bf16 {" SOLITON_FIRST_8
               "}, {%8,%9,%10,%11}, %12, 1, -1, 1, 0;"
               : SOLITON_SUMS_8(0)
               : "r"(a.x), "r"(a.y), "r"(a.z), "r"(a.w), "l"(b.descriptor<16 * 16, 128>()));
}
/// The same of 64 rows that lie among kRows.
template <int kRows>
SOLITON_DEVICE void warpgroup_multiply_some(float (&c)[32], uint4 a, CoreMatrices b) {
  asm volatile("wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16 {" SOLITON_FIRST_32
               "}, {%32,%33,%34,%35}, %36, 1, 1, 1, 0;"
               : SOLITON_SUMS_32(0)
               : "r"(a.x), "r"(a.y), "r"(a.z), "r"(a.w), "l"(b.descriptor<kRows * 16, 128>()));
}
template <bool kAdds = true>
SOLITON_DEVICE void warpgroup_multiply(float (&c)[48], uint4 a, CoreMatrices b) {
  asm volatile("wgmma.mma_async.sync.aligned.m64n96k16.f32.bf16.bf16 {" SOLITON_FIRST_32 "," SOLITON_THIRD_16
               "}, {%48,%49,%50,%51}, %52, %53, 1, 1, 0;"
               : SOLITON_SUMS_32(0), SOLITON_SUMS_8(32), SOLITON_SUMS_8(40)
               : "r"(a.x), "r"(a.y), "r"(a.z), "r"(a.w), "l"(b.descriptor<96 * 16, 128>()),
                 "n"(kAdds ? 1 : 0));
}
template <bool kAdds = true>
SOLITON_DEVICE void warpgroup_multiply(float (&c)[64], uint4 a, CoreMatrices b) {
  asm volatile("wgmma.mma_async.sync.aligned.m64n128k16.f32.bf16.bf16 {" SOLITON_FIRST_32
               "," SOLITON_SECOND_32 "}, {%64,%65,%66,%67}, %68, %69, 1, 1, 0;"
               : SOLITON_SUMS_32(0), SOLITON_SUMS_32(32)
               : "r"(a.x), "r"(a.y), "r"(a.z), "r"(a.w), "l"(b.descriptor<128 * 16, 128>()),
                 "n"(kAdds ? 1 : 0));
}

template <bool kAdds = true>
SOLITON_DEVICE void warpgroup_multiply(float (&c)[96], uint4 a, CoreMatrices b) {
  asm volatile("wgmma.mma_async.sync.aligned.m64n192k16.f32.bf16.bf16 {" SOLITON_FIRST_32
               "," SOLITON_SECOND_32 "," SOLITON_THIRD_32 "}, {%96,%97,%98,%99}, %100, %101, 1, 1, 0;"
               : SOLITON_SUMS_32(0), SOLITON_SUMS_32(32), SOLITON_SUMS_32(64)
               : "r"(a.x), "r"(a.y), "r"(a.z), "r"(a.w), "l"(b.descriptor<192 * 16, 128>()),
                 "n"(kAdds ? 1 : 0));
}
template <bool kAdds = true>
SOLITON_DEVICE void warpgroup_multiply(float (&c)[128], uint4 a, CoreMatrices b) {
  asm volatile(
      "wgmma.mma_async.sync.aligned.m64n256k16.f32.bf16.bf16 {" SOLITON_FIRST_32 "," SOLITON_SECOND_32
      "," SOLITON_THIRD_32 "," SOLITON_FOURTH_32 "}, {%128,%129,%130,%131}, %132, %133, 1, 1, 0;"
      : SOLITON_SUMS_32(0), SOLITON_SUMS_32(32), SOLITON_SUMS_32(64), SOLITON_SUMS_32(96)
      : "r"(a.x), "r"(a.y), "r"(a.z), "r"(a.w), "l"(b.descriptor<256 * 16, 128>()), "n"(kAdds ? 1 : 0));
}

template <int kNextK, int kNextRows>
SOLITON_DEVICE void warpgroup_multiply_f16(float (&c)[32], uint4 a, CoreMatrices b) {
  asm volatile("wgmma.mma_async.sync.aligned.m64n64k16.f32.f16.f16 {" SOLITON_FIRST_32
               "}, {%32,%33,%34,%35}, %36, 1, 1, 1, 0;"
               : SOLITON_SUMS_32(0)
               : "r"(a.x), "r"(a.y), "r"(a.z), "r"(a.w), "l"(b.descriptor<kNextK, kNextRows>()));
}
template <int kNextK, int kNextRows>
SOLITON_DEVICE void warpgroup_multiply_f16(float (&c)[64], uint4 a, CoreMatrices b) {
  asm volatile("wgmma.mma_async.sync.aligned.m64n128k16.f32.f16.f16 {" SOLITON_FIRST_32 "," SOLITON_SECOND_32
               "}, {%64,%65,%66,%67}, %68, 1, 1, 1, 0;"
               : SOLITON_SUMS_32(0), SOLITON_SUMS_32(32)
               : "r"(a.x), "r"(a.y), "r"(a.z), "r"(a.w), "l"(b.descriptor<kNextK, kNextRows>()));
}

#define SOLITON_INTEGERS_4(i) SOLITON_SUMS_4(i, "+r")
#define SOLITON_INTEGERS_12 SOLITON_INTEGERS_4(0), SOLITON_INTEGERS_4(4), SOLITON_INTEGERS_4(8)
#define SOLITON_INTEGERS_16(i) \
  SOLITON_INTEGERS_4(i), SOLITON_INTEGERS_4(i + 4), SOLITON_INTEGERS_4(i + 8), SOLITON_INTEGERS_4(i + 12)

#define SOLITON_MULTIPLY_BYTES(rows, type, first, operands, ...)                                          \
  asm volatile("wgmma.mma_async.sync.aligned.m64n" #rows "k32.s32." type ".s8 {" first "}, " operands ";" \
               : __VA_ARGS__                                                                              \
               : "r"(a.x), "r"(a.y), "r"(a.z), "r"(a.w), "l"(b.descriptor<rows * 16, 128>()),             \
                 "n"(kAdds ? 1 : 0))
template <bool kSigned, bool kAdds>
SOLITON_DEVICE void warpgroup_multiply_bytes(int32_t (&c)[12], uint4 a, CoreMatrices b) {
  if constexpr (kSigned) {
    SOLITON_MULTIPLY_BYTES(24, "s8", SOLITON_FIRST_12, "{%12,%13,%14,%15}, %16, %17", SOLITON_INTEGERS_12);
  } else {
    SOLITON_MULTIPLY_BYTES(24, "u8", SOLITON_FIRST_12, "{%12,%13,%14,%15}, %16, %17", SOLITON_INTEGERS_12);
  }
}
template <bool kSigned, bool kAdds>
SOLITON_DEVICE void warpgroup_multiply_bytes(int32_t (&c)[16], uint4 a, CoreMatrices b) {
  if constexpr (kSigned) {
    SOLITON_MULTIPLY_BYTES(32, "s8", SOLITON_FIRST_16, "{%16,%17,%18,%19}, %20, %21", SOLITON_INTEGERS_16(0));
  } else {
    SOLITON_MULTIPLY_BYTES(32, "u8", SOLITON_FIRST_16, "{%16,%17,%18,%19}, %20, %21", SOLITON_INTEGERS_16(0));
  }
}
template <bool kSigned, bool kAdds>
SOLITON_DEVICE void warpgroup_multiply_bytes(int32_t (&c)[32], uint4 a, CoreMatrices b) {
  if constexpr (kSigned) {
    SOLITON_MULTIPLY_BYTES(64, "s8", SOLITON_FIRST_32, "{%32,%33,%34,%35}, %36, %37", SOLITON_INTEGERS_16(0),
                           SOLITON_INTEGERS_16(16));
  } else {
    SOLITON_MULTIPLY_BYTES(64, "u8", SOLITON_FIRST_32, "{%32,%33,%34,%35}, %36, %37", SOLITON_INTEGERS_16(0),
                           SOLITON_INTEGERS_16(16));
  }
}

#undef SOLITON_MULTIPLY_BYTES
#undef SOLITON_SUMS_4
#undef SOLITON_SUMS_8
#undef SOLITON_SUMS_32
#undef SOLITON_INTEGERS_4
#undef SOLITON_INTEGERS_12
#undef SOLITON_INTEGERS_16
#undef SOLITON_FIRST_8
#undef SOLITON_FIRST_12
#undef SOLITON_FIRST_16
#undef SOLITON_FIRST_32
#undef SOLITON_SECOND_32
#undef SOLITON_THIRD_32
#undef SOLITON_FOURTH_32

#else
// Code for another architecture has no plan that calls them.
SOLITON_DEVICE void warpgroup_fence() {}
SOLITON_DEVICE void warpgroup_commit() {}
template <bool kAll = true, class Sum, int kSums>
SOLITON_DEVICE void warpgroup_wait(Sum (&)[kSums]) {}
SOLITON_DEVICE void warpgroup_wait_but_last() {}
struct CoreMatrices {
  SOLITON_DEVICE explicit CoreMatrices(const void*) {}
  SOLITON_DEVICE CoreMatrices behind(int) const { return *this; }
};
template <bool kAdds = true, int kSums>
SOLITON_DEVICE void warpgroup_multiply(float (&)[kSums], uint4, CoreMatrices) {}
template <int kSums>
SOLITON_DEVICE void warpgroup_subtract(float (&)[kSums], uint4, CoreMatrices) {}
template <int kRows>
SOLITON_DEVICE void warpgroup_multiply_some(float (&)[32], uint4, CoreMatrices) {}
template <int kNextK, int kNextRows, int kSums>
SOLITON_DEVICE void warpgroup_multiply_f16(float (&)[kSums], uint4, CoreMatrices) {}
template <bool kSigned, bool kAdds, int kSums>
SOLITON_DEVICE void warpgroup_multiply_bytes(int32_t (&)[kSums], uint4, CoreMatrices) {}
template <int kSums, int kMmas>
SOLITON_DEVICE void warpgroup_fence(int32_t (&)[kSums], uint4 (&)[kMmas]) {}
#endif

}  // namespace soliton
