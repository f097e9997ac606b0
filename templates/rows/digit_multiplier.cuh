// Integers as they are, multiplied by digits of the input where warpgroups multiply. The bytes of a word are weights of row g
// and, 16 times, of row g + 8 (layout/weight_format.h); sums of a set of steps are exact, and a set has one scale. A
// warpgroup has a group of tiles; of a single group each has every second slot, and the first adds what the second has
// summed. The two strips of a unit are two chains of products: while one is summed up the other is multiplied.
#pragma once

#include "formats/integer_scales.cuh"
#include "formats/integer_words.cuh"
#include "rows/input_digits.cuh"
#include "rows/page_stream.cuh"
#include "rows/weight_slot.cuh"

namespace soliton::rows {

template <const KernelPlan& kPlan>
class DigitMultiplier {
  using Digits = InputDigits<kPlan>;
  using Slot = WeightSlot<kPlan>;

 public:
  static constexpr RowsShape kRowsShape = kShape<kPlan>;

  SOLITON_DEVICE DigitMultiplier(Context<kPlan>& context, int worker)
      : context_(context), worker_(worker), digits_(context, worker) {}

  /// Before the first tiles of a phase, collective of all workers: digits of its columns, or of the first of them. `begin` waits for
  /// these, `before` comes before the workers meet.
  template <class Begin, class Before>
  SOLITON_DEVICE void bring(const MatrixPhase& phase, const TileBlock& block, uint32_t& met,
                            const Begin& begin, const Before& before) const {
    const int slots = block.num_chunks;
    digits_.make(phase, block, 0, Digits::fit(slots) ? slots : Digits::kHalfSlots, 0, begin);
    before();
    digits_.meet(met);
  }

  /// See WarpgroupMultiplier::multiply(); a warpgroup has a group at a time, or a share of one.
  template <class Put>
  SOLITON_DEVICE void multiply(PageStream<kPlan>& stream, const MatrixPhase& phase, const TileBlock& block,
                               int first, int count, uint32_t& met, const Put& put) const {
    const bool shares = shares_group<kPlan>(count);
    const int slots = block.num_chunks;
    const int group = worker_ / kGroupWarps;
    const int tile = worker_ % kGroupWarps;
    const int first_tile = shares ? 0 : group * kGroupTiles;
    const Part part = {shares ? group : 0, shares ? kWarpgroups : 1, tile < count - first_tile ? tile : 0};
    float sums[kBlockRows<kPlan> / 2] = {};
    if (Digits::fit(slots)) {  // code of its own, which is faster than one for both
      multiply_slots(stream, phase, block, {0, slots, 0}, part, sums);
    } else {
      const int halves = ceil_divide(slots, Digits::kHalfSlots);
      uint32_t turn = first / kRowsShape.tiles_at_once() * halves;
      SOLITON_NO_UNROLL
      for (int begin = 0; begin < slots; begin += Digits::kHalfSlots, ++turn) {
        const int end = begin + Digits::kHalfSlots < slots ? begin + Digits::kHalfSlots : slots;
        const int place = static_cast<int>(turn % 2) * Digits::kHalfSlots;
        if (turn > 0) {
          digits_.make(phase, block, begin, end, place, [] {});
          digits_.meet(met);
        }
        multiply_slots(stream, phase, block, {begin, end, place}, part, sums);
      }
    }
    if (shares) add_shared(sums, met);
    if (tile < count - first_tile && (!shares || group == 0)) put(first_tile + tile, sums);
  }

 private:
  static constexpr WeightFormat kFormat = kPlan.model.integers;
  static constexpr int kSums = Digits::kDigitRows / 2;  // of a set's products
  static_assert(Digits::kHalfSlots % kWarpgroups == 0, "warpgroups that share slots have as many of a half");
  static constexpr int kSetSteps = Digits::kSetSteps;
  static constexpr int kSlotPairs = Digits::kSlotSteps / kStrips;  // of a step of each strip
  static constexpr int kSets = kSlotPairs / kSetSteps;             // of each strip, in a slot

  /// Slots of a block's columns, and where digits of the first lie.
  struct Range {
    int first;
    int end;
    int place;
  };
  /// Of a range's slots those that a warpgroup multiplies, and a warp's tile in them.
  struct Part {
    int first;
    int stride;
    int tile;
  };
  /// What a lane has of a set of both strips.
  struct Loaded {
    uint4 words[kSetSteps];
    ScaleWords<kFormat> scales[kStrips];
  };

  SOLITON_DEVICE void multiply_slots(PageStream<kPlan>& stream, const MatrixPhase& phase,
                                     const TileBlock& block, const Range& range, const Part& part,
                                     float (&sums)[kBlockRows<kPlan> / 2]) const {
    const int group = worker_ / kGroupWarps;
    const auto pass = [&] { stream.release_turn(stream.wait_turn(group)); };
    const int first = range.first + part.first;
    if (Digits::kBlockSlots.least < kWarpgroups && first >= range.end) return pass();
    int32_t products[kStrips][kSums];
    ScaleWords<kFormat> made[kStrips];  // of the set whose products are being made
    Loaded next;
    constexpr int kFullSteps = kFormat.page_columns() / kFormat.least_columns();
    int slot = 0;
    int unit_steps = kFullSteps;  // which the compiler is to know where all pages are full
    int first_step = (range.place + part.first) * Digits::kSlotSteps;
    const auto open = [&](int i) {
      slot = stream.wait_turn(group);
      unit_steps = steps_of_unit(phase, block, i);
    };
    const auto load = [&](int set) {
      next = load_set(stream.bytes(slot), part.tile, set, unit_steps);
      if (set == kSets - 1) stream.release_turn(slot);
    };
    const auto issue = [&](int strip, int set, CoreMatrices input) {
      uint4 weights[kSetSteps];
      SOLITON_UNROLL
      for (int k = 0; k < kSetSteps; ++k) weights[k] = divide_integers(next.words[k], strip);
      made[strip] = next.scales[strip];
      const CoreMatrices from = input.behind(step_of(set, strip, unit_steps) * Digits::kStepDigits);
      warpgroup_fence(products[strip], weights);
      warpgroup_multiply_u8_s8<false>(products[strip], weights[0], from);
      SOLITON_UNROLL
      for (int k = 1; k < kSetSteps; ++k)
        warpgroup_multiply_u8_s8<true>(products[strip], weights[k], from.behind(k * Digits::kStepDigits));
      warpgroup_commit();
    };
    const float4* scales = nullptr;
    int steps = kFullSteps;
    const auto take = [&](int strip, int set) {
      add(sums, products[strip], made[strip], scales + Digits::scales_of(step_of(set, strip, steps)));
    };
    SOLITON_NO_UNROLL
    for (int i = first; i < range.end; i += part.stride) {
      const CoreMatrices input(
          digits_.step(first_step));  // all lanes have it by the time that the slot is there
      open(i);
      load(0);
      if (i != first) take(1, kSets - 1);  // of the slot before
      scales = digits_.scales(first_step);
      steps = unit_steps;
      issue(0, 0, input);
      issue(1, 0, input);
      SOLITON_UNROLL
      for (int set = 1; set < kSets; ++set) {
        warpgroup_wait<false>(products[0]);
        load(set);
        take(0, set - 1);
        issue(0, set, input);
        warpgroup_wait<false>(products[1]);
        take(1, set - 1);
        issue(1, set, input);
      }
      warpgroup_wait<false>(products[0]);
      take(0, kSets - 1);
      warpgroup_wait(products[1]);
      first_step += part.stride * Digits::kSlotSteps;
    }
    if (first < range.end) take(1, kSets - 1);
    if (part.first > 0 && (range.end - range.first) % kWarpgroups != 0) pass();
  }

  /// Set `set` of both strips.
  SOLITON_DEVICE Loaded load_set(const unsigned char* slot, int tile, int set, int unit_steps) const {
    Loaded loaded;
    SOLITON_UNROLL
    for (int k = 0; k < kSetSteps; ++k) {
      loaded.words[k] =
          load_shared(reinterpret_cast<const uint4*>(slot + tile * Slot::kWordBytes +
                                                     (set * kSetSteps + k) * kFormat.step_bytes()) +
                      context_.lane);
    }
    SOLITON_UNROLL
    for (int strip = 0; strip < kStrips; ++strip) {
      const int step = step_of(set, strip, unit_steps);
      loaded.scales[strip] = load_scale_words<kFormat>(
          slot + Slot::scales_of(tile) +
          scale_offset(kFormat, 0, context_.lane / 4, step * kStepColumns / kFormat.group));
    }
    return loaded;
  }

  /// Of the page that slot `i` of a block's columns is of.
  SOLITON_DEVICE int steps_of_unit(const MatrixPhase& phase, const TileBlock& block, int i) const {
    int columns = kFormat.page_columns();
    if constexpr (!kPlan.has_full_pages()) {
      const int column = block.first_column + block.chunk(i) * Digits::kSlotColumns;
      columns = page_of(kFormat, phase.padded, column).columns;
    }
    return columns / kFormat.least_columns();
  }
  /// The first step of set `set` of a strip, in the order of a slot's columns, where strips of a unit have `unit_steps`.
  static SOLITON_DEVICE int step_of(int set, int strip, int unit_steps) {
    const int pair = set * kSetSteps;
    const int within = pair % unit_steps;
    return (pair - within) * kStrips + strip * unit_steps + within;
  }

  /// Rows lane / 4 and lane / 4 + 8 of the tile, the second 16 times, and rows lane % 4 * 2 and the next of every 8 of the
  /// input, whose scales and sums are `inputs`.
  SOLITON_DEVICE void add(float (&sums)[kBlockRows<kPlan> / 2], const int32_t (&products)[kSums],
                          const ScaleWords<kFormat>& scales, const float4* inputs) const {
    constexpr int kDigit = 1 << kDigitBits;
    constexpr int kNextDigit = kBlockRows<kPlan> / 2;
    const RowScales own = row_scales<kFormat>(scales);
    SOLITON_UNROLL
    for (int n = 0; n < kBlockRows<kPlan> / 8; ++n) {
      const float4 input = load_shared(inputs + n * 4);
      SOLITON_UNROLL
      for (int i = 0; i < 2; ++i) {
        const float up = i == 0 ? input.x : input.y;
        const float input_sum = i == 0 ? input.z : input.w;
        SOLITON_UNROLL
        for (int half = 0; half < 2; ++half) {
          const int at = 4 * n + 2 * half + i;
          float product = static_cast<float>(products[at] + kDigit * products[at + kNextDigit]);
          if constexpr (kRowsShape.digits == 3)
            product +=
                static_cast<float>(kDigit * kDigit) * static_cast<float>(products[at + 2 * kNextDigit]);
          const float zeros = kFormat.has_zeros ? static_cast<float>(own.zero[half]) * input_sum : input_sum;
          sums[at] += own.scale[half] * ((half == 0 ? up : up * (1.0f / 16)) * product - zeros);
        }
      }
    }
  }

  /// Adds what the second warpgroup has summed of the same tiles to what the first has, which alone goes on with them. These
  /// are the last tiles of a phase: nobody writes there again before all workers have ended it.
  SOLITON_DEVICE void add_shared(float (&sums)[kBlockRows<kPlan> / 2], uint32_t& met) const {
    float4* own =
        reinterpret_cast<float4*>(context_.region(RegionId::kTiles) + kRowsShape.shared_sums_offset()) +
        worker_ % kGroupWarps * kWarpLanes + context_.lane;
    const bool is_first = worker_ < kGroupWarps;
    const auto on_places = [&](const auto& visit) {
      SOLITON_UNROLL
      for (int i = 0; i < kBlockRows<kPlan> / 8; ++i) visit(own + i * kGroupWarps * kWarpLanes, sums + 4 * i);
    };
    if (!is_first) {
      on_places([](float4* place, const float* part) {
        store_shared(place, make_float4(part[0], part[1], part[2], part[3]));
      });
    }
    context_.meet_workers(met);
    if (!is_first) return;
    on_places([](const float4* place, float* part) {
      const float4 other = load_shared(place);
      part[0] += other.x;
      part[1] += other.y;
      part[2] += other.z;
      part[3] += other.w;
    });
  }

  Context<kPlan>& context_;
  int worker_;
  Digits digits_;
};

}  // namespace soliton::rows
