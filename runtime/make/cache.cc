#include "runtime/make/cache.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string_view>

#include "generator/generate.h"
#include "models/error.h"
#include "models/hash.h"
#include "models/kept_file.h"
#include "models/mapped_file.h"
#include "models/model_config.h"
#include "runtime/compile/compiler.h"
#include "runtime/compile/places.h"
#include "runtime/compile/scratch_folder.h"
#include "runtime/device/kernel_library.h"

namespace soliton {
namespace {

namespace fs = std::filesystem;

constexpr const char* kDamaged = "damaged: its hash is not that of its content";

void add_templates(Hash& hash, const fs::path& templates) {
  std::vector<fs::path> files;
  for (const auto& entry : fs::recursive_directory_iterator(templates)) {
    if (entry.is_regular_file()) files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  for (const fs::path& file : files) {
    hash.add_item(file.lexically_relative(templates).string());
    hash.add_item(load_text(file));
  }
}

/// The version of the compiler that is there; nothing without one.
std::optional<std::string> version_of_compiler(bool emulated) {
  try {
    return compiler_version(find_compiler(emulated));
  } catch (const Error&) {
    return std::nullopt;
  }
}

/// Why a kernel in the cache is never looked for, or never opened; empty if it is.
std::string reason_to_remove(const fs::path& path, const fs::path& sources) {
  try {
    check_trusted(path);
    if (!is_sealed(path)) return kDamaged;
    const KernelLibrary library = KernelLibrary::open(path);
    const ModelDescriptor& model = library.model();
    const std::string spec = fmt::format("{}.yaml", model.gpu);
    const fs::path shipped = sources / "generator" / "gpus" / spec;
    std::error_code ignored;
    // That of a card without a file lies beside its kernels.
    const GpuSpec gpu = load_gpu_spec(fs::exists(shipped, ignored) ? shipped : path.parent_path() / spec);
    const std::string key = cache_key(model.facts, gpu, sources, library.num_cards()) + "-";
    const std::string stem = path.stem().string();
    if (!stem.starts_with(key)) return "made from other sources, or in another way";
    const auto version = version_of_compiler(gpu.emulated);
    if (version && stem != key + *version) return fmt::format("made by another compiler than {}", *version);
    return "";
  } catch (const Error& error) {
    return error.what();
  }
}

int64_t bytes_of(const fs::path& path) {
  std::error_code ignored;
  if (!fs::is_directory(path, ignored)) return static_cast<int64_t>(fs::file_size(path, ignored));
  int64_t bytes = 0;
  for (const auto& entry : fs::recursive_directory_iterator(path, ignored)) {
    if (entry.is_regular_file(ignored)) bytes += static_cast<int64_t>(entry.file_size(ignored));
  }
  return bytes;
}

}  // namespace

void create_cache(const fs::path& cache) {
  make_private_folder(cache);
  check_trusted(cache);
}

PlanChoices choices_for(const ModelFacts& facts, const GpuSpec& gpu, int num_cards) {
  PlanChoices choices;
  choices.num_cards = num_cards;
  choices.rows = 1;
  choices.leaves_out = true;
  choices.further_rows =
      gpu.emulated ? std::vector<int>{8} : std::vector(std::begin(kRowCounts) + 1, std::end(kRowCounts));
  const WeightFormat format = weight_format(facts, facts.weight_bits);
  const int most = most_rows(format, has_warpgroups(gpu) && suits_warpgroups(facts));
  std::erase_if(choices.further_rows, [&](int rows) { return rows > most; });
  return choices;
}

std::string cache_key(const ModelFacts& facts, const GpuSpec& gpu, const fs::path& sources, int num_cards) {
  Hash hash;
  const ModelConfig nameless{.name = "model", .path = "", .facts = facts};
  for (const auto& [name, text] : generate(nameless, gpu, choices_for(facts, gpu, num_cards)).files) {
    hash.add_item(name);
    hash.add_item(text);
  }
  add_templates(hash, sources / "templates");
  hash.add_item(compiler_options(gpu.emulated));
  if (!gpu.emulated) hash.add_item(nvcc_target(gpu));
  return fmt::format("{}-{:016x}", gpu.name, hash.value());
}

void remove_stale_scratch(const fs::path& cache, const std::function<void(const fs::path&)>& remove) {
  std::error_code ignored;
  const FolderLock nobody_begins(cache, FolderLock::Kind::kAlone);
  for (const auto& entry : fs::directory_iterator(cache, ignored)) {
    if (!entry.path().filename().string().starts_with(kMakingPrefix)) continue;
    const FolderLock lock(entry.path(), FolderLock::Kind::kIfFree);
    if (lock.is_held()) remove(entry.path());
  }
}

int64_t Cleaning::removed_bytes() const {
  int64_t bytes = 0;
  for (const Removal& removal : removed) bytes += removal.bytes;
  return bytes;
}

Cleaning clean_cache(const fs::path& cache) {
  const fs::path sources = sources_folder();
  Cleaning cleaning;
  std::error_code ignored;
  if (!fs::exists(cache, ignored)) return cleaning;
  check_trusted(cache);
  const auto remove = [&](const fs::path& path, const std::string& reason) {
    const int64_t bytes = bytes_of(path);
    std::error_code failure;
    fs::remove_all(path, failure);
    if (failure) {
      throw file_error(ExitCode::kNotFound, path.string(), "expected a file that can be removed, got: {}",
                       failure.message());
    }
    cleaning.removed.push_back({path, bytes, reason});
  };
  std::vector<fs::path> paths;
  for (const auto& entry : fs::directory_iterator(cache, ignored)) paths.push_back(entry.path());
  std::sort(paths.begin(), paths.end());
  for (const fs::path& path : paths) {
    if (!fs::is_regular_file(path, ignored)) continue;
    if (path.extension() == ".log") remove(path, "of a compilation that failed");
    if (path.extension() != ".so") continue;
    if (const std::string reason = reason_to_remove(path, sources); !reason.empty()) {
      remove(path, reason);
    } else {
      ++cleaning.num_kept;
      cleaning.kept_bytes += bytes_of(path);
    }
  }
  remove_stale_scratch(cache,
                       [&](const fs::path& path) { remove(path, "of a compilation that was killed"); });
  return cleaning;
}

}  // namespace soliton
