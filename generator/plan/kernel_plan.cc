#include "generator/plan/kernel_plan.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "layout/one_row.h"
#include "layout/several_rows.h"

namespace soliton {
namespace {

/// Tiles of the residual stream that the busiest CTA keeps.
int most_residual_tiles(const Plan& plan) {
  int most = 0;
  for (const PlanPhase& phase : plan.phases) {
    if (phase.output != OutputKind::kResidual) continue;
    for (const TileRun& run : phase.runs) most = std::max(most, run.count);
  }
  return most;
}

/// Bytes of a ring slot: the largest page, of the KV cache, or of weights; or what warpgroups have in a slot of several tiles'.
int slot_bytes(const Plan& plan) {
  const RowsShape shape = plan.shape();
  int bytes = kPageBytes;
  for (const PlanMatrix& matrix : plan.matrices) {
    const WeightFormat format = matrix.format;
    if (!plan.warpgroups) {
      bytes = std::max(bytes, weight_bytes(format, format.page_columns()));
    } else if (format != WeightFormat{}) {
      const int tiles = shape.tiles_at_once() / kWarpgroups;
      bytes = std::max(bytes, tiles * weight_bytes(format, shape.slot_columns(format)));
    }
  }
  return bytes;
}

/// The one kind of layers whose phases write a vector, where there are several.
int only_writer(const Plan& plan, const PlanVector& vector) {
  int kind = kNone;
  for (const PlanPhase& phase : plan.phases) {
    if (phase.writes < 0 || plan.vectors[phase.writes].name != vector.name) continue;
    if (plan.once() == 1 || phase.layer_kind == plan.once() || kind != kNone) return kNone;
    kind = phase.layer_kind;
  }
  return kind;
}

Vector kernel_vector(const Plan& plan, const PlanVector& vector) {
  return {.offset = vector.offset,
          .elements = static_cast<int>(static_cast<int64_t>(vector.elements) * vector.element_bytes / 4),
          .signatures = vector.signatures,
          .to_second = vector.places == 1 ? 0 : vector.place_bytes(),
          .layer_kind = only_writer(plan, vector)};
}

Phase kernel_phase(const PlanPhase& phase) {
  return {.name = phase.name.c_str(),
          .kind = phase.kind,
          .matrix = phase.matrix,
          .reads = phase.reads,
          .writes = phase.writes,
          .routes = phase.routes,
          .input = phase.input,
          .output = phase.output,
          .norm = phase.norm,
          .first_cta = phase.first_cta,
          .layer_kind = phase.layer_kind,
          .appends = phase.appends,
          .column_slices = phase.column_slices};
}

template <class Rules>
auto as_vector(const Rules& rules) {
  return std::vector(rules.begin(), rules.end());
}

}  // namespace

ModelShape model_shape(const Plan& plan) {
  const ModelFacts& facts = plan.facts;
  ModelShape shape{.layers = plan.layers.data(),
                   .num_layers = facts.num_layers,
                   .num_heads = facts.num_heads,
                   .num_kv_heads = facts.num_kv_heads,
                   .head_dim = facts.head_dim,
                   .kv_parts = kv_shape(facts).parts,
                   .kv_e4m3 = kv_shape(facts).e4m3,
                   .hidden = facts.hidden,
                   .qkv_bias = adds_qkv_biases(facts),
                   .o_bias = facts.o_bias != 0,
                   .head_norm = facts.head_norm != 0,
                   .joint_norm = facts.joint_norm != 0,
                   .head_norm_last = facts.head_norm_last != 0,
                   .norms = norm_placement(facts),
                   .norm_offset = facts.norm_offset != 0,
                   .up_biases = up_biases(facts),
                   .down_bias = facts.ffn_bias != 0,
                   .logit_biases = facts.norm_bias != 0,
                   .ungated = facts.ungated != 0,
                   .ordered = facts.weight_order != 0,
                   .norm_epsilon = static_cast<float>(facts.norm_epsilon),
                   .score_scale = static_cast<float>(std::numbers::log2e * attention_scale(facts)),
                   .embedding_scale = static_cast<float>(facts.embedding_scale),
                   .residual_scale = static_cast<float>(facts.residual_scale),
                   .logit_scale = static_cast<float>(facts.logit_scale),
                   .logit_soft_cap = static_cast<float>(facts.logit_soft_cap),
                   .rope_tables = rope_tables(facts),
                   .query_table = scales_queries(facts) ? 1 : 0,
                   .attention = {.soft_cap = static_cast<float>(facts.attention_soft_cap),
                                 .sinks = facts.sinks != 0,
                                 .alibi = static_cast<float>(facts.alibi)},
                   .activation = static_cast<Activation>(facts.activation)};
  for (const PlanMatrix& matrix : plan.matrices) {
    if (matrix.format.has_scales() && !shape.integers.has_scales()) {
      shape.integers = matrix.format;
    } else if (matrix.format != WeightFormat{} && matrix.format != shape.integers) {
      shape.further = matrix.format;
    }
    if (matrix.experts.axis != ExpertAxis::kNone) {
      shape.mixture = {.experts = facts.num_experts,
                       .chosen = facts.experts_per_token,
                       .ffn = expert_width(facts),
                       .renormalised = facts.renormalised != 0,
                       .shared = facts.shared_experts,
                       .shared_gate = facts.shared_gate != 0,
                       .scores = static_cast<RouterScores>(facts.router_scores),
                       .biased = facts.router_bias != 0,
                       .expert_bias = facts.expert_bias != 0};
      shape.router_scale = static_cast<float>(facts.router_scale);
    }
  }
  return shape;
}

PackedMatrix packed_matrix(const PlanMatrix& matrix) {
  return {.name = matrix.name.c_str(),
          .layer_kind = matrix.layer_kind,
          .offset = matrix.offset,
          .rows = matrix.rows,
          .columns = matrix.columns,
          .padded_columns = matrix.padded,
          .format = matrix.format,
          .num_tiles = matrix.num_tiles,
          .row_order = matrix.row_order,
          .experts = matrix.experts};
}

PlannedKernel::PlannedKernel(const Plan& plan) {
  for (const PlanMatrix& matrix : plan.matrices) matrices_.push_back(packed_matrix(matrix));
  for (const PlanVector& vector : plan.vectors) vectors_.push_back(kernel_vector(plan, vector));
  for (const PlanPhase& phase : plan.phases) phases_.push_back(kernel_phase(phase));
  kernel_ = KernelPlan{.model = model_shape(plan),
                       .matrices = matrices_.data(),
                       .num_matrices = static_cast<int>(matrices_.size()),
                       .vectors = vectors_.data(),
                       .num_vectors = static_cast<int>(vectors_.size()),
                       .phases = phases_.data(),
                       .num_phases = static_cast<int>(phases_.size()),
                       .rows = plan.rows,
                       .sync = plan.sync,
                       .num_ctas = plan.num_ctas,
                       .num_cards = plan.num_cards,
                       .copies = plan.copies,
                       .consumer_warps = plan.consumer_warps,
                       .producer_warps = plan.producer_warps,
                       .ring_slots = plan.ring_slots,
                       .slot_bytes = slot_bytes(plan),
                       .window = plan.window,
                       .waiting_window = plan.waiting_window,
                       .prefetch_pages = plan.prefetch_pages,
                       .residual_tiles = most_residual_tiles(plan),
                       .num_norms = plan.num_norms,
                       .tile_slots = plan.rows == 1 ? plan.tile_slots : 0,
                       .chunk_columns = plan.chunk_columns,
                       .min_pages_per_split = plan.rows == 1 ? plan.min_pages_per_split : 0,
                       .max_splits = plan.max_splits,
                       .input_buffers = plan.input_buffers,
                       .max_query_tiles = plan.max_query_tiles,
                       .warp_dims = plan.warp_dims,
                       .shares_registers = plan.shares_registers,
                       .warpgroups = plan.warpgroups,
                       .squares = plan.squares,
                       .block = plan.block,
                       .block_squares = plan.block_squares};
  for (const PlanRegion& region : plan.workspace) {
    if (region.name == kPartialsRegion)
      kernel_.partials = {.offset = region.offset, .elements = static_cast<int>(region.bytes / 4)};
    if (region.name == kSumsRegion)
      kernel_.sums = {.offset = region.offset, .elements = static_cast<int>(region.bytes / 4)};
    if (region.name == kCountersRegion) {
      kernel_.counter_offset = region.offset;
      kernel_.counter_bytes = region.bytes;
    }
  }
  if (!plan.workspace.empty()) kernel_.workspace_bytes = plan.workspace_bytes();
  for (const PlanPhase& phase : plan.phases) {
    if (phase.kind == PhaseKind::kAttention) kernel_.kv_window = phase.window;
  }
  for (const PlanRegion& region : plan.shared) {
    if (kernel_.num_regions == kMaxRegions) break;
    kernel_.regions[kernel_.num_regions++] = {region.name.c_str(), static_cast<int>(region.offset),
                                              static_cast<int>(region.bytes)};
  }
  const std::vector<BarrierRule> rules = needed_barriers(kernel_);
  for (const PlanBarrier& barrier : plan.barriers) {
    if (kernel_.num_barriers == kMaxBarriers) break;
    const auto rule = std::find_if(rules.begin(), rules.end(),
                                   [&](const BarrierRule& each) { return barrier.name == each.name; });
    kernel_.barriers[kernel_.num_barriers++] = {barrier.name.c_str(), barrier.slots, barrier.arrivals,
                                                rule != rules.end() && by_warps(kernel_, rule->arrivers)};
  }
}

std::vector<RegionRule> needed_regions(const KernelPlan& kernel) {
  return kernel.rows == 1 ? as_vector(one_row::region_rules(kernel)) : as_vector(rows::region_rules(kernel));
}

std::vector<BarrierRule> needed_barriers(const KernelPlan& kernel) {
  return kernel.rows == 1 ? as_vector(one_row::barrier_rules(kernel))
                          : as_vector(rows::barrier_rules(kernel));
}

}  // namespace soliton
