#include "models/gguf.h"

#include <algorithm>
#include <optional>

#include "models/gguf_header.h"

namespace soliton {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr int64_t kMaxParts = 1000;
constexpr const char* kPartKey = "split.no";
constexpr const char* kPartsKey = "split.count";
constexpr const char* kTensorsKey = "split.tensors.count";

/// "-00002-of-00005.gguf".
std::string part_ending(int64_t part, int64_t count) {
  return fmt::format("-{:05}-of-{:05}.gguf", part + 1, count);
}

}  // namespace

bool is_gguf(const fs::path& path) {
  return path.extension() == ".gguf";
}

fs::path config_file(const fs::path& model) {
  return is_gguf(model) ? model : model / "config.json";
}

fs::path tokenizer_file(const fs::path& model) {
  return is_gguf(model) ? model : model / "tokenizer.json";
}

int64_t integer_or(const JsonView& view, int64_t fallback, int64_t min, int64_t max) {
  return view.is_null() ? fallback : view.integer(min, max);
}

GgufFile GgufFile::open(const fs::path& path) {
  GgufFile file(path.string());
  file.metadata_ = file.read_part(path);
  file.read_other_parts(path);
  std::ranges::sort(file.tensors_, {}, &GgufTensor::name);
  const auto twice = std::ranges::adjacent_find(file.tensors_, {}, &GgufTensor::name);
  if (twice != file.tensors_.end())
    throw bad_file(twice->file->path(), "{}: also in another part", in_quotes(twice->name));
  return file;
}

json GgufFile::read_part(const fs::path& path) {
  files_.push_back(std::make_unique<const MappedFile>(MappedFile::open(path)));
  GgufHeader header = read_gguf_header(*files_.back());
  std::ranges::move(header.tensors, std::back_inserter(tensors_));
  return std::move(header.metadata);
}

void GgufFile::read_other_parts(const fs::path& first) {
  const int64_t count = integer_or(view()[kPartsKey], 1, 0, kMaxParts);
  if (count <= 1) return;
  const int64_t number = view()[kPartKey].integer(0, count - 1);
  const std::string name = first.filename().string();
  const std::string ending = part_ending(number, count);
  if (!name.ends_with(ending)) {
    throw file_error(ExitCode::kMismatch, path_, "expected a name that ends in {}, as it is one of {} parts",
                     ending, count);
  }
  const std::string stem = name.substr(0, name.size() - ending.size());
  if (number != 0) {
    throw file_error(ExitCode::kUsage, path_, "expected the first part, {}{}, got another", stem,
                     part_ending(0, count));
  }
  for (int64_t part = 1; part < count; ++part) {
    const fs::path path = first.parent_path() / (stem + part_ending(part, count));
    const json metadata = read_part(path);
    const std::string part_name = path.string();
    const JsonView stated(metadata, part_name);
    stated[kPartKey].integer(part, part);
    stated[kPartsKey].integer(count, count);
  }
  const auto num_tensors = static_cast<int64_t>(tensors_.size());
  const int64_t expected =
      integer_or(view()[kTensorsKey], num_tensors, 0, std::numeric_limits<int32_t>::max());
  if (expected != num_tensors)
    throw view()[kTensorsKey].error("expected {}, as the parts have together, got {}", num_tensors, expected);
}

const GgufTensor* GgufFile::find(std::string_view name) const {
  const auto found = std::ranges::lower_bound(tensors_, name, {}, &GgufTensor::name);
  return found == tensors_.end() || found->name != name ? nullptr : &*found;
}

void GgufFile::check_whole() const {
  for (const auto& file : files_) file->check_whole();
}

}  // namespace soliton
