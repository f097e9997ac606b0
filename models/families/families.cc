#include <array>
#include <utility>

#include "models/families/family.h"

namespace soliton {

// A further family is a further name, that of a file's definition.
#define SOLITON_FAMILIES(each)                                                                               \
  each(kLlama) each(kMistral) each(kQwen2) each(kQwen3) each(kPhi3) each(kQwen3Moe) each(kMixtral)           \
      each(kQwen2Moe) each(kGlm4Moe) each(kOlmoe) each(kGptOss) each(kGemma2) each(kGemma3)                  \
          each(kGemma3Pictures) each(kOlmo2) each(kOlmo3) each(kGranite) each(kGraniteHybrid) each(kSmolLm3) \
              each(kSeedOss) each(kExaone4) each(kGlm4) each(kMinistral) each(kMinistral3) each(kMistral3)   \
                  each(kHunyuan) each(kCohere) each(kCohere2) each(kMpt) each(kMptOriginal) each(kArcee)     \
                      each(kNemotron) each(kStarcoder2)
#define SOLITON_DECLARE(family) extern const Family family;
#define SOLITON_ADDRESS(family) &family,

SOLITON_FAMILIES(SOLITON_DECLARE)

std::span<const Family* const> families() {
  static constexpr std::array kFamilies = {SOLITON_FAMILIES(SOLITON_ADDRESS)};
  return kFamilies;
}

std::optional<std::string_view> what_is_missing_for(std::string_view architecture) {
  constexpr std::pair<std::string_view, std::string_view> kMissing[] = {
      // What the name begins with.
      {"Gemma3n", "embeddings of each layer, AltUp, LAuReL, sparse activations, caches that layers share"},
      {"Gemma4",
       "heads of 512 in some layers, normed values, embeddings of each layer, caches that layers share"},
      {"Llama4", "norms of heads without weights, experts whose inputs are scaled"},
      {"DeepseekV2", "multi-head latent attention"},
      {"DeepseekV3", "multi-head latent attention"},
      {"Qwen3Next", "Gated DeltaNet"},
      {"FalconH1", kStateSpaces},
      {"Bamba", kStateSpaces},
      {"Jamba", kStateSpaces},
      {"Mamba", kStateSpaces},
      {"NemotronH", kStateSpaces},
      {"Zamba", kStateSpaces},
  };
  for (const auto& [name, missing] : kMissing) {
    if (architecture.starts_with(name)) return missing;
  }
  return std::nullopt;
}

}  // namespace soliton
