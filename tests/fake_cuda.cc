// Stands in for the CUDA driver's library where there is no card: describes an H200. The environment says otherwise:
// FAKE_CUDA_CARDS is the number of cards, FAKE_CUDA_NAME their name, FAKE_CUDA_FREE_BYTES what of their memory is free,
// FAKE_CUDA_TOTAL_BYTES all of it, FAKE_CUDA_VERSION the driver's, FAKE_CUDA_ATTRIBUTES other attributes such as
// "16=80,75=8,76=9", FAKE_CUDA_FAILS a function that fails, FAKE_CUDA_LINK what joins the cards: "nvlink", "pcie" or "none".
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <map>
#include <sstream>
#include <string>
#include <string_view>

namespace {

constexpr int kFailure = 2;     // CUDA_ERROR_OUT_OF_MEMORY
constexpr int kNoDevice = 100;  // CUDA_ERROR_NO_DEVICE
const char* environment_or(const char* name, const char* fallback) {
  const char* const value = std::getenv(name);
  return value == nullptr ? fallback : value;
}

int status_of(std::string_view function) {
  return function == environment_or("FAKE_CUDA_FAILS", "") ? kFailure : 0;
}

int num_cards() {
  return std::atoi(environment_or("FAKE_CUDA_CARDS", "1"));
}

void* pushed = nullptr;  // the context that is current

}  // namespace

extern "C" {

int cuInit(unsigned) {
  return num_cards() == 0 ? kNoDevice : status_of("cuInit");
}
int cuDriverGetVersion(int* version) {
  *version = std::atoi(environment_or("FAKE_CUDA_VERSION", "13000"));
  return 0;
}
int cuDeviceGetCount(int* count) {
  *count = num_cards();
  return 0;
}
int cuDeviceGet(int* device, int index) {
  *device = 40 + index;
  return 0;
}
int cuDeviceGetName(char* name, int num_bytes, int) {
  std::strncpy(name, environment_or("FAKE_CUDA_NAME", "NVIDIA H200"), static_cast<size_t>(num_bytes));
  return 0;
}
int cuDeviceGetPCIBusId(char* address, int num_bytes, int device) {
  const std::string text = "0000:18:0" + std::to_string(device - 40) + ".0";
  std::strncpy(address, text.c_str(), static_cast<size_t>(num_bytes));
  return status_of("cuDeviceGetPCIBusId");
}
int cuDeviceGetAttribute(int* value, int attribute, int device) {
  std::map<int, int> values = {{13, 1'980'000}, {16, 132},    {17, 0},          {18, 0},
                               {36, 3'201'000}, {37, 6144},   {38, 52'428'800}, {75, 9},
                               {76, 0},         {82, 65'536}, {97, 232'448}};
  std::istringstream others(environment_or("FAKE_CUDA_ATTRIBUTES", ""));
  for (std::string other; std::getline(others, other, ',');) {
    values[std::stoi(other)] = std::stoi(other.substr(other.find('=') + 1));
  }
  if (device < 40 || !values.contains(attribute)) return kFailure;
  *value = values.at(attribute);
  return 0;
}
int cuDeviceCanAccessPeer(int* can, int, int) {
  *can = std::string_view(environment_or("FAKE_CUDA_LINK", "nvlink")) != "none";
  return status_of("cuDeviceCanAccessPeer");
}
int cuDeviceGetP2PAttribute(int* value, int attribute, int, int) {
  *value = attribute == 3 && std::string_view(environment_or("FAKE_CUDA_LINK", "nvlink")) == "nvlink";
  return 0;
}
int cuDevicePrimaryCtxRetain(void** context, int device) {
  static int contexts[16];
  *context = &contexts[device - 40];
  return status_of("cuDevicePrimaryCtxRetain");
}
int cuCtxPushCurrent_v2(void* context) {
  pushed = context;
  return 0;
}
int cuCtxPopCurrent_v2(void** context) {
  *context = pushed;
  pushed = nullptr;
  return 0;
}
int cuMemGetInfo_v2(size_t* free_bytes, size_t* total_bytes) {
  if (pushed == nullptr) return kFailure;
  *free_bytes = static_cast<size_t>(std::atoll(environment_or("FAKE_CUDA_FREE_BYTES", "149000000000")));
  *total_bytes = static_cast<size_t>(std::atoll(environment_or("FAKE_CUDA_TOTAL_BYTES", "150000000000")));
  return status_of("cuMemGetInfo");
}
int cuGetErrorString(int status, const char** text) {
  if (status != kFailure) return kFailure;
  *text = "out of memory";
  return 0;
}

}  // extern "C"
