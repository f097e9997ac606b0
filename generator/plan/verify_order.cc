// Whoever reads a vector has waited for it, the phase before wrote it, and no place is written again while anybody may
// still read it.
#include <algorithm>

#include "generator/plan/verify_passes.h"

namespace soliton {
namespace {

constexpr int kMostPlaces = 2;  // that the kernel takes in turn
constexpr int kStepsUnrolled = 3;

/// What a phase reads in a layer.
int reads_in(const PlanPhase& phase, int layer) {
  return layer == 0 && phase.first_layer_reads >= 0 ? phase.first_layer_reads : phase.reads;
}

/// Does the phase's output hold a word of every CTA that every CTA reads? Each word is made of the whole input of its
/// phase. How attention is shared depends on the context: at any length some CTA may have nothing to do.
bool shows_all(const Plan& plan, const PlanPhase& phase) {
  if (phase.writes < 0) return false;
  if (plan.vectors[phase.writes].signatures == plan.all_ctas()) return true;
  if (phase.kind != PhaseKind::kMatrix) return false;
  if (phase.output == OutputKind::kLogits) return true;  // a candidate of every CTA
  for (const PlanPhase& reader : plan.phases) {          // of its heads only, if it attends
    if (reader.kind == PhaseKind::kAttention && reader.reads == phase.writes) return false;
  }
  return std::ssize(phase.runs) == plan.all_ctas() &&
         std::all_of(phase.runs.begin(), phase.runs.end(), [](const TileRun& run) { return run.count > 0; });
}

void check_signatures(const Plan& plan, Report& report) {
  for (const PlanVector& vector : plan.vectors) {
    if (vector.signatures == 0 || vector.signatures == plan.all_ctas()) continue;
    report.refuse(Rule::kWaitUnsatisfied, "{}: expected 0 or {} signatures, got {}", vector.name,
                  plan.all_ctas(), vector.signatures);
  }
}

/// A vector that is waited for was written in the phase before.
void check_writer(const Plan& plan, const PhaseInstance& here, const PlanPhase& before, int vector,
                  Report& report) {
  if (before.writes == vector) return;
  const bool written = std::any_of(plan.phases.begin(), plan.phases.end(),
                                   [&](const PlanPhase& phase) { return phase.writes == vector; });
  report.refuse_in_layer(plan.phases[here.phase], here.layer,
                         written ? Rule::kWaitTooEarly : Rule::kWaitUnsatisfied,
                         "waits for {}, expected the phase before to write it, got {} which writes {}",
                         vector_name(plan, vector), before.name, vector_name(plan, before.writes));
}

void check_waits(const Plan& plan, Report& report) {
  const std::vector<PhaseInstance> sequence = step_sequence(plan);
  for (size_t i = 0; i < sequence.size(); ++i) {
    const auto [index, layer] = sequence[i];
    const PlanPhase& phase = plan.phases[index];
    const int reads = reads_in(phase, layer);
    const int waits_for = phase.waits_for == phase.reads ? reads : phase.waits_for;
    if (reads < 0 && waits_for < 0) {
      report.refuse_in_layer(phase, layer, Rule::kReadWithoutWait,
                             "expected to read what it waits for, got nothing");
    } else if (reads != waits_for) {
      report.refuse_in_layer(phase, layer, Rule::kReadWithoutWait,
                             "reads {}, expected a wait for it, got a wait for {}", vector_name(plan, reads),
                             vector_name(plan, waits_for));
    }
    const PhaseInstance& before = sequence[(i + sequence.size() - 1) % sequence.size()];
    // Who chooses experts waits for their logits too: the router before it has waited for the rest.
    const int last = phase.routes >= 0 ? phase.routes : waits_for;
    if (last >= 0) check_writer(plan, sequence[i], plan.phases[before.phase], last, report);
  }
}

/// Nobody writes what others may still read.
void check_read_written(const Plan& plan, Report& report) {
  for (const PlanPhase& phase : plan.phases) {
    if (phase.writes < 0 || (phase.writes != phase.reads && phase.writes != phase.first_layer_reads))
      continue;
    report.refuse(Rule::kReadWritten, "{}: expected to write another vector than it reads, got {} for both",
                  phase.name, vector_name(plan, phase.writes));
  }
}

/// When, over several steps, one vector is written and read, and when phases show that every CTA has had their input.
struct Uses {
  std::vector<int> writes;
  std::vector<int> last_reads;  // of what each of `writes` wrote; its own time where nobody reads it
  std::vector<int> shown;

  Uses(const Plan& plan, int vector) {
    int time = 0;
    for (int step = 0; step < kStepsUnrolled; ++step) {
      for (const auto& [index, layer] : step_sequence(plan)) {
        const PlanPhase& phase = plan.phases[index];
        const bool reads = reads_in(phase, layer) == vector || phase.routes == vector;
        if (reads && !writes.empty()) last_reads.back() = time;
        if (phase.writes == vector) {
          writes.push_back(time);
          last_reads.push_back(time);
        }
        if (shows_all(plan, phase)) shown.push_back(time);
        ++time;
      }
    }
  }

  /// The first use that takes a place too early if there are `places`; -1: none does. Who writes in phase w has a word of
  /// phase w - 1, which goes back to words of every CTA from the last phase before w that shows all, and each of these to
  /// all that its CTA had read until then.
  int too_early(int places) const {
    for (int use = places; use < std::ssize(writes); ++use) {
      const auto is_between = [&](int time) {
        return time >= last_reads[use - places] && time < writes[use];
      };
      if (std::none_of(shown.begin(), shown.end(), is_between)) return use;
    }
    return -1;
  }
};

void check_places(const Plan& plan, int vector, Report& report) {
  const std::string& name = plan.vectors[vector].name;
  const int places = plan.vectors[vector].places;
  if (places < 1 || places > kMostPlaces) {
    report.refuse(Rule::kOverwritten, "{}: expected 1 or {} places, got {}", name, kMostPlaces, places);
    return;
  }
  // Uses are counted by layers, of one kind or of all.
  const std::set<int> kinds = writing_kinds(plan, vector);
  const bool of_all = std::ssize(kinds) == plan.once() && !kinds.contains(plan.once());
  if (kinds.size() > 1 && !of_all) {
    report.refuse(Rule::kOverwritten, "{}: expected one kind of layers or all {} to write it, got {}", name,
                  plan.once(), kinds.size());
  }
  const Uses uses(plan, vector);
  if (const int use = uses.too_early(places); use >= 0) {
    report.refuse(
        Rule::kOverwritten,
        "{}: read in phase {} and its place written again in phase {}, expected a phase between that "
        "shows a word of every CTA",
        name, uses.last_reads[use - places], uses.writes[use]);
  }
}

/// Whoever reads the cache in a later step has a word of every CTA from behind its fence, which follows its appending.
void check_appends_seen(const Plan& plan, Report& report) {
  for (auto appends = plan.phases.begin(); appends != plan.phases.end(); ++appends) {
    if (!appends->appends) continue;
    const auto sees = [&](const PlanPhase& phase) {
      return phase.layer_kind == appends->layer_kind && shows_all(plan, phase);
    };
    if (std::any_of(std::next(appends), plan.phases.end(), sees)) continue;
    report.refuse(
        Rule::kWaitUnsatisfied,
        "{}: appends to the cache, expected a phase of the layer behind it that shows a word of every CTA, "
        "got none",
        appends->name);
  }
}

/// One phase of its kind of layer appends, and it is `expected`.
void check_appends(const Plan& plan, const PlanPhase& expected, Report& report) {
  for (const PlanPhase& phase : plan.phases) {
    if (phase.layer_kind != expected.layer_kind || phase.appends == (&phase == &expected)) continue;
    report.refuse(Rule::kAppendedElsewhere, "{}: expected {} to append to the cache, got {}", phase.name,
                  expected.name, phase.appends ? phase.name : "no phase");
  }
}

/// See check_append(): of one kind of layers.
void check_append_of(const Plan& plan, int layer_kind, Report& report) {
  const PlanPhase* before = nullptr;
  for (const PlanPhase& phase : plan.phases) {
    if (phase.layer_kind != layer_kind) continue;
    if (phase.kind == PhaseKind::kMatrix && phase.output == OutputKind::kResidual) {
      if (before == nullptr || before->kind != PhaseKind::kAttention) {
        report.refuse(
            Rule::kAppendedElsewhere,
            "{}: expected the first phase that adds to the residual stream right behind attention, got it "
            "behind {}",
            phase.name, before == nullptr ? "nothing" : before->name);
      }
      check_appends(plan, phase, report);
      return;
    }
    before = &phase;
  }
  report.refuse(Rule::kAppendedElsewhere, "step: expected a residual phase right behind attention, got none");
}

}  // namespace

void check_append(const Plan& plan, Report& report) {
  for (int kind = 0; kind < plan.once(); ++kind) check_append_of(plan, kind, report);
  const PlanPhase& last = plan.phases.back();
  if (last.appends) {
    report.refuse(Rule::kAppendedElsewhere,
                  "{}: expected no phase behind the layers to append to the cache, got one", last.name);
  }
}

void check_order(const Plan& plan, Report& report) {
  check_waits(plan, report);
  check_read_written(plan, report);
  check_append(plan, report);
  check_signatures(plan, report);
  for (int v = 0; v < static_cast<int>(plan.vectors.size()); ++v) check_places(plan, v, report);
  check_appends_seen(plan, report);
}

}  // namespace soliton
