// Counts that some kernel can have, facts that some model can have, enumerators that there are; and what a kind of plan or
// phase has no use for says nothing.
#include <fmt/ranges.h>

#include <algorithm>
#include <iterator>

#include "generator/plan/verify_passes.h"
#include "models/check.h"
#include "models/limits.h"

namespace soliton {
namespace {

// Attention holds a slot of keys and one of values at once, a consumer of integers two pages.
constexpr int kMinRingSlots = 2;
constexpr int kTileSums = kTileRows * 4;  // bytes of the least that a slot of tiles has
constexpr int kWarpDims[] = {64, 128};    // for which warps have registers
constexpr int kGroups[] = {16, 32, 64, 128};

template <class Choices>
bool contains(const Choices& choices, int value) {
  return std::find(std::begin(choices), std::end(choices), value) != std::end(choices);
}

/// A count and what it may be.
struct Range {
  const char* name;
  int least;
  int64_t most;
  int value;
};

void check_range(const Range& range, Report& report) {
  if (range.value < range.least) {
    report.refuse(Rule::kNumberOutOfRange, "{}: expected {} or more, got {}", range.name, range.least,
                  range.value);
  } else if (range.value > range.most) {
    report.refuse(Rule::kNumberOutOfRange, "{}: expected {} or less, got {}", range.name, range.most,
                  range.value);
  }
}

/// Of the most that there can be only so much as lets all later sums be sums of integers.
void check_counts(const Plan& plan, Report& report) {
  const int shared = plan.limits.max_shared_bytes_per_block;
  constexpr int kAny = 1 << 20;
  const Range ranges[] = {
      {"ring slots", kMinRingSlots, std::max(shared / kPageBytes, kMinRingSlots), plan.ring_slots},
      {"tile slots", 1, std::max(shared / kTileSums, 1), plan.tile_slots},
      {"pages prefetched", 0, kAny, plan.prefetch_pages},
      {"pages of a split of attention at least", 1, kAny, plan.min_pages_per_split}};
  for (const Range& range : ranges) check_range(range, report);
  if (!contains(kRowCounts, plan.rows)) {
    report.refuse(Rule::kNumberOutOfRange, "rows: expected {}, got {}", fmt::join(kRowCounts, ", "),
                  plan.rows);
  } else if (row_blocks(plan.rows) > 1 && plan.num_cards > 1) {
    report.refuse(Rule::kNumberOutOfRange, "rows: expected one card for {} blocks of rows, got {}",
                  row_blocks(plan.rows), plan.num_cards);
  } else if (plan.num_ctas % row_blocks(plan.rows) != 0) {
    report.refuse(Rule::kNumberOutOfRange, "CTAs: expected as many for each of {} blocks of rows, got {}",
                  row_blocks(plan.rows), plan.num_ctas);
  }
  if (plan.max_splits < 1 || plan.max_splits > kMaxSplits) {
    report.refuse(Rule::kNumberOutOfRange, "splits of attention: expected 1 to {}, one of each lane, got {}",
                  kMaxSplits, plan.max_splits);
  }
  if (plan.num_cards < 1 || plan.num_cards > kMaxLaunchCards) {
    report.refuse(Rule::kNumberOutOfRange, "cards of a launch: expected 1 to {}, got {}", kMaxLaunchCards,
                  plan.num_cards);
  }
  if (plan.num_ctas < 1 || plan.num_ctas > plan.limits.num_sms) {
    report.refuse(Rule::kTooManyCtas, "CTAs: expected 1 to {}, one per SM, got {}", plan.limits.num_sms,
                  plan.num_ctas);
  }
}

constexpr int kMostPageColumns = 2048;  // of any format

/// No more than twice what the model's largest has: enough to be looked at, tile by tile, for what is wrong with it.
void check_sizes(const Plan& plan, Report& report) {
  const ModelFacts& facts = plan.facts;
  const int64_t heads = int64_t{facts.num_heads} * facts.head_dim;
  const int64_t ffn = std::max<int64_t>(facts.ffn, int64_t{used_experts(facts)} * expert_width(facts));
  const int64_t rows = 2 * std::max<int64_t>({facts.vocabulary, 2 * ffn, 3 * heads, facts.hidden});
  const int64_t columns = 2 * std::max<int64_t>({ffn, heads, facts.hidden}) + kMostPageColumns;
  for (const PlanMatrix& matrix : plan.matrices) {
    const std::string at = "matrix " + matrix.name;
    for (const auto& [what, most, value] : {std::tuple{": rows", rows, matrix.rows},
                                            {": columns", columns, matrix.columns},
                                            {": columns with padding", columns, matrix.padded},
                                            {": tiles", rows / kTileRows + 1, matrix.num_tiles},
                                            {": tiles of a card", rows / kTileRows + 1, matrix.card_tiles},
                                            {": kind of layer", int64_t{plan.once()}, matrix.layer_kind}}) {
      check_range({(at + what).c_str(), 0, most, value}, report);
    }
    constexpr int kMostShared = kSharedExpertsLimit.max;
    check_range({(at + ": experts").c_str(), 1, kExpertsLimit.max + kMostShared, matrix.experts.count},
                report);
    check_range(
        {(at + ": chosen experts").c_str(), 1, kChosenExpertsLimit.max + kMostShared, matrix.experts.chosen},
        report);
  }
}

/// Of every layer, and of what stands once.
void check_layers(const Plan& plan, Report& report) {
  const auto expected = int64_t{plan.facts.num_layers} + 1;
  if (std::ssize(plan.layers) != expected) {
    report.refuse(Rule::kNumberOutOfRange, "layers: expected {}, of which the last stands once, got {}",
                  expected, plan.layers.size());
  }
  for (const Layer& layer : plan.layers)
    check_range({"kind of layer", 0, std::ssize(plan.phases) - 1, layer.kind}, report);
  for (const PlanPhase& phase : plan.phases)
    check_range({(phase.name + ": kind of layer").c_str(), 0, plan.once(), phase.layer_kind}, report);
}

void check_warps(const Plan& plan, Report& report) {
  const int warps = plan.consumer_warps;
  if (warps < 1 || kPageColumns % (warps * kColumnBlock) != 0) {
    report.refuse(Rule::kNumberOutOfRange, "consumer warps: expected 1, 2, 4, 8 or 16, got {}", warps);
  } else if (plan.layer_format().least_columns() > 0 && kUnits % warps != 0) {
    report.refuse(
        Rule::kNumberOutOfRange,
        "consumer warps: expected 1, 2, 4 or 8, which share the units of a page of integers, got {}", warps);
  } else if (plan.rows > 1 && warps != kWorkers) {
    report.refuse(Rule::kNumberOutOfRange, "workers: expected {}, got {}", kWorkers, warps);
  }
  const bool is_bulk = plan.copies == CopyKind::kBulk;
  if (is_bulk && plan.producer_warps != 1) {
    report.refuse(Rule::kNumberOutOfRange, "producer warps: expected 1 with bulk copies, got {}",
                  plan.producer_warps);
  }
  // A producer waits for a slot at a time, and for each use of it: no two may be at uses of one slot.
  if (!is_bulk && (plan.producer_warps < 1 || plan.producer_warps > plan.ring_slots)) {
    report.refuse(Rule::kNumberOutOfRange,
                  "producer warps: expected 1 to {}, one of each slot at most, got {}", plan.ring_slots,
                  plan.producer_warps);
  }
  if (is_bulk && !plan.limits.emulated && plan.limits.compute_capability < kBulkCopyCapability) {
    report.refuse(Rule::kNumberOutOfRange, "bulk copies: expected compute capability {} or more, got {}",
                  kBulkCopyCapability, plan.limits.compute_capability);
  }
}

void check_facts(const Plan& plan, Report& report) {
  try {
    check({.file = plan.model, .facts = plan.facts});
  } catch (const Error& refusal) {
    report.refuse(Rule::kNumberOutOfRange, "{}", refusal.what());
  }
}

template <class Enum>
void check_enumerator(const std::string& what, Enum value, Enum last, Report& report) {
  if (static_cast<int>(value) >= 0 && value <= last) return;
  report.refuse(Rule::kNumberOutOfRange, "{}: expected 0 to {}, got {}", what, static_cast<int>(last),
                static_cast<int>(value));
}

void check_enumerators(const Plan& plan, Report& report) {
  check_enumerator("copies", plan.copies, CopyKind::kLanes, report);
  check_enumerator("sync", plan.sync, SyncMode::kCounter, report);
  for (const PlanMatrix& matrix : plan.matrices) {
    const std::string what = "matrix " + matrix.name;
    check_enumerator(what + ": order of rows", matrix.row_order, RowOrder::kGateUp, report);
    check_enumerator(what + ": axis of experts", matrix.experts.axis, ExpertAxis::kColumns, report);
    check_enumerator(what + ": type of weights", matrix.format.type, kLastWeightType, report);
    if (!matrix.format.has_scales() || contains(kGroups, matrix.format.group)) continue;
    report.refuse(Rule::kNumberOutOfRange, "{}: expected groups of 16, 32, 64 or 128, got {}", what,
                  matrix.format.group);
  }
  for (const PlanPhase& phase : plan.phases) {
    check_enumerator(phase.name + ": kind", phase.kind, PhaseKind::kUngroup, report);
    check_enumerator(phase.name + ": input", phase.input, InputKind::kHidden, report);
    check_enumerator(phase.name + ": output", phase.output, OutputKind::kRouter, report);
  }
}

/// What is not used is as it is where nobody sets it, so that nobody takes it for something.
template <class T>
void check_unused(const std::string& what, T unused, T value, Report& report) {
  if (value == unused) return;
  report.refuse(Rule::kUnusedNumber, "{}: expected {}, which is not used, got {}", what,
                static_cast<int>(unused), static_cast<int>(value));
}

void check_unused_of_phase(const Plan& plan, const PlanPhase& phase, Report& report) {
  const auto unused = [&](const char* what, auto expected, auto value) {
    check_unused(fmt::format("{}: {}", phase.name, what), expected, value, report);
  };
  const PlanPhase none = {};
  if (phase.kind != PhaseKind::kMatrix) {
    unused("input", none.input, phase.input);
    unused("output", none.output, phase.output);
    unused("first CTA", none.first_cta, phase.first_cta);
    if (phase.kind != PhaseKind::kNormBlock) unused("norm", none.norm, phase.norm);
    unused("column slices", none.column_slices, phase.column_slices);
  }
  if (phase.kind != PhaseKind::kMatrix && phase.kind != PhaseKind::kAttention)
    unused("window", none.window, phase.window);
  if (phase.norm < 0) unused("norm", none.norm, phase.norm);
  if (plan.rows > 1) unused("reads in layer 0", none.first_layer_reads, phase.first_layer_reads);
}

/// As the model has them; what stands once attends to nothing.
void check_windows(const Plan& plan, Report& report) {
  constexpr int kTables[] = {0, 1, kNone};  // by LayerRope
  for (int layer = 0; layer < static_cast<int>(plan.layers.size()); ++layer) {
    const bool is_there = layer < plan.facts.num_layers;
    const int window = is_there ? window_of_layer(plan.facts, layer) : 0;
    const int rope = is_there ? kTables[rope_of_layer(plan.facts, layer)] : 0;
    if (plan.layers[layer].window != window) {
      report.refuse(Rule::kNumberOutOfRange,
                    "layer {}: window: expected {} keys, as the model has it, got {}", layer, window,
                    plan.layers[layer].window);
    }
    const int chunk = is_there ? chunk_of_layer(plan.facts, layer) : 0;
    if (plan.layers[layer].chunk != chunk) {
      report.refuse(Rule::kNumberOutOfRange,
                    "layer {}: chunk: expected {} positions, as the model has it, got {}", layer, chunk,
                    plan.layers[layer].chunk);
    }
    if (plan.layers[layer].rope != rope) {
      report.refuse(Rule::kNumberOutOfRange,
                    "layer {}: rotations: expected table {}, as the model has it, got {}", layer, rope,
                    plan.layers[layer].rope);
    }
  }
}

/// A kernel of one row has none of what those of several have, and the other way round.
void check_unused_of_plan(const Plan& plan, Report& report) {
  const Plan none = {};
  if (plan.rows > 1) {
    check_unused("chunk columns", none.chunk_columns, plan.chunk_columns, report);
    for (const PlanVector& vector : plan.vectors) {
      check_unused(vector.name + ": signatures", 0, vector.signatures, report);
      check_unused(vector.name + ": places", 1, vector.places, report);
    }
    return;
  }
  check_unused("chunks of activations", none.input_buffers, plan.input_buffers, report);
  check_unused("query tiles", none.max_query_tiles, plan.max_query_tiles, report);
  check_unused("dims of a warp", none.warp_dims, plan.warp_dims, report);
  check_unused("shared registers", none.shares_registers, plan.shares_registers, report);
  check_unused("warpgroups", none.warpgroups, plan.warpgroups, report);
}

/// Of several rows.
void check_rows_counts(const Plan& plan, Report& report) {
  const int shared = plan.limits.max_shared_bytes_per_block;
  check_range({"chunks of activations", 1, std::max(shared / 16, 1), plan.input_buffers}, report);
  check_range({"query tiles", 1, std::max(shared / 16, 1), plan.max_query_tiles}, report);
  if (!contains(kWarpDims, plan.warp_dims)) {
    report.refuse(Rule::kNumberOutOfRange, "dims of a warp: expected 64 or 128, got {}", plan.warp_dims);
  }
  if (!plan.shares_registers) return;
  // Two warpgroups of workers take them from the one of all others.
  constexpr int kThreads = 3 * kGroupWarps * kWarpLanes;
  if (!has_warpgroups(plan.limits) || plan.threads() != kThreads) {
    report.refuse(Rule::kNumberOutOfRange,
                  "shared registers: expected {} threads of compute capability {}, got {} of {}", kThreads,
                  kWarpgroupCapability, plan.threads(), plan.limits.compute_capability);
  }
}

}  // namespace

void check_numbers(const Plan& plan, Report& report) {
  check_counts(plan, report);
  check_warps(plan, report);
  check_facts(plan, report);
  check_layers(plan, report);
  check_sizes(plan, report);
  check_enumerators(plan, report);
  check_windows(plan, report);
  check_unused_of_plan(plan, report);
  if (plan.rows > 1) check_rows_counts(plan, report);
  for (const PlanPhase& phase : plan.phases) check_unused_of_phase(plan, phase, report);
}

}  // namespace soliton
