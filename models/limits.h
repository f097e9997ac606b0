// The one set of limits of what a model may be: well above any model of today, and well below what overflows, so that
// byte counts of a layer stay in 64 bits.
#pragma once

#include <array>

#include "models/ranges.h"

namespace soliton {

inline constexpr IntegerRange kHiddenLimit = {.min = 64, .max = 65536, .multiple_of = 64};
inline constexpr IntegerRange kFfnLimit = {.min = 64, .max = 262144, .multiple_of = 64};
inline constexpr IntegerRange kExpertsLimit = {.min = 2, .max = 512};
inline constexpr IntegerRange kChosenExpertsLimit = {.min = 1, .max = 16};
inline constexpr IntegerRange kSharedExpertsLimit = {.min = 0, .max = 16};
inline constexpr NumberRange kRouterScaleLimit = {.min = 0, .max = 1024, .open = true};
inline constexpr IntegerRange kLayersLimit = {.min = 1, .max = 1024};
inline constexpr IntegerRange kHeadsLimit = {.min = 1, .max = 1024};
inline constexpr IntegerRange kVocabularyLimit = {.min = 1, .max = 1 << 24};
inline constexpr IntegerRange kContextLimit = {.min = 1, .max = 1 << 22};
inline constexpr NumberRange kNormEpsilonLimit = {.min = 0, .max = 0.1, .open = true};
inline constexpr NumberRange kScaleLimit = {.min = 0, .max = 65536, .open = true};  // and of soft caps
inline constexpr NumberRange kAlibiLimit = {.min = 0, .max = 64, .open = true};
inline constexpr NumberRange kQueryScaleLimit = {.min = 0, .max = 1024};
inline constexpr NumberRange kRopeThetaLimit = {
    .min = 1, .max = 1e12, .open = true};  // 1 turns all pairs alike
inline constexpr IntegerRange kRopeDimsLimit = {.min = 2, .max = 256, .multiple_of = 2};
inline constexpr NumberRange kRopeFactorLimit = {.min = 1, .max = 1024};
inline constexpr NumberRange kRopePairFactorLimit = {.min = 1e-3, .max = 1e6};  // of longrope
inline constexpr NumberRange kRopeFreqFactorLimit = {.min = 0, .max = 1024, .open = true};
inline constexpr NumberRange kRopeBetaLimit = {.min = 0, .max = 65536, .open = true};
inline constexpr NumberRange kRopeAttentionFactorLimit = {.min = 0, .max = 64, .open = true};

inline constexpr std::array kIntegerBits = {4, 5, 6, 8};  // of a quantised weight
inline constexpr std::array kWeightBits = {4, 5, 6, 8, 16};
inline constexpr std::array kFurtherBits = {0, 4, 5, 6, 8, 16};     // 0: there are no others
inline constexpr std::array kWeightGroups = {-1, 16, 32, 64, 128};  // -1: all columns of a row
inline constexpr std::array kFurtherGroups = {0, 16, 32, 64, 128};
inline constexpr std::array kWeightBlocks = {0, 256};
inline constexpr std::array kKvBits = {8, 16, 32};
inline constexpr std::array kHeadDims = {64, 96, 128, 256};
inline constexpr std::array kNoOrYes = {0, 1};

}  // namespace soliton
