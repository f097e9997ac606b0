#include "runtime/weights/dtype.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <utility>

namespace soliton {
namespace {

struct DTypeFacts {
  DType dtype;
  std::string_view name;
  int bits;
};

/// Those of GGUF files alone, whose names gguf_types.h has.
constexpr std::array kBlockTypes = {
    std::pair(DType::kQ4_0, GgufType::kQ4_0),     std::pair(DType::kQ4_1, GgufType::kQ4_1),
    std::pair(DType::kQ5_0, GgufType::kQ5_0),     std::pair(DType::kQ5_1, GgufType::kQ5_1),
    std::pair(DType::kQ8_0, GgufType::kQ8_0),     std::pair(DType::kQ2_K, GgufType::kQ2_K),
    std::pair(DType::kQ3_K, GgufType::kQ3_K),     std::pair(DType::kQ4_K, GgufType::kQ4_K),
    std::pair(DType::kQ5_K, GgufType::kQ5_K),     std::pair(DType::kQ6_K, GgufType::kQ6_K),
    std::pair(DType::kIQ4_NL, GgufType::kIQ4_NL), std::pair(DType::kIQ4_XS, GgufType::kIQ4_XS),
    std::pair(DType::kMXFP4, GgufType::kMXFP4),
};

constexpr DTypeFacts in_blocks(DType dtype) {
  return {dtype, "", 0};
}

constexpr std::array kDTypes = {
    DTypeFacts{DType::kBool, "BOOL", 8},
    DTypeFacts{DType::kF4, "F4", 4},
    DTypeFacts{DType::kF6E2M3, "F6_E2M3", 6},
    DTypeFacts{DType::kF6E3M2, "F6_E3M2", 6},
    DTypeFacts{DType::kU8, "U8", 8},
    DTypeFacts{DType::kI8, "I8", 8},
    DTypeFacts{DType::kF8E5M2, "F8_E5M2", 8},
    DTypeFacts{DType::kF8E4M3, "F8_E4M3", 8},
    DTypeFacts{DType::kF8E8M0, "F8_E8M0", 8},
    DTypeFacts{DType::kI16, "I16", 16},
    DTypeFacts{DType::kU16, "U16", 16},
    DTypeFacts{DType::kF16, "F16", 16},
    DTypeFacts{DType::kBF16, "BF16", 16},
    DTypeFacts{DType::kI32, "I32", 32},
    DTypeFacts{DType::kU32, "U32", 32},
    DTypeFacts{DType::kF32, "F32", 32},
    DTypeFacts{DType::kC64, "C64", 64},
    DTypeFacts{DType::kF64, "F64", 64},
    DTypeFacts{DType::kI64, "I64", 64},
    DTypeFacts{DType::kU64, "U64", 64},
    in_blocks(DType::kQ4_0),
    in_blocks(DType::kQ4_1),
    in_blocks(DType::kQ5_0),
    in_blocks(DType::kQ5_1),
    in_blocks(DType::kQ8_0),
    in_blocks(DType::kQ2_K),
    in_blocks(DType::kQ3_K),
    in_blocks(DType::kQ4_K),
    in_blocks(DType::kQ5_K),
    in_blocks(DType::kQ6_K),
    in_blocks(DType::kIQ4_NL),
    in_blocks(DType::kIQ4_XS),
    in_blocks(DType::kMXFP4),
};

constexpr bool table_follows_enum() {
  for (size_t i = 0; i < kDTypes.size(); ++i) {
    if (static_cast<size_t>(kDTypes[i].dtype) != i) return false;
  }
  return true;
}
static_assert(table_follows_enum(), "kDTypes is indexed by DType");

}  // namespace

std::optional<DType> find_dtype(std::string_view name) {
  const auto found = std::ranges::find_if(
      kDTypes, [&](const DTypeFacts& facts) { return facts.bits > 0 && facts.name == name; });
  return found == kDTypes.end() ? std::nullopt : std::optional(found->dtype);
}

DType dtype_of(GgufType type) {
  if (type == GgufType::kF32) return DType::kF32;
  if (type == GgufType::kF16) return DType::kF16;
  if (type == GgufType::kBF16) return DType::kBF16;
  return std::ranges::find(kBlockTypes, type, &std::pair<DType, GgufType>::second)->first;
}

std::optional<GgufType> block_type(DType dtype) {
  const auto found = std::ranges::find(kBlockTypes, dtype, &std::pair<DType, GgufType>::first);
  return found == kBlockTypes.end() ? std::nullopt : std::optional(found->second);
}

std::string_view dtype_name(DType dtype) {
  if (const auto blocks = block_type(dtype)) return gguf_type(*blocks).name;
  return kDTypes[static_cast<size_t>(dtype)].name;
}

int dtype_bits(DType dtype) {
  return kDTypes[static_cast<size_t>(dtype)].bits;
}

std::string describe_tensor(DType dtype, std::span<const int64_t> shape) {
  constexpr size_t kMaxExtents = 8;  // more than any model's tensor has
  return fmt::format("{} [{}{}]", dtype_name(dtype),
                     fmt::join(shape.first(std::min(shape.size(), kMaxExtents)), ", "),
                     shape.size() > kMaxExtents ? ", ..." : "");
}

}  // namespace soliton
