// A model as the generator sees it: the facts of models/<name>.yaml, read and checked. No weights, no
// hardware.
#pragma once

#include <filesystem>
#include <string>

#include "generator/strict_yaml.h"
#include "layout/model_facts.h"

namespace soliton {

struct ModelConfig {
  std::string name;  // "llama-3.1-8b"
  std::string path;  // of the file, as the user gave it
  ModelFacts
      facts;  // checked: divisible, positive, within limits that keep byte counts of a layer in 64 bits
};

/// Reads models/<name>.yaml. Throws UserError: kFile if it cannot be read, kContent with file and line if a
/// key is unknown, missing, of the wrong type or out of range, or if facts contradict each other.
ModelConfig load_model_config(const std::filesystem::path& path);

/// The same from YAML at hand, for tests.
ModelConfig parse_model_config(const StrictYaml& yaml, const std::string& path);

}  // namespace soliton
