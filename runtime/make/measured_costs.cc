#include "runtime/make/measured_costs.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>

#include "models/hash.h"
#include "models/kept_file.h"
#include "models/mapped_file.h"
#include "models/strict_json.h"
#include "runtime/make/cache.h"
#include "runtime/make/card_spec.h"

namespace soliton {
namespace {

namespace fs = std::filesystem;

constexpr JsonLimits kLimits{.bytes = 1 << 16, .depth = 4, .values = 1 << 10, .members = 1 << 10};
constexpr double kMaxUs = 1e6;
constexpr double kMinRate = 1e6;  // bytes per second
constexpr double kMaxRate = 1e18;

nlohmann::ordered_json as_json(const TreeCosts& costs) {
  return {{"item_us", costs.item_us},
          {"mma_us", costs.mma_us},
          {"read_bytes_per_s", costs.read_bytes_per_s},
          {"exchange_bytes_per_s", costs.exchange_bytes_per_s}};
}

TreeCosts read_costs(const JsonView& json) {
  return {.item_us = json["item_us"].number(0, kMaxUs),
          .mma_us = json["mma_us"].number(0, kMaxUs),
          .read_bytes_per_s = json["read_bytes_per_s"].number(kMinRate, kMaxRate),
          .exchange_bytes_per_s = json["exchange_bytes_per_s"].number(kMinRate, kMaxRate)};
}

int kernel_of_rows(const KernelLibrary& library, const JsonView& rows) {
  const int64_t wanted = rows.integer();
  for (int kernel = 0; kernel < library.num_kernels(); ++kernel) {
    if (library.descriptor(kernel).rows == wanted && wanted > 1) return kernel;
  }
  throw rows.error("expected the rows of a kernel of {}, got {}", library.path(), wanted);
}

}  // namespace

fs::path measured_costs_file(const KernelLibrary& library, const fs::path& cache) {
  const DeviceInfo& device = library.device();
  Hash hash;
  hash.add(MappedFile::open(library.path()).text());
  return cache / fmt::format("{}-{}mhz-driver-{}-{:016x}.costs.json", spec_name(device),
                             device.sm_clock_khz / 1000, device.driver_version, hash.value());
}

void keep_measured_costs(const KernelLibrary& library, const fs::path& cache) {
  nlohmann::ordered_json json{{"library", library.path()}, {"device", library.device().name}};
  json["kernels"] = nlohmann::ordered_json::array();
  for (int kernel = 0; kernel < library.num_kernels(); ++kernel) {
    if (const KernelCosts* costs = library.measured_costs(kernel)) {
      json["kernels"].push_back({{"rows", library.descriptor(kernel).rows},
                                 {"attention", as_json(costs->attention)},
                                 {"planned_by", as_json(costs->planned_by)},
                                 {"other_us", costs->other_us}});
    }
  }
  create_cache(cache);
  write_kept_file(measured_costs_file(library, cache), json.dump(2) + "\n");
}

std::vector<std::optional<KernelCosts>> read_measured_costs(const KernelLibrary& library,
                                                            const fs::path& cache) {
  const std::string file = measured_costs_file(library, cache).string();
  std::error_code ignored;
  if (!fs::exists(file, ignored)) return {};
  check_trusted(cache);
  check_trusted(file);
  const nlohmann::json document = parse_json(MappedFile::open(file).text(), file, kLimits);
  const JsonView kernels = JsonView(document, file)["kernels"];
  std::vector<std::optional<KernelCosts>> costs(static_cast<size_t>(library.num_kernels()));
  for (size_t i = 0; i < kernels.array_size(); ++i)
    costs[kernel_of_rows(library, kernels[i]["rows"])] = {
        .attention = read_costs(kernels[i]["attention"]),
        .planned_by = read_costs(kernels[i]["planned_by"]),
        .other_us = kernels[i]["other_us"].number(0, kMaxUs)};
  return costs;
}

}  // namespace soliton
