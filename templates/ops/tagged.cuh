// Words with the tag of their use, see layout/tag.h. A float gives its two lowest bits to it, or three of a partial sum: a
// number changes by less than 2^-21, or 2^-20, of itself, infinities stay, and a NaN as arithmetic makes it stays one.
#pragma once

#include "layout/tag.h"
#include "primitives/primitives.h"

namespace soliton {

template <uint32_t kMask = kTagMask>
SOLITON_DEVICE float with_tag(float value, uint32_t tag) {
  return float_from_bits(and_or(float_bits(value), ~kMask, tag));
}
template <uint32_t kMask = kTagMask>
SOLITON_DEVICE float4 with_tag(float4 v, uint32_t tag) {
  return make_float4(with_tag<kMask>(v.x, tag), with_tag<kMask>(v.y, tag), with_tag<kMask>(v.z, tag),
                     with_tag<kMask>(v.w, tag));
}
/// The two lowest bits of `value` are 0.
SOLITON_DEVICE uint64_t with_tag(uint64_t value, uint32_t tag) {
  return value | tag;
}

template <uint32_t kMask = kTagMask>
SOLITON_DEVICE bool has_tag(float value, uint32_t tag) {
  return ((float_bits(value) ^ tag) & kMask) == 0;
}
template <uint32_t kMask = kTagMask>
SOLITON_DEVICE bool has_tag(float4 v, uint32_t tag) {
  const uint32_t differs =
      (float_bits(v.x) ^ tag) | (float_bits(v.y) ^ tag) | (float_bits(v.z) ^ tag) | (float_bits(v.w) ^ tag);
  return (differs & kMask) == 0;
}
SOLITON_DEVICE bool has_tag(uint64_t value, uint32_t tag) {
  return ((static_cast<uint32_t>(value) ^ tag) & kTagMask) == 0;
}

template <uint32_t kMask = kTagMask>
SOLITON_DEVICE float without_tag(float value) {
  return float_from_bits(float_bits(value) & ~kMask);
}
template <uint32_t kMask = kTagMask>
SOLITON_DEVICE float4 without_tag(float4 v) {
  return make_float4(without_tag<kMask>(v.x), without_tag<kMask>(v.y), without_tag<kMask>(v.z),
                     without_tag<kMask>(v.w));
}
SOLITON_DEVICE uint64_t without_tag(uint64_t value) {
  return value & ~uint64_t{kTagMask};
}

}  // namespace soliton
