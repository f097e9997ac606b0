// Attention of the rows of a tree: the partial results of this CTA's items (layout/tree.h).
// attention_roles.cuh schedules: which workers take which tiles of an item; attention_pages.cuh has warpgroups take whole pages;
// attention_tokens.cuh masks: which tokens a tile meets, and which of them its queries see; query_state.cuh and query_pages.cuh
// multiply; query_partials.cuh hands over and writes.
//
// The pages of an item are read once. With up to 8 query tiles (or shares of them) each worker has one of its own, or 2, 4
// or 8 workers take one together, each every second, fourth or eighth 32 tokens: their parts are merged at the end. With
// more, an item's pages stay in the ring until all query tiles have been through them: the planner keeps such items short
// enough. Workers that an item does not need pass its pages and go on to the next item, which begins with the worker
// behind the last one of the item before.
//
// Where warpgroups multiply pages by wgmma, items of many query tiles, or of many tokens, are whole warpgroups': of four
// tiles, or of what is there of them, each page is one warpgroup's. What is behind the last whole page, and the step's own
// tokens, they do as others do.
#pragma once

#include "rows/page_stream.cuh"
#include "rows/query_partials.cuh"

namespace soliton::rows {

template <const KernelPlan& kPlan>
class Attention {
  using State = QueryState<kPlan>;
  using FirstSeen = typename State::FirstSeen;

 public:
  SOLITON_DEVICE Attention(Context<kPlan>& context, int worker) : context_(context), worker_(worker) {}

  /// The items of this CTA: their partial results. `begin` waits for the phase to begin, and is called once.
  template <class Begin>
  SOLITON_DEVICE void attend(PageStream<kPlan>& stream, int layer, const Begin& begin);

 private:
  static constexpr KvShape kKv = kPlan.model.kv();
  static constexpr int kSlots = kKv.slots_per_half();
  static constexpr int kSlotTiles = kKv.slot_tokens() / kTailTokens;
  static constexpr int kPageUnits = State::kPageTiles / State::kTogether;
  static constexpr RowsPolicy kPolicy = kShape<kPlan>;

  /// Where the phase stands.
  struct Phase {
    Variant<kPlan> variant;
    ItemPlaces<kPlan> places;
    int first_worker = 0;            // of the next item
    uint32_t unmerged = kItemSlots;  // items since parts were merged
  };

  /// What a worker does of an item. Workers that share a query tile (or a share of its dims) take turns at its tokens.
  struct Role {
    bool has_work;  // has the item any?
    bool is_own;    // and this worker?
    bool together;  // do its warpgroup's workers attend to pages together?
    int whole;      // pages of which they do: whole ones, or all
    int new_pages;  // and pages of new tokens
    int pages;      // of the cache
    int units;      // of tokens that are added at once
    int shares;     // query tiles, or shares of them
    int parts;      // of each share; a worker has one of them
    int part;
    int at_once;  // shares that workers are found for, rounded up to a power of two
    int share;    // of these
    int place;    // of the item, in shared memory
  };
  /// The same in few registers.
  struct PackedRole {
    uint32_t words[2];
    int place;
  };
  static constexpr int kPagesBits = 23;
  static constexpr int kMostNewPages = 31;
  static_assert(kPlan.rows / kKvPageTokens < kMostNewPages, "rows may begin within a page");
  static_assert(!(kPlan.ends_rows() && Variant<kPlan>::kStarts), "who ends rows starts softmax at nothing");
  static SOLITON_DEVICE PackedRole pack(const Role& role);
  static SOLITON_DEVICE Role unpack(const PackedRole& packed);

  static constexpr bool kTogether = kPlan.attends_together();
  /// All items, and of these all tokens: new ones come in pages too.
  static constexpr bool kAllTogether = kPlan.streams_new_tokens();
  /// It takes the ring to hold values, the other warpgroup's page and the keys of the next.
  static constexpr bool kOverlaps = kPlan.ring_slots >= 4 && kPolicy.overlaps_pages;
  /// What rows other than those of a tile there are has no say where bits must not depend on it.
  static SOLITON_DEVICE bool attends_together(const TreeItem& item, int shares, int whole) {
    if (!kTogether) return false;
    if (kAllTogether) return true;
    return whole >= (item.undivided == 0 && shares >= kPolicy.many_shares ? 1 : kPolicy.whole_pages) &&
           (item.undivided != 0 || shares >= kPolicy.few_shares);
  }

  SOLITON_DEVICE PackedRole look_at(int first, Phase& phase) const;
  SOLITON_DEVICE void pass(PageStream<kPlan>& stream, const Role& role);
  template <class Begin>
  SOLITON_DEVICE void take_part(PageStream<kPlan>& stream, const Role& role, Phase& phase, int index,
                                const Begin& begin);
  /// How often the pages of an item go by is more than once if not all query tiles find a worker at once.
  struct Pass {
    bool is_first;  // pages have to be waited for
    bool is_last;   // and are released
  };
  /// Of a query tile of an item what says which tokens they see.
  struct Queries {
    const Variant<kPlan>& variant;
    int item;
    int tile;
    int hidden;  // of the item's first cached tokens, that not all of them see
    typename State::Places places;
  };
  SOLITON_DEVICE int add_pages(PageStream<kPlan>& stream, const Role& role, const Pass& pass, bool works,
                               int slot, const Queries& queries, State& state) const;
  SOLITON_DEVICE typename State::Tokens tokens_of(const Queries& queries, int query_tile, const Role& role,
                                                  int unit, int slot) const;
  SOLITON_DEVICE typename State::Places places_of(const Variant<kPlan>& variant, int index,
                                                  int query_tile) const;
  /// Of a row that may be one behind the last.
  SOLITON_DEVICE int position_of_row(int row) const { return row < kPlan.rows ? context_.position(row) : 0; }
  SOLITON_DEVICE int position_of_new(const Queries& queries, int page, int token) const;
  SOLITON_DEVICE int hidden_tokens(const Variant<kPlan>& variant, int index, int query_tile) const;
  SOLITON_DEVICE FirstSeen first_seen_of(const Variant<kPlan>& variant, const TreeItem& item,
                                         int query_tile) const;
  /// The row of the first of this lane's queries of a tile, and of the second.
  static SOLITON_DEVICE int row_of(int query) { return query / kPlan.model.group(); }
  /// Offset of a slot in shared memory.
  static SOLITON_DEVICE int page_at(int slot) {
    return kPlan.regions[static_cast<int>(RegionId::kPages)].offset + slot * kPlan.slot_bytes;
  }
  SOLITON_DEVICE uint32_t seen_of_new(const Queries& queries, int page) const;
  SOLITON_DEVICE uint32_t seen_of_cached(const Queries& queries, int page) const;
  SOLITON_DEVICE uint32_t seen_of_fresh(const Variant<kPlan>& variant, const TreeItem& item, int query_tile,
                                        int base) const;
  SOLITON_DEVICE void merge_parts(State& state, const Role& role);
  SOLITON_DEVICE void wait_item(uint32_t turn) const {
    context_.wait(context_.barrier(BarrierId::kItemDone, turn % kItemSlots), turn / kItemSlots & 1,
                  WaitKind::kItemDone, turn);
  }
  /// Parts that are handed over in a round are those of [half, 2 half); in the first they lie at [0, half). Only where there
  /// is place for four shares may there be fewer, and then parts are handed over once: nobody waits for the place left.
  static SOLITON_DEVICE uint32_t places_used(const Role& role) {
    uint32_t used = 0;
    SOLITON_UNROLL
    for (int round = 0; round < kMergeRounds; ++round) {
      const int half = role.parts >> (round + 1);
      const uint32_t places = (1u << half * role.shares) - 1;
      used |= places << ((round == 0 ? 0 : half * role.shares) + round * kPartPlaces);
    }
    return used;
  }
  static SOLITON_DEVICE int behind(int slot, int count) {
    const int at = slot + count;
    return at < kPlan.ring_slots ? at : at - kPlan.ring_slots;
  }

  Context<kPlan>& context_;
  int worker_;
  uint32_t items_ = 0;
  uint32_t parts_parity_ = 0;  // a bit for each barrier of parts_full
};

template <const KernelPlan& kPlan>
template <class Begin>
SOLITON_DEVICE void Attention<kPlan>::attend(PageStream<kPlan>& stream, int layer, const Begin& begin) {
  Phase phase = {.variant = Variant<kPlan>(layer), .places = {}};
  const int end = context_.end_item();
  int first = context_.first_item();
  PackedRole packed = look_at(first, phase);  // a lane's item
  bool has_begun = false;
  const auto begin_once = [&] {
    if (!has_begun) begin();
    has_begun = true;
  };
  if (!kPolicy.looks_ahead) begin_once();
  SOLITON_NO_UNROLL
  for (int i = first; i < end; ++i) {
    if (i - first == kWarpLanes) {
      first = i;
      packed = look_at(first, phase);
    }
    const int lane = i - first;
    const Role role = unpack(
        {{shuffle(packed.words[0], lane), shuffle(packed.words[1], lane)}, shuffle(packed.place, lane)});
    if (!role.has_work) continue;
    // A worker further ahead of another would be two phases off its parity.
    if (items_ >= kItemSlots) wait_item(items_ - kItemSlots);
    if (role.is_own) {
      take_part(stream, role, phase, i, begin_once);
    } else {
      begin_once();
      pass(stream, role);
    }
    if (kPolicy.divides_tokens && role.parts > 1) {
      phase.unmerged = 0;
      parts_parity_ ^= places_used(role);
    }
    warp_arrive(&context_.barrier(BarrierId::kItemDone, items_ % kItemSlots));
    ++items_;
    ++phase.unmerged;
  }
  begin_once();
}

/// Of an item that other workers do.
template <const KernelPlan& kPlan>
SOLITON_DEVICE void Attention<kPlan>::pass(PageStream<kPlan>& stream, const Role& role) {
  SOLITON_NO_UNROLL
  for (int i = 0; i < 2 * kSlots * (role.pages + role.new_pages); ++i) stream.release(stream.wait());
}

template <const KernelPlan& kPlan>
template <class Begin>
SOLITON_DEVICE void Attention<kPlan>::take_part(PageStream<kPlan>& stream, const Role& role, Phase& phase,
                                                int index, const Begin& begin) {
  // Do all query tiles find a worker at once? Else the pages stay where they are, and are passed again.
  constexpr bool kOnePass = kPlan.max_query_tiles * State::kShares <= kWorkers;
  const int page_units = role.pages * kPageUnits;
  const int whole_units = kTogether ? role.whole * kPageUnits : 0;
  const int first_slot = stream.next();
  SOLITON_NO_UNROLL
  for (int first = 0; first < (kOnePass ? 1 : role.shares); first += kWorkers) {
    const bool is_last = kOnePass || role.shares - first <= kWorkers;
    const int share = first + role.share;
    const bool works = (kOnePass && !kTogether) || share < role.shares;
    const int query_tile = share / State::kShares;
    State state(context_.shared + role.place + (works ? query_tile : 0) * kQkv<kPlan>.query_tile_bytes(),
                share % State::kShares);
    const int own_tile = works ? query_tile : 0;
    // Which tokens they see follows from the step alone: it may be known by the time that they have come.
    bool has_queries = false;
    const auto wait_queries = [&] {
      if (has_queries) return;
      has_queries = true;
      begin();
      context_.wait(context_.barrier(BarrierId::kQueryFull, items_ % kItemSlots), items_ / kItemSlots & 1,
                    WaitKind::kQueryFull, items_);
      warp_sync();
      state.hold_queries(context_.lane);
    };
    if (!kPolicy.looks_ahead) wait_queries();
    Queries queries = {phase.variant, index, own_tile, hidden_tokens(phase.variant, index, own_tile),
                       places_of(phase.variant, index, own_tile)};
    int next = works ? whole_units + role.part : role.units;  // unit that this worker takes
    int slot = first_slot;
    if constexpr (kTogether) {
      const bool group_works = share / kGroupWarps * kGroupWarps < role.shares;
      if (role.whole + role.new_pages > 0) {
        wait_queries();
        slot = add_pages(stream, role, {first == 0, is_last}, group_works, slot, queries, state);
      }
      // Once more: whole pages keep no more of it than their scores want.
      if constexpr (State::kPlaced) queries.places = places_of(phase.variant, opaque(index), own_tile);
    }
    SOLITON_NO_UNROLL
    for (int unit = whole_units; !kAllTogether && unit < role.units; ++unit) {
      const bool in_page = unit < page_units;
      const bool is_own = unit == next;
      typename State::Tokens tokens = {};
      if (kPolicy.looks_ahead && is_own) tokens = tokens_of(queries, query_tile, role, unit, slot);
      if (in_page && unit % kPageUnits == 0 && first == 0) {
        begin();  // before that a slot may be two phases off its parity
        SOLITON_UNROLL
        for (int i = 0; i < 2 * kSlots; ++i) stream.wait();
      }
      if (is_own) {
        if (!kPolicy.looks_ahead) tokens = tokens_of(queries, query_tile, role, unit, slot);
        next += role.parts;
        wait_queries();
        const auto position = [&](int t, int i) {
          const int first = State::kPlaced ? tokens.first_key[t] : 0;
          const int token = State::token(context_.lane, i);
          return first >= 0 ? first + token : position_of_row(token - 1 - first);
        };
        state.add(context_.shared, tokens, phase.variant, queries.places, position, context_.lane);
      }
      if (in_page && (unit % kPageUnits == kPageUnits - 1 || unit == role.units - 1)) {
        if (is_last) {
          SOLITON_UNROLL
          for (int i = 0; i < 2 * kSlots; ++i) stream.release(behind(slot, i));
        }
        slot = behind(slot, 2 * kSlots);
      }
    }
    state.end_tokens();
    if (kPolicy.divides_tokens && role.parts > 1 && works) {
      wait_queries();
      // The parts of the item before have been read.
      if (phase.unmerged < kItemSlots) wait_item(items_ - phase.unmerged);
      merge_parts(state, role);
    }
    if (works && role.part == 0) {
      const TreeItem item = context_.item(opaque(index));
      if (kPlan.ends_rows() && item.first_partial < 0) {
        state.write_last(context_, item, query_tile);
      } else {
        state.write(item, query_tile, context_.params.partials, context_.lane);
      }
    }
  }
}

/// Adds the parts of a query tile that several workers share to that of part 0: each time the rear half hands its parts
/// to the front half, which adds them. At most once an item, at its end.
template <const KernelPlan& kPlan>
SOLITON_DEVICE void Attention<kPlan>::merge_parts(State& state, const Role& role) {
  // Who hands over a part that it has been adding to puts it where it found what it added first.
  int half = role.parts / 2;
  SOLITON_NO_UNROLL
  for (int round = 0; half > 0; ++round) {
    const bool gives = role.part >= half && role.part < 2 * half;
    const int at = round == 0 && gives   ? role.part - half
                   : round > 0 && !gives ? role.part + half
                                         : role.part;
    const int number = round * kPartPlaces + at * role.at_once + role.share;
    Barrier& full = context_.barrier(BarrierId::kPartsFull, number);
    float4* place = reinterpret_cast<float4*>(context_.region(RegionId::kTiles) - kPlan.lent_bytes() +
                                              (at * role.at_once + role.share) * kPlan.query_part_bytes());
    if (gives) {
      state.give_part(place, context_.lane);
      warp_arrive(&full);  // pairs with the wait of the worker that adds it
      return;
    }
    context_.wait(full, parts_parity_ >> number & 1, WaitKind::kPartsFull, number);
    warp_sync();
    state.take_part(place, context_.lane);
    half /= 2;
  }
}

}  // namespace soliton::rows
