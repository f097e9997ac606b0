// The functions of emulator.h: they hand over to the launch that runs.
#include "primitives/emulation/emulator.h"

#include <cstdlib>
#include <cstring>

#include "primitives/emulation/fibers.h"
#include "primitives/emulation/launch.h"

namespace soliton::emulation {

bool checking = false;
uint64_t num_stores = 0;

namespace {

Launch* launch = nullptr;

void enter_fiber(boost::context::detail::transfer_t from) {
  launch->run_fiber(from);
}

float widen(uint32_t bits) {
  bits <<= 16;
  float value;
  std::memcpy(&value, &bits, sizeof value);
  return value;
}

}  // namespace

std::string run(Kernel kernel, const LaunchParams& params, const LaunchShape& shape,
                EmulationControl& control) {
  static StackPool& stacks = *new StackPool;  // Never destroyed: a launch may run while the process ends.
  if (launch != nullptr) return "emulation: a launch is running already";
  if (shape.num_ctas < 1 || shape.threads_per_cta < kLanes || shape.threads_per_cta % kLanes != 0) {
    return "emulation: expected at least one CTA of whole warps, got " + std::to_string(shape.num_ctas) +
           " CTAs of " + std::to_string(shape.threads_per_cta) + " threads";
  }
  control.stats = {};
  Launch now(kernel, params, shape, control);
  launch = &now;
  std::string error = now.run(stacks, enter_fiber);
  launch = nullptr;
  return error;
}

void check_access(Access access, Space space, const void* address, size_t bytes) {
  launch->check_access(access, space, address, bytes);
}
void collective(Operation operation, const char* name, void* operand) {
  launch->collective(operation, name, operand);
}
void synchronise_cta() {
  launch->synchronise_cta();
}
void fence_device() {
  launch->fence_device();
}
void fence_async() {
  launch->fence_async();
}
void init_barrier(Barrier* barrier, int arrivals) {
  launch->init_barrier(barrier, arrivals);
}
void fence_barrier_init() {
  launch->fence_barrier_init();
}
void arrive(Barrier* barrier, int bytes) {
  launch->arrive(barrier, bytes);
}
bool test_barrier(Barrier* barrier, uint32_t parity) {
  return launch->test_barrier(barrier, parity);
}
void wait_barrier(Barrier* barrier, uint32_t parity, const WaitSite& site) {
  launch->wait_barrier(barrier, parity, site);
}
bool skips_wait(WaitKind kind) {
  return launch->skips_wait(kind);
}
void copy_page(void* shared, const void* global, int bytes, Barrier* barrier) {
  launch->copy_page(shared, global, bytes, barrier);
}
void pause(const WaitSite& site) {
  launch->pause(site);
}
void note_host_load() {
  launch->note_host_load();
}

/// `widen` makes a float of the bits of one operand.
template <class Widen>
static void multiply_by(void* const* operands, const Widen& widen) {
  float a[16][16];  // [row][k]
  float b[16][8];   // [k][column]
  for (int lane = 0; lane < kLanes; ++lane) {
    const auto& operand = *static_cast<const MmaOperand*>(operands[lane]);
    const int group = lane / 4;
    const int pair = lane % 4;
    for (int reg = 0; reg < 4; ++reg) {
      float* to = &a[group + reg % 2 * 8][(pair + reg / 2 * 4) * 2];
      to[0] = widen(operand.a[reg] & 0xffff);
      to[1] = widen(operand.a[reg] >> 16);
    }
    for (int reg = 0; reg < 2; ++reg) {
      b[(pair + reg * 4) * 2][group] = widen(operand.b[reg] & 0xffff);
      b[(pair + reg * 4) * 2 + 1][group] = widen(operand.b[reg] >> 16);
    }
  }
  for (int row = 0; row < 16; ++row) {
    float sum[8] = {};
    for (int k = 0; k < 16; ++k) {
      for (int column = 0; column < 8; ++column) sum[column] += a[row][k] * b[k][column];
    }
    for (int column = 0; column < 8; ++column) {
      const int lane = row % 8 * 4 + column / 2;
      static_cast<const MmaOperand*>(operands[lane])->c[row / 8 * 2 + column % 2] += sum[column];
    }
  }
}

void multiply_accumulate(void* const* operands) {
  multiply_by(operands, [](uint32_t bits) { return widen(bits); });
}

void multiply_accumulate_f16(void* const* operands) {
  multiply_by(operands, [](uint32_t bits) {
    return static_cast<float>(std::bit_cast<_Float16>(static_cast<uint16_t>(bits)));
  });
}

void multiply_accumulate_u8(void* const* operands) {
  constexpr int kRows = 16;
  constexpr int kColumns = 8;
  constexpr int kDepth = 32;
  uint8_t a[kRows][kDepth];
  int8_t b[kDepth][kColumns];
  for (int lane = 0; lane < kLanes; ++lane) {
    const auto& own = *static_cast<const IntegerMmaOperand*>(operands[lane]);
    for (int i = 0; i < 4; ++i)
      std::memcpy(&a[lane / 4 + i % 2 * 8][lane % 4 * 4 + i / 2 * 16], &own.a[i], sizeof own.a[i]);
    for (int k = 0; k < 8; ++k)
      b[lane % 4 * 4 + k / 4 * 16 + k % 4][lane / 4] = static_cast<int8_t>(own.b[k / 4] >> k % 4 * 8);
  }
  for (int lane = 0; lane < kLanes; ++lane) {
    const auto& own = *static_cast<const IntegerMmaOperand*>(operands[lane]);
    for (int i = 0; i < 4; ++i) {
      for (int k = 0; k < kDepth; ++k) own.c[i] += a[lane / 4 + i / 2 * 8][k] * b[k][lane % 4 * 2 + i % 2];
    }
  }
}

void transpose(void* const* operands) {
  uint16_t matrix[8][8];
  for (int lane = 0; lane < kLanes; ++lane) {
    std::memcpy(&matrix[lane / 4][lane % 4 * 2], operands[lane], sizeof(uint32_t));
  }
  for (int lane = 0; lane < kLanes; ++lane) {
    const int row = lane / 4;
    const int column = lane % 4 * 2;
    const uint32_t value = matrix[column][row] | static_cast<uint32_t>(matrix[column + 1][row]) << 16;
    std::memcpy(operands[lane], &value, sizeof value);
  }
}

}  // namespace soliton::emulation

namespace soliton {

EmulationControl::EmulationControl() {
  if (const char* seed = std::getenv("SOLITON_EMULATION_SEED"))
    options.seed = std::strtoull(seed, nullptr, 0);
}

}  // namespace soliton
