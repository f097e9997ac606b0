#include "runtime/weights/matrix_source.h"

#include <bit>
#include <cstring>
#include <functional>

#include "layout/rows.h"
#include "runtime/weights/packing.h"
#include "runtime/weights/quantization/nibbles.h"

namespace soliton {
namespace {

constexpr int64_t kNoRow = -1;

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

const std::vector<int32_t>& MatrixSource::order() const {
  static const std::vector<int32_t> kNatural;
  return parts_[0].integers ? parts_[0].integers->order() : kNatural;
}

void MatrixSource::read_biases(std::span<float> biases) const {
  for (int packed = 0; packed < matrix_.rows; ++packed) {
    int64_t row = source_row_of(packed / kTileRows, packed % kTileRows);
    const LinearTensors& part = part_of(row);
    read_floats(*part.bias, row, 1, &biases[packed]);
  }
}

void MatrixSource::pack(int tile, std::byte* bytes) const {
  return matrix_.format.has_scales() ? pack_integers(tile, bytes) : pack_floats(tile, bytes);
}

/// The row of the stacked parts that stands in row `row` of the tile, or kNoRow.
int64_t MatrixSource::source_row_of(int tile, int row) const {
  const int64_t first_of_expert = int64_t{tile / matrix_.expert_tiles()} * expert_rows();
  const int packed = tile % matrix_.expert_tiles() * kTileRows + row;
  if (packed >= expert_rows()) return kNoRow;
  const int rotary_rows = (facts_.num_heads + facts_.num_kv_heads) * facts_.head_dim;
  const int row_of =
      source_row(matrix_.row_order, packed, expert_rows(), rotary_rows, facts_.head_dim, facts_.rope_dims);
  if (output_order_.empty()) return first_of_expert + row_of;
  const int half = matrix_.rows / 2;  // gate, then up
  return row_of < half ? output_order_[row_of] : half + output_order_[row_of - half];
}

/// The part that holds row `row` of the stack, which becomes the row's number in its tensors.
const LinearTensors& MatrixSource::part_of(int64_t& row) const {
  const size_t expert = static_cast<size_t>(row / expert_rows());
  size_t i = expert * (parts_.size() / matrix_.experts.count);  // the parts of every expert are as many
  row -= static_cast<int64_t>(expert) * expert_rows();
  for (; row >= parts_[i].rows; ++i) row -= parts_[i].rows;
  row += parts_[i].first;
  return parts_[i];
}

void MatrixSource::pack_floats(int tile, std::byte* bytes) const {
  const int64_t columns = stored_columns();
  std::vector<uint16_t> rounded;
  const std::byte* rows[kTileRows] = {};
  for (int r = 0; r < kTileRows; ++r) {
    int64_t row = source_row_of(tile, r);
    if (row == kNoRow) continue;
    const LinearTensors& part = part_of(row);
    const Tensor& tensor = *part.floats;
    const int64_t first = row * part.columns + part.first_column;
    if (tensor.dtype == DType::kBF16) {
      rows[r] = tensor.data.data() + first * 2;
      continue;
    }
    rounded.resize(static_cast<size_t>(kTileRows * columns));
    uint16_t* values = rounded.data() + r * columns;
    read_bf16(tensor, first, columns, values);
    rows[r] = reinterpret_cast<const std::byte*>(values);
  }
  pack_tile(rows, stored_columns(), stored_padded(), bytes);
}

/// Rows `row` to `row` + `count` - 1 of a part, as rows of a tile from `to` on.
void MatrixSource::unpack(const LinearTensors& part, int64_t row, int count, IntegerTile& rows,
                          int to) const {
  const QuantizedLinear& linear = *part.integers;
  if (part.columns == stored_columns()) {
    linear.unpack_values(row, count, rows.row_values(to));
    linear.unpack_scales(row, count, rows.row_scales(to));
    linear.unpack_zeros(row, count, rows.row_zeros(to));
    return;
  }
  // Some columns of wider rows: their groups are whole, as widths of experts are multiples of a unit.
  IntegerTile wide(static_cast<int>(part.columns), linear.num_groups());
  linear.unpack_values(row, count, wide.row_values(0));
  linear.unpack_scales(row, count, wide.row_scales(0));
  linear.unpack_zeros(row, count, wide.row_zeros(0));
  const int64_t group = part.first_column / linear.group_size();
  for (int i = 0; i < count; ++i) {
    std::copy_n(wide.row_values(i) + part.first_column, rows.columns, rows.row_values(to + i));
    std::copy_n(wide.row_scales(i) + group, rows.num_groups, rows.row_scales(to + i));
    std::copy_n(wide.row_zeros(i) + group, rows.num_groups, rows.row_zeros(to + i));
  }
}

void MatrixSource::pack_integers(int tile, std::byte* bytes) const {
  const int num_groups = parts_[0].integers->num_groups();
  IntegerTile rows(stored_columns(), num_groups);
  // Neighbours in the tile are mostly neighbours in the source, and cheaper to unpack together.
  for (int r = 0, count = 0; r < kTileRows; r += count) {
    int64_t row = source_row_of(tile, r);
    count = 1;
    if (row == kNoRow) continue;
    while (r + count < kTileRows && source_row_of(tile, r + count) == row + count) ++count;
    const LinearTensors& part = part_of(row);
    const int64_t end = part.first + part.rows;
    if (count > end - row) count = static_cast<int>(end - row);
    unpack(part, row, count, rows, r);
  }
  const int group = parts_[0].integers->group_size();
  if (matrix_.experts.axis == ExpertAxis::kColumns) {
    pack_part(rows, group, matrix_.format, bytes);
  } else {
    pack_tile(rows, group, matrix_.format, matrix_.padded_columns, bytes);
  }
}

}  // namespace soliton
