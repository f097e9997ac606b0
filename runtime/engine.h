// Decoding: one kernel library, one set of weights, one sequence of tokens.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "runtime/kernel_library.h"
#include "runtime/kv_cache.h"
#include "runtime/safetensors.h"
#include "runtime/weights.h"

namespace soliton {

class Progress;

struct EngineOptions {
  int context = 4096;  // tokens that the KV cache holds
  int device = 0;
  uint64_t timeout_ms = 2000;  // bound of every wait inside the kernel
};

/// What one call decodes.
struct DecodeRequest {
  std::span<const int32_t> tokens;            // fed first, at least one
  int max_tokens = 0;                         // to generate, at least one
  std::span<const int32_t> stop_tokens = {};  // end after one of these
  bool want_logits = false;                   // of every generated token
  int timeline_step = -1;                     // the step whose timeline is wanted; -1: none
  uint32_t delay_seed = 0;                    // who is delayed in a kernel compiled with SOLITON_FUZZ
};

struct DecodeResult {
  std::vector<int32_t> tokens;        // generated; the last one has not been fed
  std::vector<uint32_t> times_ns;     // device time at which each was chosen, modulo 2^32
  std::vector<float> logits;          // [tokens][vocabulary], if wanted
  std::vector<PhaseRecord> timeline;  // if wanted, see timeline_index()
  bool hit_stop_token = false;
};

class Engine {
 public:
  /// Selects the device and makes the KV cache. Throws Error: kMismatch if the kernel does not fit the
  /// device, kOutOfMemory if the context does not fit the model or the memory.
  Engine(KernelLibrary library, const EngineOptions& options);
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  /// Loads a checkpoint. Throws what load_weights() throws.
  void load(const TensorSource& source, Progress* progress);
  /// Weights from a seed, for measurements.
  void load_random(uint64_t seed);

  /// Feeds tokens and generates greedily: in one launch, or with a launch before it that takes the tokens
  /// several at once, if the library has a kernel for that. `on_token` is called for each token while a
  /// launch runs and ends it by returning false. Throws Error: kOutOfMemory, before anything is changed, if
  /// the context would be exceeded; kDevice, with the stuck wait if there is one, if the kernel fails.
  DecodeResult decode(const DecodeRequest& request, const std::function<bool(int32_t)>& on_token = {});

  /// Tokens fed so far: the position of the next one.
  int position() const { return position_; }
  /// Forgets everything from `position` on. For measurements, also moves ahead over positions never fed.
  void set_position(int position);
  /// Fills the cache with random keys and values, for measurements at positions never fed.
  void randomise_cache(uint64_t seed);

  /// Bytes that one token at `position` must read: weights and the keys and values before it.
  int64_t needed_bytes(int position) const;
  /// S: read bandwidth of this device now, in bytes per second; 0 in emulation.
  double measure_bandwidth(int repeats) const;
  /// Launches with this many CTAs instead of the planned number. For tests of the bounded waits.
  void set_num_ctas(int num_ctas) { num_ctas_ = num_ctas; }
  /// Feeds tokens one a step even if the library has a kernel for several.
  void feed_one_by_one() { one_by_one_ = true; }

  const KernelLibrary& library() const { return library_; }

 private:
  void check_request(const DecodeRequest& request) const;
  int choose_kernel(const DecodeRequest& request) const;
  int num_ctas(int kernel) const { return num_ctas_.value_or(library_.descriptor(kernel).num_ctas); }
  bool launch(int kernel, const DecodeRequest& request, const std::function<bool(int32_t)>& on_token,
              DecodeResult& result);
  void prepare(int kernel, const DecodeRequest& request, LaunchParams& params);
  bool follow(const DecodeRequest& request, const std::function<bool(int32_t)>& on_token,
              DecodeResult& result);
  [[noreturn]] void throw_failure() const;

  KernelLibrary library_;
  uint64_t timeout_ns_;
  std::optional<int> num_ctas_;  // instead of the planned number
  bool one_by_one_ = false;
  int position_ = 0;
  std::optional<DeviceWeights> weights_;
  KvCache cache_;
  DeviceMemory rotary_;
  DeviceMemory workspace_;
  DeviceMemory input_;  // forced tokens, then stop tokens
  DeviceMemory logits_;
  DeviceMemory timeline_;
  HostMemory records_;
  HostMemory signals_;  // Signals
};

}  // namespace soliton
