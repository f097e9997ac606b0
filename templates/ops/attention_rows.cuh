// Attention of several rows: neighbouring tokens of one sequence, each of which sees the cache and the step's
// rows up to itself.
//
// Each consumer warp computes rows of its own, over all tokens: no warp needs another's sums. Keys and values
// of the step's own tokens become one more tile, in shared memory, in the order of a KV page; the epilogue
// appends them to their pages one phase later. What a row needs of the mma is as for one row, see
// attention.cuh.
#pragma once

#include "ops/attention.cuh"

namespace soliton {

/// Brings keys and values of the step's tokens, of one KV head, into the tail of a unit, rounded as the cache
/// will hold them. Tokens that no row has are zero: values are multiplied with a probability of 0, which a
/// NaN would survive.
template <class Plan>
SOLITON_DEVICE void stage_tail(const Context<Plan>& context, Vector input, int kv_head, int unit,
                               int thread) {
  constexpr int kHeadDim = Plan::kHeadDim;
  constexpr int kThreads = Plan::kConsumerWarps * kWarpLanes;
  constexpr int kTokenGroups = 2 * kHeadDim / 4;  // of 4 dims: k, then v
  constexpr int kLoads = ceil_divide(kTailTokens * kTokenGroups, kThreads);
  constexpr int kRowWords = (Plan::kNumHeads + 2 * Plan::kNumKvHeads) * kHeadDim;
  const float* vector = context.template workspace<float>(input.offset);
  const auto token = [&](int i) { return (i * kThreads + thread) / kTokenGroups; };
  const auto dim = [&](int i) { return (i * kThreads + thread) % (kTokenGroups / 2) * 4; };
  const auto is_value = [&](int i) { return (i * kThreads + thread) % kTokenGroups >= kTokenGroups / 2; };
  const auto address = [&](int i) {
    const int head = Plan::kNumHeads + (is_value(i) ? Plan::kNumKvHeads : 0) + kv_head;
    return reinterpret_cast<const float4*>(vector + token(i) * kRowWords + head * kHeadDim + dim(i));
  };
  PolledLoads<float4, kLoads, Plan::kSync> loads;
  loads.issue(address, [&](int i) { return token(i) < Plan::kRows; });
  wait_for_words(context, WaitKind::kVector, [&] { return loads.retry(address); });
  SOLITON_UNROLL
  for (int i = 0; i < kLoads; ++i) {
    if (token(i) >= kTailTokens) continue;
    const float4 v = loads.value[i];
    const uint32_t low = pack_f16(v.x, v.y);
    const uint32_t high = pack_f16(v.z, v.w);
    if (is_value(i)) {
      uint16_t* values = reinterpret_cast<uint16_t*>(context.tail_values(unit));
      const auto put = [&](int j, uint32_t half) {
        store_shared(values + value_offset(token(i), dim(i) + j, kHeadDim) / 2, static_cast<uint16_t>(half));
      };
      put(0, low);
      put(1, low >> 16);
      put(2, high);
      put(3, high >> 16);
    } else {
      unsigned char* keys = context.tail(unit);
      store_shared(reinterpret_cast<uint32_t*>(keys + key_offset(token(i), dim(i), kHeadDim)), low);
      store_shared(reinterpret_cast<uint32_t*>(keys + key_offset(token(i), dim(i) + 2, kHeadDim)), high);
    }
  }
}

/// Appends the step's keys and values to their pages, see append_token().
template <class Plan>
SOLITON_DEVICE void append_tail(const Context<Plan>& context, int layer, int kv_head, int unit) {
  constexpr int kHeadDim = Plan::kHeadDim;
  const int live = context.live_rows();
  SOLITON_NO_UNROLL
  for (int row = 0; row < live; ++row) {
    const int position = context.position() + row;
    const int physical = load_constant(context.params.page_table + position / kKvPageTokens);
    unsigned char* keys =
        static_cast<unsigned char*>(context.params.kv_pool) +
        kv_page_offset(physical, layer, kv_head, Plan::kNumLayers, Plan::kNumKvHeads, kHeadDim);
    unsigned char* values = keys + kv_half_bytes(kHeadDim);
    const int token = position % kKvPageTokens;
    SOLITON_NO_UNROLL
    for (int dim = context.lane * 2; dim < kHeadDim; dim += 2 * kWarpLanes) {
      store_global(reinterpret_cast<uint32_t*>(keys + key_offset(token, dim, kHeadDim)),
                   load_shared(reinterpret_cast<const uint32_t*>(context.tail(unit) +
                                                                 key_offset(row, dim, kHeadDim))));
      SOLITON_UNROLL
      for (int i = 0; i < 2; ++i) {
        store_global(reinterpret_cast<uint16_t*>(values + value_offset(token, dim + i, kHeadDim)),
                     load_shared(reinterpret_cast<const uint16_t*>(context.tail_values(unit) +
                                                                   value_offset(row, dim + i, kHeadDim))));
      }
    }
  }
}

/// Publishes one row's part of a unit by one warp: to the heads' vector if nobody else has a part of the
/// block, otherwise to the row's partial of this CTA.
template <class Plan>
SOLITON_DEVICE void publish_part(const AttentionPart<Plan>& part, const HeadBlock<Plan>& heads, int lane,
                                 bool whole, float* output, float* partial) {
  constexpr int kGroups = kHeadsPerBlock * Plan::kHeadDim / 4;  // of 4 neighbouring outputs
  SOLITON_NO_UNROLL
  for (int group = lane; group < kGroups; group += kWarpLanes) {
    const int head = group * 4 / Plan::kHeadDim;
    if (head >= heads.count) break;
    const float4 value =
        load_shared(reinterpret_cast<const float4*>(&part.output[head][group * 4 % Plan::kHeadDim]));
    const float sum = load_shared(&part.sum[head]);
    if (!whole && group * 4 % Plan::kHeadDim == 0) {
      publish<Plan>(partial + head, publishable(load_shared(&part.maximum[head])));
      publish<Plan>(partial + kHeadsPerBlock + head, publishable(sum));
    }
    const float scale = whole ? 1.0f / sum : 1.0f;
    float* to = whole ? output + heads.first_head * Plan::kHeadDim : partial + 2 * kHeadsPerBlock;
    publish<Plan>(reinterpret_cast<float4*>(to) + group,
                  make_float4(publishable(value.x * scale), publishable(value.y * scale),
                              publishable(value.z * scale), publishable(value.w * scale)));
  }
}

template <class Plan>
template <AttentionPhase kPhase>
SOLITON_DEVICE void Consumer<Plan>::attend_rows() {
  using State = AttentionState<Plan>;
  constexpr int kHeadDim = Plan::kHeadDim;
  constexpr int kOwnRows = kRowsPerWarp<Plan>;
  constexpr int kInputWords = (Plan::kNumHeads + 2 * Plan::kNumKvHeads) * kHeadDim;  // of a row
  constexpr int kOutputWords = Plan::kNumHeads * kHeadDim;
  begin_phase();
  const int lane = context_.lane;
  const float* input = context_.template workspace<float>(kPhase.input_vector.offset);
  const AttentionShare share = context_.attention_share();
  const int cached = context_.position();
  wait_for_grid(context_);
  Signatures<Plan> signatures(context_, kPhase.input_vector);

  // A CTA without work makes one round too, see attend_row().
  for (int unit = 0; unit == 0 || unit < share.count; ++unit) {
    const bool works = share.count > 0;
    const HeadBlock<Plan> heads(works ? share.first_block + unit * Plan::kNumCtas : 0);
    const bool with_tail = works && share.split == share.num_splits - 1;
    // A warp takes rows warp, warp + kWarps, ...: with fewer rows than warps some have none of their own.
    const auto row = [&](int i) { return warp_ + i * kWarps; };
    State states[kOwnRows];
    if (unit == 0 && warp_ == 0) signatures.issue();
    SOLITON_UNROLL
    for (int i = 0; i < kOwnRows; ++i) {
      const int of = row(i) < Plan::kRows ? row(i) : 0;
      const int head = lane / 4 % kHeadsPerBlock;
      const float* query = input + of * kInputWords +
                           (heads.first_head + (head < heads.count ? head : 0)) * kHeadDim +
                           lane % 4 * State::kQuarter;
      const auto address = [&](int j) { return reinterpret_cast<const float4*>(query + 4 * j); };
      PolledLoads<float4, State::kSteps, Plan::kSync> loads;
      loads.issue(address, [](int) { return true; });
      wait_for_words(context_, WaitKind::kVector, [&] { return loads.retry(address); });
      states[i].begin([&](int j) { return loads.value[j]; }, lane);
    }
    if (unit == 0) wait_for_words(context_, WaitKind::kVector, [&] { return signatures.retry(); });
    if (with_tail) stage_tail(context_, kPhase.input_vector, heads.kv_head, unit, warp_ * kWarpLanes + lane);
    if (works) warp_arrive(&context_.barriers().query_full);
    if (unit == 0) {
      mark_input();
      begin_report();
      report_input();
    }
    if (!works) break;

    constexpr int kTiles = kv_slot_tokens(kHeadDim) / 16;  // token tiles of a slot
    constexpr int kSlots = kv_slots_per_half(kHeadDim);
    constexpr int kTileFragments = kHeadDim / 16 * kWarpLanes;  // 16-byte words of a token tile
    for (int slot = share.first_page * kSlots; slot < share.end_page * kSlots; ++slot) {
      const int key_slot = wait_page();
      const int value_slot = wait_page();
      const uint4* keys = reinterpret_cast<const uint4*>(page_bytes(key_slot));
      const uint4* values = reinterpret_cast<const uint4*>(page_bytes(value_slot));
      SOLITON_NO_UNROLL
      for (int tile = 0; tile < kTiles; ++tile) {
        const int token = (slot * kTiles + tile) * 16;
        if (token >= cached) break;
        SOLITON_UNROLL
        for (int i = 0; i < kOwnRows; ++i) {
          const uint2 probabilities = states[i].add_scores(keys + tile * kTileFragments, lane, token, cached);
          states[i].add_values(values + tile * kTileFragments, lane, probabilities);
        }
      }
      release_page(key_slot);
      release_page(value_slot);
    }
    if (with_tail) {
      // Pairs with the arrivals of all consumers: the tail is there.
      context_.wait(context_.barriers().query_full, units_ & 1, WaitKind::kQueryFull, units_);
      warp_sync();
      const uint4* keys = reinterpret_cast<const uint4*>(context_.tail(unit));
      const uint4* values = reinterpret_cast<const uint4*>(context_.tail_values(unit));
      SOLITON_UNROLL
      for (int i = 0; i < kOwnRows; ++i) {
        const int of = row(i) < Plan::kRows ? row(i) : 0;
        const uint2 probabilities = states[i].add_scores(keys, lane, 0, of + 1);
        states[i].add_values(values, lane, probabilities);
      }
    }

    const bool whole = share.num_splits == 1;
    AttentionPart<Plan>& part = context_.attention_part(warp_);  // where this warp's slice of x was
    SOLITON_UNROLL
    for (int i = 0; i < kOwnRows; ++i) {
      warp_sync();  // all lanes have read what lies there
      states[i].store(part, lane);
      warp_sync();
      if (row(i) >= Plan::kRows) continue;
      publish_part(part, heads, lane, whole,
                   context_.template workspace<float>(kPhase.output_vector.offset) + row(i) * kOutputWords,
                   context_.template workspace<float>(Plan::kPartials.offset) +
                       (context_.cta * Plan::kRows + row(i)) * Plan::kPartialWords);
    }
    if (!whole) end_partial(context_, share.first_block);
    warp_arrive(&context_.barriers().attention_empty);
    ++units_;
  }

  end_phase();
}

}  // namespace soliton
