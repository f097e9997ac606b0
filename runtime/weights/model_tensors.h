// The tensors of a model's checkpoint, found by its facts and names: all types and shapes that making its kernel and loading
// its weights rely on. Of the files little more than the headers is read: what decides how integers are read.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "layout/model_facts.h"
#include "models/checkpoint.h"
#include "runtime/weights/float_rows.h"
#include "runtime/weights/quantization/quantized_linear.h"
#include "runtime/weights/safetensors.h"

namespace soliton {

/// Rows of one linear layer of the checkpoint, from row `first` of the tensors on, and of these the columns of the matrix, from
/// `first_column` on.
struct LinearTensors {
  int64_t first = 0;
  int64_t rows = 0;
  int64_t first_column = 0;
  int64_t columns = 0;  // of the whole layer
  int64_t step = 1;     // from one row to the next, in the tensors
  FloatRows floats;     // rounded if the matrix has integers; or
  std::optional<QuantizedLinear> integers;
  const Tensor* bias = nullptr;  // [of the whole layer]; null without
  int64_t paired_rows = 0;       // see stored_row(), likewise
  int64_t paired_dims = 0;
};

/// Refers to the TensorSource. Tensors of floats are BF16, F16 or F32; the embedding's may be of blocks too.
struct ModelTensors {
  const TensorSource* source = nullptr;
  ModelFacts facts;                   // that they were found by
  const Tensor* embedding = nullptr;  // [vocabulary][hidden]
  /// Of each of Graph::matrices, of each layer that has one, by number, the rows that the packed matrix stacks.
  std::vector<std::map<int, std::vector<LinearTensors>>> matrices;
  std::vector<const Tensor*> norms;        // [hidden]: those of layer after layer, see Graph::first_norm()
  std::vector<const Tensor*> norm_biases;  // of each of them; empty where they have none
  std::vector<const Tensor*>
      head_norms;  // of each layer q's and k's, see Checkpoint; empty where heads are not normed
  std::map<int, const Tensor*> router_biases;  // [num_experts]: of each layer that has one
  std::vector<const Tensor*> sinks;            // [num_heads]: of each layer, or none
  std::vector<std::string> remarks;  // that the user should read on how tensors were read, each once
};

/// Finds all of them. Throws Error: kMismatch if a tensor is missing, of another type or shape, or none of a model with
/// these facts; kBadFile for an order of inputs that cannot be, and if a file is cut short meanwhile.
ModelTensors find_tensors(const TensorSource& source, const QuantizationConfig* quantization,
                          const ModelFacts& facts, const Checkpoint& checkpoint);

/// The rows of a matrix in a layer, wherever the checkpoint has them.
const LinearStack& stack_of(const Checkpoint& checkpoint, size_t matrix, int layer,
                            const TensorSource& source);

/// The tensor; throws kMismatch if it is absent, of another shape, or not BF16, F16 or F32.
const Tensor& require_floats(const TensorSource& source, const std::string& name,
                             std::span<const int64_t> shape);

/// The same of an embedding, which is rounded to bf16 whatever its type.
const Tensor& require_embedding(const TensorSource& source, const std::string& name,
                                std::span<const int64_t> shape);

}  // namespace soliton
