// Which phases share the columns of their tiles among CTAs, where warpgroups multiply: a CTA that has more tiles and fewer
// columns reads less of the activations, and exchanges more sums. A warpgroup takes longer to multiply than its share of the
// stream takes to come, most of all where integers become bf16: both are to have tiles.
#include <algorithm>

#include "generator/plan/kernel_plan.h"

namespace soliton {
namespace {

/// What the busiest CTA of a phase moves beside its weights if `slices` CTAs share the columns: activations, for every
/// block of tiles anew, and sums, which it puts down and whose parts it reads; and what it could while it multiplies.
int64_t exchanged_bytes(const Plan& plan, const PlanMatrix& matrix, int slices) {
  const RowsShape shape = plan.shape();
  const SliceCosts costs = plan.policy().slices;
  const int tiles = ceil_divide(matrix.num_tiles, plan.block_ctas() / slices);
  const int own = ceil_divide(matrix.num_tiles, plan.block_ctas());
  const int chunk = shape.slot_columns(matrix.format);
  const int64_t columns = round_up(matrix.padded, chunk * slices) / slices;
  // Digits of a slice are made once if there is room for all.
  const bool of_digits = shape.takes_digits(matrix.format);
  const bool stays = of_digits && columns <= shape.digit_columns;
  const int times =
      (of_digits ? costs.digits_byte : 1) * (stays ? 1 : ceil_divide(tiles, shape.tiles_at_once()));
  const int turns = ceil_divide(tiles, kWarpgroups * kGroupTiles);
  const int product_cost = of_digits ? 0 : matrix.format.has_scales() ? costs.integer_column : costs.column;
  return turns * columns * product_cost + times * columns * shape.column_bytes() +
         costs.sum_byte * static_cast<int64_t>(tiles + own * slices) * shape.sums_bytes() +
         (slices > 1 ? costs.meeting : 0);
}

bool can_share(const Plan& plan, const PlanMatrix& matrix, int slices) {
  const int chunk = plan.shape().slot_columns(matrix.format);
  return plan.num_ctas / row_blocks(plan.rows) % slices == 0 && matrix.padded >= chunk * slices;
}

}  // namespace

void share_columns(Plan& plan, int most) {
  for (PlanPhase& phase : plan.phases) {
    if (phase.kind != PhaseKind::kMatrix) continue;
    const PlanMatrix& matrix = plan.matrices[phase.matrix];
    if (matrix.experts.axis != ExpertAxis::kNone) continue;
    int64_t least = exchanged_bytes(plan, matrix, 1);
    for (int slices = 2; slices <= (most > 0 ? most : kMostColumnSlices); slices *= 2) {
      if (!can_share(plan, matrix, slices)) continue;
      const int64_t bytes = exchanged_bytes(plan, matrix, slices);
      if (most == 0 && bytes >= least) continue;
      least = bytes;
      phase.column_slices = slices;
    }
  }
  if (most > 0) return;
  while (const PlanPhase* const untold = untold_phase(plan)) {
    for (PlanPhase& phase : plan.phases) {
      if (&phase == untold) phase.column_slices = 1;
    }
  }
}

int64_t sums_bytes(const Plan& plan) {
  const PlannedKernel kernel(plan);
  const int64_t of_pass = plan.shape().tiles_at_once() * plan.shape().sums_bytes();
  return plan.num_ctas * (kernel->sum_passes() * of_pass + kernel->residual_bytes());
}

}  // namespace soliton
