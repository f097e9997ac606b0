// A model as the generator sees it: the facts of models/<name>.yaml, read and checked, or those of a Hugging Face
// folder. No weights, no hardware.
#pragma once

#include <filesystem>
#include <string>

#include "layout/model_facts.h"

namespace soliton {

class StrictYaml;

struct ModelConfig {
  std::string name;  // "llama-3.1-8b"
  std::string path;  // of the file, as the user gave it
  ModelFacts facts;  // that have passed check()
};

/// Reads models/<name>.yaml, or a file that is called otherwise. Throws Error: kNotFound if it cannot be read, kBadFile with file and line if a key is
/// unknown, missing, of the wrong type or out of range, or if facts contradict each other.
ModelConfig load_model_config(const std::filesystem::path& path);

/// The same from YAML at hand, for tests.
ModelConfig parse_model_config(const StrictYaml& yaml, const std::string& path);

/// The text of models/<name>.yaml, under a comment of one or several lines. Read back it gives the same facts,
/// bit by bit.
std::string format_model_config(const std::string& name, const ModelFacts& facts, const std::string& comment);

/// What to call a model by its folder, which need not exist: "Llama-3.1-8B/" is llama-3.1-8b. Characters that no
/// name may have become '-'. A snapshot in the Hugging Face cache (models--ORG--NAME/snapshots/HASH) is NAME.
std::string model_name_of(const std::filesystem::path& folder);

}  // namespace soliton
