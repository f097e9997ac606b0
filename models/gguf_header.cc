// magic "GGUF", u32 version, u64 tensors, u64 keys; then keys with type and value, then tensors with name, extents (fastest
// first), type and offset; then, from the next multiple of the alignment on, the tensors' bytes. Counts are believed as far
// as the file is long: what they count takes some bytes at least.
#include "models/gguf_header.h"

#include <algorithm>
#include <bit>
#include <charconv>
#include <cmath>
#include <cstring>
#include <optional>
#include <set>
#include <string_view>

#include "models/error.h"

namespace soliton {
namespace {

using nlohmann::json;

constexpr std::string_view kMagic = "GGUF";
constexpr uint32_t kOldestVersion = 2;
constexpr uint32_t kVersion = 3;
constexpr uint64_t kMaxKeys = 1 << 16;
constexpr uint64_t kMaxKeyBytes = 1 << 16;
constexpr uint64_t kMaxTensors = 1 << 20;
constexpr uint64_t kMaxNameBytes = 1 << 10;
constexpr uint32_t kMaxExtents = 4;
constexpr uint64_t kDefaultAlignment = 32;
constexpr uint64_t kMaxAlignment = 1 << 20;
constexpr size_t kMaxValues = JsonLimits{}.values;  // of all arrays together
constexpr size_t kMaxTextBytes = kMaxJsonBytes;     // of all strings together
constexpr const char* kAlignmentKey = "general.alignment";

static_assert(std::endian::native == std::endian::little, "numbers are read as they lie in the file");

/// Types of metadata, by number.
enum class ValueType : uint32_t {
  kU8,
  kI8,
  kU16,
  kI16,
  kU32,
  kI32,
  kF32,
  kBool,
  kString,
  kArray,
  kU64,
  kI64,
  kF64,
};

/// Bytes of a value at least; 0: no type.
size_t least_bytes(uint32_t type) {
  constexpr size_t kBytes[] = {1, 1, 2, 2, 4, 4, 4, 1, 8, 12, 8, 8, 8};
  return type < std::size(kBytes) ? kBytes[type] : 0;
}

/// The double that the float was rounded from, as people write it: 1e-05f is 1e-05.
double as_written(float value) {
  if (!std::isfinite(value)) return double{value};
  const std::string text = fmt::format("{}", value);
  double written = 0;
  std::from_chars(text.data(), text.data() + text.size(), written);
  return written;
}

bool is_utf8(std::string_view text) {
  for (size_t i = 0; i < text.size();) {
    const auto byte = [&](size_t at) { return static_cast<unsigned char>(text[at]); };
    const unsigned char first = byte(i);
    const size_t length = first < 0x80 ? 1 : first < 0xc2 ? 0 : first < 0xe0 ? 2 : first < 0xf0 ? 3 : 4;
    if (length == 0 || first > 0xf4 || i + length > text.size()) return false;
    for (size_t k = 1; k < length; ++k) {
      if ((byte(i + k) & 0xc0) != 0x80) return false;
    }
    const unsigned char second = length > 1 ? byte(i + 1) : 0;
    const bool is_wrong = (first == 0xe0 && second < 0xa0) || (first == 0xed && second > 0x9f) ||
                          (first == 0xf0 && second < 0x90) || (first == 0xf4 && second > 0x8f);
    if (is_wrong) return false;
    i += length;
  }
  return true;
}

/// Numbers and strings one after another; past the end of the file none.
class Cursor {
 public:
  explicit Cursor(const MappedFile& file) : file_(file) {}

  template <class T>
  T number(std::string_view what) {
    T value;
    std::memcpy(&value, take(sizeof value, what).data(), sizeof value);
    return value;
  }

  std::string_view text(uint64_t limit, std::string_view what) {
    const auto length = number<uint64_t>(what);
    if (length > limit) {
      throw bad_file(file_.path(), "{}: expected a string of at most {} bytes, got {}", what, limit, length);
    }
    const std::string_view text = take(length, what);
    if (!is_utf8(text)) throw bad_file(file_.path(), "{}: expected UTF-8, got other bytes", what);
    return text;
  }

  /// So many of `bytes` each at least.
  void expect(uint64_t count, size_t bytes, std::string_view what) const {
    if (count > left() / bytes) throw cut_short(what);
  }

  uint64_t at() const { return at_; }
  uint64_t left() const { return file_.bytes().size() - at_; }

 private:
  std::string_view take(uint64_t count, std::string_view what) {
    if (count > left()) throw cut_short(what);
    const std::string_view taken = file_.text().substr(at_, count);
    at_ += count;
    return taken;
  }
  Error cut_short(std::string_view what) const {
    return bad_file(file_.path(), "{}: cut short: the file ends at {} bytes; download it again", what,
                    file_.bytes().size());
  }

  const MappedFile& file_;
  uint64_t at_ = 0;
};

class HeaderReader {
 public:
  explicit HeaderReader(const MappedFile& file) : file_(file), cursor_(file) {}

  GgufHeader read() {
    read_version();
    const auto num_tensors = cursor_.number<uint64_t>("number of tensors");
    const auto num_keys = cursor_.number<uint64_t>("number of keys");
    require_count(num_tensors, kMaxTensors, "tensors");
    require_count(num_keys, kMaxKeys, "keys of metadata");
    GgufHeader header{.metadata = json::object(), .tensors = {}};
    for (uint64_t i = 0; i < num_keys; ++i) read_key(header.metadata);
    std::vector<uint64_t> offsets;
    for (uint64_t i = 0; i < num_tensors; ++i) offsets.push_back(read_tensor(header.tensors.emplace_back()));
    place_data(header, offsets);
    return header;
  }

 private:
  template <class... Args>
  Error bad(fmt::format_string<Args...> format, Args&&... args) const {
    return bad_file(file_.path(), format, std::forward<Args>(args)...);
  }

  void read_version() {
    if (!file_.text().starts_with(kMagic)) {
      throw bad("not a GGUF file: expected \"GGUF\" at its start, got {}",
                in_quotes(file_.text().substr(0, kMagic.size())));
    }
    cursor_.number<uint32_t>("magic");
    const auto version = cursor_.number<uint32_t>("version");
    if (version >= kOldestVersion && version <= kVersion) return;
    if (const uint32_t swapped = __builtin_bswap32(version); swapped >= 1 && swapped <= kVersion) {
      throw file_error(ExitCode::kMismatch, file_.path(),
                       "expected a little-endian GGUF file, got a big-endian one");
    }
    throw file_error(ExitCode::kMismatch, file_.path(), "expected GGUF of version {} or {}, got {}",
                     kOldestVersion, kVersion, version);
  }

  void require_count(uint64_t count, uint64_t limit, std::string_view what) const {
    if (count > limit) throw bad("expected at most {} {}, got {}", limit, what, count);
  }

  void read_key(json& metadata) {
    const std::string key(cursor_.text(kMaxKeyBytes, "key of metadata"));
    const auto type = cursor_.number<uint32_t>(key);
    json value = read_value(type, key);
    if (!metadata.emplace(key, std::move(value)).second) throw bad("{}: duplicate key", in_quotes(key));
  }

  json read_value(uint32_t type, const std::string& key) {
    if (static_cast<ValueType>(type) == ValueType::kF32) return as_written(cursor_.number<float>(key));
    if (static_cast<ValueType>(type) != ValueType::kArray) return read_single(type, key);
    const auto element = cursor_.number<uint32_t>(key);
    const auto count = cursor_.number<uint64_t>(key);
    const size_t bytes = least_bytes(element);
    if (bytes == 0 || static_cast<ValueType>(element) == ValueType::kArray)
      throw bad("{}: expected an array of numbers or strings, got type {}", in_quotes(key), element);
    cursor_.expect(count, bytes, key);
    if (count > kMaxValues - num_values_) {
      throw bad("{}: expected arrays of at most {} values together, got {} more", in_quotes(key), kMaxValues,
                count);
    }
    num_values_ += count;
    json values = json::array();
    values.get_ref<json::array_t&>().reserve(count);
    for (uint64_t i = 0; i < count; ++i) values.push_back(read_single(element, key));
    return values;
  }

  json read_single(uint32_t type, const std::string& key) {
    switch (static_cast<ValueType>(type)) {
      case ValueType::kU8:
        return cursor_.number<uint8_t>(key);
      case ValueType::kI8:
        return cursor_.number<int8_t>(key);
      case ValueType::kU16:
        return cursor_.number<uint16_t>(key);
      case ValueType::kI16:
        return cursor_.number<int16_t>(key);
      case ValueType::kU32:
        return cursor_.number<uint32_t>(key);
      case ValueType::kI32:
        return cursor_.number<int32_t>(key);
      case ValueType::kF32:
        return cursor_.number<float>(key);
      case ValueType::kBool:
        return cursor_.number<uint8_t>(key) != 0;
      case ValueType::kString: {
        std::string text(cursor_.text(kMaxTextBytes - text_bytes_, key));
        text_bytes_ += text.size();
        return text;
      }
      case ValueType::kU64:
        return cursor_.number<uint64_t>(key);
      case ValueType::kI64:
        return cursor_.number<int64_t>(key);
      case ValueType::kF64:
        return cursor_.number<double>(key);
      case ValueType::kArray:
        break;
    }
    throw bad("{}: expected a type of metadata, got {}", in_quotes(key), type);
  }

  /// All but the data; returns its offset.
  uint64_t read_tensor(GgufTensor& tensor) {
    tensor.name = cursor_.text(kMaxNameBytes, "name of a tensor");
    tensor.file = &file_;
    const auto extents = cursor_.number<uint32_t>(tensor.name);
    if (extents == 0 || extents > kMaxExtents) {
      throw bad("{}: expected 1 to {} extents, got {}", in_quotes(tensor.name), kMaxExtents, extents);
    }
    for (uint32_t i = 0; i < extents; ++i) {
      const auto extent = cursor_.number<uint64_t>(tensor.name);
      if (extent == 0 || extent > kMostElements)
        throw bad("{}: expected extents of 1 to 2^56, got {}", in_quotes(tensor.name), extent);
      tensor.shape.insert(tensor.shape.begin(), static_cast<int64_t>(extent));
    }
    const auto number = cursor_.number<uint32_t>(tensor.name);
    const auto type = find_gguf_type(number);
    if (!type) {
      throw file_error(ExitCode::kMismatch, file_.path(), "{}: expected a type that is read, got {} ({})",
                       tensor.name, gguf_type_name(number), number);
    }
    tensor.type = type->type;
    return cursor_.number<uint64_t>(tensor.name);
  }

  /// Throws where there are too many to count.
  uint64_t bytes_of(const GgufTensor& tensor) const {
    const GgufTypeFacts& type = gguf_type(tensor.type);
    if (tensor.shape.back() % type.block_columns != 0) {
      throw bad("{}: expected a multiple of {} columns for {}, got {}", in_quotes(tensor.name),
                type.block_columns, type.name, tensor.shape.back());
    }
    uint64_t elements = 1;
    for (const int64_t extent : tensor.shape) {
      if (__builtin_mul_overflow(elements, static_cast<uint64_t>(extent), &elements) ||
          elements > kMostElements)
        throw bad("{}: expected at most 2^56 elements, got more", in_quotes(tensor.name));
    }
    return elements / static_cast<uint64_t>(type.block_columns) * static_cast<uint64_t>(type.block_bytes);
  }

  void place_data(GgufHeader& header, const std::vector<uint64_t>& offsets) const {
    uint64_t alignment = kDefaultAlignment;
    if (header.metadata.contains(kAlignmentKey)) {
      const JsonView stated = JsonView(header.metadata, file_.path())[kAlignmentKey];
      alignment = static_cast<uint64_t>(stated.integer(1, kMaxAlignment));
      if (!std::has_single_bit(alignment)) throw stated.error("expected a power of 2, got {}", alignment);
    }
    const uint64_t begin = (cursor_.at() + alignment - 1) / alignment * alignment;
    const uint64_t size = file_.bytes().size();
    std::set<std::string_view> names;
    for (size_t i = 0; i < offsets.size(); ++i) {
      GgufTensor& tensor = header.tensors[i];
      if (!names.insert(tensor.name).second)
        throw bad("{}: two tensors of that name", in_quotes(tensor.name));
      const uint64_t bytes = bytes_of(tensor);
      if (offsets[i] % alignment != 0) {
        throw bad("{}: expected an offset that is a multiple of {}, got {}", in_quotes(tensor.name),
                  alignment, offsets[i]);
      }
      if (begin > size || offsets[i] > size - begin || bytes > size - begin - offsets[i]) {
        throw bad(
            "{}: cut short: expected {} bytes at {} behind the header, the file ends at {} bytes; download "
            "it again",
            in_quotes(tensor.name), bytes, offsets[i], size);
      }
      tensor.data = file_.bytes().subspan(begin + offsets[i], bytes);
    }
  }

  static constexpr uint64_t kMostElements = uint64_t{1} << 56;

  const MappedFile& file_;
  Cursor cursor_;
  size_t num_values_ = 0;
  size_t text_bytes_ = 0;
};

}  // namespace

GgufHeader read_gguf_header(const MappedFile& file) {
  return file.read([&] { return HeaderReader(file).read(); });
}

}  // namespace soliton
