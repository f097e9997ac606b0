// GGUF files for tests, byte by byte: sound ones, and whatever else a test asks for.
#pragma once

#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "models/gguf_types.h"

namespace soliton {

/// A number's bytes as they lie in memory.
template <class T>
std::string bytes_of(T value) {
  static_assert(std::is_arithmetic_v<T>);
  std::string bytes(sizeof value, '\0');
  std::memcpy(bytes.data(), &value, sizeof value);
  return bytes;
}

inline std::string gguf_text(std::string_view text) {
  return bytes_of(uint64_t{text.size()}) + std::string(text);
}

/// Keys and tensors in the order in which they are added.
class GgufBuilder {
 public:
  uint32_t version = 3;
  uint64_t alignment = 32;  // to state another, add the key too

  /// A key with the value's bytes.
  GgufBuilder& raw(std::string_view key, uint32_t type, const std::string& value) {
    keys_.push_back(gguf_text(key) + bytes_of(type) + value);
    return *this;
  }
  GgufBuilder& key(std::string_view name, uint32_t value) { return raw(name, 4, bytes_of(value)); }
  GgufBuilder& key(std::string_view name, int value) { return key(name, static_cast<uint32_t>(value)); }
  GgufBuilder& key(std::string_view name, float value) { return raw(name, 6, bytes_of(value)); }
  GgufBuilder& key(std::string_view name, bool value) { return raw(name, 7, bytes_of(uint8_t{value})); }
  GgufBuilder& key(std::string_view name, std::string_view value) { return raw(name, 8, gguf_text(value)); }
  GgufBuilder& key(std::string_view name, const char* value) { return key(name, std::string_view(value)); }
  GgufBuilder& key(std::string_view name, const std::vector<std::string>& values) {
    std::string bytes = bytes_of(uint32_t{8}) + bytes_of(uint64_t{values.size()});
    for (const std::string& value : values) bytes += gguf_text(value);
    return raw(name, 9, bytes);
  }
  GgufBuilder& key(std::string_view name, const std::vector<float>& values) { return array(name, 6, values); }
  GgufBuilder& key(std::string_view name, const std::vector<int32_t>& values) {
    return array(name, 5, values);
  }

  /// `shape` outermost first; `data` as long as it says.
  GgufBuilder& tensor(std::string_view name, GgufType type, std::vector<int64_t> shape, std::string data) {
    tensors_.push_back({std::string(name), static_cast<uint32_t>(type), std::move(shape), std::move(data)});
    return *this;
  }

  /// The tensor of that name with other data, as long as its shape says in the other type.
  GgufBuilder& replace(std::string_view name, GgufType type, std::string data) {
    for (Tensor& tensor : tensors_) {
      if (tensor.name == name) tensor = {tensor.name, static_cast<uint32_t>(type), tensor.shape, data};
    }
    return *this;
  }

  std::string header() const {
    std::string bytes =
        "GGUF" + bytes_of(version) + bytes_of(uint64_t{tensors_.size()}) + bytes_of(uint64_t{keys_.size()});
    for (const std::string& key : keys_) bytes += key;
    uint64_t offset = 0;
    for (const Tensor& tensor : tensors_) {
      bytes += gguf_text(tensor.name) + bytes_of(static_cast<uint32_t>(tensor.shape.size()));
      for (auto extent = tensor.shape.rbegin(); extent != tensor.shape.rend(); ++extent)
        bytes += bytes_of(static_cast<uint64_t>(*extent));
      bytes += bytes_of(tensor.type) + bytes_of(offset);
      offset = aligned(offset + tensor.data.size());
    }
    return bytes;
  }
  std::string file() const {
    std::string bytes = header();
    if (tensors_.empty()) return bytes;
    bytes.resize(aligned(bytes.size()));
    for (const Tensor& tensor : tensors_) {
      bytes += tensor.data;
      if (&tensor != &tensors_.back()) bytes.resize(aligned(bytes.size()));
    }
    return bytes;
  }
  void write(const std::filesystem::path& path) const { std::ofstream(path, std::ios::binary) << file(); }

 private:
  struct Tensor {
    std::string name;
    uint32_t type;
    std::vector<int64_t> shape;
    std::string data;
  };

  template <class T>
  GgufBuilder& array(std::string_view name, uint32_t type, const std::vector<T>& values) {
    std::string bytes = bytes_of(type) + bytes_of(uint64_t{values.size()});
    for (const T value : values) bytes += bytes_of(value);
    return raw(name, 9, bytes);
  }
  uint64_t aligned(uint64_t offset) const { return (offset + alignment - 1) / alignment * alignment; }

  std::vector<std::string> keys_;
  std::vector<Tensor> tensors_;
};

}  // namespace soliton
