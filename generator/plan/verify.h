// Refuses a plan that could race, deadlock, overlap, or skip or repeat work. Looks at the data of the plan alone and
// trusts no formula that made it.
#pragma once

#include <string>
#include <vector>

#include "generator/plan/plan.h"

namespace soliton {

/// What a refused plan does wrong.
enum class Rule {
  kPageSkipped,        // a page of weights that nobody reads
  kPageRepeated,       // a page that its owner reads twice
  kPageTwoOwners,      // a page that two CTAs read
  kPageOutOfRange,     // a tile that the matrix does not have
  kWaitUnsatisfied,    // a wait for a vector that is never written, or not by every CTA
  kWaitTooEarly,       // a wait for a vector that is written later
  kReadWithoutWait,    // a vector is read that was not waited for
  kNotCleared,         // a vector is written again without having been cleared
  kClearedWhileRead,   // a vector is cleared while it may still be read
  kClearedTooLate,     // a vector is cleared so late that old content could be taken for new
  kSharedOverlap,      // pieces of shared memory overlap
  kSharedExceeded,     // more shared memory than a CTA can have
  kWorkspaceOverlap,   // pieces of the workspace overlap
  kRegistersExceeded,  // more registers than an SM has, or than a thread can have
  kThreadsExceeded,
  kTooManyCtas,        // CTAs that could not all run at once
  kParityTwoAhead,     // a wait by parity could be two phases away from its barrier
  kBarrierCount,       // a barrier completes without, or never with, its arrivals
  kResidualMoved,      // a row of the residual stream has two owners
  kWeightsOverlap,     // packed matrices overlap
};

const char* rule_name(Rule rule);

struct Violation {
  Rule rule;
  std::string message;  // one line: what, where, expected and found
};

/// All violations of a plan; empty for a sound one.
std::vector<Violation> verify(const Plan& plan);

}  // namespace soliton
