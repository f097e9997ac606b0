// Attention of the rows of a tree, where warpgroups multiply pages by wgmma: a warpgroup's pages of an item, each by four query
// tiles.
#pragma once

#include "rows/attention.cuh"
#include "rows/query_pages.cuh"

namespace soliton::rows {

/// The item's whole pages, or all and those of new tokens, of which a warpgroup has every role.parts-th, if it `works` at all. `slot`:
/// of the first page; returns the one behind the last.
template <const KernelPlan& kPlan>
SOLITON_DEVICE int Attention<kPlan>::add_pages(PageStream<kPlan>& stream, const Role& role, const Pass& pass,
                                               bool works, int slot, const Queries& queries,
                                               State& state) const {
  static_assert(kSlots == 1, "a slot has all keys of a page, or all values");
  const auto take = [&] {
    const int taken = slot;
    if (pass.is_first) stream.wait();
    slot = behind(slot, 1);
    return taken;
  };
  const auto leave = [&](int taken) {
    if (pass.is_last) stream.release(taken);
  };
  const auto skip = [&](int pages) {
    SOLITON_NO_UNROLL
    for (int i = 0; i < 2 * pages; ++i) leave(take());
  };
  const int parts = kPolicy.divides_tokens ? role.parts : 1;
  const int part = kPolicy.divides_tokens ? role.part : 0;
  const int all = role.whole + role.new_pages;
  const int before = works && part < all ? part : all;
  int left = (all - before + parts - 1) / parts;  // pages of this warpgroup
  const int behind_last = all - before - (left - 1) * parts - 1;
  skip(before);
  if (left == 0) return slot;
  typename State::PageScores scores;
  typename State::TileScores own;
  typename State::PageWeights weights;
  int keys;
  const auto begin_page = [&] {
    keys = take();
    state.begin_scores(context_.shared, page_at(keys), scores, context_.lane);
  };
  const auto take_scores = [&] {
    const int page = all - 1 - behind_last - (left - 1) * parts;
    const auto position = [&](int t, int i) {
      const int token = t * kTailTokens + State::token(context_.lane, i);
      if (kAllTogether && left <= role.new_pages)
        return position_of_new(queries, role.new_pages - left, token);
      return queries.places.first_key + page * kKvPageTokens + token;
    };
    const bool hides = Variant<kPlan>::kHidesKeys && page * kKvPageTokens < queries.hidden;
    if ((kAllTogether && left <= role.new_pages + 1) || hides) {
      const bool is_new = kAllTogether && left <= role.new_pages;
      const uint32_t seen =
          is_new ? seen_of_new(queries, role.new_pages - left) : seen_of_cached(queries, page);
      state.take_some_scores(scores, own, seen, queries.variant, queries.places, position);
    } else {
      state.take_scores(scores, own, queries.variant, queries.places, position);
    }
  };
  begin_page();
  warpgroup_wait(scores);
  SOLITON_NO_UNROLL
  for (; left > 1; --left) {
    leave(keys);
    const int values = take();
    take_scores();
    if (kOverlaps) {
      skip(parts - 1);
      begin_page();
    }
    state.weigh_raised(own, weights);
    state.add_values(context_.shared, page_at(values), weights);
    leave(values);
    if (!kOverlaps) {
      skip(parts - 1);
      begin_page();
    }
    warpgroup_wait(scores);
  }
  leave(keys);
  const int values = take();
  take_scores();
  state.weigh_raised(own, weights);
  state.add_values(context_.shared, page_at(values), weights);
  leave(values);
  skip(behind_last);
  return slot;
}

}  // namespace soliton::rows
