// See gpu_spec.h.
#include "generator/gpu_spec.h"

#include <fmt/format.h>

#include <algorithm>
#include <sstream>
#include <tuple>

#include "layout/library.h"
#include "layout/page.h"
#include "models/installation.h"
#include "models/strict_yaml.h"
#include "runtime/program/nearest.h"

namespace soliton {
namespace {

constexpr IntegerRange kComputeCapability = {.min = 0, .max = 999};
constexpr IntegerRange kL2Bytes = {.min = 1 << 16, .max = 1 << 30};
constexpr IntegerRange kSms = {.min = 1, .max = 1024};
constexpr IntegerRange kSharedBytes = {.min = 1024, .max = 1 << 20, .multiple_of = 1024};
constexpr IntegerRange kRegistersPerSm = {.min = 1024, .max = 1 << 20, .multiple_of = 1024};
constexpr IntegerRange kRegistersPerThread = {.min = 32, .max = 255};
constexpr IntegerRange kThreadsPerBlock = {.min = 32, .max = 1024, .multiple_of = 32};
constexpr IntegerRange kWindow = {.min = 1, .max = 64};
constexpr NumberRange kMemory = {.min = 1e6, .max = 1e15};
constexpr NumberRange kBandwidth = {.min = 1e6, .max = 1e15};
constexpr NumberRange kTime = {.min = 0, .max = 1e6, .open = true};

/// Newer cards than are known here may come: only what is too old is refused.
int read_compute_capability(const StrictYaml& yaml) {
  const int value = yaml.integer("compute_capability", kComputeCapability);
  if (value == 0 || value >= kOldestComputeCapability) return value;
  throw yaml.error(
      "compute_capability",
      fmt::format("{} or more (such as 89 for 8.9), or 0 for the emulation", kOldestComputeCapability),
      fmt::format("{}", value));
}

}  // namespace

GpuSpec load_gpu_spec(const std::filesystem::path& path) {
  return parse_gpu_spec(StrictYaml::load(path));
}

GpuSpec parse_gpu_spec(const StrictYaml& yaml) {
  yaml.allow_keys({"name", "compute_capability", "num_sms", "max_shared_bytes_per_block", "registers_per_sm",
                   "max_registers_per_thread", "max_threads_per_block", "l2_bytes", "memory_bytes",
                   "unified_memory", "read_bandwidth_bytes_per_s", "phase_wait_us", "phase_latency_us",
                   "attention_item_us", "attention_mma_us", "exchange_bytes_per_s", "default_window",
                   "emulated"});
  const GpuSpec spec = {
      .name = yaml.name_of_file(),
      .compute_capability = read_compute_capability(yaml),
      .num_sms = yaml.integer("num_sms", kSms),
      .max_shared_bytes_per_block = yaml.integer("max_shared_bytes_per_block", kSharedBytes),
      .registers_per_sm = yaml.integer("registers_per_sm", kRegistersPerSm),
      .max_registers_per_thread = yaml.integer("max_registers_per_thread", kRegistersPerThread),
      .max_threads_per_block = yaml.integer("max_threads_per_block", kThreadsPerBlock),
      .l2_bytes = yaml.integer("l2_bytes", kL2Bytes),
      .memory_bytes = yaml.number("memory_bytes", kMemory),
      .unified_memory = yaml.boolean("unified_memory"),
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

std::string format_gpu_spec(const GpuSpec& gpu, const std::string& comment) {
  std::string text;
  std::istringstream lines(comment);
  for (std::string line; std::getline(lines, line);) text += "# " + line + "\n";
  const auto add = [&](const char* key, const auto& value) { text += fmt::format("{}: {}\n", key, value); };
  add("name", gpu.name);
  add("compute_capability", gpu.compute_capability);
  add("num_sms", gpu.num_sms);
  add("max_shared_bytes_per_block", gpu.max_shared_bytes_per_block);
  add("registers_per_sm", gpu.registers_per_sm);
  add("max_registers_per_thread", gpu.max_registers_per_thread);
  add("max_threads_per_block", gpu.max_threads_per_block);
  add("l2_bytes", gpu.l2_bytes);
  add("memory_bytes", gpu.memory_bytes);
  add("unified_memory", gpu.unified_memory);
  add("read_bandwidth_bytes_per_s", gpu.read_bandwidth_bytes_per_s);
  add("phase_wait_us", gpu.phase_wait_us);
  add("phase_latency_us", gpu.phase_latency_us);
  add("attention_item_us", gpu.attention_item_us);
  add("attention_mma_us", gpu.attention_mma_us);
  add("exchange_bytes_per_s", gpu.exchange_bytes_per_s);
  add("default_window", gpu.default_window);
  add("emulated", gpu.emulated);
  return text;
}

GpuSpec with_ptx(const GpuSpec& gpu, int compute_capability) {
  if (gpu.emulated) {
    throw Error(ExitCode::kMismatch, fmt::format("--ptx: expected a card in --gpu, got {}", gpu.name));
  }
  if (compute_capability > gpu.compute_capability) {
    throw Error(ExitCode::kMismatch, fmt::format("--ptx: expected at most compute_{} for {}, got compute_{}",
                                                 gpu.compute_capability, gpu.name, compute_capability));
  }
  GpuSpec result = gpu;
  result.compute_capability = compute_capability;
  result.ptx = true;
  return result;
}

std::string nvcc_target(const GpuSpec& gpu) {
  if (gpu.ptx) return fmt::format("arch=compute_{0},code=compute_{0}", gpu.compute_capability);
  // Hopper's own instructions go by the suffix. Nothing of theirs is used on other cards, where it would only tie the
  // code to one of a family.
  const std::string name =
      fmt::format("{}{}", gpu.compute_capability, gpu.compute_capability == kWarpgroupCapability ? "a" : "");
  return fmt::format("arch=compute_{0},code=sm_{0}", name);
}

int fitting_prefetch_pages(const GpuSpec& gpu, int num_ctas) {
  return static_cast<int>(int64_t{2} * gpu.l2_bytes / 3 / (int64_t{num_ctas} * kPageBytes));
}

std::filesystem::path default_gpus_dir() {
  return data_folder() / "generator" / "gpus";
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
    throw Error(ExitCode::kUsage,
                fmt::format("--gpu: expected one of {} or a FILE.yaml, got {}{}", fmt::join(names, ", "),
                            show_text(gpu), did_you_mean(nearest_word(gpu, names))));
  }
  return gpus_dir / (gpu + ".yaml");
}

std::string name_of_target(const std::vector<GpuSpec>& gpus) {
  const GpuSpec& first = gpus.front();
  if (gpus.size() == 1) return first.ptx ? fmt::format("compute{}", first.compute_capability) : first.name;
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
  return fmt::format("{}{}", first.ptx ? "compute" : "sm", first.compute_capability);
}

bool has_warpgroups(const GpuSpec& gpu) {
  return gpu.emulated || (gpu.compute_capability == kWarpgroupCapability && !gpu.ptx);
}

}  // namespace soliton
