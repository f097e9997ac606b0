#include "runtime/doctor/report.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <regex>

#include "generator/gpu_spec.h"
#include "models/error.h"
#include "models/kv_pages.h"
#include "models/model_config.h"
#include "models/model_tables.h"
#include "runtime/compile/compiler.h"
#include "runtime/compile/places.h"
#include "runtime/device/cuda_driver.h"
#include "runtime/device/host_memory.h"
#include "runtime/device/kernel_library.h"
#include "runtime/make/gpu_for_device.h"
#include "runtime/make/make_kernel.h"
#include "runtime/make/model_memory.h"

namespace soliton {
namespace {

namespace fs = std::filesystem;

/// The result of `look`; what it throws goes to `problem`.
template <class Look>
auto attempt(std::string& problem, Look&& look) -> decltype(look()) {
  try {
    return look();
  } catch (const std::exception& error) {
    problem = error.what();
    return {};
  }
}

FoundCompiler look_for_compiler(bool emulated) {
  FoundCompiler found;
  attempt(found.problem, [&] {
    const Compiler compiler = find_compiler(emulated);
    found.program = compiler.program;
    found.version = compiler_version(compiler);
    return 0;
  });
  return found;
}

FoundKernel look_at_kernel(const fs::path& path) {
  FoundKernel found{.file = path.filename().string(), .model = {}, .gpu = {}, .rows = {}, .problem = {}};
  attempt(found.problem, [&] {
    const KernelLibrary library = KernelLibrary::open(path);
    found.model = library.model().name;
    found.gpu = library.model().gpu;
    for (int i = 0; i < library.num_kernels(); ++i) found.rows.push_back(library.descriptor(i).rows);
    return 0;
  });
  // The folder is said once.
  const std::string folder = path.parent_path().string() + "/";
  if (found.problem.starts_with(folder)) found.problem.erase(0, folder.size());
  return found;
}

template <class Place>
KernelFolder look_for_kernels(Place&& place) {
  KernelFolder found;
  const fs::path folder = attempt(found.problem, place);
  found.folder = folder.string();
  std::error_code ignored;
  if (!fs::is_directory(folder, ignored)) return found;
  for (const fs::path& path : attempt(found.problem, [&] { return list_libraries(folder); })) {
    found.kernels.push_back(look_at_kernel(path));
  }
  return found;
}

std::vector<FoundModel> look_for_models(const fs::path& folder, const std::optional<DeviceInfo>& device) {
  std::vector<FoundModel> models;
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(folder, ignored)) {
    if (entry.path().extension() != ".yaml") continue;
    std::string problem;  // of a file that somebody is working on
    const auto config =
        attempt(problem, [&] { return std::optional<ModelConfig>(load_model_config(entry.path())); });
    if (!config) continue;
    models.push_back(describe_facts(config->name, config->facts, device));
  }
  std::sort(models.begin(), models.end(), [](const FoundModel& a, const FoundModel& b) {
    return std::pair(a.weight_bytes, a.name) < std::pair(b.weight_bytes, b.name);
  });
  return models;
}

}  // namespace

FoundModel describe_facts(const std::string& name, const ModelFacts& facts,
                          const std::optional<DeviceInfo>& device) {
  return {.name = name,
          .weight_bits = facts.further_e2m1 != 0 ? facts.further_bits : facts.weight_bits,
          .weight_bytes = device_weight_bytes(facts),
          .token_bytes = context_token_bytes(facts),
          .window_bytes = window_bytes(facts),
          .max_context = facts.max_context,
          .context = device ? std::optional(fitting_context(facts, device->free_bytes)) : std::nullopt};
}

std::string driver_version_in(const std::string& text) {
  std::smatch match;
  static const std::regex version(R"(NVRM version:.*?\s(\d+(?:\.\d+)+)\s)");
  return std::regex_search(text, match, version) ? match[1].str() : "";
}

GpuSpec gpu_of(const DoctorReport& report) {
  return gpu_for_device(*report.device, fs::path(report.sources) / "generator" / "gpus", report.cache.folder);
}

DoctorReport examine(const DoctorOptions& options) {
  DoctorReport report;
  report.shipped = look_for_kernels(shipped_kernels_folder);
  report.cache = look_for_kernels(kernel_cache_folder);
  const DeviceAnswer answer = ask_driver(options.device);
  report.device = answer.device;
  if (!report.device) report.device_problem = has_card() ? answer.reason : kNoCard;
  if (report.device) report.links = ask_links(options.device);
  try {
    std::ifstream driver("/proc/driver/nvidia/version");
    report.driver = driver_version_in({std::istreambuf_iterator<char>(driver), {}});
  } catch (const std::ios_base::failure&) {  // what cannot be read is not known
  }
  const fs::path sources = attempt(report.sources_problem, sources_folder);
  report.sources = sources.string();
  if (report.device && !sources.empty()) {
    report.gpu = attempt(report.gpu_problem, [&] { return gpu_of(report).name; });
  }
  report.nvcc = look_for_compiler(false);
  report.cxx = look_for_compiler(true);
  report.host_bytes = int64_t{::sysconf(_SC_PHYS_PAGES)} * ::sysconf(_SC_PAGESIZE);
  report.available_host_bytes = available_host_bytes();
  if (!options.model.empty()) {
    report.model = check_model(options, report);
  } else if (!sources.empty()) {
    report.models = look_for_models(sources / "models", report.device);
  }
  return report;
}

}  // namespace soliton
