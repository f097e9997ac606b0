#include "runtime/weights/matrix_source.h"

#include <algorithm>
#include <bit>

#include "layout/rows.h"
#include "runtime/weights/gguf/fill_row.h"
#include "runtime/weights/packing.h"
#include "runtime/weights/rounding.h"

namespace soliton {
namespace {

constexpr int64_t kNoRow = -1;

}  // namespace

float MatrixSource::factor_of(int packed) const {
  int64_t row = source_row_of(packed / kTileRows, packed % kTileRows);
  return part_of(row).floats.factor();
}

const std::vector<int32_t>& MatrixSource::order() const {
  static const std::vector<int32_t> kNatural;
  return parts_[0].integers ? parts_[0].integers->order() : kNatural;
}

void MatrixSource::read_biases(std::span<float> biases) const {
  for (int packed = 0; packed < std::ssize(biases); ++packed) {
    int64_t row = source_row_of(packed / kTileRows, packed % kTileRows);
    if (row == kNoRow) continue;
    const LinearTensors& part = part_of(row);
    read_floats(*part.bias, row, 1, &biases[packed]);
  }
}

void MatrixSource::add_products(std::span<const float> x, std::span<float> biases) const {
  std::vector<uint16_t> values(x.size());
  for (int packed = 0; packed < std::ssize(biases); ++packed) {
    int64_t row = source_row_of(packed / kTileRows, packed % kTileRows);
    if (row == kNoRow) continue;
    const LinearTensors& part = part_of(row);
    part.floats.read(std::vector{row}, part.first_column, std::ssize(x), values.data());
    double sum = biases[static_cast<size_t>(packed)];
    for (size_t i = 0; i < x.size(); ++i)
      sum += double{std::bit_cast<float>(static_cast<uint32_t>(values[i]) << 16)} * x[i];
    biases[static_cast<size_t>(packed)] = static_cast<float>(sum);
  }
}

void MatrixSource::pack(int tile, std::byte* bytes) const {
  if (matrix_.format.type == WeightType::kE2m1) return pack_codes(tile, bytes);
  return matrix_.format.has_scales() ? pack_integers(tile, bytes) : pack_floats(tile, bytes);
}

int MatrixSource::source_rows() const {
  return matrix_.experts.axis == ExpertAxis::kRows ? 2 * facts_.expert_ffn : expert_rows();
}
int MatrixSource::source_columns() const {
  return matrix_.experts.axis == ExpertAxis::kColumns ? facts_.expert_ffn : stored_columns();
}

/// The row of the stacked parts that stands in row `row` of the tile, or kNoRow.
int64_t MatrixSource::source_row_of(int tile, int row) const {
  const int64_t first_of_expert = int64_t{tile / matrix_.expert_tiles()} * source_rows();
  const int packed = tile % matrix_.expert_tiles() * kTileRows + row;
  if (packed >= expert_rows()) return kNoRow;
  const int rotary_rows = (facts_.num_heads + facts_.num_kv_heads) * facts_.head_dim;
  const int row_of =
      source_row(matrix_.row_order, packed, expert_rows(), rotary_rows, facts_.head_dim, facts_.rope_dims);
  if (matrix_.experts.axis == ExpertAxis::kRows) {
    const int width = expert_rows() / 2;
    if (row_of % width >= facts_.expert_ffn) return kNoRow;
    return first_of_expert + row_of / width * facts_.expert_ffn + row_of % width;
  }
  if (output_order_.empty()) return first_of_expert + row_of;
  const int half = matrix_.rows / 2;  // gate, then up
  return row_of < half ? output_order_[row_of] : half + output_order_[row_of - half];
}

/// The part that holds row `row` of the stack, which becomes the row's number in its tensors.
const LinearTensors& MatrixSource::part_of(int64_t& row) const {
  const size_t expert = static_cast<size_t>(row / source_rows());
  size_t i = expert * (parts_.size() / matrix_.experts.count);  // the parts of every expert are as many
  row -= static_cast<int64_t>(expert) * source_rows();
  for (; row >= parts_[i].rows; ++i) row -= parts_[i].rows;
  row = stored_row(parts_[i].first + row * parts_[i].step, parts_[i].paired_rows, parts_[i].paired_dims);
  return parts_[i];
}

void MatrixSource::pack_floats(int tile, std::byte* bytes) const {
  const int64_t columns = stored_columns();
  std::vector<uint16_t> read;
  const std::byte* rows[kTileRows] = {};
  for (int r = 0, count = 0; r < kTileRows; r += count) {
    int64_t row = source_row_of(tile, r);
    count = 1;
    if (row == kNoRow) continue;
    const LinearTensors& part = part_of(row);
    rows[r] = part.floats.find(row, part.first_column);
    if (rows[r] != nullptr) continue;
    std::vector<int64_t> together = {row};  // as many as follow of the same tensor
    for (; r + count < kTileRows; ++count) {
      int64_t next = source_row_of(tile, r + count);
      if (next == kNoRow || !part.floats.is_same(part_of(next).floats)) break;
      together.push_back(next);
    }
    read.resize(static_cast<size_t>(kTileRows * columns));
    uint16_t* values = read.data() + r * columns;
    part.floats.read(together, part.first_column, columns, values);
    for (int i = 0; i < count; ++i) rows[r + i] = reinterpret_cast<const std::byte*>(values + i * columns);
  }
  pack_tile(rows, stored_columns(), matrix_.stored_columns(), bytes);
}

void MatrixSource::pack_codes(int tile, std::byte* bytes) const {
  E2m1Tile rows(stored_columns(), parts_[0].floats.group());
  for (int r = 0; r < kTileRows; ++r) {
    int64_t row = source_row_of(tile, r);
    if (row == kNoRow) continue;
    const LinearTensors& part = part_of(row);
    part.floats.read_codes(row, part.first_column, stored_columns(), rows.row_codes(r), rows.row_scales(r));
    if (!matrix_.format.has_factors()) continue;
    for (int g = 0; g < rows.num_groups; ++g) {
      uint8_t& scale = rows.row_scales(r)[g];
      const int columns = std::min(rows.group, rows.columns - g * rows.group);
      if (scale == 0) std::fill_n(rows.row_codes(r) + g * rows.group, columns, uint8_t{0});
      scale = nvfp4_scale(scale);
    }
  }
  pack_tile(rows, matrix_.stored_columns(), bytes);
}

/// A row of a part that has floats, as row `to` of a tile.
void MatrixSource::round(const LinearTensors& part, int64_t row, IntegerTile& rows, int to) const {
  round_row(part.floats, row, part.first_column, source_columns(), matrix_.format.bits(), rows.row_values(to),
            rows.row_scales(to));
}

/// Of a GGUF file: a row of a part, as row `to` of a tile in the matrix' format, which holds it.
void MatrixSource::unpack_blocks(const LinearTensors& part, int64_t row, IntegerTile& rows, int to) const {
  const Tensor& tensor = *part.integers->blocks();
  fill_row(*block_type(tensor.dtype), tensor.data.data(), row * part.columns + part.first_column,
           source_columns(), matrix_.format, rows, to);
}

/// Rows `row` to `row` + `count` - 1 of a part, as rows of a tile from `to` on.
void MatrixSource::unpack(const LinearTensors& part, int64_t row, int count, IntegerTile& rows,
                          int to) const {
  if (!part.integers) {
    for (int i = 0; i < count; ++i) round(part, row + i, rows, to + i);
    return;
  }
  const QuantizedLinear& linear = *part.integers;
  if (linear.blocks() != nullptr) {
    for (int i = 0; i < count; ++i) unpack_blocks(part, row + i, rows, to + i);
    return;
  }
  if (part.columns == rows.columns) {
    linear.unpack_values(row, count, rows.row_values(to));
    linear.unpack_scales(row, count, rows.row_scales(to));
    linear.unpack_zeros(row, count, rows.row_zeros(to));
    return;
  }
  // Some columns, whose groups are whole, of wider rows; or all, of narrower ones.
  IntegerTile wide(static_cast<int>(part.columns), linear.num_groups());
  linear.unpack_values(row, count, wide.row_values(0));
  linear.unpack_scales(row, count, wide.row_scales(0));
  linear.unpack_zeros(row, count, wide.row_zeros(0));
  const int64_t group = part.first_column / linear.group_size();
  const int num_groups = std::min(parts_[0].integers->num_groups(), linear.num_groups());
  for (int i = 0; i < count; ++i) {
    std::copy_n(wide.row_values(i) + part.first_column, source_columns(), rows.row_values(to + i));
    std::copy_n(wide.row_scales(i) + group, num_groups, rows.row_scales(to + i));
    std::copy_n(wide.row_zeros(i) + group, num_groups, rows.row_zeros(to + i));
  }
}

void MatrixSource::pack_integers(int tile, std::byte* bytes) const {
  const bool is_own = !parts_[0].integers || parts_[0].integers->blocks() != nullptr;
  const int group = is_own ? matrix_.format.group : parts_[0].integers->group_size();
  IntegerTile rows(stored_columns(), ceil_divide(stored_columns(), group));
  // Neighbours in the tile are mostly neighbours in the source, and cheaper to unpack together.
  const auto place_of = [&](int r) {
    int64_t row = source_row_of(tile, r);
    const LinearTensors* const part = row == kNoRow ? nullptr : &part_of(row);
    return std::pair(part, row);
  };
  for (int r = 0, count = 0; r < kTileRows; r += count) {
    const auto [part, row] = place_of(r);
    count = 1;
    if (part == nullptr) continue;
    while (r + count < kTileRows && place_of(r + count) == std::pair(part, row + count)) ++count;
    unpack(*part, row, count, rows, r);
  }
  if (matrix_.experts.axis == ExpertAxis::kColumns) {
    pack_part(rows, group, matrix_.format, bytes);
  } else {
    pack_tile(rows, group, matrix_.format, matrix_.padded_columns, bytes);
  }
}

}  // namespace soliton
