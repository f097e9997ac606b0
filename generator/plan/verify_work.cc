// Every tile has one reader, which reads it once and is the one that the kernel will make read it; rows of
// the residual stream stay with one CTA.
#include <algorithm>

#include "generator/plan/verify_passes.h"

namespace soliton {
namespace {

std::string show(const TileRun& run) {
  return fmt::format("{} from {} by {}", run.count, run.first, run.stride);
}

bool same_tiles(const TileRun& a, const TileRun& b) {
  return a.count == b.count && a.first == b.first && a.stride == b.stride;
}

/// Notes that a CTA reads a tile. Each rule is reported for the first tile of a phase that breaks it.
void read_tile(const PlanPhase& phase, std::vector<int>& owner, int64_t tile, int cta, Report& report) {
  const auto refuse = [&](Rule rule, const std::string& text) {
    report.refuse_once(phase.name, rule, fmt::format("{}: {}", phase.name, text));
  };
  if (tile < 0 || tile >= static_cast<int64_t>(owner.size())) {
    refuse(Rule::kPageOutOfRange,
           fmt::format("CTA {}: expected tiles 0 to {}, got {}", cta, owner.size() - 1, tile));
  } else if (owner[tile] == cta) {
    refuse(Rule::kPageRepeated,
           fmt::format("tile {}: expected to be read once, CTA {} reads it again", tile, cta));
  } else if (owner[tile] >= 0) {
    refuse(Rule::kPageTwoOwners,
           fmt::format("tile {}: expected one owner, got CTA {} and CTA {}", tile, owner[tile], cta));
  } else {
    owner[tile] = cta;
  }
}

void check_pages(const PlanPhase& phase, int num_tiles, Report& report) {
  std::vector<int> owner(std::max(num_tiles, 1), -1);
  for (int cta = 0; cta < static_cast<int>(phase.runs.size()); ++cta) {
    const TileRun& run = phase.runs[cta];
    const int64_t count =
        std::min<int64_t>(run.count, static_cast<int64_t>(owner.size()) + 1);  // enough to see it
    for (int64_t i = 0; i < count; ++i) read_tile(phase, owner, run.first + i * run.stride, cta, report);
  }
  const auto skipped = std::find(owner.begin(), owner.end(), -1);
  if (skipped != owner.end()) {
    report.refuse(Rule::kPageSkipped, "{}: tile {}: expected one CTA that reads its pages, got none",
                  phase.name, skipped - owner.begin());
  }
}

/// The kernel knows first_cta and deals by deal_tiles(): the plan must mean the same.
void check_dealing(const Plan& plan, const PlanPhase& phase, int num_tiles, Report& report) {
  if (static_cast<int>(phase.runs.size()) != plan.block_ctas()) {
    report.refuse(Rule::kDealtUnlike, "{}: expected the tiles of {} CTAs, got those of {}", phase.name,
                  plan.block_ctas(), phase.runs.size());
  }
  if (phase.first_cta < 0 || phase.first_cta >= plan.block_ctas()) {
    report.refuse(Rule::kDealtUnlike, "{}: expected a first CTA of 0 to {}, got {}", phase.name,
                  plan.block_ctas() - 1, phase.first_cta);
    return;
  }
  const int ctas = std::min(plan.block_ctas(), static_cast<int>(phase.runs.size()));
  for (int cta = 0; cta < ctas; ++cta) {
    const TileRun dealt = deal_tiles(num_tiles, phase.first_cta, plan.block_ctas(), cta);
    if (same_tiles(phase.runs[cta], dealt)) continue;
    report.refuse(Rule::kDealtUnlike, "{}: CTA {}: expected the tiles that the kernel deals it, {}, got {}",
                  phase.name, cta, show(dealt), show(phase.runs[cta]));
    return;
  }
}

/// CTA number n belongs to card n % num_cards, whose memory holds the tiles t of t % num_cards alike, as the tile
/// t / num_cards of those that it has room for. So no CTA streams what another card has.
void check_cards_of_tiles(const Plan& plan, const PlanPhase& phase, Report& report) {
  if (plan.num_cards == 1) return;
  const int room = plan.matrices[phase.matrix].card_tiles;
  for (int cta = 0; cta < static_cast<int>(phase.runs.size()); ++cta) {
    const TileRun& run = phase.runs[cta];
    const int count = std::min(run.count, room + 1);  // enough to see it
    for (int i = 0; i < count; ++i) {
      const int64_t tile = run.first + static_cast<int64_t>(i) * run.stride;
      if (tile % plan.num_cards == cta % plan.num_cards && tile / plan.num_cards < room) continue;
      report.refuse_once(
          phase.name, Rule::kPageOfOtherCard,
          fmt::format("{}: tile {}: expected a CTA of card {}, among whose {} tiles it is number {}, got "
                      "CTA {} of card {}",
                      phase.name, tile, tile % plan.num_cards, room, tile / plan.num_cards,
                      cta / plan.num_cards, cta % plan.num_cards));
      return;
    }
  }
}

/// Phases that add to the residual stream deal its rows alike.
void check_residual(const Plan& plan, Report& report) {
  const PlanPhase* first = nullptr;
  for (const PlanPhase& phase : plan.phases) {
    if (phase.kind != PhaseKind::kMatrix || phase.output != OutputKind::kResidual) continue;
    if (first == nullptr) first = &phase;
    const size_t ctas = std::min(phase.runs.size(), first->runs.size());
    for (size_t cta = 0; cta < ctas; ++cta) {
      if (same_tiles(first->runs[cta], phase.runs[cta])) continue;
      report.refuse(Rule::kResidualMoved, "{}: CTA {}: expected the tiles of {}, {}, got {}", phase.name, cta,
                    first->name, show(first->runs[cta]), show(phase.runs[cta]));
      break;
    }
  }
}

}  // namespace

void check_work(const Plan& plan, Report& report) {
  for (const PlanPhase& phase : plan.phases) {
    if (phase.kind == PhaseKind::kMatrix) {
      const int num_tiles = dealt_tiles(plan, phase);
      check_pages(phase, num_tiles, report);
      check_dealing(plan, phase, num_tiles, report);
      check_cards_of_tiles(plan, phase, report);
    } else if (!phase.runs.empty()) {
      report.refuse(Rule::kDealtUnlike, "{}: expected no tiles, got those of {} CTAs", phase.name,
                    phase.runs.size());
    }
  }
  check_residual(plan, report);
}

}  // namespace soliton
