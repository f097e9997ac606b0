// The products of a mixture's experts where warpgroups multiply: a group's lines by some tiles of its expert after the other.
// Weights come as of other matrices, a slot of four tiles by 128 columns for each warpgroup in turn, of E2M1 and integers by 256; of
// activations a chunk has as many columns of the group's lines as there is room for. Integers become bf16 times their scales.
#pragma once

#include "ops/row_factors.cuh"
#include "rows/groups.cuh"
#include "rows/outputs.cuh"
#include "rows/warpgroup_multiplier.cuh"

namespace soliton::rows {

template <const KernelPlan& kPlan>
class GroupedMultiplier : public WarpgroupMultiplier<kPlan> {
  using Base = WarpgroupMultiplier<kPlan>;
  using Base::context_, Base::worker_, Base::input_;
  using Base::kSets, Base::kSetMmas, Base::kBlockMmas;
  template <int kMmas>
  using Weights = typename WarpgroupTiles<kPlan>::template Weights<kMmas>;
  static constexpr GroupedRows kRows = kGroupedRows<kPlan>;
  static_assert(kSetMmas * kMmaColumns == kGroupColumns, "a set of products is a piece of the lines");

 public:
  using Base::Base;

  /// All that this CTA has of a phase. Collective of the workers; `met`: parity of their next meeting.
  SOLITON_DEVICE void multiply_groups(PageStream<kPlan>& stream, const MatrixInstance& at, uint32_t& met) {
    const MatrixPhase& phase = at.phase;
    const ExpertPhase& experts = kExpertTable<kPlan>.phases[phase.number];
    const bool gates = experts.axis == ExpertAxis::kRows;
    const int columns = columns_of_groups<kPlan>(experts);
    const OutputBiases<kPlan> biases(context_, at.layer);
    SOLITON_NO_UNROLL
    for (GroupPieces<kPlan> pieces(context_, experts); !pieces.at_end(); pieces.next()) {
      // Nothing of a piece is kept for the next one: registers.
      context_.cta = opaque(context_.cta);
      context_.lane = opaque(context_.lane);
      begin_piece(*pieces, at, met);
      pieces.forget();
      const auto put = [&](const auto& sums) {
        pieces.forget();
        const auto piece = *pieces;
        const int tile = own_tile(piece);
        float2 bias = make_float2(0, 0);
        if constexpr (kMixture.expert_bias)
          bias = biases.of_expert_rows(experts.axis, piece.group.expert, tile, this->context_.lane / 4);
        if (gates) {
          put_gated(at, piece.group, tile, sums, bias);
        } else {
          put_sums(phase, piece.group, tile, sums, bias);
        }
      };
      if constexpr (kRows.integers.has_scales()) {
        multiply_integer_piece(stream, columns, gates, *pieces, put);
      } else {
        with_expert_blocks(phase.format.type, [&]<WeightFormat kFormat>() {
          multiply_piece<kFormat>(stream, columns, *pieces, put);
        });
      }
    }
  }

 private:
  using Sums = float[kMostBlockRows / 2];
  /// Those of a product of so many lines.
  template <int kWidth>
  static SOLITON_DEVICE float (&first_of(Sums& sums))[kWidth / 2] {
    return reinterpret_cast<float(&)[kWidth / 2]>(sums);
  }

  static constexpr Mixture kMixture = kPlan.model.mixture;
  /// Does down of an expert end with half a slot of bf16?
  static constexpr bool kEndsWithHalf = kMixture.ffn % kGroupSlotColumns != 0;
  static_assert(kSets * kGroupColumns == kGroupSlotColumns);

  /// Have all experts weights of this type? Then there is code for no other.
  static consteval bool are_all(WeightType type) {
    for (int i = 0; i < kPlan.num_matrices; ++i) {
      const PackedMatrix& matrix = kPlan.matrices[i];
      if (matrix.experts.axis != ExpertAxis::kNone && matrix.format.type != type) return false;
    }
    return true;
  }
  template <class Body>
  static SOLITON_DEVICE void with_expert_blocks(WeightType type, const Body& body) {
    constexpr WeightFormat kFurther = kPlan.model.further;
    if constexpr (are_all(kFurther.type)) {
      body.template operator()<kFurther>();
    } else {
      with_blocks<kPlan>(type, body);
    }
  }

  template <class Body>
  static SOLITON_DEVICE void with_width(int width, const Body& body) {
    if (width > 128) {
      if (width > 192) return body.template operator()<256>();
      return body.template operator()<192>();
    }
    if (width > 64) {
      if (width > 96) return body.template operator()<128>();
      return body.template operator()<96>();
    }
    if (width > 32) return body.template operator()<64>();
    return body.template operator()<32>();
  }

  using Piece = typename GroupPieces<kPlan>::Piece;
  /// This warp's of a piece, among the expert's.
  SOLITON_DEVICE int own_tile(const Piece& piece) const {
    const int worker = opaque(worker_);
    return piece.first_tile + worker / kGroupWarps * kGroupTiles + worker % kGroupWarps;
  }

  SOLITON_DEVICE void begin_piece(const Piece& piece, const MatrixInstance& at, uint32_t& met) const {
    const ExpertPhase& experts = kExpertTable<kPlan>.phases[at.phase.number];
    if constexpr (kMixture.expert_bias) {
      if (context_.lane == 0 && own_tile(piece) < experts.tiles)
        OutputBiases<kPlan>(context_, at.layer)
            .prefetch_of_expert(experts.axis, piece.group.expert, own_tile(piece));
    }
    if (experts.axis == ExpertAxis::kRows && piece.begins_group) bring_factors(piece.group, met);
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

  /// Products that are made in one go. Of E2M1 fewer: registers hold what it is made of beside them.
  template <WeightFormat kFormat>
  static constexpr int kMmasAtOnce = kFormat.type == WeightType::kE2m1 ? kBlockMmas : kSetMmas;
  /// Weights of such a set as bf16.
  template <WeightFormat kFormat>
  SOLITON_DEVICE void load_set(Weights<kMmasAtOnce<kFormat>>& weights, int slot, int set, int tile) const {
    if constexpr (kFormat.type == WeightType::kE2m1) {
      this->template load_codes<kFormat>(weights, this->weights_of(slot, tile), set);
    } else {
      this->load(weights, slot, set, tile);
    }
  }

  /// Multiplies `count` tiles by so many of their columns; put(sums) for this warp's tile, if it is one of them. A chunk of
  /// activations is released when the first product of the next one is on its way: no wait is in between.
  template <WeightFormat kFormat, class Put>
  SOLITON_DEVICE void multiply_piece(PageStream<kPlan>& stream, int columns, const Piece& of,
                                     const Put& put) {
    constexpr int kMmas = kMmasAtOnce<kFormat>;
    constexpr int kSetsOfPiece = kGroupColumns / kMmaColumns / kMmas;
    const int count = of.tiles;
    const int width = group_width(of.group.pairs);
    const int pieces = pieces_of_chunk<kPlan>(width);
    const int worker = opaque(worker_);
    const int warpgroup = worker / kGroupWarps;
    constexpr int kSlotColumns = group_slot_columns(kFormat.type);
    if (warpgroup * kGroupTiles >= count) return pass_piece(stream, columns, kSlotColumns, pieces);
    const int own = warpgroup * kGroupTiles + worker % kGroupWarps;
    const int tile = own < count ? worker % kGroupWarps : 0;  // where there is none, nobody looks at the sums
    Sums sums = {};
    Weights<kMmas> weights[2];
    const unsigned char* chunk = nullptr;
    int piece = 0;      // of the chunk
    int first_set = 0;  // in a slot
    const auto multiply_sets = [&]<int kCount>(bool ends) {
      const int slot = stream.see_turn(warpgroup);
      SOLITON_UNROLL
      for (int set = 0; set < kCount; ++set) {
        load_set<kFormat>(weights[set % 2], slot, first_set + set, tile);
        if (set == kCount - 1) {
          first_set += kCount;
          ends = ends || first_set == kSlotColumns / kGroupColumns * kSetsOfPiece;
          if (ends) {
            stream.end_turn(slot);
            first_set = 0;
          }
        }
        const int of_piece = set % kSetsOfPiece;
        const bool begins = of_piece == 0 && piece == 0;
        const bool holds = begins && chunk != nullptr;
        if (begins) chunk = holds ? input_.wait_second() : input_.wait();
        const CoreMatrices input(chunk + (piece * kSetsOfPiece + of_piece) * kMmas * kMmaColumns * 2 * width);
        with_width(width, [&]<int kWidth>() {
          warpgroup_fence();
          SOLITON_UNROLL
          for (int k = 0; k < kMmas; ++k)
            warpgroup_multiply(first_of<kWidth>(sums), weights[set % 2].mmas[k],
                               input.behind(k * kMmaColumns * 2 * kWidth));
          warpgroup_commit();
        });
        warpgroup_wait_but_last();
        if (holds) input_.release();
        if (of_piece == kSetsOfPiece - 1) piece = piece + 1 == pieces ? 0 : piece + 1;
      }
    };
    SOLITON_NO_UNROLL
    for (; columns >= kGroupSlotColumns; columns -= kGroupSlotColumns)
      multiply_sets.template operator()<2 * kSetsOfPiece>(columns == kGroupSlotColumns);
    if constexpr (kEndsWithHalf) {
      if (columns > 0) multiply_sets.template operator()<kSetsOfPiece>(true);
    }
    warpgroup_wait(sums);
    input_.release();
    if (own < count) put(sums);
  }
  /// The same of integers, as IntegerMultiplier::add_scaled_chunks() has them: a piece of a chunk is a step of both strips.
  template <class Put>
  SOLITON_DEVICE void multiply_integer_piece(PageStream<kPlan>& stream, int columns, bool gates,
                                             const Piece& of, const Put& put) {
    static_assert(are_all(kRows.integers.type), "experts of one format");
    using Steps = IntegerSteps<kPlan, kRows.integers>;
    constexpr GroupedRows kLayout = kRows;
    static_assert(kLayout.slot_columns() == Steps::Slot::kColumns);
    const int count = of.tiles;
    const int width = group_width(of.group.pairs);
    const int pieces = pieces_of_chunk<kPlan>(width);
    const int worker = opaque(worker_);
    const int warpgroup = worker / kGroupWarps;
    if (warpgroup * kGroupTiles >= count) return pass_piece(stream, columns, kLayout.slot_columns(), pieces);
    const int own = warpgroup * kGroupTiles + worker % kGroupWarps;
    const int tile = own < count ? worker % kGroupWarps : 0;  // where there is none, nobody looks at the sums
    Sums sums = {};
    typename Steps::Strip strips[kStrips];
    const unsigned char* chunk = nullptr;
    int piece = 0;  // of the chunk
    const auto issue = [&](int strip) {
      const CoreMatrices input(chunk + (piece * kStrips + strip) * kStepColumns * 2 * width);
      with_width(width, [&]<int kWidth>() {
        warpgroup_fence();
        SOLITON_UNROLL
        for (int k = 0; k < kStepColumns / kMmaColumns; ++k)
          warpgroup_multiply(first_of<kWidth>(sums), strips[strip].mmas[k],
                             input.behind(k * kMmaColumns * 2 * kWidth));
        warpgroup_commit();
      });
      warpgroup_wait_but_last();
    };
    SOLITON_NO_UNROLL
    for (int column = 0; column < columns; column += kLayout.slot_columns()) {
      const int slot = stream.wait_turn(warpgroup);
      const int steps = gates ? kLayout.steps_at(column) : kLayout.full_steps();
      SOLITON_UNROLL
      for (int k = 0; k < Steps::kSteps; ++k) {
        const auto step = Steps::load(stream.bytes(slot), tile, k, steps, context_.lane);
        if (k == Steps::kSteps - 1) stream.release_turn(slot);
        strips[0] = Steps::scaled_strip(step, 0);
        const bool holds = piece == 0 && chunk != nullptr;
        if (piece == 0) chunk = holds ? input_.wait_second() : input_.wait();
        issue(0);
        if (holds) input_.release();
        strips[1] = Steps::scaled_strip(step, 1);
        issue(1);
        piece = piece + 1 == pieces ? 0 : piece + 1;
      }
    }
    warpgroup_wait(sums);
    input_.release();
    if (own < count) put(sums);
  }
  /// The same of a warpgroup that has none of the tiles.
  SOLITON_DEVICE void pass_piece(PageStream<kPlan>& stream, int columns, int slot_columns, int pieces) {
    const int warpgroup = opaque(worker_) / kGroupWarps;
    SOLITON_NO_UNROLL
    for (int column = 0; column < columns; column += kGroupColumns) {
      if (column % slot_columns == 0) stream.release_turn(stream.wait_turn(warpgroup));
      if (column / kGroupColumns % pieces != 0) continue;
      input_.wait();
      input_.release();
    }
  }

  /// Gate and up of a tile, for the lines that pairs have, as swiglu_of_warp() has them. Of formats with a factor of each matrix
  /// also times that of down, whose sums are of several experts.
  SOLITON_DEVICE void put_gated(const MatrixInstance& at, const ExpertGroup& group, int tile,
                                const Sums& sums, float2 bias) const {
    using Factors = RowFactors<kPlan>;
    float4 own = make_float4(1, 1, 1, 1);  // by ExpertFactor
    if constexpr (Factors::kOfExperts)
      own = Factors::of_expert(context_.params.layer_biases, at.layer, group.expert);
    const int width = group_width(group.pairs);
    constexpr GroupedRows kLayout = kRows;
    constexpr int kFfn = kMixture.ffn;
    const auto activated = [&](float gate, float up, float scale) {
      if constexpr (!kMixture.expert_bias) return Outputs<kPlan>::gated(gate, up, scale);
      return Outputs<kPlan>::gated(gate * scale + bias.x, up * scale + bias.y, 1.0f);
    };
    const auto gated = [&](float gate, float up, float scale) {
      if constexpr (!Factors::kOfExperts) return activated(gate, up, scale);
      return activated(gate * own.x, up * own.y, scale) * own.z;
    };
    const int lane = opaque(context_.lane);  // else what follows from it is kept while tiles are multiplied
    const int element = lane / 4;
    const bool odd = element % 2 != 0;
    const int line = lane % 4 * 2;  // and the next, of every 8
    unsigned char* to = context_.template workspace<unsigned char>(at.phase.output_vector.offset) +
                        GroupedRows::group_offset(kFfn, group.first_line) +
                        GroupedRows::element_offset(width, line + (odd ? 1 : 0),
                                                    kLayout.gated_place(tile * 8 + element / 2 * 2));
    const float2* factors = reinterpret_cast<const float2*>(context_.factors() + line);
    SOLITON_UNROLL
    for (int n = 0; n < kMostBlockRows / 8; ++n) {
      if (n * 8 >= width) break;
      const float2 scales = load_shared(factors + n * 4);
      const float low = gated(sums[4 * n], sums[4 * n + 2], scales.x);
      const float high = gated(sums[4 * n + 1], sums[4 * n + 3], scales.y);
      const float other = shuffle_xor(odd ? low : high, 4);
      if (n * 8 + line + (odd ? 1 : 0) < group.pairs)
        store_global(reinterpret_cast<uint32_t*>(to + n * 8 * 16),
                     odd ? pack_bf16(other, high) : pack_bf16(low, other));
    }
  }

  /// Sums of a tile of down, as threads that finish tiles want them.
  SOLITON_DEVICE void put_sums(const MatrixPhase& phase, const ExpertGroup& group, int tile, const Sums& sums,
                               float2 bias) const {
    const int width = group_width(group.pairs);
    constexpr int kQuarters = 4;
    const int lane = opaque(context_.lane);
    const bool odd = lane / 4 % 2 != 0;
    const int line = lane % 4 * 2 + (odd ? 1 : 0);
    float4* to = context_.template workspace<float4>(phase.output_vector.offset) +
                 (static_cast<int64_t>(tile) * kRows.most_lines() + group.first_line + line) * kQuarters +
                 lane / 8;
    SOLITON_UNROLL
    for (int n = 0; n < kMostBlockRows / 8; ++n) {
      if (n * 8 >= width) break;
      const float* of_lines = sums + 4 * n;
      float own[4] = {of_lines[0], of_lines[1], of_lines[2], of_lines[3]};
      if constexpr (kMixture.expert_bias) {
        SOLITON_UNROLL
        for (int i = 0; i < 4; ++i) own[i] += i < 2 ? bias.x : bias.y;
      }
      const float low = shuffle_xor(odd ? own[0] : own[1], 4);
      const float high = shuffle_xor(odd ? own[2] : own[3], 4);
      if (n * 8 + line < group.pairs)
        store_global(to + n * 8 * kQuarters, make_float4(odd ? low : own[0], odd ? own[1] : low,
                                                         odd ? high : own[2], odd ? own[3] : high));
    }
  }
};

}  // namespace soliton::rows
