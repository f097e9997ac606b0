// Where the rows of a packed matrix come from: tensors of the checkpoint, stacked, in bf16 or as 4-bit integers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "layout/library.h"
#include "runtime/quantization/quantized_linear.h"
#include "runtime/safetensors.h"

namespace soliton {

/// Bits of the nearest bf16, ties to even.
uint16_t round_to_bf16(float value);

/// Copies `count` elements of a BF16, F16 or F32 tensor from `first` on, rounded to bf16.
void read_bf16(const Tensor& tensor, int64_t first, int64_t count, uint16_t* values);

/// The same as floats, not rounded.
void read_floats(const Tensor& tensor, int64_t first, int64_t count, float* values);

/// The tensor; throws kMismatch if it is absent, of another shape, or of a type that these do not take.
const Tensor& require_floats(const TensorSource& source, const std::string& name,
                             std::span<const int64_t> shape);

/// One packed matrix of one layer. Refers to the TensorSource's tensors.
class MatrixSource {
 public:
  /// Looks everything up and checks that it is what the kernel was generated for; kMismatch if not.
  MatrixSource(const TensorSource& source, const QuantizationConfig* quantization, const ModelFacts& facts,
               const PackedMatrix& matrix, int layer);

  /// Has the matrix rows with a bias? Then of each packed row: fills biases[rows].
  bool has_bias() const { return !parts_.empty() && parts_[0].bias != nullptr; }
  void read_biases(std::span<float> biases) const;

  /// Packs tile `tile` to `bytes`. Thread-safe.
  void pack(int tile, std::byte* bytes) const;

  /// order()[c] is the model's input that stands in column c; empty: in natural order.
  const std::vector<int32_t>& order() const { return order_; }
  /// Of gate and up: their rows are packed in the order in which down wants its inputs.
  void set_output_order(std::vector<int32_t> order) { output_order_ = std::move(order); }

  /// What the user should be told of how tensors were read; mostly empty.
  const std::string& remark() const { return remark_; }

 private:
  /// One linear layer of the checkpoint.
  struct Part {
    int64_t rows = 0;
    const Tensor* floats = nullptr;  // or
    std::optional<QuantizedLinear> integers;
    const Tensor* bias = nullptr;  // null without
  };

  void add(const TensorSource& source, const QuantizationConfig* quantization, const std::string& prefix,
           int64_t rows);
  void check_integers(const QuantizedLinear& linear, const std::string& name) const;
  const Tensor* find_bias(const TensorSource& source, const Part& part, const std::string& prefix) const;
  void pack_floats(int tile, std::byte* bytes) const;
  void pack_integers(int tile, std::byte* bytes) const;
  int64_t source_row_of(int tile, int row) const;
  const Part& part_of(int64_t& row) const;

  const ModelFacts& facts_;
  const PackedMatrix& matrix_;
  std::string path_;  // of the source, for messages
  std::vector<Part> parts_;
  std::vector<int32_t> order_;
  std::vector<int32_t> output_order_;
  std::string remark_;
};

}  // namespace soliton
