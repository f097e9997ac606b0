#include "runtime/compile/places.h"

#include <cstdlib>

#include "models/error.h"
#include "models/installation.h"

namespace soliton {

namespace fs = std::filesystem;

namespace {

/// An environment variable that holds an absolute path; empty else, as the XDG specification wants it.
fs::path absolute_path_from(const char* variable) {
  const char* value = std::getenv(variable);
  const fs::path path = value == nullptr ? "" : value;
  return path.is_absolute() ? path : fs::path();
}

}  // namespace

fs::path shipped_kernels_folder() {
  const char* chosen = std::getenv("SOLITON_KERNELS");
  if (chosen == nullptr) {
    const std::optional<fs::path> prefix = installed_prefix();
    return prefix ? *prefix / "lib" / "soliton" / "kernels" : code_folder() / "kernels";
  }
  std::error_code unreadable;
  fs::directory_iterator(chosen, unreadable);
  if (unreadable) {
    throw file_error(ExitCode::kNotFound, chosen, "expected a folder of kernel libraries, got: {}",
                     unreadable.message());
  }
  return chosen;
}

fs::path seen_from_here(const fs::path& path) {
  std::error_code ignored;
  const fs::path here = fs::current_path(ignored);
  if (ignored || !path.is_absolute()) return path;
  const fs::path from_here = path.lexically_relative(here);
  return from_here.empty() || *from_here.begin() == ".." ? path : from_here;
}

fs::path sources_folder() {
  const fs::path sources = data_folder();
  std::error_code ignored;
  if (fs::exists(sources / "templates" / "one_row" / "kernel.cuh", ignored)) return sources;
  throw file_error(
      ExitCode::kNotFound, sources.string(),
      "expected the sources that kernels are made from, got none, nor are they in ../share/soliton from {}",
      code_folder().string());
}

fs::path kernel_cache_folder() {
  const fs::path cache = absolute_path_from("XDG_CACHE_HOME");
  if (!cache.empty()) return cache / "soliton" / "kernels";
  const fs::path home = absolute_path_from("HOME");
  if (!home.empty()) return home / ".cache" / "soliton" / "kernels";
  throw Error(ExitCode::kNotFound, "HOME: expected an absolute path, or one in XDG_CACHE_HOME, got neither");
}

fs::path state_folder() {
  const fs::path state = absolute_path_from("XDG_STATE_HOME");
  if (!state.empty()) return state / "soliton";
  const fs::path home = absolute_path_from("HOME");
  return home.empty() ? home : home / ".local" / "state" / "soliton";
}

}  // namespace soliton
