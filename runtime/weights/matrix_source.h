// Where the rows of a packed matrix come from: linear layers of the checkpoint, stacked, as floats, codes or integers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "layout/packed_matrix.h"
#include "runtime/weights/model_tensors.h"
#include "runtime/weights/packing.h"
#include "runtime/weights/tensor_values.h"

namespace soliton {

/// One packed matrix of one layer; of experts all of them, one after another. Refers to the ModelTensors.
class MatrixSource {
 public:
  /// `parts` are those of the matrix, found by the same facts.
  MatrixSource(std::span<const LinearTensors> parts, const ModelFacts& facts, const PackedMatrix& matrix)
      : parts_(parts), facts_(facts), matrix_(matrix) {}

  /// Has the matrix rows with a bias? Then of each packed row, of all experts: fills biases[rows].
  bool has_bias() const { return parts_[0].bias != nullptr; }
  void read_biases(std::span<float> biases) const;

  /// What the sum of a packed row is multiplied by beside the scales of its groups: see FloatRows::factor().
  float factor_of(int packed) const;
  /// Adds to biases[rows] the products of the packed rows, which are floats, and `x`, [columns], the bias of a norm: products
  /// are exact in double, where they are summed, and what each row adds is rounded once.
  void add_products(std::span<const float> x, std::span<float> biases) const;

  /// Packs tile `tile` to `bytes`. Thread-safe.
  void pack(int tile, std::byte* bytes) const;

  /// order()[c] is the model's input that stands in column c; empty: in natural order.
  const std::vector<int32_t>& order() const;
  /// Of gate and up: their rows are packed in the order in which down wants its inputs.
  void set_output_order(std::vector<int32_t> order) { output_order_ = std::move(order); }

 private:
  void pack_floats(int tile, std::byte* bytes) const;
  void pack_integers(int tile, std::byte* bytes) const;
  void pack_codes(int tile, std::byte* bytes) const;
  void round(const LinearTensors& part, int64_t row, IntegerTile& rows, int to) const;
  void unpack_blocks(const LinearTensors& part, int64_t row, IntegerTile& rows, int to) const;
  void unpack(const LinearTensors& part, int64_t row, int count, IntegerTile& rows, int to) const;
  int expert_rows() const { return matrix_.experts.rows(matrix_.rows); }
  int stored_columns() const { return matrix_.experts.columns(matrix_.columns); }
  /// Of an expert, without what kernels have beyond its width.
  int source_rows() const;
  int source_columns() const;
  int64_t source_row_of(int tile, int row) const;
  const LinearTensors& part_of(int64_t& row) const;

  const std::span<const LinearTensors> parts_;
  const ModelFacts& facts_;
  const PackedMatrix& matrix_;
  std::vector<int32_t> output_order_;
};

}  // namespace soliton
