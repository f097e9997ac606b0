// Rows of linear layers whose weights are floats, out of whatever form their tensors have. Those in E2M1 (MXFP4, NVFP4) are read
// as codes and scales, or as what these stand for.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "models/checkpoint.h"
#include "runtime/weights/quantization/nf4.h"
#include "runtime/weights/safetensors.h"

namespace soliton {

/// Which codes of 4 bits a tensor has, if any.
enum class E2m1Kind { kNone, kMxfp4, kNvfp4 };

/// Refers to the TensorSource. Rows are those of all linear layers of the tensor, one layer after another.
class FloatRows {
 public:
  FloatRows() = default;
  bool is_there() const { return tensor_ != nullptr; }
  /// Null if none is there; of E2M1 the codes.
  const Tensor* tensor() const { return tensor_; }
  /// Throws Error: kMismatch if a tensor is absent, of another shape or of another type; kBadFile if NVFP4's float of the tensor
  /// is no number above 0.
  FloatRows(const TensorSource& source, const std::string& name, const LinearRows& rows);

  /// Are they unpacked from nf4?
  bool is_nf4() const { return nf4_.has_value(); }
  E2m1Kind e2m1() const { return e2m1_; }
  /// Of NVFP4: what products of codes and scales are multiplied by, rounded to float where the file divides; else 1.
  float factor() const { return divides_ ? 1 / global_ : global_; }
  bool is_same(const FloatRows& other) const { return tensor_ == other.tensor_; }

  /// Where the row's values of bf16 lie side by side, from column `first` on; null if they have to be read.
  const std::byte* find(int64_t row, int64_t first) const;

  /// Reads columns [first, first + count) of each row, rounded to bf16, to values[i][count] of the i-th row. Not of E2M1.
  void read(std::span<const int64_t> rows, int64_t first, int64_t count, uint16_t* values) const;

  /// Of E2M1: columns [first, first + count) of a row as floats; of NVFP4 bit for bit as compressed-tensors and modelopt compute
  /// them in float: code * (scale / global), code * (scale * global). `first` is a multiple of 32.
  void read_floats(int64_t row, int64_t first, int64_t count, float* values) const;

  /// Of E2M1: columns [first, first + count) of a row as they stand, a code each, and their scales, one for group() columns:
  /// exponents, or E4M3; `first` is a multiple of 32. Throws Error (kMismatch) for a scale that kernels do not have.
  void read_codes(int64_t row, int64_t first, int64_t count, uint8_t* codes, uint8_t* scales) const;
  int group() const { return e2m1_ == E2m1Kind::kNvfp4 ? 16 : 32; }

 private:
  void find_codes(const TensorSource& source, const std::string& name, const LinearRows& rows);
  void find_global(const TensorSource& source, const std::string& name);
  void read_columns(std::span<const int64_t> rows, int64_t first, int64_t count, uint16_t* values) const;
  void read_plain_codes(int64_t row, int64_t first, int64_t count, uint8_t* codes, uint8_t* scales) const;
  void read_block_codes(int64_t row, int64_t first, int64_t count, uint8_t* codes, uint8_t* scales) const;

  const Tensor* tensor_ = nullptr;
  std::optional<Nf4Linear> nf4_;
  E2m1Kind e2m1_ = E2m1Kind::kNone;
  const Tensor* scales_ = nullptr;  // of E2M1, unless
  bool has_blocks_ = false;         // each block has its own, as GGUF files do
  float global_ = 1;                // of NVFP4: what scales are multiplied
  bool divides_ = false;            // or divided by
  TensorForm form_ = TensorForm::kRows;
  int64_t columns_ = 0;
  int64_t layer_rows_ = 0;  // of each linear layer
};

}  // namespace soliton
