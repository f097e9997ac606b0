// Stands in for NVML where there is no card: knows the card that fake_cuda.cc calls device 0. Its power, energy and clocks
// are made up: 300 W by a counter that moves on 30 J a question. The environment says otherwise: FAKE_NVML_WITHOUT is a
// list of functions that say that they are not supported, FAKE_NVML_FAILS one that fails.
#include <cstdlib>
#include <string_view>

namespace {

constexpr int kInvalid = 2;
constexpr int kNotSupported = 3;
constexpr int kNoPermission = 4;

std::string_view environment_of(const char* name) {
  const char* const value = std::getenv(name);
  return value == nullptr ? "" : value;
}

int status_of(std::string_view function) {
  if (environment_of("FAKE_NVML_FAILS") == function) return kNoPermission;
  return environment_of("FAKE_NVML_WITHOUT").find(function) == std::string_view::npos ? 0 : kNotSupported;
}

int card = 0;

int answer(std::string_view function, const void* device, unsigned* value, unsigned known) {
  if (device != &card) return kInvalid;
  *value = known;
  return status_of(function);
}

}  // namespace

extern "C" {

int nvmlInit_v2() {
  return status_of("nvmlInit");
}
int nvmlShutdown() {
  return 0;
}
const char* nvmlErrorString(int status) {
  return status == kNoPermission ? "Insufficient Permissions" : "an error";
}
int nvmlDeviceGetHandleByPciBusId_v2(const char* address, void** device) {
  *device = &card;
  return std::string_view(address) == "0000:18:00.0" ? 0 : kInvalid;
}
int nvmlDeviceGetPowerUsage(void* device, unsigned* milliwatts) {
  return answer("Power", device, milliwatts, 300'000);
}
int nvmlDeviceGetEnforcedPowerLimit(void* device, unsigned* milliwatts) {
  return answer("Limit", device, milliwatts, 700'000);
}
int nvmlDeviceGetTotalEnergyConsumption(void* device, unsigned long long* millijoules) {
  static unsigned long long used = 1'000'000;
  if (device != &card) return kInvalid;
  *millijoules = used += 30'000;
  return status_of("Energy");
}
int nvmlDeviceGetClockInfo(void* device, int clock, unsigned* mhz) {
  return answer("Clock", device, mhz, clock == 1 ? 1755 : clock == 2 ? 3201 : 1);
}
int nvmlDeviceGetTemperature(void* device, int sensor, unsigned* celsius) {
  return answer("Temperature", device, celsius, sensor == 0 ? 61 : 1);
}
// The name that libraries of older drivers have.
int nvmlDeviceGetCurrentClocksThrottleReasons(void* device, unsigned long long* bits) {
  if (device != &card) return kInvalid;
  *bits = 0x1 | 0x4 | 0x20;  // idle, power cap, thermal
  return status_of("Throttle");
}

}  // extern "C"
