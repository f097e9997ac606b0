#include "runtime/device/host_memory.h"

#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <string>

namespace soliton {

int64_t available_host_bytes() {
  // sysconf() does not know what caches would give back.
  std::ifstream meminfo("/proc/meminfo");
  constexpr int64_t kKib = 1024;
  std::string key;
  int64_t kib = 0;
  for (std::string unit; meminfo >> key >> kib && std::getline(meminfo, unit);) {
    if (key == "MemAvailable:") return kib * kKib;
  }
  return int64_t{::sysconf(_SC_AVPHYS_PAGES)} * ::sysconf(_SC_PAGESIZE);
}

void count_reclaimable(DeviceInfo& device) {
  if (device.unified_memory == 0) return;
  device.free_bytes = std::max(device.free_bytes, std::min(available_host_bytes(), device.total_bytes));
}

}  // namespace soliton
