// Attention of the rows of a tree: the partial results of this CTA's items (layout/tree.h).
//
// Queries of a KV head are packed into tiles of 16, whatever row and head they belong to; a warp takes one
// tile at a time. scores = q k^T, rows are queries, columns are tokens; probabilities turn from accumulators
// into the operand of output = p v without leaving their lane. Keys and values lie in pages in the order of A
// operands (layout/page.h); the halves of such an operand are the two B operands of 16 tokens, or dims.
// Softmax is online, in base 2.
//
// The pages of an item are read once. With up to 8 query tiles (or shares of them) each worker has one of its own, or
// several workers take one together, each every second, third or fourth tile of tokens: their parts are merged at
// the end. With more, an item's pages stay in the ring until all query tiles have been through them: the planner
// keeps such items short enough.
#pragma once

#include "ops/missing.cuh"
#include "rows/page_stream.cuh"

namespace soliton::rows {

/// A tile of queries on its way through tokens, and a share of its output dims: registers hold no more than
/// warp_dims of the plan. Lane 4 g + j holds scores of tokens 2 j and 2 j + 1 and outputs of dims 8 n + 2 j and the next, of
/// queries g and g + 8.
template <const KernelPlan& kPlan>
class QueryState {
 public:
  static constexpr int kHeadDim = kPlan.model.head_dim;
  static constexpr int kParts = kShape<kPlan>.parts;
  static constexpr int kSteps = kHeadDim / kMmaColumns;
  static constexpr int kShares = kPlan.dim_shares();
  static constexpr int kOutputSteps = kSteps / kShares;
  static constexpr int kKvParts = kPlan.model.kv().parts;
  static constexpr int kTileFragments = kKvParts * kSteps * kWarpLanes;  // 16-byte words of a tile of tokens

  /// `queries`: the tile, in shared memory, where it stays: registers hold the outputs, of share `share` of the dims.
  SOLITON_DEVICE QueryState(const unsigned char* queries, int share, int lane)
      : queries_(reinterpret_cast<const uint4*>(queries) + lane), share_(share) {}

  /// The i-th of this lane's tokens.
  static SOLITON_DEVICE int token(int lane, int i) { return i / 2 * 8 + lane % 4 * 2 + i % 2; }

  /// Adds 16 tokens. `sees(half, i)`: does query lane / 4 + 8 half see this lane's i-th token?
  template <class Sees>
  SOLITON_DEVICE void add(const uint4* keys, const uint4* values, int lane, const Sees& sees) {
    float scores[2][4] = {};  // of tokens 0 .. 7 and 8 .. 15
    float rests[2][4] = {};   // of the queries' low part: a chain of mma of its own
    SOLITON_NO_UNROLL
    for (int of_kv = 0; of_kv < kKvParts; ++of_kv) {
      const uint4* own = keys + of_kv * kSteps * kWarpLanes + lane;
      SOLITON_UNROLL
      for (int i = 0; i < kSteps; ++i) {
        const uint4 k = load_shared(own + i * kWarpLanes);
        SOLITON_UNROLL
        for (int part = 0; part < kParts; ++part) {
          const uint4 query = load_shared(queries_ + (part * kSteps + i) * kWarpLanes);
          float(&chain)[2][4] = part == 0 ? scores : rests;
          mma_f16(chain[0], query, make_uint2(k.x, k.z));
          mma_f16(chain[1], query, make_uint2(k.y, k.w));
        }
      }
    }
    float maxima[2];
    SOLITON_UNROLL
    for (int h = 0; h < 2; ++h) {
      maxima[h] = maximum_[h];
      SOLITON_UNROLL
      for (int i = 0; i < 4; ++i) {
        float& score = scores[i / 2][2 * h + i % 2];
        score = sees(h, i) ? (score + rests[i / 2][2 * h + i % 2]) * kPlan.model.score_scale : -INFINITY;
        maxima[h] = score > maxima[h] ? score : maxima[h];
      }
      for (int mask = 1; mask < 4; mask *= 2) {
        const float other = shuffle_xor(maxima[h], mask);
        maxima[h] = other > maxima[h] ? other : maxima[h];
      }
    }
    // After the first tokens a maximum seldom changes.
    if (warp_any(maxima[0] > maximum_[0] || maxima[1] > maximum_[1])) rescale(maxima);
    SOLITON_UNROLL
    for (int h = 0; h < 2; ++h) {
      const float base =
          maximum_[h] == -INFINITY ? 0.0f : maximum_[h];  // nothing seen so far: all weights are 0
      SOLITON_UNROLL
      for (int i = 0; i < 4; ++i) {
        float& score = scores[i / 2][2 * h + i % 2];
        score = exp2_fast(score - base);
        sum_[h] += score;
      }
    }
    uint4 weights[kParts];
    SOLITON_UNROLL
    for (int part = 0; part < kParts; ++part) {
      const auto pack = [&](float* s) {
        const uint32_t packed = pack_f16(s[0], s[1]);
        s[0] -= f16_to_float(static_cast<uint16_t>(packed));  // the next part
        s[1] -= f16_to_float(static_cast<uint16_t>(packed >> 16));
        return packed;
      };
      const uint32_t w[] = {pack(scores[0]), pack(scores[0] + 2), pack(scores[1]), pack(scores[1] + 2)};
      weights[part] = make_uint4(w[0], w[1], w[2], w[3]);
    }
    SOLITON_NO_UNROLL
    for (int of_kv = 0; of_kv < kKvParts; ++of_kv) {
      const uint4* own = values + (of_kv * kSteps + share() * kOutputSteps) * kWarpLanes + lane;
      SOLITON_UNROLL
      for (int i = 0; i < kOutputSteps; ++i) {
        const uint4 v = load_shared(own + i * kWarpLanes);
        SOLITON_UNROLL
        for (int part = 0; part < kParts; ++part) {
          mma_f16(output_[2 * i], weights[part], make_uint2(v.x, v.z));
          mma_f16(output_[2 * i + 1], weights[part], make_uint2(v.y, v.w));
        }
      }
    }
  }

  /// Hands all of it to another warp's take_part().
  SOLITON_DEVICE void give_part(float4* part, int lane) const {
    store_shared(part + lane, make_float4(maximum_[0], maximum_[1], sum_[0], sum_[1]));
    SOLITON_UNROLL
    for (int i = 0; i < 2 * kOutputSteps; ++i) {
      store_shared(part + (i + 1) * kWarpLanes + lane,
                   make_float4(output_[i][0], output_[i][1], output_[i][2], output_[i][3]));
    }
  }
  SOLITON_DEVICE void take_part(const float4* part, int lane) {
    const float4 other = load_shared(part + lane);
    const float maxima[2] = {other.x, other.y};
    const float sums[2] = {other.z, other.w};
    float own[2];
    float others[2];
    SOLITON_UNROLL
    for (int h = 0; h < 2; ++h) {
      const float maximum = maxima[h] > maximum_[h] ? maxima[h] : maximum_[h];
      const float base = maximum == -INFINITY ? 0.0f : maximum;
      own[h] = exp2_fast(maximum_[h] - base);
      others[h] = exp2_fast(maxima[h] - base);
      maximum_[h] = maximum;
      sum_[h] = sum_[h] * own[h] + sums[h] * others[h];
    }
    SOLITON_UNROLL
    for (int i = 0; i < 2 * kOutputSteps; ++i) {
      if (i % 2 == 0) warp_sync();  // loads do not move up over it: registers are few
      const float4 v = load_shared(part + (i + 1) * kWarpLanes + lane);
      output_[i][0] = output_[i][0] * own[0] + v.x * others[0];
      output_[i][1] = output_[i][1] * own[0] + v.y * others[0];
      output_[i][2] = output_[i][2] * own[1] + v.z * others[1];
      output_[i][3] = output_[i][3] * own[1] + v.w * others[1];
    }
  }

  /// Writes the partial results of the item's rows among the tile's queries.
  SOLITON_DEVICE void write(const TreeItem& item, int query_tile, float* partials, int lane) {
    constexpr int kHeads = kPlan.model.group();
    SOLITON_UNROLL
    for (int h = 0; h < 2; ++h) {
      float sum = sum_[h];
      for (int mask = 1; mask < 4; mask *= 2) sum += shuffle_xor(sum, mask);
      const int query = (query_tiles<kPlan>(item).first + query_tile) * kQueryRows + lane / 4 + 8 * h;
      const int row = query / kHeads;
      const int head = query % kHeads;
      if (row < item.first_row || row >= item.end_row) continue;
      float* partial = partials + static_cast<int64_t>(item.first_partial + row - item.first_row) *
                                      tree_partial_words(kHeads, kHeadDim);
      if (lane % 4 < kMergeShares<kPlan> && share() == 0) {
        float* const of_merger = partial + lane % 4 * 2 * kHeads + head;
        store_relaxed(of_merger, publishable(maximum_[h]));
        store_relaxed(of_merger + kHeads, publishable(sum));
      }
      float* output = partial + tree_partial_outputs(kHeads) + head * kHeadDim +
                      share() * (kHeadDim / kShares) + lane % 4 * 2;
      SOLITON_UNROLL
      for (int i = 0; i < 2 * kOutputSteps; ++i) {
        store_relaxed(reinterpret_cast<float2*>(output + i * 8),
                      make_float2(publishable(output_[i][2 * h]), publishable(output_[i][2 * h + 1])));
      }
    }
  }

 private:
  SOLITON_DEVICE int share() const { return kShares == 1 ? 0 : share_; }

  SOLITON_DEVICE void rescale(const float (&maxima)[2]) {
    SOLITON_UNROLL
    for (int h = 0; h < 2; ++h) {
      const float factor = exp2_fast(maximum_[h] - (maxima[h] == -INFINITY ? 0.0f : maxima[h]));
      maximum_[h] = maxima[h];
      sum_[h] *= factor;
      SOLITON_UNROLL
      for (int i = 0; i < 2 * kOutputSteps; ++i) {
        output_[i][2 * h] *= factor;
        output_[i][2 * h + 1] *= factor;
      }
    }
  }

  const uint4* queries_;
  int share_;
  float maximum_[2] = {-INFINITY, -INFINITY};
  float sum_[2] = {};  // of this lane's tokens
  float output_[2 * kOutputSteps][4] = {};
};

template <const KernelPlan& kPlan>
class Attention {
  using State = QueryState<kPlan>;

 public:
  SOLITON_DEVICE Attention(Context<kPlan>& context, int worker) : context_(context), worker_(worker) {}

  /// One item of this CTA, by all workers: its partial results.
  SOLITON_DEVICE void attend(PageStream<kPlan>& stream, int index);

 private:
  SOLITON_DEVICE void add_tail(State& state, const TreeItem& item, const ItemPlace<kPlan>& place,
                               int query_tile, int part, int parts);
  SOLITON_DEVICE void merge_parts(State& state, int share, int parts, int part, int shares);
  SOLITON_DEVICE void wait_item(uint32_t item) const {
    context_.wait(context_.barrier(BarrierId::kItemDone, item % 2), item / 2 & 1, WaitKind::kAttentionEmpty,
                  item);
  }

  Context<kPlan>& context_;
  int worker_;
  uint32_t items_ = 0;
  uint32_t merges_ = 0;  // times that parts were merged
};

template <const KernelPlan& kPlan>
SOLITON_DEVICE void Attention<kPlan>::attend(PageStream<kPlan>& stream, int index) {
  constexpr int kSlots = kPlan.model.kv().slots_per_half();
  constexpr int kSlotTiles = kPlan.model.kv().slot_tokens() / kTailTokens;
  const int lane = context_.lane;
  // Read anew where it is needed: registers are full meanwhile.
  const auto item = [&] { return context_.item(opaque(index)); };
  const auto place = [&] {
    const TreeItem at = item();
    return ItemPlace<kPlan>(query_tiles<kPlan>(at), tail_tiles(at, context_.step), items_);
  };
  const int cached = cached_tokens(item(), context_.step);
  const int pages = ceil_divide(cached, kKvPageTokens);
  const int num_shares = query_tiles<kPlan>(item()).count * State::kShares;
  // No worker may be two items ahead of another: its parity would be two phases off.
  if (items_ > 1) wait_item(items_ - 2);
  context_.wait(context_.barrier(BarrierId::kQueryFull, items_ % 2), items_ / 2 & 1, WaitKind::kQueryFull,
                items_);
  warp_sync();

  const int first_slot = stream.next();
  SOLITON_NO_UNROLL
  for (int first = 0; first < num_shares; first += kWorkers) {
    const int left = num_shares - first;
    const int at_once = left < kWorkers ? left : kWorkers;
    // Workers that take turns at a query tile's tokens; all but one hand over their part.
    const int most = at_once == 1 ? 4 : at_once == 2 ? 3 : at_once <= 4 ? 2 : 1;
    const int parts = item().undivided != 0 ? 1 : most;
    static_assert(kPartPlaces == 4 && kWorkers == 8, "3, 2 x 2, 3 x 1 and 4 x 1 parts are handed over");
    const int own = worker_ % at_once;
    const int part = worker_ / at_once;
    const bool works = part < parts;
    const bool is_last = left <= kWorkers;
    const int query_tile = (first + own) / State::kShares;
    State state(context_.shared + place().queries + query_tile * kQkv<kPlan>.query_tile_bytes(),
                (first + own) % State::kShares, lane);
    int slot = first_slot;
    int next = part;  // tile of tokens that this worker takes, counted from the page's first
    SOLITON_NO_UNROLL
    for (int page = 0; page < pages; ++page) {
      int slots[2 * kSlots];
      SOLITON_UNROLL
      for (int i = 0; i < 2 * kSlots; ++i) {
        if (first == 0) stream.wait();
        slots[i] = slot;
        if (++slot == kPlan.ring_slots) slot = 0;
      }
      SOLITON_UNROLL
      for (int i = 0; i < kSlots; ++i) {
        const uint4* keys = reinterpret_cast<const uint4*>(stream.bytes(slots[i]));
        const uint4* values = reinterpret_cast<const uint4*>(stream.bytes(slots[kSlots + i]));
        SOLITON_NO_UNROLL
        for (int tile = 0; tile < kSlotTiles; ++tile) {
          const int number = i * kSlotTiles + tile;
          if (!works || number != next) continue;
          next += parts;
          const int rest = cached - page * kKvPageTokens - number * kTailTokens;  // from the tile's first on
          if (rest <= 0) continue;
          const int offset = tile * State::kTileFragments;
          state.add(keys + offset, values + offset, lane,
                    [&](int, int k) { return State::token(lane, k) < rest; });
        }
      }
      next -= kSlots * kSlotTiles;
      if (is_last) {
        SOLITON_UNROLL
        for (int i = 0; i < 2 * kSlots; ++i) stream.release(slots[i]);
      }
    }
    if (works) add_tail(state, item(), place(), query_tile, part, parts);
    if (parts > 1) merge_parts(state, own, parts, part, at_once);
    if (part == 0) state.write(item(), query_tile, context_.params.partials, lane);
  }
  warp_arrive(&context_.barrier(BarrierId::kItemDone, items_ % 2));
  ++items_;
}

/// Adds the new tokens of an item, every `parts`th tile of them: a row sees those of its path.
template <const KernelPlan& kPlan>
SOLITON_DEVICE void Attention<kPlan>::add_tail(State& state, const TreeItem& item,
                                               const ItemPlace<kPlan>& place, int query_tile, int part,
                                               int parts) {
  const int lane = context_.lane;
  const TailTiles tail = tail_tiles(item, context_.step);
  SOLITON_NO_UNROLL
  for (int tile = part; tile < tail.count; tile += parts) {
    const int base = (tail.first + tile) * kTailTokens;
    int seen_end[4];  // of this lane's tokens
    SOLITON_UNROLL
    for (int i = 0; i < 4; ++i) {
      const int row = base + State::token(lane, i);
      seen_end[i] =
          row >= item.first_new && row < item.end_new ? load_shared(context_.held_seen_ends() + row) : 0;
    }
    const int query = (query_tiles<kPlan>(item).first + query_tile) * kQueryRows + lane / 4;
    const int rows[2] = {query / kPlan.model.group(), (query + 8) / kPlan.model.group()};
    const auto fragments = [&](int offset) {
      return reinterpret_cast<const uint4*>(context_.shared + offset) + tile * State::kTileFragments;
    };
    state.add(fragments(place.keys), fragments(place.values), lane, [&](int half, int i) {
      return base + State::token(lane, i) <= rows[half] && rows[half] < seen_end[i];
    });
  }
}

/// Adds the parts of a query tile that several workers share to that of part 0, in order. At most once an item,
/// at its end.
template <const KernelPlan& kPlan>
SOLITON_DEVICE void Attention<kPlan>::merge_parts(State& state, int share, int parts, int part, int shares) {
  if (items_ > 0) wait_item(items_ - 1);  // parts of the item before have been read
  const auto place = [&](int of) {
    return reinterpret_cast<float4*>(context_.region(RegionId::kTiles) +
                                     ((of - 1) * shares + share) * kPlan.query_part_bytes());
  };
  if (part > 0 && part < parts) state.give_part(place(part), context_.lane);
  warp_arrive(&context_.barrier(BarrierId::kPartsFull));
  // Pairs with the arrivals of all workers.
  context_.wait(context_.barrier(BarrierId::kPartsFull), merges_ & 1, WaitKind::kAttentionFull, merges_);
  warp_sync();
  ++merges_;
  if (part > 0) return;
  SOLITON_NO_UNROLL
  for (int of = 1; of < parts; ++of) state.take_part(place(of), context_.lane);
}

}  // namespace soliton::rows
