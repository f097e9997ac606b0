#include "runtime/compile/toolkit.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <vector>

#include "models/error.h"
#include "models/kept_file.h"
#include "runtime/compile/compiler.h"
#include "runtime/compile/guarded_process.h"
#include "runtime/compile/places.h"
#include "runtime/compile/scratch_folder.h"

namespace soliton {
namespace {

namespace fs = std::filesystem;

constexpr int kToolkitMajor = 13;
constexpr int kMajor = 1000;  // of a version that is counted as CUDA counts it
// All of one release: each alone would take the newest of what it needs.
constexpr std::array kPackages = {"nvidia-cuda-nvcc==13.0.*", "nvidia-nvvm==13.0.*",
                                  "nvidia-cuda-crt==13.0.*", "nvidia-cuda-runtime==13.0.*",
                                  "nvidia-cuda-cccl==13.0.*"};

std::string environment(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

bool is_program(const fs::path& path) {
  std::error_code ignored;
  return fs::is_regular_file(path, ignored) && ::access(path.c_str(), X_OK) == 0;
}

/// Folders in `folder` whose names begin so, the last by name first: python3.9 is older than python3.11, and cu9 than cu13.
std::vector<fs::path> folders_in(const fs::path& folder, const std::string& prefix) {
  std::vector<fs::path> found;
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(folder, ignored)) {
    if (entry.path().filename().string().starts_with(prefix)) found.push_back(entry.path());
  }
  std::sort(found.begin(), found.end(), [](const fs::path& a, const fs::path& b) {
    return std::pair(a.native().size(), a) > std::pair(b.native().size(), b);
  });
  return found;
}

std::optional<std::string> nvcc_of_environment() {
  const std::string environment_folder = environment("VIRTUAL_ENV");
  if (environment_folder.empty()) return std::nullopt;
  for (const fs::path& python : folders_in(fs::path(environment_folder) / "lib", "python3")) {
    if (const auto nvcc = nvcc_of_packages(python / "site-packages")) return nvcc;
  }
  return std::nullopt;
}

std::optional<std::string> installed_nvcc() {
  try {
    return nvcc_of_packages(toolkit_folder());
  } catch (const Error&) {  // no home, nothing in it
    return std::nullopt;
  }
}

std::string last_line_of(const fs::path& log) {
  std::ifstream report(log);
  std::string last = "no message";
  for (std::string line; std::getline(report, line);) {
    if (!line.empty()) last = line;
  }
  return last;
}

Error install_error(const fs::path& log, const std::string& python, const std::string& got) {
  const std::string hint = got.find("No module named pip") == std::string::npos
                               ? ""
                               : "; it is in the package python3-pip of Debian and its relatives";
  return file_error(ExitCode::kMakeFailed, log.string(), "expected {} -m pip to install nvcc, got {}{}",
                    python, got, hint);
}

void check_toolkit_driver(int32_t driver_version) {
  if (driver_version == 0 || driver_version / kMajor >= kToolkitMajor) return;
  throw Error(
      ExitCode::kMismatch,
      fmt::format("driver: expected one for CUDA {}.0 or later, to run what this nvcc makes, got one for "
                  "{}.{}; update it, or install an older CUDA toolkit",
                  kToolkitMajor, driver_version / kMajor, driver_version % kMajor / 10));
}

}  // namespace

std::optional<std::string> find_program(const std::string& program) {
  if (program.find('/') != std::string::npos) {
    return is_program(program) ? std::optional(program) : std::nullopt;
  }
  std::istringstream folders(environment("PATH"));
  for (std::string folder; std::getline(folders, folder, ':');) {
    if (!folder.empty() && is_program(fs::path(folder) / program)) return fs::path(folder) / program;
  }
  return std::nullopt;
}

std::optional<std::string> program_from(const char* variable) {
  const std::string value = environment(variable);
  if (value.empty()) return std::nullopt;
  const std::optional<std::string> program = find_program(value);
  if (!program) {
    throw Error(ExitCode::kNotFound,
                fmt::format("{}: expected a compiler, got {}", variable, in_quotes(value)));
  }
  return program;
}

std::string find_nvcc() {
  if (const auto program = program_from("CUDACXX")) return *program;
  const std::string home = environment("CUDA_HOME");
  if (const auto program = home.empty() ? std::nullopt : find_program(home + "/bin/nvcc")) return *program;
  if (const auto program = find_program("nvcc")) return *program;
  if (const auto program = nvcc_of_environment()) return *program;
  if (const auto program = installed_nvcc()) return *program;
  if (const auto program = find_program("/usr/local/cuda/bin/nvcc")) return *program;
  throw Error(
      ExitCode::kNotFound,
      "nvcc: expected it in CUDACXX, CUDA_HOME, PATH, a virtual environment or /usr/local/cuda/bin, found "
      "none; soliton-doctor --install-compiler gets it");
}

fs::path toolkit_folder() {
  return kernel_cache_folder().parent_path() / "toolkit";
}

std::optional<std::string> nvcc_of_packages(const fs::path& packages) {
  for (const fs::path& release : folders_in(packages / "nvidia", "cu")) {
    if (is_program(release / "bin" / "nvcc")) return release / "bin" / "nvcc";
  }
  return std::nullopt;
}

std::optional<fs::path> libraries_beside(const std::string& nvcc) {
  const fs::path toolkit = fs::path(nvcc).parent_path().parent_path();
  std::error_code ignored;
  const bool has_own = fs::exists(toolkit / "lib64", ignored) || fs::exists(toolkit / "targets", ignored);
  if (has_own || !fs::exists(toolkit / "lib" / "libcudart_static.a", ignored)) return std::nullopt;
  return toolkit / "lib";
}

std::string install_toolkit(int32_t driver_version, const std::function<void(const std::string&)>& say) {
  check_toolkit_driver(driver_version);
  const fs::path folder = toolkit_folder();
  const std::optional<std::string> python = find_program("python3");
  if (!python) throw Error(ExitCode::kNotFound, "python3: expected it in PATH, with pip, found none");
  make_private_folder(folder.parent_path());
  const fs::path log = folder.parent_path() / "toolkit.log";
  const ScratchFolder scratch(folder.string() + "-");
  std::vector<std::string> line = {
      *python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--target"};
  line.push_back(scratch.path());
  line.insert(line.end(), kPackages.begin(), kPackages.end());
  say(fmt::format("Installing nvcc {}.0 in {} (some 250 MB), by pip", kToolkitMajor, folder.string()));
  if (run_guarded(line, log, scratch.path()) != 0) throw install_error(log, *python, last_line_of(log));
  const std::optional<std::string> made = nvcc_of_packages(scratch.path());
  if (!made) throw install_error(log, *python, "packages without it");
  const std::string version = compiler_version({.program = *made});
  if (!version.starts_with(fmt::format("nvcc-{}.", kToolkitMajor)))
    throw install_error(log, *python, "one that does not run");
  fs::remove_all(folder);
  fs::rename(scratch.path(), folder);
  std::error_code ignored;
  fs::remove(log, ignored);
  return nvcc_of_packages(folder).value_or("");
}

}  // namespace soliton
