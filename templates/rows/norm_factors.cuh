// The factors of RMS norm, or the means of LayerNorm, of a step's rows: every worker sums up the squares, or sums, that all CTAs
// have published of some rows.
#pragma once

#include "rows/outputs.cuh"

namespace soliton::rows {

template <const KernelPlan& kPlan>
class NormFactors : public Outputs<kPlan> {
  using Base = Outputs<kPlan>;

 public:
  using Base::Base;

  /// Sums of squares, of each of this worker's share of the rows.
  struct Squares {
    float sums[kBlockRows<kPlan> / kWorkers] = {};
  };
  template <int kVector = kPlan.squares>
  SOLITON_DEVICE Squares load_squares() const {
    return load_squares<kVector>(context_.first_row());
  }
  /// The same of the rows from `first_row` on.
  template <int kVector = kPlan.squares>
  SOLITON_DEVICE Squares load_squares(int first_row) const {
    constexpr int kLoads = kSquaresStride / (4 * kWarpLanes);
    constexpr int kShare = kBlockRows<kPlan> / kWorkers;
    Squares all;
    SOLITON_UNROLL
    for (int i = 0; i < kShare; ++i) {
      const float4* squares = reinterpret_cast<const float4*>(
          this->template squares_of<kVector>(first_row + worker_ * kShare + i));
      SOLITON_UNROLL
      for (int k = 0; k < kLoads; ++k) {
        const float4* words = squares + k * kWarpLanes + context_.lane;
        const float4 v = awaits_pairs(kPlan) ? load_relaxed(words) : load_global(words);
        all.sums[i] += (v.x + v.y) + (v.z + v.w);
      }
    }
    return all;
  }
  /// RMS norm's factors of them, for whoever finishes tiles: tiles_full says that they are there. What no CTA writes is zero.
  /// Of two lanes each goes on with half of the rows that both have, until every lane has one: few shuffles, one root. `norms`:
  /// false where the residual stream is read as it is: all are 1. Or, with kMeans, the means of what blocks give.
  template <bool kMeans = false>
  SOLITON_DEVICE void put_factors(Squares all, bool norms = true) const {
    constexpr int kShare = kBlockRows<kPlan> / kWorkers;
    int row = 0;
    SOLITON_UNROLL
    for (int round = 0; 1 << round < kWarpLanes; ++round) {
      const int mask = 1 << round;
      const int left = kShare >> (round + 1);
      if (left == 0) all.sums[0] += shuffle_xor(all.sums[0], mask);
      const bool rear = (context_.lane & mask) != 0;
      if (rear) row += left;
      SOLITON_UNROLL
      for (int i = 0; i < kShare / 2; ++i) {
        if (i >= left) break;
        const float own = rear ? all.sums[i + left] : all.sums[i];
        all.sums[i] = own + shuffle_xor(rear ? all.sums[i] : all.sums[i + left], mask);
      }
    }
    if (context_.lane >= kShare) return;
    if constexpr (kMeans) {
      store_shared(context_.factors() + worker_ * kShare + row, all.sums[0] / kPlan.model.hidden);
      return;
    }
    store_shared(context_.factors() + worker_ * kShare + row,
                 norms_before(kPlan.model.norms) || norms
                     ? rsqrt_fast(all.sums[0] / kPlan.model.hidden + kPlan.model.norm_epsilon)
                     : 1.0f);
  }
  static SOLITON_DEVICE bool norms_input(const MatrixPhase& phase) {
    return norms_before(kPlan.model.norms) || phase.output == OutputKind::kLogits;
  }

 protected:
  using Base::context_, Base::worker_;
  using Base::kSquaresStride;
};

}  // namespace soliton::rows
