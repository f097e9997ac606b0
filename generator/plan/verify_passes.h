// The passes of verify() and what they share: the report that they write to, and what the kernel needs of memory.
#pragma once

#include <fmt/format.h>

#include <set>
#include <string>
#include <utility>
#include <vector>

#include "generator/plan/kernel_plan.h"
#include "generator/plan/verify.h"

namespace soliton {

/// Of a tile in E2M1, that a slot has where warpgroups multiply.
constexpr int kCodeSlotColumns = 256;

/// The same of integers: beside digits those of more than 4 bits, and those of narrow groups, have half as many.
inline int integer_slot_columns(const Plan& plan, WeightFormat format) {
  const RowsShape shape = plan.shape();
  const int columns = kPageColumns / kGroupTiles / shape.slot_chunks * shape.integer_slot_chunks;
  const bool is_wide = format.bits() == 4 && format.group >= kStepColumns;
  return shape.digits > 0 && !is_wide ? columns / 2 : columns;
}

/// Collects violations, each once.
class Report {
 public:
  template <class... Args>
  void refuse(Rule rule, fmt::format_string<Args...> format, Args&&... args) {
    const std::string message = fmt::format(format, std::forward<Args>(args)...);
    refuse_once(message, rule, message);
  }

  /// What may recur in every layer: reported for the first one.
  template <class... Args>
  void refuse_in_layer(const PlanPhase& phase, int layer, Rule rule, fmt::format_string<Args...> format,
                       Args&&... args) {
    const std::string text = fmt::format(format, std::forward<Args>(args)...);
    refuse_once(phase.name + text, rule, fmt::format("{} (layer {}): {}", phase.name, layer, text));
  }

  /// Reports the first violation of a rule with this key.
  void refuse_once(const std::string& key, Rule rule, std::string message) {
    if (reported_.emplace(rule, key).second) violations_.push_back({rule, std::move(message)});
  }

  bool empty() const { return violations_.empty(); }
  std::vector<Violation> take() { return std::move(violations_); }

 private:
  std::set<std::pair<Rule, std::string>> reported_;
  std::vector<Violation> violations_;
};

/// A piece of memory: what the kernel puts there, and the alignment that its accesses want.
struct NeededRegion {
  std::string name;
  int64_t bytes = 0;
  int alignment = 1;
};
std::vector<NeededRegion> needed_workspace(const Plan& plan);

/// Of the sums of tiles that warpgroups exchange: every CTA puts down those of a block twice in turn.
int64_t needed_sums_bytes(const Plan& plan);

inline std::string vector_name(const Plan& plan, int vector) {
  return vector < 0 ? "nothing" : plan.vectors[vector].name;
}

/// The kinds of layers whose phases write a vector.
inline std::set<int> writing_kinds(const Plan& plan, int vector) {
  std::set<int> kinds;
  for (const PlanPhase& phase : plan.phases) {
    if (phase.writes == vector) kinds.insert(phase.layer_kind);
  }
  return kinds;
}

/// Elements between gate and down in the layers in which a phase happens.
inline int ffn_of(const Plan& plan, const PlanPhase& phase) {
  for (size_t layer = 0; layer < plan.layers.size(); ++layer) {
    if (plan.layers[layer].kind == phase.layer_kind) return ffn_of_layer(plan.facts, static_cast<int>(layer));
  }
  return 0;
}

// The passes. The first three make sure of what the others rely on.
void check_numbers(const Plan& plan, Report& report);
void check_structure(const Plan& plan, Report& report);
void check_pieces(const Plan& plan, Report& report);
void check_work(const Plan& plan, Report& report);
void check_formats(const Plan& plan, Report& report);
void check_experts(const Plan& plan, Report& report);
void check_shapes(const Plan& plan, Report& report);
/// Each row of the norms scales what one phase reads; who writes the residual stream names the row of who reads it.
void check_norms(const Plan& plan, Report& report);
void check_order(const Plan& plan, Report& report);
void check_rows(const Plan& plan, Report& report);  // instead of these two
void check_column_slices(const Plan& plan, Report& report);

/// The first residual phase appends to the KV cache what attention kept: every CTA has read the layer's pages by then.
void check_append(const Plan& plan, Report& report);
void check_memory(const Plan& plan, Report& report);
void check_barriers(const Plan& plan, Report& report);

/// What the kernel is compiled for says the same as the plan.
void check_kernel(const Plan& plan, const KernelPlan& kernel, Report& report);

}  // namespace soliton
