#include "runtime/compile/compiler.h"

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <memory>
#include <optional>
#include <regex>
#include <sstream>
#include <thread>

#include "models/error.h"
#include "models/installation.h"
#include "runtime/compile/guarded_process.h"
#include "runtime/compile/toolkit.h"

namespace soliton {
namespace {

namespace fs = std::filesystem;

constexpr uintmax_t kLeastRoom = 1 << 20;  // of which no kernel can be made

std::vector<std::string> words(const char* text) {
  std::istringstream stream(text);
  std::vector<std::string> list;
  for (std::string word; stream >> word;) list.push_back(word);
  return list;
}

std::vector<std::string> command(const Compiler& compiler, const fs::path& folder, const fs::path& sources) {
  std::vector<std::string> line{compiler.program};
  const auto add = [&](const std::vector<std::string>& more) {
    line.insert(line.end(), more.begin(), more.end());
  };
  if (!compiler.emulated) {
    add(words(SOLITON_NVCC_OPTIONS));
    add({"-gencode=" + compiler.target, "-I", sources / "templates", folder / "kernel.cu", "-o",
         folder / "kernel.so"});
    if (const auto libraries = libraries_beside(compiler.program)) add({"-L", *libraries});
    return line;
  }
  add(words(SOLITON_EMULATION_OPTIONS));  // of the emulated kernels of the build; they end with -xc++
  // Another compiler may warn of other things.
  add({"-Wno-error", "-std=c++20", "-fPIC", "-shared", "-I", sources, "-I", sources / "templates"});
  add({folder / "kernel.cu", "-xnone"});
  const fs::path built = SOLITON_EMULATION;
  const std::optional<fs::path> prefix = installed_prefix();
  add({prefix ? *prefix / "lib" / "soliton" / built.filename() : built});
  // Not every processor's emulation calls it, and where programs are installed it may be absent.
  if (std::error_code ignored; fs::exists(SOLITON_CONTEXT_LIBRARY, ignored)) add({SOLITON_CONTEXT_LIBRARY});
  add({"-pthread", "-o", folder / "kernel.so"});
  return line;
}

/// The folder among those that compilers write to which has the least room.
FullDisk least_room(const fs::path& folder) {
  std::error_code unknown;
  FullDisk least;
  for (const fs::path& each : {folder, fs::temp_directory_path(unknown)}) {
    const fs::space_info space = fs::space(each, unknown);
    if (!unknown && (least.folder.empty() || space.available < least.free_bytes))
      least = {each, space.available};
  }
  return least;
}

/// Whether a line of a compiler or linker says that a disk is full, or the user's part of it.
bool says_full(const std::string& line) {
  return line.find("No space left on device") != std::string::npos ||
         line.find("Disk quota exceeded") != std::string::npos;
}

}  // namespace

Compiler find_compiler(bool emulated) {
  if (!emulated) return {.program = find_nvcc(), .emulated = false};
  if (const auto program = program_from("CXX")) return {.program = *program, .emulated = true};
  if (find_program(SOLITON_CXX)) return {.program = SOLITON_CXX, .emulated = true};
  throw Error(ExitCode::kNotFound, "CXX: expected a C++ compiler, got none, and " SOLITON_CXX " is gone");
}

void check_driver(const Compiler& compiler, int32_t driver_version) {
  constexpr int kMajor = 1000;
  static const std::regex major("-(\\d+)\\.\\d+");
  if (compiler.emulated || driver_version == 0) return;
  const std::string version = compiler_version(compiler);
  std::smatch match;
  if (!std::regex_search(version, match, major)) return;  // what made it is known by a hash alone
  if (driver_version / kMajor >= std::stoi(match[1].str())) return;
  throw Error(
      ExitCode::kMismatch,
      fmt::format("driver: expected one for CUDA {}.0 or later, to run what {} makes, got one for {}.{}; "
                  "update it, or name an older nvcc in CUDACXX",
                  match[1].str(), version, driver_version / kMajor, driver_version % kMajor / 10));
}

std::string compiler_version(const Compiler& compiler) {
  std::string quoted = "'";
  for (const char c : compiler.program) quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
  const std::unique_ptr<FILE, int (*)(FILE*)> pipe(::popen((quoted + "' --version 2>&1").c_str(), "r"),
                                                   ::pclose);
  std::string said;
  char chunk[512];
  for (size_t count = 0; pipe && (count = std::fread(chunk, 1, sizeof chunk, pipe.get())) > 0;) {
    said.append(chunk, count);
  }
  if (said.empty()) {
    throw Error(
        ExitCode::kNotFound,
        fmt::format("{}: expected a compiler that says its --version, got nothing", compiler.program));
  }
  // "Cuda compilation tools, release 13.0, V13.0.48"; "g++ (Debian 12.2.0-14) 12.2.0".
  const std::regex version(compiler.emulated ? R"((?:^|\s)(\d+(?:\.\d+)+))" : R"(V(\d+(?:\.\d+)+))");
  std::smatch match;
  const std::string number = std::regex_search(said, match, version)
                                 ? match[1].str()
                                 : fmt::format("{:016x}", std::hash<std::string>()(said));
  return fmt::format("{}-{}", fs::path(compiler.program).filename().string(), number);
}

std::string compiler_options(bool emulated) {
  return emulated ? SOLITON_EMULATION_OPTIONS : SOLITON_NVCC_OPTIONS;
}

Compilation compile_kernel(const Compiler& compiler, const fs::path& folder, const fs::path& sources) {
  const fs::path log = folder / "compiler.log";
  Compilation result;
  result.status = run_guarded(command(compiler, folder, sources), log, folder);
  if (result.status != 0) result.complaint = "no message";
  bool is_error = false;
  bool is_full = false;
  std::ifstream report(log);
  for (std::string line; std::getline(report, line);) {
    const bool is_frame = line.find("bytes stack frame") != std::string::npos;
    if (is_frame && result.spills.empty() &&
        line.find(" 0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads") == std::string::npos) {
      result.spills = line.substr(line.find_first_not_of(' '));
    }
    is_full |= result.status != 0 && says_full(line);
    if (result.status == 0 || is_error || line.empty()) continue;
    is_error = line.find("error") != std::string::npos || line.find("fatal") != std::string::npos;
    result.too_old |= line.find("Unsupported gpu architecture") != std::string::npos;
    result.complaint = line;  // the first error, or else the last line
  }
  if (result.status == 0) return result;
  // Where nothing is left, not even the log could be written.
  const FullDisk least = least_room(folder);
  if (is_full || (!least.folder.empty() && least.free_bytes < kLeastRoom)) {
    result.full_disk = least;
    result.complaint = fmt::format("{} is full ({} bytes free)", least.folder.string(), least.free_bytes);
  }
  return result;
}

std::vector<std::string> compile_kernels(const Compiler& compiler, const std::vector<fs::path>& folders,
                                         const fs::path& sources) {
  std::vector<std::string> refusals(folders.size());
  std::atomic<size_t> next = 0;
  const auto work = [&] {
    for (size_t i = next++; i < folders.size(); i = next++) {
      const Compilation result = compile_kernel(compiler, folders[i], sources);
      if (!result.spills.empty()) {
        refusals[i] = "spills: " + result.spills;
      } else if (result.status != 0) {
        refusals[i] =
            fmt::format("{} failed with status {}: {}", compiler.program, result.status, result.complaint);
      }
    }
  };
  const size_t count = std::min<size_t>(folders.size(), std::max(1u, std::thread::hardware_concurrency()));
  std::vector<std::jthread> threads;
  for (size_t i = 0; i < count; ++i) threads.emplace_back(work);
  threads.clear();  // joins
  return refusals;
}

}  // namespace soliton
