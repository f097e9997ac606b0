// Shared memory and barriers of the kernel for one row. A further region or barrier is a word and a line here.
#pragma once

#include "layout/launch.h"
#include "layout/structure.h"

namespace soliton::one_row {

/// Two generations of what consumers report per phase: one warp can be up to a phase ahead of another.
constexpr int kInputGenerations = 2;

/// What a consumer knows at the beginning of a step. Consumer warp 0 tells it the epilogue.
struct StepDecision {
  int32_t token;
  int32_t stop;
};

enum class BarrierId : int {
  kPageFull,        // producer and copy -> consumers
  kPageEmpty,       // consumers -> producer
  kTileFull,        // consumers -> epilogue
  kTileEmpty,       // epilogue -> consumers
  kInputRead,       // consumers -> epilogue: this CTA holds the input of the phase
  kInputTaken,      // epilogue -> consumers: it has read what they reported with it
  kQueryFull,       // consumers -> consumers, epilogue: q, k, v of a unit are in shared memory
  kAttentionFull,   // consumers, epilogue -> consumers: all parts of a unit are in shared memory
  kAttentionEmpty,  // consumers -> consumers, epilogue: they are merged and published
  kTokenReady,      // consumer warp 0 -> epilogue: the step's token stands in StepDecision
  kStepRead,        // epilogue -> producer: all KV of the step before may be read
  kExpertsChosen,   // epilogue -> producers: the layer's experts stand in shared memory
  kExpertsTaken,    // producers -> epilogue: they have copied what these have
  kStopped,         // consumer warp 0 -> producer: no further step
  kEnded,           // all others -> watch
  kCount
};

/// Whoever is ahead by a round of the slots waits for the others.
constexpr auto barrier_rules(const KernelPlan& plan) {
  Rules<BarrierRule, BarrierId, static_cast<int>(BarrierId::kCount)> rules;
  const int ring = plan.ring_slots;
  const int tiles = plan.tile_slots;
  const int generations = kInputGenerations;
  rules[BarrierId::kPageFull] = {"page_full", ring, ring, copier(plan)};
  rules[BarrierId::kPageEmpty] = {"page_empty", ring, ring, Arrivers::kConsumers};
  rules[BarrierId::kTileFull] = {"tile_full", tiles, tiles, Arrivers::kConsumers};
  rules[BarrierId::kTileEmpty] = {"tile_empty", tiles, tiles, Arrivers::kWarp};
  // A warp that has its slice of the next input may report it before a slower warp has reported this one.
  rules[BarrierId::kInputRead] = {"input_read", generations, generations, Arrivers::kConsumers};
  rules[BarrierId::kInputTaken] = {"input_taken", generations, generations, Arrivers::kWarp};
  rules[BarrierId::kQueryFull] = {"query_full", 1, 1, Arrivers::kConsumers};
  rules[BarrierId::kAttentionFull] = {"attention_full", 1, 1, Arrivers::kConsumersAndEpilogue};
  rules[BarrierId::kAttentionEmpty] = {"attention_empty", 1, 1, Arrivers::kConsumers};
  rules[BarrierId::kTokenReady] = {"token_ready", 1, 1, Arrivers::kWarp};
  rules[BarrierId::kStepRead] = {"step_read", 1, 1, Arrivers::kWarp};
  const int mixes = plan.model.mixture.experts > 0 ? 1 : 0;
  rules[BarrierId::kExpertsChosen] = {"experts_chosen", mixes, mixes, Arrivers::kWarp};
  rules[BarrierId::kExpertsTaken] = {"experts_taken", mixes, mixes, Arrivers::kProducers};
  rules[BarrierId::kStopped] = {"stopped", 1, 1, Arrivers::kLane};
  rules[BarrierId::kEnded] = {"ended", 1, 1, Arrivers::kWorkingLanes};
  return rules;
}

enum class RegionId : int {
  kPages,  // the ring
  kX,      // a slice of the input for each consumer; during attention its part of a unit, and of q, k and v
  kTiles,  // partial sums of tiles: [slot][consumer][row]
  kResidual,  // residual stream: [tile][row] of this CTA; where norms follow blocks all of it, which consumers hold
  kToken,     // what the epilogue keeps of the step's token: see TokenLayout
  kSquares,   // sums of squares of consumers' slices of x: [generation][consumer]
  kDecision,  // StepDecision of each consumer
  kExperts,   // numbers of the experts that the step's token goes through
  kZeros,     // what consumers multiply by of columns that are not theirs, see formats/e2m1.cuh
  kWaiting,   // whether the first consumer waits for its input, for the producer to look at
  kStatus,    // WarpStatus of every working warp
  kBarriers,  // last
  kCount
};

/// Byte offsets of what the epilogue keeps of the step's token. Where tokens are drawn, the histogram takes the place
/// of all of it at the end of the step.
struct TokenLayout {
  int scores = 0;     // of the new token, of each head of a unit
  int new_token = 0;  // its k, then v, of each unit: pairs of f16, part after part
  int rotations =
      0;  // cos and sin of its position for each pair of dims, of each table; none where heads are normed first
  int bytes = 0;
};
SOLITON_HOST_DEVICE constexpr TokenLayout token_layout(const KernelPlan& plan) {
  const ModelShape& model = plan.model;
  TokenLayout layout;
  layout.new_token = layout.scores + 4 * kHeadsPerBlock;
  layout.rotations = layout.new_token + 4 * plan.attention_units() * model.head_dim * model.kv_parts;
  const int end = layout.rotations + (model.head_norm ? 0 : 4 * model.head_dim * model.rope_tables);
  layout.bytes = end > kSharedHistogramBytes ? end : kSharedHistogramBytes;
  return layout;
}

static_assert(static_cast<int>(RegionId::kCount) <= kMaxRegions);
static_assert(static_cast<int>(BarrierId::kCount) <= kMaxBarriers);

/// As many as a consumer's columns of a page take in x.
SOLITON_HOST_DEVICE constexpr int zeros_bytes(const KernelPlan& plan) {
  for (int i = 0; i < plan.num_matrices; ++i) {
    const WeightFormat format = plan.matrices[i].format;
    if (format.type == WeightType::kE2m1) return format.page_columns() / plan.consumer_warps * 4;
  }
  return 0;
}

constexpr auto region_rules(const KernelPlan& plan) {
  Rules<RegionRule, RegionId, static_cast<int>(RegionId::kCount)> rules;
  const int warps = plan.consumer_warps;
  const auto barriers = barrier_rules(plan);
  rules[RegionId::kPages] = {"pages", plan.ring_slots * plan.slot_bytes, 16};
  rules[RegionId::kX] = {"x", plan.x_bytes(), 16};
  rules[RegionId::kTiles] = {"tiles", 4 * plan.tile_slots * warps * kTileRows, 4};
  const bool holds_stream = holds_blocks(plan.model.norms);
  rules[RegionId::kResidual] = {"residual",
                                4 * (holds_stream ? plan.model.hidden : plan.residual_tiles * kTileRows),
                                holds_stream ? 16 : 4};
  rules[RegionId::kToken] = {"token", token_layout(plan).bytes, 16};
  rules[RegionId::kSquares] = {"squares", 4 * kInputGenerations * warps, 4};
  rules[RegionId::kDecision] = {"decision", warps * static_cast<int>(sizeof(StepDecision)), 4};
  rules[RegionId::kExperts] = {"experts", 4 * plan.model.mixture.used(), 4};
  rules[RegionId::kZeros] = {"zeros", zeros_bytes(plan), 16};
  rules[RegionId::kWaiting] = {"waiting", 4, 4};
  rules[RegionId::kStatus] = {"status", plan.working_warps() * static_cast<int>(sizeof(WarpStatus)), 16};
  rules[RegionId::kBarriers] = {"barriers", kBarrierBytes * count_barriers(barriers.begin(), barriers.end()),
                                kBarrierBytes};
  return rules;
}

}  // namespace soliton::one_row
