// Where this code and what came with it lie, wherever that has been moved: an installation finds its parts from the program
// or shared library that runs.
//
//   PREFIX/bin/soliton-*                        PREFIX/share/soliton/templates, generator/gpus, models
//   PREFIX/lib[/ARCHITECTURE]/libsoliton.so     PREFIX/lib/soliton/kernels, libsoliton_emulation.a
//
// In a build all lies beside the program, and the rest in the source tree.
#pragma once

#include <filesystem>
#include <optional>

namespace soliton {

/// Of the program or shared library that this code is part of, without links.
std::filesystem::path code_folder();

/// PREFIX, if this code is installed.
std::optional<std::filesystem::path> installed_prefix();

/// The root of templates/, generator/gpus/ and models/: PREFIX/share/soliton, else the source tree that this code was built
/// from, which may be gone.
std::filesystem::path data_folder();

}  // namespace soliton
