// What the driver is asked and what becomes of its answers, with a library in the driver's place.
#include "runtime/device/cuda_driver.h"

#include <dlfcn.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <string>

#include "models/error.h"

namespace soliton {
namespace {

const std::string kFakeDriver = std::string(SOLITON_BINARY_DIR) + "/fake_cuda/libcuda.so.1";

/// The answer of the library with a variable of its environment set.
DeviceAnswer ask(int device, const char* variable = "FAKE_CUDA_NAME", const char* value = "NVIDIA H200") {
  ::setenv(variable, value, 1);
  const DeviceAnswer answer = ask_driver(device, kFakeDriver.c_str());
  ::unsetenv(variable);
  EXPECT_NE(answer.device.has_value(), !answer.reason.empty());
  return answer;
}

TEST(CudaDriver, SaysAllOfACard) {
  const DeviceAnswer answer = ask(0);
  ASSERT_TRUE(answer.device) << answer.reason;
  EXPECT_STREQ(answer.device->name, "NVIDIA H200");
  EXPECT_EQ(answer.device->compute_capability, 90);
  EXPECT_EQ(answer.device->num_sms, 132);
  EXPECT_EQ(answer.device->max_shared_bytes, 232448);
  EXPECT_EQ(answer.device->driver_version, 13000);
  EXPECT_EQ(answer.device->total_bytes, 150'000'000'000);
  EXPECT_EQ(answer.device->free_bytes, 149'000'000'000);
  EXPECT_EQ(answer.device->sm_clock_khz, 1'980'000);
  EXPECT_EQ(answer.device->memory_clock_khz, 3'201'000);
  EXPECT_EQ(answer.device->memory_bus_bits, 6144);
  EXPECT_EQ(answer.device->registers_per_sm, 65536);
  EXPECT_EQ(answer.device->l2_bytes, 52'428'800);
  EXPECT_EQ(answer.device->unified_memory, 0);
  EXPECT_EQ(answer.device->has_time_limit, 0);
}

TEST(CudaDriver, SaysWhetherACardDrivesADisplay) {
  const DeviceAnswer answer = ask(0, "FAKE_CUDA_ATTRIBUTES", "17=1");
  ASSERT_TRUE(answer.device) << answer.reason;
  EXPECT_EQ(answer.device->has_time_limit, 1);
  EXPECT_EQ(answer.device->unified_memory, 0);
}

// Of the host's memory, what caches of files hold is free too, which the driver does not say.
TEST(CudaDriver, CountsWhatCachesWouldGiveBackOfUnifiedMemory) {
  ::setenv("FAKE_CUDA_FREE_BYTES", "1000000", 1);
  const DeviceAnswer apart = ask(0);
  const DeviceAnswer unified = ask(0, "FAKE_CUDA_ATTRIBUTES", "18=1");
  ::unsetenv("FAKE_CUDA_FREE_BYTES");
  ASSERT_TRUE(apart.device && unified.device);
  EXPECT_EQ(apart.device->free_bytes, 1'000'000);
  EXPECT_EQ(unified.device->unified_memory, 1);
  EXPECT_GT(unified.device->free_bytes, 1'000'000);
  EXPECT_LE(unified.device->free_bytes, unified.device->total_bytes);
  EXPECT_EQ(ask(0, "FAKE_CUDA_ATTRIBUTES", "18=1").device->free_bytes, 149'000'000'000)
      << "never less than the driver says";
}

TEST(CudaDriver, CutsNamesThatAreTooLong) {
  const DeviceAnswer answer = ask(0, "FAKE_CUDA_NAME", std::string(1000, 'x').c_str());
  ASSERT_TRUE(answer.device) << answer.reason;
  EXPECT_EQ(std::string(answer.device->name), std::string(sizeof(DeviceInfo::name) - 1, 'x'));
}

TEST(CudaDriver, CountsCards) {
  EXPECT_TRUE(ask(1, "FAKE_CUDA_CARDS", "2").device);
  EXPECT_EQ(ask(2, "FAKE_CUDA_CARDS", "2").reason,
            kFakeDriver + ": expected a card of index 2, found 0 to 1");
  EXPECT_EQ(ask(0, "FAKE_CUDA_CARDS", "0").reason, kFakeDriver + ": expected a card, found none");
}

TEST(CudaDriver, KnowsWhatJoinsCards) {
  const auto links = [](const char* cards, const char* link) {
    ::setenv("FAKE_CUDA_CARDS", cards, 1);
    ::setenv("FAKE_CUDA_LINK", link, 1);
    std::vector<LinkedDevice> found = ask_links(1, kFakeDriver.c_str());
    ::unsetenv("FAKE_CUDA_CARDS");
    ::unsetenv("FAKE_CUDA_LINK");
    return found;
  };
  const std::vector<LinkedDevice> joined = links("3", "nvlink");
  ASSERT_EQ(joined.size(), 2u);
  EXPECT_EQ(joined[0].index, 0);
  EXPECT_EQ(joined[1].index, 2);
  EXPECT_EQ(joined[1].name, "NVIDIA H200");
  EXPECT_TRUE(joined[1].same_kind && joined[1].reaches && joined[1].native_atomics);
  EXPECT_TRUE(links("2", "pcie").at(0).reaches);
  EXPECT_FALSE(links("2", "pcie").at(0).native_atomics);
  EXPECT_FALSE(links("2", "none").at(0).reaches);
  EXPECT_TRUE(links("1", "nvlink").empty());  // there is no card 1 that could have any
}

TEST(CudaDriver, SaysWhatFails) {
  for (const std::string name : {"cuInit", "cuDevicePrimaryCtxRetain", "cuMemGetInfo"}) {
    EXPECT_EQ(ask(0, "FAKE_CUDA_FAILS", name.c_str()).reason, kFakeDriver + ": " + name + ": out of memory");
  }
}

TEST(CudaDriver, SaysThatThereIsNone) {
  const DeviceAnswer absent = ask_driver(0, "libcuda-of-no-driver.so.1");
  EXPECT_FALSE(absent.device);
  EXPECT_EQ(absent.reason.find("expected the library of NVIDIA's driver, got: libcuda-of-no-driver.so.1: "),
            0u)
      << absent.reason;
  EXPECT_EQ(ask_driver(0, "libm.so.6").reason, "libm.so.6: expected a newer driver, got one without cuInit");
}

TEST(CudaDriver, MakesAContextCurrentForAWhile) {
  void* const fake = ::dlopen(kFakeDriver.c_str(), RTLD_NOW | RTLD_LOCAL);
  ASSERT_NE(fake, nullptr);
  const auto needs_context = reinterpret_cast<int (*)(size_t*, size_t*)>(::dlsym(fake, "cuMemGetInfo_v2"));
  size_t bytes = 0;
  const PrimaryContext context(0, kFakeDriver.c_str());
  EXPECT_NE(needs_context(&bytes, &bytes), 0);
  {
    const PrimaryContext::Current current(&context);
    EXPECT_EQ(needs_context(&bytes, &bytes), 0);
  }
  EXPECT_NE(needs_context(&bytes, &bytes), 0);
  const PrimaryContext::Current none(nullptr);
  EXPECT_NE(needs_context(&bytes, &bytes), 0);
  EXPECT_THROW(PrimaryContext(1, kFakeDriver.c_str()), Error);
}

}  // namespace
}  // namespace soliton
