// See nvml.h. Names, numbers and parameters are those of NVML's and the driver's APIs, which keep them from version to
// version.
#include "runtime/bench/nvml.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <utility>

#include "models/error.h"

namespace soliton {

/// A library that is opened and, since others may hold what it has handed out, never closed.
class OpenedLibrary {
 public:
  explicit OpenedLibrary(const char* name) : name_(name), handle_(::dlopen(name, RTLD_NOW | RTLD_LOCAL)) {
    if (handle_ == nullptr)
      throw Error(ExitCode::kDevice, fmt::format("expected {}, got: {}", name, ::dlerror()));
  }

  /// Null where the library is too old or too new for it.
  template <class Function>
  void find(const char* symbol, Function& function) const {
    function = reinterpret_cast<Function>(::dlsym(handle_, symbol));
  }
  template <class Function>
  void need(const char* symbol, Function& function) const {
    find(symbol, function);
    if (function == nullptr) throw file_error(ExitCode::kDevice, name_, "expected {}, found none", symbol);
  }

  const char* name() const { return name_; }

 private:
  const char* name_;
  void* handle_;
};

namespace {

using NvmlStatus = int;    // nvmlReturn_t: 0 is success
using NvmlDevice = void*;  // nvmlDevice_t

constexpr int kSmClock = 1;         // NVML_CLOCK_SM
constexpr int kMemoryClock = 2;     // NVML_CLOCK_MEM
constexpr int kGpuTemperature = 0;  // NVML_TEMPERATURE_GPU
constexpr int kPciAddressBytes = 32;

/// nvmlClocksThrottleReasons.
struct Throttle {
  uint64_t bit;
  const char* name;
};
constexpr Throttle kThrottles[] = {
    {0x04, "power cap"},          {0x08, "hardware slowdown"},  {0x10, "sync boost"},
    {0x20, "thermal (software)"}, {0x40, "thermal (hardware)"}, {0x80, "power brake"},
};

/// "0000:18:00.0", of the device that CUDA counts so.
std::string pci_address(int device, const char* driver) {
  const OpenedLibrary library(driver);
  int (*init)(unsigned flags) = nullptr;
  int (*get)(int* device, int index) = nullptr;
  int (*get_address)(char* address, int num_bytes, int device) = nullptr;
  library.need("cuInit", init);
  library.need("cuDeviceGet", get);
  library.need("cuDeviceGetPCIBusId", get_address);
  char address[kPciAddressBytes] = "";
  int handle = 0;
  if (init(0) != 0 || get(&handle, device) != 0 || get_address(address, kPciAddressBytes, handle) != 0) {
    throw file_error(ExitCode::kDevice, driver, "expected the PCI address of device {}, got none", device);
  }
  return address;
}

/// The last parameter's value; nothing if there is no such function, or it does not know.
template <class Value, class Function, class... Args>
std::optional<Value> ask(Function function, Args... args) {
  Value value{};
  if (function == nullptr || function(args..., &value) != 0) return std::nullopt;
  return value;
}

std::optional<double> scaled(std::optional<unsigned long long> value, double factor) {
  return value ? std::optional(static_cast<double>(*value) * factor) : std::nullopt;
}

}  // namespace

struct Nvml::Functions {
  explicit Functions(const char* name) : library(name) {
    library.need("nvmlInit_v2", init);
    library.need("nvmlShutdown", shutdown);
    library.need("nvmlErrorString", error_string);
    library.need("nvmlDeviceGetHandleByPciBusId_v2", get_by_address);
    library.find("nvmlDeviceGetPowerUsage", get_power);
    library.find("nvmlDeviceGetEnforcedPowerLimit", get_power_limit);
    library.find("nvmlDeviceGetTotalEnergyConsumption", get_energy);
    library.find("nvmlDeviceGetClockInfo", get_clock);
    library.find("nvmlDeviceGetTemperature", get_temperature);
    library.find("nvmlDeviceGetCurrentClocksEventReasons", get_throttling);
    if (get_throttling == nullptr) library.find("nvmlDeviceGetCurrentClocksThrottleReasons", get_throttling);
    check("nvmlInit", init());
    is_open = true;
  }
  Functions(const Functions&) = delete;
  Functions& operator=(const Functions&) = delete;
  ~Functions() {
    if (is_open) shutdown();
  }

  void check(const char* function, NvmlStatus status) const {
    if (status != 0)
      throw file_error(ExitCode::kDevice, library.name(), "{}: {}", function, error_string(status));
  }

  OpenedLibrary library;
  bool is_open = false;
  NvmlDevice card = nullptr;
  NvmlStatus (*init)() = nullptr;
  NvmlStatus (*shutdown)() = nullptr;
  const char* (*error_string)(NvmlStatus status) = nullptr;
  NvmlStatus (*get_by_address)(const char* address, NvmlDevice* card) = nullptr;
  NvmlStatus (*get_power)(NvmlDevice card, unsigned* milliwatts) = nullptr;
  NvmlStatus (*get_power_limit)(NvmlDevice card, unsigned* milliwatts) = nullptr;
  NvmlStatus (*get_energy)(NvmlDevice card, unsigned long long* millijoules) = nullptr;
  NvmlStatus (*get_clock)(NvmlDevice card, int clock, unsigned* mhz) = nullptr;
  NvmlStatus (*get_temperature)(NvmlDevice card, int sensor, unsigned* celsius) = nullptr;
  NvmlStatus (*get_throttling)(NvmlDevice card, unsigned long long* bits) = nullptr;
};

Nvml::Nvml(int device, const char* library, const char* driver)
    : functions_(std::make_unique<Functions>(library)) {
  functions_->check("nvmlDeviceGetHandleByPciBusId",
                    functions_->get_by_address(pci_address(device, driver).c_str(), &functions_->card));
}
Nvml::Nvml(Nvml&&) noexcept = default;
Nvml& Nvml::operator=(Nvml&&) noexcept = default;
Nvml::~Nvml() = default;

std::optional<double> Nvml::watts() const {
  return scaled(ask<unsigned>(functions_->get_power, functions_->card), 1e-3);
}
std::optional<double> Nvml::watts_limit() const {
  return scaled(ask<unsigned>(functions_->get_power_limit, functions_->card), 1e-3);
}
std::optional<double> Nvml::joules() const {
  return scaled(ask<unsigned long long>(functions_->get_energy, functions_->card), 1e-3);
}
std::optional<int> Nvml::sm_mhz() const {
  return ask<unsigned>(functions_->get_clock, functions_->card, kSmClock);
}
std::optional<int> Nvml::memory_mhz() const {
  return ask<unsigned>(functions_->get_clock, functions_->card, kMemoryClock);
}
std::optional<int> Nvml::celsius() const {
  return ask<unsigned>(functions_->get_temperature, functions_->card, kGpuTemperature);
}
std::optional<uint64_t> Nvml::throttling() const {
  return ask<unsigned long long>(functions_->get_throttling, functions_->card);
}

std::vector<std::string> names_of_throttling(uint64_t bits) {
  std::vector<std::string> names;
  for (const Throttle& throttle : kThrottles) {
    if ((bits & throttle.bit) != 0) names.push_back(throttle.name);
  }
  return names;
}

}  // namespace soliton
