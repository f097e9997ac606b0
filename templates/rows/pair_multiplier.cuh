// The products of a mixture's experts pair by pair (layout/expert_pairs.h). An expert has few of a step's rows, so columns of a
// product are digits of a few pairs at a time: weights are multiplied as they stand, as in the kernel of one row. A worker has a
// slot of the ring for itself, one tile or a few of all columns, and finishes what it has multiplied: no worker waits for another.
#pragma once

#include "formats/integer_scales.cuh"
#include "formats/integer_words.cuh"
#include "rows/integer_step.cuh"
#include "rows/outputs.cuh"
#include "rows/page_stream.cuh"
#include "rows/pair_batches.cuh"
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
  static constexpr int kColumns = Batches<kPlan>::kColumns;

 public:
  SOLITON_DEVICE PairMultiplier(Context<kPlan>& context, int worker)
      : context_(context), worker_(worker), digits_(context, worker) {}

  /// Brings what gate and up read of few rows, before anyone knows which experts these go through. Pairs with all workers' waits
  /// in choose().
  SOLITON_DEVICE void bring_rows(const MatrixPhase& phase) const {
    if constexpr (!kGathers)
      digits_.template make<kColumns, 4, false>(input_of(phase),
                                                lines_at<kPlan>(context_, LinesPlace::kInput),
                                                context_.params.tree.num_rows, [](int line) { return line; });
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

  /// All that this CTA has of a phase, batch by batch. Lines of the next one are made before the last slots of the one at hand, if
  /// there is room beside its own; so are those of down's first before the last of gate and up. Collective of the workers.
  SOLITON_DEVICE void multiply(PageStream<kPlan>& stream, const MatrixPhase& phase) {
    const ExpertPhase& experts = kExpertTable<kPlan>.phases[phase.number];
    const bool gates = experts.axis == ExpertAxis::kRows;
    Batches<kPlan> batches(context_, gates);
    Batch batch;  // at hand
    Batch next;
    bool is_taken = false;
    bool is_made = false;  // are its lines?
    SOLITON_NO_UNROLL
    for (;;) {
      if (!is_taken) {
        next = batches.take();
        is_taken = true;
        is_made = (next.gates && !kGathers) || lines_ != awaited_;
      }
      const bool ends = next.is_empty() || next.gates != gates;
      const bool has_room = batch.is_empty() || next.place != batch.place;
      const bool makes =
          !is_made && (next.gates == gates ? !next.is_empty() && has_room : is_early(batch, next));
      // Parts: those before the last slot of each worker, and these.
      const int of_slot =
          gates ? kSlotTiles<kPlan, ExpertAxis::kRows> : kSlotTiles<kPlan, ExpertAxis::kColumns>;
      const int last_ones = kWorkers * of_slot;
      const int middle = makes && batch.end - batch.tile > last_ones ? batch.end - last_ones : batch.tile;
      SOLITON_NO_UNROLL
      for (int part = 0; part < 2; ++part) {
        if (part == 1) {
          if (makes || !batch.is_empty()) await_read();
          if (makes) make_lines(phase, next);
          is_made = is_made || makes;
        }
        const int first = part == 0 ? batch.tile : middle;
        const int end = part == 0 ? middle : batch.end;
        if (first == end) continue;
        if (gates) {
          multiply_tiles<true>(stream, phase, experts, first, end, batch);
        } else {
          multiply_tiles<false>(stream, phase, experts, first, end, batch);
        }
      }
      if (!batch.is_empty()) {
        warp_arrive(&context_.barrier(BarrierId::kLinesReady, kRead));
        ++batches_;
      }
      if (ends) return;
      batch = {};
      if (!is_made) continue;
      if (kGathers || !gates) await_lines();
      batch = next;
      is_taken = false;
    }
  }

 private:
  enum { kMade, kRead };  // of BarrierId::kLinesReady
  static constexpr bool kAwaits = awaits_pairs(kPlan);
  static constexpr WorkspaceRange kGated = gated_pairs(kPlan);
  static constexpr bool kGathers = Batches<kPlan>::kGathers;
  using Sums = PairSums;

  SOLITON_DEVICE const unsigned char* input_of(const MatrixPhase& phase) const {
    return context_.template workspace<unsigned char>(phase.input_vector.offset);
  }

  /// May lines of down's first batch be made while the last of gate and up is at hand? They have words of the first half, for which
  /// nobody waits before he has multiplied his share of that.
  static SOLITON_DEVICE bool is_early(const Batch& last, const Batch& first) {
    return kAwaits && last.second_half && !first.second_half && first.place == LinesPlace::kTiles;
  }
  /// This worker's part of a batch's lines.
  SOLITON_DEVICE void make_lines(const MatrixPhase& phase, const Batch& batch) {
    unsigned char* const to = lines_at<kPlan>(context_, batch.place);
    // Nothing of what follows is to be worked out where no lines are made.
    const int first = opaque(batch.first_pair);
    const int pairs = opaque(batch.pairs);
    if (kGathers && batch.gates) {
      const Slot any(context_, 0);
      digits_.template make<kColumns, 4, false>(input_of(phase), to, pairs,
                                                [&](int line) { return any.row_of(first + line); });
    } else {
      const unsigned char* input = context_.template workspace<unsigned char>(kGated.offset);
      digits_.template make<kFfn, 2, kAwaits>(input + int64_t{first} * kPlan.pair_bytes(), to, pairs,
                                              [](int line) { return line; });
    }
    warp_arrive(&context_.barrier(BarrierId::kLinesReady, kMade));
    ++lines_;
  }
  /// Waits until all workers have made their part of the last lines.
  SOLITON_DEVICE void await_lines() {
    awaited_ = lines_;
    meet(kMade, lines_);
  }
  /// Waits until all workers are through the last batch but the one at hand.
  SOLITON_DEVICE void await_read() const { meet(kRead, batches_); }
  SOLITON_DEVICE void meet(int slot, uint32_t times) const {
    if (times == 0) return;
    context_.wait(context_.barrier(BarrierId::kLinesReady, slot), (times - 1) & 1, WaitKind::kLinesReady,
                  times - 1);
    warp_sync();
  }

  /// What this worker has of the tiles from `first` to `end`, of a batch. Its code stands there for either phase: 8 rows of
  /// Qwen3-30B-A3B took 4% longer with one for both.
  template <bool kGates>
  SOLITON_DEVICE void multiply_tiles(PageStream<kPlan>& stream, const MatrixPhase& phase,
                                     const ExpertPhase& experts, int first, int end, const Batch& batch) {
    constexpr ExpertAxis kAxis = kGates ? ExpertAxis::kRows : ExpertAxis::kColumns;
    constexpr int kTiles = kExpertTiles<kPlan, kAxis>;
    constexpr int kTogether = kSlotTiles<kPlan, kAxis>;
    const int count = (end - first) / kTogether;
    // Of a slot of experts, and within it of the first tile of a slot of the ring.
    int number = batch.slot;
    int within = first - number * kTiles;
    int before = 0;
    stream.take_turns(turn_, worker_, count, [&](int i, const unsigned char* page) {
      within += (i - before) * kTogether;
      before = i;
      for (; within >= kTiles; within -= kTiles) ++number;
      SOLITON_NO_UNROLL
      for (int k = 0; k < kTogether; ++k)
        multiply_tile<kGates>(phase, page + k * experts.stored_tile_bytes, Slot(context_, number), within + k,
                              batch);
    });
    turn_ += static_cast<uint32_t>(count);
  }

  template <bool kGates>
  SOLITON_DEVICE void multiply_tile(const MatrixPhase& phase, const unsigned char* weights, const Slot& slot,
                                    int tile, const Batch& batch) const {
    const int pairs = slot.pairs();
    const unsigned char* const at = lines_at<kPlan>(context_, batch.place);
    SOLITON_NO_UNROLL
    for (int begin = 0; begin < pairs; begin += kPairsAtOnce) {
      const int first_pair = slot.first_pair() + begin;
      const Lines lines = {slot,
                           first_pair,
                           pairs - begin < kPairsAtOnce ? pairs - begin : kPairsAtOnce,
                           at,
                           kGates && !kGathers ? -1 : first_pair - batch.first_pair,
                           kGates ? kColumns : kFfn};
      multiply_pairs(phase, lines, weights, tile, kGates);
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
    Pairs pairs(lines, context_.lane);
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
  uint32_t turn_ = 0;     // slots so far
  uint32_t lines_ = 0;    // batches whose lines have been made so far,
  uint32_t awaited_ = 0;  // have been waited for,
  uint32_t batches_ = 0;  // and that have been multiplied
};

}  // namespace soliton::rows
