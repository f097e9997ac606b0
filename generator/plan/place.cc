// Where everything lies: packed weights, workspace, shared memory; and the barriers that go with it.
#include <fmt/format.h>

#include <algorithm>

#include "generator/plan/kernel_plan.h"
#include "models/error.h"
#include "models/kv_pages.h"
#include "models/model_tables.h"

namespace soliton {
namespace {

constexpr int kMaxRingSlots = 13;
constexpr int kMinRingSlots = 2;
constexpr int kWorkspaceAlignment = 256;
constexpr int kCounterLineBytes = 128;
// Stall claim, grid counter; one row: then one line per head block; several: then one of a mixture's router
constexpr int kCounterLines = 2;

int64_t align(int64_t value, int64_t alignment) {
  return (value + alignment - 1) / alignment * alignment;
}

/// Bytes of a matrix without any padding: of those with scales also 2 bytes for each row and group, and if
/// there are zeros as many bits as weights have.
int64_t needed_bytes(const ModelFacts& facts, const PlanMatrix& matrix) {
  const auto needed = [&](int all, ExpertAxis axis) {  // without what experts are widened by
    const bool is_widened = matrix.experts.axis == axis && expert_width(facts) > facts.expert_ffn;
    return is_widened ? all / expert_width(facts) * facts.expert_ffn : all;
  };
  const int rows = needed(std::min(matrix.rows, matrix.card_tiles * kTileRows), ExpertAxis::kRows);
  const int columns = needed(matrix.columns, ExpertAxis::kColumns);
  const int64_t weights = static_cast<int64_t>(rows) * columns;
  const int bits = matrix.format.bits();
  if (matrix.format.type == WeightType::kE2m1)
    return int64_t{rows} * matrix.format.value_bytes(round_up(columns, kColumnBlock)) / kTileRows;
  if (!matrix.format.has_scales()) return weights * bits / 8;
  const bool is_further = bits == facts.further_bits && bits != facts.weight_bits;
  const int group = is_further ? facts.further_group : facts.weight_group;
  const int64_t groups = group > 0 ? ceil_divide(columns, group) : 1;
  if (matrix.format.has_float_scales())
    return weights + int64_t{rows} * ceil_divide(columns, matrix.format.group) * int64_t{sizeof(float)};
  if (matrix.format.block > 0 || matrix.format.has_minima)
    return weights * bits / 8 + int64_t{rows} * matrix.format.scale_bytes(round_up(columns, 256)) / kTileRows;
  return weights * bits / 8 + rows * groups * 2 + (matrix.format.has_zeros ? rows * groups * bits / 8 : 0);
}

/// Packed weights in the order of the step: all matrices of layer 0, of layer 1, ..., then those that stand
/// once.
void place_weights(Plan& plan) {
  plan.weight_bytes = 0;
  plan.needed_weight_bytes = 0;
  for (Layer& layer : plan.layers) {
    layer.weights = plan.weight_bytes;
    for (PlanMatrix& matrix : plan.matrices) {
      if (matrix.layer_kind != layer.kind) continue;
      matrix.offset = plan.weight_bytes - layer.weights;
      plan.weight_bytes += matrix.layer_bytes();
      plan.needed_weight_bytes += needed_bytes(plan.facts, matrix);
    }
  }
}

void place_workspace(Plan& plan) {
  plan.workspace.clear();
  int64_t offset = 0;
  const auto add = [&](const std::string& name, int64_t bytes) {
    plan.workspace.push_back({name, offset, bytes});
    offset += align(bytes, kWorkspaceAlignment);
    return plan.workspace.back().offset;
  };
  for (PlanVector& vector : plan.vectors)
    vector.offset = add(vector.name, vector.places * vector.place_bytes());
  const PlannedKernel kernel(plan);
  if (plan.rows == 1) add(kPartialsRegion, 4ll * kernel->partial_words() * plan.num_ctas);
  if (plan.warpgroups) add(kSumsRegion, sums_bytes(plan));
  const int lines = kCounterLines + (plan.rows == 1               ? kernel->card_blocks()
                                     : plan.facts.num_experts > 0 ? 1
                                                                  : 0);
  add(kCountersRegion, static_cast<int64_t>(kCounterLineBytes) * lines);
}

/// Barriers and shared memory as layout/ says that the kernel needs them.
void place_shared(Plan& plan) {
  plan.barriers.clear();
  plan.shared.clear();
  const PlannedKernel kernel(plan);
  for (const BarrierRule& rule : needed_barriers(*kernel)) {
    const int arrivals = count_arrivals(*kernel, rule.arrivers);
    plan.barriers.push_back({.name = rule.name,
                             .slots = rule.slots,
                             .arrivals = arrivals,
                             .arrivers = arrivals,
                             .lead = rule.lead});
  }
  int64_t offset = 0;
  for (const RegionRule& rule : needed_regions(*kernel)) {
    offset = align(offset, rule.alignment);
    plan.shared.push_back({rule.name, offset, rule.bytes});
    offset += rule.bytes;
  }
}

/// Warpgroups take slots in turn, and always meet the same ones.
int ring_step(const Plan& plan) {
  return plan.warpgroups ? kWarpgroups : 1;
}

/// Pages that the ring holds at least: of several rows an item's keys and values of a page are there at once.
int least_ring_slots(const Plan& plan) {
  const int of_attention = 2 * kv_shape(plan.facts).slots_per_half();
  return plan.rows == 1 ? kMinRingSlots : round_up(std::max(kMinRingSlots, of_attention), ring_step(plan));
}

/// Shared memory with the longest ring that it has room for, or with the shortest; false if that does not fit.
bool fit_ring(Plan& plan) {
  const int least = least_ring_slots(plan);
  plan.ring_slots = std::max(kMaxRingSlots / ring_step(plan) * ring_step(plan), least);
  for (;; plan.ring_slots -= ring_step(plan)) {
    place_shared(plan);
    if (plan.shared_bytes() <= plan.limits.max_shared_bytes_per_block) return true;
    if (plan.ring_slots == least) return false;
  }
}

[[noreturn]] void refuse_memory(const Plan& plan) {
  throw Error(
      ExitCode::kMismatch,
      fmt::format("{}: {}: {} row{} a step: expected shared memory for at least {} pages, got {} bytes "
                  "of which {} are needed",
                  plan.model, plan.gpu, plan.rows, plan.rows == 1 ? "" : "s", least_ring_slots(plan),
                  plan.limits.max_shared_bytes_per_block, plan.shared_bytes()));
}

/// Of attention as many bytes are in flight as of the other phases, though its pages may be smaller; of one row as many as
/// of a window that does not know who waits: with the other one the 3B took 18 us a token longer at 6144 tokens.
void set_windows(Plan& plan) {
  const KvShape kv = kv_shape(plan.facts);
  const int pages = plan.rows == 1 ? std::min(plan.window, plan.limits.default_window) : plan.window;
  const int kv_window = pages * kPageBytes / (kv.half_bytes() / kv.slots_per_half());
  for (PlanPhase& phase : plan.phases) {
    if (phase.kind == PhaseKind::kMatrix) phase.window = plan.window;
    if (phase.kind == PhaseKind::kAttention) phase.window = std::min(kv_window, plan.ring_slots);
  }
}

}  // namespace

int64_t Plan::shared_bytes() const {
  return shared.back().offset + shared.back().bytes;
}

int64_t Plan::workspace_bytes() const {
  return align(workspace.back().offset + workspace.back().bytes, kWorkspaceAlignment);
}

int64_t device_bytes(const Plan& plan, int64_t context) {
  return plan.weight_bytes + model_tables(plan.facts).bytes() + plan.workspace_bytes() +
         pool_bytes(plan.facts, PlannedKernel(plan)->card_kv(), pages_of_sequence(plan.facts, context)) +
         context * rotary_token_bytes(plan.facts);
}

int64_t context_token_bytes(const Plan& plan) {
  const KvShape kv = PlannedKernel(plan)->card_kv();
  return kv.of_layers(kv.num_layers - num_window_layers(plan.facts)).token_bytes() +
         rotary_token_bytes(plan.facts);
}

const PlanRegion& Plan::workspace_region(const std::string& name) const {
  return *std::find_if(workspace.begin(), workspace.end(),
                       [&](const PlanRegion& region) { return region.name == name; });
}

void place(Plan& plan, const PlanChoices& choices) {
  place_weights(plan);
  place_workspace(plan);
  if (choices.ring_slots > 0) {
    if (choices.ring_slots % ring_step(plan) != 0) {
      throw Error(ExitCode::kMismatch,
                  fmt::format("--ring-slots: expected a multiple of {} where warpgroups multiply, got {}",
                              ring_step(plan), choices.ring_slots));
    }
    plan.ring_slots = choices.ring_slots;
    place_shared(plan);
  } else {
    while (!fit_ring(plan)) {
      if (!shrink_input(plan)) refuse_memory(plan);
    }
  }
  if (plan.producer_warps > plan.ring_slots) {  // each has a slot of its own to wait for
    plan.producer_warps = plan.ring_slots;
    place_shared(plan);
  }
  plan.window = std::min(plan.window, plan.ring_slots);
  plan.waiting_window = std::min(plan.waiting_window, plan.window);
  set_windows(plan);
}

}  // namespace soliton
