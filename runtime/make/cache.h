// The folder of the kernels that were made for a user: what they are called, and which of them can go.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "generator/gpu_spec.h"
#include "generator/plan/plan.h"
#include "layout/model_facts.h"

namespace soliton {

inline constexpr const char* kMakingPrefix = ".making-";  // of a folder in which a kernel is being made

/// Makes the folder, if need be. Throws Error (kNotFound), also if others than its owner may write it: what lies there is
/// executed.
void create_cache(const std::filesystem::path& cache);

/// With how many rows a kernel is made that spans so many cards.
PlanChoices choices_for(const ModelFacts& facts, const GpuSpec& gpu, int num_cards = 1);

/// "h200-0123456789abcdef", which begins a kernel's name: a hash of all that goes into it, which is the generated source
/// but for the model's name (so facts, card, rows and planner), the templates of `sources`, and the compiler's options.
/// The compiler's version stands behind it, so that a kernel is still found once the compiler is gone.
std::string cache_key(const ModelFacts& facts, const GpuSpec& gpu, const std::filesystem::path& sources,
                      int num_cards = 1);

/// Calls `remove` with each folder in which a kernel was being made, and whose maker is gone; no other maker begins or
/// removes meanwhile.
void remove_stale_scratch(const std::filesystem::path& cache,
                          const std::function<void(const std::filesystem::path&)>& remove);

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
/// compiler that is another one now, damaged, or of others; with them what failed compilations and killed makers have left. Other
/// files stay. Throws Error (kNotFound) if the sources are not there, a file cannot be removed, or others may write the
/// cache.
Cleaning clean_cache(const std::filesystem::path& cache);

}  // namespace soliton
