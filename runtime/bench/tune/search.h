// A search over the planner's knobs, one after the other, for the plan that decodes fastest. What planning,
// building and measuring mean is the caller's business, so that tests can plant an optimum.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "generator/knobs.h"

namespace soliton {

/// A plan must be faster than the best so far by more than this share to take its place.
constexpr double kNoise = 0.003;

/// What the search tries plans with. The values of the knobs name a plan.
class Trials {
 public:
  struct Planned {
    KnobValues values{};
    std::string refusal = {};  // why there is no such plan; empty if there is
  };

  virtual ~Trials() = default;
  virtual Planned plan(const PlanChoices& choices) = 0;
  /// Makes kernels of plans, all at once. Of each: why it is none to measure; empty if it is one.
  virtual std::vector<std::string> build(const std::vector<KnobValues>& plans) = 0;
  /// Time of a token in us at each depth, of a plan that was built. Throws Error if the kernel does not run.
  virtual std::vector<double> measure(const KnobValues& plan) = 0;
};

struct Trial {
  PlanChoices choices;  // none: the planner's own choice
  KnobValues values{};
  std::string refusal;     // why it was skipped; empty if it was measured
  std::vector<double> us;  // of a token at each depth, as last measured
};

struct SearchResult {
  std::vector<Trial> trials;  // the planner's own choice first
  size_t best = 0;            // in `trials`
  PlanChoices chosen;  // by `best`, without what the planner would choose anyway; none if that is its own
};

/// Measures the planner's own choice, then `start` if there is one, then the candidates of each knob in turn
/// beside the best so far, which is measured again with each knob. In the end the best has to beat the
/// planner's own choice once more. Calls `report` with each trial that was measured or skipped, and each time.
/// Throws Error (kMismatch) if the planner's own choice is no kernel, and what measuring it throws.
SearchResult search(Trials& trials, const GpuSpec& gpu, const std::optional<PlanChoices>& start,
                    std::span<const Knob> knobs, const std::function<void(const Trial&)>& report);

double geometric_mean(std::span<const double> values);

}  // namespace soliton
