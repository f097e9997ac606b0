// Where the norms of the residual stream stand: before a block (attention, or the feed-forward network) reads it, behind
// what the block gives, before that is added to the stream, or in both places.
//
// They are RMS norms. LayerNorm subtracts the mean first, and is an RMS norm of a stream whose mean is 0: so where it is
// meant, the embedding and what blocks give lose their means before they become the stream.
#pragma once

#include <cstdint>
#include <iterator>
#include <string_view>

#include "layout/target.h"

namespace soliton {

enum class NormPlacement : int32_t {
  kBefore = 0,    // Llama
  kAround = 1,    // Gemma 2
  kAfter = 2,     // OLMo 2
  kParallel = 3,  // Cohere: LayerNorm before both blocks, which read the same of the stream
  kCentred = 4,   // MPT: LayerNorm before each block
};

/// As models/*.yaml call them, by enumerator.
constexpr const char* kNormPlacementNames[] = {"before", "around", "after", "parallel", "centred"};

/// The enumerator of a name; -1: none.
constexpr int32_t find_norm_placement(std::string_view name) {
  for (int32_t i = 0; i < static_cast<int32_t>(std::size(kNormPlacementNames)); ++i) {
    if (name == kNormPlacementNames[i]) return i;
  }
  return -1;
}

SOLITON_HOST_DEVICE constexpr bool norms_before(NormPlacement norms) {
  return norms != NormPlacement::kAfter;
}
SOLITON_HOST_DEVICE constexpr bool norms_after(NormPlacement norms) {
  return norms == NormPlacement::kAround || norms == NormPlacement::kAfter;
}
/// Do what the stream begins with, and what blocks give, lose their means?
SOLITON_HOST_DEVICE constexpr bool subtracts_means(NormPlacement norms) {
  return norms == NormPlacement::kParallel || norms == NormPlacement::kCentred;
}
/// Does the feed-forward network read what attention has read, once more? Its row of the norms is then the same.
SOLITON_HOST_DEVICE constexpr bool is_parallel(NormPlacement norms) {
  return norms == NormPlacement::kParallel;
}
/// Is something to be known of all that a block gives before it is added: the factor of its norm, or its mean?
SOLITON_HOST_DEVICE constexpr bool holds_blocks(NormPlacement norms) {
  return norms_after(norms) || subtracts_means(norms);
}

/// Norms of a layer stand in the order in which they are applied. Who reads the residual stream names the row of its own norm,
/// or, where it has none, the row that this would have: the one before is that of the block whose output is added first.
constexpr int norms_of_layer(NormPlacement norms) {
  return norms == NormPlacement::kAround ? 4 : 2;
}

}  // namespace soliton
