// Multiplication by warpgroups for the host, a part of host.h.
#pragma once

namespace soliton {

namespace emulation {

/// Columns that cuda_warpgroup.h has an instruction for.
constexpr bool has_warpgroup_mma(int columns, int most) {
  for (const int one : {8, 16, 24, 32, 48, 64, 96, 128}) {
    if (columns == one) return columns <= most;
  }
  return false;
}

/// Registers of a thread that setmaxnreg takes.
constexpr bool can_have_registers(int count) {
  return count >= 24 && count <= 256 && count % 8 == 0;
}

}  // namespace emulation

/// Each warp's part of the sum is that of mma_bf16 and mma_u8_s8, bit for bit.
template <int kColumns>
void warpgroup_mma_bf16(float (&c)[kColumns / 2], uint4 a, const unsigned char* b) {
  static_assert(emulation::has_warpgroup_mma(kColumns, 128));
  emulation::WarpgroupMma operand{false, kColumns, c, {a.x, a.y, a.z, a.w}, b};
  emulation::multiply_by_warpgroup(operand);
}

template <int kColumns>
void warpgroup_mma_u8_s8(int32_t (&c)[kColumns / 2], uint4 a, const unsigned char* b) {
  static_assert(emulation::has_warpgroup_mma(kColumns, 64));
  emulation::WarpgroupMma operand{true, kColumns, c, {a.x, a.y, a.z, a.w}, b};
  emulation::multiply_by_warpgroup(operand);
}

inline void warpgroup_fence() {
  emulation::fence_warpgroup();
}
inline void warpgroup_commit() {
  emulation::commit_warpgroup();
}
template <int kSets>
void warpgroup_wait() {
  emulation::wait_warpgroup(kSets);
}

template <int kRegisters>
void warpgroup_take_registers() {
  static_assert(emulation::can_have_registers(kRegisters));
  emulation::set_warpgroup_registers(kRegisters);
}
template <int kRegisters>
void warpgroup_give_registers() {
  static_assert(emulation::can_have_registers(kRegisters));
  emulation::set_warpgroup_registers(kRegisters);
}

}  // namespace soliton
