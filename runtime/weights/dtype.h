// Types of the elements of tensors, whichever file has them.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "models/gguf_types.h"

namespace soliton {

/// Element types a safetensors file may name, of which those of 4 and 6 bits are packed; and behind them those of a GGUF
/// file whose elements stand in blocks.
enum class DType {
  kBool,
  kF4,
  kF6E2M3,
  kF6E3M2,
  kU8,
  kI8,
  kF8E5M2,
  kF8E4M3,
  kF8E8M0,
  kI16,
  kU16,
  kF16,
  kBF16,
  kI32,
  kU32,
  kF32,
  kC64,
  kF64,
  kI64,
  kU64,
  kQ4_0,
  kQ4_1,
  kQ5_0,
  kQ5_1,
  kQ8_0,
  kQ2_K,
  kQ3_K,
  kQ4_K,
  kQ5_K,
  kQ6_K,
  kIQ4_NL,
  kIQ4_XS,
  kMXFP4,
};

/// The type that a safetensors file means by a name; nothing if it may not.
std::optional<DType> find_dtype(std::string_view name);
/// The name in the file, such as "BF16".
std::string_view dtype_name(DType dtype);
/// Bits of one element; 0 where elements stand in blocks.
int dtype_bits(DType dtype);
/// The type of a GGUF file's tensors.
DType dtype_of(GgufType type);
/// The type of the blocks in which elements stand; nothing where they stand by themselves.
std::optional<GgufType> block_type(DType dtype);

/// "BF16 [16, 64]", for messages: the first extents, if there are very many.
std::string describe_tensor(DType dtype, std::span<const int64_t> shape);

}  // namespace soliton
