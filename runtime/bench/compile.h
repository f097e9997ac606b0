// Generated kernels compiled outside the build: by nvcc for a card, by the C++ compiler for the emulation.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace soliton {

struct Compiler {
  std::string program;
  bool emulated = false;
};

/// nvcc from CUDACXX, CUDA_HOME, PATH or /usr/local/cuda/bin; for the emulation CXX or the compiler of the
/// build. Throws Error (kNotFound).
Compiler find_compiler(bool emulated);

/// Compiles kernel.cu of each folder into kernel.so beside it, as many at once as there are cores. Of each: why
/// there is no kernel, or none without spills; empty if there is one.
std::vector<std::string> compile_kernels(const Compiler& compiler,
                                         const std::vector<std::filesystem::path>& folders);

}  // namespace soliton
