// Attention of the rows of a tree: which workers take which tiles and tokens of an item. It follows from the step and the
// items alone, so every worker finds it by itself.
//
//   query tiles   at once  parts of each   rank of a worker among the item's: its tile, its part
//   1                1          8           0..7: tile 0, every 8th unit of tokens
//   2                2          4           rank & 1: tile, rank >> 1: part
//   3, 4             4          2           rank & 3: tile, rank >> 2: part
//   5 or more        8          1           rank: tile, and tiles 8 further on in the next pass
#pragma once

#include "rows/attention.cuh"

namespace soliton::rows {

template <const KernelPlan& kPlan>
SOLITON_DEVICE typename Attention<kPlan>::PackedRole Attention<kPlan>::pack(const Role& role) {
  const auto bit = [](bool is_set, int at) { return static_cast<uint32_t>(is_set) << at; };
  return {{static_cast<uint32_t>(role.pages) | static_cast<uint32_t>(role.new_pages) << kPagesBits |
               bit(role.whole < role.pages, 28) | bit(role.together, 29) | bit(role.has_work, 30) |
               bit(role.is_own, 31),
           static_cast<uint32_t>(role.units - role.pages * kPageUnits + kPageUnits) |
               static_cast<uint32_t>(role.shares) << 8 | static_cast<uint32_t>(role.parts) << 16 |
               static_cast<uint32_t>(role.part) << 20 | static_cast<uint32_t>(role.at_once) << 24 |
               static_cast<uint32_t>(role.share) << 28},
          role.place};
}

template <const KernelPlan& kPlan>
SOLITON_DEVICE typename Attention<kPlan>::Role Attention<kPlan>::unpack(const PackedRole& packed) {
  const uint32_t a = packed.words[0];
  const uint32_t b = packed.words[1];
  const int pages = static_cast<int>(a & ((1u << kPagesBits) - 1));
  const bool together = (a >> 29 & 1) != 0;
  return {.has_work = (a >> 30 & 1) != 0,
          .is_own = a >> 31 != 0,
          .together = together,
          .whole = kAllTogether ? pages
                   : together   ? pages - static_cast<int>(a >> 28 & 1)
                                : 0,
          .new_pages = kAllTogether ? static_cast<int>(a >> kPagesBits & kMostNewPages) : 0,
          .pages = pages,
          .units = pages * kPageUnits - kPageUnits + static_cast<int>(b & 0xff),
          .shares = static_cast<int>(b >> 8 & 0xff),
          .parts = static_cast<int>(b >> 16 & 0xf),
          .part = static_cast<int>(b >> 20 & 0xf),
          .at_once = static_cast<int>(b >> 24 & 0xf),
          .share = static_cast<int>(b >> 28),
          .place = packed.place};
}

/// Each lane looks at the item `first` + lane: what this worker does of it follows from the step alone, and need not wait
/// for anything.
template <const KernelPlan& kPlan>
SOLITON_DEVICE typename Attention<kPlan>::PackedRole Attention<kPlan>::look_at(int first,
                                                                               Phase& phase) const {
  static_assert(kPartPlaces == 4 && kWorkers == 8, "4, 2 x 2 and 4 x 1 parts are handed over at once");
  static_assert(kPlan.max_query_tiles * State::kShares < 256);
  const int end = context_.end_item();
  const int lane = context_.lane;
  Role role = {};
  int bytes = 0;
  if (first + lane < end) {
    const TreeItem item = context_.item(first + lane);
    role.has_work = context_.has_work(item);
    if (role.has_work) {
      const ItemParts<kPlan> shape(item, context_.step);
      TreeItem limited = item;
      context_.limit_to_seen(limited, first + lane, phase.variant);
      const int cached = cached_tokens(limited, context_.step);
      bytes = shape.bytes();
      role.pages = ceil_divide(cached, kKvPageTokens);
      role.units = ceil_divide(ceil_divide(cached, kTailTokens) + shape.tail.count, State::kTogether);
      role.new_pages = shape.new_pages.count;
      role.shares = shape.queries.count * State::kShares;
      role.whole = cached / kKvPageTokens;
      // Of all pages where there are windows: bits must not depend on how many of them others' reach.
      const int whole =
          Variant<kPlan>::kHidesKeys ? cached_tokens(item, context_.step) / kKvPageTokens : role.whole;
      role.together = attends_together(item, role.shares, whole);
      role.at_once = role.shares > 4 ? 8 : role.shares > 2 || role.together ? 4 : role.shares;
      role.parts = item.undivided != 0 || !kPolicy.divides_tokens ? 1 : kWorkers / role.at_once;
      const int most = kPolicy.least_units == 1 ? 2 * role.units - 1 : role.units / kPolicy.least_units;
      while (role.parts > 1 && role.parts > most) role.parts /= 2;
    }
  }
  SOLITON_NO_UNROLL
  for (int k = 0; k < kWarpLanes && first + k < end; ++k) {
    const int of_bytes = shuffle(bytes, k);
    const int workers = shuffle(role.at_once * role.parts, k);
    if (of_bytes == 0) continue;
    const int place = phase.places.take(of_bytes);
    if (kTogether && shuffle(static_cast<int>(role.together), k) != 0)
      phase.first_worker = round_up(phase.first_worker, kGroupWarps);
    if (lane == k) {
      const int rank = (worker_ - phase.first_worker) & (kWorkers - 1);
      role.place = place;
      role.share = rank & (role.at_once - 1);
      role.part = role.at_once == 1   ? rank
                  : role.at_once == 2 ? rank >> 1
                  : role.at_once == 4 ? rank >> 2
                                      : 0;
      role.is_own = (role.share < role.shares || role.together) && role.part < role.parts;
    }
    phase.first_worker += workers;
  }
  return pack(role);
}

}  // namespace soliton::rows
