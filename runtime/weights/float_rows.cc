#include "runtime/weights/float_rows.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <vector>

#include "layout/e4m3.h"
#include "layout/weight_format.h"
#include "models/error.h"
#include "runtime/weights/model_tensors.h"
#include "runtime/weights/tensor_values.h"

namespace soliton {
namespace {

constexpr int64_t kMxfp4Block = 32;  // columns that share a scale
constexpr uint8_t kGreatestE4m3 = 0x7e;
constexpr float kMagnitudes[] = {0, 0.5, 1, 1.5, 2, 3, 4, 6};

float e2m1_to_float(uint8_t code) {
  return code >= 8 ? -kMagnitudes[code - 8] : kMagnitudes[code];
}

}  // namespace

FloatRows::FloatRows(const TensorSource& source, const std::string& name, const LinearRows& rows)
    : form_(rows.form),
      columns_(rows.tensor_columns),
      layer_rows_(rows.num_layers == 0 ? rows.tensor_rows : rows.tensor_rows / rows.num_layers) {
  if (form_ == TensorForm::kMxfp4) {
    e2m1_ = E2m1Kind::kMxfp4;
    std::vector<int64_t> shape = {rows.num_layers, layer_rows_, columns_ / kMxfp4Block};
    scales_ = &source.require(name + "_scales", DType::kU8, shape);
    shape.push_back(kMxfp4Block / 2);
    tensor_ = &source.require(name + rows.suffix(), DType::kU8, shape);
    return;
  }
  const std::string full = name + rows.suffix();
  const Tensor* const found = source.find(full);
  has_blocks_ =
      form_ == TensorForm::kRows && found != nullptr && block_type(found->dtype) == GgufType::kMXFP4;
  if (has_blocks_) {
    e2m1_ = E2m1Kind::kMxfp4;
    tensor_ = &source.require(full, found->dtype, rows.tensor_shape());
    return;
  }
  if (rows.num_layers == 0) nf4_ = Nf4Linear::find(source, name, rows.tensor_rows, columns_);
  if (nf4_) {
    tensor_ = &nf4_->codes();
    return;
  }
  if (rows.num_layers == 0) find_codes(source, name, rows);
  if (e2m1_ == E2m1Kind::kNone) tensor_ = &require_floats(source, full, rows.tensor_shape());
}

/// A linear layer in E2M1 as compressed-tensors, modelopt and quark have it, if it is one: codes in bytes, two each, and scales.
void FloatRows::find_codes(const TensorSource& source, const std::string& name, const LinearRows& rows) {
  const Tensor* const packed = source.find(name + ".weight_packed");
  const Tensor* const codes = packed != nullptr ? packed : source.find(name + ".weight");
  if (codes == nullptr || codes->dtype != DType::kU8) return;
  const int64_t shape[] = {rows.tensor_rows, columns_ / 2};
  tensor_ = &source.require(codes->name, DType::kU8, shape);
  const std::string scales = name + ".weight_scale";
  const Tensor* const found = source.find(scales);
  const DType dtype = found == nullptr ? DType::kF8E4M3 : found->dtype;
  const bool has_exponents = dtype == DType::kU8 || dtype == DType::kF8E8M0;
  e2m1_ = has_exponents ? E2m1Kind::kMxfp4 : E2m1Kind::kNvfp4;
  const int64_t scales_shape[] = {rows.tensor_rows, columns_ / group()};
  scales_ = &source.require(scales, has_exponents ? dtype : DType::kF8E4M3, scales_shape);
  if (e2m1_ == E2m1Kind::kMxfp4) return;
  divides_ = packed != nullptr;
  find_global(source, name + (divides_ ? ".weight_global_scale" : ".weight_scale_2"));
}

void FloatRows::find_global(const TensorSource& source, const std::string& name) {
  const Tensor* const found = source.find(name);
  const bool is_scalar = found != nullptr && found->shape.empty();
  const int64_t one[] = {1};
  const Tensor& tensor = source.require(name, DType::kF32, std::span(one).first(is_scalar ? 0 : 1));
  soliton::read_floats(tensor, 0, 1, &global_);
  if (std::isfinite(global_) && global_ > 0 && std::isfinite(1 / global_)) return;
  throw file_error(ExitCode::kBadFile, *tensor.file, "{}: expected a number above 0, got {}", name, global_);
}

const std::byte* FloatRows::find(int64_t row, int64_t first) const {
  if (form_ != TensorForm::kRows || tensor_->dtype != DType::kBF16) return nullptr;
  return tensor_->data.data() + (row * columns_ + first) * 2;
}

void FloatRows::read(std::span<const int64_t> rows, int64_t first, int64_t count, uint16_t* values) const {
  if (form_ == TensorForm::kColumns) return read_columns(rows, first, count, values);
  for (const int64_t row : rows) {
    if (nf4_) {
      nf4_->read(row * columns_ + first, count, values);
    } else {
      read_bf16(*tensor_, row * columns_ + first, count, values);
    }
    values += count;
  }
}

void FloatRows::read_floats(int64_t row, int64_t first, int64_t count, float* values) const {
  std::vector<uint8_t> codes(static_cast<size_t>(count));
  std::vector<uint8_t> stored(static_cast<size_t>(count / group() + 1));
  read_codes(row, first, count, codes.data(), stored.data());
  for (int64_t i = 0; i < count; ++i) {
    const uint8_t own = stored[static_cast<size_t>(i / group())];
    float scale = e2m1_ == E2m1Kind::kNvfp4 ? e4m3_to_float(own) : std::ldexp(1.0f, own - 127);
    scale = divides_ ? scale / global_ : scale * global_;
    values[i] = e2m1_to_float(codes[static_cast<size_t>(i)]) * scale;
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

void FloatRows::read_codes(int64_t row, int64_t first, int64_t count, uint8_t* codes, uint8_t* scales) const {
  if (has_blocks_) {
    read_block_codes(row, first, count, codes, scales);
  } else {
    read_plain_codes(row, first, count, codes, scales);
  }
  const bool is_nvfp4 = e2m1_ == E2m1Kind::kNvfp4;
  const int most = is_nvfp4 ? kGreatestE4m3 : kMostE2m1Exponent;
  for (int64_t i = 0; i < (count + group() - 1) / group(); ++i) {
    if (scales[i] <= most) continue;
    const Tensor& named = has_blocks_ ? *tensor_ : *scales_;
    throw file_error(ExitCode::kMismatch, *named.file, "{}: expected scales {}, got {}", named.name,
                     is_nvfp4 ? "that are numbers, and not below 0"
                              : fmt::format("of 2 at most (exponents up to {})", most),
                     is_nvfp4 ? fmt::format("code {:#x}", scales[i]) : fmt::format("{}", scales[i]));
  }
}

/// Two values a byte, the lower half first, and scales by themselves.
void FloatRows::read_plain_codes(int64_t row, int64_t first, int64_t count, uint8_t* codes,
                                 uint8_t* scales) const {
  const std::byte* const bytes = tensor_->data.data() + row * (columns_ / 2);
  for (int64_t i = 0; i < count; ++i) {
    const int64_t column = first + i;
    codes[i] = std::to_integer<uint8_t>(bytes[column / 2] >> column % 2 * 4 & std::byte{15});
  }
  const std::byte* const stored = scales_->data.data() + row * (columns_ / group());
  for (int64_t i = 0; i < (count + group() - 1) / group(); ++i)
    scales[i] = std::to_integer<uint8_t>(stored[first / group() + i]);
}

/// Of each block its scale, then bytes of which the j-th has column j in its lower half, and j + 16 in the other.
void FloatRows::read_block_codes(int64_t row, int64_t first, int64_t count, uint8_t* codes,
                                 uint8_t* scales) const {
  constexpr int64_t kHalf = kMxfp4Block / 2;
  const std::byte* block = tensor_->data.data() + (row * columns_ + first) / kMxfp4Block * (1 + kHalf);
  for (int64_t done = 0; done < count; done += kMxfp4Block, block += 1 + kHalf) {
    *scales++ = std::to_integer<uint8_t>(block[0]);
    for (int64_t i = 0; i < std::min(kMxfp4Block, count - done); ++i)
      codes[done + i] = std::to_integer<uint8_t>(block[1 + i % kHalf] >> i / kHalf * 4 & std::byte{15});
  }
}

}  // namespace soliton
