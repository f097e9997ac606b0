// Pieces of memory lie where the kernel can use them, hold what it puts there and do not overlap; and the
// card can hold the whole launch.
#include <algorithm>

#include "generator/plan/verify_passes.h"

namespace soliton {
namespace {

constexpr int kAccessBytes = 16;  // of the widest load, and of what a bulk copy begins at
constexpr int kBarrierBytes = 8;
constexpr int kStatusBytes = 32;
constexpr int kDecisionBytes = 8;  // StepDecision in templates/kernel.cuh
constexpr int kCounterLineBytes = 128;
constexpr int kCounterLines = 2;  // stall claim, grid counter; one row: then one line per head block
constexpr int kPartPlaces = 4;    // of parts of query tiles
constexpr int kHeldItems = 8;     // of attention
constexpr int kItemBytes = 48;
constexpr int kTileGap = 4;       // floats behind a tile's 16 sums of a row of activations
constexpr int kRegisterUnit = 8;  // a warp is allotted multiples of 256

template <class Pieces>
const auto& piece(const Pieces& pieces, const std::string& name) {
  return *std::find_if(pieces.begin(), pieces.end(), [&](const auto& each) { return each.name == name; });
}

/// Maximum, sum and output of each head of a block.
int64_t partial_bytes(const Plan& plan) {
  return 4ll * kHeadsPerBlock * (plan.facts.head_dim + 2);
}

int num_blocks(const ModelFacts& facts) {
  return facts.num_kv_heads * ceil_divide(facts.num_heads / facts.num_kv_heads, kHeadsPerBlock);
}

/// Bytes of the largest page: of the KV cache, or of 16 rows of weights with their scales and zeros.
int64_t largest_page(const Plan& plan) {
  int64_t bytes = kPageBytes;
  for (const PlanMatrix& matrix : plan.matrices) {
    if (!matrix.format.is_quantized()) continue;
    const int scales = kIntegerPageColumns / matrix.format.group * (matrix.format.has_zeros ? 2 : 1);
    bytes = std::max<int64_t>(bytes, kTileRows * (kIntegerPageColumns / 2 + 2 * scales));
  }
  return bytes;
}

/// Columns of an input that shared memory holds at once.
int input_columns(const Plan& plan) {
  int columns = 0;
  for (const PlanMatrix& matrix : plan.matrices) columns = std::max(columns, matrix.padded);
  return std::min(columns, plan.chunk_columns);
}

/// High and low part of each element, bf16; where there are integers its four digits, and a sum for each lane of a
/// quad for every 64 columns.
int64_t input_bytes(const Plan& plan) {
  const bool integers = std::any_of(plan.matrices.begin(), plan.matrices.end(),
                                    [](const PlanMatrix& matrix) { return matrix.format.is_quantized(); });
  return integers ? 4ll * plan.chunk_columns + 4 * 4 * plan.chunk_columns / 64 : 4ll * input_columns(plan);
}

/// Tiles of the residual stream that the busiest CTA keeps.
int most_residual_tiles(const Plan& plan) {
  int most = 0;
  for (const PlanPhase& phase : plan.phases) {
    if (phase.kind != OpKind::kMatrix || phase.output != OutputKind::kResidual) continue;
    for (const TileRun& run : phase.runs) most = std::max(most, run.count);
  }
  return most;
}

/// Something with an offset: the weights, the workspace, or a piece of shared memory.
void check_place(const std::string& what, int64_t offset, int alignment, Report& report) {
  if (offset >= 0 && offset % alignment == 0) return;
  report.refuse(Rule::kMisplaced, "{}: expected an offset of 0 or more, a multiple of {}, got {}", what,
                alignment, offset);
}

void check_needed(const char* where, const std::vector<PlanRegion>& regions,
                  const std::vector<NeededRegion>& needed, Report& report) {
  for (const NeededRegion& each : needed) {
    const PlanRegion& region = piece(regions, each.name);
    check_place(fmt::format("{}: {}", where, each.name), region.offset, each.alignment, report);
    if (region.bytes < each.bytes) {
      report.refuse(Rule::kPieceTooSmall, "{}: {}: expected {} bytes or more, got {}", where, each.name,
                    each.bytes, region.bytes);
    }
  }
}

/// The rules that pieces of one memory break.
struct RegionRules {
  const char* where;
  Rule overlap;
  Rule exceeded;
};

/// Pieces called name[copy] are one matter for all copies.
void check_regions(std::vector<PlanRegion> regions, int64_t limit, const RegionRules& rules, Report& report) {
  const auto base = [](const PlanRegion& region) { return region.name.substr(0, region.name.find('[')); };
  std::stable_sort(regions.begin(), regions.end(),
                   [](const PlanRegion& a, const PlanRegion& b) { return a.offset < b.offset; });
  for (size_t i = 0; i < regions.size(); ++i) {
    const PlanRegion& region = regions[i];
    const int64_t end = region.offset + region.bytes;
    if (i + 1 < regions.size() && end > regions[i + 1].offset) {
      report.refuse_once(fmt::format("{}/{}/{}", rules.where, base(region), base(regions[i + 1])),
                         rules.overlap,
                         fmt::format("{}: {} ends at {}, expected before {} which begins at {}", rules.where,
                                     region.name, end, regions[i + 1].name, regions[i + 1].offset));
    }
    if (end > limit) {
      report.refuse_once(
          fmt::format("{}/{}", rules.where, base(region)), rules.exceeded,
          fmt::format("{}: {} ends at byte {}, expected at most {}", rules.where, region.name, end, limit));
    }
  }
}

/// No two tiles of the packed weights share a byte, and no byte stands behind the last.
void check_weights(const Plan& plan, Report& report) {
  std::vector<PlanRegion> regions;
  int64_t end = 0;
  for (const PlanMatrix& matrix : plan.matrices) {
    check_place("matrix " + matrix.name, matrix.offset, kAccessBytes, report);
    check_place(fmt::format("matrix {}, next layer", matrix.name), matrix.layer_stride, kAccessBytes, report);
    for (int copy = 0; copy < matrix.copies; ++copy) {
      const PlanRegion region{fmt::format("{}[{}]", matrix.name, copy),
                              matrix.offset + copy * matrix.layer_stride, matrix.layer_bytes()};
      end = std::max(end, region.offset + region.bytes);
      regions.push_back(region);
    }
  }
  check_regions(regions, plan.weight_bytes, {"packed weights", Rule::kWeightsOverlap, Rule::kWeightsOverlap},
                report);
  if (plan.weight_bytes > end) {
    report.refuse(Rule::kWeightsSize,
                  "packed weights: expected to end with the last matrix at byte {}, got {}", end,
                  plan.weight_bytes);
  }
}

void check_workspace(const Plan& plan, Report& report) {
  std::vector<PlanRegion> regions;
  for (const PlanVector& vector : plan.vectors) {
    const PlanRegion& region = piece(plan.workspace, vector.name);
    if (region.offset != vector.offset) {
      report.refuse(Rule::kVectorMoved, "{}: expected to lie at {} as in the workspace, got {}", vector.name,
                    region.offset, vector.offset);
    }
    regions.push_back({vector.name, vector.offset, vector.bytes()});
  }
  if (plan.rows == 1) regions.push_back(piece(plan.workspace, "partials"));
  regions.push_back(piece(plan.workspace, "counters"));
  check_needed("workspace", plan.workspace, needed_workspace(plan), report);
  check_regions(regions, plan.workspace_bytes(),
                {"workspace", Rule::kWorkspaceOverlap, Rule::kWorkspaceOverlap}, report);
}

/// One CTA on each SM.
void check_card(const Plan& plan, Report& report) {
  const GpuSpec& limits = plan.limits;
  if (plan.threads() > limits.max_threads_per_block) {
    report.refuse(Rule::kThreadsExceeded, "threads per CTA: expected at most {}, got {}",
                  limits.max_threads_per_block, plan.threads());
  }
  const int registers = plan.registers_per_thread;
  const int64_t allotted =
      static_cast<int64_t>(registers + kRegisterUnit - 1) / kRegisterUnit * kRegisterUnit;
  if (registers < 1 || registers > limits.max_registers_per_thread ||
      allotted * plan.threads() > limits.registers_per_sm) {
    report.refuse(
        Rule::kRegistersExceeded,
        "registers: expected 1 to {} a thread and up to {} an SM, got {} a thread, allotted as {}, of {} "
        "threads",
        limits.max_registers_per_thread, limits.registers_per_sm, registers, allotted, plan.threads());
  }
}

}  // namespace

std::vector<NeededRegion> needed_shared(const Plan& plan) {
  const int64_t warps = plan.consumer_warps;
  int64_t barriers = 0;
  for (const NeededBarrier& barrier : needed_barriers(plan)) barriers += barrier.slots;
  const int64_t units = ceil_divide(num_blocks(plan.facts), plan.num_ctas);
  const int64_t rows = plan.rows;
  const int head_dim = plan.facts.head_dim;
  const int64_t ring = static_cast<int64_t>(plan.ring_slots) * largest_page(plan);
  if (rows > 1) {
    // SharedMap in templates/rows/context.cuh.
    const int parts = rows <= 8 ? 2 : 1;
    const int columns = kPageColumns / (rows <= 16 ? 1 : 2);
    const int64_t chunks = 2ll * plan.input_buffers * columns * rows * parts;
    const int64_t queries = 2ll * plan.max_query_tiles * kQueryRows * head_dim * parts;
    const int64_t tail = plan.facts.kv_bits / 8 * round_up(plan.rows, kTailTokens) * head_dim;
    const int64_t column_warps = rows <= 16 ? warps : warps / 2;  // the others multiply other rows
    const int64_t sums = 4ll * (rows <= 8 ? 4 : 2) * column_warps * rows * (kTileRows + kTileGap);
    const int64_t part = (head_dim / 8 + 1) * 16ll * kWarpLanes;
    return {{"pages", ring, kAccessBytes},
            {"input", std::max(chunks, queries + 2 * tail), kAccessBytes},
            {"tiles", std::max(sums, kPartPlaces * part), kAccessBytes},
            {"residual", 4ll * most_residual_tiles(plan) * kTileRows * rows, kAccessBytes},
            {"factors", 4ll * rows, 4},                                          // of the norm
            {"held", kHeldItems * kItemBytes + 8 + 2 * 4 * rows, kAccessBytes},  // of the tree's plan
            {"decision", 4 * warps, 4},
            {"status", kStatusBytes * (warps + 2), kAccessBytes},
            {"barriers", kBarrierBytes * barriers, kBarrierBytes}};
  }
  // SharedMap in templates/kernel.cuh.
  return {{"pages", ring, kAccessBytes},
          // During attention the part of each consumer warp.
          {"x", std::max<int64_t>(input_bytes(plan), warps * partial_bytes(plan)), kAccessBytes},
          {"tiles", 4ll * plan.tile_slots * warps * kTileRows, 4},
          {"attention", partial_bytes(plan), kAccessBytes},  // of the new token
          {"residual", 4ll * most_residual_tiles(plan) * kTileRows, 4},
          {"new_token", 2ll * plan.facts.kv_bits / 8 * units * head_dim, 4},  // k and v of the new token
          {"squares", 4ll * kInputGenerations * warps, 4},
          // q of a block's heads, k, v.
          {"query", 4ll * (kHeadsPerBlock + 2) * head_dim, kAccessBytes},
          // cos and sin for each pair of dims, unless attention rotates heads.
          {"rotations", plan.facts.head_norm != 0 ? 0 : 4ll * head_dim, kBarrierBytes},
          {"decision", kDecisionBytes, 4},
          {"status", kStatusBytes * (warps + 2), kAccessBytes},  // consumers, producer, epilogue
          {"barriers", kBarrierBytes * barriers, kBarrierBytes}};
}

std::vector<NeededRegion> needed_workspace(const Plan& plan) {
  std::vector<NeededRegion> needed;
  for (const PlanVector& vector : plan.vectors) {
    // Cleared in whole groups of 16 bytes.
    const int64_t groups = (vector.bytes() + kAccessBytes - 1) / kAccessBytes;
    needed.push_back({vector.name, groups * kAccessBytes, kAccessBytes});
  }
  int lines = kCounterLines;
  if (plan.rows == 1) {
    needed.push_back({"partials", partial_bytes(plan) * plan.num_ctas, kAccessBytes});
    lines += num_blocks(plan.facts);
  }
  needed.push_back({"counters", static_cast<int64_t>(kCounterLineBytes) * lines, kCounterLineBytes});
  return needed;
}

void check_memory(const Plan& plan, Report& report) {
  check_weights(plan, report);
  check_needed("shared memory", plan.shared, needed_shared(plan), report);
  check_regions(plan.shared, plan.limits.max_shared_bytes_per_block,
                {"shared memory", Rule::kSharedOverlap, Rule::kSharedExceeded}, report);
  check_workspace(plan, report);
  check_card(plan, report);
}

}  // namespace soliton
