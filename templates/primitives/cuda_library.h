// The C ABI of a kernel library on the CUDA runtime.
#pragma once

#include <cuda_runtime.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <mutex>
#include <string_view>
#include <vector>

#include "layout/library.h"
#include "layout/random.h"
#include "primitives/cuda_bandwidth.h"

namespace soliton {

namespace cuda_library {

constexpr size_t kErrorBytes = 512;

constexpr int kMaxDevices = 64;

struct DeviceState {
  cudaStream_t stream = nullptr;
  cudaEvent_t done = nullptr;
  int num_sms = 0;
};

struct State {
  std::mutex error_mutex;
  char error[kErrorBytes] = "";
  const DecodeKernel* kernels = nullptr;
  const Descriptor* descriptors = nullptr;
  int num_kernels = 0;
  DeviceState devices[kMaxDevices];
};

inline State& state() {
  static State instance;
  return instance;
}
/// Of the device that this thread has selected.
inline DeviceState& current() {
  int device = 0;
  cudaGetDevice(&device);
  return state().devices[device];
}

inline int fail(const char* what, cudaError_t code) {
  const std::lock_guard lock(state().error_mutex);  // several cards' threads may fail at once
  snprintf(state().error, kErrorBytes, "%s: %s", what, cudaGetErrorString(code));
  return static_cast<int>(code);
}

#define SOLITON_CUDA(call)                                             \
  do {                                                                 \
    const cudaError_t soliton_code = (call);                           \
    if (soliton_code != cudaSuccess) return fail(#call, soliton_code); \
  } while (0)

inline const char* last_error() {
  return state().error;
}

inline int attribute(cudaDeviceAttr what, int device) {
  int value = 0;
  return cudaDeviceGetAttribute(&value, what, device) == cudaSuccess ? value : 0;
}

/// Drivers run the code of any toolkit of their major version, and compile PTX of none that is newer than they are.
inline int check_driver() {
  const int needed = state().descriptors[0].model->ptx ? CUDART_VERSION : CUDART_VERSION / 1000 * 1000;
  int driver = 0;
  SOLITON_CUDA(cudaDriverGetVersion(&driver));
  if (driver == 0 || driver >= needed) return 0;  // without a driver there is no device either
  snprintf(state().error, kErrorBytes, "expected a driver for CUDA %d.%d or later, got one for %d.%d",
           needed / 1000, needed % 1000 / 10, driver / 1000, driver % 1000 / 10);
  return static_cast<int>(cudaErrorInsufficientDriver);
}

inline int open(int device, DeviceInfo* info) {
  if (const int status = check_driver()) return status;
  int count = 0;
  SOLITON_CUDA(cudaGetDeviceCount(&count));
  if (device >= kMaxDevices) return fail("cudaSetDevice", cudaErrorInvalidDevice);
  SOLITON_CUDA(cudaSetDevice(device));
  cudaDeviceProp properties;
  SOLITON_CUDA(cudaGetDeviceProperties(&properties, device));
  *info = {};
  std::string_view(properties.name).copy(info->name, sizeof(info->name) - 1);
  info->compute_capability = properties.major * 10 + properties.minor;
  info->num_sms = properties.multiProcessorCount;
  info->max_shared_bytes = static_cast<int32_t>(properties.sharedMemPerBlockOptin);
  SOLITON_CUDA(cudaDriverGetVersion(&info->driver_version));
  size_t free_bytes = 0;
  size_t total_bytes = 0;
  SOLITON_CUDA(cudaMemGetInfo(&free_bytes, &total_bytes));
  info->total_bytes = static_cast<int64_t>(total_bytes);
  info->free_bytes = static_cast<int64_t>(free_bytes);
  info->sm_clock_khz = attribute(cudaDevAttrClockRate, device);
  info->memory_clock_khz = attribute(cudaDevAttrMemoryClockRate, device);
  info->memory_bus_bits = attribute(cudaDevAttrGlobalMemoryBusWidth, device);
  info->registers_per_sm = attribute(cudaDevAttrMaxRegistersPerMultiprocessor, device);
  info->l2_bytes = attribute(cudaDevAttrL2CacheSize, device);
  info->unified_memory = attribute(cudaDevAttrIntegrated, device);
  info->has_time_limit = attribute(cudaDevAttrKernelExecTimeout, device);
  current().num_sms = info->num_sms;
  for (int i = 0; i < state().num_kernels; ++i) {
    const Descriptor& needs = state().descriptors[i];
    if (!needs.model->runs_on(info->compute_capability) || info->max_shared_bytes < needs.shared_bytes ||
        info->num_sms < needs.num_ctas) {
      return 0;  // the runtime says what does not fit
    }
    SOLITON_CUDA(cudaFuncSetAttribute(state().kernels[i], cudaFuncAttributeMaxDynamicSharedMemorySize,
                                      needs.shared_bytes));
  }
  if (current().stream == nullptr) {
    SOLITON_CUDA(cudaStreamCreateWithFlags(&current().stream, cudaStreamNonBlocking));
    SOLITON_CUDA(cudaEventCreateWithFlags(&current().done, cudaEventDisableTiming));
  }
  return 0;
}

inline int enter(int device) {
  SOLITON_CUDA(cudaSetDevice(device));
  return 0;
}

/// Stores and additions go to the other card's memory by themselves: that takes peer access with atomics.
inline int reach_peers(const int* devices, int num_devices) {
  for (int i = 0; i < num_devices; ++i) {
    SOLITON_CUDA(cudaSetDevice(devices[i]));
    for (int j = 0; j < num_devices; ++j) {
      if (i == j) continue;
      int reaches = 0;
      int has_atomics = 0;
      SOLITON_CUDA(cudaDeviceCanAccessPeer(&reaches, devices[i], devices[j]));
      SOLITON_CUDA(cudaDeviceGetP2PAttribute(&has_atomics, cudaDevP2PAttrNativeAtomicSupported, devices[i],
                                             devices[j]));
      if (reaches == 0 || has_atomics == 0) {
        snprintf(state().error, kErrorBytes,
                 "device %d cannot use the memory of device %d (peer access%s): choose cards that are joined "
                 "by NVLink, "
                 "as `nvidia-smi topo -m` shows them",
                 devices[i], devices[j], reaches == 0 ? "" : " has no atomics");
        return 1;
      }
      const cudaError_t code = cudaDeviceEnablePeerAccess(devices[j], 0);
      if (code == cudaErrorPeerAccessAlreadyEnabled) {
        cudaGetLastError();
      } else if (code != cudaSuccess) {
        return fail("cudaDeviceEnablePeerAccess", code);
      }
    }
  }
  return 0;
}

inline int allocate(size_t bytes, void** memory) {
  SOLITON_CUDA(cudaMalloc(memory, bytes));
  return 0;
}
/// Managed, as a small board's GPU caches no pinned memory. Some of these GPUs let the host touch managed memory only
/// while nothing runs on them: what was started before has to have ended.
inline int allocate_unified(size_t bytes, void** memory) {
  SOLITON_CUDA(cudaMallocManaged(memory, bytes));
  SOLITON_CUDA(cudaDeviceSynchronize());
  return 0;
}
inline void release(void* memory) {
  cudaFree(memory);
}
inline int allocate_shared(size_t bytes, void** memory) {
  SOLITON_CUDA(cudaHostAlloc(memory, bytes, cudaHostAllocMapped | cudaHostAllocPortable));
  return 0;
}
inline void release_shared(void* memory) {
  cudaFreeHost(memory);
}

// All work goes to one stream, so that it happens in the order of the calls.
inline int fill(void* memory, int byte, size_t bytes) {
  SOLITON_CUDA(cudaMemsetAsync(memory, byte, bytes, current().stream));
  return 0;
}
inline int finish() {
  SOLITON_CUDA(cudaStreamSynchronize(current().stream));
  return 0;
}
inline int upload(void* device, const void* host, size_t bytes) {
  SOLITON_CUDA(cudaMemcpyAsync(device, host, bytes, cudaMemcpyHostToDevice, current().stream));
  SOLITON_CUDA(cudaStreamSynchronize(current().stream));
  return 0;
}
inline int download(void* host, const void* device, size_t bytes) {
  SOLITON_CUDA(cudaMemcpyAsync(host, device, bytes, cudaMemcpyDeviceToHost, current().stream));
  SOLITON_CUDA(cudaStreamSynchronize(current().stream));
  return 0;
}

constexpr int kFillThreads = 256;
constexpr int kFillBlocksPerSm = 8;

static __global__ void fill_random_kernel(uint16_t* memory, size_t count, float bound, uint64_t seed,
                                          RandomShare share) {
  const size_t stride = static_cast<size_t>(gridDim.x) * blockDim.x;
  for (size_t i = blockIdx.x * static_cast<size_t>(blockDim.x) + threadIdx.x; i < count; i += stride) {
    memory[i] = float_to_bf16(random_unit(share.of_all(i), seed) * bound);
  }
}

inline int fill_random(void* memory, size_t count, float bound, uint64_t seed, RandomShare share) {
  fill_random_kernel<<<current().num_sms * kFillBlocksPerSm, kFillThreads, 0, current().stream>>>(
      static_cast<uint16_t*>(memory), count, bound, seed, share);
  SOLITON_CUDA(cudaGetLastError());
  return 0;
}

static __global__ void fill_random_tiles_kernel(uint32_t* memory, RandomTiles tiles, uint64_t seed,
                                                RandomShare share) {
  const int64_t stride = static_cast<int64_t>(gridDim.x) * blockDim.x;
  const int64_t first = blockIdx.x * static_cast<int64_t>(blockDim.x) + threadIdx.x;
  for (int64_t i = first; i < tiles.num_words(); i += stride)
    memory[i] = random_weight_word(tiles, share.of_all(i), seed);
}

inline int fill_random_tiles(void* memory, const RandomTiles* tiles, uint64_t seed, RandomShare share) {
  fill_random_tiles_kernel<<<current().num_sms * kFillBlocksPerSm, kFillThreads, 0, current().stream>>>(
      static_cast<uint32_t*>(memory), *tiles, seed, share);
  SOLITON_CUDA(cudaGetLastError());
  return 0;
}

static __global__ void move_tokens_kernel(unsigned char* pool, KvShape shape, const TokenMove* moves,
                                          int num_moves) {
  move_tokens(pool, shape, moves, num_moves, blockIdx.y, blockIdx.x, threadIdx.x);
}

inline int move_tokens(void* kv_pool, const KvShape* shape, const TokenMove* moves, int num_moves) {
  TokenMove* copies = nullptr;
  SOLITON_CUDA(cudaMallocAsync(&copies, num_moves * sizeof(TokenMove), current().stream));
  SOLITON_CUDA(cudaMemcpyAsync(copies, moves, num_moves * sizeof(TokenMove), cudaMemcpyHostToDevice,
                               current().stream));
  move_tokens_kernel<<<dim3(shape->num_kv_heads, shape->num_layers), shape->head_dim, 0, current().stream>>>(
      static_cast<unsigned char*>(kv_pool), *shape, copies, num_moves);
  SOLITON_CUDA(cudaGetLastError());
  SOLITON_CUDA(cudaFreeAsync(copies, current().stream));
  SOLITON_CUDA(cudaStreamSynchronize(current().stream));
  return 0;
}

/// A cooperative launch: either all CTAs run at once, or the launch is refused.
inline int launch(int kernel, const LaunchParams* params, int num_ctas) {
  LaunchParams copy = *params;
  void* arguments[] = {&copy};
  const Descriptor& descriptor = state().descriptors[kernel];
  SOLITON_CUDA(cudaLaunchCooperativeKernel(reinterpret_cast<const void*>(state().kernels[kernel]),
                                           dim3(num_ctas), dim3(descriptor.threads_per_cta), arguments,
                                           descriptor.shared_bytes, current().stream));
  SOLITON_CUDA(cudaEventRecord(current().done, current().stream));
  return 0;
}

inline LaunchState poll() {
  const cudaError_t code = cudaEventQuery(current().done);
  if (code == cudaErrorNotReady) return LaunchState::kRunning;
  if (code == cudaSuccess) return LaunchState::kDone;
  fail("decode kernel", code);
  return LaunchState::kFailed;
}

inline int wait() {
  SOLITON_CUDA(cudaEventSynchronize(current().done));
  return 0;
}

inline int measure_bandwidth(const void* memory, size_t bytes, int repeats, ReadRates* rates) {
  const cudaError_t status =
      measure_read_rates(memory, bytes, repeats, current().num_sms, current().stream, rates);
  if (status != cudaErrorAssert) return status == cudaSuccess ? 0 : fail("measure_read_rates", status);
  snprintf(state().error, kErrorBytes, "a kernel that measures the bandwidth has not read everything");
  return 1;
}

template <int kNumKernels>
const Library* library(const DecodeKernel (&kernels)[kNumKernels],
                       const Descriptor (&descriptors)[kNumKernels]) {
  state().kernels = kernels;
  state().descriptors = descriptors;
  state().num_kernels = kNumKernels;
  static const Library instance{.abi = kLibraryAbi,
                                .descriptors = descriptors,
                                .num_kernels = kNumKernels,
                                .timeline = kTimeline,
                                .fuzz = kFuzz,
                                .last_error = last_error,
                                .open = open,
                                .enter = enter,
                                .allocate = allocate,
                                .allocate_unified = allocate_unified,
                                .release = release,
                                .allocate_shared = allocate_shared,
                                .release_shared = release_shared,
                                .fill = fill,
                                .finish = finish,
                                .upload = upload,
                                .download = download,
                                .fill_random = fill_random,
                                .fill_random_tiles = fill_random_tiles,
                                .move_tokens = move_tokens,
                                .launch = launch,
                                .poll = poll,
                                .wait = wait,
                                .measure_bandwidth = measure_bandwidth,
                                .reach_peers = reach_peers};
  return &instance;
}

#undef SOLITON_CUDA

}  // namespace cuda_library
}  // namespace soliton

#define SOLITON_LIBRARY(kernels, descriptors)                                                   \
  extern "C" __attribute__((visibility("default"))) const soliton::Library* soliton_library() { \
    return soliton::cuda_library::library(kernels, descriptors);                                \
  }
