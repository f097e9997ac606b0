#include "runtime/make/gpu_for_device.h"

#include <fmt/format.h>

#include <cmath>
#include <string>
#include <string_view>

#include "models/error.h"
#include "models/kept_file.h"
#include "runtime/device/card_name.h"
#include "runtime/make/cache.h"
#include "runtime/make/card_spec.h"

namespace soliton {
namespace {

namespace fs = std::filesystem;

constexpr double kMemoryTolerance = 0.15;  // drivers keep more or less of it to themselves

bool has_memory_of(const DeviceInfo& device, const GpuSpec& gpu) {
  const auto bytes = static_cast<double>(device.total_bytes);
  return bytes == 0 || std::abs(bytes - gpu.memory_bytes) <= kMemoryTolerance * gpu.memory_bytes;
}

bool is_like(const DeviceInfo& device, const GpuSpec& gpu) {
  return device.compute_capability == gpu.compute_capability && device.num_sms == gpu.num_sms &&
         device.max_shared_bytes >= gpu.max_shared_bytes_per_block && has_memory_of(device, gpu);
}

void check_age(const DeviceInfo& device) {
  if (device.compute_capability >= kOldestComputeCapability) return;
  throw Error(ExitCode::kMismatch,
              fmt::format("{}: expected a card of compute capability {}.{} or later, got {}.{}",
                          std::string_view(device.name).empty() ? "device" : device.name,
                          kOldestComputeCapability / 10, kOldestComputeCapability % 10,
                          device.compute_capability / 10, device.compute_capability % 10));
}

}  // namespace

std::optional<GpuSpec> shipped_gpu(const DeviceInfo& device, const fs::path& gpus_dir) {
  std::optional<GpuSpec> called;
  std::optional<GpuSpec> alike;
  for (const std::string& name : list_gpus(gpus_dir)) {
    const GpuSpec gpu = load_gpu_spec(gpus_dir / (name + ".yaml"));
    if (device.compute_capability == 0 && gpu.emulated) return gpu;
    if (gpu.emulated || !is_like(device, gpu)) continue;
    // The longer name says more: "h200-nvl" rather than "h200".
    const bool says_more = !called || gpu.name.size() > called->name.size();
    if (is_called(device.name, gpu.name) && says_more) called = gpu;
    if (!alike) alike = gpu;
  }
  return called ? called : alike;
}

GpuSpec gpu_for_device(const DeviceInfo& device, const fs::path& gpus_dir, const fs::path& cache,
                       const MeasureBandwidth& measure) {
  if (const std::optional<GpuSpec> shipped = shipped_gpu(device, gpus_dir)) return *shipped;
  check_age(device);
  const GpuSpec estimate = spec_from_driver(device, estimated_bandwidth(device));
  const fs::path kept = cache / (estimate.name + ".yaml");
  std::error_code ignored;
  if (fs::exists(kept, ignored)) {
    check_trusted(cache);
    check_trusted(kept);
    const GpuSpec gpu = load_gpu_spec(kept);
    check_spec(gpu, device, kept);
    return gpu;
  }
  const double bandwidth = measure ? measure(estimate) : 0.0;
  if (bandwidth <= 0) return estimate;
  const GpuSpec gpu = spec_from_driver(device, bandwidth);
  const std::string comment = fmt::format(
      "{}, as its driver describes it; the bandwidth is measured, the times are estimated by its clock.\n"
      "May be changed, and is made anew if it is removed.",
      std::string_view(device.name).empty() ? "A card without a name" : device.name);
  create_cache(cache);
  write_kept_file(kept, format_gpu_spec(gpu, comment));
  return gpu;
}

Compiler compiler_for(const GpuSpec& gpu) {
  Compiler compiler = find_compiler(gpu.emulated);
  if (!gpu.emulated) compiler.target = nvcc_target(gpu);
  return compiler;
}

}  // namespace soliton
