// How tensors of a GGUF file hold their elements: one by one, or in blocks of neighbouring columns that share scales.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace soliton {

/// The numbers by which files name the types whose tensors this program knows to read.
enum class GgufType : uint32_t {
  kF32 = 0,
  kF16 = 1,
  kQ4_0 = 2,
  kQ4_1 = 3,
  kQ5_0 = 6,
  kQ5_1 = 7,
  kQ8_0 = 8,
  kQ2_K = 10,
  kQ3_K = 11,
  kQ4_K = 12,
  kQ5_K = 13,
  kQ6_K = 14,
  kIQ4_NL = 20,
  kIQ4_XS = 23,
  kBF16 = 30,
  kMXFP4 = 39,
};

struct GgufTypeFacts {
  GgufType type;
  std::string_view name;  // as ggml writes it: "Q4_K"
  int32_t block_columns;  // 1: no blocks
  int32_t block_bytes;
};

/// Nothing for a type that is not read.
std::optional<GgufTypeFacts> find_gguf_type(uint32_t number);
/// Of a type that is read.
const GgufTypeFacts& gguf_type(GgufType type);
/// "IQ2_XXS", also of types that are known but not read.
std::string_view gguf_type_name(uint32_t number);

}  // namespace soliton
