// The products of a mixture's experts pair by pair (layout/expert_pairs.h). An expert has few of a step's rows, so columns of a
// product are digits of two pairs at a time: weights are multiplied as they stand, as in the kernel of one row. A worker has a
// slot of the ring for itself, one tile or a few of all columns, and finishes what it has multiplied: no worker waits for another.
#pragma once

#include "rows/multiplier.cuh"
#include "rows/outputs.cuh"
#include "rows/page_stream.cuh"
#include "rows/pair_digits.cuh"

namespace soliton::rows {

template <const KernelPlan& kPlan>
class PairMultiplier {
  using Slot = ExpertSlot<kPlan>;
  static constexpr int kSetSteps = kPlan.set_steps();
  static constexpr int kPairGroups = kPlan.rows / 2;
  static constexpr int kStepPairs = kPlan.rows * kPlan.model.mixture.used();  // of a step
  static constexpr int kParts = kShape<kPlan>.parts;
  static constexpr int kFfn = kPlan.model.mixture.ffn;
  static_assert(kParts == 2, "lanes of a quad put out a part each");

 public:
  SOLITON_DEVICE PairMultiplier(Context<kPlan>& context, int worker)
      : context_(context), worker_(worker), digits_(context, worker) {}

  /// Brings what gate and up read, before anyone knows which experts the rows go through. Pairs with all workers' waits in
  /// choose().
  SOLITON_DEVICE void bring_rows(const MatrixPhase& phase) const {
    digits_.make(input_of(phase), phase.padded, context_.params.tree.num_rows);
  }

  /// All that this CTA has of a phase, tiles of neighbouring experts. Collective of the workers.
  SOLITON_DEVICE void multiply(PageStream<kPlan>& stream, const MatrixPhase& phase, const TileRun& run) {
    const ExpertPhase& experts = kExpertTable<kPlan>.phases[phase.number];
    const int end = run.first + run.count;
    if (experts.axis == ExpertAxis::kRows) {
      SOLITON_NO_UNROLL
      for (int tile = run.first; tile < end; tile += experts.slot_tiles)
        multiply_slot(stream, phase, experts, tile, 0);
      return;
    }
    // Of down as many experts at a time as shared memory has room for the pairs of.
    const int room = PairDigits<kPlan>::room(kFfn);
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
      if (tile > run.first) meet();  // nobody reads the lines of those before
      digits_.make(input_of(phase) + int64_t{first_pair} * kPairBytes<kPlan>, kFfn, end_pair - first_pair);
      meet();
      SOLITON_NO_UNROLL
      for (; tile < end_tile; tile += experts.slot_tiles)
        multiply_slot(stream, phase, experts, tile, first_pair);
    }
  }

 private:
  /// What lane 4 g + j has of a tile: of pairs j / 2, 2 + j / 2, ... row g if j is even, or row g + 8.
  using Sums = float[kPairGroups];

  SOLITON_DEVICE const unsigned char* input_of(const MatrixPhase& phase) const {
    return context_.template workspace<unsigned char>(phase.input_vector.offset);
  }

  /// The tiles of the next slot, from `tile` on, if it is this worker's turn. `first_pair`: of down, that has the first line.
  SOLITON_DEVICE void multiply_slot(PageStream<kPlan>& stream, const MatrixPhase& phase,
                                    const ExpertPhase& experts, int tile, int first_pair) {
    stream.take_turn(turn_++, worker_, [&](const unsigned char* page) {
      SOLITON_NO_UNROLL
      for (int i = 0; i < experts.slot_tiles; ++i)
        multiply_tile(phase, experts, page + i * experts.stored_tile_bytes, tile + i, first_pair);
    });
  }

  /// Waits for all workers.
  SOLITON_DEVICE void meet() {
    warp_arrive(&context_.barrier(BarrierId::kLinesReady));
    context_.wait(context_.barrier(BarrierId::kLinesReady), meetings_ & 1, WaitKind::kLinesReady, meetings_);
    warp_sync();
    ++meetings_;
  }

  SOLITON_DEVICE void multiply_tile(const MatrixPhase& phase, const ExpertPhase& experts,
                                    const unsigned char* weights, int tile, int first_pair) const {
    const int number = tile / experts.tiles;
    const Slot slot(context_, number);
    const bool gates = experts.axis == ExpertAxis::kRows;
    const Lines lines = {slot, slot.pairs(), gates ? -1 : slot.first_pair() - first_pair,
                         gates ? phase.padded : kFfn};
    Sums sums = {};
    with_integers<kPlan>(phase.format.type, [&]<WeightFormat kFormat>() {
      if constexpr (suits_pairs(kPlan.rows, kFormat, 0)) {
        if (lines.count <= 2) {
          add_tile<kFormat, Groups<1>>(weights, lines, gates, sums);
        } else if (lines.count <= 4) {
          add_tile<kFormat, Groups<2>>(weights, lines, gates, sums);
        } else {
          add_tile<kFormat, AllPairs>(weights, lines, gates, sums);
        }
      }
    });
    const int within = tile - number * experts.tiles;
    if (gates) {
      put_gated(phase, slot, within, sums);
    } else {
      put_sums(phase, slot, within, sums);
    }
  }

  /// The pairs of an expert.
  struct Lines {
    const Slot& slot;
    int count;
    int first;  // their lines follow one another from this one on; -1: they have those of their rows
    int columns;
  };

  /// Products with a tile's weights, of all columns. PairProducts: Groups or AllPairs.
  template <WeightFormat kFormat, class PairProducts>
  SOLITON_DEVICE void add_tile(const unsigned char* weights, const Lines& lines, bool gates,
                               Sums& sums) const {
    constexpr int kFull = kFormat.page_columns();
    PairProducts pairs(*this, lines);
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
            pairs.multiply(strip, steps[k].divided(strip), begin + step.column(strip) + k * kStepColumns);
        }
        SOLITON_UNROLL
        for (int strip = 0; strip < kStrips; ++strip)
          pairs.template scale<kFormat>(strip, scales[strip], begin + step.column(strip));
      }
      begin += columns;
    }
    pairs.put(context_.lane, sums);
  }

  /// Where the digits of a pair's line stand; of a pair that is not there those of another: sums are numbers.
  SOLITON_DEVICE const unsigned char* line_of(const Lines& lines, int rank) const {
    const int own = rank < lines.count ? rank : 0;
    return digits_.line(lines.columns, lines.first >= 0 ? lines.first + own
                                                        : lines.slot.row_of(lines.slot.first_pair() + own));
  }
  /// Offset in a line of what a lane multiplies a step of 32 columns with.
  static SOLITON_DEVICE int step_offset(int column) { return column / kStepColumns * PairLines::kStepBytes; }
  static SOLITON_DEVICE const float2* scales_of(const Lines& lines, const unsigned char* line) {
    return reinterpret_cast<const float2*>(
        line + PairLines{lines.columns, kSetSteps * kStepColumns}.scales_offset());
  }
  static SOLITON_DEVICE uint2 load_digits(const unsigned char* from) {
    return load_shared(reinterpret_cast<const uint2*>(from));
  }

  /// What a set's products give: `low` of the first two digits, `high` of the third; `input`: of the pair's columns, see
  /// PairLines. The same for all ways to multiply: bits do not depend on who else goes through an expert.
  template <WeightFormat kFormat>
  static SOLITON_DEVICE void add_set(float& sum, int32_t low, int32_t high, float2 input, float scale,
                                     int32_t zero, float weight) {
    constexpr float kThird = 1 << 2 * kDigitBits;
    const float product = fmaf(static_cast<float>(high), kThird, static_cast<float>(low));
    const float zeros = kFormat.has_zeros ? static_cast<float>(zero) * input.y : input.y;
    sum += scale * (input.x * weight * product - zeros);
  }
  static constexpr int kDigit = 1 << kDigitBits;
  static constexpr float kUpperRows = 1.0f / 16;  // what their products count

  /// Up to four pairs, two by two: columns of the product are the digits of two, and of a fourth digit nothing counts.
  template <int kGroups>
  class Groups {
   public:
    SOLITON_DEVICE Groups(const PairMultiplier& owner, const Lines& lines)
        : third_(owner.context_.lane % 2 != 0) {
      const int lane = owner.context_.lane;
      const int digit = lane / 4 % 4 < kPairDigits ? lane / 4 % 4 : 0;
      SOLITON_UNROLL
      for (int n = 0; n < kGroups; ++n) {
        operands_[n] = owner.line_of(lines, 2 * n + lane / 16) + digit * kStepColumns + lane % 4 * 8;
        scales_[n] = scales_of(lines, owner.line_of(lines, 2 * n + lane % 4 / 2));
      }
    }
    SOLITON_DEVICE void begin_set() {
      SOLITON_UNROLL
      for (int i = 0; i < kGroups * kStrips * 4; ++i)
        products_[i / (kStrips * 4)][i / 4 % kStrips][i % 4] = 0;
    }
    SOLITON_DEVICE void multiply(int strip, uint4 weights, int column) {
      SOLITON_UNROLL
      for (int n = 0; n < kGroups; ++n)
        mma_u8_s8(products_[n][strip], weights, load_digits(operands_[n] + step_offset(column)));
    }
    /// A lane that has the third digit of both rows gives that of the first to its neighbour, for what this has of the second.
    template <WeightFormat kFormat>
    SOLITON_DEVICE void scale(int strip, const RowScales& rows, int column) {
      const float scale = third_ ? rows.scale[1] : rows.scale[0];
      const int32_t zero = third_ ? rows.zero[1] : rows.zero[0];
      SOLITON_UNROLL
      for (int n = 0; n < kGroups; ++n) {
        const int32_t(&own)[4] = products_[n][strip];
        const int32_t given = third_ ? own[0] : own[2] + kDigit * own[3];
        const int32_t taken = static_cast<int32_t>(shuffle_xor(static_cast<uint32_t>(given), 1));
        add_set<kFormat>(sums_[n], third_ ? taken : own[0] + kDigit * own[1], third_ ? own[2] : taken,
                         load_shared(scales_[n] + column / (kSetSteps * kStepColumns)), scale, zero,
                         third_ ? kUpperRows : 1.0f);
      }
    }
    SOLITON_DEVICE void put(int /*lane*/, Sums& sums) const {
      SOLITON_UNROLL
      for (int n = 0; n < kGroups; ++n) sums[n] = sums_[n];
    }

   private:
    bool third_;                              // of a lane's columns of products, one is the third digit
    const unsigned char* operands_[kGroups];  // of the columns' pairs
    const float2* scales_[kGroups];           // of those whose sums the lane has
    int32_t products_[kGroups][kStrips][4];
    float sums_[kGroups] = {};
  };

  /// All pairs that there may be: columns of the product are one digit of each.
  class AllPairs {
   public:
    SOLITON_DEVICE AllPairs(const PairMultiplier& owner, const Lines& lines) {
      const int lane = owner.context_.lane;
      operands_ = owner.line_of(lines, lane / 4) + lane % 4 * 8;
      SOLITON_UNROLL
      for (int i = 0; i < 2; ++i) scales_[i] = scales_of(lines, owner.line_of(lines, lane % 4 * 2 + i));
    }
    SOLITON_DEVICE void begin_set() {
      SOLITON_UNROLL
      for (int i = 0; i < kPairDigits * kStrips * 4; ++i)
        products_[i / (kStrips * 4)][i / 4 % kStrips][i % 4] = 0;
    }
    SOLITON_DEVICE void multiply(int strip, uint4 weights, int column) {
      SOLITON_UNROLL
      for (int digit = 0; digit < kPairDigits; ++digit)
        mma_u8_s8(products_[digit][strip], weights,
                  load_digits(operands_ + step_offset(column) + digit * kStepColumns));
    }
    template <WeightFormat kFormat>
    SOLITON_DEVICE void scale(int strip, const RowScales& rows, int column) {
      SOLITON_UNROLL
      for (int i = 0; i < 2; ++i) {
        const float2 input = load_shared(scales_[i] + column / (kSetSteps * kStepColumns));
        SOLITON_UNROLL
        for (int half = 0; half < 2; ++half) {
          const int at = 2 * half + i;
          add_set<kFormat>(sums_[i][half], products_[0][strip][at] + kDigit * products_[1][strip][at],
                           products_[2][strip][at], input, rows.scale[half], rows.zero[half],
                           half == 0 ? 1.0f : kUpperRows);
        }
      }
    }
    /// Lane j of a quad has pairs 2 j and 2 j + 1.
    SOLITON_DEVICE void put(int lane, Sums& sums) const {
      SOLITON_UNROLL
      for (int n = 0; n < kPairGroups; ++n) {
        SOLITON_UNROLL
        for (int i = 0; i < 4; ++i) {
          const float from = shuffle(sums_[i / 2][i % 2], lane / 4 * 4 + n);
          if (lane % 4 == i) sums[n] = from;
        }
      }
    }

   private:
    static_assert(kPlan.rows == 8);
    const unsigned char* operands_;
    const float2* scales_[2];
    int32_t products_[kPairDigits][kStrips][4];
    float sums_[2][2] = {};
  };

  /// Gate and up of a tile of an expert: of each pair times the weight with which its row goes through the expert. A lane of
  /// a quad has a part of a pair.
  SOLITON_DEVICE void put_gated(const MatrixPhase& phase, const Slot& slot, int tile,
                                const Sums& sums) const {
    unsigned char* to = context_.template workspace<unsigned char>(phase.output_vector.offset);
    const int part = context_.lane % 2;
    const int pairs = slot.pairs();
    Sums others;
    SOLITON_UNROLL
    for (int n = 0; n < kPairGroups; ++n) others[n] = shuffle_xor(sums[n], 1);
    SOLITON_UNROLL
    for (int n = 0; n < kPairGroups; ++n) {
      const int rank = 2 * n + context_.lane % 4 / 2;
      if (rank >= pairs) continue;
      const int pair = slot.first_pair() + rank;
      const float scale = load_shared(context_.factors() + slot.row_of(pair));
      const float other = others[n];
      const float gate = part == 0 ? sums[n] : other;
      const float value =
          slot.weight_of(pair) * Outputs<kPlan>::gated(gate, part == 0 ? other : sums[n], scale);
      const int64_t element = static_cast<int64_t>(pair * 2 + part) * kFfn + tile * 8 + context_.lane / 4;
      context_.publish(reinterpret_cast<uint16_t*>(to) + element,
                       float_to_bf16(part == 0 ? value : low_part(value)));
    }
  }

  /// Sums of a tile of down: a lane of a quad has one of its two rows.
  SOLITON_DEVICE void put_sums(const MatrixPhase& phase, const Slot& slot, int tile, const Sums& sums) const {
    float* to = context_.template workspace<float>(phase.output_vector.offset);
    const int half = context_.lane % 2;
    const int row = context_.lane / 4;
    const int place = row / 2 * 4 + row % 2 + half * 2;
    const int pairs = slot.pairs();
    SOLITON_UNROLL
    for (int n = 0; n < kPairGroups; ++n) {
      const int rank = 2 * n + context_.lane % 4 / 2;
      if (rank >= pairs) continue;
      context_.publish(to + (tile * kStepPairs + slot.first_pair() + rank) * kTileRows + place, sums[n]);
    }
  }

  Context<kPlan>& context_;
  int worker_;
  PairDigits<kPlan> digits_;
  uint32_t meetings_ = 0;
  uint32_t turn_ = 0;  // slots so far
};

}  // namespace soliton::rows
