// Linear layers in nf4, as bitsandbytes stores them: codes of 4 bits of the flattened matrix, a table of 16 floats, and a scale
// for each 64 codes, which may be codes of 8 bits themselves. They are unpacked to bf16, as bitsandbytes does before it
// multiplies: kernels have no table of floats.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "runtime/weights/safetensors.h"

namespace soliton {

/// Refers to the TensorSource's tensors.
class Nf4Linear {
 public:
  /// The layer of that name; nothing if it is not in nf4. Throws Error: kMismatch if a tensor is missing, of another type or
  /// shape, or for another variant; kBadFile for a description that is none.
  static std::optional<Nf4Linear> find(const TensorSource& source, const std::string& name, int64_t rows,
                                       int64_t columns);

  const Tensor& codes() const { return *codes_; }
  /// Reads `count` elements of the flattened matrix from `first` on, computed in float as bitsandbytes does, rounded to bf16.
  void read(int64_t first, int64_t count, uint16_t* values) const;

 private:
  float scale(int64_t block) const;

  const Tensor* codes_ = nullptr;          // U8 [rows * columns / 2, 1], the upper half of a byte first
  const Tensor* scales_ = nullptr;         // F32 [rows * columns / 64], or U8: codes of
  const Tensor* nested_table_ = nullptr;   // F32 [256], times
  const Tensor* nested_scales_ = nullptr;  // F32 [blocks / 256, rounded up], plus
  float offset_ = 0;
  float table_[16] = {};
};

}  // namespace soliton
