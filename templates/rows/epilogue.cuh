// What becomes of the sums of tiles; and the tokens of a step and their embedding. Workers hand over a few tiles at
// once; teams, which have a worker for every 8 rows, finish them (outputs.cuh), each its own. Logits are the first team's.
// What warpgroups have multiplied is in warpgroup_epilogue.cuh.
#pragma once

#include "rows/norm_factors.cuh"
#include "rows/partial_sums.cuh"

namespace soliton::rows {

template <const KernelPlan& kPlan>
class Epilogue : public NormFactors<kPlan> {
  using Base = NormFactors<kPlan>;
  using Base::context_, Base::worker_, Base::own_row_, Base::scale_;
  using Base::embed, Base::finish, Base::gated, Base::load_ahead, Base::load_kept, Base::prefetch_biases;
  using Base::find_token, Base::candidate, Base::end_choice;
  using Base::is_active, Base::team, Base::quarter, Base::row, Base::row_of_block;
  using Base::kRowsShape, Base::kTeams, Base::kThreads, Base::kQuarters, Base::kOwnRows, Base::kRowStride;
  using Base::kSumsBeginWithStream, Base::add_block;
  using Base::publish_squares;
  using Base::set_squares, Base::set_best;
  using typename Base::Ahead, typename Base::Sums;

 public:
  using Base::Base;

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

  /// Before the tiles of a phase. Unless it `finds_factors` of the norm, the worker does.
  SOLITON_DEVICE void begin(const MatrixInstance& at, const TileRun& run, bool finds_factors) {
    if (at.phase.output == OutputKind::kRotary) prefetch_biases(at.layer, run);
    if constexpr (OutputBiases<kPlan>::kIsThere)
      OutputBiases<kPlan>(context_, at.layer).prefetch(at.phase, run, worker_);
    if (finds_factors && at.phase.input == InputKind::kNormed && run.count > 0)
      this->put_factors(this->load_squares(), this->norms_input(at.phase));
    SOLITON_UNROLL
    for (int i = 0; i < kOwnRows; ++i) {
      own_row_ = i;
      if (!kRowsShape.warpgroups || at.phase.output == OutputKind::kResidual) set_squares(0.0f);
      if (!kRowsShape.warpgroups || at.phase.output == OutputKind::kLogits) set_best(kNoCandidate);
    }
  }

  // Of tiles that warpgroups multiply: warpgroup_epilogue.cuh.
  SOLITON_DEVICE void finish_tiles(const MatrixInstance& at, const TileRun& run,
                                   const PartialSums<kPlan>& sums, int begin, int end_tile);
  SOLITON_DEVICE void swiglu_of_warp(const MatrixInstance& at, const TileRun& run, int index,
                                     const float (&sums)[kBlockRows<kPlan> / 2]) const;

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
    warp_release(&context_.barrier(BarrierId::kTilesEmpty));
  }

  /// Norms what the block gave that `at` has ended, or subtracts its mean, of this CTA's tiles, and adds it to the residual
  /// stream, which the next phase reads from `stream`. `met`: parity of the workers' next meeting, where warpgroups multiply.
  SOLITON_DEVICE void norm_block(const MatrixInstance& at, Vector stream, uint32_t& met) {
    this->template put_factors<subtracts_means(kPlan.model.norms)>(
        this->template load_squares<kPlan.block_squares>());
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
      lines.of[k] = slot_of_row(context_, static_cast<int>(expert), row()).pair_of(row());
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

  /// After them, by what became of them.
  SOLITON_DEVICE void end_residual() {
    if (!is_active()) return;
    SOLITON_UNROLL
    for (int i = 0; i < kOwnRows; ++i) {
      own_row_ = i;
      constexpr int kSquares = holds_blocks(kPlan.model.norms) ? kPlan.block_squares : kPlan.squares;
      this->template publish_squares<kSquares>();
    }
  }
  SOLITON_DEVICE void end_logits() {
    if (!is_active() || team() > 0) return;
    SOLITON_UNROLL
    for (int i = 0; i < kOwnRows; ++i) {
      own_row_ = i;
      end_choice();
    }
  }

 private:
  /// Adds up what down of experts has put out, of each tile kLines lines. find(lines, k): the line of a row's k-th expert, and its
  /// weight.
  template <int kLines, class Find>
  SOLITON_DEVICE void add_up(const MatrixInstance& at, Vector stream, const TileRun& run, const Find& find) {
    float4* outputs = context_.template workspace<float4>(at.phase.output_vector.offset);
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

  // warpgroup_epilogue.cuh.
  static constexpr int kRowsAtOnce = 2;
  SOLITON_DEVICE void end_whole_tiles(const MatrixInstance& at, const TileRun& run,
                                      const PartialSums<kPlan>& sums, int begin, int first, int count);

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
