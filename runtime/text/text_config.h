// What a model says of its special tokens and of how conversations are written.
#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "models/strict_json.h"

namespace soliton {

struct TextConfig {
  nlohmann::json document;
  std::string name;  // what errors call it

  JsonView view() const { return {document, name}; }
};

/// tokenizer_config.json of a folder, or what the metadata of a GGUF file says in its place. Nothing if the folder has none.
/// Throws what read_json() and GgufFile::open() do, and kBadFile for metadata of another type.
std::optional<TextConfig> read_text_config(const std::filesystem::path& model);

/// A member such as "bos_token": text, or an object that has it as "content". Nothing if it is absent. Throws kBadFile.
std::optional<std::string> special_token(const JsonView& config, const char* name);

}  // namespace soliton
