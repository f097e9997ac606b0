// What becomes of the sums of a tile: queries, keys and values, the residual stream, the FFN's hidden vector.
//
// A thread looks after four sums of a tile for one row of activations: rows 2 q, 2 q + 1, 2 q + 8 and 2 q + 9 of
// the tile. So it has both halves of two rotation pairs, gate and up of two elements, or two pairs of
// neighbouring columns; and its values of the residual stream are its own for the launch.
//
// A normed vector is published with the norm's weights applied, in bf16; of the rows' sums of squares every
// CTA publishes those of its columns. So the factor comes in after the product.
#pragma once

#include "ops/activation.cuh"
#include "rows/choice.cuh"
#include "rows/experts.cuh"
#include "rows/heads.cuh"
#include "rows/output_biases.cuh"

namespace soliton::rows {

template <const KernelPlan& kPlan>
class Outputs : public Choice<kPlan> {
  using Base = Choice<kPlan>;

 public:
  using Base::Base;

 protected:
  using Base::candidate;
  using Base::context_, Base::worker_, Base::own_row_, Base::scale_;
  using Base::kRowsShape, Base::kTeams, Base::kThreads, Base::kOwnRows;
  using Base::squares, Base::set_squares, Base::sum_quarters;
  using Base::team, Base::thread, Base::quarter, Base::row;
  using typename Base::Sums;

  /// What finishing a tile needs beside its sums, loaded while they are not there yet: weights of a norm, or
  /// cos and sin of two pairs of dims.
  struct Ahead {
    uint4 words = {};
  };
  SOLITON_DEVICE Ahead load_ahead(const MatrixInstance& at, int tile) const {
    if (at.phase.output == OutputKind::kResidual) {
      if constexpr (norms_after(kPlan.model.norms)) return {};  // norm_block() has use for them
      return {norm_weights(norm_row<kPlan>(at.phase, at.layer), tile)};
    }
    if (at.phase.output == OutputKind::kRotary) return {rotations(at.layer, tile)};
    return {};
  }

  /// What becomes of this thread's sums of a tile, number `own_tile` of the CTA's.
  SOLITON_DEVICE void finish(const MatrixInstance& at, int tile, int own_tile, const Sums& sums,
                             uint4 ahead) {
    switch (at.phase.output) {
      case OutputKind::kRotary:
        rotary(tile, with_bias(at.layer, tile, sums), ahead);
        break;
      case OutputKind::kSwiglu:
        if (expert_axis<kPlan>(at.phase) == ExpertAxis::kRows) {
          swiglu_of_expert(at, tile, sums);
        } else {
          swiglu(at.phase.output_vector, tile, sums);
        }
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

  /// Publishes two neighbouring columns of a row.
  SOLITON_DEVICE void publish(Vector vector, int row, int column, float2 v) const {
    unsigned char* to = context_.template workspace<unsigned char>(vector.offset);
    SOLITON_UNROLL
    for (int part = 0; part < kRowsShape.parts; ++part) {
      context_.publish(reinterpret_cast<uint32_t*>(to + context_.element_offset(vector, part, row, column)),
                       pack_bf16(v.x, v.y));
      if (part + 1 < kRowsShape.parts) v = make_float2(low_part(v.x), low_part(v.y));
    }
  }

  // ---- Norms

  /// `kVector`: those of the residual stream, or of what a block gives.
  template <int kVector = kPlan.squares>
  SOLITON_DEVICE float* squares_of(int row) const {
    return context_.template workspace<float>(kPlan.vector(kVector).offset) + row * kSquaresStride;
  }
  static constexpr int kSquaresStride = kPlan.squares_stride();

  template <int kVector = kPlan.squares>
  SOLITON_DEVICE void publish_squares() const {
    const float sum = sum_quarters(squares());
    if (quarter() == 0 && team() < kPlan.residual_teams())
      context_.publish(squares_of<kVector>(row()) + team() * kPlan.all_ctas() + context_.global_cta(), sum);
  }

  // ---- Residual stream

  /// This thread's values of the residual stream in one of this CTA's tiles.
  SOLITON_DEVICE float4* kept(int own_tile) const {
    const int place = kOwnRows == 1 ? own_tile : own_tile * kOwnRows + own_row_;
    float4* values;
    if constexpr (kRowsShape.warpgroups) {
      constexpr int64_t kFirst = kPlan.residual_offset(0);
      constexpr int64_t kBytes = kPlan.residual_bytes();
      values = context_.template workspace<float4>(kFirst + context_.cta * kBytes);
    } else {
      values = context_.template region<float4>(RegionId::kResidual);
    }
    return values + place * kThreads + thread();
  }
  SOLITON_DEVICE float4 load_kept(int own_tile) const {
    if constexpr (kRowsShape.warpgroups) return load_global(kept(own_tile));
    return load_shared(kept(own_tile));
  }

  /// Where norms follow blocks: this thread's values of what a block gives, until all CTAs know its sums of squares.
  SOLITON_DEVICE float4* block_values(int own_tile) const {
    const int place = kOwnRows == 1 ? own_tile : own_tile * kOwnRows + own_row_;
    return context_.template workspace<float4>(kPlan.vector(kPlan.block).offset +
                                               context_.cta * int64_t{kPlan.residual_bytes()}) +
           place * kThreads + thread();
  }

  /// Keeps new values of the residual stream, and publishes them times the weights of the norm of the phase
  /// that reads them, see norm_weights().
  SOLITON_DEVICE void keep(Vector vector, int tile, int own_tile, const Sums& v, uint4 weights) {
    const float4 value = make_float4(v.low.x, v.low.y, v.high.x, v.high.y);
    if constexpr (kRowsShape.warpgroups) {
      store_global(kept(own_tile), value);
    } else {
      store_shared(kept(own_tile), value);
    }
    set_squares(squares() + sum_of_squares(v));
    if constexpr (kPlan.model.ordered) {
      const float values[] = {v.low.x, v.low.y, v.high.x, v.high.y};
      const uint32_t words[] = {weights.x, weights.y, weights.z, weights.w};
      SOLITON_UNROLL
      for (int i = 0; i < 4; ++i) {
        context_.publish_element(vector, row(), place_of(words[i]),
                                 values[i] * norm_weight<kPlan>(static_cast<uint16_t>(words[i] >> 16)));
      }
      return;
    }
    const auto put = [&](int column, float2 pair, uint32_t w) {
      publish(vector, row(), column,
              make_float2(pair.x * norm_weight<kPlan>(static_cast<uint16_t>(w)),
                          pair.y * norm_weight<kPlan>(static_cast<uint16_t>(w >> 16))));
    };
    const int column = tile * kTileRows + quarter() * 2;
    put(column, v.low, weights.x);
    put(column + 8, v.high, weights.y);
  }
  /// A norm's weights of this thread's columns of a tile, in the first two words. Where readers have columns in an order
  /// of their own a word for each: where its reader has it, and its weight in the upper half.
  SOLITON_DEVICE uint4 norm_weights(int norm, int tile) const {
    const uint16_t* weights = context_.params.norms + static_cast<int64_t>(norm) * kPlan.model.hidden;
    const int first = tile * kTileRows + quarter() * 2;
    if constexpr (kPlan.model.ordered) {
      const int32_t* places = context_.params.positions + kPlan.order_tables().of_norm(norm) + first;
      const auto word = [&](int column) {
        const int place = load_constant(places + column);
        return static_cast<uint32_t>(load_constant(weights + place)) << 16 | static_cast<uint32_t>(place);
      };
      return make_uint4(word(0), word(1), word(8), word(9));
    }
    return make_uint4(load_constant(reinterpret_cast<const uint32_t*>(weights + first)),
                      load_constant(reinterpret_cast<const uint32_t*>(weights + first + 8)), 0, 0);
  }
  /// In place of weights where what is read is not normed: ones.
  static SOLITON_DEVICE uint4 no_norm() {
    constexpr uint32_t kOnes = kPlan.model.norm_offset ? 0 : 0x3f803f80u;
    return make_uint4(kOnes, kOnes, 0, 0);
  }
  static SOLITON_DEVICE float sum_of_squares(const Sums& v) {
    return (v.low.x * v.low.x + v.low.y * v.low.y) + (v.high.x * v.high.x + v.high.y * v.high.y);
  }
  static SOLITON_DEVICE int place_of(uint32_t word) {
    static_assert(!kPlan.model.ordered || kPlan.model.hidden <= 1 << 16, "half a word holds a place");
    return static_cast<int>(word & 0xffff);
  }

  /// The residual stream begins with the tokens' embeddings.
  SOLITON_DEVICE void embed(int token) {
    const TileRun run =
        deal_tiles(kPlan.model.hidden / kTileRows, 0, kPlan.all_ctas(), context_.global_cta());
    set_squares(0.0f);
    SOLITON_NO_UNROLL
    for (int i = team(); i < run.count; i += kTeams) {
      const int tile = run.first + i * run.stride;
      const uint4 weights = norms_before(kPlan.model.norms) ? norm_weights(0, tile) : no_norm();
      keep(kPlan.layer_input(), tile, i, embedding_of(token, tile, weights), weights);
    }
    publish_squares();
  }

  /// Of a token, of this thread's columns of a tile; where columns have an order, in that of layer 0: `weights` of its norm
  /// say where.
  SOLITON_DEVICE Sums embedding_of(int token, int tile, uint4 weights) const {
    const uint16_t* embedding = context_.params.embedding + static_cast<int64_t>(token) * kPlan.model.hidden;
    if constexpr (kPlan.model.ordered) {
      const auto value = [&](uint32_t word) { return embedded(load_constant(embedding + place_of(word))); };
      return {make_float2(value(weights.x), value(weights.y)),
              make_float2(value(weights.z), value(weights.w))};
    }
    const auto pair = [&](int column) {
      const uint32_t v = load_constant(
          reinterpret_cast<const uint32_t*>(embedding + tile * kTileRows + quarter() * 2 + column));
      return make_float2(embedded(static_cast<uint16_t>(v)), embedded(static_cast<uint16_t>(v >> 16)));
    };
    return {pair(0), pair(8)};
  }

  static SOLITON_DEVICE float embedded(uint16_t bits) {
    return kPlan.model.embedding_scale * bf16_to_float(bits);
  }

  /// What a block gives: the residual stream grows by it, or, where it is normed first, norm_block() lets it.
  SOLITON_DEVICE void end_block(Vector vector, int tile, int own_tile, const Sums& v, uint4 weights) {
    if constexpr (norms_after(kPlan.model.norms)) {
      store_global(block_values(own_tile), make_float4(v.low.x, v.low.y, v.high.x, v.high.y));
      set_squares(squares() + sum_of_squares(v));
    } else {
      residual(vector, tile, own_tile, v, weights);
    }
  }
  /// Do sums of warpgroups begin with the residual stream?
  static constexpr bool kSumsBeginWithStream =
      kRowsShape.warpgroups && !norms_after(kPlan.model.norms) && kPlan.model.residual_scale == 1;

  SOLITON_DEVICE void residual(Vector vector, int tile, int own_tile, Sums v, uint4 weights) {
    if constexpr (kPlan.model.residual_scale != 1) {
      constexpr float kScale = kPlan.model.residual_scale;
      v = {make_float2(v.low.x * kScale, v.low.y * kScale),
           make_float2(v.high.x * kScale, v.high.y * kScale)};
    }
    if constexpr (!kSumsBeginWithStream) {
      const float4 before = load_kept(own_tile);
      v.low.x += before.x;
      v.low.y += before.y;
      v.high.x += before.z;
      v.high.y += before.w;
    }
    keep(vector, tile, own_tile, v, weights);
  }
  /// Norms what a block gave by its row of the norms, and its factor, and adds it to the residual stream, which the next
  /// phase reads from `stream`, normed by the row behind that if it norms.
  SOLITON_DEVICE void add_block(const MatrixInstance& at, Vector stream, int tile, int own_tile) {
    const int row_of_reader = norm_row<kPlan>(at.phase, at.layer);
    const bool norms =
        norms_before(kPlan.model.norms) || (!at.phase.appends && at.layer == kPlan.model.num_layers - 1);
    const uint4 weights = norms ? norm_weights(row_of_reader, tile) : no_norm();
    const uint4 own = norm_weights(row_of_reader - 1, tile);
    const float4 block = load_global(block_values(own_tile));
    const float4 before = load_kept(own_tile);
    const float scale = load_shared(context_.factors() + row());
    const auto add = [&](float stream_value, float value, uint32_t word) {
      return fmaf(value * scale, norm_weight<kPlan>(static_cast<uint16_t>(word)), stream_value);
    };
    keep(stream, tile, own_tile,
         {make_float2(add(before.x, block.x, own.x), add(before.y, block.y, own.x >> 16)),
          make_float2(add(before.z, block.z, own.y), add(before.w, block.w, own.y >> 16))},
         weights);
  }

  // ---- Other outputs

  /// activation(gate) * up: rows 0..7 of a tile are gate rows, 8..15 the up rows of the same elements.
  SOLITON_DEVICE void swiglu(Vector vector, int tile, const Sums& v) const {
    publish(vector, row(), tile * 8 + quarter() * 2,
            make_float2(gated(v.low.x, v.high.x, scale_), gated(v.low.y, v.high.y, scale_)));
  }
  /// The same of an expert, whose columns of activations are its pairs: times the weight with which the row goes through it.
  SOLITON_DEVICE void swiglu_of_expert(const MatrixInstance& at, int tile, Sums v) const {
    if constexpr (kMixes<kPlan>) {
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
      const float weight = slot.weight_of(first + rank);
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

  /// The code for many rows is long.
  static SOLITON_DEVICE float gated(float gate, float up, float scale) {
    constexpr Activation kActivation = kPlan.model.activation;
    return activate<kActivation, kRowsShape.warpgroups>(gate * scale) * multiplier<kActivation>(up * scale);
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
          context_.publish_of_head(kv_head, reinterpret_cast<float2*>(unnormed(context_, row(), head, dim)),
                                   v);
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

  /// A tile's sums of o, or of down of experts.
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
    const int rope = rope_of<kPlan>(layer);
    if (rope < 0) return make_uint4(one, 0, one, 0);
    constexpr int kPairs = kPlan.model.rope_tables * kHeadDim / 2;
    return load_constant(reinterpret_cast<const uint4*>(
        context_.params.rotary +
        (static_cast<int64_t>(context_.position(row())) * kPairs + rope * (kHeadDim / 2) + pair) * 2));
  }
};

}  // namespace soliton::rows
