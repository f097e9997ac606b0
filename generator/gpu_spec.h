// A card as the planner sees it: the numbers of generator/gpus/<name>.yaml, read and checked.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "layout/target.h"

namespace soliton {

class StrictYaml;

struct GpuSpec {
  std::string name;                    // "h200"
  int compute_capability = 0;          // 90 for sm_90; 0 for the CPU emulation and for nothing else
  int num_sms = 0;                     // CTAs of the emulation
  int max_shared_bytes_per_block = 0;  // with opt-in
  int registers_per_sm = 0;            // 32-bit registers
  int max_registers_per_thread = 0;
  int max_threads_per_block = 0;
  int l2_bytes = 0;
  double memory_bytes = 0;                // as the driver says
  bool unified_memory = false;            // the host's memory is the card's
  double read_bandwidth_bytes_per_s = 0;  // of a plain read stream, measured unless the file says otherwise
  double phase_wait_us = 0;               // what a phase adds to the time of its bytes
  double phase_latency_us = 0;      // of a phase without bytes: one exchange of activations between all CTAs
  double attention_item_us = 0;     // to begin and end an item of the attention over a tree
  double attention_mma_us = 0;      // a token of it by a tile of 16 query rows
  double exchange_bytes_per_s = 0;  // partials that one CTA writes and another one reads
  int default_window = 0;           // pages in flight per SM that did best in the bench
  bool emulated = false;            // runs on a CPU
  bool ptx = false;  // code is PTX of compute_capability, which the driver compiles; in no file
};

// Costs that no card's file says, as they were measured on H200s alone: what a phase waits for longer.
// Where it makes digits of x: fitted to tokens of the 8B and 70B in integers.
constexpr double kDigitsWaitUs = 0.3;
constexpr double kExpertsWaitUs = 4.0;  // and more where a phase waits for a router's choice
// Where it is exchanged over several cards, which NVLink joins.
constexpr double kCardsWaitUs = 0.2;

/// The oldest compute capability that kernels are made for: cp.async and mma.sync of bf16.
constexpr int kOldestComputeCapability = 80;

/// Reads generator/gpus/<name>.yaml. Throws Error: kNotFound if it cannot be read, kBadFile with file and
/// line if a key is unknown, missing, of the wrong type or out of range.
GpuSpec load_gpu_spec(const std::filesystem::path& path);

/// The same from YAML at hand, for tests.
GpuSpec parse_gpu_spec(const StrictYaml& yaml);

/// Has the code that is made for it instructions of warpgroups?
bool has_warpgroups(const GpuSpec& gpu);

/// The spec as a file that load_gpu_spec() reads back, but for `ptx`; `comment` is what its first lines say.
std::string format_gpu_spec(const GpuSpec& gpu, const std::string& comment);

/// The card as one that PTX of an older compute capability is made for. Throws Error (kMismatch) if the card does not
/// run it.
GpuSpec with_ptx(const GpuSpec& gpu, int compute_capability);

/// What -gencode of nvcc wants for a card's code: "arch=compute_90a,code=sm_90a", "arch=compute_80,code=compute_80".
std::string nvcc_target(const GpuSpec& gpu);

/// Pages that each of `num_ctas` may bring into L2 ahead of a full ring: all together two thirds of it, as what is
/// read again in between needs room too.
int fitting_prefetch_pages(const GpuSpec& gpu, int num_ctas);

/// generator/gpus of the installation, or of the source tree.
std::filesystem::path default_gpus_dir();

/// The names that --gpu knows: stems of the YAML files in `gpus_dir`, sorted. Throws Error (kUsage) if
/// there is no such folder.
std::vector<std::string> list_gpus(const std::filesystem::path& gpus_dir);

/// The file that the value of --gpu stands for: a name, whose file then exists, or a path that ends in .yaml.
/// Throws Error (kUsage).
std::filesystem::path find_gpu_spec(const std::string& gpu, const std::filesystem::path& gpus_dir);

/// What one library for all of `gpus` is called: the card's name, or for several cards their architecture ("sm90"), or
/// that of its PTX ("compute80").
/// Throws Error (kMismatch) unless they differ in nothing but rates.
std::string name_of_target(const std::vector<GpuSpec>& gpus);

}  // namespace soliton
