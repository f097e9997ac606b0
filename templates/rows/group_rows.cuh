// Which experts the rows of a step go through, and rows side by side by their experts (layout/grouped_rows.h). Rows are chosen
// for by all workers of all CTAs; a grid barrier later every CTA makes the same list of groups out of that, and its workers bring
// their share of the lines.
#pragma once

#include "rows/groups.cuh"
#include "rows/row_logits.cuh"

namespace soliton::rows {

template <const KernelPlan& kPlan>
class RowGrouper {
  static constexpr GroupedRows kRows = kGroupedRows<kPlan>;
  static constexpr Mixture kMixture = kPlan.model.mixture;
  static constexpr int kUsed = kMixture.used();
  static constexpr int kMaskWords = kRows.mask_words();
  static constexpr int kExperts = kRows.experts();
  static constexpr int kThreads = kWorkers * kWarpLanes;
  static constexpr Vector kChoices = kPlan.vector(kPlan.phase(PhaseKind::kChoose).writes);
  static constexpr Vector kGrouped = kPlan.vector(kPlan.phase(PhaseKind::kGroup).writes);
  static_assert(kRows.scratch_bytes() <= kPlan.input_bytes(), "masks lie where activations were");
  static_assert(kMaskWords <= kWarpLanes, "a lane has a word of a mask");

 public:
  SOLITON_DEVICE RowGrouper(const Context<kPlan>& context, int worker) : context_(context), worker_(worker) {}

  /// Chooses for this worker's rows, by the logits `routes`.
  SOLITON_DEVICE void choose(const Vector& routes, int layer) const {
    const int rows = context_.params.tree.num_rows;
    if (context_.first_unit(worker_) >= rows) return;
    RouterBias<kMixture> bias;
    bias.load(context_.params.router_biases, layer, context_.lane);
    SOLITON_NO_UNROLL
    for (int row = context_.first_unit(worker_); row < rows; row += Context<kPlan>::kUnitStride) {
      const ExpertChoice<kMixture> choice(row_logits(context_, routes, row), bias, context_.lane);
      const float weight = choice.weight(context_.lane, kPlan.model.router_scale);
      if (context_.lane >= kUsed) continue;
      const int pair = row * kUsed + context_.lane;
      store_global(experts() + pair, static_cast<uint32_t>(choice.expert()));
      store_global(weights() + pair, weight);
    }
  }

  /// Makes the list, for all roles, and brings this worker's share of the lines. Collective of the workers; `met`: parity of
  /// their next meeting.
  SOLITON_DEVICE void group(int layer, uint32_t& met) const {
    count_rows(met);
    if (worker_ == 0) {
      const uint32_t before = context_.choices(layer);
      // True at once for the first list. Pairs with the producer's arrival once it needs the last one no more.
      context_.wait(context_.barrier(BarrierId::kExpertsTaken), (before & 1) ^ 1, WaitKind::kExpertsTaken,
                    before);
      warp_sync();
      list();
      warp_arrive(&context_.barrier(BarrierId::kExpertsChosen));
    }
    context_.wait_experts(layer);
    warp_sync();
    bring_lines();
    fence_async_shared();  // bulk copies come to where the masks are
  }

 private:
  static constexpr int kUnitLines = 8;  // that a warp brings at once: rows of a core matrix

  SOLITON_DEVICE uint32_t* experts() const { return context_.template workspace<uint32_t>(kChoices.offset); }
  SOLITON_DEVICE float* weights() const {
    return context_.template workspace<float>(kChoices.offset + kRows.weights_offset());
  }
  SOLITON_DEVICE uint32_t* lines() const {
    return context_.template workspace<uint32_t>(kChoices.offset + kRows.lines_offset());
  }
  /// Of an expert the rows from 32 i on, a bit each; and of all rows how many.
  SOLITON_DEVICE uint32_t* mask(int expert, int i) const {
    return reinterpret_cast<uint32_t*>(context_.region(RegionId::kInput)) + expert * kMaskWords + i;
  }
  SOLITON_DEVICE uint32_t* pairs_of(int expert) const { return mask(kExperts, 0) + expert; }

  /// Which rows go through each expert.
  SOLITON_DEVICE void count_rows(uint32_t& met) const {
    const int thread = worker_ * kWarpLanes + context_.lane;
    SOLITON_NO_UNROLL
    for (int i = thread; i < kExperts * kMaskWords; i += kThreads) store_shared(mask(0, i), 0u);
    context_.meet_workers(met);
    const int pairs = context_.params.tree.num_rows * kUsed;
    SOLITON_UNROLL_BY(8)
    for (int i = thread; i < pairs; i += kThreads) {
      const int row = i / kUsed;
      add_shared(mask(static_cast<int>(load_global(experts() + i)), row / 32), 1u << row % 32);
    }
    context_.meet_workers(met);
    SOLITON_NO_UNROLL
    for (int expert = worker_; expert < kExperts; expert += kWorkers) {
      int count = context_.lane < kMaskWords ? count_bits(load_shared(mask(expert, context_.lane))) : 0;
      SOLITON_UNROLL
      for (int step = 1; step < kWarpLanes; step *= 2) count += shuffle_xor(count, step);
      if (context_.lane == 0) store_shared(pairs_of(expert), static_cast<uint32_t>(count));
    }
    context_.meet_workers(met);
  }

  /// By one warp, of which every lane looks after some neighbouring experts.
  SOLITON_DEVICE void list() const {
    constexpr int kOwn = ceil_divide(kExperts, kWarpLanes);
    const GroupList<kPlan> groups(context_);
    const auto pairs_at = [&](int i) {
      const int expert = context_.lane * kOwn + i;
      return expert < kExperts ? static_cast<int>(load_shared(pairs_of(expert))) : 0;
    };
    const auto width_of_last = [&](int pairs) { return group_width((pairs - 1) % kMostBlockRows + 1); };
    const auto costs_of = [&](int pairs, int count) {
      const int of_full = GroupedRows::piece_cost(kMostBlockRows);
      return count == 0 ? 0 : (count - 1) * of_full + GroupedRows::piece_cost(width_of_last(pairs));
    };
    int own_groups = 0;
    int own_lines = 0;
    int own_costs = 0;
    SOLITON_NO_UNROLL
    for (int i = 0; i < kOwn; ++i) {
      const int pairs = pairs_at(i);
      const int count = ceil_divide(pairs, kMostBlockRows);
      own_groups += count;
      own_lines += count == 0 ? 0 : (count - 1) * kMostBlockRows + width_of_last(pairs);
      own_costs += costs_of(pairs, count);
    }
    int end_group = own_groups;
    int end_line = own_lines;
    int end_cost = own_costs;
    SOLITON_UNROLL
    for (int delta = 1; delta < kWarpLanes; delta *= 2) {
      const int groups_before = shuffle(end_group, (context_.lane - delta) & (kWarpLanes - 1));
      const int lines_before = shuffle(end_line, (context_.lane - delta) & (kWarpLanes - 1));
      const int costs_before = shuffle(end_cost, (context_.lane - delta) & (kWarpLanes - 1));
      if (context_.lane < delta) continue;
      end_group += groups_before;
      end_line += lines_before;
      end_cost += costs_before;
    }
    int group = end_group - own_groups;
    int line = end_line - own_lines;
    int cost = end_cost - own_costs;
    SOLITON_NO_UNROLL
    for (int i = 0; i < kOwn; ++i) {
      const int pairs = pairs_at(i);
      SOLITON_NO_UNROLL
      for (int first = 0; first < pairs; first += kMostBlockRows) {
        const int left = pairs - first;
        const int count = left < kMostBlockRows ? left : kMostBlockRows;
        groups.set(group++, {context_.lane * kOwn + i, line, count, first, cost});
        line += group_width(count);
        cost += GroupedRows::piece_cost(group_width(count));
      }
    }
    if (context_.lane == kWarpLanes - 1) groups.set_count(end_group, end_cost);
    warp_sync();
  }

  /// Eight lines of a group after the other.
  SOLITON_DEVICE void bring_lines() const {
    const GroupList<kPlan> groups(context_);
    const int count = groups.count();
    const ExpertGroup last = groups[count - 1];
    const int end = last.first_line + group_width(last.pairs);
    int at = 0;  // this lane's group, of those that may have the next unit's lines
    SOLITON_NO_UNROLL
    for (int line = context_.first_unit(worker_) * kUnitLines; line < end;
         line += Context<kPlan>::kUnitStride * kUnitLines) {
      ExpertGroup group = {};
      for (;; at += kWarpLanes) {
        const int own = at + context_.lane < count ? at + context_.lane : count - 1;
        group = groups[own];
        const bool has = group.first_line <= line && line < group.first_line + group_width(group.pairs);
        if (!warp_any(has)) continue;
        const int lane = lowest_lane(has);
        group = groups[at + lane < count ? at + lane : count - 1];
        break;
      }
      bring_unit(group, line - group.first_line);
    }
  }

  /// The row of each of the expert's pairs `first` to first + 7, in lane i of every eight that of pair first + i; -1: none.
  SOLITON_DEVICE int find_rows(int expert, int first, int end) const {
    uint32_t word = context_.lane < kMaskWords ? load_shared(mask(expert, context_.lane)) : 0;
    int behind = count_bits(word);
    const int own = behind;
    SOLITON_UNROLL
    for (int delta = 1; delta < kWarpLanes; delta *= 2) {
      const int before = shuffle(behind, (context_.lane - delta) & (kWarpLanes - 1));
      if (context_.lane >= delta) behind += before;
    }
    int row_of_lane = -1;
    SOLITON_NO_UNROLL
    for (int i = 0; i < kUnitLines; ++i) {
      const int rank = first + i;
      if (rank >= end) break;
      const int skipped = rank - (behind - own);
      const bool has = skipped >= 0 && rank < behind;
      uint32_t rest = word;
      SOLITON_NO_UNROLL
      for (int k = 0; has && k < skipped; ++k) rest &= rest - 1;
      const int bit = count_bits((rest & (0u - rest)) - 1);
      const int row = shuffle(context_.lane * 32 + bit, lowest_lane(has));
      if (context_.lane % kUnitLines == i) row_of_lane = row;
    }
    return row_of_lane;
  }

  SOLITON_DEVICE void bring_unit(const ExpertGroup& group, int first) const {
    const int end = group.first_rank + group.pairs;
    if (group.first_rank + first >= end) return;  // lines that nobody has
    const int row = find_rows(group.expert, group.first_rank + first, end);
    tell_lines(group, first, row);
    copy(group, first + context_.lane % kUnitLines, row);
  }

  /// Tells the rows which line they have, and what their norm's factors are.
  SOLITON_DEVICE void tell_lines(const ExpertGroup& group, int first, int row_of_lane) const {
    constexpr int kStride = kPlan.squares_stride();
    float* factors = context_.template workspace<float>(kGrouped.offset + kRows.factors_offset());
    const float* squares = context_.template workspace<float>(kPlan.vector(kPlan.squares).offset);
    SOLITON_NO_UNROLL
    for (int i = 0; i < kUnitLines; ++i) {
      const int row = shuffle(row_of_lane, i);
      if (row < 0) break;
      const int line = group.first_line + first + i;
      float sum = 0.0f;
      SOLITON_UNROLL
      for (int k = 0; k < kStride; k += 4 * kWarpLanes) {
        const float4 v =
            load_global(reinterpret_cast<const float4*>(squares + row * kStride + k) + context_.lane);
        sum += (v.x + v.y) + (v.z + v.w);
      }
      const bool is_own = context_.lane < kUsed && load_global(experts() + row * kUsed +
                                                               (context_.lane < kUsed ? context_.lane : 0)) ==
                                                       static_cast<uint32_t>(group.expert);
      if (is_own) store_global(lines() + row * kUsed + context_.lane, static_cast<uint32_t>(line));
      SOLITON_UNROLL
      for (int step = 1; step < kWarpLanes; step *= 2) sum += shuffle_xor(sum, step);
      if (context_.lane == 0)
        store_global(factors + line, rsqrt_fast(sum / kPlan.model.hidden + kPlan.model.norm_epsilon));
    }
  }

  /// All columns of this lane's row to its line: of every four blocks of 8 columns, which are 32 neighbouring ones, a lane has one.
  SOLITON_DEVICE void copy(const ExpertGroup& group, int line, int row) const {
    constexpr RowsShape kShapeOfRows = kShape<kPlan>;
    constexpr GroupedRows kLayout = kRows;
    constexpr int kColumns = kLayout.columns();
    constexpr int kAtOnce = kWarpLanes / kUnitLines;
    constexpr Vector kSource = kPlan.vector(router_phase<kPlan>().reads);
    constexpr int kLoads = kColumns % (8 * kAtOnce * 8) == 0 ? 8 : 4;
    static_assert(kColumns % (kLoads * kAtOnce * 8) == 0, "whole turns");
    if (row < 0) row = 0;  // of a line that nobody has: any
    const int width = group_width(group.pairs);
    const unsigned char* from = context_.template workspace<unsigned char>(kSource.offset);
    unsigned char* to = context_.template workspace<unsigned char>(kGrouped.offset) +
                        GroupedRows::group_offset(kColumns, group.first_line) + line * 16;
    const int own = context_.lane / kUnitLines;
    const int64_t first = activation_offset(kShapeOfRows, 0, row, 0);
    SOLITON_NO_UNROLL
    for (int block = own; block < kColumns / 8; block += kAtOnce * kLoads) {
      uint4 words[kLoads];
      SOLITON_UNROLL
      for (int i = 0; i < kLoads; ++i) {
        const int at = block + i * kAtOnce;
        words[i] = load_global(reinterpret_cast<const uint4*>(from + first + block_offset(at)));
      }
      SOLITON_UNROLL
      for (int i = 0; i < kLoads; ++i) {
        const int place = kLayout.block_place(block / kAtOnce + i) * kAtOnce + own;
        store_global(reinterpret_cast<uint4*>(to + place * width * 16), words[i]);
      }
    }
  }
  /// Of a block of 8 columns, behind the first.
  static SOLITON_DEVICE int64_t block_offset(int block) {
    constexpr RowsShape kShapeOfRows = kShape<kPlan>;
    constexpr int kChunkBlocks = kShapeOfRows.chunk_columns() / 8;
    return static_cast<int64_t>(block / kChunkBlocks) * kShapeOfRows.chunk_stride() +
           block % kChunkBlocks * kShapeOfRows.rows * 16;
  }

  const Context<kPlan>& context_;
  int worker_;
};

}  // namespace soliton::rows
