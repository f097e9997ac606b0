#include "runtime/make/card_spec.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <sstream>
#include <string_view>

#include "layout/page.h"
#include "models/error.h"
#include "models/strict_yaml.h"

namespace soliton {
namespace {

constexpr double kReachedShare = 0.92;      // of a memory's rate by a kernel that only reads
constexpr double kUnifiedShare = 0.85;      // where the host reads it too
constexpr double kLeastSmRate = 6e9;        // bytes per second by each SM, of cards with little
constexpr const char* kReference = "h100";  // whose times and limits are taken,
constexpr double kReferenceKhz = 1.98e6;    // and its clock
constexpr double kReadLatencyS = 1.1e-6;    // at that clock
constexpr int kLeastWindow = 2;
constexpr int kMostWindow = 8;
constexpr int kL2Bytes = 4 << 20;  // where the driver does not say
constexpr int kSharedUnit = 1024;

}  // namespace

std::string spec_name(const DeviceInfo& device) {
  std::string text;
  for (const char* c = device.name; *c != '\0'; ++c) {
    const bool is_upper = *c >= 'A' && *c <= 'Z';
    const char lower = is_upper ? static_cast<char>(*c - 'A' + 'a') : *c;
    text += (lower >= 'a' && lower <= 'z') || (lower >= '0' && lower <= '9') ? lower : ' ';
  }
  std::string name;
  std::istringstream words(text);
  for (std::string word; words >> word;) {
    if (word != "nvidia" && word != "geforce") name += word + "-";
  }
  const auto gigabytes = std::llround(static_cast<double>(device.total_bytes) * 1e-9);
  return fmt::format("{}{}sm-{}gb", name.empty() ? "card-" : name, device.num_sms, gigabytes);
}

double estimated_bandwidth(const DeviceInfo& device) {
  // Two transfers a clock, eight bits a byte.
  const double rate = 2.0 * device.memory_clock_khz * 1e3 * device.memory_bus_bits / 8;
  const double reached = rate * (device.unified_memory != 0 ? kUnifiedShare : kReachedShare);
  return reached > 0 ? reached : kLeastSmRate * device.num_sms;
}

GpuSpec spec_from_driver(const DeviceInfo& device, double bandwidth) {
  const GpuSpec reference = load_gpu_spec(find_gpu_spec(kReference, default_gpus_dir()));
  const double slower = device.sm_clock_khz > 0 ? kReferenceKhz / device.sm_clock_khz : 1.0;
  const double window = std::ceil(kReadLatencyS * slower * bandwidth / device.num_sms / kPageBytes);
  const GpuSpec gpu = {
      .name = spec_name(device),
      .compute_capability = device.compute_capability,
      .num_sms = device.num_sms,
      .max_shared_bytes_per_block = device.max_shared_bytes / kSharedUnit * kSharedUnit,
      .registers_per_sm = device.registers_per_sm > 0 ? device.registers_per_sm : reference.registers_per_sm,
      .max_registers_per_thread = reference.max_registers_per_thread,
      .max_threads_per_block = reference.max_threads_per_block,
      .l2_bytes = device.l2_bytes > 0 ? device.l2_bytes : kL2Bytes,
      .memory_bytes = static_cast<double>(device.total_bytes),
      .unified_memory = device.unified_memory != 0,
      .read_bandwidth_bytes_per_s = bandwidth,
      .phase_wait_us = reference.phase_wait_us * slower,
      .phase_latency_us = reference.phase_latency_us * slower,
      .attention_item_us = reference.attention_item_us * slower,
      .attention_mma_us = reference.attention_mma_us * slower,
      .exchange_bytes_per_s = bandwidth,
      .default_window = static_cast<int>(std::clamp<double>(window, kLeastWindow, kMostWindow)),
  };
  // What is sane is written down once.
  return parse_gpu_spec(StrictYaml::parse(format_gpu_spec(gpu, ""), gpu.name + ".yaml"));
}

void check_spec(const GpuSpec& gpu, const DeviceInfo& device, const std::filesystem::path& path) {
  const auto refuse = [&](const char* key, const char* bound, int has, int claims) {
    throw file_error(ExitCode::kMismatch, path.string(),
                     "{}: expected {}{} as {} has, got {}; without this file one is made", key, bound, has,
                     std::string_view(device.name).empty() ? "the card" : device.name, claims);
  };
  const auto at_most = [&](const char* key, int has, int claims) {
    if (claims > has) refuse(key, "at most ", has, claims);
  };
  if (gpu.compute_capability != device.compute_capability) {
    refuse("compute_capability", "", device.compute_capability, gpu.compute_capability);
  }
  at_most("num_sms", device.num_sms, gpu.num_sms);
  at_most("max_shared_bytes_per_block", device.max_shared_bytes, gpu.max_shared_bytes_per_block);
  if (device.registers_per_sm > 0) {
    at_most("registers_per_sm", device.registers_per_sm, gpu.registers_per_sm);
  }
}

}  // namespace soliton
