// Tags: the two lowest bits of every word that CTAs exchange say which use of its place it belongs to, so that a reader
// knows what it waits for from what lies there since the use before. Why that is enough stands in templates/README.md
// ("Between CTAs"); the verifier proves it for every plan.
#pragma once

#include <cstdint>

#include "layout/target.h"

namespace soliton {

constexpr uint32_t kTagMask = 3;
constexpr int kTagBits = 2;
constexpr uint32_t kTags = 3;  // 1, 2, 3; a fresh workspace holds zeros, which are none

/// Of the `use`-th use of a place in a launch, from 0. Neighbouring uses differ, and so do every second ones.
SOLITON_HOST_DEVICE constexpr uint32_t tag_of(uint32_t use) {
  return 1 + use % kTags;
}

/// The same of partial sums, whose places several phases use and not all of them all places: so there are more tags, in three
/// bits. Fresh places have all bits set.
constexpr uint32_t kSumTagMask = 7;
constexpr uint32_t kSumTags = 7;
SOLITON_HOST_DEVICE constexpr uint32_t sum_tag(uint32_t use) {
  return use % kSumTags;
}

}  // namespace soliton
