// safetensors: u64 little-endian header length, JSON header, then the buffer, which the tensors must tile
// without a gap or an overlap. A header is believed only after all of its arithmetic has been checked.
#include "runtime/weights/safetensors.h"

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>

#include "models/gguf.h"
#include "models/gguf_architectures.h"
#include "models/limits.h"
#include "models/strict_json.h"
#include "runtime/weights/tensor_values.h"

namespace soliton {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr uint64_t kLengthBytes = 8;
constexpr int64_t kMaxOffset = std::numeric_limits<int64_t>::max();
constexpr const char* kSingleFile = "model.safetensors";
constexpr const char* kIndexFile = "model.safetensors.index.json";
constexpr const char* kMetadata = "__metadata__";

struct Extent {
  uint64_t begin = 0;  // bytes from the buffer's start
  uint64_t end = 0;
  std::string_view name;
};

DType read_dtype(const JsonView& view) {
  const std::string& name = view.string();
  if (const auto dtype = find_dtype(name)) return *dtype;
  throw view.error("unknown element type {}", in_quotes(name));
}

std::vector<int64_t> read_shape(const JsonView& view) {
  std::vector<int64_t> shape(view.array_size());
  for (size_t i = 0; i < shape.size(); ++i) shape[i] = view[i].integer(0, kMaxOffset);
  return shape;
}

/// Bytes of shape x dtype, or nothing if that overflows or is no whole number of bytes.
std::optional<uint64_t> tensor_bytes(std::span<const int64_t> shape, DType dtype) {
  constexpr int kBitsPerByte = 8;
  if (std::find(shape.begin(), shape.end(), 0) != shape.end()) return 0;
  uint64_t bits = static_cast<uint64_t>(dtype_bits(dtype));
  for (const int64_t extent : shape) {
    if (__builtin_mul_overflow(bits, static_cast<uint64_t>(extent), &bits)) return std::nullopt;
  }
  if (bits % kBitsPerByte != 0) return std::nullopt;
  return bits / kBitsPerByte;
}

void check_metadata(const JsonView& metadata) {
  for (const auto& [key, value] : metadata.object().items()) metadata[key].string();
}

/// Reads one tensor's entry; data is left for later, when the buffer is known to be complete.
Extent read_entry(const JsonView& entry, Tensor& tensor) {
  tensor.dtype = read_dtype(entry["dtype"]);
  tensor.shape = read_shape(entry["shape"]);
  const JsonView offsets = entry["data_offsets"];
  if (offsets.array_size() != 2) throw offsets.error("expected [begin, end]");
  Extent extent;
  extent.begin = static_cast<uint64_t>(offsets[0].integer(0, kMaxOffset));
  extent.end = static_cast<uint64_t>(offsets[1].integer(0, kMaxOffset));
  if (extent.begin > extent.end)
    throw offsets.error("begins at {}, after its end {}", extent.begin, extent.end);
  const auto bytes = tensor_bytes(tensor.shape, tensor.dtype);
  if (!bytes) {
    throw entry.error("{} is no whole number of bytes below 2^61",
                      describe_tensor(tensor.dtype, tensor.shape));
  }
  if (*bytes != extent.end - extent.begin) {
    throw entry.error("{} takes {} bytes, but data_offsets give {}",
                      describe_tensor(tensor.dtype, tensor.shape), *bytes, extent.end - extent.begin);
  }
  return extent;
}

/// Checks that the extents tile [0, buffer_bytes).
void check_tiling(std::vector<Extent> extents, uint64_t buffer_bytes, const std::string& path) {
  std::sort(extents.begin(), extents.end(), [](const Extent& a, const Extent& b) {
    return std::pair(a.begin, a.end) < std::pair(b.begin, b.end);
  });
  uint64_t end = 0;
  for (const Extent& extent : extents) {
    if (extent.begin != end) {
      throw bad_file(path, "{}: data_offsets: expected begin {}, got {}: {} between tensors",
                     in_quotes(extent.name), end, extent.begin, extent.begin > end ? "a gap" : "an overlap");
    }
    end = extent.end;
  }
  if (end > buffer_bytes) {
    throw bad_file(path, "cut short: expected {} bytes of tensors, got {}; download it again", end,
                   buffer_bytes);
  }
  if (end < buffer_bytes) {
    throw bad_file(path, "expected {} bytes of tensors, got {} bytes after the last one", end,
                   buffer_bytes - end);
  }
}

/// The header's text, its length checked against the limit and the file.
std::string_view header_text(const MappedFile& file) {
  const auto bytes = file.bytes();
  if (bytes.size() < kLengthBytes) {
    throw bad_file(file.path(), "cut short: expected at least {} bytes, got {}", kLengthBytes, bytes.size());
  }
  uint64_t length = 0;
  for (uint64_t i = 0; i < kLengthBytes; ++i) length |= std::to_integer<uint64_t>(bytes[i]) << (8 * i);
  if (length > kMaxJsonBytes) {
    throw bad_file(file.path(), "not a safetensors file: expected a header of at most {} bytes, got {}",
                   kMaxJsonBytes, length);
  }
  if (length > bytes.size() - kLengthBytes) {
    throw bad_file(file.path(), "cut short: expected a header of {} bytes, got {}; download it again", length,
                   bytes.size() - kLengthBytes);
  }
  const std::string_view header = file.text().substr(kLengthBytes, length);
  if (!header.starts_with('{'))
    throw bad_file(file.path(), "not a safetensors file: no JSON object at byte 8");
  return header;
}

/// Shard names come from the file: they may name only what lies beside the index.
void check_shard_name(const JsonView& entry) {
  const std::string& name = entry.string();
  constexpr size_t kMaxNameBytes = 255;  // of a file
  const bool leaves_folder =
      name.find_first_of("/\\") != std::string::npos || name.find("..") != std::string::npos;
  if (name.empty() || name.size() > kMaxNameBytes || name == "." || leaves_folder ||
      name.find('\0') != std::string::npos) {
    throw entry.error("expected the name of a file beside the index, got {}", in_quotes(name));
  }
}

fs::path find_checkpoint(const fs::path& folder) {
  for (const char* name : {kSingleFile, kIndexFile}) {
    if (is_present(folder / name)) return folder / name;
  }
  std::error_code ignored;
  const bool has_pickle = fs::exists(folder / "pytorch_model.bin", ignored) ||
                          fs::exists(folder / "pytorch_model.bin.index.json", ignored);
  throw file_error(ExitCode::kNotFound, folder.string(), "expected {} or {} in it, got {}", kSingleFile,
                   kIndexFile, has_pickle ? "pytorch_model.bin, which has to be converted" : "neither");
}

}  // namespace

TensorSource TensorSource::open(const fs::path& path) {
  TensorSource source(path.string());
  std::error_code ignored;
  const fs::path file = fs::is_directory(path, ignored) ? find_checkpoint(path) : path;
  if (is_gguf(file)) {
    source.read_gguf(file);
  } else if (file.extension() == ".json") {
    source.read_shards(file);
  } else {
    source.tensors_ = source.read_file(file);
  }
  return source;
}

TensorSource::Tensors TensorSource::read_file(const fs::path& path) {
  files_.push_back(std::make_unique<const MappedFile>(MappedFile::open(path)));
  return files_.back()->read([&] { return read_header(*files_.back()); });
}

TensorSource::Tensors TensorSource::read_header(const MappedFile& file) {
  const std::string_view text = header_text(file);
  const json header = parse_json(text, file.path());
  const JsonView root(header, file.path());
  const auto buffer = file.bytes().subspan(kLengthBytes + text.size());

  Tensors tensors;
  std::vector<Extent> extents;
  for (const auto& [name, value] : root.object().items()) {
    if (name == kMetadata) {
      check_metadata(root[name]);
      continue;
    }
    const auto place = tensors.try_emplace(name).first;
    place->second.name = place->first;
    place->second.file = &file.path();
    extents.push_back(read_entry(root[name], place->second));
    extents.back().name = place->first;
  }
  check_tiling(extents, buffer.size(), file.path());
  for (const Extent& extent : extents) {
    tensors.find(extent.name)->second.data = buffer.subspan(extent.begin, extent.end - extent.begin);
  }
  return tensors;
}

void TensorSource::read_shards(const fs::path& index) {
  const std::string path = index.string();
  const json document = read_json(index);
  const JsonView weight_map = JsonView(document, path)["weight_map"];
  std::map<std::string, std::vector<std::string>> shards;  // file -> tensors
  for (const auto& [tensor, shard] : weight_map.object().items()) {
    check_shard_name(weight_map[tensor]);
    shards[shard.get_ref<const std::string&>()].push_back(tensor);
  }
  if (shards.empty()) throw weight_map.error("expected at least one tensor, got none");
  size_t num_missing = 0;
  std::string first_missing;
  for (const auto& [shard, names] : shards) {
    std::error_code ignored;
    if (fs::exists(index.parent_path() / shard, ignored)) continue;
    if (num_missing++ == 0) first_missing = shard;
  }
  if (num_missing > 0) {
    throw file_error(ExitCode::kNotFound, (index.parent_path() / first_missing).string(),
                     "no such file; {} of the {} shards that {} names are missing", num_missing,
                     shards.size(), path);
  }
  for (const auto& [shard, names] : shards) {
    Tensors tensors = read_file(index.parent_path() / shard);
    for (const std::string& name : names) {
      auto node = tensors.extract(name);
      if (node.empty()) throw weight_map.error("{} is not in {}", in_quotes(name), shard);
      tensors_.insert(std::move(node));
    }
  }
}

void TensorSource::read_gguf(const fs::path& path) {
  GgufFile file = GgufFile::open(path);
  const bool has_offset = has_norm_offset(file);
  for (const GgufTensor& tensor : file.tensors()) {
    const auto place = tensors_.try_emplace(tensor.name).first;
    place->second = {.name = place->first,
                     .dtype = dtype_of(tensor.type),
                     .shape = tensor.shape,
                     .data = tensor.data,
                     .file = &tensor.file->path()};
    const bool is_norm = tensor.shape.size() == 1 && tensor.name.ends_with("norm.weight");
    if (has_offset && is_norm && tensor.shape.front() <= kHiddenLimit.max) subtract_one(place->second);
  }
  files_ = std::move(file).take_files();
}

/// Of what bf16 has, 1 + weight is in F32 what it was made from, or so near to it that the difference is in bf16 too.
void TensorSource::subtract_one(Tensor& norm) {
  std::vector<float> values(static_cast<size_t>(norm.shape.front()));
  read_floats(norm, 0, norm.shape.front(), values.data());
  for (float& value : values) value -= 1;
  const auto bytes = std::as_bytes(std::span(values));
  norm.data = own_.emplace_back(bytes.begin(), bytes.end());
  norm.dtype = DType::kF32;
}

const Tensor* TensorSource::find(std::string_view name) const {
  const auto found = tensors_.find(name);
  return found == tensors_.end() ? nullptr : &found->second;
}

const Tensor& TensorSource::require(std::string_view name, DType dtype,
                                    std::span<const int64_t> shape) const {
  const Tensor* const tensor = find(name);
  if (tensor == nullptr) {
    throw file_error(ExitCode::kMismatch, path_, "{}: expected {}, but there is no such tensor", name,
                     describe_tensor(dtype, shape));
  }
  if (tensor->dtype != dtype ||
      !std::equal(shape.begin(), shape.end(), tensor->shape.begin(), tensor->shape.end())) {
    throw file_error(ExitCode::kMismatch, *tensor->file, "{}: expected {}, got {}", name,
                     describe_tensor(dtype, shape), describe_tensor(tensor->dtype, tensor->shape));
  }
  return *tensor;
}

void TensorSource::check_whole() const {
  for (const auto& file : files_) file->check_whole();
}

void TensorSource::zero(std::string_view name) {
  const auto found = tensors_.find(name);
  if (found == tensors_.end()) {
    throw file_error(ExitCode::kMismatch, path_, "expected a tensor of this folder, got {}", name);
  }
  found->second.data = own_.emplace_back(found->second.data.size());
}

std::vector<std::string_view> TensorSource::names() const {
  std::vector<std::string_view> names;
  names.reserve(tensors_.size());
  for (const auto& [name, tensor] : tensors_) names.push_back(name);
  return names;
}

uint64_t TensorSource::total_bytes() const {
  uint64_t bytes = 0;
  for (const auto& [name, tensor] : tensors_) bytes += tensor.data.size();
  return bytes;
}

}  // namespace soliton
