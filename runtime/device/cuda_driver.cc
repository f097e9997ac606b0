// See cuda_driver.h. Names, numbers and parameters are those of the driver API, which keeps them from version to
// version: where a function's parameters have changed, the new one has another name.
#include "runtime/device/cuda_driver.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include "models/error.h"
#include "runtime/device/host_memory.h"

namespace soliton {
namespace {

using Status = int;     // CUresult: 0 is success
using Device = int;     // CUdevice
using Context = void*;  // CUcontext

constexpr Status kNoDevice = 100;  // CUDA_ERROR_NO_DEVICE
constexpr int kNativeAtomics = 3;  // CU_DEVICE_P2P_ATTRIBUTE_NATIVE_ATOMIC_SUPPORTED

/// CUdevice_attribute.
enum class Attribute : int {
  kClockRateKhz = 13,
  kMultiprocessorCount = 16,
  kKernelExecTimeout = 17,
  kIntegrated = 18,
  kMemoryClockRateKhz = 36,
  kMemoryBusBits = 37,
  kL2Bytes = 38,
  kComputeCapabilityMajor = 75,
  kComputeCapabilityMinor = 76,
  kMaxRegistersPerMultiprocessor = 82,
  kMaxSharedBytesPerBlockOptIn = 97,
};

/// The functions of an opened library. Throws Error (kDevice) wherever something fails.
class Driver {
 public:
  explicit Driver(const char* library)
      : library_(library), handle_(::dlopen(library, RTLD_NOW | RTLD_LOCAL)) {
    if (handle_ == nullptr) {
      throw Error(ExitCode::kDevice,
                  fmt::format("expected the library of NVIDIA's driver, got: {}", ::dlerror()));
    }
    find("cuInit", init_);
    find("cuDriverGetVersion", driver_get_version_);
    find("cuDeviceGetCount", device_get_count_);
    find("cuDeviceGet", device_get_);
    find("cuDeviceGetName", device_get_name_);
    find("cuDeviceGetAttribute", device_get_attribute_);
    find("cuDevicePrimaryCtxRetain", primary_context_retain_);
    find("cuCtxPushCurrent_v2", context_push_);
    find("cuCtxPopCurrent_v2", context_pop_);
    find("cuMemGetInfo_v2", memory_get_info_);
    find("cuGetErrorString", get_error_string_);
  }

  Device find_device(int index) const {
    check("cuInit", init_(0));
    int count = 0;
    check("cuDeviceGetCount", device_get_count_(&count));
    if (index >= count) {
      throw file_error(ExitCode::kDevice, library_, "expected a card of index {}, found {}", index,
                       count == 0 ? "none" : fmt::format("0 to {}", count - 1));
    }
    Device device = 0;
    check("cuDeviceGet", device_get_(&device, index));
    return device;
  }

  Context primary_context(Device device) const {
    Context context = nullptr;
    check("cuDevicePrimaryCtxRetain", primary_context_retain_(&context, device));
    return context;
  }

  auto push() const { return context_push_; }
  auto pop() const { return context_pop_; }

  std::vector<LinkedDevice> links(int index) const {
    int (*can_access)(int* can, Device from, Device to) = nullptr;
    int (*get_link)(int* value, int attribute, Device from, Device to) = nullptr;
    find("cuDeviceCanAccessPeer", can_access);
    find("cuDeviceGetP2PAttribute", get_link);
    const Device own = find_device(index);
    int count = 0;
    check("cuDeviceGetCount", device_get_count_(&count));
    std::vector<LinkedDevice> links;
    for (int other = 0; other < count; ++other) {
      if (other == index) continue;
      const Device device = find_device(other);
      LinkedDevice link{.index = other, .name = name_of(device), .reaches = true, .native_atomics = true};
      link.same_kind = link.name == name_of(own);
      for (const auto& [from, to] : {std::pair{own, device}, {device, own}}) {
        int can = 0;
        int atomics = 0;
        check("cuDeviceCanAccessPeer", can_access(&can, from, to));
        check("cuDeviceGetP2PAttribute", get_link(&atomics, kNativeAtomics, from, to));
        link.reaches = link.reaches && can != 0;
        link.native_atomics = link.native_atomics && atomics != 0;
      }
      links.push_back(link);
    }
    return links;
  }

  DeviceInfo describe(int index) const {
    const Device device = find_device(index);
    DeviceInfo info{};
    check("cuDeviceGetName", device_get_name_(info.name, sizeof info.name, device));
    info.name[sizeof info.name - 1] = '\0';
    info.compute_capability = 10 * attribute(device, Attribute::kComputeCapabilityMajor) +
                              attribute(device, Attribute::kComputeCapabilityMinor);
    info.num_sms = attribute(device, Attribute::kMultiprocessorCount);
    info.max_shared_bytes = attribute(device, Attribute::kMaxSharedBytesPerBlockOptIn);
    info.sm_clock_khz = attribute(device, Attribute::kClockRateKhz);
    info.memory_clock_khz = attribute(device, Attribute::kMemoryClockRateKhz);
    info.memory_bus_bits = attribute(device, Attribute::kMemoryBusBits);
    info.registers_per_sm = attribute(device, Attribute::kMaxRegistersPerMultiprocessor);
    info.l2_bytes = attribute(device, Attribute::kL2Bytes);
    info.has_time_limit = attribute(device, Attribute::kKernelExecTimeout);
    info.unified_memory = attribute(device, Attribute::kIntegrated);
    check("cuDriverGetVersion", driver_get_version_(&info.driver_version));
    read_memory(device, info);
    count_reclaimable(info);
    return info;
  }

 private:
  template <class Function>
  void find(const char* name, Function& function) const {
    function = reinterpret_cast<Function>(::dlsym(handle_, name));
    if (function == nullptr) {
      throw file_error(ExitCode::kDevice, library_, "expected a newer driver, got one without {}", name);
    }
  }

  std::string name_of(Device device) const {
    char name[sizeof(DeviceInfo::name)] = {};
    check("cuDeviceGetName", device_get_name_(name, sizeof name - 1, device));
    return name;
  }

  void check(const char* name, Status status) const {
    if (status == 0) return;
    if (status == kNoDevice) throw file_error(ExitCode::kDevice, library_, "expected a card, found none");
    const char* text = nullptr;
    get_error_string_(status, &text);
    throw file_error(ExitCode::kDevice, library_, "{}: {}", name,
                     text == nullptr ? fmt::format("error {}", status) : text);
  }

  int attribute(Device device, Attribute which) const {
    int value = 0;
    check("cuDeviceGetAttribute", device_get_attribute_(&value, static_cast<int>(which), device));
    return value;
  }

  void read_memory(Device device, DeviceInfo& info) const {
    Context context = primary_context(device);
    check("cuCtxPushCurrent", context_push_(context));
    size_t free_bytes = 0;
    size_t total_bytes = 0;
    const Status status = memory_get_info_(&free_bytes, &total_bytes);
    context_pop_(&context);
    check("cuMemGetInfo", status);
    info.free_bytes = static_cast<int64_t>(free_bytes);
    info.total_bytes = static_cast<int64_t>(total_bytes);
  }

  const char* library_;
  void* handle_;  // never closed: the context that has been made lives in the library
  Status (*init_)(unsigned flags);
  Status (*driver_get_version_)(int* version);
  Status (*device_get_count_)(int* count);
  Status (*device_get_)(Device* device, int index);
  Status (*device_get_name_)(char* name, int num_bytes, Device device);
  Status (*device_get_attribute_)(int* value, int attribute, Device device);
  Status (*primary_context_retain_)(Context* context, Device device);
  Status (*context_push_)(Context context);
  Status (*context_pop_)(Context* context);
  Status (*memory_get_info_)(size_t* free_bytes, size_t* total_bytes);
  Status (*get_error_string_)(Status status, const char** text);
};

}  // namespace

DeviceAnswer ask_driver(int device, const char* library) {
  try {
    return {.device = Driver(library).describe(device), .reason = ""};
  } catch (const Error& error) {
    return {.device = {}, .reason = error.what()};
  }
}

std::vector<LinkedDevice> ask_links(int device, const char* library) {
  try {
    return Driver(library).links(device);
  } catch (const Error&) {
    return {};
  }
}

PrimaryContext::PrimaryContext(int device, const char* library) {
  const Driver driver(library);
  context_ = driver.primary_context(driver.find_device(device));
  push_ = driver.push();
  pop_ = driver.pop();
}

PrimaryContext::Current::Current(const PrimaryContext* context) : context_(context) {
  if (context_ == nullptr || context_->push_(context_->context_) == 0) return;
  throw Error(ExitCode::kDevice,
              "cuCtxPushCurrent: expected the device's context to become current, got an error");
}

PrimaryContext::Current::~Current() {
  void* popped = nullptr;
  if (context_ != nullptr) context_->pop_(&popped);
}

}  // namespace soliton
