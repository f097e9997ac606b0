// Rows of linear layers whose weights are floats, out of whatever form their tensor has. Those in MXFP4 can be read as bf16 too,
// which holds them exactly: an E2M1 has two significant bits, and the powers of two are those of bf16.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "models/checkpoint.h"
#include "runtime/weights/safetensors.h"

namespace soliton {

/// Refers to the TensorSource. Rows are those of all linear layers of the tensor, one layer after another.
class FloatRows {
 public:
  FloatRows() = default;
  bool is_there() const { return tensor_ != nullptr; }
  /// Null if none is there; of MXFP4 the codes.
  const Tensor* tensor() const { return tensor_; }
  /// Throws Error (kMismatch) if the tensor is absent, of another shape or of another type.
  FloatRows(const TensorSource& source, const std::string& name, const LinearRows& rows);

  bool is_mxfp4() const { return form_ == TensorForm::kMxfp4 || has_blocks_; }
  bool is_same(const FloatRows& other) const { return tensor_ == other.tensor_; }

  /// Where the row's values of bf16 lie side by side, from column `first` on; null if they have to be read.
  const std::byte* find(int64_t row, int64_t first) const;

  /// Reads columns [first, first + count) of each row, rounded to bf16, to values[i][count] of the i-th row.
  void read(std::span<const int64_t> rows, int64_t first, int64_t count, uint16_t* values) const;

  /// Of MXFP4: columns [first, first + count) of a row as they stand, a code each, and the exponents of their scales, one for
  /// 32 columns; `first` is a multiple of 32. Throws Error (kMismatch) for a scale that kernels do not have.
  void read_codes(int64_t row, int64_t first, int64_t count, uint8_t* codes, uint8_t* exponents) const;

 private:
  void read_columns(std::span<const int64_t> rows, int64_t first, int64_t count, uint16_t* values) const;
  void read_plain_codes(int64_t row, int64_t first, int64_t count, uint8_t* codes, uint8_t* exponents) const;
  void read_block_codes(int64_t row, int64_t first, int64_t count, uint8_t* codes, uint8_t* exponents) const;
  void read_mxfp4(int64_t row, int64_t first, int64_t count, uint16_t* values) const;

  const Tensor* tensor_ = nullptr;
  const Tensor* scales_ = nullptr;  // of MXFP4, unless
  bool has_blocks_ = false;         // each block has its own, as GGUF files do
  TensorForm form_ = TensorForm::kRows;
  int64_t columns_ = 0;
  int64_t layer_rows_ = 0;  // of each linear layer
};

}  // namespace soliton
