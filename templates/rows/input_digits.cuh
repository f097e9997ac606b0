// Digits of the input, where warpgroups multiply integers as they are (digit_multiplier.cuh). Workers bring the columns of
// their CTA's slice out of L2 and make signed bytes of them, in core matrices: of each step of 32 columns
//
//   [k / 16][digit][row / 8]{8 rows of 16 bytes}
//
// which is operand b of a product that has the digits of all rows for its rows. Of 128 columns of a row the greatest
// magnitude says how many units a digit counts. Of every set of steps whose products are summed as integers, and of every
// pair of rows, float4{up, up, sum, sum}: the weight of a unit, and what a weight of kOfSums in all of the columns would
// give.
//
// What shared memory holds is the whole slice, or one half of it after the other: then both places take turns.
#pragma once

#include "formats/digits.cuh"
#include "rows/context.cuh"

namespace soliton::rows {

/// Of a matrix in `kFormat`.
template <const KernelPlan& kPlan, WeightFormat kFormat>
class InputDigits {
 public:
  static constexpr RowsShape kRowsShape = kShape<kPlan>;
  static constexpr int kDigitRows = kRowsShape.digit_column_bytes();  // of operand b
  static constexpr int kStepDigits = kDigitRows * kStepColumns;       // bytes
  static constexpr int kSetSteps = kPlan.digit_set_steps();
  static constexpr int kSlotColumns = kRowsShape.slot_columns(kFormat);
  static constexpr int kSlotSteps = kSlotColumns / kStepColumns;
  static constexpr int kTaskColumns = 128;  // of 8 rows, which have one scale: a lane has a step of a row
  static constexpr int kHalfSlots = kRowsShape.digit_columns / kSlotColumns / 2;
  static constexpr float kOfSums = kFormat.has_zeros || kFormat.has_minima ? 1 : kFormat.symmetric_zero();
  static_assert(kHalfSlots > 0 && kHalfSlots * 2 * kSlotColumns == kRowsShape.digit_columns);

  SOLITON_DEVICE InputDigits(Context<kPlan>& context, int worker) : context_(context), worker_(worker) {}

  /// Slots of columns that blocks have of such matrices: as few, and as many.
  struct BlockSlots {
    int least = 1 << 30;
    int most = 0;
  };
  static constexpr BlockSlots block_slots() {
    BlockSlots slots;
    for (int i = 0; i < kPlan.num_phases; ++i) {
      const Phase& phase = kPlan.phases[i];
      if (phase.kind != PhaseKind::kMatrix) continue;
      const PackedMatrix& matrix = kPlan.matrices[phase.matrix];
      if (matrix.format != kFormat) continue;
      for (int slice = 0; slice < phase.column_slices; ++slice) {
        const int own = slice_chunks(matrix.padded_columns, kSlotColumns, phase.column_slices, slice);
        slots.least = own < slots.least ? own : slots.least;
        slots.most = own > slots.most ? own : slots.most;
      }
    }
    return slots;
  }
  static constexpr BlockSlots kBlockSlots = block_slots();

  /// Is there room for those of so many slots of columns at once?
  static SOLITON_DEVICE bool fit(int slots) {
    return kBlockSlots.most <= 2 * kHalfSlots || slots <= 2 * kHalfSlots;
  }

  /// Makes those of slots `first` to end - 1 of a block's columns, from place `place` (in slots) on: this
  /// worker's part of them. While it makes some, the columns of the next are on their way. `begin` waits for the columns, once it is
  /// known which come first.
  template <class Begin>
  SOLITON_DEVICE void make(const MatrixPhase& phase, const TileBlock& block, int first, int end, int place,
                           const Begin& begin) const {
    constexpr int kSlotTasks = kSlotColumns / kTaskColumns * kRowGroups;
    const int tasks = (end - first) * kSlotTasks;
    const auto task_of = [&](int number) {
      Task task;
      const int group = number / kRowGroups;  // of 128 columns
      const int slot = group / (kSlotColumns / kTaskColumns);
      const int within = group % (kSlotColumns / kTaskColumns) * kTaskColumns;
      task.first_step = (place + slot) * kSlotSteps + within / kStepColumns;
      task.row_group = number % kRowGroups;
      task.find(context_, block.first_column + block.chunk(first + slot) * kSlotColumns + within);
      return task;
    };
    const unsigned char* input = context_.template workspace<unsigned char>(phase.input_vector.offset);
    Task task = task_of(worker_ < tasks ? worker_ : 0);
    begin();
    if (worker_ >= tasks) return;
    task.load(input);
    SOLITON_NO_UNROLL
    for (int next = worker_ + kWorkers; next < tasks + kWorkers; next += kWorkers) {
      Task behind = task;
      if (next < tasks) {
        behind = task_of(next);
        behind.load(input);
      }
      convert(task);
      task = behind;
    }
  }
  /// All workers have made theirs. Who makes others where these were has met once more meanwhile.
  SOLITON_DEVICE void meet(uint32_t& met) const {
    fence_async_shared();
    context_.meet_workers(met);
  }

  /// Of a step, counted from the first place on.
  SOLITON_DEVICE const unsigned char* step(int index) const {
    return context_.region(RegionId::kInput) + index * kStepDigits;
  }
  /// Of a set of steps, which begins with `step`, for rows lane % 4 * 2 and the next of the first 8.
  SOLITON_DEVICE const float4* scales(int step) const {
    return scales() + scales_of(step) + context_.lane % 4;
  }
  /// How many lie before those of the set.
  static SOLITON_DEVICE int scales_of(int step) { return step / kSetSteps * (kBlockRows<kPlan> / 2); }

 private:
  static constexpr int kRowGroups = kBlockRows<kPlan> / 8;
  static constexpr int kBlocks = kStepColumns / 8;  // of columns of an activation vector, in a step
  /// 128 columns of 8 rows, which become digits of `first_step` and the next three.
  struct Task {
    int first_step;
    int row_group;
    int offset;                              // of this lane's step and row in the vector,
    uint4 words[kRowsShape.parts][kBlocks];  // and what stands there

    /// It is worked out here, not where it is used.
    SOLITON_DEVICE void find(const Context<kPlan>& context, int column) {
      const int row = row_group * 8 + context.lane % 8;
      offset = opaque(
          static_cast<int>(activation_offset(kRowsShape, 0, row, column + context.lane / 8 * kStepColumns)));
    }
    SOLITON_DEVICE void load(const unsigned char* input) {
      const uint4* from = reinterpret_cast<const uint4*>(input + offset);
      SOLITON_UNROLL
      for (int block = 0; block < kBlocks; ++block) {
        SOLITON_UNROLL
        for (int part = 0; part < kRowsShape.parts; ++part)
          words[part][block] = load_global(from + (block * kRowsShape.parts + part) * kBlockRows<kPlan>);
      }
    }
  };
  using Numbers = DigitNumbers<kRowsShape.digits>;

  SOLITON_DEVICE float4* scales() const {
    return reinterpret_cast<float4*>(context_.region(RegionId::kInput) + kPlan.digit_bytes());
  }

  SOLITON_DEVICE void convert(const Task& task) const {
    const int lane = context_.lane;
    const int row = task.row_group * 8 + lane % 8;
    const int step = lane / 8;
    float values[kBlocks][4][2];  // of a block, a quad's pair
    uint32_t largest = 0;
    SOLITON_UNROLL
    for (int block = 0; block < kBlocks; ++block) {
      const auto take = [&](int quad, int part) {
        const uint4& v = task.words[part][block];
        const uint32_t word = quad == 0 ? v.x : quad == 1 ? v.y : quad == 2 ? v.z : v.w;
        return make_float2(float_from_bits(word << 16), float_from_bits(word & 0xffff0000u));
      };
      SOLITON_UNROLL
      for (int quad = 0; quad < 4; ++quad) {
        float2 pair = take(quad, 0);
        SOLITON_UNROLL
        for (int part = 1; part < kRowsShape.parts; ++part) {
          const float2 low = take(quad, part);
          pair = make_float2(pair.x + low.x, pair.y + low.y);
        }
        values[block][quad][0] = pair.x;
        values[block][quad][1] = pair.y;
        largest = larger(largest, larger(magnitude(pair.x), magnitude(pair.y)));
      }
    }
    for (int mask = 8; mask < kWarpLanes; mask *= 2)
      largest = larger(largest, static_cast<uint32_t>(shuffle_xor(largest, mask)));
    const InputScale scale = InputScale::of<Numbers::kExponent>(largest);
    int32_t sum = 0;
    unsigned char* to = context_.region(RegionId::kInput) + (task.first_step + step) * kStepDigits;
    SOLITON_UNROLL
    for (int half = 0; half < 2; ++half) {  // 16 k
      uint32_t digits[kRowsShape.digits][4];
      SOLITON_UNROLL
      for (int quad = 0; quad < 4; ++quad) {
        // In the order of the bytes of a word of weights: columns 0, 2, 1, 3.
        const auto number = [&](int i) {
          const uint32_t n = Numbers::of(values[2 * half + i % 2][quad][i / 2], scale.down);
          sum += static_cast<int32_t>(n);
          return n;
        };
        const uint32_t numbers[4] = {number(0), number(1), number(2), number(3)};
        uint32_t own[kRowsShape.digits];
        Numbers::divide(numbers, own);
        SOLITON_UNROLL
        for (int digit = 0; digit < kRowsShape.digits; ++digit) digits[digit][quad] = own[digit];
      }
      SOLITON_UNROLL
      for (int digit = 0; digit < kRowsShape.digits; ++digit) {
        const int core = half * kDigitRows / 8 + digit * kBlockRows<kPlan> / 8 + task.row_group;
        store_shared(reinterpret_cast<uint4*>(to + (core * 8 + lane % 8) * 16),
                     make_uint4(digits[digit][0], digits[digit][1], digits[digit][2], digits[digit][3]));
      }
    }
    sum -= kStepColumns * static_cast<int32_t>(Numbers::kBias);
    for (int mask = 1; mask < kSetSteps; mask *= 2)
      sum += static_cast<int32_t>(shuffle_xor(static_cast<uint32_t>(sum), mask * 8));
    if (step % kSetSteps != 0) return;
    float* own = reinterpret_cast<float*>(scales() + scales_of(task.first_step + step) + row / 2) + row % 2;
    store_shared(own, scale.up);
    store_shared(own + 2, scale.up * kOfSums * static_cast<float>(sum));
  }

  Context<kPlan>& context_;
  int worker_;
};

}  // namespace soliton::rows
