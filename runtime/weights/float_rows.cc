#include "runtime/weights/float_rows.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <vector>

#include "layout/weight_format.h"
#include "models/error.h"
#include "runtime/weights/model_tensors.h"
#include "runtime/weights/tensor_values.h"

namespace soliton {
namespace {

constexpr int64_t kMxfp4Block = 32;  // columns that share a scale

}  // namespace

FloatRows::FloatRows(const TensorSource& source, const std::string& name, const LinearRows& rows)
    : form_(rows.form),
      columns_(rows.tensor_columns),
      layer_rows_(rows.num_layers == 0 ? rows.tensor_rows : rows.tensor_rows / rows.num_layers) {
  if (form_ == TensorForm::kRows) {
    const std::string full = name + rows.suffix();
    const Tensor* const found = source.find(full);
    has_blocks_ = found != nullptr && block_type(found->dtype) == GgufType::kMXFP4;
    if (has_blocks_) {
      tensor_ = &source.require(full, found->dtype, rows.tensor_shape());
      return;
    }
  }
  if (form_ != TensorForm::kMxfp4) {
    tensor_ = &require_floats(source, name + rows.suffix(), rows.tensor_shape());
    return;
  }
  std::vector<int64_t> shape = {rows.num_layers, layer_rows_, columns_ / kMxfp4Block};
  scales_ = &source.require(name + "_scales", DType::kU8, shape);
  shape.push_back(kMxfp4Block / 2);
  tensor_ = &source.require(name + rows.suffix(), DType::kU8, shape);
}

const std::byte* FloatRows::find(int64_t row, int64_t first) const {
  if (form_ != TensorForm::kRows || tensor_->dtype != DType::kBF16) return nullptr;
  return tensor_->data.data() + (row * columns_ + first) * 2;
}

void FloatRows::read(std::span<const int64_t> rows, int64_t first, int64_t count, uint16_t* values) const {
  if (form_ == TensorForm::kColumns) return read_columns(rows, first, count, values);
  for (const int64_t row : rows) {
    if (form_ == TensorForm::kMxfp4) {
      read_mxfp4(row, first, count, values);
    } else {
      read_bf16(*tensor_, row * columns_ + first, count, values);
    }
    values += count;
  }
}

/// Neighbouring rows of a column share lines of the cache, and pages of memory.
void FloatRows::read_columns(std::span<const int64_t> rows, int64_t first, int64_t count,
                             uint16_t* values) const {
  for (int64_t column = first; column < first + count; ++column) {
    uint16_t* to = values + column - first;
    for (const int64_t row : rows) {
      const int64_t of_layer = row / layer_rows_ * columns_ * layer_rows_ + row % layer_rows_;
      read_bf16(*tensor_, of_layer + column * layer_rows_, 1, to);
      to += count;
    }
  }
}

/// Two values a byte, the lower half first; a block of them has a scale, an exponent of two.
void FloatRows::read_mxfp4(int64_t row, int64_t first, int64_t count, uint16_t* values) const {
  constexpr float kMagnitudes[] = {0, 0.5, 1, 1.5, 2, 3, 4, 6};
  constexpr int kExponentBias = 127;
  const std::byte* const blocks = tensor_->data.data() + row * (columns_ / 2);
  const std::byte* const scales = scales_->data.data() + row * (columns_ / kMxfp4Block);
  float scale = 0;
  for (int64_t column = first; column < first + count; ++column) {
    if (column == first || column % kMxfp4Block == 0) {
      const auto exponent = std::to_integer<int>(scales[column / kMxfp4Block]);
      scale = std::ldexp(1.0f, exponent - kExponentBias);
    }
    const int code = std::to_integer<int>(blocks[column / 2]) >> column % 2 * 4 & 15;
    const float value = kMagnitudes[code & 7] * scale;
    values[column - first] = round_to_bf16(code >= 8 ? -value : value);
  }
}

void FloatRows::read_codes(int64_t row, int64_t first, int64_t count, uint8_t* codes,
                           uint8_t* exponents) const {
  if (has_blocks_) {
    read_block_codes(row, first, count, codes, exponents);
  } else {
    read_plain_codes(row, first, count, codes, exponents);
  }
  for (int64_t i = 0; i < (count + kMxfp4Block - 1) / kMxfp4Block; ++i) {
    if (exponents[i] <= kMostE2m1Exponent) continue;
    const Tensor& named = has_blocks_ ? *tensor_ : *scales_;
    throw file_error(ExitCode::kMismatch, *named.file,
                     "{}: expected scales of 2 at most (exponents up to {}), got {}", named.name,
                     kMostE2m1Exponent, exponents[i]);
  }
}

/// Two values a byte, the lower half first, and scales by themselves.
void FloatRows::read_plain_codes(int64_t row, int64_t first, int64_t count, uint8_t* codes,
                                 uint8_t* exponents) const {
  const std::byte* const blocks = tensor_->data.data() + row * (columns_ / 2);
  for (int64_t i = 0; i < count; ++i) {
    const int64_t column = first + i;
    codes[i] = std::to_integer<uint8_t>(blocks[column / 2] >> column % 2 * 4 & std::byte{15});
  }
  const std::byte* const scales = scales_->data.data() + row * (columns_ / kMxfp4Block);
  for (int64_t i = 0; i < (count + kMxfp4Block - 1) / kMxfp4Block; ++i)
    exponents[i] = std::to_integer<uint8_t>(scales[first / kMxfp4Block + i]);
}

/// Of each block its scale, then bytes of which the j-th has column j in its lower half, and j + 16 in the other.
void FloatRows::read_block_codes(int64_t row, int64_t first, int64_t count, uint8_t* codes,
                                 uint8_t* exponents) const {
  constexpr int64_t kHalf = kMxfp4Block / 2;
  const std::byte* block = tensor_->data.data() + (row * columns_ + first) / kMxfp4Block * (1 + kHalf);
  for (int64_t done = 0; done < count; done += kMxfp4Block, block += 1 + kHalf) {
    *exponents++ = std::to_integer<uint8_t>(block[0]);
    for (int64_t i = 0; i < std::min(kMxfp4Block, count - done); ++i)
      codes[done + i] = std::to_integer<uint8_t>(block[1 + i % kHalf] >> i / kHalf * 4 & std::byte{15});
  }
}

}  // namespace soliton
