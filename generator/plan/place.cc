// Where everything lies: packed weights, workspace, shared memory; and the barriers that go with it.
#include <fmt/format.h>

#include <algorithm>

#include "generator/plan/plan.h"
#include "generator/user_error.h"

namespace soliton {
namespace {

constexpr int kMaxRingSlots = 13;
constexpr int kMinRingSlots = 2;
constexpr int kWorkspaceAlignment = 256;
constexpr int kCounterLineBytes = 128;
constexpr int kCounterLines = 2;  // stall claim, grid counter; then one line per head block

int64_t align(int64_t value, int64_t alignment) {
  return (value + alignment - 1) / alignment * alignment;
}

/// Packed weights in the order of the step: all matrices of layer 0, of layer 1, ..., then those that stand
/// once.
void place_weights(Plan& plan) {
  int64_t layer_bytes = 0;
  for (PlanMatrix& matrix : plan.matrices) {
    if (matrix.copies == 1 && matrix.name == "lm_head") continue;
    matrix.offset = layer_bytes;
    layer_bytes += matrix.layer_bytes();
  }
  plan.weight_bytes = layer_bytes * plan.facts.num_layers;
  plan.needed_weight_bytes = 0;
  for (PlanMatrix& matrix : plan.matrices) {
    if (matrix.name == "lm_head") {
      matrix.offset = plan.weight_bytes;
      matrix.layer_stride = 0;
      plan.weight_bytes += matrix.layer_bytes();
    } else {
      matrix.layer_stride = layer_bytes;
    }
    plan.needed_weight_bytes += 2ll * matrix.rows * matrix.columns * matrix.copies;
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
  for (PlanVector& vector : plan.vectors) vector.offset = add(vector.name, align(vector.bytes(), 16));
  add("partials", 4ll * plan.rows * plan.partial_words() * plan.num_ctas);
  add("counters", static_cast<int64_t>(kCounterLineBytes) * (kCounterLines + plan.num_blocks()));
}

/// Shared memory in the order of templates/kernel.cuh, whose SharedMap asserts the same total.
void place_shared(Plan& plan) {
  plan.shared.clear();
  int64_t offset = 0;
  const auto add = [&](const std::string& name, int64_t bytes) {
    plan.shared.push_back({name, offset, bytes});
    offset += bytes;
  };
  int barriers = 0;
  for (const PlanBarrier& barrier : plan.barriers) barriers += barrier.slots;
  add("pages", static_cast<int64_t>(plan.ring_slots) * kPageBytes);
  add("x", plan.x_bytes());
  const bool one_row = plan.rows == 1;
  const int head_dim = plan.facts.head_dim;
  add("tiles", 4ll * plan.tile_slots * plan.consumer_warps * kTileRows * plan.rows);
  add("attention", one_row ? 4ll * plan.partial_words() : 0);
  add("residual", 4ll * plan.residual_tiles() * kTileRows * plan.rows);
  add("kept", 4ll * plan.attention_units() * (one_row ? 1 : kTailTokens) * head_dim);
  add("squares", 4ll * 2 * plan.consumer_warps * plan.rows);
  offset = align(offset, 16);
  add("query", one_row ? 4ll * (kHeadsPerBlock * (head_dim + 16) + 2 * head_dim) : 0);
  add("turns", 4ll * plan.rows * head_dim);
  add("mail", 8);
  offset = align(offset, 16);
  add("standings", 32ll * (plan.consumer_warps + 2));
  add("barriers", 8ll * barriers);
}

void make_barriers(Plan& plan) {
  const int consumers = plan.consumer_warps;
  plan.barriers = {
      {.name = "page_full", .slots = plan.ring_slots, .arrivals = 1, .arrivers = 1, .lead = plan.ring_slots},
      {.name = "page_empty",
       .slots = plan.ring_slots,
       .arrivals = consumers,
       .arrivers = consumers,
       .lead = plan.ring_slots},
      {.name = "tile_full",
       .slots = plan.tile_slots,
       .arrivals = consumers,
       .arrivers = consumers,
       .lead = plan.tile_slots},
      {.name = "tile_empty", .slots = plan.tile_slots, .arrivals = 1, .arrivers = 1, .lead = plan.tile_slots},
      // A warp that has its slice of the next input may report it before a slower warp has reported this one.
      {.name = "input_read", .slots = 2, .arrivals = consumers, .arrivers = consumers, .lead = 2},
      {.name = "input_taken", .slots = 2, .arrivals = 1, .arrivers = 1, .lead = 2},
      {.name = "query_full", .slots = 1, .arrivals = consumers, .arrivers = consumers, .lead = 1},
      {.name = "attention_full", .slots = 1, .arrivals = consumers + 1, .arrivers = consumers + 1, .lead = 1},
      {.name = "attention_empty", .slots = 1, .arrivals = consumers, .arrivers = consumers, .lead = 1},
      {.name = "token_ready", .slots = 1, .arrivals = 1, .arrivers = 1, .lead = 1},
      {.name = "step_read", .slots = 1, .arrivals = 1, .arrivers = 1, .lead = 1},
      {.name = "stopped", .slots = 1, .arrivals = 1, .arrivers = 1, .lead = 1},
      {.name = "ended", .slots = 1, .arrivals = consumers + 2, .arrivers = consumers + 2, .lead = 1}};
}

}  // namespace

int64_t Plan::shared_bytes() const {
  return shared.back().offset + shared.back().bytes;
}

int64_t Plan::workspace_bytes() const {
  return align(workspace.back().offset + workspace.back().bytes, kWorkspaceAlignment);
}

const PlanRegion& Plan::workspace_region(const std::string& name) const {
  return *std::find_if(workspace.begin(), workspace.end(),
                       [&](const PlanRegion& region) { return region.name == name; });
}

void place(Plan& plan, const PlanChoices& choices) {
  place_weights(plan);
  place_workspace(plan);
  plan.ring_slots = choices.ring_slots > 0 ? choices.ring_slots : kMaxRingSlots;
  for (;; --plan.ring_slots) {
    make_barriers(plan);
    place_shared(plan);
    if (plan.shared_bytes() <= plan.limits.max_shared_bytes_per_block || choices.ring_slots > 0) break;
    if (plan.ring_slots == kMinRingSlots) {
      throw UserError(ExitCode::kPlanRefused,
                      fmt::format("{}: {}: expected shared memory for at least {} pages, got {} bytes "
                                  "of which {} are needed",
                                  plan.model, plan.gpu, kMinRingSlots, plan.limits.max_shared_bytes_per_block,
                                  plan.shared_bytes()));
    }
  }
  plan.window = std::min(plan.window, plan.ring_slots);
}

}  // namespace soliton
