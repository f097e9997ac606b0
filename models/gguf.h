// GGUF files, as llama.cpp and its converters write them: metadata by key, and tensors, in one file or in several that
// are numbered. Version 2 or 3, little-endian. Mapped; a header is believed only after all of its arithmetic has been
// checked.
// Invariant: every tensor's bytes number exactly its shape in its type, and lie inside its file.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <vector>

#include "models/gguf_types.h"
#include "models/mapped_file.h"
#include "models/strict_json.h"

namespace soliton {

/// Whether a path names a GGUF file, by its ending.
bool is_gguf(const std::filesystem::path& path);

/// The file of a model, which is a folder or a GGUF file, that has its facts, for messages.
std::filesystem::path config_file(const std::filesystem::path& model);
/// The same of its tokenizer.
std::filesystem::path tokenizer_file(const std::filesystem::path& model);

/// One tensor of the file, or of one of its parts.
struct GgufTensor {
  std::string name;
  GgufType type{};
  std::vector<int64_t> shape;  // outermost first: of a matrix rows and columns
  std::span<const std::byte> data;
  const MappedFile* file = nullptr;
};

/// Move-only; tensors stay in place until it is destroyed.
class GgufFile {
 public:
  /// Opens a file, or the first of several ("...-00001-of-00003.gguf") with all others. Throws kNotFound for files that
  /// are absent, kBadFile for malformed, cut or LFS-pointer files, kMismatch for a version, a byte order or a type of
  /// tensor that is not read; kUsage for another part than the first.
  static GgufFile open(const std::filesystem::path& path);

  /// A JSON object by key: numbers (a float as the shortest decimal that is rounded to it), booleans, strings (UTF-8) and
  /// arrays of one of them. Keys of parts beyond the first play no part.
  const nlohmann::json& metadata() const { return metadata_; }
  /// The same, whose errors name file and key.
  JsonView view() const { return {metadata_, path_}; }
  const std::vector<GgufTensor>& tensors() const { return tensors_; }
  /// Null if there is none of that name.
  const GgufTensor* find(std::string_view name) const;
  /// The path as given to open(), for messages.
  const std::string& path() const { return path_; }
  /// Throws kBadFile if a file was cut short since it was opened, see MappedFile.
  void check_whole() const;
  /// Gives the files away, for those who keep spans of tensors.
  std::vector<std::unique_ptr<const MappedFile>> take_files() && { return std::move(files_); }

 private:
  explicit GgufFile(std::string path) : path_(std::move(path)) {}
  nlohmann::json read_part(const std::filesystem::path& path);
  void read_other_parts(const std::filesystem::path& first);

  std::string path_;
  std::vector<std::unique_ptr<const MappedFile>> files_;
  nlohmann::json metadata_;
  std::vector<GgufTensor> tensors_;  // sorted by name
};

/// What an absent key means.
int64_t integer_or(const JsonView& view, int64_t fallback, int64_t min, int64_t max);

}  // namespace soliton
