#include "runtime/weights/float_rows.h"

#include "runtime/weights/model_tensors.h"
#include "runtime/weights/tensor_values.h"

namespace soliton {

FloatRows::FloatRows(const TensorSource& source, const std::string& name, const LinearRows& rows)
    : tensor_(&require_floats(source, name + rows.suffix(), rows.tensor_shape())),
      form_(rows.form),
      columns_(rows.tensor_columns),
      layer_rows_(rows.num_layers == 0 ? rows.tensor_rows : rows.tensor_rows / rows.num_layers) {}

const std::byte* FloatRows::find(int64_t row, int64_t first) const {
  if (form_ != TensorForm::kRows || tensor_->dtype != DType::kBF16) return nullptr;
  return tensor_->data.data() + (row * columns_ + first) * 2;
}

void FloatRows::read(std::span<const int64_t> rows, int64_t first, int64_t count, uint16_t* values) const {
  if (form_ == TensorForm::kRows) {
    for (size_t i = 0; i < rows.size(); ++i)
      read_bf16(*tensor_, rows[i] * columns_ + first, count, values + static_cast<int64_t>(i) * count);
    return;
  }
  // Neighbouring rows of a column share lines of the cache, and pages of memory.
  for (int64_t column = first; column < first + count; ++column) {
    for (size_t i = 0; i < rows.size(); ++i) {
      const int64_t layer = rows[i] / layer_rows_;
      const int64_t element = (layer * columns_ + column) * layer_rows_ + rows[i] % layer_rows_;
      read_bf16(*tensor_, element, 1, values + static_cast<int64_t>(i) * count + column - first);
    }
  }
}

}  // namespace soliton
