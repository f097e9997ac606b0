#include "runtime/bench/tune/search.h"

#include <algorithm>
#include <cmath>

#include "models/error.h"

namespace soliton {
namespace {

class Search {
 public:
  Search(Trials& trials, const std::function<void(const Trial&)>& report)
      : trials_(trials), report_(report) {}

  void begin() {
    const Trials::Planned planned = trials_.plan({});
    if (!planned.refusal.empty()) throw Error(ExitCode::kMismatch, planned.refusal);
    const std::string refusal = trials_.build({planned.values}).front();
    if (!refusal.empty()) throw Error(ExitCode::kMismatch, refusal);
    result_.trials.push_back({.choices = {}, .values = planned.values, .refusal = {}, .us = {}});
    measure(0);
  }

  /// Tries all, and lets the fastest take the place of the best if it is faster by more than the noise.
  void sweep(const std::vector<PlanChoices>& candidates) {
    const std::vector<size_t> ready = build(candidates);
    if (ready.empty()) return;
    measure(result_.best);
    size_t fastest = result_.best;
    for (const size_t index : ready) {
      if (measure_candidate(index) && mean(index) < mean(fastest)) fastest = index;
    }
    if (beats(fastest, result_.best)) result_.best = fastest;
  }

  void try_knob(const Knob& knob, const GpuSpec& gpu) {
    std::vector<PlanChoices> candidates;
    for (const int value : knob.candidates(gpu)) {
      if (!knob.range.contains(value)) continue;
      candidates.push_back(result_.trials[result_.best].choices);
      knob.choose(candidates.back(), value);
    }
    sweep(candidates);
  }

  /// The best of many may owe its place to luck.
  void confirm() {
    if (result_.best == 0) return;
    measure(0);
    measure(result_.best);
    if (!beats(result_.best, 0)) result_.best = 0;
  }

  SearchResult finish() {
    const Trial& best = result_.trials[result_.best];
    result_.chosen = best.choices;
    for (const Knob& knob : kKnobs) {
      PlanChoices without = result_.chosen;
      knob.choose(without, std::nullopt);
      const Trials::Planned planned = trials_.plan(without);
      if (planned.refusal.empty() && planned.values == best.values) result_.chosen = without;
    }
    return std::move(result_);
  }

 private:
  double mean(size_t index) const { return geometric_mean(result_.trials[index].us); }
  bool beats(size_t index, size_t other) const { return mean(index) < mean(other) * (1 - kNoise); }

  bool is_known(const KnobValues& values) const {
    return std::any_of(result_.trials.begin(), result_.trials.end(),
                       [&](const Trial& trial) { return trial.values == values; });
  }

  /// Appends the candidates that are new to the trials. Returns those that have a kernel.
  std::vector<size_t> build(const std::vector<PlanChoices>& candidates) {
    std::vector<size_t> planned;
    std::vector<KnobValues> values;
    for (const PlanChoices& choices : candidates) {
      const Trials::Planned plan = trials_.plan(choices);
      if (!plan.refusal.empty()) {
        result_.trials.push_back({.choices = choices, .values = {}, .refusal = plan.refusal, .us = {}});
        report_(result_.trials.back());
      } else if (!is_known(plan.values)) {
        planned.push_back(result_.trials.size());
        values.push_back(plan.values);
        result_.trials.push_back({.choices = choices, .values = plan.values, .refusal = {}, .us = {}});
      }
    }
    const std::vector<std::string> refusals = trials_.build(values);
    std::vector<size_t> ready;
    for (size_t i = 0; i < planned.size(); ++i) {
      Trial& trial = result_.trials[planned[i]];
      trial.refusal = refusals[i];
      if (trial.refusal.empty()) {
        ready.push_back(planned[i]);
      } else {
        report_(trial);
      }
    }
    return ready;
  }

  void measure(size_t index) {
    Trial& trial = result_.trials[index];
    trial.us = trials_.measure(trial.values);
    report_(trial);
  }

  bool measure_candidate(size_t index) {
    try {
      measure(index);
      return true;
    } catch (const Error& error) {
      result_.trials[index].refusal = error.what();
      report_(result_.trials[index]);
      return false;
    }
  }

  Trials& trials_;
  const std::function<void(const Trial&)>& report_;
  SearchResult result_;
};

}  // namespace

double geometric_mean(std::span<const double> values) {
  double sum = 0;
  for (const double value : values) sum += std::log(value);
  return std::exp(sum / static_cast<double>(values.size()));
}

SearchResult search(Trials& trials, const GpuSpec& gpu, const std::optional<PlanChoices>& start,
                    std::span<const Knob> knobs, const std::function<void(const Trial&)>& report) {
  Search search(trials, report);
  search.begin();
  if (start) search.sweep({*start});
  for (const Knob& knob : knobs) search.try_knob(knob, gpu);
  search.confirm();
  return search.finish();
}

}  // namespace soliton
