// Which card a device is taken for, by made-up devices.
#include "runtime/tools/make/gpu_for_device.h"

#include <gtest/gtest.h>

#include "error_of.h"
#include "models/error.h"
#include "temporary_folder.h"

namespace soliton {
namespace {

constexpr int kSharedBytes = 232448;

DeviceInfo device(const std::string& name, int compute_capability, int num_sms,
                  int shared_bytes = kSharedBytes) {
  DeviceInfo info{};
  name.copy(info.name, sizeof(info.name) - 1);
  info.compute_capability = compute_capability;
  info.num_sms = num_sms;
  info.max_shared_bytes = shared_bytes;
  return info;
}

std::string chosen(const DeviceInfo& info, const std::filesystem::path& gpus_dir = default_gpus_dir()) {
  try {
    return gpu_for_device(info, gpus_dir).name;
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::kMismatch);
    return error.what();
  }
}

TEST(GpuForDevice, GoesByTheName) {
  EXPECT_EQ(chosen(device("NVIDIA H200", 90, 132)), "h200");
  EXPECT_EQ(chosen(device("NVIDIA H200 NVL", 90, 132)), "h200");
  EXPECT_EQ(chosen(device("NVIDIA H100 80GB HBM3", 90, 132)), "h100");
  EXPECT_EQ(chosen(device("nvidia h200", 90, 140)), "h200");
}

TEST(GpuForDevice, GoesByTheSmsOfACardOfAnotherName) {
  for (const char* name : {"NVIDIA H800", "NVIDIA GH200 480GB", ""}) {
    const DeviceInfo info = device(name, 90, 132);
    const GpuSpec gpu = gpu_for_device(info, default_gpus_dir());
    EXPECT_EQ(gpu.compute_capability, 90);
    EXPECT_EQ(gpu.num_sms, 132);
    EXPECT_FALSE(is_called(info, gpu)) << name;
  }
}

TEST(GpuForDevice, TakesTheEmulationForNoCardOnly) {
  EXPECT_EQ(chosen(device("CPU emulation", 0, 0, 0)), "cpu");
  EXPECT_NE(chosen(device("NVIDIA cpu", 90, 4)), "cpu");
}

TEST(GpuForDevice, RefusesOthersAndListsTheKnown) {
  const std::string known = ": expected one of h100 (sm_90, 132 SMs), h200 (sm_90, 132 SMs), got ";
  EXPECT_EQ(
      chosen(device("NVIDIA A100-SXM4-80GB", 80, 108, 166912)),
      "NVIDIA A100-SXM4-80GB" + known +
          "sm_80, 108 SMs, 166912 bytes of shared memory a block; for another card see \"Add a card\" in "
          "generator/README.md");
  for (const DeviceInfo& info :
       {device("NVIDIA H100 PCIe", 90, 114), device("NVIDIA H200 MIG 1g.18gb", 90, 16),
        device("NVIDIA H200", 90, 132, kSharedBytes - 1), device("NVIDIA H200", 100, 132),
        device("NVIDIA B200", 100, 148), device("", 0x7fffffff, -1)}) {
    EXPECT_NE(chosen(info).find(known), std::string::npos) << info.name;
  }
}

TEST(GpuForDevice, TheLongerNameSaysMore) {
  const TemporaryFolder folder;
  const std::string h200 = read_file(default_gpus_dir() / "h200.yaml");
  for (const std::string name : {"h200", "h200-nvl", "nvl", "zeta"}) {
    folder.write(name + ".yaml", with(h200, "name: h200", "name: " + name));
  }
  EXPECT_EQ(chosen(device("NVIDIA H200 NVL", 90, 132), folder.path()), "h200-nvl");
  EXPECT_EQ(chosen(device("NVIDIA H200", 90, 132), folder.path()), "h200");
  EXPECT_EQ(chosen(device("NVIDIA zeta-h200", 90, 132), folder.path()), "h200");
}

}  // namespace
}  // namespace soliton
