#include "generator/plan/verify.h"

#include <iterator>

#include "generator/plan/verify_passes.h"

namespace soliton {
namespace {

// In the order of Rule.
constexpr const char* kRuleNames[] = {"number out of range",
                                      "index out of range",
                                      "name repeated",
                                      "matrix use",
                                      "step shape",
                                      "piece missing",
                                      "page skipped",
                                      "page repeated",
                                      "page with two owners",
                                      "page out of range",
                                      "dealt unlike the kernel",
                                      "page of another card",
                                      "residual moved",
                                      "matrix shape",
                                      "vector shape",
                                      "input kind",
                                      "norm row",
                                      "wait unsatisfied",
                                      "wait too early",
                                      "read without wait",
                                      "read and written",
                                      "not cleared",
                                      "cleared while read",
                                      "cleared too late",
                                      "cleared unlike the kernel",
                                      "appended elsewhere",
                                      "misplaced",
                                      "piece too small",
                                      "vector moved",
                                      "shared memory overlap",
                                      "shared memory exceeded",
                                      "workspace overlap",
                                      "weights overlap",
                                      "weights size",
                                      "registers exceeded",
                                      "threads exceeded",
                                      "too many CTAs",
                                      "parity two ahead",
                                      "barrier count"};
static_assert(std::size(kRuleNames) == static_cast<size_t>(Rule::kBarrierCount) + 1, "each rule has a name");

}  // namespace

const char* rule_name(Rule rule) {
  return kRuleNames[static_cast<int>(rule)];
}

std::vector<Violation> verify(const Plan& plan) {
  Report report;
  check_structure(plan, report);
  if (report.empty()) check_pieces(plan, report);
  if (report.empty()) {
    check_work(plan, report);
    check_formats(plan, report);
    if (plan.rows == 1) {
      check_shapes(plan, report);
      check_order(plan, report);
    } else {
      check_rows(plan, report);
    }
    check_column_slices(plan, report);
    check_memory(plan, report);
    check_barriers(plan, report);
  }
  return report.take();
}

}  // namespace soliton
