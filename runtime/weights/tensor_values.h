// Values of tensors of floats, whichever type they are stored in.
#pragma once

#include <cstdint>

#include "runtime/weights/safetensors.h"

namespace soliton {

/// Bits of the nearest bf16, ties to even.
uint16_t round_to_bf16(float value);

/// Copies `count` elements of a BF16, F16 or F32 tensor, or one of blocks, from `first` on, rounded to bf16. Of blocks `first`
/// and `count` are multiples of their width.
void read_bf16(const Tensor& tensor, int64_t first, int64_t count, uint16_t* values);

/// The same as floats, not rounded.
void read_floats(const Tensor& tensor, int64_t first, int64_t count, float* values);

/// Whether bf16 has all of these elements' values.
bool is_exact_in_bf16(const Tensor& tensor, int64_t first, int64_t count);

}  // namespace soliton
