// Whether the tags of sums tell their uses apart, where CTAs share the columns of tiles: a place that few phases write may keep a
// sum until its tag comes again. The planner shares no more than they do; the verifier asks of every plan.
#include <algorithm>
#include <set>

#include "generator/plan/plan.h"
#include "layout/tag.h"

namespace soliton {
namespace {

/// Own tiles of a CTA in each phase whose sums go through the workspace; -1: the phase has none there.
using OwnTiles = std::vector<int>;
OwnTiles own_tiles(const Plan& plan, int cta) {
  const int most = 2 * plan.shape().tiles_at_once();
  OwnTiles tiles;
  for (const PlanPhase& phase : plan.phases) {
    const bool is_shared = phase.column_slices > 1;
    const bool puts_sums = phase.kind == PhaseKind::kMatrix &&
                           plan.matrices[phase.matrix].experts.axis == ExpertAxis::kNone &&
                           (is_shared || phase.output != OutputKind::kSwiglu);
    const bool is_there = cta < static_cast<int>(phase.runs.size());
    tiles.push_back(!puts_sums              ? -1
                    : is_shared && is_there ? std::clamp(phase.runs[cta].count, 0, most)
                                            : most);
  }
  return tiles;
}

/// The phase that could take a sum which an earlier use of its place with the same tag has left, in steps with the choice of
/// a token or without; null if there is none.
const PlanPhase* untold_use(const Plan& plan, const OwnTiles& tiles, bool chooses) {
  constexpr int kSteps = 2;
  const std::vector<PhaseInstance> sequence = step_sequence(plan);
  std::vector<int>
      last;  // use of each place: of an own tile those of all slices follow one another; -1: none
  int use = 0;
  for (size_t i = 0; i < kSteps * sequence.size(); ++i) {
    const int index = sequence[i % sequence.size()].phase;
    const PlanPhase& phase = plan.phases[index];
    if (tiles[index] < 0) continue;
    ++use;
    if (phase.output == OutputKind::kLogits && !chooses) continue;
    const size_t places =
        static_cast<size_t>(tiles[index]) * std::clamp(phase.column_slices, 1, kMostColumnSlices);
    if (last.size() < places) last.resize(places, -1);
    for (size_t place = 0; place < places; ++place) {
      const bool is_like = last[place] >= 0 && sum_tag(last[place]) == sum_tag(use);
      if (phase.column_slices > 1 && is_like) return &phase;
      last[place] = use;
    }
  }
  return nullptr;
}

}  // namespace

const PlanPhase* untold_phase(const Plan& plan) {
  std::set<OwnTiles> seen;
  for (int cta = 0; cta < plan.block_ctas(); ++cta) {
    const OwnTiles tiles = own_tiles(plan, cta);
    if (!seen.insert(tiles).second) continue;
    for (const bool chooses : {true, false}) {
      if (const PlanPhase* const phase = untold_use(plan, tiles, chooses)) return phase;
    }
  }
  return nullptr;
}

}  // namespace soliton
