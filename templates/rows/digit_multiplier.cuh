// Integers as they are, multiplied by digits of the input where warpgroups multiply. Of 4 bits the bytes of a word are weights of
// row g and, 16 times, of row g + 8 (layout/weight_format.h). What products become see digit_sets.cuh. A warpgroup has a group of tiles; of a single group each has every second slot, and the first adds what the second has
// summed. The two strips of a unit are two chains of products: while one is summed up the other is multiplied.
#pragma once

#include "rows/digit_sets.cuh"
#include "rows/page_stream.cuh"

namespace soliton::rows {

template <const KernelPlan& kPlan, WeightFormat kFormat>
class DigitMultiplier {
  using Digits = InputDigits<kPlan, kFormat>;
  using Sets = std::conditional_t<kFormat.block == 0, ScaledSets<kPlan, kFormat>, FactorSets<kPlan, kFormat>>;

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
    const bool shares = shares_group<kPlan, kFormat>(count);
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
  static_assert(Digits::kHalfSlots % kWarpgroups == 0, "warpgroups that share slots have as many of a half");
  static constexpr int kSets = Sets::kSets;          // of each strip, in a slot,
  static constexpr int kTogether = Sets::kTogether;  // and of these, in one piece of code

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
  SOLITON_DEVICE void multiply_slots(PageStream<kPlan>& stream, const MatrixPhase& phase,
                                     const TileBlock& block, const Range& range, const Part& part,
                                     float (&sums)[kBlockRows<kPlan> / 2]) const {
    const int group = worker_ / kGroupWarps;
    const auto pass = [&] { stream.release_turn(stream.wait_turn(group)); };
    const int first = range.first + part.first;
    if (Digits::kBlockSlots.least < kWarpgroups && first >= range.end) return pass();
    Sets sets;
    typename Sets::Loaded next;
    constexpr int kFullSteps = kFormat.page_columns() / kFormat.least_columns();
    int slot = 0;
    int unit_steps = kFullSteps;  // which the compiler is to know where all pages are full
    int first_step = (range.place + part.first) * Digits::kSlotSteps;
    const auto open = [&](int i) {
      slot = stream.wait_turn(group);
      unit_steps = steps_of_unit(phase, block, i);
    };
    int begin = 0;  // of the sets in this piece of code, in their slot
    const auto load = [&](int set) {
      next = Sets::load(stream.bytes(slot), part.tile, begin + set, context_.lane,
                        [&](int strip) { return begin * kStrips + step_of(set, strip, unit_steps); });
      if (begin + set == kSets - 1) stream.release_turn(slot);
    };
    const auto issue = [&](int strip, int set, CoreMatrices input) {
      sets.issue(strip, next, input.behind(step_of(set, strip, unit_steps) * Digits::kStepDigits));
    };
    const float4* scales = nullptr;
    int steps = kFullSteps;
    const auto take = [&](int strip, int set) {
      sets.take(sums, strip, set, scales + Digits::scales_of(step_of(set, strip, steps)));
    };
    SOLITON_NO_UNROLL
    for (int i = first; i < range.end; i += part.stride) {
      SOLITON_NO_UNROLL
      for (begin = 0; begin < kSets; begin += kTogether) {
        const int own_step = first_step + begin * kStrips;
        const CoreMatrices input(
            digits_.step(own_step));  // all lanes have it by the time that the slot is there
        if (begin == 0) open(i);
        load(0);
        if (i != first || begin != 0) take(1, kTogether - 1);  // of the sets before
        scales = digits_.scales(own_step);
        steps = unit_steps;
        issue(0, 0, input);
        issue(1, 0, input);
        SOLITON_UNROLL
        for (int set = 1; set < kTogether; ++set) {
          sets.wait(0);
          load(set);
          take(0, set - 1);
          issue(0, set, input);
          sets.wait(1);
          take(1, set - 1);
          issue(1, set, input);
        }
        sets.wait(0);
        take(0, kTogether - 1);
        sets.template wait<true>(1);
      }
      first_step += part.stride * Digits::kSlotSteps;
    }
    if (first < range.end) take(1, kTogether - 1);
    if (part.first > 0 && (range.end - range.first) % kWarpgroups != 0) pass();
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
    const int pair = set * Sets::kSetSteps;
    const int within = pair % unit_steps;
    return (pair - within) * kStrips + strip * unit_steps + within;
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
