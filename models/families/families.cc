#include <array>

#include "models/families/family.h"

namespace soliton {

// A further family is a further name, that of a file's definition.
#define SOLITON_FAMILIES(each)                                                                             \
  each(kLlama) each(kMistral) each(kQwen2) each(kQwen3) each(kPhi3) each(kQwen3Moe) each(kMixtral)         \
      each(kQwen2Moe) each(kGlm4Moe) each(kOlmoe) each(kGptOss) each(kGemma2) each(kGemma3)                \
          each(kGemma3Pictures) each(kOlmo2) each(kOlmo3) each(kGranite) each(kSmolLm3) each(kSeedOss)     \
              each(kExaone4) each(kGlm4) each(kMinistral) each(kMinistral3) each(kMistral3) each(kHunyuan) \
                  each(kCohere) each(kCohere2) each(kMpt) each(kMptOriginal) each(kArcee) each(kNemotron)  \
                      each(kStarcoder2)
#define SOLITON_DECLARE(family) extern const Family family;
#define SOLITON_ADDRESS(family) &family,

SOLITON_FAMILIES(SOLITON_DECLARE)

std::span<const Family* const> families() {
  static constexpr std::array kFamilies = {SOLITON_FAMILIES(SOLITON_ADDRESS)};
  return kFamilies;
}

}  // namespace soliton
