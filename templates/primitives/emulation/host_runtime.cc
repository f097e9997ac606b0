#include "primitives/emulation/host_runtime.h"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstring>
#include <thread>
#include <vector>

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
  std::vector<CardLaunch> starting = {};  // by card, until the launch begins
  std::vector<bool> launched = {};        // by card: whether the last launch was started there
  Kernel kernel = nullptr;
  LaunchShape shape;
  std::thread thread;
  std::atomic<LaunchState> state = LaunchState::kDone;
  std::string launch_error;  // written by the thread before `state`
  std::string last_error;
};

HostRuntime& runtime() {
  static HostRuntime runtime;
  return runtime;
}

thread_local int entered = 0;  // the device of this thread

int fail(std::string text) {
  runtime().last_error = std::move(text);
  return 1;
}

/// Was the last launch started on the device of this thread?
bool is_launched() {
  const std::vector<bool>& launched = runtime().launched;
  return static_cast<size_t>(entered) < launched.size() && launched[entered];
}
bool has_failed() {
  return entered == runtime().control.device.failing_card;
}

/// Begins the launch that has been started, if there is one.
void begin() {
  HostRuntime& self = runtime();
  if (self.starting.empty()) return;
  self.thread =
      std::thread([&self, kernel = self.kernel, shape = self.shape, cards = std::move(self.starting)] {
        self.launch_error = run_cards(kernel, cards, shape, self.control);
        self.state = self.launch_error.empty() ? LaunchState::kDone : LaunchState::kFailed;
      });
  self.starting = {};
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
  const int last = descriptor.num_cards - 1;
  if (device < 0 || device > last) {
    const std::string there = last == 0 ? "only device 0" : "devices 0 to " + std::to_string(last);
    return fail("CPU emulation: there " + std::string(last == 0 ? "is " : "are ") + there + ", got " +
                std::to_string(device));
  }
  entered = device;
  std::snprintf(info->name, sizeof info->name, "CPU emulation");
  info->num_sms = descriptor.num_ctas;
  info->max_shared_bytes = kMaxSharedBytes;
  info->total_bytes = static_cast<int64_t>(sysconf(_SC_PHYS_PAGES)) * sysconf(_SC_PAGESIZE);
  info->free_bytes = static_cast<int64_t>(sysconf(_SC_AVPHYS_PAGES)) * sysconf(_SC_PAGESIZE);
  const EmulatedDevice& claimed = runtime().control.device;
  if (device == claimed.odd_card) std::snprintf(info->name, sizeof info->name, "another CPU emulation");
  if (claimed.free_bytes > 0) info->free_bytes = claimed.free_bytes;
  info->has_time_limit = claimed.has_time_limit ? 1 : 0;
  info->unified_memory = claimed.unified_memory ? 1 : 0;
  return 0;
}

int enter_device(int device) {
  entered = device;
  return 0;
}

int reach_peers(const int* devices, int num_devices) {
  const int absent = runtime().control.device.unreachable_card;
  for (int i = 0; i < num_devices; ++i) {
    if (devices[i] == absent)
      return fail("CPU emulation: device " + std::to_string(absent) + " shares its memory with none");
  }
  return 0;
}

namespace {

int allocate_of(int card, size_t bytes, void** memory) {
  *memory = allocate(bytes, card);
  return *memory != nullptr ? 0 : fail("CPU emulation: no memory for " + std::to_string(bytes) + " bytes");
}

}  // namespace

int allocate_memory(size_t bytes, void** memory) {
  return allocate_of(entered, bytes, memory);
}
int allocate_shared(size_t bytes, void** memory) {
  return allocate_of(-1, bytes, memory);
}

int fill_memory(void* memory, int byte, size_t bytes) {
  static const std::byte* zeros = nullptr;  // those that were filled in last, up to
  static const std::byte* end = nullptr;
  const auto* first = static_cast<const std::byte*>(memory);
  const FaultKind fault = runtime().control.options.fault.kind;
  if (fault == FaultKind::kKeepMemory) return 0;
  if (byte == 0) {
    zeros = first;
    end = first + bytes;
  } else if (fault == FaultKind::kKeepZeros && zeros <= first && first < end) {
    return 0;
  }
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

int fill_random(void* memory, size_t count, float bound, uint64_t seed, RandomShare share) {
  auto* values = static_cast<uint16_t*>(memory);
  for (size_t i = 0; i < count; ++i)
    values[i] = float_to_bf16(random_unit(share.of_all(static_cast<int64_t>(i)), seed) * bound);
  return 0;
}

int fill_random_tiles(void* memory, const RandomTiles* tiles, uint64_t seed, RandomShare share) {
  auto* words = static_cast<uint32_t*>(memory);
  for (int64_t i = 0; i < tiles->num_words(); ++i)
    words[i] = random_weight_word(*tiles, share.of_all(i), seed);
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
  const size_t card = descriptor.num_cards == 1 ? 0 : static_cast<size_t>(params->card);
  if (self.starting.empty()) {
    if (self.state == LaunchState::kRunning) return fail("CPU emulation: a launch is running already");
    if (self.thread.joinable()) self.thread.join();
    self.state = LaunchState::kRunning;
    self.control.launched_steps.push_back(params->num_steps);
    self.kernel = kernel;
    self.shape = {num_ctas, descriptor.threads_per_cta, descriptor.shared_bytes};
    self.starting.resize(static_cast<size_t>(descriptor.num_cards));
    self.launched.assign(self.starting.size(), false);
  } else if (self.starting[card]) {
    return fail("CPU emulation: a launch is running already");
  }
  self.starting[card] = *params;
  self.launched[card] = true;
  if (std::all_of(self.starting.begin(), self.starting.end(),
                  [](const CardLaunch& c) { return c.has_value(); })) {
    begin();
  }
  return 0;
}

LaunchState poll() {
  begin();
  if (!is_launched()) return LaunchState::kDone;
  return has_failed() ? LaunchState::kFailed : runtime().state.load();
}

int wait() {
  begin();
  HostRuntime& self = runtime();
  if (self.thread.joinable()) self.thread.join();
  if (!is_launched()) return 0;
  if (has_failed()) return fail("CPU emulation: the card has failed");
  return self.state == LaunchState::kFailed ? fail(self.launch_error) : 0;
}

int measure_bandwidth(const void*, size_t, int, ReadRates* rates) {
  *rates = {};
  return 0;
}

}  // namespace soliton::emulation
