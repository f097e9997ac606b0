// Who does what: CTA count, tiles of every phase dealt to CTAs, and how often a vector's place is free again.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "generator/graph.h"
#include "generator/plan/kernel_plan.h"
#include "models/error.h"

namespace soliton {
namespace {

constexpr int kDefaultConsumerWarps = 4;  // fewer warps mean fewer arrivals and partial sums
constexpr int kIntegerConsumerWarps = 8;  // integers have to be spread out: that takes time to hide
constexpr int kProducerWarps = 4;         // where lanes copy: one warp issues too few copies;
constexpr int kFewProducerWarps = 2;      // beside 8 consumers, or for 2 pages in flight: leaves registers
constexpr int kMostWholeColumns = 8192;   // of what experts put out, narrow as they are, and attention
// More take a lane more instructions, which are fetched anew in every phase: the 8B as Q4_K_M 1825 us a token with 8192, 1730 so
// (H100); with one format of integers 8192 are up to 1% slower.
constexpr int kIntegerChunkColumns = 4096;
constexpr int kShortSharedBytes = 128 * 1024;
constexpr int kTileSlots = 4;
constexpr int kMinPagesPerSplit = 2;
constexpr int kMaxRegistersPerThread = 255;
constexpr int kWarpDims = 128;  // of a query tile's outputs in one warp's registers
constexpr int kFewWarpDims = 64;

/// Does the card have little shared memory?
bool is_short(const GpuSpec& gpu) {
  return gpu.max_shared_bytes_per_block < kShortSharedBytes;
}

/// Bytes that the busiest CTA streams per step, summed over phases: phases end with their slowest CTA.
int64_t busiest_bytes(const Graph& graph, int consumer_warps, int all_ctas) {
  int64_t bytes = 0;
  graph.for_each_op([&](const GraphOp& op, int /*layer*/) {
    if (op.matrix < 0) return;
    const GraphMatrix& matrix = graph.matrices[op.matrix];
    const int64_t tiles = ceil_divide(ceil_divide(matrix.rows, kTileRows), all_ctas);
    bytes += tiles * tile_bytes(matrix.format, padded_columns(matrix.format, matrix.columns, consumer_warps));
  });
  return bytes;
}

/// The smallest CTA count whose busiest CTA is within 1% of the best: fewer CTAs exchange less. Of several blocks of rows each has
/// as many.
int choose_ctas(const Graph& graph, int consumer_warps, int num_sms, int num_cards, int row_blocks) {
  const auto bytes = [&](int ctas) { return busiest_bytes(graph, consumer_warps, ctas * num_cards); };
  int64_t best = bytes(1);
  for (int ctas = 2; ctas <= num_sms; ++ctas) best = std::min(best, bytes(ctas));
  int ctas = 1;
  while (bytes(ctas) > best + best / 100) ++ctas;
  return std::min(round_up(ctas, row_blocks), num_sms / row_blocks * row_blocks);
}

PlanPhase make_phase(const GraphOp& op, int layer_kind) {
  return {.name = op.name,
          .kind = op.kind,
          .layer_kind = layer_kind,
          .matrix = op.matrix,
          .reads = op.reads,
          .waits_for = op.reads,
          .writes = op.writes,
          .routes = op.routes,
          .input = op.input,
          .output = op.output,
          .norm = op.norm,
          .appends = op.appends};
}

/// A router has few tiles, and all wait for it: CTAs share the columns of one, whole pages each. Of several rows a CTA has one
/// tile's at most: one slice of the activations.
void slice_routers(Plan& plan) {
  for (PlanPhase& phase : plan.phases) {
    if (phase.kind != PhaseKind::kMatrix || phase.output != OutputKind::kRouter) continue;
    const PlanMatrix& matrix = plan.matrices[phase.matrix];
    const int page = matrix.format.page_columns();
    if (matrix.padded % page != 0) continue;
    const int most =
        plan.rows == 1 ? kMostColumnSlices : std::min(kMostColumnSlices, plan.all_ctas() / matrix.num_tiles);
    const int num_pages = matrix.padded / page;
    const auto busiest_pages = [&](int slices) {
      return ceil_divide(matrix.num_tiles * slices, plan.all_ctas()) * (num_pages / slices);
    };
    for (int slices = 2; slices <= most; ++slices) {
      if (num_pages % slices == 0 && busiest_pages(slices) < busiest_pages(phase.column_slices))
        phase.column_slices = slices;
    }
    plan.vectors[phase.writes].elements *= phase.column_slices;
  }
}

/// Deals each phase's tiles from the CTA on where the phase before left off, so that it is not always the
/// same CTAs that have a tile more. Phases that add to the residual stream all begin at CTA 0, because a
/// row's owner keeps its residual: their leftovers all fall to the first CTAs, whatever these have had
/// before. Every deal begins with a CTA of card 0, so that a tile's card is known by its number.
void deal_phases(Plan& plan) {
  int next = 0;
  for (PlanPhase& phase : plan.phases) {
    if (phase.matrix < 0) continue;
    phase.first_cta = phase.output == OutputKind::kResidual ? 0 : next;
    const int num_tiles = dealt_tiles(plan, phase);
    next = round_up(phase.first_cta + num_tiles, plan.num_cards) % plan.block_ctas();
    for (int cta = 0; cta < plan.block_ctas(); ++cta) {
      phase.runs.push_back(deal_tiles(num_tiles, phase.first_cta, plan.block_ctas(), cta));
    }
  }
}

/// Shared memory holds all of an input that is normed, of one out of attention, about as wide, and of what experts put out
/// if that is not wide, nor so wide that digits of it have several scales; others come in chunks of that width. Where they
/// meet integers, whose pages go by four times as fast, in wider ones if there is room.
int choose_chunk(const Plan& plan) {
  int widest = 0;
  const PlanPhase* before = nullptr;
  for (const PlanPhase& phase : plan.phases) {
    const bool is_mixed = phase.matrix >= 0 &&
                          plan.matrices[phase.matrix].experts.axis == ExpertAxis::kColumns &&
                          plan.matrices[phase.matrix].padded <= kMostWholeColumns;
    const bool is_attended = before != nullptr && before->kind == PhaseKind::kAttention &&
                             (!plan.matrices[phase.matrix].format.takes_digits() ||
                              plan.matrices[phase.matrix].padded <= kMostWholeColumns);
    const bool whole = phase.input != InputKind::kVector || is_mixed || is_attended;
    if (phase.matrix >= 0 && whole) widest = std::max(widest, plan.matrices[phase.matrix].padded);
    before = &phase;
  }
  int page_columns = 0;
  int any = 0;
  for (const PlanMatrix& matrix : plan.matrices) {
    page_columns = std::max(page_columns, matrix.format.page_columns());
    if (matrix.format.takes_digits()) any = std::max(any, matrix.padded);
  }
  return round_up(std::max(widest, std::min(any, kIntegerChunkColumns)), page_columns);
}

/// Does every CTA put out a word in the phase that every CTA reads? Of what attention reads, a CTA reads its heads only.
bool shows_all(const Plan& plan, const PlanPhase& phase) {
  const bool read_in_part = std::any_of(plan.phases.begin(), plan.phases.end(), [&](const PlanPhase& reader) {
    return reader.kind == PhaseKind::kAttention && reader.reads == phase.writes;
  });
  return phase.matrix >= 0 && !read_in_part &&
         std::all_of(phase.runs.begin(), phase.runs.end(), [](const TileRun& r) { return r.count > 0; });
}

/// A place may be written again once a phase from its reader on has shown that every CTA has got so far. Of each kind of
/// layers the phase with most tiles behind the one that appends to the cache shows it, by signatures where not all CTAs have
/// a tile. Its own output has two places, unless in every layer another phase shows it too.
void order_uses(Plan& plan) {
  for (int kind = 0; kind < plan.once(); ++kind) {
    PlanPhase* most = nullptr;
    bool is_behind = false;
    const auto tiles = [&](const PlanPhase& phase) { return plan.matrices[phase.matrix].num_tiles; };
    for (PlanPhase& phase : plan.phases) {
      if (phase.layer_kind != kind) continue;
      if (is_behind && (most == nullptr || tiles(phase) > tiles(*most))) most = &phase;
      is_behind = is_behind || phase.appends;
    }
    if (most == nullptr) continue;  // the verifier says so
    const bool is_alone = std::none_of(plan.phases.begin(), plan.phases.end(), [&](const PlanPhase& phase) {
      return phase.layer_kind == kind && &phase != most && shows_all(plan, phase);
    });
    PlanVector& output = plan.vectors[most->writes];
    if (!shows_all(plan, *most)) output.signatures = plan.all_ctas();
    if (is_alone || plan.once() > 1) output.places = 2;
  }
}

/// Query tiles that lie where activations were, beside an item's new keys and values.
int fitting_query_tiles(const Plan& plan) {
  const QkvLayout qkv = plan.qkv_layout();
  const PlannedKernel kernel(plan);
  const int bytes = kernel->input_bytes() - kernel->item_tail_bytes();
  return std::min(qkv.query_tiles(), bytes < 0 ? 0 : bytes / qkv.query_tile_bytes());
}

/// Query tiles of an item: where new tokens come through the ring, as many as are wanted, so that there is room for the next
/// items too.
int most_query_tiles(const Plan& plan) {
  const int fitting = fitting_query_tiles(plan);
  const bool streams = PlannedKernel(plan)->streams_new_tokens();
  return streams ? std::min(fitting, plan.policy().query_tiles) : fitting;
}

/// Query tiles that an item cannot do with fewer of: it begins anywhere in its first tile, and holds all heads of a row.
int least_query_tiles(const Plan& plan) {
  const int group = plan.facts.num_heads / plan.facts.num_kv_heads;
  return std::min(plan.qkv_layout().query_tiles(),
                  ceil_divide(group - 1, plan.qkv_layout().tile_queries()) + 1);
}

/// Fewer where code needs more registers (before compute capability 9.0), or where shared memory is short: warps hand
/// each other their outputs.
int choose_warp_dims(const Plan& plan) {
  return plan.copies == CopyKind::kBulk && !is_short(plan.limits) ? kWarpDims : kFewWarpDims;
}

/// What rows and the groups of a mixture exchange.
void shape_groups(Plan& plan) {
  const GroupedRows grouped = PlannedKernel(plan)->grouped();
  const auto set_bytes = [&](int vector, int64_t bytes) {
    plan.vectors[vector].element_bytes = 4;
    plan.vectors[vector].elements = static_cast<int>(bytes / 4);
  };
  for (const PlanPhase& phase : plan.phases) {
    if (phase.kind == PhaseKind::kChoose) set_bytes(phase.writes, grouped.choices_bytes());
    if (phase.kind == PhaseKind::kGroup) set_bytes(phase.writes, grouped.grouped_bytes());
    if (phase.kind == PhaseKind::kUngroup) set_bytes(phase.reads, grouped.outputs_bytes());
    if (phase.kind == PhaseKind::kMatrix && phase.routes >= 0) set_bytes(phase.writes, grouped.gated_bytes());
  }
}

/// Vectors of several rows, and what shared memory holds of them. Attention wants its queries and new tokens
/// where activations were.
void shape_rows(Plan& plan) {
  const RowsShape shape = plan.shape();
  const QkvLayout qkv = plan.qkv_layout();
  for (const PlanPhase& phase : plan.phases) {
    if (phase.kind == PhaseKind::kAttention) {
      plan.vectors[phase.reads].element_bytes = 1;
      plan.vectors[phase.reads].elements = static_cast<int>(qkv.bytes());
    }
    if (phase.kind == PhaseKind::kNormHeads)
      plan.vectors[phase.reads].elements = plan.rows * unnormed_words(plan.facts);
    if (phase.kind != PhaseKind::kMatrix) continue;
    if (phase.output == OutputKind::kRouter) plan.vectors[phase.writes].elements *= plan.rows;
    if (plan.warpgroups && plan.matrices[phase.matrix].experts.axis != ExpertAxis::kNone) continue;
    PlanVector& vector = plan.vectors[phase.reads];
    vector.element_bytes = shape.column_bytes() * shape.row_blocks;
    // Matrices of integers and of bf16 may read the same: the wider padding counts.
    vector.elements = std::max(vector.elements, plan.matrices[phase.matrix].padded);
  }
  if (plan.warpgroups && plan.facts.num_experts > 0) shape_groups(plan);
  for (const PlanPhase& phase : plan.phases) {
    if (plan.warpgroups || phase.kind != PhaseKind::kUngroup) continue;
    plan.vectors[phase.reads].elements = plan.rows * used_experts(plan.facts) * plan.facts.hidden;
  }
  plan.vectors[plan.squares].elements = plan.rows * PlannedKernel(plan)->squares_stride();
  if (plan.block >= 0) {
    plan.vectors[plan.block].elements = plan.num_ctas * PlannedKernel(plan)->residual_bytes() / 4;
    plan.vectors[plan.block_squares].elements = plan.vectors[plan.squares].elements;
  }
  plan.input_buffers = plan.policy().input_buffers;
  // New keys and values of two parts leave less room, and need more of the ring.
  const int wanted_tiles = std::max(least_query_tiles(plan),
                                    std::min(qkv.query_tiles(), plan.policy().query_tiles / qkv.kv.parts));
  while (fitting_query_tiles(plan) < wanted_tiles) ++plan.input_buffers;
  // What is multiplied pair by pair may leave room for a chunk more.
  const int of_pairs = PlannedKernel(plan)->pair_input_bytes();
  if (of_pairs > 0) plan.input_buffers = std::max(plan.input_buffers, of_pairs / shape.chunk_bytes());
  plan.max_query_tiles = most_query_tiles(plan);
}

/// Consumer warps of a kernel of one row: its columns' owners, whom padding is for. Throws Error (kMismatch).
int choose_consumer_warps(const ModelFacts& facts, const PlanChoices& choices) {
  const WeightFormat format = weight_format(facts, facts.weight_bits);
  const bool is_divided = format.has_scales() || facts.further_bits != 0;  // codes that take work
  const int default_warps = is_divided ? kIntegerConsumerWarps : kDefaultConsumerWarps;
  const int warps = choices.consumer_warps > 0 ? choices.consumer_warps : default_warps;
  if (kPageColumns % (warps * kColumnBlock) != 0) {
    throw Error(
        ExitCode::kMismatch,
        fmt::format(
            "--consumer-warps: expected 1, 2, 4, 8 or 16, so that each owns whole blocks of {} columns, "
            "got {}",
            kColumnBlock, warps));
  }
  if (format.least_columns() > 0 && kUnits % warps != 0) {
    throw Error(
        ExitCode::kMismatch,
        fmt::format("--consumer-warps: expected 1, 2, 4 or 8, so that each owns whole units of a page "
                    "of integers, got {}",
                    warps));
  }
  return warps;
}

/// Bulk copies where there are any: they leave the issue slots to others.
CopyKind choose_copies(const GpuSpec& gpu, const PlanChoices& choices) {
  const bool has_bulk = gpu.emulated || gpu.compute_capability >= kBulkCopyCapability;
  return choices.copies.value_or(has_bulk ? CopyKind::kBulk : CopyKind::kLanes);
}

/// Copies in flight.
int choose_window(const Plan& plan, const PlanChoices& choices) {
  if (choices.window > 0) return choices.window;
  const PlanPolicy policy = plan.policy();
  return policy.window > 0 ? policy.window : plan.limits.default_window + policy.further_window;
}

/// Do weights take so much work that more pages in flight only fill the ring? us a token at 128, H200, 2 / 3 / 4 pages: 8B as
/// Q4_K_M 1514 / 1581 / -, gpt-oss-20b in MXFP4 1355 / 1282 / 1323.
bool has_slow_codes(const Plan& plan) {
  return plan.facts.further_e2m1 != 0 || plan.facts.weight_minima != 0 || plan.facts.further_minima != 0;
}

/// Has no phase of a layer more pages a CTA than about as many as a ring holds?
bool has_few_pages(const Plan& plan) {
  constexpr int64_t kFewBytes = int64_t{12} * kPageBytes;
  return std::all_of(plan.phases.begin(), plan.phases.end(), [&](const PlanPhase& phase) {
    return phase.matrix < 0 || phase.output == OutputKind::kLogits ||
           plan.matrices[phase.matrix].token_bytes() <= kFewBytes * plan.num_ctas;
  });
}

/// What is in flight delays what consumers poll for. A producer that knows when they poll has a page fewer in flight meanwhile
/// if phases are short, because pages of integers go by fast or a CTA has one tile of the residual stream; else a page more
/// while they do not. us a token at 128 / 6144, 3 pages always -> so:
///   H200: 1B 600 / 656 -> 595 / 651, Qwen2.5-1.5B 869 / 947 -> 837 / 914, Qwen3-0.6B 491 / 610 -> 486 / 608,
///         8B in 4 bits 1236 / 1377 -> 1213 / 1350; 3B 1565 / 1671 -> 1516 / 1647, 8B 3325 / 3479 -> 3289 / 3455
///         Qwen3-30B-A3B, whose ring is empty in every layer until experts are known, 3 and 2 -> 4 and 2: 1863 / 2016 -> 1852 /
///         1992; in 4 bits 4 and 1: 1105 / 1259 -> 1091 / 1257
///   H100: 801 / 862 -> 795 / 854, 1051 / 1146 -> 1027 / 1126, 1582 / 1791 -> 1550 / 1773; 2141 / 2322 -> 2118 / 2306
/// Since consumers say that they wait before they release a phase's last pages, one page is right where integers of 4 bits meet a
/// residual stream of at most two tiles a CTA, 3 and 2 -> 1 on H200s: 8B in 4 bits 1251 -> 1219, as Q4_0 1333 -> 1287 (both with
/// faster consumers); not 4 and 1, 1231, nor in a 70B, 8600 -> 8746.
/// Since producers are faster, floats of a few pages a phase want the fewer always, 3 and 2 -> 2: Qwen3-0.6B on an H100, at 128,
/// 546 -> 524. Since only who has enough pages (kEnoughPages) keeps to the window of waiting, that may be one page there, 2 -> 2
/// and 1 on an H200 453 -> 441; and of E4M3, 8B 3 and 2 -> 3 and 1 2031 -> 2022.
void follow_waiting(Plan& plan, const PlanChoices& choices) {
  plan.waiting_window = plan.window;
  if (plan.rows > 1 || plan.copies != CopyKind::kBulk) return;
  if (choices.window == 0 && has_slow_codes(plan)) {
    plan.window = plan.facts.further_e2m1 != 0 ? 3 : 2;
    plan.waiting_window = plan.window;
  } else if (choices.window == 0 && plan.facts.num_experts > 0) {
    plan.waiting_window = plan.layer_format().has_scales() ? 1 : std::max(1, plan.window - 1);
    ++plan.window;
  } else if (choices.window == 0) {
    const int tiles = ceil_divide(plan.facts.hidden, kTileRows);
    const bool is_short = plan.layer_format().has_scales() || tiles <= plan.all_ctas();
    const WeightType type = plan.layer_format().type;
    const bool is_shortest =
        (type == WeightType::kInt4 || type == WeightType::kE4m3) && tiles <= 2 * plan.all_ctas();
    plan.waiting_window = std::max(1, is_shortest ? 1 : is_short ? plan.window - 1 : plan.window);
    if (!is_short) {
      ++plan.window;
    } else if (!plan.layer_format().has_scales() && has_few_pages(plan)) {
      plan.window = plan.waiting_window;
      plan.waiting_window = 1;
    }
  }
  if (choices.waiting_window > 0) plan.waiting_window = std::min(choices.waiting_window, plan.window);
}

/// Throws Error (kMismatch) for more than bulk copies take.
int choose_producer_warps(const Plan& plan, const PlanChoices& choices) {
  if (plan.copies == CopyKind::kBulk) {
    if (choices.producer_warps > 1) {
      throw Error(ExitCode::kMismatch, fmt::format("--producer-warps: expected 1 with bulk copies, got {}",
                                                   choices.producer_warps));
    }
    return 1;
  }
  if (choices.producer_warps > 0) return choices.producer_warps;
  const bool are_few = plan.consumer_warps > kDefaultConsumerWarps || plan.window <= kFewProducerWarps;
  return are_few ? kFewProducerWarps : kProducerWarps;
}

/// Do warpgroups multiply so many rows? Where experts have few rows each, single warps do.
bool can_use_warpgroups(const Plan& plan, int rows) {
  return plan.copies == CopyKind::kBulk && has_warpgroups(plan.limits) &&
         (plan.facts.num_experts == 0 || (groups_rows(rows) && can_group(plan.facts))) &&
         suits_warpgroups(plan.facts) &&
         rows >= least_warpgroup_rows(plan.layer_format(), further_format(plan.facts));
}

/// Of integers beside a cache of bytes: registers have no room for attention of more.
constexpr int kMostRowsOfByteIntegers = 64;

/// Rows of activations in a step. Throws Error (kMismatch) for a number that no kernel of the model takes.
int choose_rows(const Plan& plan, const PlanChoices& choices) {
  const int rows = choices.rows > 0 ? choices.rows : 1;
  const auto refuse = [](const std::string& text) { throw Error(ExitCode::kMismatch, text); };
  if (std::find(std::begin(kRowCounts), std::end(kRowCounts), rows) == std::end(kRowCounts)) {
    refuse(fmt::format("--rows: expected {}, got {}", fmt::join(kRowCounts, ", "), rows));
  }
  if (plan.num_cards > 1 && plan.facts.num_experts > 0)
    refuse(fmt::format("--cards: expected 1 for a model of experts, got {}", plan.num_cards));
  const bool warpgroups = can_use_warpgroups(plan, rows);
  const int most = most_rows(plan.layer_format(), warpgroups);
  if (rows > most) {
    refuse(fmt::format("--rows: expected at most {}{}{}, got {}", most,
                       plan.layer_format().has_scales() ? " for a model of integers" : "",
                       warpgroups ? "" : " but on a card whose warpgroups multiply", rows));
  }
  const ModelFacts& facts = plan.facts;
  if (rows > kMostRowsInPlace && !suits_warpgroup_pages(kv_shape(facts))) {
    refuse(fmt::format(
        "--rows: expected at most {} but for heads of 64 or 128 dims and a cache of 16 bits, got {}",
        kMostRowsInPlace, rows));
  }
  if (kv_shape(facts).e4m3 && plan.layer_format().has_scales() && rows > kMostRowsOfByteIntegers) {
    refuse(fmt::format("--rows: expected at most {} for integers and a cache of 8 bits, got {}",
                       kMostRowsOfByteIntegers, rows));
  }
  if (plan.num_cards > 1 && row_blocks(rows) > 1) {
    refuse(fmt::format("--rows: expected at most {} over {} cards, got {}", kMostBlockRows, plan.num_cards,
                       rows));
  }
  return rows;
}

/// Decides the numbers that depend on no matrix.
void choose_numbers(Plan& plan, const Graph& graph, const PlanChoices& choices) {
  const GpuSpec& gpu = plan.limits;
  plan.tile_slots = kTileSlots;
  plan.min_pages_per_split =
      choices.min_pages_per_split > 0 ? choices.min_pages_per_split : kMinPagesPerSplit;
  if (choices.max_splits > 0) plan.max_splits = choices.max_splits;
  plan.sync = plan.rows > 1 ? SyncMode::kCounter : choices.sync;
  plan.num_ctas = choices.num_ctas > 0 ? choices.num_ctas
                                       : choose_ctas(graph, plan.consumer_warps, gpu.num_sms, plan.num_cards,
                                                     row_blocks(plan.rows));
  // Of experts in 4 bits the ring is seldom full: without prefetches their producer is faster.
  const bool is_seldom_full = plan.facts.num_experts > 0 && plan.layer_format().has_scales();
  plan.prefetch_pages = choices.prefetch_pages.value_or(
      is_seldom_full ? 0
                     : std::min(plan.policy().prefetch_pages, fitting_prefetch_pages(gpu, plan.num_ctas)));
  plan.registers_per_thread = std::min(
      {kMaxRegistersPerThread, gpu.max_registers_per_thread, gpu.registers_per_sm / plan.threads() / 8 * 8});
}

/// Columns with padding: pages that are put together of experts' columns are full.
int padded_matrix(const GraphMatrix& matrix, int padding_warps) {
  const int padded = padded_columns(matrix.format, matrix.columns, padding_warps);
  const bool is_joined = matrix.experts.axis == ExpertAxis::kColumns && matrix.format.has_scales();
  return is_joined ? round_up(padded, matrix.format.page_columns()) : padded;
}

/// Matrices, vectors and phases as the graph has them.
void take_graph(Plan& plan, const Graph& graph, int padding_warps) {
  for (const GraphMatrix& matrix : graph.matrices) {
    plan.matrices.push_back({.name = matrix.name,
                             .row_order = matrix.row_order,
                             .format = matrix.format,
                             .rows = matrix.rows,
                             .columns = matrix.columns,
                             .padded = padded_matrix(matrix, padding_warps),
                             .num_tiles = ceil_divide(matrix.rows, kTileRows),
                             .card_tiles = tiles_of_card(ceil_divide(matrix.rows, kTileRows), plan.num_cards),
                             .layer_kind = matrix.layer_kind,
                             .experts = matrix.experts});
  }
  for (const GraphVector& vector : graph.vectors) {
    plan.vectors.push_back({.name = vector.name, .elements = vector.elements});
  }
  plan.squares = graph.squares;
  plan.block = graph.block;
  plan.block_squares = graph.block_squares;
  plan.num_norms = graph.num_norms();
  for (size_t layer = 0; layer < graph.layers.size(); ++layer)
    plan.layers.push_back({.kind = graph.layers[layer],
                           .first_norm = graph.first_norm(layer),
                           .window = graph.window(layer),
                           .chunk = graph.chunk(layer),
                           .rope = graph.rope(layer)});
  for (int kind = 0; kind <= graph.once(); ++kind) {
    for (const GraphOp& op : graph.kinds[kind].ops) plan.phases.push_back(make_phase(op, kind));
  }
  PlanVector& candidates = plan.vectors[plan.candidates()];
  candidates.element_bytes = 8;
  candidates.elements = plan.rows * plan.block_ctas() + 1;
}

}  // namespace

bool can_group(const ModelFacts& facts) {
  const WeightFormat format = weight_format(facts, facts.weight_bits);
  const bool suits = !format.has_scales() || (suits_groups(format) && facts.further_bits == 0);
  const int least = std::max(kGroupColumns, format.least_columns());
  const auto fills = [](int columns, int unit) { return columns % unit == 0; };
  return facts.num_experts > 0 && suits && suits_warpgroups(facts) && !holds_blocks(norm_placement(facts)) &&
         fills(facts.hidden, least) && fills(expert_width(facts), kGroupColumns);
}

bool can_pair(const ModelFacts& facts, const GpuSpec& gpu, int rows) {
  if (is_short(gpu)) return false;
  const WeightFormat format = weight_format(facts, facts.weight_bits);
  const int widest = std::max(round_up(facts.hidden, kMinIntegerColumns), expert_width(facts));
  return facts.num_experts > 0 && suits_pairs(rows, format, widest) && facts.further_bits == 0 &&
         expert_width(facts) % kPairUnitColumns == 0 && facts.expert_bias == 0 && facts.o_bias == 0 &&
         !norms_after(norm_placement(facts));
}

Graph step_of(const ModelFacts& facts, const GpuSpec& gpu, const PlanChoices& choices) {
  if (choices.rows <= 1) return build_graph(facts);
  const bool groups = groups_rows(choices.rows) && can_group(facts) && has_warpgroups(gpu) &&
                      choose_copies(gpu, choices) == CopyKind::kBulk;
  return build_rows_graph(facts, groups                               ? ExpertRows::kGrouped
                                 : can_pair(facts, gpu, choices.rows) ? ExpertRows::kPairs
                                                                      : ExpertRows::kTogether);
}

int dealt_tiles(const Plan& plan, const PlanPhase& phase) {
  return plan.matrices[phase.matrix].num_tiles * (plan.warpgroups ? 1 : phase.column_slices);
}

std::vector<PhaseInstance> step_sequence(const Plan& plan) {
  std::vector<PhaseInstance> sequence;
  for (int layer = 0; layer < static_cast<int>(plan.layers.size()); ++layer) {
    for (int i = 0; i < static_cast<int>(plan.phases.size()); ++i) {
      if (plan.phases[i].layer_kind == plan.layers[layer].kind) sequence.push_back({i, layer});
    }
  }
  return sequence;
}

bool shrink_input(Plan& plan) {
  if (plan.rows == 1 || plan.input_buffers <= plan.policy().input_buffers) return false;
  --plan.input_buffers;
  plan.max_query_tiles = most_query_tiles(plan);
  return plan.max_query_tiles >= least_query_tiles(plan);
}

Plan partition(const Graph& graph, const ModelConfig& model, const GpuSpec& gpu, const PlanChoices& choices) {
  Plan plan;
  plan.model = model.name;
  plan.gpu = gpu.name;
  plan.facts = model.facts;
  plan.limits = gpu;
  plan.cards = {gpu};
  plan.num_cards = choices.num_cards;
  // All kernels of a library read the same packed weights: padding is the same for any number of rows.
  const int padding_warps = choose_consumer_warps(plan.facts, choices);
  plan.copies = choose_copies(gpu, choices);
  plan.rows = choose_rows(plan, choices);
  plan.consumer_warps = plan.rows > 1 ? kWorkers : padding_warps;
  plan.shares_registers = plan.rows > 1 && plan.copies == CopyKind::kBulk && has_warpgroups(gpu);
  plan.warpgroups = can_use_warpgroups(plan, plan.rows);
  plan.window = choose_window(plan, choices);
  plan.producer_warps = choose_producer_warps(plan, choices);
  choose_numbers(plan, graph, choices);
  take_graph(plan, graph, padding_warps);
  if (!plan.warpgroups) slice_routers(plan);
  deal_phases(plan);
  follow_waiting(plan, choices);
  if (plan.rows > 1) {
    plan.warp_dims = choose_warp_dims(plan);
    shape_rows(plan);
    if (plan.warpgroups) share_columns(plan, choices.column_slices);
    return plan;
  }
  plan.chunk_columns = choose_chunk(plan);
  for (PlanPhase& phase : plan.phases) {
    if (phase.input == InputKind::kHidden) phase.first_layer_reads = plan.candidates();
  }
  order_uses(plan);
  return plan;
}

}  // namespace soliton
