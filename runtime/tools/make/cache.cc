#include "runtime/tools/make/cache.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <fstream>
#include <iterator>
#include <optional>
#include <string_view>

#include "generator/generate.h"
#include "models/error.h"
#include "models/model_config.h"
#include "runtime/kernel_library.h"
#include "runtime/tools/make/compiler.h"
#include "runtime/tools/make/places.h"

namespace soliton {
namespace {

namespace fs = std::filesystem;

constexpr auto kStaleAge = std::chrono::hours(24);

/// 64-bit FNV-1a.
class Hash {
 public:
  void add(std::string_view text) {
    for (const char c : text) step(static_cast<unsigned char>(c));
    step(0);  // "ab", "c" is not "a", "bc"
  }
  uint64_t value() const { return value_; }

 private:
  void step(unsigned char byte) { value_ = (value_ ^ byte) * 1099511628211ull; }
  uint64_t value_ = 14695981039346656037ull;
};

std::string read_file(const fs::path& path) {
  std::ifstream stream(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(stream), {}};
}

void add_templates(Hash& hash, const fs::path& templates) {
  std::vector<fs::path> files;
  for (const auto& entry : fs::recursive_directory_iterator(templates)) {
    if (entry.is_regular_file()) files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  for (const fs::path& file : files) {
    hash.add(file.lexically_relative(templates).string());
    hash.add(read_file(file));
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

/// Why a kernel in the cache is never looked for; empty if it is.
std::string reason_to_remove(const fs::path& path, const fs::path& sources) {
  try {
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
  std::error_code failure;
  fs::create_directories(cache, failure);
  if (failure) {
    throw file_error(ExitCode::kNotFound, cache.string(), "expected a folder that can be made, got: {}",
                     failure.message());
  }
}

PlanChoices choices_for(const ModelFacts& facts, const GpuSpec& gpu, int num_cards) {
  PlanChoices choices;
  choices.num_cards = num_cards;
  choices.rows = 1;
  choices.leaves_out = true;
  choices.further_rows = gpu.emulated ? std::vector<int>{8} : std::vector<int>{8, 16, 32, 64, 128};
  const int most = most_rows(facts, has_warpgroups(gpu));
  // Of integers warpgroups multiply 64 rows faster than single warps 32.
  const bool without_32 = most > 32 && facts.weight_bits != 16;
  std::erase_if(choices.further_rows, [&](int rows) { return rows > most || (rows == 32 && without_32); });
  return choices;
}

std::string cache_key(const ModelFacts& facts, const GpuSpec& gpu, const fs::path& sources, int num_cards) {
  Hash hash;
  const ModelConfig nameless{.name = "model", .path = "", .facts = facts};
  for (const auto& [name, text] : generate(nameless, gpu, choices_for(facts, gpu, num_cards)).files) {
    hash.add(name);
    hash.add(text);
  }
  add_templates(hash, sources / "templates");
  hash.add(compiler_options(gpu.emulated));
  if (!gpu.emulated) hash.add(nvcc_target(gpu));
  return fmt::format("{}-{:016x}", gpu.name, hash.value());
}

std::vector<fs::path> stale_scratch(const fs::path& cache) {
  std::error_code ignored;
  std::vector<fs::path> stale;
  for (const auto& entry : fs::directory_iterator(cache, ignored)) {
    const bool is_scratch = entry.path().filename().string().starts_with(kMakingPrefix);
    if (is_scratch && fs::file_time_type::clock::now() - entry.last_write_time(ignored) > kStaleAge) {
      stale.push_back(entry.path());
    }
  }
  return stale;
}

int64_t Cleaning::removed_bytes() const {
  int64_t bytes = 0;
  for (const Removal& removal : removed) bytes += removal.bytes;
  return bytes;
}

Cleaning clean_cache(const fs::path& cache) {
  const fs::path sources = sources_folder();
  Cleaning cleaning;
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
  std::error_code ignored;
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
  for (const fs::path& path : stale_scratch(cache)) remove(path, "of a compilation that was killed");
  return cleaning;
}

}  // namespace soliton
