// Who finishes tiles: workers in teams, of which each has one for every 8 rows, or every 16. A thread looks after four
// sums of a tile for one row of activations, or for one after the other of two.
#pragma once

#include "ops/choice.cuh"
#include "rows/context.cuh"

namespace soliton::rows {

template <const KernelPlan& kPlan>
class Finisher {
 public:
  SOLITON_DEVICE Finisher(Context<kPlan>& context, int worker) : context_(context), worker_(worker) {}

 protected:
  static constexpr RowsShape kRowsShape = kShape<kPlan>;
  static constexpr int kTeams = kRowsShape.teams();
  static constexpr int kTeamWorkers = kRowsShape.team_workers();
  static constexpr int kThreads = kTeamWorkers * kWarpLanes;  // of a team
  static constexpr int kQuarters = 4;
  static constexpr int kOwnRows = kRowsShape.rows_per_thread();
  static constexpr int kRowStride = kThreads / kQuarters;  // from one of a thread's rows to the next
  static_assert(kThreads * kOwnRows == kBlockRows<kPlan> * kQuarters, "every thread has as many rows");

  /// Four sums of this thread's row: of rows 2 q and 2 q + 1 of a tile, and of 2 q + 8 and 2 q + 9.
  struct Sums {
    float2 low;
    float2 high;
  };

  SOLITON_DEVICE bool is_active() const { return worker_ < kRowsShape.finishing_workers(); }
  SOLITON_DEVICE int team() const { return kTeams == 1 ? 0 : worker_ / kTeamWorkers; }
  SOLITON_DEVICE int thread() const {  // of the team
    return (worker_ - team() * kTeamWorkers) * kWarpLanes + context_.lane;
  }
  SOLITON_DEVICE int quarter() const { return context_.lane % kQuarters; }
  /// This thread's row: of the CTA's block of rows, and of the step.
  SOLITON_DEVICE int row_of_block() const {
    return thread() / kQuarters + (kOwnRows == 1 ? 0 : own_row_ * kRowStride);
  }
  SOLITON_DEVICE int row() const { return context_.first_row() + row_of_block(); }
  SOLITON_DEVICE bool is_live() const { return row() < context_.params.tree.num_rows; }
  /// The row whose logits this thread finds: another one where all CTAs find those of one block.
  SOLITON_DEVICE int logits_row() const {
    return context_.logits_block() * kBlockRows<kPlan> + row_of_block();
  }

  /// Sum over the lanes that share a row.
  static SOLITON_DEVICE float sum_quarters(float value) {
    for (int mask = 1; mask < kQuarters; mask *= 2) value += shuffle_xor(value, mask);
    return value;
  }

  /// What a phase gathers of each of this thread's rows: its sum of squares, or its best candidate. Where warpgroups
  /// multiply registers are full then, and it lies in shared memory, behind what threads bring.
  SOLITON_DEVICE uint64_t* gathered() const {
    return context_.template region<uint64_t>(RegionId::kTiles) + kRowsShape.brought_bytes() / 8 +
           (own_row_ * kWorkers + worker_) * kWarpLanes + context_.lane;
  }
  SOLITON_DEVICE float squares() const {
    if constexpr (kRowsShape.warpgroups) return load_shared(reinterpret_cast<const float*>(gathered()));
    return squares_;
  }
  SOLITON_DEVICE void set_squares(float value) {
    if constexpr (kRowsShape.warpgroups) {
      store_shared(reinterpret_cast<float*>(gathered()), value);
    } else {
      squares_ = value;
    }
  }
  SOLITON_DEVICE uint64_t best() const {
    if constexpr (kRowsShape.warpgroups) return load_shared(gathered());
    return best_;
  }
  SOLITON_DEVICE void set_best(uint64_t value) {
    if constexpr (kRowsShape.warpgroups) {
      store_shared(gathered(), value);
    } else {
      best_ = value;
    }
  }

  Context<kPlan>& context_;
  int worker_;
  float scale_ = 1.0f;    // of the norm
  int own_row_ = 0;       // which of this thread's rows is looked after
  float squares_ = 0.0f;  // of this thread's values of the residual stream
  uint64_t best_ = kNoCandidate;
};

}  // namespace soliton::rows
