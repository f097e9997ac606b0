// Shipped GPU specs load; every impossible number is refused by its exact line.
#include "generator/gpu_spec.h"

#include <gtest/gtest.h>

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
    "memory_bytes: 80e9\n"
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
  EXPECT_EQ(changed("compute_capability: 90", "compute_capability: 91"),
            "4 g.yaml:2: compute_capability: expected one of 0, 80, 86, 87, 89, 90, 100, 110, 120, got 91");
  EXPECT_EQ(changed("compute_capability: 90", "compute_capability: 9.0"),
            "4 g.yaml:2: compute_capability: expected one of 0, 80, 86, 87, 89, 90, 100, 110, 120, got the "
            "floating-point number 9.0");
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
  EXPECT_EQ(changed("80e9", "80"),
            "4 g.yaml:8: memory_bytes: expected a number from 1000000 to 1000000000000000, got 80");
  EXPECT_EQ(
      changed("4.60e12", "4.60"),
      "4 g.yaml:9: read_bandwidth_bytes_per_s: expected a number from 1000000 to 1000000000000000, got 4.60");
  EXPECT_EQ(changed("2.3", "0"),
            "4 g.yaml:10: phase_wait_us: expected a number above 0 and below 1000000, got 0");
  EXPECT_EQ(changed("4.2", "0"),
            "4 g.yaml:11: phase_latency_us: expected a number above 0 and below 1000000, got 0");
  EXPECT_EQ(changed("1.25", "0"),
            "4 g.yaml:12: attention_item_us: expected a number above 0 and below 1000000, got 0");
  EXPECT_EQ(changed("0.002", "-0.002"),
            "4 g.yaml:13: attention_mma_us: expected a number above 0 and below 1000000, got -0.002");
  EXPECT_EQ(changed("3.5e12", "3.5"),
            "4 g.yaml:14: exchange_bytes_per_s: expected a number from 1000000 to 1000000000000000, got 3.5");
  EXPECT_EQ(changed("default_window: 3", "default_window: 65"),
            "4 g.yaml:15: default_window: expected an integer from 1 to 64, got 65");
}

TEST(GpuSpec, EmulatedAndComputeCapabilityAgree) {
  EXPECT_EQ(changed("emulated: false", "emulated: true"),
            "4 g.yaml:16: emulated: expected false with compute_capability = 90, got true");
  EXPECT_EQ(changed("compute_capability: 90", "compute_capability: 0"),
            "4 g.yaml:16: emulated: expected true with compute_capability = 0, got false");
}

TEST(GpuSpec, RefusesUnknownAndMissingKeys) {
  EXPECT_EQ(changed("num_sms: 132\n", ""),
            "4 g.yaml:1: num_sms: expected an integer from 1 to 1024, got no such key");
  EXPECT_EQ(changed("num_sms", "sms"),
            "4 g.yaml:3: sms: expected one of name, compute_capability, num_sms, max_shared_bytes_per_block, "
            "registers_per_sm, max_registers_per_thread, max_threads_per_block, memory_bytes, "
            "read_bandwidth_bytes_per_s, "
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

TEST(GpuSpec, EveryShippedSpecLoads) {
  int num_specs = 0;
  for (const auto& entry : std::filesystem::directory_iterator(kGpus)) {
    if (entry.path().extension() != ".yaml") continue;
    ++num_specs;
    EXPECT_EQ(error_of([&] { load_gpu_spec(entry.path()); }), "no error");
  }
  EXPECT_GE(num_specs, 3);
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
  EXPECT_EQ(h200.memory_bytes, 150.11e9);
  EXPECT_EQ(h200.read_bandwidth_bytes_per_s, 4.6e12);
  EXPECT_EQ(h200.phase_wait_us, 1.1);
  EXPECT_EQ(h200.phase_latency_us, 2.3);
  EXPECT_EQ(h200.attention_item_us, 1.5);
  EXPECT_EQ(h200.attention_mma_us, 0.003);
  EXPECT_EQ(h200.exchange_bytes_per_s, 4.6e12);
  EXPECT_EQ(h200.default_window, 3);
  EXPECT_FALSE(h200.emulated);
  const GpuSpec cpu = load_gpu_spec(kGpus / "cpu.yaml");
  EXPECT_EQ(cpu.compute_capability, 0);
  EXPECT_EQ(cpu.num_sms, 4);
  EXPECT_TRUE(cpu.emulated);
}

}  // namespace
}  // namespace soliton
