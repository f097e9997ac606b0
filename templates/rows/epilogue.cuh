// What becomes of the sums of tiles; and the tokens of a step and their embedding. Workers hand over a few tiles at
// once; teams, which have a worker for every 8 rows, finish them (outputs.cuh), each its own. Logits are the first team's.
#pragma once

#include "rows/outputs.cuh"
#include "rows/partial_sums.cuh"

namespace soliton::rows {

template <const KernelPlan& kPlan>
class Epilogue : public Outputs<kPlan> {
  using Base = Outputs<kPlan>;
  using Base::context_, Base::worker_, Base::own_row_, Base::scale_;
  using Base::embed, Base::finish, Base::gated, Base::load_ahead, Base::load_kept, Base::prefetch_biases;
  using Base::find_token, Base::candidate, Base::end_choice;
  using Base::is_active, Base::team, Base::quarter, Base::row, Base::row_of_block;
  using Base::kRowsShape, Base::kTeams, Base::kThreads, Base::kQuarters, Base::kOwnRows, Base::kRowStride;
  using Base::kSumsBeginWithStream, Base::add_block;
  using Base::set_squares, Base::set_best;
  using Base::squares_of, Base::kSquaresStride, Base::publish_squares;
  using typename Base::Ahead, typename Base::Sums;

 public:
  using Base::Base;

  /// Sums of squares, of each of this worker's share of the rows.
  struct Squares {
    float sums[kBlockRows<kPlan> / kWorkers] = {};
  };
  template <int kVector = kPlan.squares>
  SOLITON_DEVICE Squares load_squares() const {
    constexpr int kLoads = kSquaresStride / (4 * kWarpLanes);
    constexpr int kShare = kBlockRows<kPlan> / kWorkers;
    Squares all;
    SOLITON_UNROLL
    for (int i = 0; i < kShare; ++i) {
      const float4* squares = reinterpret_cast<const float4*>(
          this->template squares_of<kVector>(context_.first_row() + worker_ * kShare + i));
      SOLITON_UNROLL
      for (int k = 0; k < kLoads; ++k) {
        const float4 v = load_global(squares + k * kWarpLanes + context_.lane);
        all.sums[i] += (v.x + v.y) + (v.z + v.w);
      }
    }
    return all;
  }
  /// RMS norm's factors of them, for whoever finishes tiles: tiles_full says that they are there. What no CTA writes is zero.
  /// Of two lanes each goes on with half of the rows that both have, until every lane has one: few shuffles, one root. `norms`:
  /// false where the residual stream is read as it is: all are 1. Or, with kMeans, the means of what blocks give.
  template <bool kMeans = false>
  SOLITON_DEVICE void put_factors(Squares all, bool norms = true) const {
    constexpr int kShare = kBlockRows<kPlan> / kWorkers;
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
    if constexpr (kMeans) {
      store_shared(context_.factors() + worker_ * kShare + row, all.sums[0] / kPlan.model.hidden);
      return;
    }
    store_shared(context_.factors() + worker_ * kShare + row,
                 norms_before(kPlan.model.norms) || norms
                     ? rsqrt_fast(all.sums[0] / kPlan.model.hidden + kPlan.model.norm_epsilon)
                     : 1.0f);
  }
  static SOLITON_DEVICE bool norms_input(const MatrixPhase& phase) {
    return norms_before(kPlan.model.norms) || phase.output == OutputKind::kLogits;
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
    if constexpr (OutputBiases<kPlan>::kIsThere)
      OutputBiases<kPlan>(context_, at.layer).prefetch(at.phase, run, worker_);
    if (finds_factors && at.phase.input == InputKind::kNormed && run.count > 0)
      put_factors(load_squares(), norms_input(at.phase));
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
  SOLITON_DEVICE void finish_tiles(const MatrixInstance& at, const TileRun& run,
                                   const PartialSums<kPlan>& sums, int begin, int end_tile) {
    const int first = of_slices(begin, sums.slices()) + team();
    const int most = of_slices(end_tile - begin + sums.slices() - 1, sums.slices()) - team();
    const int left = run.count - first < most ? run.count - first : most;
    const int count = left <= 0 ? 0 : ceil_divide(left, kTeams);
    if constexpr (kSumsBeginWithStream && kOwnRows % kRowsAtOnce == 0 && !kPlan.shares_columns() &&
                  !OutputBiases<kPlan>::kIsThere) {
      if (at.phase.output == OutputKind::kResidual)
        return end_whole_tiles(at, run, sums, begin, first, count);
    }
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
      float4* const from = sums.first(own_tile(piece) - begin, row_of_block(), quarter());
      const auto behind = [&](int i) {
        const int first_row = piece % kOwnRows;
        return (first_row + i) / kOwnRows * kTeams * sums.tile_words() +
               ((first_row + i) % kOwnRows - first_row) * kRowStride * kQuarters;
      };
      const auto before = [&](int i) {
        own_row_ = i % kOwnRows;
        const bool begins = kSumsBeginWithStream && at.phase.output == OutputKind::kResidual && i < end;
        return begins ? load_kept(own_tile(i)) : make_float4(0, 0, 0, 0);
      };
      const auto ahead = [&](int i) {
        own_row_ = i % kOwnRows;
        return i < end ? load_ahead(at, tile_at(i)).words : make_uint4(0, 0, 0, 0);
      };
      sums.template bring<kAtOnce>(words, piece, end, before, ahead, from, behind);
      SOLITON_NO_UNROLL
      for (int i = piece; i < end; ++i) {
        own_row_ = i % kOwnRows;
        scale_ =
            at.phase.input == InputKind::kNormed ? load_shared(context_.factors() + row_of_block()) : 1.0f;
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
  SOLITON_DEVICE void swiglu_of_warp(const MatrixInstance& at, const TileRun& run, int index,
                                     const float (&sums)[kBlockRows<kPlan> / 2]) const {
    constexpr int kBlockWords = 8 * 16 / 4;  // 8 rows of a core matrix
    const int tile = run.first + index * run.stride;
    const int lane = opaque(context_.lane);
    const int element = lane / 4;
    const bool odd = element % 2 != 0;
    const int row = lane % 4 * 2;  // and the next, of every 8
    const float2* factors = reinterpret_cast<const float2*>(context_.factors() + row);
    constexpr int kHalves = kPlan.model.ungated ? 2 : 1;  // of 8 elements, that the tile's rows are
    float biases[2] = {};                                 // of this lane's two rows of the tile
    if constexpr (kPlan.model.up_biases > 0) {
      const OutputBiases<kPlan> of_layer(context_, at.layer);
      biases[0] = of_layer.of_up_row(tile, element);
      biases[1] = of_layer.of_up_row(tile, element + 8);
    }
    float2 own = make_float2(1.0f, 1.0f);  // factors of the tile's lower rows, and of the upper
    if constexpr (RowFactors<kPlan>::kIsThere) own = this->tile_factors(at, tile);
    const auto times = [](float sum, float factor) {
      return RowFactors<kPlan>::kIsThere ? sum * factor : sum;
    };
    const auto activated = [&](int half, float gate, float up, float scale) {
      if constexpr (kPlan.model.up_biases == 0) return gated(gate, up, scale);
      return gated(gate * scale + biases[half], up * scale + biases[1], 1.0f);
    };
    SOLITON_UNROLL
    for (int half = 0; half < kHalves; ++half) {
      uint32_t* to = reinterpret_cast<uint32_t*>(
          context_.template workspace<unsigned char>(at.phase.output_vector.offset) +
          activation_offset(kRowsShape, 0, context_.first_row() + row + (odd ? 1 : 0),
                            tile * (8 * kHalves) + half * 8 + element / 2 * 2));
      SOLITON_UNROLL
      for (int n = 0; n < kBlockRows<kPlan> / 8; ++n) {
        const float2 scales = load_shared(factors + n * 4);
        const float factor = half == 0 ? own.x : own.y;
        const float low =
            activated(half, times(sums[4 * n + 2 * half], factor), times(sums[4 * n + 2], own.y), scales.x);
        const float high = activated(half, times(sums[4 * n + 2 * half + 1], factor),
                                     times(sums[4 * n + 3], own.y), scales.y);
        const float other = shuffle_xor(odd ? low : high, 4);
        // Registers are full: where there is one part, nothing is to outlive its packing.
        context_.publish(to + n * kBlockWords, odd ? pack_bf16(other, high) : pack_bf16(low, other));
        if constexpr (kRowsShape.parts == 2) {
          const float2 pair = odd ? make_float2(other, high) : make_float2(low, other);
          context_.publish(to + (kBlockRows<kPlan> / 8 + n) * kBlockWords,
                           pack_bf16(low_part(pair.x), low_part(pair.y)));
        }
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
    context_.wait(context_.barrier(BarrierId::kTilesFull), parity_, WaitKind::kTilesFull, 0);
    warp_sync();
    parity_ ^= 1;
    scale_ = at.phase.input == InputKind::kNormed ? load_shared(context_.factors() + row_of_block()) : 1.0f;
    if (shared && team() == 0) {
      SOLITON_NO_UNROLL
      for (int t = 0; t < count; ++t) candidate(at.phase, run.first + (first + t) * run.stride, take(t));
    }
    SOLITON_UNROLL
    for (int i = 0; i < kOwn; ++i) {
      const int t = team() + i * kTeams;
      if (t >= count || shared) break;
      const int tile = run.first + (first + t) * run.stride;
      finish(at, tile, first + t, add_shared_pairs(at.phase, tile, t, take(t)), ahead[i].words);
    }
    warp_arrive(&context_.barrier(BarrierId::kTilesEmpty));
  }

  /// Norms what the block gave that `at` has ended, or subtracts its mean, of this CTA's tiles, and adds it to the residual
  /// stream, which the next phase reads from `stream`. `met`: parity of the workers' next meeting, where warpgroups multiply.
  SOLITON_DEVICE void norm_block(const MatrixInstance& at, Vector stream, uint32_t& met) {
    put_factors<subtracts_means(kPlan.model.norms)>(load_squares<kPlan.block_squares>());
    if constexpr (kRowsShape.warpgroups) {
      context_.meet_workers(met);
    } else {
      warp_arrive(&context_.barrier(BarrierId::kTilesFull));
      if (!is_active()) return;
      // Pairs with all workers' arrivals: the factors are there.
      context_.wait(context_.barrier(BarrierId::kTilesFull), parity_, WaitKind::kTilesFull, 0);
      warp_sync();
      parity_ ^= 1;
    }
    const TileRun run = context_.tiles(at.phase);
    SOLITON_NO_UNROLL
    for (int i = 0; i < kOwnRows; ++i) {
      own_row_ = i;
      set_squares(0.0f);
      SOLITON_NO_UNROLL
      for (int own = team(); own < run.count; own += kTeams)
        add_block(at, stream, run.first + own * run.stride, own);
      publish_squares();
    }
  }

  /// Adds to the residual stream what the experts of down, `at`, have put out.
  SOLITON_DEVICE void ungroup(const MatrixInstance& at, Vector stream) {
    constexpr GroupedRows kRows = kPlan.grouped();
    constexpr int kUsed = kPlan.model.mixture.used();
    constexpr int64_t kChoices = kPlan.vector(kPlan.phase(PhaseKind::kChoose).writes).offset;
    const uint32_t* all_lines = context_.template workspace<uint32_t>(kChoices + kRows.lines_offset());
    const float* all_weights = context_.template workspace<float>(kChoices + kRows.weights_offset());
    add_up<kRows.most_lines()>(at, stream, context_.tiles(at.phase), [&](auto& lines, int k) {
      lines.of[k] = static_cast<int>(load_global(all_lines + row() * kUsed + k));
      lines.weights[k] = load_global(all_weights + row() * kUsed + k);
    });
  }

  /// The same where pairs are multiplied, whose weights what they put out has.
  SOLITON_DEVICE void add_pairs(const MatrixInstance& at, Vector stream) {
    constexpr ExpertsLayout kLayout = Context<kPlan>::kExpertsLayout;
    constexpr int kUsed = kPlan.model.mixture.used();
    if (!is_active()) return;
    const TileRun run =
        deal_tiles(at.phase.num_tiles, at.phase.first_cta, kPlan.block_ctas(), context_.block_cta());
    add_up<kPlan.rows * kUsed>(at, stream, run, [&](auto& lines, int k) {
      const uint32_t expert = load_shared(context_.expert_words(kLayout.picks()) + row() * kUsed + k);
      const ExpertSlot<kPlan> slot(
          context_, static_cast<int>(load_shared(context_.expert_words(kLayout.slots_of()) + expert)));
      lines.of[k] = slot.first_pair() + slot.rank(row());
      lines.weights[k] = 1.0f;
    });
  }

  /// Where warpgroups multiply, once all workers have met: the first team's best candidates are those of all teams.
  SOLITON_DEVICE void gather_best() {
    if (team() > 0 || !is_active()) return;
    for (int other = 1; other < kTeams; ++other) {
      const uint64_t best_there = load_shared(this->gathered() + other * kThreads);
      if (best_there > this->best()) set_best(best_there);
    }
  }

  /// Says that this worker's logits of experts are there, if its CTA has any. Pairs with wait_routes().
  SOLITON_DEVICE void report_routes(const TileRun& run) const {
    if (!is_active() || run.count == 0) return;
    warp_sync();
    if (context_.lane == 0) add_release(context_.counter(kRoutesCounterWord), 1);
  }

  /// After them.
  SOLITON_DEVICE void end(const MatrixPhase& phase) {
    if (!is_active()) return;
    SOLITON_UNROLL
    for (int i = 0; i < kOwnRows; ++i) {
      own_row_ = i;
      constexpr int kSquares = holds_blocks(kPlan.model.norms) ? kPlan.block_squares : kPlan.squares;
      if (phase.output == OutputKind::kResidual) this->template publish_squares<kSquares>();
      if (phase.output == OutputKind::kLogits && team() == 0) end_choice();
    }
  }

 private:
  /// Adds up what down of experts has put out, of each tile kLines lines. find(lines, k): the line of a row's k-th expert, and its
  /// weight.
  template <int kLines, class Find>
  SOLITON_DEVICE void add_up(const MatrixInstance& at, Vector stream, const TileRun& run, const Find& find) {
    const float4* outputs = context_.template workspace<float4>(at.phase.output_vector.offset);
    SOLITON_NO_UNROLL
    for (int i = 0; i < kOwnRows; ++i) {
      own_row_ = i;
      set_squares(0.0f);
      if (this->is_live()) {
        typename Base::RowLines lines;
        SOLITON_UNROLL
        for (int k = 0; k < kPlan.model.mixture.used(); ++k) find(lines, k);
        SOLITON_NO_UNROLL
        for (int own = team(); own < run.count; own += kTeams) {
          const int tile = run.first + own * run.stride;
          this->add_experts(at, stream, lines, outputs + int64_t{tile} * kLines * kQuarters, tile, own);
        }
      }
      publish_squares();
    }
  }

  /// What a thread needs of one of its tiles, of some of its rows.
  static constexpr int kRowsAtOnce = 2;
  struct OwnPiece {
    float4 sums[kRowsAtOnce];
    float4 before[kRowsAtOnce];
    uint4 weights;
  };
  /// The same of the residual stream where no columns are shared: registers, no longer full, hold a piece while the next one is on
  /// its way.
  SOLITON_DEVICE void end_whole_tiles(const MatrixInstance& at, const TileRun& run,
                                      const PartialSums<kPlan>& sums, int begin, int first, int count) {
    constexpr int kPieces = kOwnRows / kRowsAtOnce;  // of a tile
    static_assert(kPieces * kRowsAtOnce == kOwnRows, "all of a thread's rows");
    const int pieces = count * kPieces;
    const auto own_tile = [&](int piece) { return first + piece / kPieces * kTeams; };
    const auto tile_at = [&](int piece) { return run.first + own_tile(piece) * run.stride; };
    const auto on_rows = [&](int piece, const auto& visit) {
      SOLITON_UNROLL
      for (int k = 0; k < kRowsAtOnce; ++k) {
        own_row_ = piece % kPieces * kRowsAtOnce + k;
        visit(k);
      }
    };
    const auto load = [&](OwnPiece& own, int piece) {
      on_rows(piece, [&](int k) {
        own.sums[k] = sums.whole(own_tile(piece) - begin, row_of_block(), quarter());
        own.before[k] = load_kept(own_tile(piece));
      });
      own.weights = load_ahead(at, tile_at(piece)).words;
    };
    OwnPiece next = {};
    if (pieces > 0) load(next, 0);
    SOLITON_NO_UNROLL
    for (int piece = 0; piece < pieces; ++piece) {
      const OwnPiece own = next;
      if (piece + 1 < pieces) load(next, piece + 1);
      on_rows(piece, [&](int k) {
        const float4 v = own.sums[k];
        const float4 before = own.before[k];
        this->end_block(
            at.phase.output_vector, tile_at(piece), own_tile(piece),
            {make_float2(v.x + before.x, v.y + before.y), make_float2(v.z + before.z, v.w + before.w)},
            own.weights);
      });
    }
  }

  /// Of a tile of an expert whose pairs all workers multiply what the other half of them has summed, see shares_pairs().
  SOLITON_DEVICE Sums add_shared_pairs(const MatrixPhase& phase, int tile, int t, Sums sums) const {
    if constexpr (kMixes<kPlan> && !kGroups<kPlan> && kColumnWarps<kPlan> < kWorkers) {
      if (expert_axis<kPlan>(phase) != ExpertAxis::kRows) return sums;
      const ExpertSlot<kPlan> slot(context_, tile / kExpertTable<kPlan>.phases[phase.number].tiles);
      if (!shares_pairs<kPlan>(phase, slot.pairs()) || row() >= slot.pairs()) return sums;
      const Sums others = take(t, kBlockRows<kPlan> / 2);
      sums.low = make_float2(sums.low.x + others.low.x, sums.low.y + others.low.y);
      sums.high = make_float2(sums.high.x + others.high.x, sums.high.y + others.high.y);
    }
    return sums;
  }

  /// `behind`: rows behind this thread's.
  SOLITON_DEVICE Sums take(int tile, int behind = 0) const {
    Sums sums = {make_float2(0, 0), make_float2(0, 0)};
    SOLITON_UNROLL
    for (int warp = 0; warp < kColumnWarps<kPlan>; ++warp) {
      const float* parts =
          context_.tile_parts(tile, warp) + (row_of_block() + behind) * kTileStride + quarter() * 2;
      const float2 low = load_shared(reinterpret_cast<const float2*>(parts));
      const float2 high = load_shared(reinterpret_cast<const float2*>(parts + 8));
      sums.low.x += low.x;
      sums.low.y += low.y;
      sums.high.x += high.x;
      sums.high.y += high.y;
    }
    return sums;
  }

  uint32_t parity_ = 0;  // of the tiles that are taken next
};

}  // namespace soliton::rows
