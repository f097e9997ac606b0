// Shipped GPU specs load; every impossible number is refused by its exact line.
#include "generator/gpu_spec.h"

#include <gtest/gtest.h>

#include <map>
#include <set>

#include "error_of.h"
#include "models/strict_yaml.h"

namespace soliton {
namespace {

const std::filesystem::path kGpus = std::filesystem::path(SOLITON_SOURCE_DIR) / "generator" / "gpus";

const std::string kGood =
    "name: g\n"
    "compute_capability: 90\n"
    "num_sms: 132\n"
    "max_shared_bytes_per_block: 232448\n"
    "registers_per_sm: 65536\n"
    "max_registers_per_thread: 255\n"
    "max_threads_per_block: 1024\n"
    "l2_bytes: 52428800\n"
    "memory_bytes: 80e9\n"
    "unified_memory: false\n"
    "read_bandwidth_bytes_per_s: 4.60e12\n"
    "phase_wait_us: 2.3\n"
    "phase_latency_us: 4.2\n"
    "attention_item_us: 1.25\n"
    "attention_mma_us: 0.002\n"
    "exchange_bytes_per_s: 3.5e12\n"
    "default_window: 3\n"
    "emulated: false\n";

std::string changed(const std::string& from, const std::string& to) {
  return error_of([&] { parse_gpu_spec(StrictYaml::parse(with(kGood, from, to), "g.yaml")); });
}

TEST(GpuSpec, RefusesNumbersOutOfRange) {
  EXPECT_EQ(changed("compute_capability: 90", "compute_capability: 75"),
            "4 g.yaml:2: compute_capability: expected 80 or more (such as 89 for 8.9), or 0 for the "
            "emulation, got 75");
  EXPECT_EQ(changed("compute_capability: 90", "compute_capability: -90"),
            "4 g.yaml:2: compute_capability: expected an integer from 0 to 999, got -90");
  EXPECT_EQ(
      changed("compute_capability: 90", "compute_capability: 9.0"),
      "4 g.yaml:2: compute_capability: expected an integer from 0 to 999, got the floating-point number 9.0");
  EXPECT_EQ(changed("compute_capability: 90", "compute_capability: 130"), "no error")
      << "newer cards may come";
  EXPECT_EQ(changed("num_sms: 132", "num_sms: 0"),
            "4 g.yaml:3: num_sms: expected an integer from 1 to 1024, got 0");
  EXPECT_EQ(
      changed("232448", "232449"),
      "4 g.yaml:4: max_shared_bytes_per_block: expected a multiple of 1024 from 1024 to 1048576, got 232449");
  EXPECT_EQ(changed("registers_per_sm: 65536", "registers_per_sm: 65535"),
            "4 g.yaml:5: registers_per_sm: expected a multiple of 1024 from 1024 to 1048576, got 65535");
  EXPECT_EQ(changed("255", "256"),
            "4 g.yaml:6: max_registers_per_thread: expected an integer from 32 to 255, got 256");
  EXPECT_EQ(changed("max_threads_per_block: 1024", "max_threads_per_block: 1000"),
            "4 g.yaml:7: max_threads_per_block: expected a multiple of 32 from 32 to 1024, got 1000");
  EXPECT_EQ(changed("52428800", "1000"),
            "4 g.yaml:8: l2_bytes: expected an integer from 65536 to 1073741824, got 1000");
  EXPECT_EQ(changed("80e9", "80"),
            "4 g.yaml:9: memory_bytes: expected a number from 1000000 to 1000000000000000, got 80");
  EXPECT_EQ(changed("4.60e12", "4.60"),
            "4 g.yaml:11: read_bandwidth_bytes_per_s: expected a number from 1000000 to 1000000000000000, "
            "got 4.60");
  EXPECT_EQ(changed("2.3", "0"),
            "4 g.yaml:12: phase_wait_us: expected a number above 0 and below 1000000, got 0");
  EXPECT_EQ(changed("4.2", "0"),
            "4 g.yaml:13: phase_latency_us: expected a number above 0 and below 1000000, got 0");
  EXPECT_EQ(changed("1.25", "0"),
            "4 g.yaml:14: attention_item_us: expected a number above 0 and below 1000000, got 0");
  EXPECT_EQ(changed("0.002", "-0.002"),
            "4 g.yaml:15: attention_mma_us: expected a number above 0 and below 1000000, got -0.002");
  EXPECT_EQ(changed("3.5e12", "3.5"),
            "4 g.yaml:16: exchange_bytes_per_s: expected a number from 1000000 to 1000000000000000, got 3.5");
  EXPECT_EQ(changed("default_window: 3", "default_window: 65"),
            "4 g.yaml:17: default_window: expected an integer from 1 to 64, got 65");
}

TEST(GpuSpec, EmulatedAndComputeCapabilityAgree) {
  EXPECT_EQ(changed("emulated: false", "emulated: true"),
            "4 g.yaml:18: emulated: expected false with compute_capability = 90, got true");
  EXPECT_EQ(changed("compute_capability: 90", "compute_capability: 0"),
            "4 g.yaml:18: emulated: expected true with compute_capability = 0, got false");
}

TEST(GpuSpec, RefusesUnknownAndMissingKeys) {
  EXPECT_EQ(changed("num_sms: 132\n", ""),
            "4 g.yaml:1: num_sms: expected an integer from 1 to 1024, got no such key");
  EXPECT_EQ(changed("num_sms", "sms"),
            "4 g.yaml:3: sms: expected one of name, compute_capability, num_sms, max_shared_bytes_per_block, "
            "registers_per_sm, max_registers_per_thread, max_threads_per_block, l2_bytes, memory_bytes, "
            "unified_memory, read_bandwidth_bytes_per_s, "
            "phase_wait_us, phase_latency_us, attention_item_us, attention_mma_us, exchange_bytes_per_s, "
            "default_window, emulated, got an unknown key");
  EXPECT_EQ(changed("name: g", "name: h"), "4 g.yaml:1: name: expected g as the file is called, got h");
}

std::string target(const std::vector<GpuSpec>& gpus) {
  std::string name;
  const std::string error = error_of([&] { name = name_of_target(gpus); });
  return error == "no error" ? name : error;
}

TEST(GpuSpec, ATargetIsACardOrItsArchitecture) {
  const GpuSpec h200 = load_gpu_spec(kGpus / "h200.yaml");
  const GpuSpec h100 = load_gpu_spec(kGpus / "h100.yaml");
  EXPECT_EQ(target({h200}), "h200");
  EXPECT_EQ(target({h100}), "h100");
  EXPECT_EQ(target({h200, h100}), "sm90");
  EXPECT_EQ(target({h100, h200}), "sm90");
  std::vector<GpuSpec> cards(4, h200);
  for (size_t i = 0; i < cards.size(); ++i) cards[i].name = "card" + std::to_string(i);
  EXPECT_EQ(target(cards), "sm90");
  cards.push_back(h200);
  EXPECT_EQ(target(cards), "5 --gpu: expected 4 cards at most for one library, got 5");
  EXPECT_EQ(target({h200, h100, h200}), "2 --gpu: expected each card once, got h200 twice");
}

TEST(GpuSpec, CardsOfATargetDifferInRatesAlone) {
  const GpuSpec h200 = load_gpu_spec(kGpus / "h200.yaml");
  const GpuSpec h100 = load_gpu_spec(kGpus / "h100.yaml");
  const auto with_other = [&](const auto& change) {
    GpuSpec other = h200;
    other.name = "other";
    change(other);
    // Wherever the unlike card stands.
    EXPECT_EQ(target({h200, h100, other}), target({h200, other, h100}));
    return target({h200, other});
  };
  EXPECT_EQ(with_other([](GpuSpec&) {}), "sm90");
  for (double GpuSpec::*rate :
       {&GpuSpec::memory_bytes, &GpuSpec::read_bandwidth_bytes_per_s, &GpuSpec::phase_wait_us,
        &GpuSpec::phase_latency_us, &GpuSpec::attention_item_us, &GpuSpec::attention_mma_us,
        &GpuSpec::exchange_bytes_per_s}) {
    EXPECT_EQ(with_other([&](GpuSpec& other) { other.*rate *= 2; }), "sm90");
  }
  for (int GpuSpec::*limit :
       {&GpuSpec::compute_capability, &GpuSpec::num_sms, &GpuSpec::max_shared_bytes_per_block,
        &GpuSpec::registers_per_sm, &GpuSpec::max_registers_per_thread, &GpuSpec::max_threads_per_block,
        &GpuSpec::default_window}) {
    EXPECT_EQ(with_other([&](GpuSpec& other) { ++(other.*limit); }),
              "5 --gpu: expected cards that differ in rates alone for one library, got h200 and other");
  }
  EXPECT_EQ(target({h200, load_gpu_spec(kGpus / "cpu.yaml")}),
            "5 --gpu: expected cards that differ in rates alone for one library, got h200 and cpu");
}

TEST(GpuSpec, ATargetOfPtxIsCalledAfterIt) {
  const GpuSpec h200 = load_gpu_spec(kGpus / "h200.yaml");
  const GpuSpec h100 = load_gpu_spec(kGpus / "h100.yaml");
  const GpuSpec ptx = with_ptx(h200, 80);
  EXPECT_EQ(ptx.compute_capability, 80);
  EXPECT_EQ(target({ptx}), "compute80");
  EXPECT_EQ(target({ptx, with_ptx(h100, 80)}), "compute80");
  EXPECT_EQ(error_of([&] { with_ptx(h200, 100); }),
            "5 --ptx: expected at most compute_90 for h200, got compute_100");
  EXPECT_EQ(error_of([&] { with_ptx(load_gpu_spec(kGpus / "cpu.yaml"), 80); }),
            "5 --ptx: expected a card in --gpu, got cpu");
}

TEST(GpuSpec, NvccIsToldTheCardsArchitecture) {
  const auto target_of = [](const std::string& name) { return nvcc_target(load_gpu_spec(kGpus / name)); };
  EXPECT_EQ(target_of("a100-80.yaml"), "arch=compute_80,code=sm_80");
  EXPECT_EQ(target_of("h200.yaml"), "arch=compute_90a,code=sm_90a");
  EXPECT_EQ(target_of("b200.yaml"), "arch=compute_100,code=sm_100");
  EXPECT_EQ(target_of("gb10.yaml"), "arch=compute_121,code=sm_121");
  EXPECT_EQ(nvcc_target(with_ptx(load_gpu_spec(kGpus / "h200.yaml"), 80)), "arch=compute_80,code=compute_80");
}

TEST(GpuSpec, PrefetchLeavesRoomInL2) {
  GpuSpec gpu;
  gpu.l2_bytes = 6 << 20;
  EXPECT_EQ(fitting_prefetch_pages(gpu, 82), 3);
  gpu.l2_bytes = 50 << 20;
  EXPECT_EQ(fitting_prefetch_pages(gpu, 132), 16);
  gpu.l2_bytes = 1 << 16;
  EXPECT_EQ(fitting_prefetch_pages(gpu, 132), 0);
}

std::vector<GpuSpec> shipped() {
  std::vector<GpuSpec> gpus;
  for (const std::string& name : list_gpus(kGpus)) gpus.push_back(load_gpu_spec(kGpus / (name + ".yaml")));
  return gpus;
}

TEST(GpuSpec, ShipsEveryArchitecture) {
  std::set<int> capabilities;
  for (const GpuSpec& gpu : shipped()) capabilities.insert(gpu.compute_capability);
  EXPECT_EQ(capabilities, (std::set<int>{0, 80, 86, 87, 89, 90, 100, 110, 120, 121}));
}

// What all cards of an architecture have in common, and rates that are none of another card's by a slip.
TEST(GpuSpec, ShippedOnesAreSane) {
  const std::map<int, int> shared = {{0, 227},  {80, 163},  {86, 99},   {87, 163}, {89, 99},
                                     {90, 227}, {100, 227}, {110, 227}, {120, 99}, {121, 99}};
  const std::set<std::string> boards = {"jetson-orin-nano", "jetson-agx-orin", "jetson-thor", "gb10"};
  for (const GpuSpec& gpu : shipped()) {
    SCOPED_TRACE(gpu.name);
    EXPECT_EQ(gpu.max_shared_bytes_per_block, shared.at(gpu.compute_capability) * 1024);
    EXPECT_EQ(gpu.registers_per_sm, 65536);
    EXPECT_EQ(gpu.max_registers_per_thread, 255);
    EXPECT_EQ(gpu.max_threads_per_block, 1024);
    EXPECT_EQ(gpu.unified_memory, boards.contains(gpu.name));
    EXPECT_FALSE(gpu.ptx);
    if (gpu.emulated) continue;
    EXPECT_GE(gpu.num_sms, 8);
    EXPECT_LE(gpu.num_sms, 192);
    const double sm_rate = gpu.read_bandwidth_bytes_per_s / gpu.num_sms;
    EXPECT_GT(sm_rate, 4e9);
    EXPECT_LT(sm_rate, 60e9);
    EXPECT_GT(gpu.phase_latency_us, gpu.phase_wait_us);
    EXPECT_LT(gpu.phase_latency_us, 5);
    EXPECT_GE(gpu.default_window, 2);
    EXPECT_LE(gpu.default_window, 4);
  }
}

TEST(GpuSpec, IsWrittenAsItIsRead) {
  for (const GpuSpec& gpu : shipped()) {
    const std::string text = format_gpu_spec(gpu, "One line.\nAnother one.");
    EXPECT_TRUE(text.starts_with("# One line.\n# Another one.\nname: ")) << text;
    const GpuSpec read = parse_gpu_spec(StrictYaml::parse(text, gpu.name + ".yaml"));
    EXPECT_EQ(format_gpu_spec(read, ""), format_gpu_spec(gpu, "")) << gpu.name;
    EXPECT_EQ(read.read_bandwidth_bytes_per_s, gpu.read_bandwidth_bytes_per_s);
    EXPECT_EQ(read.memory_bytes, gpu.memory_bytes);
  }
}

TEST(GpuSpec, ReadsEveryNumber) {
  const GpuSpec h200 = load_gpu_spec(kGpus / "h200.yaml");
  EXPECT_EQ(h200.name, "h200");
  EXPECT_EQ(h200.compute_capability, 90);
  EXPECT_EQ(h200.num_sms, 132);
  EXPECT_EQ(h200.max_shared_bytes_per_block, 232448);
  EXPECT_EQ(h200.registers_per_sm, 65536);
  EXPECT_EQ(h200.max_registers_per_thread, 255);
  EXPECT_EQ(h200.max_threads_per_block, 1024);
  EXPECT_EQ(h200.l2_bytes, 50 << 20);
  EXPECT_EQ(h200.memory_bytes, 150.11e9);
  EXPECT_FALSE(h200.unified_memory);
  EXPECT_TRUE(load_gpu_spec(kGpus / "gb10.yaml").unified_memory);
  EXPECT_EQ(h200.read_bandwidth_bytes_per_s, 4.6e12);
  EXPECT_EQ(h200.phase_wait_us, 0.8);
  EXPECT_EQ(h200.phase_latency_us, 2.3);
  EXPECT_EQ(h200.attention_item_us, 0.3);
  EXPECT_EQ(h200.attention_mma_us, 0.002);
  EXPECT_EQ(h200.exchange_bytes_per_s, 2.7e12);
  EXPECT_EQ(h200.default_window, 3);
  EXPECT_FALSE(h200.emulated);
  const GpuSpec cpu = load_gpu_spec(kGpus / "cpu.yaml");
  EXPECT_EQ(cpu.compute_capability, 0);
  EXPECT_EQ(cpu.num_sms, 4);
  EXPECT_TRUE(cpu.emulated);
}

}  // namespace
}  // namespace soliton
