// A linear layer of a checkpoint as floats, a few rows at a time, straight from the mapped files: nothing is kept.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "models/checkpoint.h"
#include "runtime/weights/float_rows.h"
#include "runtime/weights/quantization/quantized_linear.h"
#include "runtime/weights/safetensors.h"

namespace soliton {

/// One vector of `width` floats for each token.
struct TokenRows {
  TokenRows(size_t num_tokens, int64_t row_width)
      : width(row_width), values(num_tokens * static_cast<size_t>(row_width)) {}

  size_t num_tokens() const { return values.size() / static_cast<size_t>(width); }
  float* of(size_t token) { return values.data() + token * static_cast<size_t>(width); }
  const float* of(size_t token) const { return values.data() + token * static_cast<size_t>(width); }

  int64_t width;
  std::vector<float> values;  // [token][width]
};

/// Refers to the TensorSource's tensors.
class HostMatrix {
 public:
  /// Rows of the linear layer of that name; floats are rounded to 8 or 4 bits if the kernel has them as such. Throws Error
  /// (kMismatch).
  HostMatrix(const TensorSource& source, const QuantizationConfig* quantization, const std::string& name,
             const LinearRows& rows, int64_t columns, int rounded_bits = 16);

  /// values[count][columns] of the rows from `first` on, as the kernel has them: rounded to bf16, or the exact
  /// products of integers and scales. Thread-safe.
  void read(int64_t first, int count, float* values) const;

  /// The product with each token's vector, by all cores: every row is read once.
  TokenRows multiply(const TokenRows& x) const;

 private:
  /// All columns of rows as they stand in the tensor.
  void read_stored(int64_t first, int count, float* values) const;
  void read_rounded(int64_t first, int count, float* values) const;
  void read_integers(int64_t first, int count, float* values) const;

  int64_t first_;  // of the tensor's rows
  int64_t step_;
  int64_t rows_;
  int64_t first_column_;
  int64_t columns_;
  int64_t all_columns_;  // of the tensor
  int64_t paired_rows_;  // see stored_row(), likewise
  int64_t paired_dims_;
  int rounded_bits_;  // 16: floats are not
  FloatRows floats_;  // or
  std::optional<QuantizedLinear> integers_;
};

}  // namespace soliton
