// Phases read what they wait for and what the phase before has written in all CTAs; new tokens are appended where it
// is safe.
#include <gtest/gtest.h>

#include "tests/generator/bad_plans.h"

namespace soliton {

const std::vector<BadPlan>& bad_waits() {
  static const std::vector<BadPlan> plans = {
      {.name = "AttentionOfNothing",
       .rule = Rule::kReadWithoutWait,
       .message = "attention (layer 0): expected to read what it waits for, got nothing",
       .damage = [](Plan& plan) { phase(plan, "attention").reads = phase(plan, "attention").waits_for = -1; },
       .choices = {.sync = SyncMode::kCounter}},
      {.name = "PhaseThatWritesWhatItReads",
       .rule = Rule::kReadWritten,
       .message = "o: expected to write another vector than it reads, got heads for both",
       .damage =
           [](Plan& plan) {
             phase(plan, "o").writes = index_of(plan.vectors, "heads");
             read_and_await(plan, "gate_up", "heads");
           },
       .also = {Rule::kOverwritten},
       .choices = {.sync = SyncMode::kCounter}},
      {.name = "NothingAppends",
       .rule = Rule::kAppendedElsewhere,
       .message = "step: expected a residual phase right behind attention, got none",
       .damage =
           [](Plan& plan) {
             for (const char* name : {"o", "down"}) phase(plan, name).output = OutputKind::kSwiglu;
           },
       .also = {Rule::kNormRow, Rule::kMatrixShape, Rule::kVectorShape}},
      {.name = "AppendsBehindDown",
       .rule = Rule::kAppendedElsewhere,
       .message =
           "down: expected the first phase that adds to the residual stream right behind attention, got it "
           "behind gate_up",
       .damage =
           [](Plan& plan) {
             phase(plan, "o").output = OutputKind::kSwiglu;
             place(plan, {});
           },
       .also = {Rule::kNormRow, Rule::kMatrixShape, Rule::kVectorShape}},
      {.name = "WriterMissing",
       .rule = Rule::kWaitUnsatisfied,
       .message =
           "gate_up (layer 0): waits for post_attention, expected the phase before to write it, got o which "
           "writes nothing",
       .damage = [](Plan& plan) { phase(plan, "o").writes = -1; }},
      {.name = "WriterWritesSomethingElse",
       .rule = Rule::kWaitUnsatisfied,
       .message = "attention (layer 0): waits for qkv, expected the phase before to write it, got qkv which "
                  "writes ffn",
       .damage = [](Plan& plan) { phase(plan, "qkv").writes = index_of(plan.vectors, "ffn"); },
       .also = {Rule::kVectorShape}},
      {.name = "CandidateMissing",
       .rule = Rule::kVectorShape,
       .message = "candidates: expected 5 elements, got 4",
       .damage = [](Plan& plan) { --vector(plan, "candidates").elements; }},
      {.name = "VectorOfALaterPhase",
       .rule = Rule::kWaitTooEarly,
       .message = "gate_up (layer 0): waits for hidden, expected the phase before to write it, got o which "
                  "writes post_attention",
       .damage = [](Plan& plan) { read_and_await(plan, "gate_up", "hidden"); }},
      {.name = "PhasesInTheWrongOrder",
       .rule = Rule::kWaitTooEarly,
       .message = "gate_up (layer 0): waits for post_attention, expected the phase before to write it, got "
                  "attention "
                  "which writes heads",
       .damage = [](Plan& plan) { std::swap(phase(plan, "o"), phase(plan, "gate_up")); },
       .also = {Rule::kNormRow, Rule::kAppendedElsewhere}},
      {.name = "StepThatDoesNotBeginWithTheCandidates",
       .rule = Rule::kWaitTooEarly,
       .message = "qkv (layer 0): waits for hidden, expected the phase before to write it, got lm_head which "
                  "writes candidates",
       .damage = [](Plan& plan) { phase(plan, "qkv").first_layer_reads = -1; },
       .also = {Rule::kInputKind}},
      {.name = "NoWait",
       .rule = Rule::kReadWithoutWait,
       .message = "gate_up (layer 0): reads post_attention, expected a wait for it, got a wait for nothing",
       .damage = [](Plan& plan) { phase(plan, "gate_up").waits_for = -1; }},
      {.name = "WaitForAnotherVector",
       .rule = Rule::kReadWithoutWait,
       .message = "gate_up (layer 0): reads heads, expected a wait for it, got a wait for post_attention",
       .damage = [](Plan& plan) { read_instead(plan, "gate_up", "heads"); },
       .choices = {.sync = SyncMode::kCounter}},
      {.name = "LayerZeroReadsTheCandidatesUnawaited",
       .rule = Rule::kReadWithoutWait,
       .message = "qkv (layer 0): reads candidates, expected a wait for it, got a wait for ffn",
       .damage = [](Plan& plan) { phase(plan, "qkv").waits_for = index_of(plan.vectors, "ffn"); },
       .also = {Rule::kWaitTooEarly}},
      {.name = "AppendsInNoPhase",
       .rule = Rule::kAppendedElsewhere,
       .message = "o: expected o to append to the cache, got no phase",
       .damage = [](Plan& plan) { phase(plan, "o").appends = false; }},
      {.name = "AppendsInTheOtherResidualPhase",
       .rule = Rule::kAppendedElsewhere,
       .message = "down: expected o to append to the cache, got down",
       .damage = [](Plan& plan) { std::swap(phase(plan, "o").appends, phase(plan, "down").appends); },
       .also = {Rule::kWaitUnsatisfied}},
      {.name = "AppendsTwice",
       .rule = Rule::kAppendedElsewhere,
       .message = "gate_up: expected o to append to the cache, got gate_up",
       .damage = [](Plan& plan) { phase(plan, "gate_up").appends = true; }},
      {.name = "AppendsWhileOthersAttend",
       .rule = Rule::kAppendedElsewhere,
       .message = "attention: expected o to append to the cache, got attention",
       .damage = [](Plan& plan) { std::swap(phase(plan, "o").appends, phase(plan, "attention").appends); }},
  };
  return plans;
}
}  // namespace soliton
