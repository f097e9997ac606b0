// Named tensors of a checkpoint in safetensors form, one file or a folder of shards, or of a GGUF file, mapped and never
// copied. Of a file that is cut short meanwhile the rest reads as zeros, see check_whole().
// Invariant: every Tensor's bytes number exactly shape x dtype; they lie inside its file, or are zeros in its stead.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "models/gguf_types.h"
#include "models/mapped_file.h"

namespace soliton {

/// Element types a safetensors file may name, of which those of 4 and 6 bits are packed; and behind them those of a GGUF
/// file whose elements stand in blocks.
enum class DType {
  kBool,
  kF4,
  kF6E2M3,
  kF6E3M2,
  kU8,
  kI8,
  kF8E5M2,
  kF8E4M3,
  kF8E8M0,
  kI16,
  kU16,
  kF16,
  kBF16,
  kI32,
  kU32,
  kF32,
  kC64,
  kF64,
  kI64,
  kU64,
  kQ4_0,
  kQ4_1,
  kQ5_0,
  kQ5_1,
  kQ8_0,
  kQ2_K,
  kQ3_K,
  kQ4_K,
  kQ5_K,
  kQ6_K,
  kIQ4_NL,
  kIQ4_XS,
  kMXFP4,
};

/// The name in the file, such as "BF16".
std::string_view dtype_name(DType dtype);
/// Bits of one element; 0 where elements stand in blocks.
int dtype_bits(DType dtype);
/// The type of the blocks in which elements stand; nothing where they stand by themselves.
std::optional<GgufType> block_type(DType dtype);

/// One tensor inside a mapped file, or zeros in its stead. The data need not be aligned to its element.
struct Tensor {
  std::string_view name;
  DType dtype{};
  std::vector<int64_t> shape;  // outermost first; empty for a scalar
  std::span<const std::byte> data;
  const std::string* file = nullptr;  // path, owned by the TensorSource
};

/// "BF16 [16, 64]", for messages: the first extents, if there are very many.
std::string describe_tensor(DType dtype, std::span<const int64_t> shape);

/// All tensors of a checkpoint. Move-only; Tensors stay valid and in place until it is destroyed.
class TensorSource {
 public:
  /// Opens a .safetensors file, an .index.json of shards, a folder that holds model.safetensors or
  /// model.safetensors.index.json, or a .gguf file, see GgufFile::open(). Throws kNotFound for files that are absent, kBadFile for malformed, cut or
  /// LFS-pointer files; every header is checked before this returns.
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

  std::string path_;
  std::vector<std::unique_ptr<const MappedFile>> files_;
  std::vector<std::vector<std::byte>> zeros_;  // each is the data of one tensor
  Tensors tensors_;
};

}  // namespace soliton
