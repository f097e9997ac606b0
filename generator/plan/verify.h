// Refuses a plan that could race, deadlock, overlap, or skip or repeat work, or that says something else than
// the kernel will do. Looks at the data of the plan alone and trusts no formula that made it.
#pragma once

#include <string>
#include <vector>

#include "generator/plan/plan.h"

namespace soliton {

/// What a refused plan does wrong.
enum class Rule {
  // Structure: all other rules rely on these, and are judged only when these hold.
  kNumberOutOfRange,  // a count that no kernel can have
  kUnusedNumber,      // a number that its kind of plan or phase has no use for, and that says something
  kIndexOutOfRange,   // an index of a vector or matrix that there is not
  kNameRepeated,      // two parts of one name
  kMatrixUse,         // a matrix without its phase, or a phase without its matrix
  kStepShape,  // not one attention phase, or not one greedy phase, once a token and last; or heads that are
               // normed elsewhere than between q, k, v and attention
  kPieceMissing,  // a barrier or piece of memory is not there once
  // Work.
  kPageSkipped,      // a page of weights that nobody reads
  kPageRepeated,     // a page that its owner reads twice
  kPageTwoOwners,    // a page that two CTAs read
  kPageOutOfRange,   // a tile that the matrix does not have
  kDealtUnlike,      // tiles dealt otherwise than the kernel deals them
  kPageOfOtherCard,  // a page that its reader's card does not hold
  kResidualMoved,    // a row of the residual stream has two owners
  // Shapes.
  kMatrixShape,    // a matrix that does not fit its phase
  kVectorShape,    // a vector that does not fit the phase that reads or writes it
  kInputKind,      // an input that its phase does not bring in as it should
  kNormRow,        // a row of the norms that there is not, or is not used once
  kExpertsUnlike,  // matrices of experts, or a router, where there are none, or not as the model has them
  // Order.
  kWaitUnsatisfied,    // a wait for a vector that is never written, or not by every CTA
  kWaitTooEarly,       // a wait for a vector that is written later
  kReadWithoutWait,    // a vector is read that was not waited for
  kReadWritten,        // a phase reads the vector that it writes
  kOverwritten,        // a place is written again while it may still be read, or not in its turn
  kAppendedElsewhere,  // the phase that appends to the KV cache does not follow attention
  // Memory, and what the card can hold.
  kMisplaced,          // an offset that is negative or not aligned
  kPieceTooSmall,      // a piece of memory too small for what the kernel puts there
  kPieceTooLarge,      // or larger
  kVectorMoved,        // a vector lies elsewhere than its piece of the workspace
  kSharedOverlap,      // pieces of shared memory overlap
  kSharedExceeded,     // more shared memory than a CTA can have
  kWorkspaceOverlap,   // pieces of the workspace overlap
  kWeightsOverlap,     // packed matrices overlap
  kWeightsSize,        // bytes behind the last packed matrix
  kRegistersExceeded,  // more registers than an SM has, or than a thread can have
  kThreadsExceeded,
  kTooManyCtas,  // CTAs that could not all run at once
  // Barriers.
  kParityTwoAhead,  // a wait by parity could be two phases away from its barrier
  kBarrierCount,    // a barrier completes without, or never with, its arrivals
  // The kernel.
  kKernelUnlike,  // the kernel is compiled for something else than the plan says
};

const char* rule_name(Rule rule);

struct Violation {
  Rule rule;
  std::string message;  // one line: what, where, expected and found
};

/// All violations of a plan; empty for a sound one. What recurs in every layer is reported for the first.
/// While the structure is wrong, only that is reported.
std::vector<Violation> verify(const Plan& plan);

/// The same where the kernel is to be compiled for `kernel`.
std::vector<Violation> verify(const Plan& plan, const KernelPlan& kernel);

}  // namespace soliton
