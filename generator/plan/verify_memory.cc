// Pieces of memory lie where the kernel can use them, hold what it puts there and do not overlap; and the
// card can hold the whole launch.
#include <algorithm>

#include "generator/plan/verify_passes.h"

namespace soliton {
namespace {

constexpr int kAccessBytes = 16;  // of the widest load, and of what a bulk copy begins at
constexpr int kLineBytes = 128;
constexpr int kLeastLines =
    2;  // stall claim, grid counter; one row: then one line per head block; several: of a router
constexpr int kRegisterUnit = 8;  // a warp is allotted multiples of 256

template <class Pieces>
const auto& piece(const Pieces& pieces, const std::string& name) {
  return *std::find_if(pieces.begin(), pieces.end(), [&](const auto& each) { return each.name == name; });
}

/// Maximum, sum and output of each head of a block.
int64_t partial_bytes(const Plan& plan) {
  return 4ll * kHeadsPerBlock * (plan.facts.head_dim + 2);
}

/// Of a card.
int num_blocks(const Plan& plan) {
  const ModelFacts& facts = plan.facts;
  return ceil_divide(facts.num_kv_heads, plan.num_cards) *
         ceil_divide(facts.num_heads / facts.num_kv_heads, kHeadsPerBlock);
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
    } else if (region.bytes > each.bytes) {
      report.refuse(Rule::kPieceTooLarge, "{}: {}: expected no more than {} bytes, got {}", where, each.name,
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
  for (const PlanMatrix& matrix : plan.matrices)
    check_place("matrix " + matrix.name, matrix.offset, kAccessBytes, report);
  for (size_t layer = 0; layer < plan.layers.size(); ++layer) {
    check_place(fmt::format("layer {}", layer), plan.layers[layer].weights, kAccessBytes, report);
    for (const PlanMatrix& matrix : plan.matrices) {
      if (matrix.layer_kind != plan.layers[layer].kind) continue;
      const PlanRegion region{fmt::format("{}[{}]", matrix.name, layer),
                              plan.layers[layer].weights + matrix.offset, matrix.layer_bytes()};
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
    regions.push_back(
        {vector.name, vector.offset, (vector.places - 1) * vector.place_bytes() + vector.bytes()});
  }
  if (plan.rows == 1) regions.push_back(piece(plan.workspace, kPartialsRegion));
  if (plan.warpgroups) regions.push_back(piece(plan.workspace, kSumsRegion));
  regions.push_back(piece(plan.workspace, kCountersRegion));
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

/// What layout/ says that the kernel puts there.
std::vector<NeededRegion> needed_shared(const Plan& plan) {
  const PlannedKernel kernel(plan);
  std::vector<NeededRegion> needed;
  for (const RegionRule& rule : needed_regions(*kernel))
    needed.push_back({rule.name, rule.bytes, rule.alignment});
  return needed;
}

}  // namespace

std::vector<NeededRegion> needed_workspace(const Plan& plan) {
  std::vector<NeededRegion> needed;
  for (const PlanVector& vector : plan.vectors) {
    const int64_t groups = (vector.bytes() + kAccessBytes - 1) / kAccessBytes;
    needed.push_back({vector.name, vector.places * groups * kAccessBytes, kAccessBytes});
  }
  int lines = kLeastLines;
  if (plan.rows == 1) {
    needed.push_back({kPartialsRegion, partial_bytes(plan) * plan.num_ctas, kAccessBytes});
    lines += num_blocks(plan);
  } else if (plan.facts.num_experts > 0) {
    ++lines;
  }
  if (plan.warpgroups) needed.push_back({kSumsRegion, needed_sums_bytes(plan), kAccessBytes});
  needed.push_back({kCountersRegion, static_cast<int64_t>(kLineBytes) * lines, kLineBytes});
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
