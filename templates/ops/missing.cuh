// Several rows: words that say themselves that they have arrived, kMissing until they are written.
#pragma once

#include "layout/phase.h"
#include "primitives/primitives.h"

namespace soliton {

SOLITON_DEVICE bool is_missing(float value) {
  return float_bits(value) == kMissing;
}
SOLITON_DEVICE bool is_missing(float4 v) {
  return is_missing(v.x) || is_missing(v.y) || is_missing(v.z) || is_missing(v.w);
}
SOLITON_DEVICE bool is_missing(uint2 v) {
  return v.x == kMissing || v.y == kMissing;
}
SOLITON_DEVICE bool is_missing(uint4 v) {
  return v.x == kMissing || v.y == kMissing || v.z == kMissing || v.w == kMissing;
}

/// A value that may be published: never the pattern that means "missing".
SOLITON_DEVICE float publishable(float value) {
  return is_missing(value) ? float_from_bits(kCanonicalNan) : value;
}
/// The same of two bf16.
SOLITON_DEVICE uint32_t publishable(uint32_t pair) {
  return pair == kMissing ? kCanonicalNan : pair;
}

}  // namespace soliton
