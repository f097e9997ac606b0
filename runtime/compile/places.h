// Where things lie: the kernels and the sources that come with the programs, and the kernels made for a user.
#pragma once

#include <filesystem>

namespace soliton {

/// The kernel libraries that come with the programs: the folder that SOLITON_KERNELS names, else lib/soliton/kernels of
/// the installation, or kernels/ beside the program; it need not exist. Throws Error (kNotFound) if SOLITON_KERNELS
/// names no folder.
std::filesystem::path shipped_kernels_folder();

/// As messages name a file that nobody has named: from the folder that the program runs in, if it lies there.
std::filesystem::path seen_from_here(const std::filesystem::path& path);

/// The root of the sources that kernels are made from: data_folder(). Throws Error (kNotFound) if they are gone.
std::filesystem::path sources_folder();

/// Where kernels made for the user are kept: soliton/kernels in XDG_CACHE_HOME or ~/.cache. Need not exist.
/// Throws Error (kNotFound) if neither XDG_CACHE_HOME nor HOME is an absolute path.
std::filesystem::path kernel_cache_folder();

/// Where programs keep what they remember: soliton in XDG_STATE_HOME or ~/.local/state. Need not exist; empty if
/// neither XDG_STATE_HOME nor HOME is an absolute path.
std::filesystem::path state_folder();

}  // namespace soliton
