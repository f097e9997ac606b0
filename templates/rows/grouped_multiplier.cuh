// The products of a mixture's experts where warpgroups multiply: a group's lines by some tiles of its expert after the other.
// Weights come as of other matrices, a slot of four tiles by 128 columns for each warpgroup in turn; of activations a chunk has as
// many columns of the group's lines as there is room for.
#pragma once

#include "rows/groups.cuh"
#include "rows/outputs.cuh"
#include "rows/warpgroup_multiplier.cuh"

namespace soliton::rows {

template <const KernelPlan& kPlan>
class GroupedMultiplier : public WarpgroupMultiplier<kPlan> {
  using Base = WarpgroupMultiplier<kPlan>;
  using Base::context_, Base::worker_, Base::input_;
  using Base::kSets, Base::kSetMmas, Base::warpgroup, Base::tile_of_group, Base::load;
  static constexpr GroupedRows kRows = kGroupedRows<kPlan>;
  static_assert(kSetMmas * kMmaColumns == kGroupColumns, "a set of products is a piece of the lines");

 public:
  using Base::Base;

  /// All that this CTA has of a phase. Collective of the workers; `met`: parity of their next meeting.
  SOLITON_DEVICE void multiply_groups(PageStream<kPlan>& stream, const MatrixPhase& phase, uint32_t& met) {
    const ExpertPhase& experts = kExpertTable<kPlan>.phases[phase.number];
    const bool gates = experts.axis == ExpertAxis::kRows;
    const int slots = (gates ? phase.padded : kPlan.model.mixture.ffn) / (kSets * kGroupColumns);
    SOLITON_NO_UNROLL
    for (GroupPieces<kPlan> pieces(context_, experts); !pieces.at_end();) {
      const auto piece = pieces.take();
      if (gates && piece.begins_group) bring_factors(piece.group, met);
      with_width(group_width(piece.group.pairs), [&]<int kWidth>() {
        multiply_piece<kWidth>(stream, slots, piece.tiles, [&](const auto& sums) {
          const int tile = piece.first_tile + warpgroup() * kGroupTiles + tile_of_group();
          if (gates) {
            put_gated<kWidth>(phase, piece.group, tile, sums);
          } else {
            put_sums<kWidth>(phase, piece.group, tile, sums);
          }
        });
      });
    }
  }

 private:
  template <class Body>
  static SOLITON_DEVICE void with_width(int width, const Body& body) {
    switch (width) {
      case 32:
        return body.template operator()<32>();
      case 64:
        return body.template operator()<64>();
      case 96:
        return body.template operator()<96>();
      case 128:
        return body.template operator()<128>();
      case 192:
        return body.template operator()<192>();
      default:
        return body.template operator()<256>();
    }
  }

  /// The factors of the group's lines, where those of rows are otherwise.
  SOLITON_DEVICE void bring_factors(const ExpertGroup& group, uint32_t& met) const {
    constexpr Vector kGrouped = kPlan.vector(kPlan.phase(PhaseKind::kGroup).writes);
    const float* factors = context_.template workspace<float>(kGrouped.offset + kRows.factors_offset());
    context_.meet_workers(met);  // nobody reads those of the group before
    const int line = worker_ * kWarpLanes + context_.lane;
    if (line < group.pairs)
      store_shared(context_.factors() + line, load_global(factors + group.first_line + line));
    context_.meet_workers(met);
  }

  /// Multiplies `count` tiles by so many slots of their columns; put(sums) for this warp's tile, if it is one of them. A chunk of
  /// activations is released when the first product of the next one is on its way: no wait is in between.
  template <int kWidth, class Put>
  SOLITON_DEVICE void multiply_piece(PageStream<kPlan>& stream, int slots, int count, const Put& put) {
    constexpr int kPieces = pieces_of_chunk<kPlan>(kWidth);
    constexpr int kMmaBytes = kWidth * kMmaColumns * 2;
    float sums[kWidth / 2] = {};
    typename WarpgroupTiles<kPlan>::template Weights<kSetMmas> weights[kSets] = {};
    const bool is_there = warpgroup() * kGroupTiles + tile_of_group() < count;
    const unsigned char* chunk = nullptr;
    int piece = 0;  // of the chunk
    SOLITON_NO_UNROLL
    for (; slots > 0; --slots) {
      const int slot = stream.wait_turn(warpgroup());
      SOLITON_UNROLL
      for (int set = 0; set < kSets; ++set) {
        if (is_there) load(weights[set], slot, set, tile_of_group());
        if (set == kSets - 1) stream.release_turn(slot);
        const bool begins = piece == 0;
        const bool holds = begins && chunk != nullptr;
        if (begins) chunk = holds ? input_.wait_second() : input_.wait();
        const CoreMatrices input(chunk + piece * (kWidth * kGroupColumns * 2));
        warpgroup_fence();
        SOLITON_UNROLL
        for (int k = 0; k < kSetMmas; ++k)
          warpgroup_multiply(sums, weights[set].mmas[k], input.behind(k * kMmaBytes));
        warpgroup_commit();
        warpgroup_wait_but_last();
        if (holds) input_.release();
        piece = piece + 1 == kPieces ? 0 : piece + 1;
      }
    }
    warpgroup_wait(sums);
    input_.release();
    if (is_there) put(sums);
  }

  /// Gate and up of a tile, for the lines that pairs have, as swiglu_of_warp() has them.
  template <int kWidth>
  SOLITON_DEVICE void put_gated(const MatrixPhase& phase, const ExpertGroup& group, int tile,
                                const float (&sums)[kWidth / 2]) const {
    constexpr int kFfn = kPlan.model.mixture.ffn;
    const int element = context_.lane / 4;
    const bool odd = element % 2 != 0;
    const int line = context_.lane % 4 * 2;  // and the next, of every 8
    unsigned char* to = context_.template workspace<unsigned char>(phase.output_vector.offset) +
                        GroupedRows::group_offset(kFfn, group.first_line) +
                        GroupedRows::element_offset(kWidth, line + (odd ? 1 : 0), tile * 8 + element / 2 * 2);
    const float2* factors = reinterpret_cast<const float2*>(context_.factors() + line);
    SOLITON_UNROLL
    for (int n = 0; n < kWidth / 8; ++n) {
      const float2 scales = load_shared(factors + n * 4);
      const float low = Outputs<kPlan>::gated(sums[4 * n], sums[4 * n + 2], scales.x);
      const float high = Outputs<kPlan>::gated(sums[4 * n + 1], sums[4 * n + 3], scales.y);
      const float other = shuffle_xor(odd ? low : high, 4);
      if (n * 8 + line + (odd ? 1 : 0) < group.pairs)
        store_global(reinterpret_cast<uint32_t*>(to + n * 8 * 16),
                     odd ? pack_bf16(other, high) : pack_bf16(low, other));
    }
  }

  /// Sums of a tile of down, as threads that finish tiles want them.
  template <int kWidth>
  SOLITON_DEVICE void put_sums(const MatrixPhase& phase, const ExpertGroup& group, int tile,
                               const float (&sums)[kWidth / 2]) const {
    constexpr int kQuarters = 4;
    const bool odd = context_.lane / 4 % 2 != 0;
    const int line = context_.lane % 4 * 2 + (odd ? 1 : 0);
    float4* to = context_.template workspace<float4>(phase.output_vector.offset) +
                 (static_cast<int64_t>(tile) * kRows.most_lines() + group.first_line + line) * kQuarters +
                 context_.lane / 8;
    SOLITON_UNROLL
    for (int n = 0; n < kWidth / 8; ++n) {
      const float* own = sums + 4 * n;
      const float low = shuffle_xor(odd ? own[0] : own[1], 4);
      const float high = shuffle_xor(odd ? own[2] : own[3], 4);
      if (n * 8 + line < group.pairs)
        store_global(to + n * 8 * kQuarters, make_float4(odd ? low : own[0], odd ? own[1] : low,
                                                         odd ? high : own[2], odd ? own[3] : high));
    }
  }
};

}  // namespace soliton::rows
