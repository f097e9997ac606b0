// What becomes of the sums of tiles; and the tokens of a step and their embedding. Workers hand over a few tiles at
// once; teams, which have a worker for every 8 rows, finish them, each its own. Logits are the first team's.
//
// A thread looks after four sums of a tile for one row of activations: rows 2 q, 2 q + 1, 2 q + 8 and 2 q + 9 of
// the tile. So it has both halves of two rotation pairs, gate and up of two elements, or two pairs of
// neighbouring columns; and its values of the residual stream are its own for the launch.
//
// A normed vector is published with the norm's weights applied, in bf16; of the rows' sums of squares every
// CTA publishes those of its columns. So the factor comes in after the product.
#pragma once

#include "rows/choice.cuh"
#include "rows/heads.cuh"
#include "rows/partial_sums.cuh"

namespace soliton::rows {

template <const KernelPlan& kPlan>
class Epilogue : public Choice<kPlan> {
  using Base = Choice<kPlan>;
  using Base::context_, Base::worker_, Base::own_row_, Base::scale_;
  using Base::find_token, Base::candidate, Base::end_choice;
  using Base::is_active, Base::is_live, Base::team, Base::thread, Base::quarter, Base::row;
  using Base::kRowsShape, Base::kTeams, Base::kThreads, Base::kQuarters, Base::kOwnRows, Base::kRowStride;
  using Base::squares, Base::set_squares, Base::set_best, Base::sum_quarters;
  using typename Base::Sums;

 public:
  using Base::Base;

  /// Sums of squares, of each of this worker's share of the rows.
  struct Squares {
    float sums[kPlan.rows / kWorkers] = {};
  };
  SOLITON_DEVICE Squares load_squares() const {
    constexpr int kLoads = kSquaresStride / (4 * kWarpLanes);
    constexpr int kShare = kPlan.rows / kWorkers;
    Squares all;
    SOLITON_UNROLL
    for (int i = 0; i < kShare; ++i) {
      const float4* squares = reinterpret_cast<const float4*>(squares_of(worker_ * kShare + i));
      SOLITON_UNROLL
      for (int k = 0; k < kLoads; ++k) {
        const float4 v = load_global(squares + k * kWarpLanes + context_.lane);
        all.sums[i] += (v.x + v.y) + (v.z + v.w);
      }
    }
    return all;
  }
  /// RMS norm's factors of them, for whoever finishes tiles: tiles_full says that they are there. What no CTA writes is zero.
  /// Of two lanes each goes on with half of the rows that both have, until every lane has one: few shuffles, one root.
  SOLITON_DEVICE void put_factors(Squares all) const {
    constexpr int kShare = kPlan.rows / kWorkers;
    int row = 0;
    SOLITON_UNROLL
    for (int round = 0; 1 << round < kWarpLanes; ++round) {
      const int mask = 1 << round;
      const int left = kShare >> (round + 1);
      if (left == 0) all.sums[0] += shuffle_xor(all.sums[0], mask);
      const bool rear = (context_.lane & mask) != 0;
      if (rear) row += left;
      SOLITON_UNROLL
      for (int i = 0; i < kShare / 2; ++i) {
        if (i >= left) break;
        const float own = rear ? all.sums[i + left] : all.sums[i];
        all.sums[i] = own + shuffle_xor(rear ? all.sums[i] : all.sums[i + left], mask);
      }
    }
    if (context_.lane >= kShare) return;
    store_shared(context_.factors() + worker_ * kShare + row,
                 rsqrt_fast(all.sums[0] / kPlan.model.hidden + kPlan.model.norm_epsilon));
  }

  /// Finds the tokens of the step, if it happens, and embeds them.
  SOLITON_DEVICE bool begin_step() {
    if (!is_active()) return context_.step_happens();
    bool stop = context_.step >= context_.params.num_steps;
    if (context_.step == 0 && context_.is_first_cta() && worker_ == 0 && context_.lane == 0) {
      store_system(context_.params.records + context_.params.num_steps * kPlan.rows,
                   static_cast<uint64_t>(time_ns()) << 32);
    }
    int tokens[kOwnRows];
    SOLITON_UNROLL
    for (int i = 0; i < kOwnRows; ++i) {
      own_row_ = i;
      tokens[i] = find_token(stop);
    }
    const int worker = opaque(worker_);  // no register holds the address for the launch
    if (warp_any(stop) && context_.lane == 0) store_shared(&context_.decision().stop[worker], 1);
    warp_arrive(&context_.barrier(BarrierId::kStepKnown));
    if (!context_.step_happens()) return false;
    SOLITON_UNROLL
    for (int i = 0; i < kOwnRows; ++i) {
      own_row_ = i;
      if (context_.params.sampling.seen != nullptr && team() == 0 && quarter() == 0)
        store_global(context_.fed_tokens() + row(), tokens[i]);
      embed(tokens[i]);
    }
    return true;
  }

  /// Before the tiles of a phase. Where its input becomes digits the worker finds the factors meanwhile.
  SOLITON_DEVICE void begin(const MatrixInstance& at, const TileRun& run, bool finds_factors) {
    if (at.phase.output == OutputKind::kRotary) prefetch_biases(at.layer, run);
    if (finds_factors && at.phase.input == InputKind::kNormed && run.count > 0) put_factors(load_squares());
    SOLITON_UNROLL
    for (int i = 0; i < kOwnRows; ++i) {
      own_row_ = i;
      if (!kRowsShape.warpgroups || at.phase.output == OutputKind::kResidual) set_squares(0.0f);
      if (!kRowsShape.warpgroups || at.phase.output == OutputKind::kLogits) set_best(kNoCandidate);
    }
  }

  /// Finishes this team's of the CTA's own tiles of a block, of those from its tile `begin` to `end_tile` - 1: `sums` begin
  /// with the former. A thread brings what it needs of a few at once, and keeps it in shared memory: so the code that
  /// finishes a tile is there once, and the loads are on their way together.
  SOLITON_DEVICE void finish_tiles(const MatrixInstance& at, const TileRun& run, const TileBlock& block,
                                   const PartialSums<kPlan>& sums, int begin, int end_tile) {
    const int first = of_slices(begin, sums.slices()) + team();
    const int most = of_slices(end_tile - begin + sums.slices() - 1, sums.slices()) - team();
    const int left = run.count - first < most ? run.count - first : most;
    const int count = left <= 0 ? 0 : ceil_divide(left, kTeams);
    constexpr int kBroughtWords = kRowsShape.brought_words;
    constexpr int kAtOnce = kBroughtWords / 2;  // sums, and what is brought beside them
    uint4* words = context_.template region<uint4>(RegionId::kTiles) +
                   opaque(worker_) * kBroughtWords * kWarpLanes + context_.lane;
    const auto own_tile = [&](int piece) { return first + piece / kOwnRows * kTeams; };
    const auto tile_at = [&](int piece) { return run.first + own_tile(piece) * run.stride; };
    const int pieces = count * kOwnRows;
    SOLITON_NO_UNROLL
    for (int piece = 0; piece < pieces; piece += kAtOnce) {
      const int end = pieces - piece < kAtOnce ? pieces : piece + kAtOnce;
      own_row_ = piece % kOwnRows;
      float4* const from =
          sums.first(block.first_own + own_tile(piece) * sums.slices() - begin, row(), quarter());
      const auto behind = [&](int i) {
        const int of = piece % kOwnRows + i;
        return (of / kOwnRows * kTeams * sums.slices() * kRowsShape.sums_bytes() / 16) +
               (of % kOwnRows - piece % kOwnRows) * kRowStride * kQuarters;
      };
      const auto before = [&](int i) {
        own_row_ = i % kOwnRows;
        return at.phase.output == OutputKind::kResidual && i < end ? load_kept(own_tile(i))
                                                                   : make_float4(0, 0, 0, 0);
      };
      const auto ahead = [&](int i) {
        own_row_ = i % kOwnRows;
        return i < end ? load_ahead(at, tile_at(i)).words : make_uint4(0, 0, 0, 0);
      };
      sums.template bring<kAtOnce>(words, piece, end, before, ahead, from, behind);
      SOLITON_NO_UNROLL
      for (int i = piece; i < end; ++i) {
        own_row_ = i % kOwnRows;
        scale_ = at.phase.input == InputKind::kNormed ? load_shared(context_.factors() + row()) : 1.0f;
        const uint4 v = load_shared(words + (i - piece) * kWarpLanes);
        const uint4 more = load_shared(words + (kAtOnce + i - piece) * kWarpLanes);
        finish(at, tile_at(i), own_tile(i),
               {make_float2(float_from_bits(v.x), float_from_bits(v.y)),
                make_float2(float_from_bits(v.z), float_from_bits(v.w))},
               more);
      }
    }
  }

  /// gate and up of a tile as a warp has them from warpgroup_multiply(), number `index` of a run that has all columns.
  /// Lanes of neighbouring elements swap, so that each has both for one row.
  SOLITON_DEVICE void swiglu_of_warp(const MatrixPhase& phase, const TileRun& run, int index,
                                     const float (&sums)[kPlan.rows / 2]) const {
    constexpr int kBlockWords = 8 * 16 / 4;  // 8 rows of a core matrix
    const int tile = run.first + index * run.stride;
    const int lane = opaque(context_.lane);
    const int element = lane / 4;
    const bool odd = element % 2 != 0;
    const int row = lane % 4 * 2;  // and the next, of every 8
    uint32_t* to = reinterpret_cast<uint32_t*>(
        context_.template workspace<unsigned char>(phase.output_vector.offset) +
        activation_offset(kRowsShape, 0, row + (odd ? 1 : 0), tile * 8 + element / 2 * 2));
    const float2* factors = reinterpret_cast<const float2*>(context_.factors() + row);
    SOLITON_UNROLL
    for (int n = 0; n < kPlan.rows / 8; ++n) {
      const float2 scales = load_shared(factors + n * 4);
      const float low = gated(sums[4 * n], sums[4 * n + 2], scales.x);
      const float high = gated(sums[4 * n + 1], sums[4 * n + 3], scales.y);
      const float other = shuffle_xor(odd ? low : high, 4);
      // Registers are full: where there is one part, nothing is to outlive its packing.
      context_.publish(to + n * kBlockWords, odd ? pack_bf16(other, high) : pack_bf16(low, other));
      if constexpr (kRowsShape.parts == 2) {
        const float2 pair = odd ? make_float2(other, high) : make_float2(low, other);
        context_.publish(to + (kPlan.rows / 8 + n) * kBlockWords,
                         pack_bf16(low_part(pair.x), low_part(pair.y)));
      }
    }
  }

  /// Finishes this team's of the handed tiles, tiles first to first + count - 1 of the run, once all workers have
  /// put down their parts.
  SOLITON_DEVICE void take_tiles(const MatrixInstance& at, const TileRun& run, int first, int count) {
    if (!is_active()) return;
    const bool shared = kTeams > 1 && at.phase.output == OutputKind::kLogits;  // all are the first team's
    constexpr int kOwn = kRowsShape.handed_tiles / kTeams;
    Ahead ahead[kOwn];
    SOLITON_UNROLL
    for (int i = 0; i < kOwn; ++i) {
      const int t = team() + i * kTeams;
      if (t < count) ahead[i] = load_ahead(at, run.first + (first + t) * run.stride);
    }
    // Pairs with the workers' arrivals in hand_over().
    context_.wait(context_.barrier(BarrierId::kTilesFull), parity_, WaitKind::kTileFull, 0);
    warp_sync();
    parity_ ^= 1;
    scale_ = at.phase.input == InputKind::kNormed ? load_shared(context_.factors() + row()) : 1.0f;
    if (shared && team() == 0) {
      SOLITON_NO_UNROLL
      for (int t = 0; t < count; ++t) candidate(at.phase, run.first + (first + t) * run.stride, take(t));
    }
    SOLITON_UNROLL
    for (int i = 0; i < kOwn; ++i) {
      const int t = team() + i * kTeams;
      if (t >= count || shared) break;
      finish(at, run.first + (first + t) * run.stride, first + t, take(t), ahead[i].words);
    }
    warp_arrive(&context_.barrier(BarrierId::kTilesEmpty));
  }

  /// Where warpgroups multiply, once all workers have met: the first team's best candidates are those of all teams.
  SOLITON_DEVICE void gather_best() {
    if (team() > 0 || !is_active()) return;
    for (int other = 1; other < kTeams; ++other) {
      const uint64_t best_there = load_shared(this->gathered() + other * kThreads);
      if (best_there > this->best()) set_best(best_there);
    }
  }

  /// After them.
  SOLITON_DEVICE void end(const MatrixPhase& phase) {
    if (!is_active()) return;
    SOLITON_UNROLL
    for (int i = 0; i < kOwnRows; ++i) {
      own_row_ = i;
      if (phase.output == OutputKind::kResidual) publish_squares();
      if (phase.output == OutputKind::kLogits && team() == 0) end_choice();
    }
  }

 private:
  /// What finishing a tile needs beside its sums, loaded while they are not there yet: weights of a norm, or
  /// cos and sin of two pairs of dims.
  struct Ahead {
    uint4 words = {};
  };
  SOLITON_DEVICE Ahead load_ahead(const MatrixInstance& at, int tile) const {
    if (at.phase.output == OutputKind::kResidual) {
      return {norm_weights(at.phase.first_norm + at.layer * at.phase.norm_stride, tile)};
    }
    if (at.phase.output == OutputKind::kRotary) return {rotations(tile)};
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
        swiglu(at.phase.output_vector, tile, sums);
        break;
      case OutputKind::kResidual:
        residual(at.phase.output_vector, tile, own_tile, sums, ahead);
        break;
      case OutputKind::kLogits:
        candidate(at.phase, tile, sums);
        break;
    }
  }

  SOLITON_DEVICE Sums take(int tile) const {
    Sums sums = {make_float2(0, 0), make_float2(0, 0)};
    SOLITON_UNROLL
    for (int warp = 0; warp < kColumnWarps<kPlan>; ++warp) {
      const float* parts = context_.tile_parts(tile, warp) + row() * kTileStride + quarter() * 2;
      const float2 low = load_shared(reinterpret_cast<const float2*>(parts));
      const float2 high = load_shared(reinterpret_cast<const float2*>(parts + 8));
      sums.low.x += low.x;
      sums.low.y += low.y;
      sums.high.x += high.x;
      sums.high.y += high.y;
    }
    return sums;
  }

  /// Publishes two neighbouring columns of a row.
  SOLITON_DEVICE void publish(Vector vector, int row, int column, float2 v) const {
    unsigned char* to = context_.template workspace<unsigned char>(vector.offset);
    SOLITON_UNROLL
    for (int part = 0; part < kRowsShape.parts; ++part) {
      context_.publish(reinterpret_cast<uint32_t*>(to + activation_offset(kRowsShape, part, row, column)),
                       pack_bf16(v.x, v.y));
      if (part + 1 < kRowsShape.parts) v = make_float2(low_part(v.x), low_part(v.y));
    }
  }

  // ---- Norms

  SOLITON_DEVICE float* squares_of(int row) const {
    return context_.template workspace<float>(kPlan.vector(VectorId::kSquares).offset) + row * kSquaresStride;
  }
  static constexpr int kSquaresStride = kPlan.squares_stride();

  SOLITON_DEVICE void publish_squares() const {
    const float sum = sum_quarters(squares());
    if (quarter() == 0 && team() < kPlan.residual_teams())
      context_.publish(squares_of(row()) + team() * kPlan.all_ctas() + context_.global_cta(), sum);
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

  /// Keeps new values of the residual stream, and publishes them times the weights of the norm of the phase
  /// that reads them, see norm_weights().
  SOLITON_DEVICE void keep(Vector vector, int tile, int own_tile, const Sums& v, uint4 weights) {
    const float4 value = make_float4(v.low.x, v.low.y, v.high.x, v.high.y);
    if constexpr (kRowsShape.warpgroups) {
      store_global(kept(own_tile), value);
    } else {
      store_shared(kept(own_tile), value);
    }
    const float added = (v.low.x * v.low.x + v.low.y * v.low.y) + (v.high.x * v.high.x + v.high.y * v.high.y);
    set_squares(squares() + added);
    if constexpr (kPlan.model.ordered) {
      const float values[] = {v.low.x, v.low.y, v.high.x, v.high.y};
      const uint32_t words[] = {weights.x, weights.y, weights.z, weights.w};
      SOLITON_UNROLL
      for (int i = 0; i < 4; ++i) {
        context_.publish_element(vector, row(), place_of(words[i]),
                                 values[i] * bf16_to_float(static_cast<uint16_t>(words[i] >> 16)));
      }
      return;
    }
    const auto put = [&](int column, float2 pair, uint32_t w) {
      publish(vector, row(), column,
              make_float2(pair.x * bf16_to_float(static_cast<uint16_t>(w)),
                          pair.y * bf16_to_float(static_cast<uint16_t>(w >> 16))));
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
      constexpr int kHeads = kPlan.model.num_heads * kPlan.model.head_dim;
      const int32_t* places =
          context_.params.positions + normed_order_offset(kPlan.model.hidden, kHeads, norm) + first;
      const auto word = [&](int column) {
        const int place = load_constant(places + column);
        return static_cast<uint32_t>(load_constant(weights + place)) << 16 | static_cast<uint32_t>(place);
      };
      return make_uint4(word(0), word(1), word(8), word(9));
    }
    return make_uint4(load_constant(reinterpret_cast<const uint32_t*>(weights + first)),
                      load_constant(reinterpret_cast<const uint32_t*>(weights + first + 8)), 0, 0);
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
      const uint4 weights = norm_weights(0, tile);
      keep(kPlan.vector(VectorId::kHidden), tile, i, embedding_of(token, tile, weights), weights);
    }
    publish_squares();
  }

  /// Of a token, of this thread's columns of a tile; where columns have an order, in that of layer 0: `weights` of its norm
  /// say where.
  SOLITON_DEVICE Sums embedding_of(int token, int tile, uint4 weights) const {
    const uint16_t* embedding = context_.params.embedding + static_cast<int64_t>(token) * kPlan.model.hidden;
    if constexpr (kPlan.model.ordered) {
      const auto value = [&](uint32_t word) {
        return bf16_to_float(load_constant(embedding + place_of(word)));
      };
      return {make_float2(value(weights.x), value(weights.y)),
              make_float2(value(weights.z), value(weights.w))};
    }
    const auto pair = [&](int column) {
      const uint32_t v = load_constant(
          reinterpret_cast<const uint32_t*>(embedding + tile * kTileRows + quarter() * 2 + column));
      return make_float2(bf16_to_float(static_cast<uint16_t>(v)),
                         bf16_to_float(static_cast<uint16_t>(v >> 16)));
    };
    return {pair(0), pair(8)};
  }

  SOLITON_DEVICE void residual(Vector vector, int tile, int own_tile, Sums v, uint4 weights) {
    if constexpr (!kRowsShape.warpgroups) {  // there the sums begin with it
      const float4 before = load_kept(own_tile);
      v.low.x += before.x;
      v.low.y += before.y;
      v.high.x += before.z;
      v.high.y += before.w;
    }
    keep(vector, tile, own_tile, v, weights);
  }

  // ---- Other outputs

  /// silu(gate) * up: rows 0..7 of a tile are gate rows, 8..15 the up rows of the same elements.
  SOLITON_DEVICE void swiglu(Vector vector, int tile, const Sums& v) const {
    publish(vector, row(), tile * 8 + quarter() * 2,
            make_float2(gated(v.low.x, v.high.x, scale_), gated(v.low.y, v.high.y, scale_)));
  }
  static SOLITON_DEVICE float gated(float gate, float up, float scale) {
    gate *= scale;
    const float divisor = 1.0f + exp_fast(-gate);
    // The code for many rows is long, and an exact division's too.
    return (kRowsShape.warpgroups ? divide_fast(gate, divisor) : gate / divisor) * (up * scale);
  }

  /// q, k: rotates each pair of dims d and d + head_dim / 2 by position * frequency(d), unless their heads are
  /// normed first. v: as it is.
  SOLITON_DEVICE void rotary(int tile, const Sums& v, uint4 rotation_words) const {
    constexpr int kHeadDim = kPlan.model.head_dim;
    constexpr QkvLayout kLayout = kQkv<kPlan>;
    unsigned char* to = context_.template workspace<unsigned char>(kPlan.vector(VectorId::kQkv).offset);
    const int head = tile * kTileRows / kHeadDim;
    const int within = tile * kTileRows % kHeadDim;
    const bool is_query = head < kPlan.model.num_heads;
    const bool is_key = !is_query && head < kPlan.model.rotary_heads();
    const int pair = within / kTileRows * 8 + quarter() * 2;  // of dims pair and pair + head_dim / 2
    if constexpr (kPlan.model.head_norm) {
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

  /// cos and sin of this thread's two pairs of dims, as bits; where nothing rotates yet or at all, no rotation.
  SOLITON_DEVICE uint4 rotations(int tile) const {
    constexpr int kHeadDim = kPlan.model.head_dim;
    const uint32_t one = float_bits(1.0f);
    if (kPlan.model.head_norm || tile * kTileRows >= kPlan.model.rotary_heads() * kHeadDim)
      return make_uint4(one, 0, one, 0);
    const int pair = tile * kTileRows % kHeadDim / kTileRows * 8 + quarter() * 2;
    return load_constant(reinterpret_cast<const uint4*>(
        context_.params.rotary +
        (static_cast<int64_t>(context_.position(row())) * (kHeadDim / 2) + pair) * 2));
  }

  uint32_t parity_ = 0;  // of the tiles that are taken next
};

}  // namespace soliton::rows
