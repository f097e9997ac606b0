#include "runtime/tools/make/gpu_for_device.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "models/error.h"

namespace soliton {
namespace {

/// "NVIDIA H100-PCIe" has the words nvidia, h100 and pcie.
std::set<std::string> words_of(std::string_view text) {
  std::set<std::string> words;
  std::string word;
  for (const char c : text) {
    const char lower = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
    const bool belongs = (lower >= 'a' && lower <= 'z') || (lower >= '0' && lower <= '9');
    if (belongs) {
      word += lower;
    } else if (!word.empty()) {
      words.insert(std::exchange(word, {}));
    }
  }
  if (!word.empty()) words.insert(word);
  return words;
}

bool runs_plans_of(const DeviceInfo& device, const GpuSpec& gpu) {
  return device.compute_capability == gpu.compute_capability && device.num_sms >= gpu.num_sms &&
         device.max_shared_bytes >= gpu.max_shared_bytes_per_block;
}

std::string list_cards(const std::vector<GpuSpec>& gpus) {
  std::string text;
  for (const GpuSpec& gpu : gpus) {
    if (gpu.emulated) continue;
    text += fmt::format("{}{} (sm_{}, {} SMs)", text.empty() ? "" : ", ", gpu.name, gpu.compute_capability,
                        gpu.num_sms);
  }
  return text;
}

}  // namespace

bool is_called(const DeviceInfo& device, const GpuSpec& gpu) {
  const std::set<std::string> words = words_of(device.name);
  const std::set<std::string> wanted = words_of(gpu.name);
  return std::includes(words.begin(), words.end(), wanted.begin(), wanted.end());
}

GpuSpec gpu_for_device(const DeviceInfo& device, const std::filesystem::path& gpus_dir) {
  std::vector<GpuSpec> gpus;
  for (const std::string& name : list_gpus(gpus_dir))
    gpus.push_back(load_gpu_spec(gpus_dir / (name + ".yaml")));
  const GpuSpec* called = nullptr;
  const GpuSpec* alike = nullptr;
  for (const GpuSpec& gpu : gpus) {
    if (device.compute_capability == 0 && gpu.emulated) return gpu;
    if (!runs_plans_of(device, gpu)) continue;
    // The longer name says more: "h200-nvl" rather than "h200".
    const bool says_more = called == nullptr || gpu.name.size() > called->name.size();
    if (is_called(device, gpu) && says_more) called = &gpu;
    if (alike == nullptr && device.num_sms == gpu.num_sms) alike = &gpu;
  }
  if (called != nullptr) return *called;
  if (alike != nullptr) return *alike;
  throw Error(ExitCode::kMismatch,
              fmt::format("{}: expected one of {}, got sm_{}, {} SMs, {} bytes of shared memory a block; for "
                          "another card see \"Add a card\" in generator/README.md",
                          std::string_view(device.name).empty() ? "device" : device.name, list_cards(gpus),
                          device.compute_capability, device.num_sms, device.max_shared_bytes));
}

}  // namespace soliton
