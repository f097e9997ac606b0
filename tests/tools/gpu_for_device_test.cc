// Which card a device is taken for, by made-up devices.
#include "runtime/make/gpu_for_device.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <optional>

#include "error_of.h"
#include "models/error.h"
#include "runtime/device/card_name.h"
#include "runtime/make/card_spec.h"
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

DeviceInfo with_memory(DeviceInfo info, int gigabytes) {
  info.total_bytes = int64_t{gigabytes} * 1'000'000'000;
  return info;
}

/// The spec's name, or why there is none. Nothing is measured.
std::string chosen(const DeviceInfo& info, const std::filesystem::path& gpus_dir = default_gpus_dir()) {
  try {
    return gpu_for_device(info, gpus_dir, "/absent").name;
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::kMismatch) << error.what();
    return error.what();
  }
}

/// A card that nobody has written down.
DeviceInfo unknown_device() {
  DeviceInfo info = device("NVIDIA GeForce RTX 4080 SUPER", 89, 80, 101376);
  info.driver_version = 13000;
  info.total_bytes = 16'700'000'000;
  info.free_bytes = 16'000'000'000;
  info.sm_clock_khz = 2'550'000;
  info.memory_clock_khz = 11'501'000;
  info.memory_bus_bits = 256;
  info.registers_per_sm = 65536;
  info.l2_bytes = 64 << 20;
  return info;
}

constexpr const char* kUnknownName = "rtx-4080-super-80sm-17gb";

TEST(GpuForDevice, GoesByTheName) {
  EXPECT_EQ(chosen(device("NVIDIA H200", 90, 132)), "h200");
  EXPECT_EQ(chosen(device("NVIDIA H200 NVL", 90, 132)), "h200");
  EXPECT_EQ(chosen(device("NVIDIA H100 80GB HBM3", 90, 132)), "h100");
  EXPECT_EQ(chosen(device("nvidia h200", 90, 132)), "h200");
  EXPECT_EQ(chosen(device("NVIDIA H100 PCIe", 90, 114)), "h100-pcie");
  EXPECT_EQ(chosen(device("NVIDIA B200", 100, 148)), "b200");
  EXPECT_EQ(chosen(device("NVIDIA GeForce RTX 4090", 89, 128, 101376)), "rtx-4090");
  EXPECT_EQ(chosen(device("NVIDIA L4", 89, 58, 101376)), "l4");
  EXPECT_EQ(chosen(device("NVIDIA A100-SXM4-40GB", 80, 108, 166912)), "a100-40");
  EXPECT_EQ(chosen(device("NVIDIA A100 80GB PCIe", 80, 108, 166912)), "a100-80");
}

TEST(GpuForDevice, GoesByTheSmsAndTheMemoryToo) {
  EXPECT_EQ(chosen(with_memory(device("NVIDIA GeForce RTX 3060 Ti", 86, 38, 101376), 8)),
            "rtx-3060-ti-38sm-8gb");
  EXPECT_EQ(chosen(with_memory(device("NVIDIA H200", 90, 140), 150)), "h200-140sm-150gb");
  EXPECT_EQ(chosen(with_memory(device("NVIDIA H200 MIG 1g.18gb", 90, 16), 18)), "h200-mig-1g-18gb-16sm-18gb");
  DeviceInfo small = device("NVIDIA GeForce RTX 3060", 86, 28, 101376);
  small.total_bytes = 8'200'000'000;
  EXPECT_EQ(chosen(small), "rtx-3060-28sm-8gb");
  small.total_bytes = 12'600'000'000;
  EXPECT_EQ(chosen(small), "rtx-3060");
  // Drivers call all of these the same.
  DeviceInfo board = device("Orin", 87, 16, 166912);
  board.total_bytes = 65'000'000'000;
  EXPECT_EQ(chosen(board), "jetson-agx-orin");
  board.num_sms = 8;
  board.total_bytes = 7'990'000'000;
  EXPECT_EQ(chosen(board), "jetson-orin-nano");
}

TEST(GpuForDevice, GoesByTheSmsOfACardOfAnotherName) {
  for (const char* name : {"NVIDIA H800", "NVIDIA GH200 480GB", ""}) {
    const DeviceInfo info = device(name, 90, 132);
    const std::optional<GpuSpec> gpu = shipped_gpu(info, default_gpus_dir());
    ASSERT_TRUE(gpu) << name;
    EXPECT_EQ(gpu->compute_capability, 90);
    EXPECT_EQ(gpu->num_sms, 132);
    EXPECT_FALSE(is_called(name, gpu->name)) << name;
  }
}

TEST(GpuForDevice, TakesTheEmulationForNoCardOnly) {
  EXPECT_EQ(chosen(device("CPU emulation", 0, 0, 0)), "cpu");
  EXPECT_EQ(chosen(with_memory(device("NVIDIA cpu", 90, 4), 8)), "cpu-4sm-8gb");
}

TEST(GpuForDevice, RefusesCardsBeforeAmpere) {
  EXPECT_EQ(chosen(device("NVIDIA GeForce RTX 2080 Ti", 75, 68, 65536)),
            "NVIDIA GeForce RTX 2080 Ti: expected a card of compute capability 8.0 or later, got 7.5");
  EXPECT_EQ(chosen(device("", 61, 20, 49152)),
            "device: expected a card of compute capability 8.0 or later, got 6.1");
}

TEST(GpuForDevice, RefusesWhatADriverCannotMean) {
  for (const DeviceInfo& info :
       {device("", 0x7fffffff, -1), device("NVIDIA X", 89, 80), with_memory(device("NVIDIA X", 89, 0), 8),
        with_memory(device("NVIDIA X", 89, 80, 0), 8)}) {
    EXPECT_EQ(error_of([&] { gpu_for_device(info, default_gpus_dir(), "/absent"); }).substr(0, 2), "4 ");
  }
}

TEST(GpuForDevice, DescribesAnUnknownCardByItsDriver) {
  const GpuSpec gpu = gpu_for_device(unknown_device(), default_gpus_dir(), "/absent");
  EXPECT_EQ(gpu.name, kUnknownName);
  EXPECT_EQ(gpu.compute_capability, 89);
  EXPECT_EQ(gpu.num_sms, 80);
  EXPECT_EQ(gpu.max_shared_bytes_per_block, 101376);
  EXPECT_EQ(gpu.registers_per_sm, 65536);
  EXPECT_EQ(gpu.l2_bytes, 64 << 20);
  EXPECT_EQ(gpu.memory_bytes, 16.7e9);
  EXPECT_FALSE(gpu.unified_memory);
  EXPECT_NEAR(gpu.read_bandwidth_bytes_per_s, 0.92 * 736e9, 1e9);  // estimated
  const GpuSpec h100 =
      gpu_for_device(device("NVIDIA H100 80GB HBM3", 90, 132), default_gpus_dir(), "/absent");
  for (double GpuSpec::*time : {&GpuSpec::phase_wait_us, &GpuSpec::phase_latency_us,
                                &GpuSpec::attention_item_us, &GpuSpec::attention_mma_us})
    EXPECT_NEAR(gpu.*time, h100.*time * 1.98 / 2.55, 1e-9);
  EXPECT_EQ(gpu.default_window, 2);
}

// Drivers of boards leave out the memory's clock.
TEST(GpuForDevice, EstimatesByTheSmsWhereNothingElseIsSaid) {
  DeviceInfo info = device("NVIDIA X", 110, 14);
  EXPECT_EQ(estimated_bandwidth(info), 14 * 6e9);
  info.memory_clock_khz = 4'000'000;
  info.memory_bus_bits = 256;
  info.unified_memory = 1;
  EXPECT_NEAR(estimated_bandwidth(info), 0.85 * 256e9, 1);
}

// A card as fast as an H200 has as many pages in flight.
TEST(GpuForDevice, KeepsAsMuchInFlightAsTheBandwidthNeeds) {
  DeviceInfo info = device("NVIDIA X", 90, 132);
  info.total_bytes = 99'000'000'000;
  info.sm_clock_khz = 1'980'000;
  EXPECT_EQ(spec_from_driver(info, 4.6e12).default_window, 3);
  EXPECT_EQ(spec_from_driver(info, 7e12).default_window, 4);
}

TEST(GpuForDevice, MeasuresOnceAndKeepsTheSpec) {
  const TemporaryFolder folder;
  const std::filesystem::path kept = folder.path() / "new" / (std::string(kUnknownName) + ".yaml");
  int calls = 0;
  const auto choose = [&](double rate) {
    return gpu_for_device(unknown_device(), default_gpus_dir(), kept.parent_path(), [&](const GpuSpec& gpu) {
      ++calls;
      EXPECT_EQ(gpu.name, kUnknownName);
      return rate;
    });
  };
  EXPECT_NEAR(choose(0).read_bandwidth_bytes_per_s, 677e9, 1e9) << "nothing could be measured";
  EXPECT_FALSE(std::filesystem::exists(kept));
  EXPECT_EQ(choose(700e9).read_bandwidth_bytes_per_s, 700e9);
  EXPECT_EQ(choose(1e9).read_bandwidth_bytes_per_s, 700e9);
  EXPECT_EQ(calls, 2);
  EXPECT_TRUE(read_file(kept).starts_with("# NVIDIA GeForce RTX 4080 SUPER, as its driver describes it; "));
  EXPECT_EQ(load_gpu_spec(kept).exchange_bytes_per_s, 700e9) << "soliton-gen --gpu FILE.yaml";
  EXPECT_EQ(
      gpu_for_device(unknown_device(), default_gpus_dir(), kept.parent_path()).read_bandwidth_bytes_per_s,
      700e9);
}

// Somebody has changed it.
TEST(GpuForDevice, AKeptSpecMayClaimLessThanTheCardHas) {
  const TemporaryFolder folder;
  const std::string file = std::string(kUnknownName) + ".yaml";
  const std::string text = format_gpu_spec(spec_from_driver(unknown_device(), 700e9), "");
  const auto choose = [&](const std::string& from, const std::string& to) {
    folder.write(file, with(text, from, to));
    return error_of([&] { gpu_for_device(unknown_device(), default_gpus_dir(), folder.path()); });
  };
  const auto refusal = [&](const std::string& what) {
    return "5 " + (folder.path() / file).string() + ": " + what + "; without this file one is made";
  };
  const std::string has = " as NVIDIA GeForce RTX 4080 SUPER has, got ";
  EXPECT_EQ(choose("num_sms: 80", "num_sms: 46"), "no error");
  EXPECT_EQ(choose("block: 101376", "block: 65536"), "no error");
  EXPECT_EQ(choose("num_sms: 80", "num_sms: 84"), refusal("num_sms: expected at most 80" + has + "84"));
  EXPECT_EQ(choose("block: 101376", "block: 166912"),
            refusal("max_shared_bytes_per_block: expected at most 101376" + has + "166912"));
  EXPECT_EQ(choose("registers_per_sm: 65536", "registers_per_sm: 131072"),
            refusal("registers_per_sm: expected at most 65536" + has + "131072"));
  EXPECT_EQ(choose("compute_capability: 89", "compute_capability: 86"),
            refusal("compute_capability: expected 89" + has + "86"));
  EXPECT_EQ(choose("num_sms: 80", "num_sms: x").substr(0, 2), "4 ");
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
