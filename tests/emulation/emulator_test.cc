// The primitives as the emulator performs them, and what it says about kernels that are wrong.
#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <string>
#include <vector>

#include "layout/page.h"
#include "primitives/emulation/emulator.h"
#include "primitives/primitives.h"

namespace soliton {
namespace {

using emulation::LaunchShape;
using testing::HasSubstr;

constexpr int kLanes = 32;
constexpr CopyPolicy kPolicies[] = {CopyPolicy::kEager, CopyPolicy::kLate, CopyPolicy::kRandom};

/// Memory that checked kernels may touch.
template <class T>
class Buffer {
 public:
  explicit Buffer(size_t count, T value = {}) : data_(static_cast<T*>(emulation::allocate(count * sizeof(T)))) {
    std::fill(data_, data_ + count, value);
  }
  ~Buffer() { emulation::release(data_); }
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;
  T* data() { return data_; }
  T& operator[](size_t i) { return data_[i]; }

 private:
  T* data_;
};

EmulationOptions checked(uint64_t seed = 1, CopyPolicy copies = CopyPolicy::kRandom) {
  EmulationOptions options;
  options.seed = seed;
  options.copies = copies;
  options.check = true;
  return options;
}

std::string run(emulation::Kernel kernel, const LaunchParams& params, const LaunchShape& shape,
                const EmulationOptions& options) {
  EmulationControl control;
  control.options = options;
  return emulation::run(kernel, params, shape, control);
}

LaunchParams with_workspace(void* workspace) {
  LaunchParams params = {};
  params.workspace = workspace;
  return params;
}

bool contains(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

// ---- Warp collectives.

void shuffle_kernel(LaunchParams params) {
  const int lane = thread_index() % kLanes;
  auto* out = static_cast<int*>(params.workspace) + lane * 5;
  store_global(out + 0, shuffle(lane * 10, 7));
  store_global(out + 1, shuffle_xor(lane, 5));
  store_global(out + 2, shuffle_down(lane, 4));
  store_global(out + 3, warp_any(lane == 31) ? 1 : 0);
  store_global(out + 4, warp_any(lane == 32) ? 1 : 0);
}

TEST(Collectives, ShufflesAndVotesGiveHandResults) {
  Buffer<int> out(kLanes * 5, -1);
  ASSERT_EQ(run(shuffle_kernel, with_workspace(out.data()), {1, kLanes, 0}, checked()), "");
  for (int lane = 0; lane < kLanes; ++lane) {
    EXPECT_EQ(out[lane * 5 + 0], 70);
    EXPECT_EQ(out[lane * 5 + 1], lane ^ 5);
    EXPECT_EQ(out[lane * 5 + 2], lane < 28 ? lane + 4 : lane);
    EXPECT_EQ(out[lane * 5 + 3], 1);
    EXPECT_EQ(out[lane * 5 + 4], 0);
  }
}

struct MmaBuffers {
  uint16_t a[16][16];  // [row][k]
  uint16_t b[16][8];   // [k][column]
  float c[16][8];
};

void mma_kernel(LaunchParams params) {
  auto* buffers = static_cast<MmaBuffers*>(params.workspace);
  const int lane = thread_index();
  const int g = lane / 4;
  const int j = lane % 4;
  const auto a = [&](int row, int pair) {
    return load_global(reinterpret_cast<const uint32_t*>(&buffers->a[row][pair * 2]));
  };
  const auto b = [&](int pair) {
    const uint32_t low = load_global(&buffers->b[pair * 2][g]);
    return low | static_cast<uint32_t>(load_global(&buffers->b[pair * 2 + 1][g])) << 16;
  };
  float c[4];
  for (int i = 0; i < 4; ++i) c[i] = load_global(&buffers->c[g + i / 2 * 8][2 * j + i % 2]);
  mma_bf16(c, make_uint4(a(g, j), a(g + 8, j), a(g, j + 4), a(g + 8, j + 4)), make_uint2(b(j), b(j + 4)));
  for (int i = 0; i < 4; ++i) store_global(&buffers->c[g + i / 2 * 8][2 * j + i % 2], c[i]);
}

TEST(Collectives, MmaIsTheMatrixProduct) {
  Buffer<MmaBuffers> buffers(1);
  std::mt19937 random(7);
  std::uniform_real_distribution<float> uniform(-1, 1);
  for (auto& row : buffers[0].a) {
    for (uint16_t& value : row) value = float_to_bf16(uniform(random));
  }
  for (auto& row : buffers[0].b) {
    for (uint16_t& value : row) value = float_to_bf16(uniform(random));
  }
  float expected[16][8];
  for (int row = 0; row < 16; ++row) {
    for (int column = 0; column < 8; ++column) {
      float sum = 0;
      for (int k = 0; k < 16; ++k) {
        sum += bf16_to_float(buffers[0].a[row][k]) * bf16_to_float(buffers[0].b[k][column]);
      }
      buffers[0].c[row][column] = uniform(random);
      expected[row][column] = buffers[0].c[row][column] + sum;
    }
  }
  ASSERT_EQ(run(mma_kernel, with_workspace(buffers.data()), {1, kLanes, 0}, checked()), "");
  for (int row = 0; row < 16; ++row) {
    for (int column = 0; column < 8; ++column) EXPECT_EQ(buffers[0].c[row][column], expected[row][column]);
  }
}

void transpose_kernel(LaunchParams params) {
  const int lane = thread_index();
  const auto element = [](int row, int column) { return static_cast<uint32_t>(row * 8 + column); };
  const uint32_t mine = element(lane / 4, lane % 4 * 2) | element(lane / 4, lane % 4 * 2 + 1) << 16;
  store_global(static_cast<uint32_t*>(params.workspace) + lane, transpose_8x8(mine));
}

TEST(Collectives, TransposeSwapsRowsAndColumns) {
  Buffer<uint32_t> out(kLanes);
  ASSERT_EQ(run(transpose_kernel, with_workspace(out.data()), {1, kLanes, 0}, checked()), "");
  for (int row = 0; row < 8; ++row) {
    for (int column = 0; column < 8; ++column) {
      EXPECT_EQ(out[row * 4 + column / 2] >> (column % 2 * 16) & 0xffff, static_cast<uint32_t>(column * 8 + row));
    }
  }
}

void mixed_collectives_kernel(LaunchParams) {
  if (thread_index() == 3) {
    warp_any(true);
  } else {
    warp_sync();
  }
}

TEST(Collectives, DifferentOperationsInOneWarpAreAnError) {
  const std::string error = run(mixed_collectives_kernel, {}, {1, kLanes, 0}, checked());
  EXPECT_TRUE(contains(error, "different operations")) << error;
}

void left_collective_kernel(LaunchParams) {
  if (thread_index() != 3) warp_sync();
}

TEST(Collectives, AMissingLaneIsADeadlock) {
  const std::string error = run(left_collective_kernel, {}, {1, kLanes, 0}, checked());
  EXPECT_TRUE(contains(error, "31 threads of CTA 0 wait for the other lanes of its warp in warp_sync")) << error;
  EXPECT_TRUE(contains(error, "1 threads have returned")) << error;
}

TEST(Arithmetic, Bf16RoundsToNearestEven) {
  const auto bits = [](float value) { return static_cast<int>(float_to_bf16(value)); };
  EXPECT_EQ(bits(1.0f), 0x3f80);
  EXPECT_EQ(bits(std::bit_cast<float>(0x3f808000u)), 0x3f80);  // a tie, down to even
  EXPECT_EQ(bits(std::bit_cast<float>(0x3f818000u)), 0x3f82);  // a tie, up to even
  EXPECT_EQ(bits(std::bit_cast<float>(0x3f808001u)), 0x3f81);
  EXPECT_EQ(bits(-INFINITY), 0xff80);
  EXPECT_TRUE(std::isnan(bf16_to_float(float_to_bf16(std::bit_cast<float>(0x7f800001u)))));
  EXPECT_EQ(pack_bf16(1.0f, -2.0f), 0xc0003f80u);
}

// ---- A ring of pages, and a vector that all CTAs exchange: the two things that kernels are made of.
// Warp 0 is the producer; warps 1 and 2 each add up half of every page and hand the sum to warp 3, the epilogue, which
// stores the CTA's element of the step's vector. Every consumer takes the whole vector in before the next page.

constexpr int kNumCtas = 3;
constexpr int kThreads = 4 * kLanes;
constexpr int kConsumers = 2 * kLanes;
constexpr int kSlots = 2;
constexpr int kWords = 64;  // of a page
constexpr int kSteps = 7;
constexpr int kBuffers = 3;  // of the vector: one is read, one written, one cleared
constexpr uint32_t kEmpty = ~0u;

struct RingShared {
  alignas(16) uint32_t pages[kSlots][kWords];
  Barrier full[kSlots];
  Barrier empty[kSlots];
  Barrier sums_full;
  Barrier sums_empty;
  uint32_t sums[2];
};

struct RingGlobal {
  alignas(16) uint32_t pages[kNumCtas][kSteps][kWords];
  uint32_t vector[kBuffers][kNumCtas];
  uint32_t result[kNumCtas];
};

uint32_t add_lanes(uint32_t value) {
  for (int mask = 16; mask > 0; mask /= 2) value += shuffle_xor(value, mask);
  return value;
}

/// The sum of the vector of `step`, once all of it has arrived.
uint32_t take_vector(RingGlobal* global, int step, const WaitBound& bound) {
  const int lane = thread_index() % kLanes;
  WaitSite site = {WaitKind::kVector, static_cast<uint32_t>(step), 1, 0, 0, kEmpty};
  Spin spin(bound);
  for (;;) {
    const uint32_t mine =
        lane < num_ctas() ? load_relaxed(&global->vector[step % kBuffers][lane]) : 0u;
    if (!warp_any(mine == kEmpty)) return add_lanes(mine);
    site.index = lane;
    spin.pause(site);
  }
}

void ring_producer(RingShared* shared, RingGlobal* global, const WaitBound& bound) {
  for (int step = 0; step < kSteps; ++step) {
    const int slot = step % kSlots;
    const uint32_t turn = step / kSlots;
    const WaitSite site = {WaitKind::kPageEmpty, static_cast<uint32_t>(step), 0, static_cast<uint32_t>(slot), 0, 0};
    wait_barrier(&shared->empty[slot], (turn & 1) ^ 1, site, bound);
    barrier_arrive_expect(&shared->full[slot], sizeof shared->pages[slot]);
    copy_page(shared->pages[slot], global->pages[cta_index()][step], sizeof shared->pages[slot],
              &shared->full[slot]);
  }
}

void ring_consumer(RingShared* shared, RingGlobal* global, const WaitBound& bound) {
  const int half = thread_index() / kLanes - 1;
  const int lane = thread_index() % kLanes;
  for (int step = 0; step < kSteps; ++step) {
    const int slot = step % kSlots;
    const auto place = static_cast<uint32_t>(step);
    const uint32_t before = step == 0 ? 1 : take_vector(global, step - 1, bound);
    wait_barrier(&shared->full[slot], step / kSlots & 1, {WaitKind::kPageFull, place, 0, 0, 0, 0}, bound);
    const uint32_t sum = add_lanes(load_shared(&shared->pages[slot][half * kLanes + lane]));
    barrier_arrive(&shared->empty[slot]);
    if (lane != 0) continue;
    wait_barrier(&shared->sums_empty, (step & 1) ^ 1, {WaitKind::kTileEmpty, place, 0, 0, 0, 0}, bound);
    store_shared(&shared->sums[half], sum * (half + 1) + before);
    barrier_arrive(&shared->sums_full);
  }
}

/// Lane 0 alone. The buffer of step + 2 (that is step - 1) is cleared once the consumers of this CTA, which have handed
/// over their sums, hold the vector of step - 1; the neighbour writes it two steps on, and learns of the clearing by
/// the fence and the vector between.
void ring_epilogue(RingShared* shared, RingGlobal* global, const WaitBound& bound) {
  const int ctas = num_ctas();
  for (int step = 0; step < kSteps; ++step) {
    const auto place = static_cast<uint32_t>(step);
    wait_barrier(&shared->sums_full, step & 1, {WaitKind::kTileFull, place, 0, 0, 0, 0}, bound);
    const uint32_t sum = load_shared(&shared->sums[0]) + load_shared(&shared->sums[1]);
    barrier_arrive(&shared->sums_empty);
    const int owned = (cta_index() + step) % ctas;  // Elements change hands at every step.
    if (step >= 2) {
      store_relaxed(&global->vector[(step + 1) % kBuffers][(owned + ctas - 2) % ctas], kEmpty);
      fence_device();
    }
    store_relaxed(&global->vector[step % kBuffers][owned], sum % 65521);
  }
}

void ring_kernel(LaunchParams params) {
  auto* shared = reinterpret_cast<RingShared*>(shared_memory());
  auto* global = static_cast<RingGlobal*>(params.workspace);
  const WaitBound bound = make_wait_bound(params);
  if (thread_index() == 0) {
    for (int slot = 0; slot < kSlots; ++slot) {
      barrier_init(&shared->full[slot], 1);
      barrier_init(&shared->empty[slot], kConsumers);
    }
    barrier_init(&shared->sums_full, 2);
    barrier_init(&shared->sums_empty, 1);
    barrier_init_fence();
  }
  cta_sync();
  const int warp = thread_index() / kLanes;
  if (thread_index() == 0) ring_producer(shared, global, bound);
  if (warp == 1 || warp == 2) ring_consumer(shared, global, bound);
  if (thread_index() == 3 * kLanes) ring_epilogue(shared, global, bound);
  if (warp == 1) {
    const uint32_t sum = take_vector(global, kSteps - 1, bound);
    if (thread_index() % kLanes == 0) store_global(&global->result[cta_index()], sum);
  }
}

}  // namespace
}  // namespace soliton
