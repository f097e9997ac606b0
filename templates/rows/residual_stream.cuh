// The residual stream of several rows: embeddings, what blocks add, and what is published of it.
//
// A thread's values of it are its own for the launch. A normed vector is published with the norm's weights applied, in bf16; of
// the rows' sums of squares every CTA publishes those of its columns. So the factor comes in after the product. Where a norm
// follows a block, what the block gives is kept beside the stream until all CTAs know its sums of squares; where it loses its
// mean, its sums.
#pragma once

#include "ops/norm_weights.cuh"
#include "ops/row_factors.cuh"
#include "rows/choice.cuh"

namespace soliton::rows {

template <const KernelPlan& kPlan>
class ResidualStream : public Choice<kPlan> {
  using Base = Choice<kPlan>;

 public:
  using Base::Base;

 protected:
  using Base::context_, Base::own_row_;
  using Base::kRowsShape, Base::kTeams, Base::kThreads, Base::kOwnRows, Base::kQuarters;
  using Base::squares, Base::set_squares, Base::sum_quarters;
  using Base::team, Base::thread, Base::quarter, Base::row, Base::row_of_block;
  using typename Base::Sums;

  /// Publishes two neighbouring columns of a row.
  SOLITON_DEVICE void publish(Vector vector, int row, int column, float2 v) const {
    unsigned char* to = context_.template workspace<unsigned char>(vector.offset);
    v = make_float2(v.x * kInputScale<kPlan>, v.y * kInputScale<kPlan>);
    SOLITON_UNROLL
    for (int part = 0; part < kRowsShape.parts; ++part) {
      context_.publish(reinterpret_cast<uint32_t*>(to + context_.element_offset(vector, part, row, column)),
                       pack_bf16(v.x, v.y));
      if (part + 1 < kRowsShape.parts) v = make_float2(low_part(v.x), low_part(v.y));
    }
  }

  /// Lines that a row's experts have put out, and their weights.
  struct RowLines {
    int of[kPlan.model.mixture.used() + 1];
    float weights[kPlan.model.mixture.used() + 1];
  };

  /// `kVector`: those of the residual stream, or of what a block gives.
  template <int kVector = kPlan.squares>
  SOLITON_DEVICE float* squares_of(int row) const {
    return context_.template workspace<float>(kPlan.vector(kVector).offset) + row * kSquaresStride;
  }
  static constexpr int kSquaresStride = kPlan.squares_stride();

  template <int kVector = kPlan.squares>
  SOLITON_DEVICE void publish_squares() const {
    const float sum = sum_quarters(squares());
    if (quarter() != 0 || team() >= kPlan.residual_teams()) return;
    float* own = squares_of<kVector>(row()) + team() * kPlan.block_ctas() + context_.block_cta();
    // Where no barrier is between gate and up and the layer's end: CTAs that had none of those may still read what nobody needs. The
    // others had read it before they put out anything.
    if constexpr (awaits_pairs(kPlan)) {
      store_relaxed(own, sum);
    } else {
      context_.publish(own, sum);
    }
  }

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
    store_kept(own_tile, v);
    publish_normed(vector, tile, v, weights);
  }
  SOLITON_DEVICE void store_kept(int own_tile, const Sums& v) const {
    const float4 value = make_float4(v.low.x, v.low.y, v.high.x, v.high.y);
    if constexpr (kRowsShape.warpgroups) {
      store_global(kept(own_tile), value);
    } else {
      store_shared(kept(own_tile), value);
    }
  }
  SOLITON_DEVICE void publish_normed(Vector vector, int tile, const Sums& v, uint4 weights) {
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
        deal_tiles(kPlan.model.hidden / kTileRows, 0, kPlan.block_ctas(), context_.block_cta());
    [[maybe_unused]] const float mean = subtracts_means(kPlan.model.norms) ? embedding_mean(token) : 0.0f;
    set_squares(0.0f);
    SOLITON_NO_UNROLL
    for (int i = team(); i < run.count; i += kTeams) {
      const int tile = run.first + i * run.stride;
      const uint4 weights = norms_before(kPlan.model.norms) ? norm_weights(0, tile) : no_norm();
      Sums values = embedding_of(token, tile, weights);
      if constexpr (subtracts_means(kPlan.model.norms)) values = less(values, mean);
      keep(kPlan.layer_input(), tile, i, values, weights);
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

  /// Of all of a token's embedding: each of a row's threads adds up its share.
  SOLITON_DEVICE float embedding_mean(int token) const {
    const uint2* embedding = reinterpret_cast<const uint2*>(context_.params.embedding +
                                                            static_cast<int64_t>(token) * kPlan.model.hidden);
    float sum = 0.0f;
    for (int i = quarter(); i < kPlan.model.hidden / 4; i += kQuarters) {
      const float4 v = unpack_bf16(load_constant(embedding + i));
      sum += (v.x + v.y) + (v.z + v.w);
    }
    return kPlan.model.embedding_scale * sum_quarters(sum) / kPlan.model.hidden;
  }
  static SOLITON_DEVICE Sums less(const Sums& v, float mean) {
    return {make_float2(v.low.x - mean, v.low.y - mean), make_float2(v.high.x - mean, v.high.y - mean)};
  }

  static SOLITON_DEVICE float embedded(uint16_t bits) {
    return kPlan.model.embedding_scale * bf16_to_float(bits);
  }

  /// What a block gives: the residual stream grows by it, or, where it is normed first or loses its mean, norm_block() lets it.
  SOLITON_DEVICE void end_block(Vector vector, int tile, int own_tile, const Sums& v, uint4 weights) {
    if constexpr (holds_blocks(kPlan.model.norms)) {
      store_global(block_values(own_tile), make_float4(v.low.x, v.low.y, v.high.x, v.high.y));
      set_squares(squares() + (subtracts_means(kPlan.model.norms)
                                   ? (v.low.x + v.low.y) + (v.high.x + v.high.y)
                                   : sum_of_squares(v)));
    } else {
      residual(vector, tile, own_tile, v, weights);
    }
  }
  /// Do sums of warpgroups begin with the residual stream?
  static constexpr bool kSumsBeginWithStream = kRowsShape.warpgroups && !holds_blocks(kPlan.model.norms) &&
                                               kPlan.model.residual_scale == 1 &&
                                               !RowFactors<kPlan>::kIsThere;

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
  /// Adds up what a row's experts have put out, each times its weight, in the order of its choices, and adds that to the residual
  /// stream, which the next phase reads from `stream`. `outputs`: of the tile's lines. Registers have no room for two tiles.
  SOLITON_DEVICE void add_experts(const MatrixInstance& at, Vector stream, const RowLines& lines,
                                  float4* outputs, int tile, int own_tile) {
    constexpr int kUsed = kPlan.model.mixture.used();
    const uint4 weights = norm_weights(norm_row<kPlan>(at.phase, at.layer), tile);
    float4 sum = kSumsBeginWithStream ? load_kept(own_tile) : make_float4(0, 0, 0, 0);
    float4 parts[kUsed];
    const auto part_of = [&](int i) { return outputs + lines.of[i] * kQuarters + quarter(); };
    constexpr bool kAwaits = awaits_words(kPlan, PhaseKind::kUngroup);
    SOLITON_UNROLL
    for (int i = 0; i < kUsed; ++i) parts[i] = kAwaits ? load_relaxed(part_of(i)) : load_global(part_of(i));
    if constexpr (kAwaits) context_.await_words(row(), parts, part_of);
    SOLITON_UNROLL
    for (int i = 0; i < kUsed; ++i) {
      sum = make_float4(fmaf(parts[i].x, lines.weights[i], sum.x), fmaf(parts[i].y, lines.weights[i], sum.y),
                        fmaf(parts[i].z, lines.weights[i], sum.z), fmaf(parts[i].w, lines.weights[i], sum.w));
    }
    end_block(stream, tile, own_tile, {make_float2(sum.x, sum.y), make_float2(sum.z, sum.w)}, weights);
  }

  /// Norms what a block gave by its row of the norms, and its factor, or subtracts its mean, and adds it to the residual
  /// stream, which the next phase reads from `stream`, normed by the row behind that if it norms.
  SOLITON_DEVICE void add_block(const MatrixInstance& at, Vector stream, int tile, int own_tile) {
    const int row_of_reader = norm_row<kPlan>(at.phase, at.layer);
    const bool norms =
        norms_before(kPlan.model.norms) || (!at.phase.appends && at.layer == kPlan.model.num_layers - 1);
    const uint4 weights = norms ? norm_weights(row_of_reader, tile) : no_norm();
    if constexpr (subtracts_means(kPlan.model.norms)) return add_centred(at, stream, tile, own_tile, weights);
    const uint4 own = norm_weights(row_of_reader - 1, tile);
    const float4 block = load_global(block_values(own_tile));
    const float4 before = load_kept(own_tile);
    const float scale = load_shared(context_.factors() + row_of_block());
    const auto add = [&](float stream_value, float value, uint32_t word) {
      return fmaf(value * scale, norm_weight<kPlan>(static_cast<uint16_t>(word)), stream_value);
    };
    keep(stream, tile, own_tile,
         {make_float2(add(before.x, block.x, own.x), add(before.y, block.y, own.x >> 16)),
          make_float2(add(before.z, block.z, own.y), add(before.w, block.w, own.y >> 16))},
         weights);
  }
  SOLITON_DEVICE void add_centred(const MatrixInstance& at, Vector stream, int tile, int own_tile,
                                  uint4 weights) {
    const float4 block = load_global(block_values(own_tile));
    const float4 kept = load_kept(own_tile);
    const float mean = load_shared(context_.factors() + row_of_block());
    const Sums before = {make_float2(kept.x, kept.y), make_float2(kept.z, kept.w)};
    const Sums own = less({make_float2(block.x, block.y), make_float2(block.z, block.w)}, mean);
    const Sums after = {make_float2(before.low.x + own.low.x, before.low.y + own.low.y),
                        make_float2(before.high.x + own.high.x, before.high.y + own.high.y)};
    store_kept(own_tile, after);
    // What attention gives is added all the same: the next layer's input has it.
    const bool reads_again = is_parallel(kPlan.model.norms) && at.phase.appends;
    const auto read = [&](float2 old, float2 updated) {  // by value: in registers
      return make_float2(reads_again ? old.x : updated.x, reads_again ? old.y : updated.y);
    };
    publish_normed(stream, tile, {read(before.low, after.low), read(before.high, after.high)}, weights);
  }
};

}  // namespace soliton::rows
