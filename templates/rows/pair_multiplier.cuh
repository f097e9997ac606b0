// The products of a mixture's experts pair by pair (layout/expert_pairs.h). An expert has few of a step's rows, so columns of a
// product are digits of a few pairs at a time: weights are multiplied as they stand, as in the kernel of one row. A worker has a
// slot of the ring for itself, one tile or a few of all columns, and finishes what it has multiplied: no worker waits for another.
#pragma once

#include "formats/integer_scales.cuh"
#include "formats/integer_words.cuh"
#include "rows/integer_step.cuh"
#include "rows/outputs.cuh"
#include "rows/page_stream.cuh"
#include "rows/pair_products.cuh"

namespace soliton::rows {

template <const KernelPlan& kPlan>
class PairMultiplier {
  using Slot = ExpertSlot<kPlan>;
  using Lines = ExpertLines<kPlan>;
  static constexpr int kSetSteps = kPlan.set_steps();
  static constexpr int kStepPairs = kPlan.rows * kPlan.model.mixture.used();  // of a step
  static constexpr int kParts = kShape<kPlan>.parts;
  static constexpr int kFfn = kPlan.model.mixture.ffn;
  /// Of gate and up, padded.
  static constexpr int kColumns = [] {
    for (int i = 0; i < kPlan.num_matrices; ++i) {
      if (kPlan.matrices[i].experts.axis == ExpertAxis::kRows) return kPlan.matrices[i].padded_columns;
    }
    return 0;
  }();

 public:
  SOLITON_DEVICE PairMultiplier(Context<kPlan>& context, int worker)
      : context_(context), worker_(worker), digits_(context, worker) {}

  /// Brings what gate and up read of few rows, before anyone knows which experts these go through. Pairs with all workers' waits
  /// in choose().
  SOLITON_DEVICE void bring_rows(const MatrixPhase& phase) const {
    if constexpr (!kGathers)
      digits_.template make<kColumns, false>(input_of(phase), context_.params.tree.num_rows);
  }

  /// Makes missing what down has read of the layer before: this worker's share.
  SOLITON_DEVICE void clear() const {
    constexpr int kWords = static_cast<int>(kGated.bytes / 16);
    uint4* words = context_.template workspace<uint4>(kGated.offset);
    const int first = (context_.cta * kWorkers + worker_) * kWarpLanes + context_.lane;
    SOLITON_NO_UNROLL
    for (int i = first; i < kWords; i += kPlan.num_ctas * kWorkers * kWarpLanes)
      store_relaxed(words + i, make_uint4(kMissing, kMissing, kMissing, kMissing));
  }

  /// All that this CTA has of a phase, tiles of neighbouring experts. Collective of the workers.
  SOLITON_DEVICE void multiply(PageStream<kPlan>& stream, const MatrixPhase& phase, const TileRun& run) {
    const ExpertPhase& experts = kExpertTable<kPlan>.phases[phase.number];
    const bool gates = experts.axis == ExpertAxis::kRows;
    const int end = run.first + run.count;
    if (gates && !kGathers) return multiply_tiles(stream, phase, experts, run.first, end, 0);
    // As many experts at a time as shared memory has room for the pairs of.
    const int room = PairDigits<kPlan>::room(gates ? kColumns : kFfn);
    SOLITON_NO_UNROLL
    for (int tile = run.first; tile < end;) {
      int slot = tile / experts.tiles;
      const int first_pair = Slot(context_, slot).first_pair();
      int end_pair = Slot(context_, slot).end_pair();
      for (++slot; slot * experts.tiles < end; ++slot) {
        const int next = Slot(context_, slot).end_pair();
        if (next - first_pair > room) break;
        end_pair = next;
      }
      const int end_tile = slot * experts.tiles < end ? slot * experts.tiles : end;
      // Nobody reads the lines of those before; where no barrier was, those of the phase before.
      if ((kAwaits && !gates) || tile > run.first) meet();
      make_lines(phase, gates, first_pair, end_pair - first_pair);
      meet();
      multiply_tiles(stream, phase, experts, tile, end_tile, first_pair);
      tile = end_tile;
    }
  }

 private:
  static constexpr bool kAwaits = awaits_pairs(kPlan);
  static constexpr WorkspaceRange kGated = gated_pairs(kPlan);
  /// Are lines of gate and up made of the pairs at hand, as those of down?
  static constexpr bool kGathers = gathers_lines(kPlan.rows);
  using Sums = PairSums;

  SOLITON_DEVICE const unsigned char* input_of(const MatrixPhase& phase) const {
    return context_.template workspace<unsigned char>(phase.input_vector.offset);
  }

  SOLITON_DEVICE void make_lines(const MatrixPhase& phase, bool gates, int first_pair, int count) const {
    if (kGathers && gates) {
      const Slot any(context_, 0);
      digits_.template make<kColumns, false>(input_of(phase), count,
                                             [&](int line) { return any.row_of(first_pair + line); });
    } else {
      digits_.template make<kFfn, kAwaits>(input_of(phase) + int64_t{first_pair} * kPlan.pair_bytes(), count);
    }
  }

  /// What this worker has of the tiles from `first` to `end`. `first_pair`: that has the first line, where lines are those of pairs.
  /// Its code stands there for either phase: 8 rows of Qwen3-30B-A3B took 4% longer with one for both.
  SOLITON_DEVICE void multiply_tiles(PageStream<kPlan>& stream, const MatrixPhase& phase,
                                     const ExpertPhase& experts, int first, int end, int first_pair) {
    const int count = (end - first) / experts.slot_tiles;
    // Of a slot of experts, and within it of the first tile of a slot of the ring.
    int number = first / experts.tiles;
    int within = first - number * experts.tiles;
    int before = 0;
    stream.take_turns(turn_, worker_, count, [&](int i, const unsigned char* page) {
      within += (i - before) * experts.slot_tiles;
      before = i;
      for (; within >= experts.tiles; within -= experts.tiles) ++number;
      SOLITON_NO_UNROLL
      for (int k = 0; k < experts.slot_tiles; ++k)
        multiply_tile(phase, experts, page + k * experts.stored_tile_bytes, Slot(context_, number),
                      within + k, first_pair);
    });
    turn_ += static_cast<uint32_t>(count);
  }

  /// Waits for all workers.
  SOLITON_DEVICE void meet() {
    warp_arrive(&context_.barrier(BarrierId::kLinesReady));
    context_.wait(context_.barrier(BarrierId::kLinesReady), meetings_ & 1, WaitKind::kLinesReady, meetings_);
    warp_sync();
    ++meetings_;
  }

  SOLITON_DEVICE void multiply_tile(const MatrixPhase& phase, const ExpertPhase& experts,
                                    const unsigned char* weights, const Slot& slot, int tile,
                                    int first_line_pair) const {
    const bool gates = experts.axis == ExpertAxis::kRows;
    const int pairs = slot.pairs();
    SOLITON_NO_UNROLL
    for (int begin = 0; begin < pairs; begin += kPairsAtOnce) {
      const int first_pair = slot.first_pair() + begin;
      const Lines lines = {slot, first_pair, pairs - begin < kPairsAtOnce ? pairs - begin : kPairsAtOnce,
                           gates && !kGathers ? -1 : first_pair - first_line_pair, gates ? kColumns : kFfn};
      multiply_pairs(phase, lines, weights, tile, gates);
      if constexpr (kPlan.rows <= kPairsAtOnce) break;  // that are all
    }
  }

  SOLITON_DEVICE void multiply_pairs(const MatrixPhase& phase, const Lines& lines,
                                     const unsigned char* weights, int tile, bool gates) const {
    Sums sums = {};
    with_integers<kPlan>(phase.format.type, [&]<WeightFormat kFormat>() {
      if constexpr (suits_pairs(kPlan.rows, kFormat, 0)) {
        if constexpr (pair_digits(kPlan.rows) == 3) {
          if (lines.count <= 2) return add_tile<kFormat, FewPairs<kPlan, 1>>(weights, lines, gates, sums);
        }
        if (lines.count <= 4) {
          add_tile<kFormat, UpToFourPairs<kPlan>>(weights, lines, gates, sums);
        } else {
          add_tile<kFormat, AllPairs<kPlan>>(weights, lines, gates, sums);
        }
      }
    });
    if (gates) {
      put_gated(phase, lines, tile, sums);
    } else {
      put_sums(phase, lines, tile, sums);
    }
  }

  /// Products with a tile's weights, of all columns. Pairs: FewPairs, FourPairs or AllPairs.
  template <WeightFormat kFormat, class Pairs>
  SOLITON_DEVICE void add_tile(const unsigned char* weights, const Lines& lines, bool gates,
                               Sums& sums) const {
    constexpr int kFull = kFormat.page_columns();
    Pairs pairs(digits_, lines, context_.lane);
    SOLITON_NO_UNROLL
    for (int begin = 0; begin < lines.columns;) {
      // Columns of down stand as they would beside those of other experts.
      const int columns = gates ? page_columns(kFormat, lines.columns - begin) : kFfn;
      const int unit_steps = (gates ? columns : kFull) / kMinIntegerColumns;
      const unsigned char* page = weights + weight_bytes(kFormat, begin);
      const int sets = columns / (kStrips * kStepColumns * kSetSteps);
      SOLITON_NO_UNROLL
      for (int set = 0; set < sets; ++set) {
        const IntegerStep<kFormat> step(columns, unit_steps, 0, set * kSetSteps);
        const unsigned char* words = page + set * kSetSteps * kFormat.step_bytes();
        StepWords<kFormat> steps[kSetSteps];
        SOLITON_UNROLL
        for (int k = 0; k < kSetSteps; ++k)
          steps[k] = StepWords<kFormat>::load(words + k * kFormat.step_bytes(), context_.lane);
        RowScales scales[kStrips];
        SOLITON_UNROLL
        for (int strip = 0; strip < kStrips; ++strip) {
          const int column = step.column(strip);
          scales[strip] =
              BlockScales<kFormat>(page, columns, context_.lane, column).of(column / kFormat.group);
        }
        pairs.begin_set();
        SOLITON_UNROLL
        for (int strip = 0; strip < kStrips; ++strip) {
          SOLITON_UNROLL
          for (int k = 0; k < kSetSteps; ++k)
            pairs.multiply(strip, steps[k].divided(strip), begin + step.column(strip), k);
        }
        SOLITON_UNROLL
        for (int strip = 0; strip < kStrips; ++strip)
          pairs.template scale<kFormat>(strip, scales[strip], begin + step.column(strip));
      }
      begin += columns;
    }
    pairs.put(context_.lane, sums);
  }

  /// Gate and up of a tile of an expert: of each pair times the weight with which its row goes through the expert. A lane of
  /// a quad has a part of a pair, or nothing; of two neighbouring columns one lane puts out both, the other those of the next pairs.
  SOLITON_DEVICE void put_gated(const MatrixPhase& phase, const Lines& lines, int tile,
                                const Sums& sums) const {
    const Slot& slot = lines.slot;
    const int part = context_.lane % 2;
    const bool is_odd = context_.lane / 4 % 2 != 0;
    Sums others;
    SOLITON_UNROLL
    for (int n = 0; n < kPairGroups; ++n) others[n] = shuffle_xor(sums[n], 1);
    uint32_t* to = context_.template workspace<uint32_t>(phase.output_vector.offset) + part * (kFfn / 2) +
                   tile * 4 + context_.lane / 8;
    SOLITON_UNROLL
    for (int n = 0; n < kPairGroups; n += 2) {
      if (2 * n >= lines.count) break;
      float own[2];
      SOLITON_UNROLL
      for (int i = 0; i < 2; ++i) {
        own[i] = 0.0f;
        if (2 * (n + i) >= lines.count) break;
        const int rank = 2 * (n + i) + context_.lane % 4 / 2;
        const int pair = lines.first_pair + (rank < lines.count ? rank : 0);
        const float scale = load_shared(context_.factors() + slot.row_of(pair));
        const float gate = part == 0 ? sums[n + i] : others[n + i];
        const float up = part == 0 ? others[n + i] : sums[n + i];
        const float value = slot.weight_of(pair) * Outputs<kPlan>::gated(gate, up, scale);
        own[i] = part == 0 ? value : low_part(value);
      }
      const float other = shuffle_xor(is_odd ? own[0] : own[1], 4);
      const uint32_t word = is_odd ? pack_bf16(other, own[1]) : pack_bf16(own[0], other);
      const int rank = 2 * (n + is_odd) + context_.lane % 4 / 2;
      if (rank >= lines.count || part >= kParts) continue;
      uint32_t* const place = to + static_cast<int64_t>(lines.first_pair + rank) * (kParts * kFfn / 2);
      if constexpr (kAwaits) {
        store_relaxed(place, publishable(word));
      } else {
        context_.publish(place, word);
      }
    }
  }

  /// Sums of a tile of down: a lane of a quad has one of its two rows.
  SOLITON_DEVICE void put_sums(const MatrixPhase& phase, const Lines& lines, int tile,
                               const Sums& sums) const {
    float* to = context_.template workspace<float>(phase.output_vector.offset);
    const int half = context_.lane % 2;
    const int row = context_.lane / 4;
    const int place = row / 2 * 4 + row % 2 + half * 2;
    SOLITON_UNROLL
    for (int n = 0; n < kPairGroups; ++n) {
      const int rank = 2 * n + context_.lane % 4 / 2;
      if (rank >= lines.count) continue;
      float* const own = to + (tile * kStepPairs + lines.first_pair + rank) * kTileRows + place;
      if constexpr (kAwaits) {
        store_relaxed(own, publishable(sums[n]));
      } else {
        context_.publish(own, sums[n]);
      }
    }
  }

  Context<kPlan>& context_;
  int worker_;
  PairDigits<kPlan> digits_;
  uint32_t meetings_ = 0;
  uint32_t turn_ = 0;  // slots so far
};

}  // namespace soliton::rows
