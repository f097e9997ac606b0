// Linear layers of integers whose weights are exact in bf16, so that the scalar reference needs to know
// nothing of them; and the tensors in which GPTQ stores them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "layout/model_facts.h"
#include "runtime/weights/safetensors.h"

namespace soliton {

/// One layer: weight = scale * (value - zero), or of E4M3 scale * what the code stands for.
struct QuantizedMatrix {
  int64_t rows = 0;
  int64_t columns = 0;
  int64_t num_groups = 0;
  std::vector<uint8_t> values;    // [rows][columns]
  std::vector<float> scales;      // [rows][num_groups], three bits each, or one where values have eight
  std::vector<uint8_t> zeros;     // [rows][num_groups]
  std::vector<int32_t> group_of;  // [columns]
  int bits = 4;                   // of a value
  bool is_e4m3 = false;           // are values codes?

  float weight(int64_t row, int64_t column) const;
};

/// Is this matrix of integers in a model of these facts?
bool has_integers(const std::string& tensor_name, const ModelFacts& facts);

/// A matrix of about uniform weights within `bound`; a function of the seed. Layers that read the same
/// activations have the same groups.
QuantizedMatrix random_quantized(const std::string& tensor_name, int64_t rows, int64_t columns, float bound,
                                 const ModelFacts& facts, uint64_t seed);

/// A tensor to write to a file.
struct StoredTensor {
  std::string name;
  std::string dtype;  // as safetensors calls it
  std::vector<int64_t> shape;
  std::vector<uint8_t> bytes;
};

/// Is this tensor of experts in MXFP4 in a model of these facts?
bool has_mxfp4(const std::string& tensor_name, const ModelFacts& facts);

/// Random weights that MXFP4 has, within `bound`, as bits of bf16: [experts][columns][rows], as transformers holds them in bf16.
std::vector<uint16_t> random_mxfp4(const std::vector<int64_t>& shape, float bound, uint64_t seed);

/// Such weights as MXFP4: "NAME_blocks" [experts][rows][columns / 32][16] and "NAME_scales" [experts][rows][columns / 32].
std::vector<StoredTensor> mxfp4_tensors(const std::string& name, const std::vector<int64_t>& shape,
                                        const std::vector<uint16_t>& bits);

/// The tensors of GPTQ (v2) for the layer of tensor "PREFIX.weight".
std::vector<StoredTensor> gptq_tensors(const std::string& tensor_name, const QuantizedMatrix& matrix);

/// The tensors of compressed-tensors for such a layer in E4M3, with a scale for each row.
std::vector<StoredTensor> fp8_tensors(const std::string& tensor_name, const QuantizedMatrix& matrix);

/// The weights [rows][columns] of GPTQ's tensors, as the format is defined and with nothing of the runtime's;
/// empty if there are none. Throws kMismatch if one of them is absent, of another type or of another shape.
std::vector<float> gptq_weights(const TensorSource& source, const std::string& tensor_name, int64_t rows,
                                int64_t columns);

}  // namespace soliton
