// What a kernel is compiled for says what the verifier has judged: its numbers are the plan's, and those that follow from the
// plan are derived here once more.
#include <algorithm>
#include <cmath>
#include <numbers>

#include "generator/plan/verify_passes.h"

namespace soliton {
namespace {

/// Compares a number of the kernel with what the plan says.
class Comparison {
 public:
  explicit Comparison(Report& report) : report_(report) {}

  template <class T>
  void same(const std::string& what, T expected, T got) {
    if (expected == got) return;
    if constexpr (std::is_enum_v<T>) {
      refuse(what, static_cast<int>(expected), static_cast<int>(got));
    } else {
      refuse(what, expected, got);
    }
  }
  void same(const std::string& what, const std::string& expected, const char* got) {
    if (got == nullptr || expected != got) refuse(what, expected, got == nullptr ? "nothing" : got);
  }
  void same(const std::string& what, const WeightFormat& expected, const WeightFormat& got) {
    same(what + ": type", expected.type, got.type);
    same(what + ": group", expected.group, got.group);
    same(what + ": zeros", expected.has_zeros, got.has_zeros);
    same(what + ": minima", expected.has_minima, got.has_minima);
    same(what + ": columns of a block", expected.block, got.block);
  }
  void same(const std::string& what, const Vector& expected, const Vector& got) {
    same(what + ": offset", expected.offset, got.offset);
    same(what + ": elements", expected.elements, got.elements);
    same(what + ": signatures", expected.signatures, got.signatures);
    same(what + ": bytes to its second place", expected.to_second, got.to_second);
    same(what + ": kind of layer", expected.layer_kind, got.layer_kind);
  }

 private:
  template <class Expected, class Got>
  void refuse(const std::string& what, const Expected& expected, const Got& got) {
    report_.refuse(Rule::kKernelUnlike, "kernel: {}: expected {} as in the plan, got {}", what, expected,
                   got);
  }

  Report& report_;
};

void check_model(const Plan& plan, const ModelShape& model, Comparison& check) {
  const ModelFacts& facts = plan.facts;
  check.same("layers", facts.num_layers, model.num_layers);
  for (int layer = 0; layer <= std::min(facts.num_layers, model.num_layers); ++layer) {
    const Layer& expected = plan.layers[layer];
    const Layer& got = model.layers[layer];
    const std::string at = fmt::format("layer {}", layer);
    check.same(at + ": kind", expected.kind, got.kind);
    check.same(at + ": weights", expected.weights, got.weights);
    check.same(at + ": norms", expected.first_norm, got.first_norm);
    check.same(at + ": window", expected.window, got.window);
    check.same(at + ": chunk", expected.chunk, got.chunk);
    check.same(at + ": table of rotations", expected.rope, got.rope);
  }
  check.same("heads", facts.num_heads, model.num_heads);
  check.same("KV heads", facts.num_kv_heads, model.num_kv_heads);
  check.same("dims of a head", facts.head_dim, model.head_dim);
  check.same("parts of a key", facts.kv_bits == 32 ? 2 : 1, model.kv_parts);
  check.same("keys of bytes", facts.kv_bits == 8, model.kv_e4m3);
  check.same("hidden", facts.hidden, model.hidden);
  check.same("biases", facts.qkv_bias == 1 || facts.norm_bias == 1, model.qkv_bias);
  const int up_rows = facts.ungated == 1 ? facts.ffn : 2 * facts.ffn;
  check.same("biases of gate and up", facts.norm_bias == 1 || facts.ffn_bias == 1 ? up_rows : 0,
             model.up_biases);
  check.same("biases of down", facts.ffn_bias == 1, model.down_bias);
  check.same("biases of logits", facts.norm_bias == 1, model.logit_biases);
  check.same("biases of o", facts.o_bias == 1, model.o_bias);
  check.same("sinks", facts.sinks == 1, model.attention.sinks);
  check.same("soft cap", static_cast<float>(facts.attention_soft_cap), model.attention.soft_cap);
  check.same("ALiBi", static_cast<float>(facts.alibi), model.attention.alibi);
  check.same("norms", facts.norms, static_cast<int32_t>(model.norms));
  check.same("networks without a gate", facts.ungated == 1, model.ungated);
  check.same("offset of norms", facts.norm_offset == 1, model.norm_offset);
  check.same("scale of the embedding", static_cast<float>(facts.embedding_scale), model.embedding_scale);
  check.same("scale of blocks", static_cast<float>(facts.residual_scale), model.residual_scale);
  check.same("scale of logits", static_cast<float>(facts.logit_scale), model.logit_scale);
  check.same("soft cap of logits", static_cast<float>(facts.logit_soft_cap), model.logit_soft_cap);
  const bool has_two_tables = facts.rope_local_theta != 0 || facts.query_scale_beta != 0;
  check.same("tables of rotations", has_two_tables ? 2 : 1, model.rope_tables);
  check.same("table of queries", facts.query_scale_beta != 0 ? 1 : 0, model.query_table);
  check.same("weights of heads' norms behind rotation", facts.head_norm_last == 1, model.head_norm_last);
  check.same("normed heads", facts.head_norm == 1, model.head_norm);
  check.same("heads normed together", facts.joint_norm == 1, model.joint_norm);
  check.same("ordered columns", facts.weight_order == 1, model.ordered);
  check.same("epsilon of norms", static_cast<float>(facts.norm_epsilon), model.norm_epsilon);
  const bool is_mixed =
      std::any_of(plan.layers.begin(), std::prev(plan.layers.end()), [&](const Layer& layer) {
        return ffn_of_layer(facts, static_cast<int>(&layer - plan.layers.data())) == kMixture;
      });
  check.same("experts", is_mixed ? facts.num_experts : 0, model.mixture.experts);
  check.same("chosen experts", is_mixed ? facts.experts_per_token : 0, model.mixture.chosen);
  check.same("ffn of an expert", is_mixed ? expert_width(facts) : 0, model.mixture.ffn);
  check.same("renormalised", is_mixed && facts.renormalised == 1, model.mixture.renormalised);
  check.same("shared experts", is_mixed ? facts.shared_experts : 0, model.mixture.shared);
  check.same("gate of shared experts", is_mixed && facts.shared_gate == 1, model.mixture.shared_gate);
  check.same("scores of routers", is_mixed ? facts.router_scores : 0,
             static_cast<int32_t>(model.mixture.scores));
  check.same("biases of routers", is_mixed && facts.router_bias == 1, model.mixture.biased);
  check.same("biases of experts", is_mixed && facts.expert_bias == 1, model.mixture.expert_bias);
  check.same("scale of routers", is_mixed ? static_cast<float>(facts.router_scale) : 1.0f,
             model.router_scale);
  check.same("activation", facts.activation, static_cast<int32_t>(model.activation));
  const double scale =
      facts.attention_scale != 0 ? facts.attention_scale : 1 / std::sqrt(static_cast<double>(facts.head_dim));
  check.same("scale of scores", static_cast<float>(std::numbers::log2e * scale), model.score_scale);
  const auto integers = std::find_if(plan.matrices.begin(), plan.matrices.end(),
                                     [](const PlanMatrix& each) { return each.format.has_scales(); });
  const WeightFormat first = integers == plan.matrices.end() ? WeightFormat{} : integers->format;
  check.same("integers", first, model.integers);
  const auto further = std::find_if(plan.matrices.begin(), plan.matrices.end(), [&](const PlanMatrix& each) {
    return each.format != WeightFormat{} && each.format != first;
  });
  check.same("further format", further == plan.matrices.end() ? WeightFormat{} : further->format,
             model.further);
}

/// Of a ring slot: as many as the largest page of weights, or half of one of the cache, takes. Each of two warpgroups has a slot
/// of its own, of some columns of its tiles, which in bf16 are a page's at most.
int slot_bytes(const Plan& plan) {
  int bytes = kPageBytes;
  for (const PlanMatrix& matrix : plan.matrices) {
    int columns = matrix.format.page_columns();
    int tiles = 1;
    if (plan.warpgroups) {
      if (matrix.format == WeightFormat{}) continue;
      columns = matrix.format.has_scales() ? integer_slot_columns(plan, matrix.format) : kCodeSlotColumns;
      tiles = plan.shape().tiles_at_once() / 2;
    }
    bytes =
        std::max(bytes, tiles * (matrix.format.value_bytes(columns) + matrix.format.scale_bytes(columns)));
  }
  return bytes;
}

int most_residual_tiles(const Plan& plan) {
  int most = 0;
  for (const PlanPhase& phase : plan.phases) {
    if (phase.kind != PhaseKind::kMatrix || phase.output != OutputKind::kResidual) continue;
    for (const TileRun& run : phase.runs) most = std::max(most, run.count);
  }
  return most;
}

void check_counts(const Plan& plan, const KernelPlan& kernel, Comparison& check) {
  const bool one_row = plan.rows == 1;
  check.same("rows", plan.rows, kernel.rows);
  check.same("sync", plan.sync, kernel.sync);
  check.same("CTAs", plan.num_ctas, kernel.num_ctas);
  check.same("cards", plan.num_cards, kernel.num_cards);
  check.same("copies", plan.copies, kernel.copies);
  check.same("consumer warps", plan.consumer_warps, kernel.consumer_warps);
  check.same("producer warps", plan.producer_warps, kernel.producer_warps);
  check.same("ring slots", plan.ring_slots, kernel.ring_slots);
  check.same("bytes of a slot", slot_bytes(plan), kernel.slot_bytes);
  check.same("window", plan.window, kernel.window);
  check.same("window of a CTA that waits", plan.waiting_window, kernel.waiting_window);
  for (const PlanPhase& phase : plan.phases) {
    if (phase.kind == PhaseKind::kAttention)
      check.same("window of the cache", phase.window, kernel.kv_window);
  }
  check.same("pages prefetched", plan.prefetch_pages, kernel.prefetch_pages);
  check.same("tiles of the residual stream", most_residual_tiles(plan), kernel.residual_tiles);
  check.same("tile slots", one_row ? plan.tile_slots : 0, kernel.tile_slots);
  check.same("chunk columns", plan.chunk_columns, kernel.chunk_columns);
  check.same("pages of a split", one_row ? plan.min_pages_per_split : 0, kernel.min_pages_per_split);
  check.same("splits", plan.max_splits, kernel.max_splits);
  check.same("chunks of activations", plan.input_buffers, kernel.input_buffers);
  check.same("query tiles", plan.max_query_tiles, kernel.max_query_tiles);
  check.same("dims of a warp", plan.warp_dims, kernel.warp_dims);
  check.same("shared registers", plan.shares_registers, kernel.shares_registers);
  check.same("warpgroups", plan.warpgroups, kernel.warpgroups);
  check.same("norms", plan.num_norms, kernel.num_norms);
}

void check_matrices(const Plan& plan, const KernelPlan& kernel, Comparison& check) {
  check.same("matrices", static_cast<int>(plan.matrices.size()), kernel.num_matrices);
  for (int i = 0; i < std::min<int>(kernel.num_matrices, std::ssize(plan.matrices)); ++i) {
    const PlanMatrix& expected = plan.matrices[i];
    const PackedMatrix& got = kernel.matrices[i];
    const std::string at = "matrix " + expected.name;
    check.same(at, expected.name, got.name);
    check.same(at + ": offset", expected.offset, got.offset);
    check.same(at + ": kind of layer", expected.layer_kind, got.layer_kind);
    check.same(at + ": rows", expected.rows, got.rows);
    check.same(at + ": columns", expected.columns, got.columns);
    check.same(at + ": columns with padding", expected.padded, got.padded_columns);
    check.same(at, expected.format, got.format);
    check.same(at + ": tiles", expected.num_tiles, got.num_tiles);
    check.same(at + ": order of rows", expected.row_order, got.row_order);
    check.same(at + ": axis of experts", expected.experts.axis, got.experts.axis);
    check.same(at + ": experts", expected.experts.count, got.experts.count);
    check.same(at + ": chosen experts", expected.experts.chosen, got.experts.chosen);
  }
}

/// Words of the kernel's vectors are of 4 bytes, whatever the plan counts.
int words(int64_t bytes) {
  return static_cast<int>(bytes / 4);
}

Vector vector_of(const std::vector<PlanRegion>& regions, const char* name) {
  const auto region =
      std::find_if(regions.begin(), regions.end(), [&](const PlanRegion& each) { return each.name == name; });
  if (region == regions.end()) return {};
  return {.offset = region->offset, .elements = words(region->bytes)};
}

void check_workspace(const Plan& plan, const KernelPlan& kernel, Comparison& check) {
  check.same("vectors", static_cast<int>(plan.vectors.size()), kernel.num_vectors);
  for (int i = 0; i < std::min<int>(kernel.num_vectors, std::ssize(plan.vectors)); ++i) {
    const PlanVector& vector = plan.vectors[i];
    const std::set<int> kinds = writing_kinds(plan, i);
    const bool is_of_one = plan.once() > 1 && kinds.size() == 1 && *kinds.begin() < plan.once();
    const Vector expected = {.offset = vector.offset,
                             .elements = words(static_cast<int64_t>(vector.elements) * vector.element_bytes),
                             .signatures = vector.signatures,
                             .to_second = vector.places == 1 ? 0 : vector.place_bytes(),
                             .layer_kind = is_of_one ? *kinds.begin() : -1};
    check.same(vector.name, expected, kernel.vectors[i]);
  }
  check.same("squares", plan.squares, kernel.squares);
  check.same("block", plan.block, kernel.block);
  check.same("squares of blocks", plan.block_squares, kernel.block_squares);
  check.same("partials", vector_of(plan.workspace, kPartialsRegion), kernel.partials);
  check.same("sums", vector_of(plan.workspace, kSumsRegion), kernel.sums);
  const PlanRegion& counters = plan.workspace_region(kCountersRegion);
  check.same("counters: offset", counters.offset, kernel.counter_offset);
  check.same("counters: bytes", counters.bytes, kernel.counter_bytes);
  check.same("bytes of the workspace", plan.workspace_bytes(), kernel.workspace_bytes);
}

void check_phases(const Plan& plan, const KernelPlan& kernel, Comparison& check) {
  check.same("phases", static_cast<int>(plan.phases.size()), kernel.num_phases);
  for (int i = 0; i < std::min<int>(kernel.num_phases, std::ssize(plan.phases)); ++i) {
    const PlanPhase& expected = plan.phases[i];
    const Phase& got = kernel.phases[i];
    const auto same = [&](const char* what, auto a, auto b) {
      check.same(expected.name + ": " + what, a, b);
    };
    check.same("phase", expected.name, got.name);
    same("kind", expected.kind, got.kind);
    same("matrix", expected.matrix, got.matrix);
    same("reads", expected.reads, got.reads);
    same("writes", expected.writes, got.writes);
    same("routes", expected.routes, got.routes);
    same("input", expected.input, got.input);
    same("output", expected.output, got.output);
    same("norm", expected.norm, got.norm);
    same("first CTA", expected.first_cta, got.first_cta);
    same("kind of layer", expected.layer_kind, got.layer_kind);
    same("appends", expected.appends, got.appends);
    same("column slices", expected.column_slices, got.column_slices);
  }
}

void check_shared(const Plan& plan, const KernelPlan& kernel, Comparison& check) {
  check.same("pieces of shared memory", static_cast<int>(plan.shared.size()), kernel.num_regions);
  for (int i = 0; i < std::min<int>(kernel.num_regions, std::ssize(plan.shared)); ++i) {
    const PlanRegion& expected = plan.shared[i];
    check.same("shared memory", expected.name, kernel.regions[i].name);
    check.same(expected.name + ": offset", expected.offset, int64_t{kernel.regions[i].offset});
    check.same(expected.name + ": bytes", expected.bytes, int64_t{kernel.regions[i].bytes});
  }
  check.same("barriers", static_cast<int>(plan.barriers.size()), kernel.num_barriers);
  const std::vector<BarrierRule> rules = needed_barriers(*PlannedKernel(plan));
  for (int i = 0; i < std::min<int>(kernel.num_barriers, std::ssize(plan.barriers)); ++i) {
    const PlanBarrier& expected = plan.barriers[i];
    check.same("barrier", expected.name, kernel.barriers[i].name);
    check.same(expected.name + ": slots", expected.slots, kernel.barriers[i].slots);
    check.same(expected.name + ": arrivals", expected.arrivals, kernel.barriers[i].arrivals);
    check.same(expected.name + ": by warps", by_warps(kernel, rules[i].arrivers),
               kernel.barriers[i].by_warps);
  }
}

}  // namespace

void check_kernel(const Plan& plan, const KernelPlan& kernel, Report& report) {
  Comparison check(report);
  check_model(plan, kernel.model, check);
  check_counts(plan, kernel, check);
  check_matrices(plan, kernel, check);
  check_workspace(plan, kernel, check);
  check_phases(plan, kernel, check);
  check_shared(plan, kernel, check);
}

}  // namespace soliton
