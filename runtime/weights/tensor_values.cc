#include "runtime/weights/tensor_values.h"

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstring>
#include <functional>

#include "runtime/weights/gguf/blocks.h"
#include "runtime/weights/quantization/nibbles.h"

namespace soliton {
namespace {

/// Calls take(i, float) for each of `count` elements. `to_float` makes a float of a T, in arithmetic that the compiler
/// can do for several values at once.
template <class T, class ToFloat, class Take>
void for_each_value(const std::byte* data, int64_t count, ToFloat to_float, const Take& take) {
  for (int64_t i = 0; i < count; ++i) {
    T value;
    std::memcpy(&value, data + i * static_cast<int64_t>(sizeof value), sizeof value);
    take(i, to_float(value));
  }
}

const std::byte* address_of(const Tensor& tensor, int64_t element) {
  return tensor.data.data() + element * (dtype_bits(tensor.dtype) / 8);
}

}  // namespace

uint16_t round_to_bf16(float value) {
  const auto bits = std::bit_cast<uint32_t>(value);
  if (value != value) return static_cast<uint16_t>(bits >> 16 | 0x40);
  return static_cast<uint16_t>((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

void read_bf16(const Tensor& tensor, int64_t first, int64_t count, uint16_t* values) {
  if (const auto blocks = block_type(tensor.dtype)) {
    constexpr int64_t kPiece = 1024;  // a multiple of any block's columns
    float floats[kPiece];
    for (int64_t done = 0; done < count; done += kPiece) {
      const int64_t size = std::min(kPiece, count - done);
      dequantise_blocks(*blocks, tensor.data.data(), first + done, size, floats);
      for (int64_t i = 0; i < size; ++i) values[done + i] = round_to_bf16(floats[i]);
    }
    return;
  }
  const std::byte* data = address_of(tensor, first);
  const auto round = [&](int64_t i, float value) { values[i] = round_to_bf16(value); };
  if (tensor.dtype == DType::kBF16) {
    std::memcpy(values, data, static_cast<size_t>(count) * sizeof *values);
  } else if (tensor.dtype == DType::kF16) {
    for_each_value<uint16_t>(
        data, count, [](uint16_t bits) { return f16_bits_to_float(bits); }, round);
  } else {
    for_each_value<float>(data, count, std::identity(), round);
  }
}

void read_floats(const Tensor& tensor, int64_t first, int64_t count, float* values) {
  if (const auto blocks = block_type(tensor.dtype))
    return dequantise_blocks(*blocks, tensor.data.data(), first, count, values);
  const std::byte* data = address_of(tensor, first);
  const auto keep = [values](int64_t i, float value) { values[i] = value; };
  if (tensor.dtype == DType::kF32) {
    std::memcpy(values, data, static_cast<size_t>(count) * sizeof *values);
  } else if (tensor.dtype == DType::kF16) {
    for_each_value<uint16_t>(
        data, count, [](uint16_t bits) { return f16_bits_to_float(bits); }, keep);
  } else {
    for_each_value<uint16_t>(
        data, count, [](uint16_t bits) { return bf16_bits_to_float(bits); }, keep);
  }
}

bool is_exact_in_bf16(const Tensor& tensor, int64_t first, int64_t count) {
  if (tensor.dtype == DType::kBF16) return true;
  constexpr int64_t kPiece = 1024;
  float floats[kPiece];
  uint32_t lost = 0;
  for (int64_t done = 0; done < count && lost == 0; done += kPiece) {
    const int64_t size = std::min(kPiece, count - done);
    read_floats(tensor, first + done, size, floats);
    for (int64_t i = 0; i < size; ++i) lost |= std::bit_cast<uint32_t>(floats[i]) & 0xffff;
  }
  return lost == 0;
}

}  // namespace soliton
