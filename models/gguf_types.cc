#include "models/gguf_types.h"

#include <algorithm>
#include <array>

namespace soliton {
namespace {

using enum GgufType;

constexpr std::array kTypes = {
    GgufTypeFacts{kF32, "F32", 1, 4},         GgufTypeFacts{kF16, "F16", 1, 2},
    GgufTypeFacts{kQ4_0, "Q4_0", 32, 18},     GgufTypeFacts{kQ4_1, "Q4_1", 32, 20},
    GgufTypeFacts{kQ5_0, "Q5_0", 32, 22},     GgufTypeFacts{kQ5_1, "Q5_1", 32, 24},
    GgufTypeFacts{kQ8_0, "Q8_0", 32, 34},     GgufTypeFacts{kQ2_K, "Q2_K", 256, 84},
    GgufTypeFacts{kQ3_K, "Q3_K", 256, 110},   GgufTypeFacts{kQ4_K, "Q4_K", 256, 144},
    GgufTypeFacts{kQ5_K, "Q5_K", 256, 176},   GgufTypeFacts{kQ6_K, "Q6_K", 256, 210},
    GgufTypeFacts{kIQ4_NL, "IQ4_NL", 32, 18}, GgufTypeFacts{kIQ4_XS, "IQ4_XS", 256, 136},
    GgufTypeFacts{kBF16, "BF16", 1, 2},       GgufTypeFacts{kMXFP4, "MXFP4", 32, 17},
};

struct Named {
  uint32_t number;
  std::string_view name;
};

/// Those that are not read.
constexpr std::array kOthers = {
    Named{9, "Q8_1"},   Named{15, "Q8_K"},  Named{16, "IQ2_XXS"}, Named{17, "IQ2_XS"}, Named{18, "IQ3_XXS"},
    Named{19, "IQ1_S"}, Named{21, "IQ3_S"}, Named{22, "IQ2_S"},   Named{24, "I8"},     Named{25, "I16"},
    Named{26, "I32"},   Named{27, "I64"},   Named{28, "F64"},     Named{29, "IQ1_M"},  Named{34, "TQ1_0"},
    Named{35, "TQ2_0"}, Named{40, "NVFP4"}, Named{41, "Q1_0"},
};

}  // namespace

std::optional<GgufTypeFacts> find_gguf_type(uint32_t number) {
  const auto found = std::ranges::find(kTypes, static_cast<GgufType>(number), &GgufTypeFacts::type);
  return found == kTypes.end() ? std::nullopt : std::optional(*found);
}

const GgufTypeFacts& gguf_type(GgufType type) {
  return *std::ranges::find(kTypes, type, &GgufTypeFacts::type);
}

std::string_view gguf_type_name(uint32_t number) {
  if (const auto read = find_gguf_type(number)) return read->name;
  const auto other = std::ranges::find(kOthers, number, &Named::number);
  return other == kOthers.end() ? "a type that is not known" : other->name;
}

}  // namespace soliton
