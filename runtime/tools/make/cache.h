// The folder of the kernels that were made for a user: what they are called, and which of them can go.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "generator/gpu_spec.h"
#include "generator/plan/plan.h"
#include "layout/model_facts.h"

namespace soliton {

inline constexpr const char* kMakingPrefix = ".making-";  // of a folder in which a kernel is being made

/// Makes the folder, if need be. Throws Error (kNotFound).
void create_cache(const std::filesystem::path& cache);

/// With how many rows a kernel is made that spans so many cards.
PlanChoices choices_for(const ModelFacts& facts, const GpuSpec& gpu, int num_cards = 1);

/// "h200-0123456789abcdef", which begins a kernel's name: a hash of all that goes into it, which is the generated source
/// but for the model's name (so facts, card, rows and planner), the templates of `sources`, and the compiler's options.
/// The compiler's version stands behind it, so that a kernel is still found once the compiler is gone.
std::string cache_key(const ModelFacts& facts, const GpuSpec& gpu, const std::filesystem::path& sources,
                      int num_cards = 1);

/// Folders in which kernels were being made, and whose makers were killed: no other is a day old.
std::vector<std::filesystem::path> stale_scratch(const std::filesystem::path& cache);

/// What is removed from the cache, and why.
struct Removal {
  std::filesystem::path path;
  int64_t bytes = 0;
  std::string reason;
};
struct Cleaning {
  std::vector<Removal> removed;
  int num_kept = 0;  // kernels
  int64_t kept_bytes = 0;

  int64_t removed_bytes() const;
};

/// Removes from the cache the kernels that these programs never look for: of other sources, planners or options, of a
/// compiler that is another one now, or damaged; with them what failed compilations and killed makers have left. Other
/// files stay. Throws Error (kNotFound) if the sources are not there, or a file cannot be removed.
Cleaning clean_cache(const std::filesystem::path& cache);

}  // namespace soliton
