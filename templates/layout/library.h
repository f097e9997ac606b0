// The C ABI of a kernel library: one shared library per model and target, CUDA or CPU emulation. The runtime
// opens it with dlopen and needs nothing of CUDA itself.
#pragma once

#include <cstddef>
#include <cstdint>

#include "layout/fuzz.h"
#include "layout/launch.h"
#include "layout/model_facts.h"
#include "layout/random.h"
#include "layout/rows.h"
#include "layout/tree.h"
#include "layout/weight_format.h"

namespace soliton {

constexpr uint32_t kLibraryAbi = 9;
constexpr const char* kLibrarySymbol = "soliton_library";

/// One packed matrix. Tile t of layer l begins at offset + l * layer_stride + t * tile_bytes(format, padded_columns).
struct PackedMatrix {
  const char* name;      // "qkv", "o", "gate_up", "down", "lm_head"
  int64_t offset;        // bytes, of layer 0
  int64_t layer_stride;  // bytes; 0 for lm_head, which stands once
  int32_t rows;          // output rows, without the zero rows that fill the last tile
  int32_t columns;       // inputs, without padding
  int32_t padded_columns;
  WeightFormat format;
  int32_t num_tiles;
  RowOrder row_order;
};

constexpr int kNumMatrices = 5;

/// What a kernel was generated for; the runtime checks all of it before it allocates anything.
struct Descriptor {
  const char* model;  // "llama-3.1-8b"
  const char* gpu;    // "h200", "cpu"
  ModelFacts facts;
  uint64_t facts_hash;         // hash_facts(facts)
  int32_t page_layout;         // kPageLayoutVersion it was generated with
  int32_t compute_capability;  // 90; 0 for the emulation
  int32_t num_ctas;
  int32_t threads_per_cta;
  int32_t shared_bytes;
  TreeCosts tree_costs;
  int32_t rows;                 // of activations in a step
  int64_t weight_bytes;         // packed, padding included
  int64_t needed_weight_bytes;  // bytes of the model's matrices that one token must read (no padding, no
                                // embedding)
  int32_t max_query_tiles;      // several rows: of 16 query heads, that an attention item may touch at most;
  int32_t resident_tokens;      // and tokens of an item that touches more than kStreamedQueryTiles
  int32_t workspace_byte;       // value of all bytes of the workspace before a launch,
  int64_t workspace_bytes;      // except
  int64_t counter_offset;       // counter_bytes from counter_offset on, which are 0
  int64_t counter_bytes;
  PackedMatrix matrices[kNumMatrices];
};

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
  int (*open)(int device, DeviceInfo* info);     // selects and checks the device
  int (*allocate)(size_t bytes, void** memory);  // device memory, 256-byte aligned
  void (*release)(void* memory);
  int (*allocate_shared)(size_t bytes, void** memory);  // host memory that the kernel can read and write
  void (*release_shared)(void* memory);
  int (*fill)(void* memory, int byte, size_t bytes);
  int (*upload)(void* device, const void* host, size_t bytes);
  int (*download)(void* host, const void* device, size_t bytes);
  /// Writes `count` bf16 values, uniform in [-bound, bound), a function of seed and index alone.
  int (*fill_random)(void* memory, size_t count, float bound, uint64_t seed);
  /// Writes `num_tiles` tiles of integers, see random_weight_word().
  int (*fill_random_tiles)(void* memory, const RandomTiles* tiles, uint64_t seed);
  /// Copies cached tokens, see TokenMove; `moves` is host memory.
  int (*move_tokens)(void* kv_pool, const KvShape* shape, const TokenMove* moves, int num_moves);
  /// Starts a launch of one of the kernels and returns. `num_ctas` is its Descriptor::num_ctas (a test may
  /// pass fewer to see a stall reported).
  int (*launch)(int kernel, const LaunchParams* params, int num_ctas);
  LaunchState (*poll)();
  int (*wait)();  // until the launch ends
  /// Reads `bytes` of device memory from `memory` with the kernel's own page ring, `repeats` times; median
  /// bytes per second in *rate; 0 where the target has no bandwidth to speak of (emulation).
  int (*measure_bandwidth)(const void* memory, size_t bytes, int repeats, double* rate);
};

using LibraryFunction = const Library* (*)();

}  // namespace soliton
