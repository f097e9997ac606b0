// The kernel of several rows: what all roles of a CTA share. Rows are the new tokens of a tree of branches
// (layout/tree.h): parallel samples, a speculative tree, a chunk of a prompt.
//
//   worker warps        multiply, sum the parts of tiles in fixed order, write the outputs; attention, and
//                       merging its partial results
//   input loader warp   begins the phases: waits for all CTAs, then brings activations to shared memory
//
// With many rows activations are too large to be polled word by word as the kernel of one row does: phases
// are separated by a grid-wide counter, and chunks of activations stream through shared memory like weights.
#pragma once

#include "formats/formats.cuh"
#include "layout/awaited_words.h"
#include "ops/expert_table.cuh"
#include "ops/kv_pages.cuh"
#include "ops/missing.cuh"
#include "ops/split.cuh"
#include "rows/held_plan.cuh"

namespace soliton::rows {

/// What every thread knows.
template <const KernelPlan& kPlan>
struct Context : PlanHolder<kPlan> {
  using Base = PlanHolder<kPlan>;
  using Base::barrier, Base::block_cta, Base::cta, Base::first_row, Base::global_cta, Base::kRowBlocks,
      Base::lane, Base::params, Base::phase, Base::region, Base::step, Base::wait;
  static_assert(kPlan.num_ctas > 0 && kPlan.consumer_warps == kWorkers);

  /// By all threads of the CTA, before any of them goes on.
  static constexpr int kStepPhases = kPlan.step_phases() + 1;  // before them, the embedding

  SOLITON_DEVICE void set_up() const {
    if (thread_index() == 0) {
      for (int32_t& stop : decision().stop) store_shared(&stop, 0);
      say_fenced();  // for none
    }
    if constexpr (kMixes<kPlan> && !kGroups<kPlan>) {
      const int words = kExpertsLayout.slots_of() - kExpertsLayout.expert_masks();
      for (int i = thread_index(); i < words; i += kPlan.threads())
        store_shared(expert_words(kExpertsLayout.expert_masks()) + i, 0u);
    }
    this->hold_plan();
  }

  /// What the input loader says once this CTA's fence for the phase before is through. Nothing but the producer's pace depends on
  /// it, so that it may be seen late, or not at all.
  SOLITON_DEVICE void say_fenced() const {
    if constexpr (kPlan.shape().early_slots > 0)
      store_hint(this->template region<uint32_t>(RegionId::kFenced), this->phases_done);
  }
  /// Waits for that, though not forever: some 20 us.
  SOLITON_DEVICE void await_fence() const {
    constexpr int kLooks = 1000;
    SOLITON_NO_UNROLL
    for (int i = 0; i < kLooks; ++i) {
      if (load_hint(this->template region<uint32_t>(RegionId::kFenced)) >= this->phases_done) return;
    }
  }

  SOLITON_DEVICE StepDecision& decision() const {
    return *this->template region<StepDecision>(RegionId::kDecision);
  }

  /// Sums of a handed tile over some of its columns: [row of activations][kTileStride].
  SOLITON_DEVICE float* tile_parts(int tile, int column_warp) const {
    return this->template region<float>(RegionId::kTiles) +
           (tile * kColumnWarps<kPlan> + column_warp) * kBlockRows<kPlan> * kTileStride;
  }

  /// RMS norm's factors of the rows, while a phase's input is normed.
  SOLITON_DEVICE float* factors() const { return this->template region<float>(RegionId::kFactors); }

  /// Tokens of the rows in this step, for this CTA's warps that draw.
  SOLITON_DEVICE int32_t* fed_tokens() const {
    return reinterpret_cast<int32_t*>(params.sampling.exchange +
                                      ExchangeLayout{kPlan.all_ctas()}.fed_offset(kPlan.rows)) +
           cta * kMaxSampledRows;
  }

  /// Waits until all CTAs have ended the phase before. All warps that wait here take part in phase_done: the
  /// parity is never more than one phase off.
  SOLITON_DEVICE void wait_begun() const {
    // phases_done, for which workers have no register.
    const uint32_t ended = static_cast<uint32_t>(step * kStepPhases + phase);
    wait(barrier(BarrierId::kBegun), ended & 1, WaitKind::kBegun, ended);
  }
  /// Waits until it is known whether the step happens. Pairs with the arrivals of workers that finish tiles.
  SOLITON_DEVICE bool step_happens() const {
    wait(barrier(BarrierId::kStepKnown), step & 1, WaitKind::kStepKnown, 0);
    int32_t stop = 0;
    SOLITON_UNROLL
    for (int warp = 0; warp < kShape<kPlan>.team_workers(); ++warp)
      stop |= load_shared(&decision().stop[warp]);
    return stop == 0;
  }

  /// See ExpertsLayout.
  static constexpr ExpertsLayout kExpertsLayout = experts_layout(kPlan);
  /// No register is to hold where they are for the launch.
  SOLITON_DEVICE uint32_t* expert_words(int offset) const {
    return this->template region<uint32_t>(RegionId::kExperts) + opaque(offset);
  }
  SOLITON_DEVICE int expert_slots() const {
    return static_cast<int>(load_shared(expert_words(kExpertsLayout.count())));
  }
  /// Choices of experts of this launch before a layer's. Nobody has a register to count them.
  SOLITON_DEVICE uint32_t choices(int layer) const {
    if constexpr (kPlan.model.num_kinds() == 1) return step * kPlan.model.num_layers + layer;
    const auto& mixtures = kLayerTable<kPlan>.mixtures;
    return step * mixtures[kPlan.model.num_layers] + mixtures[layer];
  }
  /// Waits for a layer's. Pairs with the first worker's arrival in choose().
  SOLITON_DEVICE void wait_experts(int layer) const {
    const uint32_t before = choices(layer);
    wait(barrier(BarrierId::kExpertsChosen), before & 1, WaitKind::kExpertsChosen, before);
  }

  /// Tiles, of all cards', of a phase that this CTA finishes; of experts, once they are chosen.
  SOLITON_DEVICE TileRun tiles(const MatrixPhase& matrix) const {
    if constexpr (kMixes<kPlan> && !kGroups<kPlan>) {
      const ExpertPhase& experts = kExpertTable<kPlan>.phases[matrix.number];
      if (experts.axis == ExpertAxis::kRows) return neighbours(expert_slots() * experts.tiles);
    }
    TileRun run = deal_tiles(matrix.num_tiles, matrix.first_cta, this->ctas_of(matrix), this->cta_of(matrix));
    if (matrix.output == OutputKind::kLogits && params.skips_choice != 0) run.count = 0;
    return run;
  }
  /// Of tiles of experts those that follow one another: a CTA needs the rows of few experts.
  SOLITON_DEVICE TileRun neighbours(int num_tiles) const {
    return deal_neighbours(num_tiles, kPlan.all_ctas(), global_cta(), {}, 0);
  }
  /// A word of a run of the tiles of experts, where pairs are multiplied, see ExpertsLayout. `half`: of the experts.
  SOLITON_DEVICE uint32_t* run_word(bool gates, int half, int word) const {
    using Layout = ExpertsLayout;
    const int run = (gates ? 0 : Layout::kRuns / 2) + half;
    return expert_words(kExpertsLayout.runs()) + run * Layout::kRunWords + word;
  }
  SOLITON_DEVICE int run(bool gates, int half, int word) const {
    return static_cast<int>(load_shared(run_word(gates, half, word)));
  }
  /// Where down waits for the words of its pairs, CTAs go through half of the experts first and then through the others: what gate and
  /// up of the second half put out is on its way while down of the first is multiplied, and memory does not wait for it.
  static constexpr int kExpertHalves = awaits_pairs(kPlan) ? 2 : 1;
  /// How many of the `left` tiles from `tile` on are multiplied together: of one expert alone.
  static SOLITON_DEVICE int tiles_together(const MatrixPhase& matrix, int tile, int left) {
    int most = left < kTilesAtOnce<kPlan> ? left : kTilesAtOnce<kPlan>;
    if constexpr (kMixes<kPlan>) {
      const ExpertPhase& experts = kExpertTable<kPlan>.phases[matrix.number];
      if (experts.axis != ExpertAxis::kRows) return most;
      const int of_expert = experts.tiles - tile % experts.tiles;
      most = of_expert < most ? of_expert : most;
    }
    return most;
  }
  /// Waits for all workers, collective: in turn with every other use of the barrier.
  SOLITON_DEVICE void meet_workers(uint32_t& parity) const {
    warp_arrive(&barrier(BarrierId::kTilesFull));
    wait(barrier(BarrierId::kTilesFull), parity, WaitKind::kTilesFull, 0);
    warp_sync();
    parity ^= 1;
  }
  /// Query head `head` of this card's as one of the model.
  SOLITON_DEVICE int head_of_model(int head) const {
    constexpr int kGroup = kPlan.model.group();
    if constexpr (kPlan.num_cards == 1) return head;
    return (head / kGroup * kPlan.num_cards + this->card()) * kGroup + head % kGroup;
  }
  /// Waits until none of `words` is missing, which have been loaded once from place(i), and makes them missing again there; see
  /// awaits_words(). `row`: of activations, for who reports the wait.
  template <int kWords, class Place>
  SOLITON_DEVICE void await_words(int row, float4 (&words)[kWords], const Place& place) const {
    Spin spin(this->bound());
    for (;;) {
      bool missing = false;
      SOLITON_UNROLL
      for (int i = 0; i < kWords; ++i) {
        if (!is_missing(words[i])) continue;
        missing = true;
        words[i] = load_relaxed(place(i));
      }
      if (!missing) break;
      spin.pause(this->site(WaitKind::kPartial, row, 0, kMissing));
    }
    const float none = float_from_bits(kMissing);
    SOLITON_UNROLL
    for (int i = 0; i < kWords; ++i) store_relaxed(place(i), make_float4(none, none, none, none));
  }
  /// Publishes a word in the workspace: every card has a copy.
  template <class T>
  SOLITON_DEVICE void publish(T* word, T value) const {
    store_to_all<kPlan>(params, &PeerOffsets::workspace, word, value);
  }
  /// The same for the card that has a KV head.
  template <class T>
  SOLITON_DEVICE void publish_of_head(int kv_head, T* word, T value) const {
    store_to_card<kPlan>(params, &PeerOffsets::workspace, kv_head % kPlan.num_cards, word, value);
  }
  /// Do those who read a vector gather rows of it? Then it lies row by row.
  static SOLITON_DEVICE bool is_gathered(const Vector& vector) {
    return kMixes<kPlan> && !kGroups<kPlan> && vector.offset == mixture_input<kPlan>().offset;
  }
  static SOLITON_DEVICE int64_t gathered_offset(int part, int row, int column) {
    constexpr int kParts = kShape<kPlan>.parts;
    constexpr int kColumns = mixture_input<kPlan>().elements * 2 / (kPlan.rows * kParts);
    return ((static_cast<int64_t>(row) * kParts + part) * kColumns + column) * 2;
  }
  /// Byte offset of an element of an activation vector.
  static SOLITON_DEVICE int64_t element_offset(const Vector& vector, int part, int row, int column) {
    if constexpr (kMixes<kPlan> && !kGroups<kPlan>) {
      if (is_gathered(vector)) return gathered_offset(part, row, column);
    }
    return activation_offset(kShape<kPlan>, part, row, column);
  }
  /// Publishes one element of an activation vector. A neighbour may be another thread's.
  SOLITON_DEVICE void publish_element(Vector vector, int row, int column, float value) const {
    unsigned char* to = this->template workspace<unsigned char>(vector.offset);
    value *= kInputScale<kPlan>;
    SOLITON_UNROLL
    for (int part = 0; part < kShape<kPlan>.parts; ++part) {
      publish(reinterpret_cast<uint16_t*>(to + element_offset(vector, part, row, column)),
              float_to_bf16(value));
      value = low_part(value);
    }
  }

  SOLITON_DEVICE bool has_work(const TreeItem& item) const {
    return cached_tokens(item, step) > 0 || takes_new_tokens(item, step);
  }

  /// Says that this warp has ended the phase, collective. Pairs with the input loader's wait.
  SOLITON_DEVICE void finish_phase() {
    warp_arrive(&barrier(BarrierId::kPhaseDone));
    this->end_phase();
  }
};

}  // namespace soliton::rows
