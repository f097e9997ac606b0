// A worker warp. Workers multiply together, finish the tiles (epilogue.cuh), and compute attention.
#pragma once

#include <type_traits>

#include "machine/timeline.cuh"
#include "rows/append.cuh"
#include "rows/attention.cuh"
#include "rows/attention_pages.cuh"
#include "rows/attention_roles.cuh"
#include "rows/attention_tokens.cuh"
#include "rows/epilogue.cuh"
#include "rows/expert_multiplier.cuh"
#include "rows/experts.cuh"
#include "rows/group_rows.cuh"
#include "rows/grouped_multiplier.cuh"
#include "rows/integer_pages.cuh"
#include "rows/merge.cuh"
#include "rows/multiplier.cuh"
#include "rows/pair_multiplier.cuh"
#include "rows/warpgroup_epilogue.cuh"
#include "rows/warpgroup_multiplier.cuh"

namespace soliton::rows {

template <const KernelPlan& kPlan>
class Worker {
 public:
  SOLITON_DEVICE Worker(Context<kPlan>& context, int worker)
      : context_(context),
        worker_(of_warp(worker)),
        stream_(context),
        multiplier_(context, worker_),
        pairs_(context, worker_),
        epilogue_(context, worker_),
        attention_(context, worker_) {}

  SOLITON_DEVICE bool begin_step() {
    begin_phase();
    if (!epilogue_.begin_step()) return false;
    finish_phase();
    return true;
  }
  SOLITON_DEVICE void end_step() { context_.end_step(); }

  SOLITON_DEVICE void matrix(const MatrixInstance& at, const MatrixInstance& /*next*/) {
    const bool awaits = awaits_pairs(kPlan) && expert_axis<kPlan>(at.phase) == ExpertAxis::kColumns;
    begin_phase(awaits || begins_late(at.phase));
    if constexpr (kGroups<kPlan>) {
      if (expert_axis<kPlan>(at.phase) != ExpertAxis::kNone) {
        multiplier_.multiply_groups(stream_, at, met_);
        mark(context_, &PhaseRecord::last);
        return finish_phase();
      }
    } else if constexpr (kMixes<kPlan>) {
      const ExpertPhase& experts = kExpertTable<kPlan>.phases[at.phase.number];
      if (experts.axis == ExpertAxis::kRows) {
        if constexpr (kPairs<kPlan>) {  // while the router's logits are on their way
          const auto squares = epilogue_.load_squares();
          pairs_.bring_rows(at.phase);
          epilogue_.put_factors(squares, Epilogue<kPlan>::norms_input(at.phase));
        }
        ExpertChooser<kPlan>(context_, worker_).choose(experts.routes, at.layer);
      }
    }
    if constexpr (kPairs<kPlan>) {
      if (expert_axis<kPlan>(at.phase) != ExpertAxis::kNone) {
        pairs_.multiply(stream_, at.phase);
        mark(context_, &PhaseRecord::last);
        if (awaits) wait_begun();
        return finish_phase();
      }
    }
    const TileRun run = context_.tiles(at.phase);
    epilogue_.begin(at, run, !kShape<kPlan>.warpgroups && !begins_late(at.phase));
    if constexpr (kShape<kPlan>.warpgroups) {
      multiply_block(at);
    } else {
      multiply_tiles(at, run);
      mark(context_, &PhaseRecord::last);
    }
    // All that happens once a step stands in one place: what all phases run through is not divided by it.
    if (at.phase.output == OutputKind::kLogits) {
      end_logits(at.phase);
    } else if (at.phase.output == OutputKind::kResidual) {
      epilogue_.end_residual();
    }
    if constexpr (kMixes<kPlan> && !kGroups<kPlan>) {
      if (at.phase.output == OutputKind::kRouter) epilogue_.report_routes(run);
    }
    finish_phase();
    if constexpr (awaits_pairs(kPlan)) {  // all CTAs have multiplied those of the layer before
      if (at.phase.output == OutputKind::kRotary) pairs_.clear();
    }
    // After a phase that no CTA has begun before all had read the layer's pages, while the others end it.
    if (at.phase.appends) append_new_tokens(context_, worker_, at.layer);
  }

  SOLITON_DEVICE void norm_heads(int layer) {
    on_input<PhaseKind::kNormHeads>([&] {
      rows::norm_heads(context_, worker_ * kPlan.num_ctas + context_.cta, kPlan.num_ctas * kWorkers, layer);
    });
  }

  SOLITON_DEVICE void norm_block(const MatrixInstance& at) {
    begin_phase();
    epilogue_.norm_block(at, kStreamTable<kPlan>.after[at.phase.number], met_);
    finish_phase();
  }

  SOLITON_DEVICE void choose(const MatrixInstance& at) {
    begin_phase();
    RowGrouper<kPlan>(context_, worker_).choose(kExpertTable<kPlan>.phases[at.phase.number].routes, at.layer);
    finish_phase();
  }
  SOLITON_DEVICE void group(const MatrixInstance& at) {
    begin_phase();
    RowGrouper<kPlan>(context_, worker_).group(at.layer, met_);
    finish_phase();
  }
  SOLITON_DEVICE void ungroup(const MatrixInstance& at) {
    on_input<PhaseKind::kUngroup>([&] {
      if constexpr (kPairs<kPlan>) {
        epilogue_.add_pairs(at, kStreamTable<kPlan>.after[at.phase.number]);
      } else {
        epilogue_.ungroup(at, kStreamTable<kPlan>.after[at.phase.number]);
      }
    });
  }

  /// The items of this CTA, then this worker's share of the heads, from all CTAs' items.
  template <int kPhase>
  SOLITON_DEVICE void attend(int layer) {
    context_.begin_phase();
    mark(context_, &PhaseRecord::begin);
    attention_.attend(stream_, layer, [&] { wait_begun(); });
    mark(context_, &PhaseRecord::last);
    const MergedUnit last = merge_all(context_, worker_, layer);
    finish_phase();
    clear_partials(context_, last);
  }

 private:
  /// Where registers are short the compiler is to know that it is the same in all lanes.
  static SOLITON_DEVICE int of_warp(int worker) {
    return kPlan.warpgroups ? static_cast<int>(shuffle(worker, 0)) : worker;
  }

  /// Do workers bring a phase's input themselves? Then they wait for it once they know what they want of it.
  static SOLITON_DEVICE bool begins_late(const MatrixPhase& phase) {
    return expert_axis<kPlan>(phase) == ExpertAxis::kNone &&
           (takes_units<kPlan>(phase) || takes_digits<kPlan>(phase));
  }
  /// `awaits`: does somebody wait for the phase's input later, or for its words? Of these what the input loader says comes too late to
  /// be waited for before, but has to be: a parity tells no more than two phases apart.
  SOLITON_DEVICE void begin_phase(bool awaits = false) {
    context_.begin_phase();
    mark(context_, &PhaseRecord::begin);
    if (!awaits) wait_begun();
  }
  /// A phase of this kind: body() once its input is there, or awaits it.
  template <PhaseKind kKind, class Body>
  SOLITON_DEVICE void on_input(const Body& body) {
    begin_phase(awaits_words(kPlan, kKind));
    body();
    if constexpr (awaits_words(kPlan, kKind)) wait_begun();
    finish_phase();
  }
  SOLITON_DEVICE void wait_begun() {
    context_.wait_begun();
    mark(context_, &PhaseRecord::input);
  }
  SOLITON_DEVICE void finish_phase() {
    mark(context_, &PhaseRecord::end);
    context_.finish_phase();
  }

  SOLITON_DEVICE void multiply_tiles(const MatrixInstance& at, const TileRun& run) {
    constexpr int kHanded = kHandedTiles<kPlan>;
    constexpr int kAtOnce = kTilesAtOnce<kPlan>;
    if (begins_late(at.phase) && run.count == 0) wait_begun();
    int tiles = 0;
    SOLITON_NO_UNROLL
    for (int first = 0; first < run.count; first += kMixes<kPlan> ? tiles : kAtOnce) {
      const int tile_number = run.first + first * run.stride;
      tiles = context_.tiles_together(at.phase, tile_number, run.count - first);
      const auto multiply = [&](auto& sums) {
        if constexpr (kMixes<kPlan>) {
          multiplier_.multiply(stream_, at.phase, tile_number, tiles, sums);
        } else {
          multiplier_.multiply(stream_, at.phase, tiles, sums);
        }
      };
      if constexpr (kTakesUnits<kPlan>) {
        static_assert(kHanded == kAtOnce, "the code that finishes tiles stands there once");
        if (takes_units<kPlan>(at.phase)) {
          const bool is_first = first == 0;
          multiplier_.multiply_units(
              stream_, at.phase, tiles,
              [&] {
                if (is_first) wait_begun();
              },
              [&] {
                if (is_first && at.phase.input == InputKind::kNormed)
                  epilogue_.put_factors(epilogue_.load_squares(), Epilogue<kPlan>::norms_input(at.phase));
              });
        } else {
          typename Multiplier<kPlan>::Sums sums = {};
          multiply(sums);
          multiplier_.hand_over(sums, 0, tiles);
        }
        epilogue_.take_tiles(at, run, first, tiles);
      } else {
        typename Multiplier<kPlan>::Sums sums = {};
        multiply(sums);
        SOLITON_UNROLL
        for (int tile = 0; tile < kAtOnce; tile += kHanded) {
          if (tile >= tiles) break;
          const int count = tiles - tile < kHanded ? tiles - tile : kHanded;
          multiplier_.hand_over(sums, tile, count);
          epilogue_.take_tiles(at, run, first + tile, count);
        }
      }
    }
  }

  /// The same where warpgroups multiply: a block of tiles by a slice of the columns; then this CTA finishes its own tiles.
  /// While tiles are multiplied registers are full: what is needed afterwards is found anew.
  SOLITON_DEVICE void multiply_block(const MatrixInstance& at) {
    constexpr int kAtOnce = kTilesAtOnce<kPlan>;
    static_assert(kAtOnce % kMostColumnSlices == 0, "a CTA has as many tiles of its own each time");
    const auto block = [&] { return context_.block(at.phase); };
    const auto sums = [&](int first) { return PartialSums<kPlan>(context_, at.phase, block(), first); };
    const auto finishes_at_once = [&] {
      return kPlan.finishes_by_warp() && is_finished_by_warp(at.phase.output, at.phase.column_slices);
    };
    if (takes_digits<kPlan>(at.phase)) {
      const bool finds_factors = at.phase.input == InputKind::kNormed && context_.tiles(at.phase).count > 0;
      typename Epilogue<kPlan>::Squares squares;
      multiplier_.bring_digits(
          at.phase, block(), met_,
          [&] {
            wait_begun();
            if (finds_factors)
              squares = epilogue_.load_squares(context_.block_of(at.phase) * kBlockRows<kPlan>);
          },
          [&] {
            if (finds_factors) epilogue_.put_factors(squares, Epilogue<kPlan>::norms_input(at.phase));
          });
    } else if (at.phase.input == InputKind::kNormed) {
      if (context_.tiles(at.phase).count > 0) {
        const int first_row = context_.block_of(at.phase) * kBlockRows<kPlan>;
        epilogue_.put_factors(epilogue_.load_squares(first_row), Epilogue<kPlan>::norms_input(at.phase));
      }
      context_.meet_workers(met_);
    }
    SOLITON_NO_UNROLL
    for (int first = 0; first < block().tiles.count; first += kAtOnce) {
      const int left = block().tiles.count - first;
      multiplier_.multiply(stream_, at.phase, block(), {first, left < kAtOnce ? left : kAtOnce}, met_,
                           [&](int tile, const auto& own) {
                             context_.cta = opaque(context_.cta);
                             if constexpr (std::is_same_v<decltype(own), const BandSums(&)[2]>) {
                               sums(first).put(tile, own, context_.bands_of(at.phase));
                             } else if (finishes_at_once()) {
                               epilogue_.swiglu_of_warp(at, block().tiles, first + tile, own);
                             } else {
                               sums(first).put(tile, own);
                             }
                           });
      mark(context_, &PhaseRecord::last);
      if (finishes_at_once()) continue;
      // Sums of a team have a place for every pass: while others' come, the next tiles are multiplied.
      const bool is_shared = at.phase.column_slices > 1;
      if (is_shared && first + kAtOnce < block().tiles.count) continue;
      context_.cta = opaque(context_.cta);
      if constexpr (kMixes<kPlan>) context_.lane = opaque(context_.lane);
      if (!is_shared) context_.meet_workers(met_);
      const int begin = is_shared ? 0 : first;
      epilogue_.finish_tiles(at, context_.tiles(at.phase), sums(begin), begin, first + kAtOnce);
    }
  }

  SOLITON_DEVICE void end_logits(const MatrixPhase& phase) {
    if constexpr (kShape<kPlan>.warpgroups && kShape<kPlan>.teams() > 1) {
      context_.meet_workers(met_);
      epilogue_.gather_best();
    }
    epilogue_.end_logits();
    if constexpr (kShape<kPlan>.row_blocks == 1) {  // else the host draws for no row
      if (context_.params.sampling.rows != nullptr) draw(phase);
    }
  }

  /// Draws for this worker's rows and publishes this CTA's candidates. The workers' histograms lie where tiles
  /// were; nothing else is put there before all workers have ended the phase.
  SOLITON_DEVICE void draw(const MatrixPhase& phase) {
    static_assert(kPlan.tile_bytes() >= kWorkers * SharedHistogram::kBytes,
                  "histograms fit where tiles were");
    static_assert(kWorkers == sampling_warps(kBlockRows<kPlan>), "the runtime allocates for as many");
    if (context_.params.skips_choice != 0) return;
    // Nothing of this is to be in registers while tiles are multiplied.
    context_.cta = opaque(context_.cta);
    context_.lane = opaque(context_.lane);
    const int worker = opaque(worker_);
    const TileRun run = context_.tiles(phase);
    if constexpr (kShape<kPlan>.warpgroups) {
      context_.meet_workers(met_);
    } else {
      if (run.count > 0) multiplier_.wait_taken();  // and all logits of this CTA are there
      warp_sync();
    }
    constexpr int kLoads = 2;  // registers are few
    RowSampler<kPlan, Context<kPlan>, kLoads> sampler(
        context_, run, context_.region(RegionId::kTiles) + worker * SharedHistogram::kBytes, worker);
    uint64_t* candidates = context_.template workspace<uint64_t>(kPlan.candidates().offset);
    SOLITON_NO_UNROLL
    for (int row = worker; row < context_.params.tree.num_rows; row += kWorkers) {
      const int token =
          context_.params.sampling.seen == nullptr ? 0 : load_global(context_.fed_tokens() + row);
      uint64_t best = kNoCandidate;
      if (context_.logits_bands().has(row / kBandRows)) {
        sampler.forbid(row);
        best = sampler.draw(row, context_.position(row), token);
      }
      if (context_.lane == 0)
        context_.publish(candidates + row * kPlan.block_ctas() + context_.block_cta(), best);
    }
  }

  Context<kPlan>& context_;
  int worker_;
  PageStream<kPlan> stream_;
  using WarpMultiplier = std::conditional_t<kMixes<kPlan>, ExpertMultiplier<kPlan>, Multiplier<kPlan>>;
  using GroupMultiplier =
      std::conditional_t<kGroups<kPlan>, GroupedMultiplier<kPlan>, WarpgroupMultiplier<kPlan>>;
  std::conditional_t<kShape<kPlan>.warpgroups, GroupMultiplier, WarpMultiplier> multiplier_;
  struct NoPairs {
    SOLITON_DEVICE NoPairs(const Context<kPlan>& /*context*/, int /*worker*/) {}
  };
  std::conditional_t<kPairs<kPlan>, PairMultiplier<kPlan>, NoPairs> pairs_;
  Epilogue<kPlan> epilogue_;
  Attention<kPlan> attention_;
  uint32_t met_ = 0;  // parity of the workers' next meeting
};

}  // namespace soliton::rows
