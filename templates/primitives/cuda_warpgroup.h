// Multiplication by warpgroups on compute capability 9.0 (wgmma of sm_90a, setmaxnreg), a part of cuda.h. For other
// targets nothing here is instantiated; where it is, the assembler says that the target lacks the instruction.
#pragma once

namespace soliton {

// An instruction's operands: the accumulators, %0 and on, and behind them a and the descriptor of b.
#define SOLITON_PLACES_4 "%0, %1, %2, %3"
#define SOLITON_PLACES_8 SOLITON_PLACES_4 ", %4, %5, %6, %7"
#define SOLITON_PLACES_12 SOLITON_PLACES_8 ", %8, %9, %10, %11"
#define SOLITON_PLACES_16 SOLITON_PLACES_12 ", %12, %13, %14, %15"
#define SOLITON_PLACES_24 SOLITON_PLACES_16 ", %16, %17, %18, %19, %20, %21, %22, %23"
#define SOLITON_PLACES_32 SOLITON_PLACES_24 ", %24, %25, %26, %27, %28, %29, %30, %31"
#define SOLITON_PLACES_40 SOLITON_PLACES_32 ", %32, %33, %34, %35, %36, %37, %38, %39"
#define SOLITON_PLACES_48 SOLITON_PLACES_40 ", %40, %41, %42, %43, %44, %45, %46, %47"
#define SOLITON_PLACES_56 SOLITON_PLACES_48 ", %48, %49, %50, %51, %52, %53, %54, %55"
#define SOLITON_PLACES_64 SOLITON_PLACES_56 ", %56, %57, %58, %59, %60, %61, %62, %63"

#define SOLITON_ACCUMULATORS_4(kind, i) kind(c[i]), kind(c[i + 1]), kind(c[i + 2]), kind(c[i + 3])
#define SOLITON_ACCUMULATORS_8(kind, i) SOLITON_ACCUMULATORS_4(kind, i), SOLITON_ACCUMULATORS_4(kind, i + 4)
#define SOLITON_ACCUMULATORS_12(kind, i) SOLITON_ACCUMULATORS_8(kind, i), SOLITON_ACCUMULATORS_4(kind, i + 8)
#define SOLITON_ACCUMULATORS_16(kind, i) SOLITON_ACCUMULATORS_8(kind, i), SOLITON_ACCUMULATORS_8(kind, i + 8)
#define SOLITON_ACCUMULATORS_24(kind, i) \
  SOLITON_ACCUMULATORS_16(kind, i), SOLITON_ACCUMULATORS_8(kind, i + 16)
#define SOLITON_ACCUMULATORS_32(kind, i) \
  SOLITON_ACCUMULATORS_16(kind, i), SOLITON_ACCUMULATORS_16(kind, i + 16)
#define SOLITON_ACCUMULATORS_48(kind, i) \
  SOLITON_ACCUMULATORS_32(kind, i), SOLITON_ACCUMULATORS_16(kind, i + 32)
#define SOLITON_ACCUMULATORS_64(kind, i) \
  SOLITON_ACCUMULATORS_32(kind, i), SOLITON_ACCUMULATORS_32(kind, i + 32)

/// `count` accumulators of `kind`; `sources` are the places of a and b, `scales` what follows the predicate that says
/// that c is added to.
#define SOLITON_WARPGROUP_MMA(shape, types, kind, count, sources, scales)                                  \
  asm volatile(                                                                                            \
      "{\n.reg .pred add;\n"                                                                               \
      "setp.eq.u32 add, 1, 1;\n"                                                                           \
      "wgmma.mma_async.sync.aligned." shape types " {" SOLITON_PLACES_##count "}, " sources ", add" scales \
                                                                              ";\n}"                       \
      : SOLITON_ACCUMULATORS_##count(kind, 0)                                                              \
      : "r"(a.x), "r"(a.y), "r"(a.z), "r"(a.w), "l"(descriptor))

#define SOLITON_WARPGROUP_MMA_BF16(columns, count, sources) \
  SOLITON_WARPGROUP_MMA("m64n" #columns "k16", ".f32.bf16.bf16", "+f", count, sources, ", 1, 1, 0")
#define SOLITON_WARPGROUP_MMA_U8_S8(columns, count, sources) \
  SOLITON_WARPGROUP_MMA("m64n" #columns "k32", ".s32.u8.s8", "+r", count, sources, "")

/// Where b is: core matrices of 8 columns x 16 bytes, not swizzled; the next one along the columns 128 bytes on, along k
/// after all columns.
template <int kColumns>
SOLITON_DEVICE uint64_t warpgroup_descriptor(const unsigned char* b) {
  constexpr uint64_t kAlongDepth = kColumns * 16 / 16;  // leading byte offset, in units of 16 bytes
  constexpr uint64_t kAlongColumns = 8 * 16 / 16;       // stride byte offset
  return kAlongColumns << 32 | kAlongDepth << 16 | (shared_address(b) & 0x3ffff) >> 4;
}

template <int kColumns>
SOLITON_DEVICE void warpgroup_mma_bf16(float (&c)[kColumns / 2], uint4 a, const unsigned char* b) {
  const uint64_t descriptor = warpgroup_descriptor<kColumns>(b);
  if constexpr (kColumns == 8) {
    SOLITON_WARPGROUP_MMA_BF16(8, 4, "{%4, %5, %6, %7}, %8");
  } else if constexpr (kColumns == 16) {
    SOLITON_WARPGROUP_MMA_BF16(16, 8, "{%8, %9, %10, %11}, %12");
  } else if constexpr (kColumns == 24) {
    SOLITON_WARPGROUP_MMA_BF16(24, 12, "{%12, %13, %14, %15}, %16");
  } else if constexpr (kColumns == 32) {
    SOLITON_WARPGROUP_MMA_BF16(32, 16, "{%16, %17, %18, %19}, %20");
  } else if constexpr (kColumns == 48) {
    SOLITON_WARPGROUP_MMA_BF16(48, 24, "{%24, %25, %26, %27}, %28");
  } else if constexpr (kColumns == 64) {
    SOLITON_WARPGROUP_MMA_BF16(64, 32, "{%32, %33, %34, %35}, %36");
  } else if constexpr (kColumns == 96) {
    SOLITON_WARPGROUP_MMA_BF16(96, 48, "{%48, %49, %50, %51}, %52");
  } else {
    static_assert(kColumns == 128, "columns of warpgroup_mma_bf16: 8, 16, 24, 32, 48, 64, 96 or 128");
    SOLITON_WARPGROUP_MMA_BF16(128, 64, "{%64, %65, %66, %67}, %68");
  }
}

template <int kColumns>
SOLITON_DEVICE void warpgroup_mma_u8_s8(int32_t (&c)[kColumns / 2], uint4 a, const unsigned char* b) {
  const uint64_t descriptor = warpgroup_descriptor<kColumns>(b);
  if constexpr (kColumns == 8) {
    SOLITON_WARPGROUP_MMA_U8_S8(8, 4, "{%4, %5, %6, %7}, %8");
  } else if constexpr (kColumns == 16) {
    SOLITON_WARPGROUP_MMA_U8_S8(16, 8, "{%8, %9, %10, %11}, %12");
  } else if constexpr (kColumns == 24) {
    SOLITON_WARPGROUP_MMA_U8_S8(24, 12, "{%12, %13, %14, %15}, %16");
  } else if constexpr (kColumns == 32) {
    SOLITON_WARPGROUP_MMA_U8_S8(32, 16, "{%16, %17, %18, %19}, %20");
  } else if constexpr (kColumns == 48) {
    SOLITON_WARPGROUP_MMA_U8_S8(48, 24, "{%24, %25, %26, %27}, %28");
  } else {
    static_assert(kColumns == 64, "columns of warpgroup_mma_u8_s8: 8, 16, 24, 32, 48 or 64");
    SOLITON_WARPGROUP_MMA_U8_S8(64, 32, "{%32, %33, %34, %35}, %36");
  }
}

SOLITON_DEVICE void warpgroup_fence() {
  asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
}
SOLITON_DEVICE void warpgroup_commit() {
  asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}
template <int kSets>
SOLITON_DEVICE void warpgroup_wait() {
  asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(kSets) : "memory");
}

template <int kRegisters>
SOLITON_DEVICE void warpgroup_take_registers() {
  asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(kRegisters));
}
template <int kRegisters>
SOLITON_DEVICE void warpgroup_give_registers() {
  asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(kRegisters));
}

#undef SOLITON_WARPGROUP_MMA_U8_S8
#undef SOLITON_WARPGROUP_MMA_BF16
#undef SOLITON_WARPGROUP_MMA

}  // namespace soliton
