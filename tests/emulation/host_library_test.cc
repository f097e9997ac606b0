// A kernel library for the CPU, used as the runtime uses it: through its C ABI.
#include "primitives/host_library.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <thread>
#include <vector>

#include "emulator_testing.h"

namespace soliton {
namespace {

constexpr int kLanes = 32;

void abi_kernel(LaunchParams params) {
  if (thread_index() != 0) return;
  for (int i = 0; i < params.num_steps; ++i)
    store_system(params.records + i, static_cast<uint64_t>(cta_index() + i));
  Spin spin(make_wait_bound(nullptr));
  while (load_system(params.stop_request) == 0) spin.pause({});
  if (load_system(params.stop_request) == 2)
    wait_barrier(reinterpret_cast<Barrier*>(shared_memory()), 0, {}, {});
}

constexpr Descriptor make_abi_descriptor() {
  Descriptor descriptor = {};
  descriptor.num_ctas = 1;
  descriptor.threads_per_cta = kLanes;
  descriptor.shared_bytes = 64;
  return descriptor;
}
constexpr Descriptor kAbiDescriptors[] = {make_abi_descriptor()};
constexpr DecodeKernel kAbiKernels[] = {abi_kernel};

}  // namespace
}  // namespace soliton

SOLITON_LIBRARY(soliton::kAbiKernels, soliton::kAbiDescriptors)

namespace soliton {
namespace {

TEST(HostLibrary, RecordsAreReadWhileTheKernelRuns) {
  const Library* library = soliton_library();
  ASSERT_EQ(library->abi, kLibraryAbi);
  DeviceInfo info;
  ASSERT_EQ(library->open(0, &info), 0);
  EXPECT_STREQ(info.name, "CPU emulation");
  EXPECT_EQ(info.compute_capability, 0);
  EXPECT_NE(library->open(1, &info), 0);
  EXPECT_TRUE(contains(library->last_error(), "only device 0"));

  void* records = nullptr;
  void* stop = nullptr;
  ASSERT_EQ(library->allocate_shared(2 * sizeof(uint64_t), &records), 0);
  ASSERT_EQ(library->allocate_shared(sizeof(uint32_t), &stop), 0);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(records) % 256, 0u);
  soliton_emulation()->options = checked();
  LaunchParams params = {};
  params.num_steps = 2;
  params.records = static_cast<uint64_t*>(records);
  params.stop_request = static_cast<uint32_t*>(stop);
  for (const uint32_t request : {1u, 2u}) {
    library->fill(records, 0xff, 2 * sizeof(uint64_t));
    library->fill(stop, 0, sizeof(uint32_t));
    ASSERT_EQ(library->launch(0, &params, 1), 0);
    std::atomic_ref last(params.records[1]);
    while (last.load() == kNoRecord) std::this_thread::yield();
    EXPECT_EQ(last.load(), 1u);
    EXPECT_EQ(library->poll(), LaunchState::kRunning);
    EXPECT_NE(library->launch(0, &params, 1), 0);
    std::atomic_ref(*static_cast<uint32_t*>(stop)).store(request);
    EXPECT_EQ(library->wait() == 0, request == 1);
    EXPECT_EQ(library->poll(), request == 1 ? LaunchState::kDone : LaunchState::kFailed);
  }
  EXPECT_TRUE(contains(library->last_error(), "on what is no barrier")) << library->last_error();
  library->release_shared(records);
  library->release_shared(stop);
}

TEST(HostLibrary, FillRandomDependsOnSeedAndIndexAlone) {
  const Library* library = soliton_library();
  std::vector<uint16_t> values(1000);
  std::vector<uint16_t> other(500);
  library->fill_random(values.data(), values.size(), 0.5f, 3, {});
  library->fill_random(other.data(), other.size(), 0.5f, 3, {});
  EXPECT_TRUE(std::equal(other.begin(), other.end(), values.begin()));
  float low = 0, high = 0;
  for (const uint16_t value : values) {
    low = std::min(low, bf16_to_float(value));
    high = std::max(high, bf16_to_float(value));
  }
  EXPECT_LT(low, -0.45f);
  EXPECT_GE(low, -0.5f);
  EXPECT_GT(high, 0.45f);
  EXPECT_LE(high, 0.5f);
  library->fill_random(other.data(), other.size(), 0.5f, 4, {});
  EXPECT_FALSE(std::equal(other.begin(), other.end(), values.begin()));
}

}  // namespace
}  // namespace soliton
