// What becomes of a query tile once it has been through its tokens: its part is handed to another warp that has the same
// tile, or its partial results are written, a row at a time.
#pragma once

#include "ops/quotient.cuh"
#include "rows/byte_tokens.cuh"

namespace soliton::rows {

/// Hands all of it to another warp's take_part(): outputs as lanes have them, then maximum and sum of each query.
template <const KernelPlan& kPlan>
SOLITON_DEVICE void QueryState<kPlan>::give_part(float4* part, int lane) const {
  float2* const queries = reinterpret_cast<float2*>(part + kPartWords * kWarpLanes) + lane / 4;
  SOLITON_UNROLL
  for (int h = 0; h < kQueries; ++h) {
    float sum = sum_[h];
    for (int mask = 1; mask < 4; mask *= 2) sum += shuffle_xor(sum, mask);
    if (lane % 4 == 0) store_shared(queries + 8 * h, make_float2(maximum_[h], sum));
  }
  SOLITON_UNROLL
  for (int i = 0; i < kPartWords; ++i) {
    const auto output = [&](int k) { return output_of_word(i, k); };
    store_shared(part + i * kWarpLanes + lane, make_float4(output(0), output(1), output(2), output(3)));
  }
}

template <const KernelPlan& kPlan>
SOLITON_DEVICE void QueryState<kPlan>::take_part(const float4* part, int lane) {
  const float2* const queries = reinterpret_cast<const float2*>(part + kPartWords * kWarpLanes) + lane / 4;
  float own[kQueries];
  float others[kQueries];
  SOLITON_UNROLL
  for (int h = 0; h < kQueries; ++h) {
    const float2 other = load_shared(queries + 8 * h);
    const float maximum = other.x > maximum_[h] ? other.x : maximum_[h];
    const float base = maximum == -INFINITY ? 0.0f : maximum;
    own[h] = exp2_fast(maximum_[h] - base);
    others[h] = exp2_fast(other.x - base);
    maximum_[h] = maximum;
    sum_[h] = sum_[h] * own[h] + (lane % 4 == 0 ? other.y * others[h] : 0.0f);  // lanes have parts of a sum
  }
  SOLITON_UNROLL
  for (int i = 0; i < kPartWords; ++i) {
    if (i % 2 == 0) warp_sync();  // loads do not move up over it: registers are few
    const float4 v = load_shared(part + i * kWarpLanes + lane);
    const auto add = [&](int k, float other) {
      float& output = output_of_word(i, k);
      output = output * own[k / 2 % kQueries] + other * others[k / 2 % kQueries];
    };
    add(0, v.x);
    add(1, v.y);
    add(2, v.z);
    add(3, v.w);
  }
}

/// Writes the partial results of the item's rows among the tile's queries.
template <const KernelPlan& kPlan>
SOLITON_DEVICE void QueryState<kPlan>::write(const TreeItem& item, int query_tile, float* partials,
                                             int lane) {
  constexpr int kHeads = kPlan.model.group();
  SOLITON_UNROLL
  for (int h = 0; h < kQueries; ++h) {
    float sum = sum_[h];
    for (int mask = 1; mask < 4; mask *= 2) sum += shuffle_xor(sum, mask);
    const int query = (query_tiles<kPlan>(item).first + query_tile) * kTileQueries<kPlan> + lane / 4 + 8 * h;
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
    if constexpr (kShape<kPlan>.packs_partials) {
      const float scale = sum == 0.0f ? 0.0f : quotient<kPlan>(1.0f, sum);
      uint32_t* output = reinterpret_cast<uint32_t*>(partial + tree_partial_outputs(kHeads)) +
                         (head * kHeadDim + share() * (kHeadDim / kShares)) / 2 + lane % 4 * 2;
      SOLITON_UNROLL
      for (int i = 0; i < 2 * kOutputSteps; i += 2) {
        const auto packed = [&](int i) {
          return pack_f16(output_[i][2 * h] * scale, output_[i][2 * h + 1] * scale);
        };
        store_relaxed(reinterpret_cast<uint2*>(output + i * 4), make_uint2(packed(i), packed(i + 1)));
      }
    } else {
      float* output = partial + tree_partial_outputs(kHeads) + head * kHeadDim +
                      share() * (kHeadDim / kShares) + lane % 4 * 2;
      SOLITON_UNROLL
      for (int i = 0; i < 2 * kOutputSteps; ++i) {
        store_relaxed(reinterpret_cast<float2*>(output + i * 8),
                      make_float2(publishable(output_[i][2 * h]), publishable(output_[i][2 * h + 1])));
      }
    }
  }
}

/// Of an item that has all tokens of its rows: writes their outputs as the next phase reads them. Of 32 dims a lane has a
/// whole block of 8 columns.
template <const KernelPlan& kPlan>
SOLITON_DEVICE void QueryState<kPlan>::write_last(const Context<kPlan>& context, const TreeItem& item,
                                                  int query_tile) const {
  constexpr int kHeads = kPlan.model.group();
  unsigned char* heads = context.template workspace<unsigned char>(kPlan.heads_out().offset);
  const int lane = context.lane;
  SOLITON_UNROLL
  for (int h = 0; h < kQueries; ++h) {
    float sum = sum_[h];
    for (int mask = 1; mask < 4; mask *= 2) sum += shuffle_xor(sum, mask);
    const int query = (query_tiles<kPlan>(item).first + query_tile) * kTileQueries<kPlan> + lane / 4 + 8 * h;
    const int row = query / kHeads;
    if (row < item.first_row || row >= item.end_row) continue;
    const float scale = quotient<kPlan>(1.0f, sum) * kInputScale<kPlan>;
    const int column = (item.kv_head * kHeads + query % kHeads) * kHeadDim + lane % 4 * 2;
    SOLITON_UNROLL
    for (int i = 0; i < 2 * kOutputSteps; i += 4) {
      const auto packed = [&](int k) {
        return pack_bf16(output_[i + k][2 * h] * scale, output_[i + k][2 * h + 1] * scale);
      };
      store_global(reinterpret_cast<uint4*>(heads + activation_offset(kShape<kPlan>, 0, row, column + i * 8)),
                   make_uint4(packed(0), packed(1), packed(2), packed(3)));
    }
  }
}

}  // namespace soliton::rows
