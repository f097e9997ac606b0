// Generated kernels compiled outside the build: by nvcc for a card, by the C++ compiler for the emulation.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace soliton {

struct Compiler {
  std::string program;
  bool emulated = false;
  std::string target = {};  // of nvcc, what follows its -gencode=
};

/// nvcc as find_nvcc() has it; for the emulation CXX or the compiler of the build. Throws Error (kNotFound).
Compiler find_compiler(bool emulated);

/// Throws Error (kMismatch) if the driver, whose version is counted as CUDA counts it (13000; 0: unknown), runs no code
/// of the toolkit: one of an earlier major version.
void check_driver(const Compiler& compiler, int32_t driver_version);

/// What distinguishes its output from another's, fit for a file name: "nvcc-13.0.48", "g++-12.2.0". Asks the
/// program. Throws Error (kNotFound) if it cannot be started.
std::string compiler_version(const Compiler& compiler);

/// The options that a kernel is compiled with, in one line, but for the card's target.
std::string compiler_options(bool emulated);

/// A folder whose disk has no room.
struct FullDisk {
  std::filesystem::path folder;
  uintmax_t free_bytes = 0;
};

/// How a compilation ended.
struct Compilation {
  int status = 0;         // of the compiler; -1 if it cannot be started or was killed
  std::string complaint;  // its first error, or else its last line; empty if status is 0
  bool too_old = false;   // nvcc does not know the target
  std::optional<FullDisk>
      full_disk;       // that stopped it, as far as can be told; the complaint then says so too
  std::string spills;  // the assembler's line about a kernel that spills registers; empty if none does
};

/// Compiles folder/kernel.cu into folder/kernel.so, with the templates of `sources`, the root of a source tree.
/// All that the compiler says is in folder/compiler.log. If this program ends meanwhile, so does the compiler, and the folder
/// goes away.
Compilation compile_kernel(const Compiler& compiler, const std::filesystem::path& folder,
                           const std::filesystem::path& sources);

/// Compiles kernel.cu of each folder into kernel.so beside it, as many at once as there are cores. Of each: why
/// there is no kernel, or none without spills; empty if there is one.
std::vector<std::string> compile_kernels(const Compiler& compiler,
                                         const std::vector<std::filesystem::path>& folders,
                                         const std::filesystem::path& sources);

}  // namespace soliton
