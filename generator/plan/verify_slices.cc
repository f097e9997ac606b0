// Where CTAs share the columns of tiles: every column of every tile has one CTA that multiplies by it, the CTAs of a team
// are those that have a tile's columns, and the one that finishes the tile is among them. Derived from templates/rows/.
#include <algorithm>

#include "generator/plan/verify_passes.h"

namespace soliton {
namespace {

constexpr int kSumBytes = 64;  // of a row's 16 sums of a tile

/// That a slot has of a group of tiles.
int chunk_columns(const Plan& plan, const PlanMatrix& matrix) {
  if (matrix.format.type == WeightType::kE2m1) return kCodeSlotColumns;
  return matrix.format.has_scales() ? integer_slot_columns(plan, matrix.format) : kPageColumns / kGroupTiles;
}

/// Owners of chunks of columns, of one tile after another; -1: nobody.
struct ChunkOwners {
  int chunks = 0;  // of a tile
  std::vector<int> ctas = {};
};

ChunkOwners owners_of(const Plan& plan, const PlanPhase& phase, Report& report) {
  const PlanMatrix& matrix = plan.matrices[phase.matrix];
  const int columns = chunk_columns(plan, matrix);
  const int chunks = ceil_divide(matrix.padded, columns);
  ChunkOwners owners{chunks, std::vector<int>(static_cast<size_t>(matrix.num_tiles) * chunks, -1)};
  for (int cta = 0; cta < plan.block_ctas(); ++cta) {
    const TileBlock block =
        deal_block(matrix.num_tiles, phase.first_cta, plan.block_ctas(), phase.column_slices, cta);
    const int first = slice_begin(matrix.padded, columns, phase.column_slices, block.slice) / columns;
    const int end =
        ceil_divide(slice_begin(matrix.padded, columns, phase.column_slices, block.slice + 1), columns);
    for (int i = 0; i < block.tiles.count; ++i) {
      const int tile = block.tiles.first + i * block.tiles.stride;
      if (tile < 0 || tile >= matrix.num_tiles) {
        report.refuse_once(phase.name, Rule::kPageOutOfRange,
                           fmt::format("{}: CTA {}: expected tiles 0 to {}, got {}", phase.name, cta,
                                       matrix.num_tiles - 1, tile));
        continue;
      }
      for (int chunk = first; chunk < end; ++chunk) {
        int& owner = owners.ctas[static_cast<size_t>(tile) * chunks + chunk];
        if (owner >= 0) {
          report.refuse_once(
              phase.name, Rule::kPageTwoOwners,
              fmt::format("{}: tile {}: columns from {} on: expected one owner, got CTA {} and "
                          "CTA {}",
                          phase.name, tile, chunk * columns, owner, cta));
        }
        owner = cta;
      }
    }
  }
  return owners;
}

/// Every column of every tile has an owner; the CTA that finishes a tile has some of them, at the place in its block where
/// it looks for the sums.
void check_blocks(const Plan& plan, const PlanPhase& phase, Report& report) {
  const ChunkOwners owners = owners_of(plan, phase, report);
  const auto skipped = std::find(owners.ctas.begin(), owners.ctas.end(), -1);
  if (skipped != owners.ctas.end()) {
    report.refuse_once(phase.name, Rule::kPageSkipped,
                       fmt::format("{}: tile {}: expected one CTA for all of its columns, got none for some",
                                   phase.name, (skipped - owners.ctas.begin()) / owners.chunks));
  }
  const int num_tiles = plan.matrices[phase.matrix].num_tiles;
  for (int cta = 0; cta < plan.block_ctas() && cta < static_cast<int>(phase.runs.size()); ++cta) {
    const TileBlock block =
        deal_block(num_tiles, phase.first_cta, plan.block_ctas(), phase.column_slices, cta);
    const TileRun& run = phase.runs[cta];
    const int count = std::min(run.count, num_tiles + 1);  // enough to see it
    for (int i = 0; i < count; ++i) {
      const int place = block.first_own + i * phase.column_slices;
      const int64_t tile = run.first + static_cast<int64_t>(i) * run.stride;
      if (place < block.tiles.count && block.tiles.first + place * block.tiles.stride == tile) continue;
      report.refuse_once(phase.name, Rule::kDealtUnlike,
                         fmt::format("{}: CTA {}: expected to finish tiles of its block, got tile {}",
                                     phase.name, cta, tile));
    }
  }
}

void check_slices(const Plan& plan, const PlanPhase& phase, Report& report) {
  const bool is_router = phase.kind == PhaseKind::kMatrix && phase.output == OutputKind::kRouter;
  if (is_router && !plan.warpgroups) return;  // see check_experts()
  const int slices = phase.column_slices;
  const bool is_power = slices >= 1 && slices <= kMostColumnSlices && (slices & (slices - 1)) == 0;
  const int most = !plan.warpgroups || phase.kind != PhaseKind::kMatrix ? 1 : kMostColumnSlices;
  const int ctas = plan.num_ctas / row_blocks(plan.rows);  // of a card and a block of rows
  if (!is_power || slices > most || ctas % slices != 0) {
    report.refuse(Rule::kNumberOutOfRange,
                  "{}: expected a power of two up to {} that divides {} as the number of CTAs that share "
                  "columns, got {}",
                  phase.name, most, ctas, slices);
    return;
  }
  if (!plan.warpgroups || phase.kind != PhaseKind::kMatrix) return;
  const PlanMatrix& matrix = plan.matrices[phase.matrix];
  const int padded = matrix.padded;
  const int chunk = chunk_columns(plan, matrix);
  if (padded % chunk != 0 || padded < slices * chunk) {
    report.refuse(Rule::kNumberOutOfRange,
                  "{}: expected whole chunks of {} columns for each of {} CTAs, got {} columns", phase.name,
                  chunk, slices, padded);
    return;
  }
  check_blocks(plan, phase, report);
}

/// The tag of a sum tells its use from all before that a place may still hold.
void check_tags(const Plan& plan, Report& report) {
  const PlanPhase* const phase = untold_phase(plan);
  if (phase == nullptr) return;
  report.refuse(Rule::kOverwritten,
                "{}: sums of tiles: expected places to be written again before their tag comes again, got "
                "one that is not",
                phase->name);
}

}  // namespace

int64_t needed_sums_bytes(const Plan& plan) {
  const int tiles_at_once = plan.shape().tile_groups * kWarpgroups * kGroupTiles;
  int places = 2;
  for (const PlanPhase& phase : plan.phases) {
    if (phase.kind != PhaseKind::kMatrix || phase.column_slices < 2) continue;
    const int teams = std::max(1, plan.block_ctas() / phase.column_slices);
    const int tiles = (plan.matrices[phase.matrix].num_tiles + teams - 1) / teams;
    places = std::max(places, (tiles + tiles_at_once - 1) / tiles_at_once);
  }
  const int hidden_tiles = plan.facts.hidden / kTileRows;
  const int kept_tiles =
      (hidden_tiles + plan.block_ctas() - 1) / plan.block_ctas();  // of the residual stream
  return static_cast<int64_t>(places * tiles_at_once + kept_tiles) * plan.num_ctas * plan.block_rows() *
         kSumBytes;
}

void check_column_slices(const Plan& plan, Report& report) {
  for (const PlanPhase& phase : plan.phases) check_slices(plan, phase, report);
  if (!plan.warpgroups) return;
  check_tags(plan, report);
  const int least = least_warpgroup_rows(plan.layer_format(), further_format(plan.facts));
  if (!plan.shares_registers) {
    report.refuse(
        Rule::kNumberOutOfRange,
        "warpgroups: expected workers that take registers from the other warps, got some that do not");
  }
  if (plan.copies != CopyKind::kBulk || plan.rows < least) {
    report.refuse(Rule::kNumberOutOfRange,
                  "warpgroups: expected bulk copies and {} rows or more, got {} rows", least, plan.rows);
  }
  if (plan.ring_slots % 2 != 0) {  // each of two warpgroups waits for every second slot, by parity
    report.refuse(Rule::kParityTwoAhead, "ring: expected an even number of slots, got {}", plan.ring_slots);
  }
  if (!has_warpgroups(plan.limits)) {
    report.refuse(Rule::kNumberOutOfRange,
                  "warpgroups: expected the architecture of compute capability {}, got {}",
                  kWarpgroupCapability, plan.limits.compute_capability);
  }
}

}  // namespace soliton
