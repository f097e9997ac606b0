// What generated files say that they come from.
#pragma once

#include <filesystem>
#include <string>

namespace soliton {

/// What soliton-gen takes to read the facts that stand in `file`, a ModelConfig's path: a YAML or GGUF file, the folder of a
/// config.json, or the name of a model in Hugging Face's cache. Of files that came with the programs the path within these, so
/// that what is generated is the same wherever they lie. Characters that could end a comment are escaped; empty of no file.
std::string source_of(const std::filesystem::path& file);

}  // namespace soliton
