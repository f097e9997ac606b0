// Part of primitives/host.h: what the lanes of a warp do together. A fiber waits until all have come, and the last one
// computes for all.
#pragma once

#include <algorithm>
#include <cstdint>
#include <type_traits>

#include "primitives/emulation/emulator.h"

namespace soliton {

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

inline void find_sum(void* const* operands) {
  uint32_t sum = 0;
  for (int lane = 0; lane < 32; ++lane) sum += *static_cast<const uint32_t*>(operands[lane]);
  for (int lane = 0; lane < 32; ++lane) *static_cast<uint32_t*>(operands[lane]) = sum;
}

inline void do_nothing(void* const*) {}

template <class T>
T shuffle_from(T value, int lane, const char* name) {
  static_assert(std::is_trivially_copyable_v<T>);
  ShuffleOperand<T> operand{value, lane, value};
  collective(exchange<T>, name, &operand);
  return operand.result;
}

inline void multiply(Operation operation, const char* name, void* c, uint4 a, uint2 b) {
  MmaOperand operand = {c, {a.x, a.y, a.z, a.w}, {b.x, b.y}};
  if (MmaOperand* const place = put_off(operation, name)) {
    *place = operand;
  } else {
    collective(operation, name, &operand);
  }
}

}  // namespace emulation

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

inline int32_t warp_sum(int32_t value) {
  uint32_t bits = static_cast<uint32_t>(value);
  emulation::collective(emulation::find_sum, "warp_sum", &bits);
  return static_cast<int32_t>(bits);
}

/// The sum over k = 0..15 is made in that order in fp32, then added to c. The tensor core sums in another
/// order and truncates: results differ in the last bits.
inline void mma_bf16(float (&c)[4], uint4 a, uint2 b) {
  emulation::multiply(emulation::multiply_accumulate, "mma_bf16", c, a, b);
}

inline void mma_f16(float (&c)[4], uint4 a, uint2 b) {
  emulation::multiply(emulation::multiply_accumulate_f16, "mma_f16", c, a, b);
}

inline void mma_u8_s8(int32_t (&c)[4], uint4 a, uint2 b) {
  emulation::multiply(emulation::multiply_accumulate_u8, "mma_u8_s8", c, a, b);
}

inline void mma_s8_s8(int32_t (&c)[4], uint4 a, uint2 b) {
  emulation::multiply(emulation::multiply_accumulate_s8, "mma_s8_s8", c, a, b);
}

class MmaBatch {
 public:
  MmaBatch() { emulation::begin_batch(); }
  ~MmaBatch() { end(); }
  void end() { emulation::end_batch(); }
  MmaBatch(const MmaBatch&) = delete;
  MmaBatch& operator=(const MmaBatch&) = delete;
};

inline uint32_t transpose_8x8(uint32_t value) {
  emulation::collective(emulation::transpose, "transpose_8x8", &value);
  return value;
}

}  // namespace soliton
