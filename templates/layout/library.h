// The C ABI of a kernel library: one shared library per model and target, CUDA or CPU emulation. The runtime
// opens it with dlopen and needs nothing of CUDA itself.
#pragma once

#include <cstddef>
#include <cstdint>

#include "layout/awaited_words.h"
#include "layout/delay.h"
#include "layout/kernel_plan.h"
#include "layout/launch.h"
#include "layout/model_facts.h"
#include "layout/random.h"
#include "layout/read_rates.h"
#include "layout/tree.h"

namespace soliton {

constexpr uint32_t kLibraryAbi = 30;
constexpr const char* kLibrarySymbol = "soliton_library";

/// A card that a library was planned for, as its spec says. Cards of one library differ in rates alone.
struct CardRates {
  const char* name;  // "h200": part of the device's name, but for case; "cpu"
  TreeCosts costs;
};

constexpr int kMaxCards = 4;

/// What all kernels of a library have in common: a library states it once.
struct ModelDescriptor {
  const char* name;  // "llama-3.1-8b"
  const char* gpu;   // "sm90", "h200", "cpu": what it was planned for
  ModelFacts facts;
  uint64_t facts_hash;         // hash_facts(facts)
  int32_t page_layout;         // kPageLayoutVersion it was generated with
  int32_t compute_capability;  // 90; 0 for the emulation
  bool ptx = false;  // its code is PTX, which drivers compile for this compute capability and later ones
  int32_t num_cards;
  CardRates cards[kMaxCards];
  int64_t weight_bytes;         // packed, padding included
  int64_t needed_weight_bytes;  // bytes of the model's matrices that one token must read (no padding, no
                                // embedding)
  const PackedMatrix*
      matrices;  // [num_matrices], of one kind of layers after another, each in the order of the packed weights
  int32_t num_matrices;
  const Layer* layers;  // [facts.num_layers], and what stands once

  /// Whether its code is code of a device of that compute capability.
  constexpr bool runs_on(int32_t capability) const {
    return ptx ? capability >= compute_capability : capability == compute_capability;
  }
};

/// What a kernel was generated for; the runtime checks all of it before it allocates anything. Of its own a kernel
/// only has what depends on its rows.
struct Descriptor {
  const ModelDescriptor* model;  // the same one for all kernels of a library
  const KernelPlan* plan;        // what the kernel was compiled for
  int32_t num_ctas;              // of a card
  int32_t num_cards = 1;         // that a launch spans: as many devices are opened, each has its own memory
  int32_t threads_per_cta;
  int32_t shared_bytes;
  int32_t rows;             // of activations in a step
  int32_t max_query_tiles;  // several rows: tiles that an attention item may touch at most;
  int32_t resident_tokens;  // and tokens of an item that touches more than streamed_query_tiles()
  int64_t workspace_bytes;  // all zeros before a launch, but for
  MissingRanges missing;    // these, which are kMissingByte
};

constexpr Descriptor describe(const ModelDescriptor& model, const KernelPlan& plan) {
  Descriptor descriptor{};
  descriptor.model = &model;
  descriptor.plan = &plan;
  descriptor.num_ctas = plan.num_ctas;
  descriptor.num_cards = plan.num_cards;
  descriptor.threads_per_cta = plan.threads();
  descriptor.shared_bytes = plan.shared_bytes();
  descriptor.rows = plan.rows;
  descriptor.max_query_tiles = plan.rows == 1 ? 0 : plan.max_query_tiles;
  descriptor.resident_tokens = plan.rows == 1 ? 0 : plan.resident_tokens();
  descriptor.workspace_bytes = plan.workspace_bytes;
  descriptor.missing = missing_ranges(plan);
  return descriptor;
}

/// Nanoseconds between two pages that a CTA brings into L2 while its ring is full: of the card's rate only a share, so
/// that the vectors that everyone waits for get through.
constexpr uint32_t prefetch_ns(const Descriptor& kernel, const TreeCosts& costs) {
  constexpr double kShare = 0.8;
  return static_cast<uint32_t>(1e9 * kernel.num_ctas * kPageBytes / (costs.read_bytes_per_s * kShare) + 0.5);
}

/// The device as the library sees it. `name` is empty when there is none.
struct DeviceInfo {
  char name[128];
  int32_t compute_capability;
  int32_t num_sms;
  int32_t max_shared_bytes;  // per block, opt-in
  int32_t driver_version;    // as CUDA counts it: 13000
  int64_t total_bytes;
  int64_t free_bytes;
  int32_t sm_clock_khz;
  int32_t memory_clock_khz;
  int32_t memory_bus_bits;
  int32_t registers_per_sm;  // 32-bit registers
  int32_t l2_bytes;
  int32_t unified_memory;  // the host's memory is the card's
  int32_t has_time_limit;  // 1: it drives a display, and its driver ends kernels that run for seconds
};

enum class LaunchState : int32_t { kRunning = 0, kDone = 1, kFailed = 2 };

using DecodeKernel = void (*)(LaunchParams);

/// Functions return 0, or another value after which last_error() says why in one line.
struct Library {
  uint32_t abi;  // kLibraryAbi
  /// [num_kernels]: ascending in the rows that they take a step; all read the same
  /// packed weights.
  const Descriptor* descriptors;
  int32_t num_kernels;
  bool timeline;  // compiled to record one?
  bool fuzz;      // compiled to delay warps at random?
  const char* (*last_error)();
  int (*open)(int device, DeviceInfo* info);  // selects and checks the device
  /// Selects, for this thread, a device that is open: what follows is of the one that a thread has selected last.
  int (*enter)(int device);
  int (*allocate)(size_t bytes, void** memory);  // device memory, 256-byte aligned
  /// The same, but the host writes it too while no launch runs. Only where DeviceInfo::unified_memory.
  int (*allocate_unified)(size_t bytes, void** memory);
  void (*release)(void* memory);                        // of either
  int (*allocate_shared)(size_t bytes, void** memory);  // host memory that the kernel can read and write
  void (*release_shared)(void* memory);
  int (*fill)(void* memory, int byte, size_t bytes);
  int (*finish)();  // waits until all of this that was asked for has been done
  int (*upload)(void* device, const void* host, size_t bytes);
  int (*download)(void* host, const void* device, size_t bytes);
  /// Writes `count` bf16 values, uniform in [-bound, bound), a function of seed and index among all values alone.
  int (*fill_random)(void* memory, size_t count, float bound, uint64_t seed, RandomShare share);
  /// Writes `num_tiles` tiles of integers, see random_weight_word().
  int (*fill_random_tiles)(void* memory, const RandomTiles* tiles, uint64_t seed, RandomShare share);
  /// Copies cached tokens, see TokenMove; `moves` is host memory.
  int (*move_tokens)(void* kv_pool, const KvShape* shape, const TokenMove* moves, int num_moves);
  /// Starts a launch of one of the kernels and returns. `num_ctas` is its Descriptor::num_ctas (a test may
  /// pass fewer to see a stall reported).
  /// A launch that spans several cards is started on each of them; they wait for one another.
  int (*launch)(int kernel, const LaunchParams* params, int num_ctas);
  LaunchState (*poll)();
  int (*wait)();  // until the launch ends
  /// Reads `bytes` of device memory from `memory`, many times what L2 holds, with each of the kernels that only read,
  /// in `repeats` launches of some 20 ms; medians in *rates, all 0 in emulation.
  int (*measure_bandwidth)(const void* memory, size_t bytes, int repeats, ReadRates* rates);
  /// Lets each of the devices, which are open, read and write the memory of the others, from now on.
  int (*reach_peers)(const int* devices, int num_devices);
};

using LibraryFunction = const Library* (*)();

}  // namespace soliton
