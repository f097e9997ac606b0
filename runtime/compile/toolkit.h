// nvcc: where it is looked for, and got from where there is no CUDA toolkit, as the packages that NVIDIA has in Python's index.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>

namespace soliton {

/// nvcc of CUDACXX, CUDA_HOME, PATH, the packages of an active virtual environment, those of toolkit_folder(), or
/// /usr/local/cuda/bin, in this order. Throws Error (kNotFound).
std::string find_nvcc();

/// The program of that name or path, or nothing.
std::optional<std::string> find_program(const std::string& program);
/// The one that an environment variable names; nothing if the variable is not set. Throws Error (kNotFound) if it names none.
std::optional<std::string> program_from(const char* variable);

/// Where nvcc is kept that soliton-doctor --install-compiler has got: soliton/toolkit in XDG_CACHE_HOME or ~/.cache. Need not
/// exist. Throws as kernel_cache_folder() does.
std::filesystem::path toolkit_folder();

/// nvcc in a folder of Python packages (nvidia/cu13/bin/nvcc), of several the newest; nothing if there is none.
std::optional<std::string> nvcc_of_packages(const std::filesystem::path& packages);

/// The folder of libraries beside an nvcc that does not look there itself: that of packages. Nothing of another nvcc.
std::optional<std::filesystem::path> libraries_beside(const std::string& nvcc);

/// Gets nvcc and what it needs by pip into toolkit_folder(), in place of what is there; returns its path. What pip says is in
/// toolkit.log beside it if that fails. `say` is told first, in one line, where it goes. The driver's version is counted as CUDA counts it
/// (13000; 0: unknown). Throws Error: kMismatch if the driver runs nothing that it makes; kNotFound without Python and pip, or a
/// place to write; kMakeFailed if pip fails or nvcc does not run.
std::string install_toolkit(int32_t driver_version, const std::function<void(const std::string&)>& say);

}  // namespace soliton
