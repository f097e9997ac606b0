// The memory of launches that draw tokens: see SamplingView.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "runtime/device/kernel_library.h"

namespace soliton {

/// What the launches of one request draw by.
struct SamplingRequest {
  std::span<const RowSampling> rows;                   // at least one
  std::span<const std::vector<int32_t>> past;          // [rows]: tokens that a penalty counts, or empty: none
  std::span<const std::span<const uint32_t>> allowed;  // [rows]: see TreeRequest, or empty
  bool want_logprobs = false;
};

class SamplingMemory {
 public:
  /// Before the launches of a request: the rows' tokens are then counted on from launch to launch. Throws
  /// Error: kMismatch if a token is none of the vocabulary, or the vocabulary too large; kInternal if a row's mask has
  /// another size, or allows nothing.
  void begin(const KernelLibrary& library, const SamplingRequest& request);
  /// Before each launch, of a kernel and with so many outputs.
  SamplingView prepare(const KernelLibrary& library, int kernel, int num_outputs);
  /// Of an output whose record has come.
  float logprob(int output) const { return logprobs_.as<float>()[output]; }

 private:
  int num_rows_ = 0;
  bool penalises_ = false;
  bool forbids_ = false;
  bool wants_logprobs_ = false;
  DeviceMemory rows_;
  DeviceMemory seen_;
  DeviceMemory allowed_;
  DeviceMemory logits_;
  DeviceMemory exchange_;
  HostMemory logprobs_;
};

}  // namespace soliton
