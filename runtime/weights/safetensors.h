// Named tensors of a checkpoint in safetensors form, one file or a folder of shards, or of a GGUF file, mapped and never
// copied. Of a file that is cut short meanwhile the rest reads as zeros, see check_whole().
// Invariant: every Tensor's bytes number exactly shape x dtype; they lie inside its file, or are zeros in its stead.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "models/mapped_file.h"
#include "runtime/weights/dtype.h"

namespace soliton {

/// One tensor inside a mapped file, or what stands in its stead: zeros, or weights of norms that a GGUF file has 1 added to. The data need not be aligned to its element.
struct Tensor {
  std::string_view name;
  DType dtype{};
  std::vector<int64_t> shape;  // outermost first; empty for a scalar
  std::span<const std::byte> data;
  const std::string* file = nullptr;  // path, owned by the TensorSource
};

/// All tensors of a checkpoint. Move-only; Tensors stay valid and in place until it is destroyed.
class TensorSource {
 public:
  /// Opens a .safetensors file, an .index.json of shards, a folder that holds model.safetensors or
  /// model.safetensors.index.json, or a .gguf file, see GgufFile::open(). Throws kNotFound for files that are absent,
  /// kBadFile for malformed, cut or LFS-pointer files; every header is checked before this returns.
  static TensorSource open(const std::filesystem::path& path);

  /// The tensor, or null if there is none of that name.
  const Tensor* find(std::string_view name) const;
  /// The tensor; throws kMismatch, with expected and found, if it is absent or of another type or shape.
  const Tensor& require(std::string_view name, DType dtype, std::span<const int64_t> shape) const;
  /// Every name, sorted.
  std::vector<std::string_view> names() const;
  /// Bytes of all tensors together.
  uint64_t total_bytes() const;
  /// The path as given to open(), for messages.
  const std::string& path() const { return path_; }

  /// Throws kBadFile if a file was cut short since it was opened: then tensors that were read may have zeros. Readers
  /// of tensors call it once they have read, by read_whole().
  void check_whole() const;

  /// Has zeros in place of the tensor's data, to see that the fault is noticed; its file stays as it is. Throws
  /// kMismatch if there is no tensor of that name.
  void zero(std::string_view name);

 private:
  using Tensors = std::map<std::string, Tensor, std::less<>>;

  explicit TensorSource(std::string path) : path_(std::move(path)) {}
  Tensors read_file(const std::filesystem::path& path);
  static Tensors read_header(const MappedFile& file);
  void read_shards(const std::filesystem::path& index);
  void read_gguf(const std::filesystem::path& path);
  void subtract_one(Tensor& norm);

  std::string path_;
  std::vector<std::unique_ptr<const MappedFile>> files_;
  std::vector<std::vector<std::byte>> own_;  // each is the data of one tensor, which no file has
  Tensors tensors_;
};

}  // namespace soliton
