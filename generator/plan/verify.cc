#include "generator/plan/verify.h"

#include <iterator>

#include "generator/plan/verify_passes.h"

namespace soliton {
namespace {

// In the order of Rule.
constexpr const char* kRuleNames[] = {
    "number out of range",    "unused number",      "index out of range",
    "name repeated",          "matrix use",         "step shape",
    "piece missing",          "page skipped",       "page repeated",
    "page with two owners",   "page out of range",  "dealt unlike the kernel",
    "page of another card",   "residual moved",     "matrix shape",
    "vector shape",           "input kind",         "norm row",
    "experts unlike",         "wait unsatisfied",   "wait too early",
    "read without wait",      "read and written",   "overwritten",
    "appended elsewhere",     "misplaced",          "piece too small",
    "piece too large",        "vector moved",       "shared memory overlap",
    "shared memory exceeded", "workspace overlap",  "weights overlap",
    "weights size",           "registers exceeded", "threads exceeded",
    "too many CTAs",          "parity two ahead",   "barrier count",
    "kernel unlike the plan"};
static_assert(std::size(kRuleNames) == static_cast<size_t>(Rule::kKernelUnlike) + 1, "each rule has a name");

/// `kernel`: what is compiled; null: what follows from the plan, which is only looked at once that is known to make sense.
std::vector<Violation> judge(const Plan& plan, const KernelPlan* kernel) {
  Report report;
  check_numbers(plan, report);
  check_structure(plan, report);
  if (report.empty()) check_pieces(plan, report);
  if (report.empty()) {
    check_work(plan, report);
    check_formats(plan, report);
    check_experts(plan, report);
    if (plan.rows == 1) {
      check_shapes(plan, report);
      check_order(plan, report);
    } else {
      check_rows(plan, report);
      check_column_slices(plan, report);
    }
    check_memory(plan, report);
    check_barriers(plan, report);
    const PlannedKernel planned(plan);
    check_kernel(plan, kernel == nullptr ? *planned : *kernel, report);
  }
  return report.take();
}

}  // namespace

const char* rule_name(Rule rule) {
  return kRuleNames[static_cast<int>(rule)];
}

std::vector<Violation> verify(const Plan& plan) {
  return judge(plan, nullptr);
}

std::vector<Violation> verify(const Plan& plan, const KernelPlan& kernel) {
  return judge(plan, &kernel);
}

}  // namespace soliton
