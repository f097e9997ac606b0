// What products of weights and digits of the input become, where warpgroups multiply (digit_multiplier.cuh): sums of a set of
// steps of a strip are exact, as integers. Where groups have scales of their own, a set has one, and its sums are scaled. In blocks
// groups count with integers: sums of a step are multiplied by these, and what a run of them gives, all of whose columns have the
// same unit of their digits, is scaled by the block.
#pragma once

#include <type_traits>

#include "formats/integer_scales.cuh"
#include "formats/integer_words.cuh"
#include "rows/input_digits.cuh"
#include "rows/weight_slot.cuh"

namespace soliton::rows {

/// Of both kinds.
template <const KernelPlan& kPlan, WeightFormat kFormat>
struct DigitSet {
  using Digits = InputDigits<kPlan, kFormat>;
  using Slot = WeightSlot<kPlan, kFormat>;
  static constexpr int kRows = kBlockRows<kPlan>;
  static constexpr int kSums = Digits::kDigitRows / 2;             // of a set's products that a lane has,
  static constexpr int kNextDigit = kRows / 2;                     // and from one digit's to the next
  static constexpr int kSlotPairs = Digits::kSlotSteps / kStrips;  // of a step of each strip
  /// What rows g + 8 of 4 bits count with.
  static constexpr float kUpperUnit = kFormat.bits() == 4 ? 1.0f / 16 : 1;
  static constexpr bool kSigned = kFormat.is_signed() && !kFormat.has_minima;
  using Sums = float[kRows / 2];
  using Products = int32_t[kSums];

  /// Of 4 bits as they stand: ptxas then keeps them in place.
  static constexpr bool kNibbles = kFormat.bits() == 4;
  using Words = std::conditional_t<kNibbles, uint4, StepWords<kFormat>>;

  /// Of step `pair` of both strips.
  static SOLITON_DEVICE Words load_words(const unsigned char* slot, int tile, int pair, int lane) {
    const unsigned char* words = slot + tile * Slot::kWordBytes + pair * kFormat.step_bytes();
    if constexpr (kNibbles) {
      return load_shared(reinterpret_cast<const uint4*>(words) + lane);
    } else {
      return Words::load(words, lane);
    }
  }
  static SOLITON_DEVICE uint4 operand(const Words& words, int strip) {
    if constexpr (kNibbles) {
      return divide_integers(words, strip);
    } else {
      return words.operand(strip);
    }
  }

  template <class Value, int kCount>
  static SOLITON_DEVICE void clear(Value (&values)[kCount]) {
    SOLITON_UNROLL
    for (int i = 0; i < kCount; ++i) values[i] = 0;
  }

  /// Calls visit(at, i, half) for each of a lane's sums, of row lane % 4 * 2 + i of its 8 of the input, and of row lane / 4 + 8
  /// `half` of the tile; begin(n) before those of 8 rows.
  template <class Begin, class Visit>
  static SOLITON_DEVICE void each_sum(const Begin& begin, const Visit& visit) {
    SOLITON_UNROLL
    for (int n = 0; n < kRows / 8; ++n) {
      begin(n);
      SOLITON_UNROLL
      for (int i = 0; i < 2; ++i) {
        SOLITON_UNROLL
        for (int half = 0; half < 2; ++half) visit(4 * n + 2 * half + i, i, half);
      }
    }
  }
};

/// Of groups that have scales of their own.
template <const KernelPlan& kPlan, WeightFormat kFormat>
class ScaledSets : DigitSet<kPlan, kFormat> {
  using Base = DigitSet<kPlan, kFormat>;
  using typename Base::Digits, typename Base::Slot, typename Base::Products, typename Base::Sums;

 public:
  static constexpr int kSetSteps = Digits::kSetSteps;
  static constexpr int kSets = Base::kSlotPairs / kSetSteps;  // of each strip, in a slot,
  static constexpr int kTogether = kSets;                     // and of these, in one piece of code

  /// What loops carry of the second strip has a value: without one it had registers wherever they can be come to from.
  SOLITON_DEVICE ScaledSets() {
    Base::clear(products_[kStrips - 1]);
    made_[kStrips - 1] = {};
  }

  /// What a lane has of a set of both strips.
  struct Loaded {
    typename Base::Words words[kSetSteps];
    ScaleWords<kFormat> scales[kStrips];
  };
  /// Set `set` of a slot; step_of(strip): its first one, in the order of the slot's columns.
  template <class StepOf>
  static SOLITON_DEVICE Loaded load(const unsigned char* slot, int tile, int set, int lane,
                                    const StepOf& step_of) {
    Loaded loaded;
    SOLITON_UNROLL
    for (int k = 0; k < kSetSteps; ++k)
      loaded.words[k] = Base::load_words(slot, tile, set * kSetSteps + k, lane);
    SOLITON_UNROLL
    for (int strip = 0; strip < kStrips; ++strip) {
      const int group = step_of(strip) * kStepColumns / kFormat.group;
      loaded.scales[strip] =
          load_scale_words<kFormat>(slot + Slot::scales_of(tile) + scale_offset(kFormat, 0, lane / 4, group));
    }
    return loaded;
  }

  /// Begins to make a strip's products with the digits `from`.
  SOLITON_DEVICE void issue(int strip, const Loaded& loaded, CoreMatrices from) {
    uint4 weights[kSetSteps];
    SOLITON_UNROLL
    for (int k = 0; k < kSetSteps; ++k) weights[k] = Base::operand(loaded.words[k], strip);
    made_[strip] = loaded.scales[strip];
    warpgroup_fence(products_[strip], weights);
    warpgroup_multiply_bytes<Base::kSigned, false>(products_[strip], weights[0], from);
    SOLITON_UNROLL
    for (int k = 1; k < kSetSteps; ++k)
      warpgroup_multiply_bytes<Base::kSigned, true>(products_[strip], weights[k],
                                                    from.behind(k * Digits::kStepDigits));
    warpgroup_commit();
  }
  /// Waits for them, and for those of the other strip with kAll.
  template <bool kAll = false>
  SOLITON_DEVICE void wait(int strip) {
    warpgroup_wait<kAll>(products_[strip]);
  }
  /// Adds them; `inputs`: of the digits they were made with.
  SOLITON_DEVICE void take(Sums& sums, int strip, int /*set*/, const float4* inputs) const {
    constexpr int kDigit = 1 << kDigitBits;
    const Products& products = products_[strip];
    const RowScales own = row_scales<kFormat>(made_[strip]);
    float4 input;
    Base::each_sum([&](int n) { input = load_shared(inputs + n * 4); },
                   [&](int at, int i, int half) {
                     const float up = i == 0 ? input.x : input.y;
                     const float input_sum = i == 0 ? input.z : input.w;
                     float product =
                         static_cast<float>(products[at] + kDigit * products[at + Base::kNextDigit]);
                     if constexpr (kShape<kPlan>.digits == 3)
                       product += static_cast<float>(kDigit * kDigit) *
                                  static_cast<float>(products[at + 2 * Base::kNextDigit]);
                     product *= half == 0 ? up : up * Base::kUpperUnit;
                     if constexpr (kFormat.has_minima) {
                       sums[at] += own.scale[half] * product - own.minimum[half] * input_sum;
                     } else {
                       const float zeros =
                           kFormat.has_zeros ? static_cast<float>(own.zero[half]) * input_sum : input_sum;
                       sums[at] += own.scale[half] * (product - zeros);
                     }
                   });
  }

 private:
  Products products_[kStrips];
  ScaleWords<kFormat> made_[kStrips];
};

/// Of groups that count with integers.
template <const KernelPlan& kPlan, WeightFormat kFormat>
class FactorSets : DigitSet<kPlan, kFormat> {
  using Base = DigitSet<kPlan, kFormat>;
  using typename Base::Digits, typename Base::Slot, typename Base::Products, typename Base::Sums;
  using Blocks = BlockScales<kFormat>;

 public:
  static constexpr int kSetSteps = 1;
  static_assert(Digits::kSetSteps == kSetSteps, "the input has sums of its own for each");
  static constexpr int kSets = Base::kSlotPairs;

 private:
  static constexpr int kFullSteps = kFormat.page_columns() / kFormat.least_columns();
  /// Sets of a run: the steps of a strip of a unit, or the first, where pages may have less.
  static constexpr int kRunSets = kPlan.has_full_pages() ? kFullSteps : 1;
  /// Are both strips of a unit one run?
  static constexpr bool kJoins =
      kPlan.has_full_pages() && kStrips * kFullSteps * kStepColumns <= Digits::kTaskColumns;
  static_assert(multiplies_digits(kFormat) && kSets % kRunSets == 0 &&
                kRunSets * kStepColumns <= Digits::kTaskColumns);

 public:
  /// Those of a run, if these are some: of several, what becomes of one's sums would be left for later, and take registers.
  static constexpr int kTogether = kRunSets < 4 ? kSets : kRunSets;

  /// See ScaledSets().
  SOLITON_DEVICE FactorSets() {
    Base::clear(products_[kStrips - 1]);
    for (Counted& counted : counted_) {
      Base::clear(counted.products);
      Base::clear(counted.below);
    }
    made_[kStrips - 1] = {};
  }

  struct Loaded {
    typename Base::Words words;
    typename Blocks::Word factors[kStrips];
    typename Blocks::Head heads[kStrips];
  };
  template <class StepOf>
  static SOLITON_DEVICE Loaded load(const unsigned char* slot, int tile, int set, int lane,
                                    const StepOf& step_of) {
    const unsigned char* scales = slot + Slot::scales_of(tile);
    Loaded loaded;
    loaded.words = Base::load_words(slot, tile, set, lane);
    SOLITON_UNROLL
    for (int strip = 0; strip < kStrips; ++strip) {
      const int column = step_of(strip) * kStepColumns;
      loaded.factors[strip] = Blocks::word(scales, 0, lane / 4, column / kFormat.group);
      loaded.heads[strip] = Blocks::head(scales, 0, lane / 4, column / kFormat.block);
    }
    return loaded;
  }

  SOLITON_DEVICE void issue(int strip, const Loaded& loaded, CoreMatrices from) {
    uint4 weights[1] = {Base::operand(loaded.words, strip)};
    made_[strip] = {loaded.factors[strip], loaded.heads[strip]};
    warpgroup_fence(products_[strip], weights);
    warpgroup_multiply_bytes<Base::kSigned, false>(products_[strip], weights[0], from);
    warpgroup_commit();
  }
  template <bool kAll = false>
  SOLITON_DEVICE void wait(int strip) {
    warpgroup_wait<kAll>(products_[strip]);
  }
  SOLITON_DEVICE void take(Sums& sums, int strip, int set, const float4* inputs) {
    Counted& counted = counted_[kJoins ? 0 : strip];
    const bool begins = set % kRunSets == 0 && (!kJoins || strip == 0);
    const bool ends = set % kRunSets == kRunSets - 1 && (!kJoins || strip == kStrips - 1);
    int32_t factors[2];
    Blocks::scales(made_[strip].factors, factors);
    SOLITON_UNROLL
    for (int i = 0; i < Base::kSums; ++i)  // below 2^29: 128 columns of products below 2^15, times 2^7
      counted.products[i] = (begins ? 0 : counted.products[i]) + factors[i / 2 % 2] * products_[strip][i];
    float4 input;
    const auto bring = [&](int n) { input = load_shared(inputs + n * 4); };
    if constexpr (kFormat.has_minima) {
      float minima[2];
      Blocks::minima(made_[strip].factors, minima);
      Base::each_sum(bring, [&](int at, int i, int half) {
        counted.below[at] = (begins ? 0 : counted.below[at]) + minima[half] * (i == 0 ? input.z : input.w);
      });
    }
    if (!ends) return;
    float scale[2];
    float minimum[2];
    Blocks::unpack(made_[strip].head, scale, minimum);
    Base::each_sum(bring, [&](int at, int i, int half) {
      const float up = i == 0 ? input.x : input.y;
      sums[at] += scale[half] * (half == 0 ? up : up * Base::kUpperUnit) * whole(counted.products, at);
      if constexpr (kFormat.has_minima) sums[at] -= minimum[half] * counted.below[at];
    });
  }

 private:
  /// A sum by all digits.
  static SOLITON_DEVICE float whole(const Products& products, int at) {
    constexpr float kDigit = 1 << kDigitBits;
    float sum =
        static_cast<float>(products[at]) + kDigit * static_cast<float>(products[at + Base::kNextDigit]);
    if constexpr (kShape<kPlan>.digits == 3)
      sum += kDigit * kDigit * static_cast<float>(products[at + 2 * Base::kNextDigit]);
    return sum;
  }

  /// Of a run.
  struct Counted {
    Products products;
    Sums below;  // what minima are of the input
  };
  struct Made {
    typename Blocks::Word factors;
    typename Blocks::Head head;
  };
  Products products_[kStrips];
  Counted counted_[kJoins ? 1 : kStrips];
  Made made_[kStrips];
};

}  // namespace soliton::rows
