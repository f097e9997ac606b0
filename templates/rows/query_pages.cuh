// Whole pages of keys and values by wgmma: the four warps of a warpgroup multiply the page together, each for a tile of queries of
// its own.
#pragma once

#include "rows/query_softmax.cuh"

namespace soliton::rows {

template <const KernelPlan& kPlan>
SOLITON_DEVICE void QueryState<kPlan>::begin_scores(const unsigned char* shared, int keys, PageScores& scores,
                                                    int lane) const {
  static_assert(kKvParts == 1 && kShares == 1, "operands lie at one distance, and a warp has all dims");
  const CoreMatrices k(shared + keys);
  SOLITON_UNROLL
  for (float& score : scores) score = 0.0f;
  SOLITON_UNROLL
  for (int set = 0; set < kParts * kQuerySets; ++set) {
    if (set > 0) warpgroup_wait(scores);
    constexpr int kOfSet = kSteps / kQuerySets;
    const int first = set % kQuerySets * kOfSet;
    uint4 queries[kOfSet];
    SOLITON_UNROLL
    for (int i = 0; i < kOfSet; ++i)
      queries[i] = kHeld > 0 ? held_[first + i] : load_query(set / kQuerySets, first + i, lane);
    warpgroup_fence();
    SOLITON_UNROLL
    for (int i = 0; i < kOfSet; ++i) {
      warpgroup_multiply_f16<kCoreBytes, kKv.key_stride()>(scores, queries[i],
                                                           k.behind((first + i) * 2 * kCoreBytes));
    }
    warpgroup_commit();
  }
}

/// Makes room for the scores of the next page. All that depends on how large they are is done here: nothing branches
/// while products are made.
template <const KernelPlan& kPlan>
template <class Position>
SOLITON_DEVICE void QueryState<kPlan>::take_scores(const PageScores& page, TileScores& scores,
                                                   const Variant<kPlan>& variant, const Places& places,
                                                   const Position& position) {
  take_changed(page, scores, variant, places, position);
  raise_maxima(scores);
}

/// The same of a page of which queries see some tokens: bits of its tiles, as Tokens has them.
template <const KernelPlan& kPlan>
template <class Position>
SOLITON_DEVICE void QueryState<kPlan>::take_some_scores(const PageScores& page, TileScores& scores,
                                                        uint32_t seen, const Variant<kPlan>& variant,
                                                        const Places& places, const Position& position) {
  take_changed(page, scores, variant, places, position);
  SOLITON_UNROLL
  for (int t = 0; t < kPageTiles; ++t) hide_tile(seen >> 8 * t, scores[t]);
  raise_maxima(scores);
}

template <const KernelPlan& kPlan>
SOLITON_DEVICE void QueryState<kPlan>::add_values(const unsigned char* shared, int values,
                                                  const PageWeights& weights) {
  const CoreMatrices v(shared + values);
  auto& outputs = reinterpret_cast<float(&)[8 * kOutputSteps]>(output_);
  warpgroup_fence();
  SOLITON_UNROLL
  for (int i = 0; i < kPageTiles * kParts; ++i) {
    warpgroup_multiply_f16<kCoreBytes, kKv.kValueStride>(outputs, weights[i / kParts][i % kParts],
                                                         v.behind(i / kParts * kKv.part_bytes()));
  }
  warpgroup_commit();
  warpgroup_wait(outputs);
}

/// The scores of a page, as the variant has them.
template <const KernelPlan& kPlan>
template <class Position>
SOLITON_DEVICE void QueryState<kPlan>::take_changed(const PageScores& page, TileScores& scores,
                                                    const Variant<kPlan>& variant, const Places& places,
                                                    const Position& position) {
  SOLITON_UNROLL
  for (int i = 0; i < 8 * kPageTiles; ++i) scores[i / 8][i / 4 % 2][i % 4] = page[i];
  change(scores, variant, places, position);
}

}  // namespace soliton::rows
