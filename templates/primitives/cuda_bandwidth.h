// Library::measure_bandwidth() on the CUDA runtime: launches of the kernels in stream.cuh, timed by events.
#pragma once

#include <cuda_runtime.h>

#include <algorithm>
#include <vector>

#include "layout/read_rates.h"
#include "primitives/stream.cuh"

namespace soliton::cuda_library {

constexpr uint64_t kStreamTimeoutNs = 10'000'000'000ull;
// Of one launch: long beside its beginning and end, in which not all SMs read, since a decode kernel is launched once for
// many tokens; and far from a quarter of a second, which a card that drives a display allows a kernel.
constexpr float kStreamLaunchMs = 20;
constexpr int kMaxStreamPasses = 64;
constexpr float kStreamWarmUpMs = 300;  // an idle card takes that long to raise its clocks

#define SOLITON_RETURN_ERROR(call)                        \
  do {                                                    \
    const cudaError_t soliton_code = (call);              \
    if (soliton_code != cudaSuccess) return soliton_code; \
  } while (0)

/// Times launches on one stream.
class StreamTimer {
 public:
  explicit StreamTimer(cudaStream_t stream) : stream_(stream) {}
  StreamTimer(const StreamTimer&) = delete;
  StreamTimer& operator=(const StreamTimer&) = delete;
  ~StreamTimer() {
    if (begin_ != nullptr) cudaEventDestroy(begin_);
    if (end_ != nullptr) cudaEventDestroy(end_);
  }

  cudaError_t open() {
    SOLITON_RETURN_ERROR(cudaEventCreate(&begin_));
    return cudaEventCreate(&end_);
  }

  template <class Launch>
  cudaError_t time(const Launch& launch, float* ms) {
    SOLITON_RETURN_ERROR(cudaEventRecord(begin_, stream_));
    launch();
    SOLITON_RETURN_ERROR(cudaGetLastError());
    SOLITON_RETURN_ERROR(cudaEventRecord(end_, stream_));
    SOLITON_RETURN_ERROR(cudaEventSynchronize(end_));
    return cudaEventElapsedTime(ms, begin_, end_);
  }

 private:
  cudaStream_t stream_;
  cudaEvent_t begin_ = nullptr;
  cudaEvent_t end_ = nullptr;
};

/// What the kernels write: sums of words, which device memory holds, and the report of a wait that hangs.
struct StreamMemory {
  struct Words {
    uint32_t expected;  // the sum of one pass
    uint32_t sum;
    uint32_t claim;  // of the report
  };
  Words* words = nullptr;
  StallReport* report = nullptr;

  StreamMemory() = default;
  StreamMemory(const StreamMemory&) = delete;
  StreamMemory& operator=(const StreamMemory&) = delete;
  ~StreamMemory() {
    if (words != nullptr) cudaFree(words);
    if (report != nullptr) cudaFreeHost(report);
  }

  cudaError_t open(cudaStream_t stream) {
    SOLITON_RETURN_ERROR(cudaMalloc(&words, sizeof(Words)));
    SOLITON_RETURN_ERROR(cudaMemsetAsync(words, 0, sizeof(Words), stream));
    return cudaHostAlloc(&report, sizeof(StallReport), cudaHostAllocMapped | cudaHostAllocPortable);
  }
};

/// Measures the kernels one after the other on the same pages.
class StreamMeasurement {
 public:
  /// `num_sms` CTAs read `pages`, of which num_passes does not count, in `repeats` launches that are timed.
  StreamMeasurement(const StreamedPages& pages, int num_sms, int repeats, cudaStream_t stream)
      : pages_(pages), num_sms_(num_sms), repeats_(repeats), stream_(stream), timer_(stream) {}

  cudaError_t open() {
    SOLITON_RETURN_ERROR(memory_.open(stream_));
    SOLITON_RETURN_ERROR(timer_.open());
    sum_pages<<<kSumCtas, kSumThreads, 0, stream_>>>(pages_, &memory_.words->expected);
    return cudaGetLastError();
  }

  cudaError_t measure_warp_rings(double* rate) {
    SOLITON_RETURN_ERROR(cudaFuncSetAttribute(
        stream_by_warp_rings, cudaFuncAttributeMaxDynamicSharedMemorySize, kWarpRingSharedBytes));
    return measure(
        [&](const StreamedPages& pages) {
          stream_by_warp_rings<<<num_sms_, kWarpRingThreads, kWarpRingSharedBytes, stream_>>>(
              pages, &memory_.words->sum);
        },
        rate);
  }

  /// 0 where the library's code has no bulk copies.
  cudaError_t measure_bulk_ring(double* rate) {
    *rate = 0;
    cudaFuncAttributes attributes{};
    SOLITON_RETURN_ERROR(cudaFuncGetAttributes(&attributes, stream_by_bulk_ring));
    if (attributes.ptxVersion < kBulkCopyCapability) return cudaSuccess;
    SOLITON_RETURN_ERROR(cudaFuncSetAttribute(
        stream_by_bulk_ring, cudaFuncAttributeMaxDynamicSharedMemorySize, kStreamSharedBytes));
    LaunchParams params{};
    params.stall = memory_.report;
    params.timeout_ns = kStreamTimeoutNs;
    return measure(
        [&](const StreamedPages& pages) {
          stream_by_bulk_ring<<<num_sms_, kStreamThreads, kStreamSharedBytes, stream_>>>(
              pages, &memory_.words->sum, params, &memory_.words->claim);
        },
        rate);
  }

 private:
  /// Median bytes per second of the launches, after some to warm up. The sum of them all, modulo 2^32, tells whether
  /// every pass of them has read every word once.
  template <class Launch>
  cudaError_t measure(const Launch& launch, double* rate) {
    SOLITON_RETURN_ERROR(cudaMemsetAsync(&memory_.words->sum, 0, sizeof(uint32_t), stream_));
    StreamedPages pages = pages_;
    pages.num_passes = 1;
    uint32_t num_passes = 0;
    float ms = 0;
    const auto time = [&] {
      num_passes += static_cast<uint32_t>(pages.num_passes);
      return timer_.time([&] { launch(pages); }, &ms);
    };
    for (float warm_ms = 0; warm_ms < kStreamWarmUpMs; warm_ms += ms) {
      SOLITON_RETURN_ERROR(time());
      const float pass_ms = ms / static_cast<float>(pages.num_passes);
      pages.num_passes = std::clamp(static_cast<int>(kStreamLaunchMs / pass_ms) + 1, 1, kMaxStreamPasses);
    }
    std::vector<float> times;
    for (int i = 0; i < repeats_; ++i) {
      SOLITON_RETURN_ERROR(time());
      times.push_back(ms);
    }
    StreamMemory::Words words{};
    SOLITON_RETURN_ERROR(cudaMemcpy(&words, memory_.words, sizeof(words), cudaMemcpyDeviceToHost));
    if (words.sum != words.expected * num_passes) return cudaErrorAssert;
    std::nth_element(times.begin(), times.begin() + repeats_ / 2, times.end());
    *rate =
        static_cast<double>(pages.num_pages) * kPageBytes * pages.num_passes / (times[repeats_ / 2] * 1e-3);
    return cudaSuccess;
  }

  const StreamedPages pages_;
  const int num_sms_;
  const int repeats_;
  const cudaStream_t stream_;
  StreamMemory memory_;
  StreamTimer timer_;
};

/// See Library::measure_bandwidth(); `repeats` is at least 1, `bytes` at least a page. Returns cudaErrorAssert if a kernel
/// has not read everything.
inline cudaError_t measure_read_rates(const void* memory, size_t bytes, int repeats, int num_sms,
                                      cudaStream_t stream, ReadRates* rates) {
  *rates = {};
  const StreamedPages pages = {static_cast<const unsigned char*>(memory),
                               static_cast<int64_t>(bytes / kPageBytes), 1};
  StreamMeasurement measurement(pages, num_sms, repeats, stream);
  SOLITON_RETURN_ERROR(measurement.open());
  SOLITON_RETURN_ERROR(measurement.measure_warp_rings(&rates->warp_rings));
  return measurement.measure_bulk_ring(&rates->bulk_ring);
}

#undef SOLITON_RETURN_ERROR

}  // namespace soliton::cuda_library
