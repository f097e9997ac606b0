// Whoever reads a vector has waited for it, the phase before wrote it in all CTAs, and old content is cleared
// in time.
#include <algorithm>

#include "generator/plan/verify_passes.h"

namespace soliton {
namespace {

// The distances that templates/one_row/epilogue.cuh argues for: a vector read in phase r may be cleared from
// phase r + 1 on, and cleared in phase c it may be written again from phase c + 3 on.
constexpr int kReadToClear = 1;
constexpr int kClearToWrite = 3;
constexpr int kClearToWriteCandidates = 4;  // which are polled for before a phase has begun
constexpr int kStepsUnrolled = 3;

bool contains(const std::vector<int>& list, int vector) {
  return std::find(list.begin(), list.end(), vector) != list.end();
}

/// What a phase reads in a layer.
int reads_in(const PlanPhase& phase, int layer) {
  return layer == 0 && phase.first_layer_reads >= 0 ? phase.first_layer_reads : phase.reads;
}

/// A phase's output must show, for every CTA, that this CTA has had the phase's input.
void check_all_write(const Plan& plan, const PlanPhase& phase, int vector, Report& report) {
  const PlanVector& written = plan.vectors[vector];
  if (written.signatures == plan.all_ctas()) return;
  if (written.signatures != 0) {
    report.refuse(Rule::kWaitUnsatisfied, "{}: expected 0 or {} signatures, got {}", written.name,
                  plan.all_ctas(), written.signatures);
    return;
  }
  if (phase.kind == PhaseKind::kMatrix && phase.output == OutputKind::kLogits)
    return;  // every CTA makes a candidate
  for (int cta = 0; cta < plan.all_ctas(); ++cta) {
    // How attention is shared depends on the context: at any length some CTA may have nothing to do.
    const bool has_tile = phase.kind == PhaseKind::kMatrix && cta < static_cast<int>(phase.runs.size()) &&
                          phase.runs[cta].count > 0;
    if (has_tile) continue;
    report.refuse(Rule::kWaitUnsatisfied, "{}: CTA {} has no tile of {}, expected signatures, got none",
                  written.name, cta, phase.name);
    return;
  }
}

/// Attention reads the words of its heads only: they say nothing about the CTAs that wrote the others.
void check_signed(const Plan& plan, int vector, Report& report) {
  if (plan.vectors[vector].signatures > 0) return;
  report.refuse(Rule::kWaitUnsatisfied, "{}: attention reads a part of it, expected signatures, got none",
                plan.vectors[vector].name);
}

/// A vector that is waited for was written in the phase before.
void check_writer(const Plan& plan, const PhaseInstance& here, const PlanPhase& before, int vector,
                  Report& report) {
  if (before.writes == vector) {
    check_all_write(plan, before, vector, report);
    if (plan.phases[here.phase].kind == PhaseKind::kAttention) check_signed(plan, vector, report);
    return;
  }
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
    if (waits_for >= 0) check_writer(plan, sequence[i], plan.phases[before.phase], waits_for, report);
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

/// What one vector goes through, in the order of time. Each function returns false if that was too early or
/// too late, and reports it.
class History {
 public:
  History(const std::string& name, int clear_to_write, Report& report)
      : name_(name), clear_to_write_(clear_to_write), report_(report) {}

  bool read(int time) {
    last_read_ = time;
    if (last_write_ < 0 || last_clear_ <= last_write_) return true;
    return refuse(Rule::kClearedWhileRead, "cleared in phase {} and read in phase {}, written in phase {}",
                  last_clear_, time, last_write_);
  }

  bool clear(int time) {
    if (last_read_ >= 0 && time < last_read_ + kReadToClear) {
      return refuse(Rule::kClearedWhileRead,
                    "cleared in phase {}, expected phase {} or later: it is read in phase {}", time,
                    last_read_ + kReadToClear, last_read_);
    }
    if (last_write_ > last_read_) {
      return refuse(Rule::kClearedWhileRead, "cleared in phase {} before anyone read what phase {} wrote",
                    time, last_write_);
    }
    last_clear_ = time;
    return true;
  }

  bool write(int time) {
    if (last_write_ >= 0 && last_clear_ < last_write_) {
      return refuse(Rule::kNotCleared, "written in phases {} and {}, expected a phase between that clears it",
                    last_write_, time);
    }
    if (last_write_ >= 0 && time < last_clear_ + clear_to_write_) {
      return refuse(Rule::kClearedTooLate,
                    "cleared in phase {}, expected phase {} or earlier: it is written in phase {}",
                    last_clear_, time - clear_to_write_, time);
    }
    last_write_ = time;
    return true;
  }

 private:
  template <class... Args>
  bool refuse(Rule rule, fmt::format_string<Args...> format, Args&&... args) {
    report_.refuse(rule, "{}: {}", name_, fmt::format(format, std::forward<Args>(args)...));
    return false;
  }

  const std::string& name_;
  const int clear_to_write_;
  Report& report_;
  int last_read_ = -1;
  int last_write_ = -1;
  int last_clear_ = -1;
};

/// Clearing rules of one vector over several steps, up to the first that is broken.
void check_clears(const Plan& plan, int vector, Report& report) {
  const bool is_late = vector == plan.candidates();
  History history(plan.vectors[vector].name, is_late ? kClearToWriteCandidates : kClearToWrite, report);
  int time = 0;
  for (int step = 0; step < kStepsUnrolled; ++step) {
    for (const auto& [index, layer] : step_sequence(plan)) {
      const PlanPhase& phase = plan.phases[index];
      const bool clears = contains(phase.clears, vector) ||
                          (layer == 0 && step > 0 && contains(phase.first_layer_clears, vector));
      if (reads_in(phase, layer) == vector && !history.read(time)) return;
      if (clears && !history.clear(time)) return;
      if (phase.writes == vector && !history.write(time)) return;
      ++time;
    }
  }
}

/// The kernel clears one vector a phase, and the candidates in attention of layer 0.
void check_clears_of_kernel(const Plan& plan, Report& report) {
  const int candidates = plan.candidates();
  for (const PlanPhase& phase : plan.phases) {
    if (phase.clears.size() > 1) {
      report.refuse(Rule::kClearedUnlike, "{}: expected to clear one vector at most, got {}", phase.name,
                    phase.clears.size());
    }
    std::vector<int> expected;
    if (phase.kind == PhaseKind::kAttention && candidates >= 0) expected = {candidates};
    if (phase.first_layer_clears == expected) continue;
    const auto first = [&](const std::vector<int>& list) {
      return vector_name(plan, list.empty() ? -1 : list[0]);
    };
    report.refuse(Rule::kClearedUnlike, "{}: expected to clear {} more in layer 0 ({}), got {} ({})",
                  phase.name, expected.size(), first(expected), phase.first_layer_clears.size(),
                  first(phase.first_layer_clears));
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
  if (plan.sync != SyncMode::kSelfValidating) return;  // under the grid counter nothing is cleared
  for (int v = 0; v < static_cast<int>(plan.vectors.size()); ++v) check_clears(plan, v, report);
  check_clears_of_kernel(plan, report);
}

}  // namespace soliton
