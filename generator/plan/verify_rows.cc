// Plans of several rows, beside what all plans obey: their vectors, the order of their phases, and which norm
// goes where. Phases are separated by the grid counter, so nothing is cleared, and what a phase reads must
// only have been written in the phase before. Derived from templates/rows/.
#include <algorithm>
#include <set>

#include "generator/plan/verify_passes.h"

namespace soliton {
namespace {

constexpr int kMinColumns = 4 * kColumnBlock;  // of a chunk of activations
constexpr int kMostQueryParts = 255;           // a byte says how many of an item there are

struct Reading {
  const PlanPhase& phase;
  const PlanPhase& before;  // in the step; of the first phase of all: the last of a layer
};

/// Where norms follow blocks, a phase of its own stands behind each that ends one, and nowhere else.
void check_norm_block(const Plan& plan, const Reading& at, Report& report) {
  const auto [phase, before] = at;
  const bool norms = phase.kind == PhaseKind::kNormBlock;
  const bool ends = before.kind == PhaseKind::kMatrix && before.output == OutputKind::kResidual;
  if (norms == (ends && holds_blocks(norm_placement(plan.facts)))) return;
  report.refuse(Rule::kStepShape, "{}: expected {} behind {}", phase.name,
                norms ? "to norm what a block gives where the model does, and not"
                      : "a phase that norms what the block gives and not this one",
                before.name);
}

/// Every phase reads what the one before wrote; behind a router, which adds nothing to it, what that has read, see
/// check_experts(). Where heads are normed, that happens between qkv and attention, which then
/// reads q and k of that phase, and v of the one before it. The first layer reads what the embedding wrote, which stands for
/// down.
void check_reads(const Plan& plan, const Reading& at, Report& report) {
  const auto [phase, before] = at;
  const bool norms = phase.kind == PhaseKind::kNormHeads;
  const bool rotated = before.kind == PhaseKind::kMatrix && before.output == OutputKind::kRotary;
  if (norms != (rotated && plan.facts.head_norm != 0)) {
    report.refuse(Rule::kStepShape, "{}: expected {} behind {}", phase.name,
                  norms ? "to norm heads behind q, k and v, where the model does, and not"
                        : "a phase that norms the heads and not this one",
                  before.name);
    return;
  }
  if (phase.reads < 0) {
    report.refuse(Rule::kReadWithoutWait, "{}: expected to read what it waits for, got nothing", phase.name);
  } else if (const int behind =
                 phase.routes >= 0 && before.kind == PhaseKind::kMatrix ? before.reads : before.writes;
             behind != phase.reads) {
    report.refuse(Rule::kWaitTooEarly, "{}: reads {}, expected the phase before to write it, got {} of {}",
                  phase.name, vector_name(plan, phase.reads), vector_name(plan, behind), before.name);
  }
  if (phase.waits_for != phase.reads) {
    report.refuse(Rule::kReadWithoutWait, "{}: reads {}, expected a wait for it, got a wait for {}",
                  phase.name, vector_name(plan, phase.reads), vector_name(plan, phase.waits_for));
  }
  if (phase.writes >= 0 && phase.writes == phase.reads) {
    report.refuse(Rule::kReadWritten, "{}: expected to write another vector than it reads, got {} for both",
                  phase.name, vector_name(plan, phase.writes));
  }
}

void check_bytes(const Plan& plan, int vector, int64_t expected, Report& report) {
  if (vector < 0 || plan.vectors[vector].bytes() == expected) return;
  report.refuse(Rule::kVectorShape, "{}: expected {} bytes, got {}", plan.vectors[vector].name, expected,
                plan.vectors[vector].bytes());
}

/// An activation vector: of every part and row all columns, padded as those who read it want them.
int64_t activation_bytes(const Plan& plan, int vector, int columns) {
  const int parts = plan.shape().parts;
  int padded = round_up(columns, kMinColumns);
  for (const PlanPhase& phase : plan.phases) {
    if (phase.kind == PhaseKind::kMatrix && phase.reads == vector)
      padded = std::max(padded, plan.matrices[phase.matrix].padded);
  }
  return 2ll * parts * plan.rows * padded;
}

/// Elements between gate and down: of a mixture those of as many experts as a row goes through.
int gated_elements(const Plan& plan, const PlanPhase& phase) {
  const int ffn = ffn_of(plan, phase);
  return ffn == kMixture ? used_experts(plan.facts) * expert_width(plan.facts) : ffn;
}

/// Bytes of a dim of a step's own key or value: those of a cache of bytes are f16 until they are appended.
int64_t new_token_bytes(const ModelFacts& facts) {
  return facts.kv_bits == 8 ? 2 : facts.kv_bits / 8;
}

/// Query heads of a tile: of two parts half as many as it has rows, unless those of a KV head are too many.
int tile_queries(const Plan& plan) {
  const int group = plan.facts.num_heads / plan.facts.num_kv_heads;
  const bool stacks = plan.shape().parts == 2 && plan.rows * group <= kMostStackedQueries;
  return stacks ? kQueryRows / 2 : kQueryRows;
}

/// q, k and v of all rows, as attention reads them: of a card's heads.
int64_t qkv_bytes(const Plan& plan) {
  const ModelFacts& facts = plan.facts;
  const int parts = plan.shape().parts;
  const int group = facts.num_heads / facts.num_kv_heads;
  const int64_t queries = 2ll * parts * round_up(plan.rows * group, tile_queries(plan)) * facts.head_dim;
  const int64_t tail = 2ll * new_token_bytes(facts) * round_up(plan.rows, kTailTokens) * facts.head_dim;
  return ceil_divide(facts.num_kv_heads, plan.num_cards) * (queries + tail);
}

/// q and k of all rows as floats; if they are normed whole, with a sum of squares of each tile.
int64_t unnormed_bytes(const Plan& plan) {
  const int64_t dims = int64_t{plan.facts.num_heads + plan.facts.num_kv_heads} * plan.facts.head_dim;
  return 4 * plan.rows * (dims + (plan.facts.joint_norm != 0 ? dims / kTileRows : 0));
}

/// What the CTAs of a card have of a block's output, each as much as the one that has most tiles, as floats.
int64_t block_bytes(const Plan& plan) {
  const int tiles = ceil_divide(plan.facts.hidden / kTileRows, plan.block_ctas());
  return 4ll * plan.block_rows() * plan.num_ctas * tiles * kTileRows;
}

/// Where rows are grouped by experts: what they exchange with groups, of which each has up to 256 pairs of a row and an expert,
/// and lines up to a multiple of 32, or of more than 128 pairs of 64. Lines have whole slots of 128 columns. A choice is a
/// number, a weight and a line.
struct GroupedBytes {
  int64_t choices;
  int64_t lines;  // activations and a factor
  int64_t gated;
  int64_t outputs;
};
GroupedBytes grouped_bytes(const Plan& plan) {
  const ModelFacts& facts = plan.facts;
  const int64_t pairs = static_cast<int64_t>(plan.rows) * used_experts(facts);
  const int64_t groups = stored_experts(facts) + pairs / 256;
  const int64_t lines = (pairs + 31 * groups + 32 * std::min(pairs / 129, groups) + 31) / 32 * 32;
  return {.choices = 12 * pairs,
          .lines = lines * (2 * round_up(facts.hidden, 128) + 4),
          .gated = 2 * lines * expert_width(facts),
          .outputs = 4 * lines * facts.hidden};
}

/// What down puts out of every pair of a row and an expert.
int64_t pair_sums_bytes(const Plan& plan) {
  return 4ll * plan.rows * used_experts(plan.facts) * plan.facts.hidden;
}

/// The vector that a phase writes is its own: what the phase behind it reads, see check_reads(); or, of the last one, that of
/// the candidates.
void check_writer(const Plan& plan, const PlanPhase& phase, Report& report) {
  const auto writes_the_same = [&](const PlanPhase& other) {
    return &other != &phase && other.layer_kind == phase.layer_kind && other.writes == phase.writes;
  };
  const auto other = std::find_if(plan.phases.begin(), plan.phases.end(), writes_the_same);
  const bool ends_block = phase.kind == PhaseKind::kMatrix && phase.output == OutputKind::kResidual;
  if (plan.block >= 0 && (phase.writes == plan.block) != ends_block) {
    report.refuse(Rule::kVectorShape, "{}: expected {} to be written by phases that end blocks, got {}",
                  phase.name, vector_name(plan, plan.block), vector_name(plan, phase.writes));
  }
  if (plan.block >= 0 && phase.writes == plan.block && ends_block) return;
  const bool is_squares = phase.writes == plan.squares || phase.writes == plan.block_squares;
  if (phase.writes >= 0 && !is_squares && other == plan.phases.end()) return;
  report.refuse(Rule::kVectorShape, "{}: expected to write a vector of its own, got {}{}", phase.name,
                vector_name(plan, phase.writes),
                other == plan.phases.end() ? "" : fmt::format(", which {} writes", other->name));
}

void check_outputs(const Plan& plan, const PlanPhase& phase, Report& report) {
  const ModelFacts& facts = plan.facts;
  const int heads = facts.num_heads * facts.head_dim;
  check_writer(plan, phase, report);
  if (phase.kind == PhaseKind::kAttention)
    check_bytes(plan, phase.writes, activation_bytes(plan, phase.writes, heads), report);
  if (phase.kind == PhaseKind::kNormHeads) check_bytes(plan, phase.writes, qkv_bytes(plan), report);
  const GroupedBytes grouped = grouped_bytes(plan);
  if (phase.kind == PhaseKind::kChoose) check_bytes(plan, phase.writes, grouped.choices, report);
  if (phase.kind == PhaseKind::kGroup) check_bytes(plan, phase.writes, grouped.lines, report);
  if (phase.kind == PhaseKind::kUngroup) {
    check_bytes(plan, phase.reads, plan.warpgroups ? grouped.outputs : pair_sums_bytes(plan), report);
    check_bytes(plan, phase.writes, activation_bytes(plan, phase.writes, facts.hidden), report);
  }
  if (phase.kind == PhaseKind::kNormBlock)
    check_bytes(plan, phase.writes, activation_bytes(plan, phase.writes, facts.hidden), report);
  if (phase.kind != PhaseKind::kMatrix) return;
  if (plan.warpgroups && plan.matrices[phase.matrix].experts.axis != ExpertAxis::kNone) {
    const bool gates = phase.output == OutputKind::kSwiglu;
    return check_bytes(plan, phase.writes, gates ? grouped.gated : grouped.outputs, report);
  }
  const bool adds_pairs = can_pair(facts, plan.limits, plan.rows);  // which checks the bytes
  switch (phase.output) {
    case OutputKind::kRotary:
      check_bytes(plan, phase.writes, facts.head_norm != 0 ? unnormed_bytes(plan) : qkv_bytes(plan), report);
      break;
    case OutputKind::kResidual:
      if (adds_pairs && plan.matrices[phase.matrix].experts.axis != ExpertAxis::kNone) break;
      check_bytes(plan, phase.writes,
                  plan.block >= 0 ? block_bytes(plan) : activation_bytes(plan, phase.writes, facts.hidden),
                  report);
      break;
    case OutputKind::kSwiglu:
      check_bytes(plan, phase.writes, activation_bytes(plan, phase.writes, gated_elements(plan, phase)),
                  report);
      break;
    case OutputKind::kLogits:
      check_bytes(plan, phase.writes, 8ll * (static_cast<int64_t>(plan.rows) * plan.block_ctas() + 1),
                  report);
      break;
    case OutputKind::kRouter:
      check_bytes(
          plan, phase.writes,
          4ll * plan.rows * round_up(router_rows(facts), 4) * (plan.warpgroups ? 1 : phase.column_slices),
          report);
      break;
  }
}

void check_rows_matrix(const Plan& plan, const PlanPhase& phase, Report& report) {
  const ModelFacts& facts = plan.facts;
  const PlanMatrix& matrix = plan.matrices[phase.matrix];
  const int heads = facts.num_heads * facts.head_dim;
  const int ffn = gated_elements(plan, phase);
  const struct {
    int rows;
    int columns;
    RowOrder order;
  } shapes[] = {{heads + 2 * facts.num_kv_heads * facts.head_dim, facts.hidden, RowOrder::kRotary},
                {facts.hidden, phase.appends ? heads : ffn, RowOrder::kPlain},
                {facts.ungated == 1 ? ffn : 2 * ffn, facts.hidden,
                 facts.ungated == 1 ? RowOrder::kPlain : RowOrder::kGateUp},
                {facts.vocabulary, facts.hidden, RowOrder::kPlain},
                {router_rows(facts), facts.hidden, RowOrder::kPlain}};
  const auto& shape = shapes[static_cast<int>(phase.output)];
  const int num_tiles = ceil_divide(shape.rows, kTileRows);
  if (matrix.rows != shape.rows || matrix.row_order != shape.order || matrix.num_tiles != num_tiles ||
      matrix.card_tiles != ceil_divide(num_tiles, plan.num_cards)) {
    report.refuse(Rule::kMatrixShape,
                  "matrix {}: expected {} rows in {} tiles, {} of a card, got {} in {}, {}", matrix.name,
                  shape.rows, num_tiles, ceil_divide(num_tiles, plan.num_cards), matrix.rows,
                  matrix.num_tiles, matrix.card_tiles);
  }
  // For as many warps as a kernel of one row has consumers: 4, 8 or 16.
  const bool is_joined = matrix.experts.axis == ExpertAxis::kColumns && matrix.format.has_scales();
  const int unit =
      is_joined ? matrix.format.page_columns() : std::max(matrix.format.least_columns(), kMinColumns);
  if (matrix.columns != shape.columns || matrix.padded % unit != 0 || matrix.padded < shape.columns ||
      matrix.padded >= shape.columns + std::max(unit, kPageColumns)) {
    report.refuse(Rule::kMatrixShape,
                  "matrix {}: expected {} columns, padded to a multiple of {}, got {} in {}", matrix.name,
                  shape.columns, unit, matrix.columns, matrix.padded);
  }
  if (matrix.layer_kind != phase.layer_kind) {
    report.refuse(Rule::kMatrixShape, "matrix {}: expected {} as kind of layer, as its phase has, got {}",
                  matrix.name, phase.layer_kind, matrix.layer_kind);
  }
  const bool normed = phase.input == InputKind::kNormed;
  const bool residual = phase.output == OutputKind::kResidual;
  if (phase.input == InputKind::kHidden || normed == (residual || phase.kind != PhaseKind::kMatrix)) {
    report.refuse(Rule::kInputKind, "{}: expected {}, got another", phase.name,
                  residual ? "an input without norm" : "a normed input");
  }
}

/// Of every row a sum of squares of each team of each CTA that has tiles of the residual stream.
void check_squares(const Plan& plan, Report& report) {
  const int team_workers = std::min(plan.block_rows() / 8, kWorkers);
  const int kept_tiles = ceil_divide(plan.facts.hidden / kTileRows, plan.block_ctas());
  const int teams = std::min({plan.shape().handed_tiles, kWorkers / team_workers, kept_tiles});
  constexpr int kLoadFloats = 4 * kWarpLanes;
  const int64_t bytes = 4ll * plan.rows * round_up(plan.block_ctas() * teams, kLoadFloats);
  for (const int squares : {plan.squares, plan.block_squares}) check_bytes(plan, squares, bytes, report);
  if (plan.block < 0) return;
  if (std::set({plan.squares, plan.block, plan.block_squares}).size() < 3) {
    report.refuse(Rule::kVectorShape, "squares: expected vectors of their own, got {} and {} beside {}",
                  vector_name(plan, plan.squares), vector_name(plan, plan.block_squares),
                  vector_name(plan, plan.block));
  }
}

/// An item's queries, and its new tokens unless they come through the ring, lie where activations were, and end before what
/// parts of query tiles borrow, which is right before the tiles.
void check_item(const Plan& plan, Report& report) {
  const ModelFacts& facts = plan.facts;
  const int parts = plan.shape().parts;
  const int64_t tile = 2ll * parts * tile_queries(plan) * facts.head_dim;
  const int64_t tail = 2ll * new_token_bytes(facts) * round_up(plan.rows, kTailTokens) * facts.head_dim;
  const bool streams = PlannedKernel(plan)->streams_new_tokens();
  const int64_t needed = plan.max_query_tiles * tile + (streams ? 0 : tail);
  const auto region = [&](const char* name) {
    return *std::find_if(plan.shared.begin(), plan.shared.end(),
                         [&](const auto& each) { return each.name == name; });
  };
  const PlanRegion input = region("input");
  if (input.bytes < needed) {
    report.refuse(Rule::kPieceTooSmall,
                  "shared memory: input: expected {} bytes or more, {} query tiles{}, got {}", needed,
                  plan.max_query_tiles, streams ? "" : " and an item's new tokens", input.bytes);
  }
  if (PlannedKernel(plan)->lent_bytes() > 0 && region("tiles").offset != input.offset + input.bytes) {
    report.refuse(Rule::kMisplaced, "shared memory: tiles: expected right behind input at {}, got {}",
                  input.offset + input.bytes, region("tiles").offset);
  }
}

/// Attention reads keys and values of a page into slots of its own, and an item's queries and new tokens to
/// where activations were.
void check_attention(const Plan& plan, Report& report) {
  const ModelFacts& facts = plan.facts;
  const int exponents = facts.kv_bits == 8 ? 1 : 0;  // a byte each token
  const int slots =
      2 * ceil_divide(kKvPageTokens * (facts.head_dim * facts.kv_bits / 8 + exponents), kPageBytes);
  if (plan.ring_slots < slots) {
    report.refuse(Rule::kNumberOutOfRange,
                  "ring slots: expected {} or more, a page of keys and one of values, got {}", slots,
                  plan.ring_slots);
  }
  const int group = facts.num_heads / facts.num_kv_heads;
  const int queries = tile_queries(plan);
  if (plan.max_query_tiles * queries < group + queries - 1 &&
      plan.max_query_tiles * queries < plan.rows * group) {
    report.refuse(Rule::kNumberOutOfRange, "query tiles: expected enough for the {} heads of a row, got {}",
                  group, plan.max_query_tiles);
  }
  const int all_tiles = ceil_divide(plan.rows * group, queries);
  if (plan.max_query_tiles > all_tiles) {
    report.refuse(Rule::kNumberOutOfRange, "query tiles: expected at most {}, all of a KV head, got {}",
                  all_tiles, plan.max_query_tiles);
  }
  const int shares = ceil_divide(facts.head_dim, plan.warp_dims);
  if (plan.max_query_tiles * shares > kMostQueryParts) {
    report.refuse(Rule::kNumberOutOfRange,
                  "query tiles: expected at most {} of {} shares of the dims, got {}",
                  kMostQueryParts / shares, shares, plan.max_query_tiles);
  }
  check_item(plan, report);
}

}  // namespace

void check_rows(const Plan& plan, Report& report) {
  const std::vector<PhaseInstance> sequence = step_sequence(plan);
  std::set<std::pair<int, int>> pairs;  // of phases that follow each other
  for (size_t i = 0; i < sequence.size(); ++i)
    pairs.emplace(sequence[i].phase, sequence[i == 0 ? sequence.size() - 2 : i - 1].phase);
  for (const auto& [phase, before] : pairs) {
    check_reads(plan, {plan.phases[phase], plan.phases[before]}, report);
    check_norm_block(plan, {plan.phases[phase], plan.phases[before]}, report);
  }
  for (const PlanPhase& phase : plan.phases) {
    check_outputs(plan, phase, report);
    if (phase.kind == PhaseKind::kMatrix) check_rows_matrix(plan, phase, report);
  }
  check_append(plan, report);
  check_squares(plan, report);
  check_norms(plan, report);
  check_attention(plan, report);
  if (plan.sync != SyncMode::kCounter) {
    report.refuse(Rule::kWaitUnsatisfied,
                  "step: expected phases of several rows to be separated by the grid counter");
  }
}

}  // namespace soliton
