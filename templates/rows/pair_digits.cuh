// The activations of pairs as digits, in shared memory where chunks of activations are otherwise (layout/expert_pairs.h). Workers
// bring them out of L2, where rows and pairs lie one after the other, [part]{columns bf16} each. Half a warp takes 128 columns of
// a line, whose greatest magnitude says how much a digit counts.
#pragma once

#include "rows/experts.cuh"

namespace soliton::rows {

template <const KernelPlan& kPlan>
class PairDigits {
  static constexpr int kParts = kShape<kPlan>.parts;
  static constexpr int kLaneColumns = 8;
  static constexpr int kTaskLanes = 16;
  static constexpr int kTaskColumns = kLaneColumns * kTaskLanes;
  static constexpr int kTasks = kWarpLanes / kTaskLanes;  // of a warp at once
  static constexpr int kSetColumns = kPlan.pair_lines(0).set_columns;
  static constexpr float kOfSums = kPlan.model.integers.has_zeros ? 1 : kPlan.model.integers.symmetric_zero();
  static_assert(kTaskColumns % kSetColumns == 0 && kPairUnitColumns % kTaskColumns == 0);
  static constexpr int kDigits = pair_digits(kPlan.rows);
  using Numbers = DigitNumbers<kDigits>;

 public:
  SOLITON_DEVICE PairDigits(const Context<kPlan>& context, int worker) : context_(context), worker_(worker) {}

  /// Makes `count` lines of `kColumns` from `to` on out of the rows or pairs number_of(line) of `input`: this worker's part of them,
  /// while the next are on their way, kAtOnce at once. The code that makes one stands there once: a layer's is longer than the instruction cache.
  /// kAwaits: waits for each of their words.
  template <int kColumns, int kAtOnce, bool kAwaits, class Number>
  SOLITON_DEVICE void make(const unsigned char* input, unsigned char* to, int count,
                           const Number& number_of) const {
    constexpr int kStride = kWorkers * kTasks;
    constexpr int kBlocks = kColumns / kTaskColumns;
    const int tasks = count * kBlocks;
    const auto load_at = [&](int begin) {
      const int number = begin + context_.lane / kTaskLanes;
      const int last = tasks - 1;  // once more, where there is none
      return load<kColumns, kAwaits>(input, number < tasks ? number : last, number_of);
    };
    int begin = worker_ * kTasks;
    if (begin >= tasks) return;
    Task coming[kAtOnce];
    SOLITON_UNROLL
    for (int i = 0; i < kAtOnce; ++i) coming[i] = load_at(begin + i * kStride);
    SOLITON_NO_UNROLL
    for (; begin < tasks; begin += kStride) {
      Task task = coming[0];
      SOLITON_UNROLL
      for (int i = 0; i + 1 < kAtOnce; ++i) coming[i] = coming[i + 1];
      if (begin + kAtOnce * kStride < tasks) coming[kAtOnce - 1] = load_at(begin + kAtOnce * kStride);
      if constexpr (kAwaits) await<kColumns>(input, task);
      convert<kColumns>(task, to);
    }
  }

 private:
  struct Task {
    int line;
    int column;           // this lane's first
    uint4 words[kParts];  // of its columns
  };

  template <int kColumns, bool kAwaits, class Number>
  SOLITON_DEVICE Task load(const unsigned char* input, int number, const Number& number_of) const {
    constexpr int kBlocks = kColumns / kTaskColumns;
    Task task;
    task.line = static_cast<int>(static_cast<uint32_t>(number) / kBlocks);
    task.column = (number - task.line * kBlocks) * kTaskColumns + context_.lane % kTaskLanes * kLaneColumns;
    SOLITON_UNROLL
    for (int part = 0; part < kParts; ++part) {
      const uint4* words = words_of<kColumns>(input, number_of(task.line), task.column, part);
      task.words[part] = kAwaits ? load_relaxed(words) : load_global(words);
    }
    return task;
  }
  template <int kColumns>
  static SOLITON_DEVICE const uint4* words_of(const unsigned char* input, int number, int column, int part) {
    return reinterpret_cast<const uint4*>(input + ((number * kParts + part) * kColumns + column) * 2);
  }
  /// Waits until none of them is missing, of lines in the order of their pairs.
  template <int kColumns>
  SOLITON_DEVICE void await(const unsigned char* input, Task& task) const {
    Spin spin(context_.bound());
    for (;;) {
      bool missing = false;
      SOLITON_UNROLL
      for (int part = 0; part < kParts; ++part) {
        if (!is_missing(task.words[part])) continue;
        missing = true;
        task.words[part] = load_relaxed(words_of<kColumns>(input, task.line, task.column, part));
      }
      if (!warp_any(missing)) return;
      spin.pause(context_.site(WaitKind::kVector, task.line, 0, kMissing));
    }
  }

  template <int kColumns>
  SOLITON_DEVICE void convert(const Task& task, unsigned char* lines) const {
    constexpr PairLines kLines = kPlan.pair_lines(kColumns);
    float values[kLaneColumns];
    float largest_of[2] = {};
    SOLITON_UNROLL
    for (int i = 0; i < kLaneColumns; ++i) {
      values[i] = 0.0f;
      SOLITON_UNROLL
      for (int part = 0; part < kParts; ++part) {
        const uint4& v = task.words[part];
        const uint32_t word = i / 2 == 0 ? v.x : i / 2 == 1 ? v.y : i / 2 == 2 ? v.z : v.w;
        values[i] += float_from_bits(i % 2 == 0 ? word << 16 : word & 0xffff0000u);
      }
      largest_of[i % 2] = larger_or_nan(largest_of[i % 2], fabsf(values[i]));
    }
    uint32_t largest = float_bits(larger_or_nan(largest_of[0], largest_of[1]));
    for (int mask = 1; mask < kTaskLanes; mask *= 2)
      largest = larger(largest, static_cast<uint32_t>(shuffle_xor(largest, mask)));
    const InputScale scale = InputScale::of<Numbers::kExponent>(largest);
    uint32_t digits[2][kDigits];  // of four columns each
    int32_t sum = -kLaneColumns * static_cast<int32_t>(Numbers::kBias);
    SOLITON_UNROLL
    for (int half = 0; half < 2; ++half) {
      const auto number = [&](int i) {
        const uint32_t n = Numbers::of(values[4 * half + i], scale.down);
        sum += static_cast<int32_t>(n);
        return n;
      };
      // In the order of the bytes of a word of weights.
      const uint32_t numbers[4] = {number(0), number(2), number(1), number(3)};
      Numbers::divide(numbers, digits[half]);
    }
    unsigned char* const to = lines + task.line * kLines.bytes();
    SOLITON_UNROLL
    for (int digit = 0; digit < kDigits; ++digit) {
      const int offset = kLines.digit_offset(task.column / kStepColumns, digit) + task.column % kStepColumns;
      store_shared(reinterpret_cast<uint2*>(to + offset), make_uint2(digits[0][digit], digits[1][digit]));
    }
    for (int mask = 1; mask < kSetColumns / kLaneColumns; mask *= 2)
      sum += static_cast<int32_t>(shuffle_xor(static_cast<uint32_t>(sum), mask));
    if (task.column % kSetColumns != 0) return;
    store_shared(reinterpret_cast<float2*>(to + kLines.scales_offset()) + task.column / kSetColumns,
                 make_float2(scale.up, scale.up * kOfSums * static_cast<float>(sum)));
  }

  const Context<kPlan>& context_;
  int worker_;
};

}  // namespace soliton::rows
