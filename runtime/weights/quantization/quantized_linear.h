// One view of matrices of integers, of 4 or 8 bits, or of E4M3 (fp8), whichever format they were written in:
//   weight(row, column) = scale(row, group) * (value(row, column) - zero(row, group))
// where a value of E4M3 is what its code stands for, and there are no zeros.
// Invariant: shapes, types and the order of inputs have been checked against rows x columns.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "layout/weight_format.h"
#include "models/quantization_config.h"
#include "runtime/weights/safetensors.h"

namespace soliton {

/// The checked tensors of one linear layer. Of E4M3 values are [rows][columns], and scales BF16, F16 or F32 of any shape of so many
/// numbers: of the tensor, of each row, or [rows / 128][columns / 128], rounded up. Else words are I32 and hold eight integers, or four of 8 bits: P below. Of a GGUF file all
/// stands in one tensor, of a type of blocks.
struct QuantizedTensors {
  QuantizationMethod method{};
  int bits = 4;
  int64_t rows = 0;
  int64_t columns = 0;
  int num_groups = 1;
  int64_t scale_rows = 1;  // of E4M3: neighbouring rows that have the same scales
  // Shapes of GPTQ; of AWQ, where it differs; of compressed-tensors.
  const Tensor* values = nullptr;  // [columns / P][rows]; [columns][rows / P]; [rows][columns / P]
  const Tensor* scales = nullptr;  // F16 or BF16 [groups][rows]; [rows][groups]
  const Tensor* zeros = nullptr;   // [groups][rows / P]; [rows / P][groups]; null: all are 8, or 128
  const Tensor* bias = nullptr;
  int zero_offset = 0;  // what a stored zero lacks
  bool symmetric = false;
  std::vector<int32_t> order;
  std::string remark;
};

/// One linear layer. Refers to the TensorSource's tensors: valid as long as that is.
class QuantizedLinear {
 public:
  explicit QuantizedLinear(QuantizedTensors tensors) : tensors_(std::move(tensors)) {}

  int64_t rows() const { return tensors_.rows; }        // outputs
  int64_t columns() const { return tensors_.columns; }  // inputs
  /// Inputs of a group, in stored order; columns() where there is one group only.
  int group_size() const {
    if (is_fp8() && tensors_.num_groups > 1) return kE4m3Group;
    return static_cast<int>(tensors_.columns / tensors_.num_groups);
  }
  int num_groups() const { return tensors_.num_groups; }
  int bits() const { return tensors_.bits; }
  /// Are values codes in E4M3?
  bool is_fp8() const { return tensors_.method == QuantizationMethod::kFp8; }
  /// Of a GGUF file: the tensor, whose rows are one after another; else null.
  const Tensor* blocks() const {
    return tensors_.method == QuantizationMethod::kGguf ? tensors_.values : nullptr;
  }
  /// Whether every zero is 8, or 128 of 8 bits, whatever the configuration says.
  bool symmetric() const { return tensors_.symmetric; }
  /// F16 or BF16: what unpack_scales() converts from, exactly.

  /// order()[c] is the model's input that stands at stored column c; empty: natural order. With act-order
  /// inputs are sorted by group, stably, so that stored column c is of group c / group_size().
  const std::vector<int32_t>& order() const { return tensors_.order; }
  /// F16, BF16 or F32 [rows]; null if there is none or all of it is zero, as writers add it to any layer.
  const Tensor* bias() const { return tensors_.bias; }
  /// What the user should be told of how the layer was read, in one line; mostly empty. It names no layer, so
  /// that layers of one checkpoint have equal remarks: say each one once.
  const std::string& remark() const { return tensors_.remark; }

  /// Unpacks `count` rows from `first` on: values[count][columns()], each 0..15 or 0..255, in stored order. Like the
  /// other two it is thread-safe, and not for blocks(). Throws Error (kBadFile) for a NaN in E4M3. Sixteen rows use whole cache lines of GPTQ's words, 128 rows of AWQ's.
  void unpack_values(int64_t first, int count, uint8_t* values) const;
  /// The same rows' scales[count][num_groups()].
  void unpack_scales(int64_t first, int count, float* scales) const;
  /// The same rows' zeros[count][num_groups()], each 0..16; of 8 bits all are 128, of E4M3 0.
  void unpack_zeros(int64_t first, int count, uint8_t* zeros) const;

 private:
  QuantizedTensors tensors_;
};

/// The layer whose tensors' names begin with `prefix` and a dot (or is that, of a tensor of several layers); nothing if it is
/// not quantised, which its tensors decide. Throws kMismatch if a tensor is missing, of another type or shape, or says what
/// is not supported, and kBadFile for an order of inputs or a stated shape that cannot be.
std::optional<QuantizedLinear> find_quantized(const TensorSource& source, const QuantizationConfig& config,
                                              const std::string& prefix, int64_t rows, int64_t columns);

}  // namespace soliton
