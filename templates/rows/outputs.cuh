// What becomes of the sums of a tile: queries, keys and values, the FFN's hidden vector; the residual stream, see
// residual_stream.cuh.
//
// A thread looks after four sums of a tile for one row of activations: rows 2 q, 2 q + 1, 2 q + 8 and 2 q + 9 of
// the tile. So it has both halves of two rotation pairs, gate and up of two elements, or two pairs of
// neighbouring columns.
#pragma once

#include "ops/activation.cuh"
#include "ops/row_factors.cuh"
#include "rows/experts.cuh"
#include "rows/heads.cuh"
#include "rows/output_biases.cuh"
#include "rows/residual_stream.cuh"

namespace soliton::rows {

template <const KernelPlan& kPlan>
class Outputs : public ResidualStream<kPlan> {
  using Base = ResidualStream<kPlan>;

 public:
  using Base::Base;

  /// The code for many rows is long.
  static SOLITON_DEVICE float gated(float gate, float up, float scale) {
    constexpr Activation kActivation = kPlan.model.activation;
    if constexpr (kPlan.model.ungated) return activate<kActivation, kRowsShape.warpgroups>(gate * scale);
    return activate<kActivation, kRowsShape.warpgroups>(gate * scale) * multiplier<kActivation>(up * scale);
  }

 protected:
  using Base::candidate;
  using Base::context_, Base::worker_, Base::own_row_, Base::scale_;
  using Base::kRowsShape;
  using Base::publish, Base::norm_weights, Base::end_block;
  using Base::quarter, Base::row;
  using Base::sum_of_squares, Base::sum_quarters;
  using typename Base::Sums;

  /// What finishing a tile needs beside its sums, loaded while they are not there yet: weights of a norm, or
  /// cos and sin of two pairs of dims.
  struct Ahead {
    uint4 words = {};
  };
  SOLITON_DEVICE Ahead load_ahead(const MatrixInstance& at, int tile) const {
    if (at.phase.output == OutputKind::kResidual) {
      if constexpr (holds_blocks(kPlan.model.norms)) return {};  // norm_block() has use for them
      return {norm_weights(norm_row<kPlan>(at.phase, at.layer), tile)};
    }
    if (at.phase.output == OutputKind::kRotary) return {rotations(at.layer, tile)};
    return {};
  }

  /// Are there gate and up that are not experts'?
  static SOLITON_HOST_DEVICE constexpr bool has_dense_ffn() {
    for (int i = 0; i < kPlan.num_phases; ++i) {
      const Phase& phase = kPlan.phases[i];
      if (phase.kind == PhaseKind::kMatrix && phase.output == OutputKind::kSwiglu &&
          kPlan.matrices[phase.matrix].experts.axis == ExpertAxis::kNone)
        return true;
    }
    return false;
  }

  /// What becomes of this thread's sums of a tile, number `own_tile` of the CTA's.
  SOLITON_DEVICE void finish(const MatrixInstance& at, int tile, int own_tile, Sums sums, uint4 ahead) {
    if constexpr (RowFactors<kPlan>::kIsThere) multiply_by_factors(at, tile, sums);
    switch (at.phase.output) {
      case OutputKind::kRotary:
        rotary(tile, with_bias(at.layer, tile, sums), ahead);
        break;
      case OutputKind::kSwiglu:
        if constexpr (!kPairs<kPlan>) {
          if (expert_axis<kPlan>(at.phase) == ExpertAxis::kRows) return swiglu_of_expert(at, tile, sums);
        }
        if constexpr (has_dense_ffn()) swiglu(at, tile, sums);
        break;
      case OutputKind::kResidual:
        if constexpr (OutputBiases<kPlan>::kIsThere) {
          end_block(at.phase.output_vector, tile, own_tile, with_output_bias(at, tile, sums), ahead);
        } else {
          end_block(at.phase.output_vector, tile, own_tile, sums, ahead);
        }
        break;
      case OutputKind::kLogits:
        candidate(at.phase, tile, sums);
        break;
      case OutputKind::kRouter:
        route(at.phase, tile, sums);
        break;
    }
  }

  /// Of formats that have them: of rows 0..7 of a tile, and of the others.
  SOLITON_DEVICE float2 tile_factors(const MatrixInstance& at, int tile) const {
    using Factors = RowFactors<kPlan>;
    if (!Factors::are_of(at.phase)) return make_float2(1.0f, 1.0f);
    const float* factors = Factors::of_layer(context_.params.layer_biases, at.layer);
    return make_float2(load_constant(factors + Factors::number(at.phase, tile, false)),
                       load_constant(factors + Factors::number(at.phase, tile, true)));
  }
  SOLITON_DEVICE void multiply_by_factors(const MatrixInstance& at, int tile, Sums& sums) const {
    const float2 factors = tile_factors(at, opaque(tile));  // registers, likewise
    sums = {make_float2(sums.low.x * factors.x, sums.low.y * factors.x),
            make_float2(sums.high.x * factors.y, sums.high.y * factors.y)};
  }

  /// activation(gate) * up: rows 0..7 of a tile are gate rows, 8..15 the up rows of the same elements. Without a gate
  /// activation(up).
  SOLITON_DEVICE void swiglu(const MatrixInstance& at, int tile, Sums v) const {
    const Vector& vector = at.phase.output_vector;
    float scale = scale_;
    if constexpr (kPlan.model.up_biases > 0) {
      v = {make_float2(v.low.x * scale, v.low.y * scale), make_float2(v.high.x * scale, v.high.y * scale)};
      add(v, OutputBiases<kPlan>(context_, at.layer).of_up(tile, quarter()));
      scale = 1.0f;
    }
    if constexpr (kPlan.model.ungated) {
      const int column = tile * kTileRows + quarter() * 2;
      publish(vector, row(), column, make_float2(gated(v.low.x, 1.0f, scale), gated(v.low.y, 1.0f, scale)));
      publish(vector, row(), column + 8,
              make_float2(gated(v.high.x, 1.0f, scale), gated(v.high.y, 1.0f, scale)));
      return;
    }
    publish(vector, row(), tile * 8 + quarter() * 2,
            make_float2(gated(v.low.x, v.high.x, scale), gated(v.low.y, v.high.y, scale)));
  }
  /// The same of an expert, whose columns of activations are its pairs: times the weight with which the row goes through it.
  SOLITON_DEVICE void swiglu_of_expert(const MatrixInstance& at, int tile, Sums v) const {
    if constexpr (kMixes<kPlan> && !kGroups<kPlan>) {
      const int tiles = kExpertTable<kPlan>.phases[at.phase.number].tiles;
      const int number = tile / tiles;
      const ExpertSlot<kPlan> slot(context_, number);
      const int pairs = slot.pairs();
      const int rank = row();
      if (rank >= pairs) return;
      const int first = slot.first_pair();
      float scale = load_shared(context_.factors() + slot.row_of(first + rank));
      if constexpr (kPlan.model.mixture.expert_bias) {
        v = {make_float2(v.low.x * scale, v.low.y * scale), make_float2(v.high.x * scale, v.high.y * scale)};
        const OutputBiases<kPlan> biases(context_, at.layer);
        add(v, biases.of_gate_up(slot.number(), tile - number * tiles, quarter()));
        scale = 1.0f;
      }
      float weight = slot.weight_of(first + rank);
      if constexpr (RowFactors<kPlan>::kOfExperts) {
        const float4 factors =
            RowFactors<kPlan>::of_expert(context_.params.layer_biases, at.layer, slot.number());
        v = {make_float2(v.low.x * factors.x, v.low.y * factors.x),
             make_float2(v.high.x * factors.y, v.high.y * factors.y)};
        weight *= factors.z;
      }
      float2 pair =
          make_float2(weight * gated(v.low.x, v.high.x, scale), weight * gated(v.low.y, v.high.y, scale));
      const int column = (tile - number * tiles) * 8 + quarter() * 2;
      unsigned char* to = context_.template workspace<unsigned char>(at.phase.output_vector.offset);
      SOLITON_UNROLL
      for (int part = 0; part < kRowsShape.parts; ++part) {
        context_.publish(
            reinterpret_cast<uint32_t*>(to + expert_input_offset<kPlan>(first, pairs, part, rank, column)),
            pack_bf16(pair.x, pair.y));
        if (part + 1 < kRowsShape.parts) pair = make_float2(low_part(pair.x), low_part(pair.y));
      }
    }
  }

  /// Logits of experts, slice by slice and row by row; none of the rows that fill the last tile.
  SOLITON_DEVICE void route(const MatrixPhase& phase, int tile, const Sums& v) const {
    using Slices = RouterSlices<kPlan>;
    constexpr int kWords = Slices::kWords;
    float* to = context_.template workspace<float>(phase.output_vector.offset) +
                (tile % Slices::kCount * kPlan.rows + row()) * kWords;
    const auto put = [&](int expert, float2 logits) {
      if (expert >= kWords) return;
      context_.publish(reinterpret_cast<float2*>(to + expert),
                       make_float2(logits.x * scale_, logits.y * scale_));
    };
    const int expert = tile / Slices::kCount * kTileRows + quarter() * 2;
    put(expert, v.low);
    put(expert + 8, v.high);
  }

  /// q, k: rotates each pair of dims d and d + head_dim / 2 by position * frequency(d), unless their heads are
  /// normed first. v: as it is.
  SOLITON_DEVICE void rotary(int tile, const Sums& v, uint4 rotation_words) const {
    constexpr int kHeadDim = kPlan.model.head_dim;
    constexpr QkvLayout kLayout = kQkv<kPlan>;
    unsigned char* to = context_.template workspace<unsigned char>(kPlan.heads_in().offset);
    const int head = tile * kTileRows / kHeadDim;
    const int within = tile * kTileRows % kHeadDim;
    const bool is_query = head < kPlan.model.num_heads;
    const bool is_key = !is_query && head < kPlan.model.rotary_heads();
    const int pair = within / kTileRows * 8 + quarter() * 2;  // of dims pair and pair + head_dim / 2
    if constexpr (kPlan.model.head_norm) {
      if constexpr (kPlan.model.joint_norm) {
        if (is_query || is_key) {
          const float sum = sum_quarters(sum_of_squares(v));
          // Registers are full: none is to hold what follows from these for other uses.
          if (quarter() == 0) context_.publish(joint_squares(context_, opaque(row()), opaque(tile)), sum);
        }
      }
      if (is_query || is_key) {
        // Pairs with the loads in norm_heads(), a phase later.
        const int kv_head = is_query ? head / kPlan.model.group() : head - kPlan.model.num_heads;
        const auto put = [&](int dim, float2 v) {
          float2* const to = reinterpret_cast<float2*>(unnormed(context_, row(), head, dim));
          if constexpr (awaits_words(kPlan, PhaseKind::kNormHeads)) {
            store_relaxed(to, make_float2(publishable(v.x), publishable(v.y)));
          } else {
            context_.publish_of_head(kv_head, to, v);
          }
        };
        put(pair, v.low);
        put(pair + kHeadDim / 2, v.high);
        return;
      }
    }
    const float4 rotation = make_float4(float_from_bits(rotation_words.x), float_from_bits(rotation_words.y),
                                        float_from_bits(rotation_words.z), float_from_bits(rotation_words.w));
    const float2 low = make_float2(v.low.x * rotation.x - v.high.x * rotation.y,
                                   v.low.y * rotation.z - v.high.y * rotation.w);
    const float2 high = make_float2(v.high.x * rotation.x + v.low.x * rotation.y,
                                    v.high.y * rotation.z + v.low.y * rotation.w);
    if (is_query) {
      const int kv_head = head / kPlan.model.group();
      const int query = row() * kPlan.model.group() + head % kPlan.model.group();
      put_query(context_, kv_head, query, pair, low);
      put_query(context_, kv_head, query, pair + kHeadDim / 2, high);
    } else if (is_key) {
      const int kv_head = head - kPlan.model.num_heads;
      put_key(context_, kv_head, row(), pair, low);
      put_key(context_, kv_head, row(), pair + kHeadDim / 2, high);
    } else {
      const int kv_head = head - kPlan.model.rotary_heads();
      unsigned char* values = to + kLayout.values_offset(kv_head / kPlan.num_cards);
      float dims[] = {low.x, low.y, high.x, high.y};
      SOLITON_UNROLL
      for (int part = 0; part < kLayout.kv.parts; ++part) {
        SOLITON_UNROLL
        for (int i = 0; i < 4; ++i) {
          const int dim = within + quarter() * 2 + i / 2 * 8 + i % 2;
          context_.publish_of_head(
              kv_head, reinterpret_cast<uint16_t*>(values + kLayout.kv.value_offset(row(), dim, part)),
              float_to_f16(dims[i]));
          if (part + 1 < kLayout.kv.parts) dims[i] = low_part_f16(dims[i]);
        }
      }
    }
  }

  /// Biases of a tile of q, k and v.
  SOLITON_DEVICE const float* biases(int layer, int tile) const {
    return context_.params.qkv_biases + static_cast<int64_t>(layer) * kPlan.model.qkv_rows() +
           tile * kTileRows;
  }
  /// Brings those of this CTA's tiles into L2. Registers are too few to hold them until they are added.
  SOLITON_DEVICE void prefetch_biases(int layer, const TileRun& run) const {
    if constexpr (kPlan.model.qkv_bias) {
      if (worker_ != 0) return;
      for (int i = context_.lane; i < run.count; i += kWarpLanes)
        prefetch_vector(biases(layer, run.first + i * run.stride), kTileRows * 4);
    }
  }
  /// A tile's sums of q, k and v as the layer gives them.
  SOLITON_DEVICE Sums with_bias(int layer, int tile, const Sums& v) const {
    const float s = scale_;
    Sums result = {make_float2(v.low.x * s, v.low.y * s), make_float2(v.high.x * s, v.high.y * s)};
    if constexpr (kPlan.model.qkv_bias) {
      const float* own = biases(layer, tile) + quarter() * 2;
      const float2 low = load_constant(reinterpret_cast<const float2*>(own));
      const float2 high = load_constant(reinterpret_cast<const float2*>(own + 8));
      result.low = make_float2(result.low.x + low.x, result.low.y + low.y);
      result.high = make_float2(result.high.x + high.x, result.high.y + high.y);
    }
    return result;
  }

  /// A tile's sums of o, or of down.
  SOLITON_DEVICE Sums with_output_bias(const MatrixInstance& at, int tile, Sums v) const {
    const OutputBiases<kPlan> biases(context_, at.layer);
    add(v, at.phase.appends ? biases.of_o(tile, quarter()) : biases.of_down(tile, row(), quarter()));
    return v;
  }
  static SOLITON_DEVICE void add(Sums& sums, float4 bias) {
    sums.low = make_float2(sums.low.x + bias.x, sums.low.y + bias.y);
    sums.high = make_float2(sums.high.x + bias.z, sums.high.y + bias.w);
  }

  /// cos and sin of this thread's two pairs of dims, as bits; where nothing rotates yet or at all, no rotation.
  SOLITON_DEVICE uint4 rotations(int layer, int tile) const {
    constexpr int kHeadDim = kPlan.model.head_dim;
    const uint32_t one = float_bits(1.0f);
    if (kPlan.model.head_norm || tile * kTileRows >= kPlan.model.rotary_heads() * kHeadDim)
      return make_uint4(one, 0, one, 0);
    const int pair = tile * kTileRows % kHeadDim / kTileRows * 8 + quarter() * 2;
    int rope = rope_of<kPlan>(layer);
    if (rope < 0) return make_uint4(one, 0, one, 0);
    if constexpr (kPlan.model.query_table != 0) {
      if (tile * kTileRows < kPlan.model.num_heads * kHeadDim) rope += kPlan.model.query_table;
    }
    constexpr int kPairs = kPlan.model.rope_tables * kHeadDim / 2;
    return load_constant(reinterpret_cast<const uint4*>(
        context_.params.rotary +
        (static_cast<int64_t>(context_.position(row())) * kPairs + rope * (kHeadDim / 2) + pair) * 2));
  }
};

}  // namespace soliton::rows
