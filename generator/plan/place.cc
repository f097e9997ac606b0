// Where everything lies: packed weights, workspace, shared memory; and the barriers that go with it.
#include <fmt/format.h>

#include <algorithm>

#include "generator/plan/plan.h"
#include "layout/tree.h"
#include "models/error.h"

namespace soliton {
namespace {

constexpr int kMaxRingSlots = 13;
constexpr int kMinRingSlots = 2;
constexpr int kWorkspaceAlignment = 256;
constexpr int kHeldItems = 8;  // of the tree's plan, in shared memory
constexpr int kCounterLineBytes = 128;
constexpr int kCounterLines = 2;  // stall claim, grid counter; one row: then one line per head block

int64_t align(int64_t value, int64_t alignment) {
  return (value + alignment - 1) / alignment * alignment;
}

/// Bytes of a matrix without any padding: of integers also a scale for each row and group, 2 bytes, and if there
/// are zeros 4 bits each.
int64_t needed_bytes(const ModelFacts& facts, const PlanMatrix& matrix) {
  const int64_t weights = static_cast<int64_t>(matrix.rows) * matrix.columns;
  if (!matrix.format.is_quantized()) return 2 * weights;
  const int64_t groups = facts.weight_group > 0 ? ceil_divide(matrix.columns, facts.weight_group) : 1;
  return weights / 2 + matrix.rows * groups * 2 + (matrix.format.has_zeros ? matrix.rows * groups / 2 : 0);
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
    plan.needed_weight_bytes += needed_bytes(plan.facts, matrix) * matrix.copies;
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
  if (plan.rows == 1) add("partials", 4ll * plan.partial_words() * plan.num_ctas);
  const int lines = kCounterLines + (plan.rows == 1 ? plan.num_blocks() : 0);
  add("counters", static_cast<int64_t>(kCounterLineBytes) * lines);
}

/// Shared memory in the order of SharedMap in templates/, which asserts the same total.
void place_shared(Plan& plan) {
  plan.shared.clear();
  int64_t offset = 0;
  const auto add = [&](const std::string& name, int64_t bytes) {
    plan.shared.push_back({name, offset, bytes});
    offset += bytes;
  };
  int barriers = 0;
  for (const PlanBarrier& barrier : plan.barriers) barriers += barrier.slots;
  const int head_dim = plan.facts.head_dim;
  add("pages", static_cast<int64_t>(plan.ring_slots) * plan.slot_bytes());
  if (plan.rows == 1) {
    add("x", plan.x_bytes());
    add("tiles", 4ll * plan.tile_slots * plan.consumer_warps * kTileRows);
    add("attention", 4ll * plan.partial_words());
    add("residual", 4ll * plan.residual_tiles() * kTileRows);
    add("new_token", 4ll * plan.attention_units() * head_dim * kv_shape(plan.facts).parts);
    add("squares", 4ll * 2 * plan.consumer_warps);
    offset = align(offset, 16);
    add("query", 4ll * (kHeadsPerBlock + 2) * head_dim);
    add("rotations", plan.facts.head_norm != 0 ? 0 : 4ll * head_dim);
    add("decision", 8);
  } else {
    add("input", static_cast<int64_t>(plan.input_buffers) * plan.shape().chunk_bytes());
    add("tiles", plan.tile_bytes_shared());
    add("residual", 4ll * plan.residual_tiles() * kTileRows * plan.rows);
    add("factors", 4ll * plan.rows);
    add("held", (kHeldItems * static_cast<int64_t>(sizeof(TreeItem)) + 8 + 8ll * plan.rows + 15) / 16 * 16);
    add("decision", 4ll * plan.consumer_warps);
  }
  offset = align(offset, 16);
  add("status", 32ll * plan.working_warps());
  add("barriers", 8ll * barriers);
}

void make_rows_barriers(Plan& plan) {
  const int workers = plan.consumer_warps;
  const int finishing = plan.shape().finishing_workers();
  const auto ring = [](const char* name, int slots, int arrivals) {
    return PlanBarrier{
        .name = name, .slots = slots, .arrivals = arrivals, .arrivers = arrivals, .lead = slots};
  };
  plan.barriers = {ring("page_full", plan.ring_slots, 1),
                   ring("page_empty", plan.ring_slots, workers),
                   ring("input_full", plan.input_buffers, 1),
                   ring("input_empty", plan.input_buffers, workers),
                   ring("tiles_full", 1, workers),
                   ring("tiles_empty", 1, finishing),
                   ring("begun", 1, 1),
                   ring("phase_done", 1, workers),
                   ring("query_full", 2, 1),
                   ring("item_done", 2, workers),
                   ring("parts_full", 1, workers),
                   ring("step_known", 1, finishing),
                   ring("step_read", 1, 1),
                   ring("stopped", 1, 1),
                   ring("ended", 1, workers + 2)};
}

void make_barriers(Plan& plan) {
  if (plan.rows > 1) return make_rows_barriers(plan);
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
