#include "primitives/emulation/host_runtime.h"

#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstring>
#include <thread>

#include "layout/random.h"
#include "primitives/emulation/fibers.h"
#include "primitives/host.h"

namespace soliton::emulation {

namespace {

constexpr int kMaxSharedBytes = 232448;  // what a block of sm_90 may have

struct HostRuntime {
  HostRuntime() { stack_pool(); }  // Made before this, so gone after it: a launch may run until then.
  ~HostRuntime() {
    if (thread.joinable()) thread.join();
  }
  EmulationControl control;
  std::thread thread;
  std::atomic<LaunchState> state = LaunchState::kDone;
  std::string launch_error;  // written by the thread before `state`
  std::string last_error;
};

HostRuntime& runtime() {
  static HostRuntime runtime;
  return runtime;
}

int fail(std::string text) {
  runtime().last_error = std::move(text);
  return 1;
}

}  // namespace

EmulationControl& control() {
  return runtime().control;
}

const char* last_error() {
  return runtime().last_error.c_str();
}

int open_device(int device, const Descriptor& descriptor, DeviceInfo* info) {
  *info = {};
  if (device != 0) return fail("CPU emulation: there is only device 0, got " + std::to_string(device));
  std::snprintf(info->name, sizeof info->name, "CPU emulation");
  info->num_sms = descriptor.num_ctas;
  info->max_shared_bytes = kMaxSharedBytes;
  info->total_bytes = static_cast<int64_t>(sysconf(_SC_PHYS_PAGES)) * sysconf(_SC_PAGESIZE);
  info->free_bytes = static_cast<int64_t>(sysconf(_SC_AVPHYS_PAGES)) * sysconf(_SC_PAGESIZE);
  const EmulatedDevice& claimed = runtime().control.device;
  if (claimed.free_bytes > 0) info->free_bytes = claimed.free_bytes;
  info->has_time_limit = claimed.has_time_limit ? 1 : 0;
  info->unified_memory = claimed.unified_memory ? 1 : 0;
  return 0;
}

int allocate_memory(size_t bytes, void** memory) {
  *memory = allocate(bytes);
  return *memory != nullptr ? 0 : fail("CPU emulation: no memory for " + std::to_string(bytes) + " bytes");
}

int fill_memory(void* memory, int byte, size_t bytes) {
  std::memset(memory, byte, bytes);
  return 0;
}

int upload(void* device, const void* host, size_t bytes) {
  std::memcpy(device, host, bytes);
  runtime().control.uploaded_bytes += bytes;
  return 0;
}

int download(void* host, const void* device, size_t bytes) {
  std::memcpy(host, device, bytes);
  return 0;
}

int fill_random(void* memory, size_t count, float bound, uint64_t seed) {
  auto* values = static_cast<uint16_t*>(memory);
  for (size_t i = 0; i < count; ++i) values[i] = float_to_bf16(random_unit(i, seed) * bound);
  return 0;
}

int fill_random_tiles(void* memory, const RandomTiles* tiles, uint64_t seed) {
  auto* words = static_cast<uint32_t*>(memory);
  for (int64_t i = 0; i < tiles->num_words(); ++i) words[i] = random_weight_word(*tiles, i, seed);
  return 0;
}

int move_cached_tokens(void* kv_pool, const KvShape* shape, const TokenMove* moves, int num_moves) {
  for (int layer = 0; layer < shape->num_layers; ++layer) {
    for (int head = 0; head < shape->num_kv_heads; ++head) {
      for (int dim = 0; dim < shape->head_dim; ++dim)
        move_tokens(static_cast<unsigned char*>(kv_pool), *shape, moves, num_moves, layer, head, dim);
    }
  }
  return 0;
}

int start(Kernel kernel, const Descriptor& descriptor, const LaunchParams* params, int num_ctas) {
  HostRuntime& self = runtime();
  if (self.state == LaunchState::kRunning) return fail("CPU emulation: a launch is running already");
  if (self.thread.joinable()) self.thread.join();
  self.state = LaunchState::kRunning;
  self.control.launched_steps.push_back(params->num_steps);
  const LaunchShape shape = {num_ctas, descriptor.threads_per_cta, descriptor.shared_bytes};
  self.thread = std::thread([&self, kernel, shape, params = *params] {
    self.launch_error = run(kernel, params, shape, self.control);
    self.state = self.launch_error.empty() ? LaunchState::kDone : LaunchState::kFailed;
  });
  return 0;
}

LaunchState poll() {
  return runtime().state;
}

int wait() {
  HostRuntime& self = runtime();
  if (self.thread.joinable()) self.thread.join();
  return self.state == LaunchState::kFailed ? fail(self.launch_error) : 0;
}

int measure_bandwidth(const void*, size_t, int, ReadRates* rates) {
  *rates = {};
  return 0;
}

}  // namespace soliton::emulation
