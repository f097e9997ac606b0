// See gpu_spec.h.
#include "generator/gpu_spec.h"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>

#include "layout/library.h"
#include "models/strict_yaml.h"

#ifndef SOLITON_SOURCE_DIR
#error "define SOLITON_SOURCE_DIR as the root of the source tree"
#endif

namespace soliton {
namespace {

constexpr IntegerRange kSms = {.min = 1, .max = 1024};
constexpr IntegerRange kSharedBytes = {.min = 1024, .max = 1 << 20, .multiple_of = 1024};
constexpr IntegerRange kRegistersPerSm = {.min = 1024, .max = 1 << 20, .multiple_of = 1024};
constexpr IntegerRange kRegistersPerThread = {.min = 32, .max = 255};
constexpr IntegerRange kThreadsPerBlock = {.min = 32, .max = 1024, .multiple_of = 32};
constexpr IntegerRange kWindow = {.min = 1, .max = 64};
constexpr NumberRange kMemory = {.min = 1e6, .max = 1e15};
constexpr NumberRange kBandwidth = {.min = 1e6, .max = 1e15};
constexpr NumberRange kTime = {.min = 0, .max = 1e6, .open = true};

}  // namespace

GpuSpec load_gpu_spec(const std::filesystem::path& path) {
  return parse_gpu_spec(StrictYaml::load(path));
}

GpuSpec parse_gpu_spec(const StrictYaml& yaml) {
  yaml.allow_keys({"name", "compute_capability", "num_sms", "max_shared_bytes_per_block", "registers_per_sm",
                   "max_registers_per_thread", "max_threads_per_block", "memory_bytes",
                   "read_bandwidth_bytes_per_s", "phase_wait_us", "phase_latency_us", "attention_item_us",
                   "attention_mma_us", "exchange_bytes_per_s", "default_window", "emulated"});
  const GpuSpec spec = {
      .name = yaml.name_of_file(),
      .compute_capability = yaml.integer_choice("compute_capability", {0, 80, 86, 87, 89, 90, 100, 110, 120}),
      .num_sms = yaml.integer("num_sms", kSms),
      .max_shared_bytes_per_block = yaml.integer("max_shared_bytes_per_block", kSharedBytes),
      .registers_per_sm = yaml.integer("registers_per_sm", kRegistersPerSm),
      .max_registers_per_thread = yaml.integer("max_registers_per_thread", kRegistersPerThread),
      .max_threads_per_block = yaml.integer("max_threads_per_block", kThreadsPerBlock),
      .memory_bytes = yaml.number("memory_bytes", kMemory),
      .read_bandwidth_bytes_per_s = yaml.number("read_bandwidth_bytes_per_s", kBandwidth),
      .phase_wait_us = yaml.number("phase_wait_us", kTime),
      .phase_latency_us = yaml.number("phase_latency_us", kTime),
      .attention_item_us = yaml.number("attention_item_us", kTime),
      .attention_mma_us = yaml.number("attention_mma_us", kTime),
      .exchange_bytes_per_s = yaml.number("exchange_bytes_per_s", kBandwidth),
      .default_window = yaml.integer("default_window", kWindow),
      .emulated = yaml.boolean("emulated"),
  };
  if (spec.emulated != (spec.compute_capability == 0)) {
    throw yaml.error("emulated",
                     fmt::format("{} with compute_capability = {}", !spec.emulated, spec.compute_capability),
                     fmt::format("{}", spec.emulated));
  }
  return spec;
}

std::filesystem::path default_gpus_dir() {
  return std::filesystem::path(SOLITON_SOURCE_DIR) / "generator" / "gpus";
}

std::vector<std::string> list_gpus(const std::filesystem::path& gpus_dir) {
  std::error_code failure;
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(gpus_dir, failure)) {
    if (entry.path().extension() == ".yaml") names.push_back(entry.path().stem().string());
  }
  if (failure) {
    throw Error(ExitCode::kUsage, fmt::format("--gpus-dir: expected a folder of GPU specs, got {} ({})",
                                              show_text(gpus_dir.string()), failure.message()));
  }
  std::sort(names.begin(), names.end());
  return names;
}

std::filesystem::path find_gpu_spec(const std::string& gpu, const std::filesystem::path& gpus_dir) {
  if (gpu.ends_with(".yaml")) return gpu;
  const std::vector<std::string> names = list_gpus(gpus_dir);
  if (std::find(names.begin(), names.end(), gpu) == names.end()) {
    throw Error(ExitCode::kUsage, fmt::format("--gpu: expected one of {} or a FILE.yaml, got {}",
                                              fmt::join(names, ", "), show_text(gpu)));
  }
  return gpus_dir / (gpu + ".yaml");
}

std::string name_of_target(const std::vector<GpuSpec>& gpus) {
  const GpuSpec& first = gpus.front();
  if (gpus.size() == 1) return first.name;
  if (gpus.size() > kMaxCards) {
    throw Error(ExitCode::kMismatch, fmt::format("--gpu: expected {} cards at most for one library, got {}",
                                                 kMaxCards, gpus.size()));
  }
  const auto limits = [](const GpuSpec& gpu) {
    return std::tuple(gpu.compute_capability, gpu.num_sms, gpu.max_shared_bytes_per_block,
                      gpu.registers_per_sm, gpu.max_registers_per_thread, gpu.max_threads_per_block,
                      gpu.default_window);
  };
  for (const GpuSpec& gpu : gpus) {
    const auto named = [&](const GpuSpec& other) { return other.name == gpu.name; };
    if (std::count_if(gpus.begin(), gpus.end(), named) > 1) {
      throw Error(ExitCode::kUsage, fmt::format("--gpu: expected each card once, got {} twice", gpu.name));
    }
    if (limits(gpu) == limits(first)) continue;
    throw Error(ExitCode::kMismatch,
                fmt::format("--gpu: expected cards that differ in rates alone for one library, got {} and {}",
                            first.name, gpu.name));
  }
  return fmt::format("sm{}", first.compute_capability);
}

}  // namespace soliton
