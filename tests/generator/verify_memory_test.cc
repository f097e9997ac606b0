// Pieces of memory are where the kernel can use them, large enough and apart; and the card can hold the launch.
#include <gtest/gtest.h>

#include "tests/generator/bad_plans.h"

namespace soliton {

const std::vector<BadPlan>& bad_memory() {
  static const std::vector<BadPlan> plans = {
      {.name = "VectorBeforeTheWorkspace",
       .rule = Rule::kMisplaced,
       .message = "workspace: heads: expected an offset of 0 or more, a multiple of 16, got -2048",
       .damage = [](Plan& plan) { move_vector(plan, "heads", -2 * vector(plan, "heads").bytes()); }},
      {.name = "VectorOffItsAlignment",
       .rule = Rule::kMisplaced,
       .message = "workspace: heads: expected an offset of 0 or more, a multiple of 16, got 2056",
       .damage = [](Plan& plan) { move_vector(plan, "heads", vector(plan, "heads").offset + 8); },
       .also = {Rule::kWorkspaceOverlap}},
      {.name = "MatrixOffItsAlignment",
       .rule = Rule::kMisplaced,
       .message = "matrix lm_head: expected an offset of 0 or more, a multiple of 16, got 8",
       .damage =
           [](Plan& plan) {
             matrix(plan, "lm_head").offset += 8;
             plan.weight_bytes += 8;
           }},
      {.name = "MatrixBeforeTheWeights",
       .rule = Rule::kMisplaced,
       .message = "matrix lm_head: expected an offset of 0 or more, a multiple of 16, got -10485760",
       .damage =
           [](Plan& plan) {
             PlanMatrix& lm_head = matrix(plan, "lm_head");
             lm_head.offset = -plan.layers.back().weights - lm_head.layer_bytes();
             plan.weight_bytes -= lm_head.layer_bytes();
           }},
      {.name = "LayersOffTheirAlignment",
       .rule = Rule::kMisplaced,
       .message = "layer 1: expected an offset of 0 or more, a multiple of 16, got 1572872",
       .damage =
           [](Plan& plan) {
             for (size_t layer = 1; layer < plan.layers.size(); ++layer)
               plan.layers[layer].weights += 8 * static_cast<int64_t>(layer);
             plan.weight_bytes += 8ll * plan.facts.num_layers;
           }},
      {.name = "PagesBeforeSharedMemory",
       .rule = Rule::kMisplaced,
       .message = "shared memory: pages: expected an offset of 0 or more, a multiple of 16, got -16",
       .damage = [](Plan& plan) { shared(plan, "pages").offset = -16; }},
      {.name = "RingWithoutItsLastPage",
       .rule = Rule::kPieceTooSmall,
       .message = "shared memory: pages: expected 212992 bytes or more, got 196608",
       .damage = [](Plan& plan) { shared(plan, "pages").bytes -= kPageBytes; }},
      {.name = "InputWithoutItsLowParts",
       .rule = Rule::kPieceTooSmall,
       .message = "shared memory: x: expected 6272 bytes or more, got 3136",
       .damage = [](Plan& plan) { shared(plan, "x").bytes /= 2; }},
      {.name = "TilesTooSmall",
       .rule = Rule::kPieceTooSmall,
       .message = "shared memory: tiles: expected 1024 bytes or more, got 1020",
       .damage = [](Plan& plan) { shared(plan, "tiles").bytes -= 4; }},
      {.name = "StatusTooSmall",
       .rule = Rule::kPieceTooSmall,
       .message = "shared memory: status: expected 192 bytes or more, got 160",
       .damage = [](Plan& plan) { shared(plan, "status").bytes -= 32; }},
      {.name = "ResidualTooSmall",
       .rule = Rule::kPieceTooSmall,
       .message = "shared memory: residual: expected 256 bytes or more, got 252",
       .damage = [](Plan& plan) { shared(plan, "residual").bytes -= 4; }},
      {.name = "TokenTooSmall",
       .rule = Rule::kPieceTooSmall,
       .message = "shared memory: token: expected 1024 bytes or more, got 1020",
       .damage = [](Plan& plan) { shared(plan, "token").bytes -= 4; }},
      {.name = "SquaresTooSmall",
       .rule = Rule::kPieceTooSmall,
       .message = "shared memory: squares: expected 32 bytes or more, got 28",
       .damage = [](Plan& plan) { shared(plan, "squares").bytes -= 4; }},
      {.name = "DecisionTooSmall",
       .rule = Rule::kPieceTooSmall,
       .message = "shared memory: decision: expected 32 bytes or more, got 28",
       .damage = [](Plan& plan) { shared(plan, "decision").bytes -= 4; }},
      {.name = "BarriersTooSmall",
       .rule = Rule::kPieceTooSmall,
       .message = "shared memory: barriers: expected 360 bytes or more, got 352",
       .damage = [](Plan& plan) { shared(plan, "barriers").bytes -= 8; }},
      {.name = "PartialsTooSmall",
       .rule = Rule::kPieceTooSmall,
       .message = "workspace: partials: expected 4224 bytes or more, got 4220",
       .damage = [](Plan& plan) { workspace(plan, "partials").bytes -= 4; }},
      {.name = "CountersTooSmall",
       .rule = Rule::kPieceTooSmall,
       .message = "workspace: counters: expected 512 bytes or more, got 508",
       .damage = [](Plan& plan) { workspace(plan, "counters").bytes -= 4; }},
      {.name = "VectorLargerThanItsPiece",
       .rule = Rule::kPieceTooSmall,
       .message = "workspace: ffn: expected 3072 bytes or more, got 3056",
       .damage = [](Plan& plan) { workspace(plan, "ffn").bytes -= 16; }},
      {.name = "BarriersWithRoomForMore",
       .rule = Rule::kPieceTooLarge,
       .message = "shared memory: barriers: expected no more than 360 bytes, got 361",
       .damage = [](Plan& plan) { ++shared(plan, "barriers").bytes; }},
      {.name = "VectorBesideItsPiece",
       .rule = Rule::kVectorMoved,
       .message = "qkv: expected to lie at 16 as in the workspace, got 0",
       .damage = [](Plan& plan) { workspace(plan, "qkv").offset += 16; }},
      {.name = "BytesBehindTheWeights",
       .rule = Rule::kWeightsSize,
       .message = "packed weights: expected to end with the last matrix at byte 10485760, got 10485761",
       .damage = [](Plan& plan) { ++plan.weight_bytes; }},
      {.name = "VectorsOfBothModesOverlap",
       .rule = Rule::kWorkspaceOverlap,
       .message = "workspace: post_attention ends at 4096, expected before hidden which begins at 3072",
       .damage = [](Plan& plan) { move_vector(plan, "hidden", vector(plan, "post_attention").offset); },
       .choices = {.sync = SyncMode::kCounter}},
      {.name = "InputUnderTheLastPage",
       .rule = Rule::kSharedOverlap,
       .message = "shared memory: pages ends at 212992, expected before x which begins at 212976",
       .damage = [](Plan& plan) { shared(plan, "x").offset -= 16; }},
      {.name = "ResidualUnderTheTiles",
       .rule = Rule::kSharedOverlap,
       .message = "shared memory: tiles ends at 220288, expected before residual which begins at 220284",
       .damage = [](Plan& plan) { shared(plan, "residual").offset -= 4; }},
      {.name = "PieceWithinAnother",
       .rule = Rule::kSharedOverlap,
       .message = "shared memory: pages ends at 212992, expected before decision which begins at 1024",
       .damage = [](Plan& plan) { shared(plan, "decision").offset = 1024; }},
      {.name = "OneByteTooManyOfSharedMemory",
       .rule = Rule::kSharedExceeded,
       .message = "shared memory: barriers ends at byte 222200, expected at most 222199",
       .damage =
           [](Plan& plan) {
             plan.limits.max_shared_bytes_per_block = static_cast<int>(plan.shared_bytes()) - 1;
           }},
      {.name = "RingTooLarge",
       .rule = Rule::kSharedExceeded,
       .message = "shared memory: x ends at byte 232448, expected at most 230000",
       .damage =
           [](Plan& plan) {
             plan.limits.max_shared_bytes_per_block = 230000;
             shared(plan, "x").offset = 232448 - shared(plan, "x").bytes;
           },
       .also = {Rule::kSharedOverlap}},
      {.name = "VectorsOverlap",
       .rule = Rule::kWorkspaceOverlap,
       .message = "workspace: qkv ends at 2048, expected before heads which begins at 2032",
       .damage = [](Plan& plan) { vector(plan, "heads").offset = vector(plan, "qkv").bytes() - 16; },
       .also = {Rule::kVectorMoved}},
      {.name = "SecondPlaceReachesIntoTheNextVector",
       .rule = Rule::kWorkspaceOverlap,
       .message = "workspace: ffn ends at 10240, expected before hidden which begins at 7168",
       .damage = [](Plan& plan) { vector(plan, "ffn").places = 2; },
       .also = {Rule::kPieceTooSmall}},
      {.name = "PartialsOverCandidates",
       .rule = Rule::kWorkspaceOverlap,
       .message = "workspace: candidates ends at 8232, expected before partials which begins at 8192",
       .damage = [](Plan& plan) { workspace(plan, "partials").offset = vector(plan, "candidates").offset; }},
      {.name = "VectorBehindTheWorkspace",
       .rule = Rule::kWorkspaceOverlap,
       .message = "workspace: ffn ends at byte 16384, expected at most 13312",
       .damage = [](Plan& plan) { vector(plan, "ffn").offset = plan.workspace_bytes(); },
       .also = {Rule::kVectorMoved}},
      {.name = "MatricesOverlap",
       .rule = Rule::kWeightsOverlap,
       .message = "packed weights: qkv[0] ends at 262144, expected before o[0] which begins at 262128",
       .damage = [](Plan& plan) { matrix(plan, "o").offset -= 16; }},
      {.name = "LayersOverlap",
       .rule = Rule::kWeightsOverlap,
       .message = "packed weights: down[0] ends at 1572864, expected before qkv[1] which begins at 1572848",
       .damage =
           [](Plan& plan) {
             for (size_t layer = 1; layer < plan.layers.size() - 1; ++layer)
               plan.layers[layer].weights -= 16 * static_cast<int64_t>(layer);
           }},
      {.name = "LmHeadOverTheLastLayer",
       .rule = Rule::kWeightsOverlap,
       .message =
           "packed weights: down[5] ends at 9437184, expected before lm_head[6] which begins at 9437168",
       .damage = [](Plan& plan) { plan.layers.back().weights -= 16; },
       .also = {Rule::kWeightsSize}},
      {.name = "MatrixOfEveryLayerThatStandsOnce",
       .rule = Rule::kMatrixShape,
       .message = "matrix o: expected 0 as kind of layer, got 1",
       .damage =
           [](Plan& plan) {
             matrix(plan, "o").layer_kind = 1;
             place(plan, {});
           }},
      {.name = "MatrixBehindTheWeights",
       .rule = Rule::kWeightsOverlap,
       .message = "packed weights: lm_head[6] ends at byte 10485760, expected at most 10485759",
       .damage = [](Plan& plan) { --plan.weight_bytes; }},
      {.name = "RegistersOfAThread",
       .rule = Rule::kRegistersExceeded,
       .message =
           "registers: expected 1 to 255 a thread and up to 65536 an SM, got 256 a thread, allotted as "
           "256, of 224 threads",
       .damage = [](Plan& plan) { plan.registers_per_thread = 256; }},
      {.name = "RegistersOfAllThreads",
       .rule = Rule::kRegistersExceeded,
       .message =
           "registers: expected 1 to 255 a thread and up to 65536 an SM, got 192 a thread, allotted as "
           "192, of 352 threads",
       .damage = [](Plan& plan) { plan.registers_per_thread += 8; },
       .choices = {.consumer_warps = 8}},
      {.name = "RegistersThatAreRoundedUp",
       .rule = Rule::kRegistersExceeded,
       .message = "registers: expected 1 to 255 a thread and up to 65536 an SM, got 185 a thread, allotted "
                  "as 192, of "
                  "352 threads",
       .damage = [](Plan& plan) { plan.registers_per_thread += 1; },
       .choices = {.consumer_warps = 8}},
      {.name = "NoRegisters",
       .rule = Rule::kRegistersExceeded,
       .message = "registers: expected 1 to 255 a thread and up to 65536 an SM, got 0 a thread, allotted as "
                  "0, of 224 "
                  "threads",
       .damage = [](Plan& plan) { plan.registers_per_thread = 0; }},
      {.name = "TooManyWarps",
       .rule = Rule::kThreadsExceeded,
       .message = "threads per CTA: expected at most 192, got 224",
       .damage = [](Plan& plan) { plan.limits.max_threads_per_block = plan.threads() - 32; }},
      {.name = "MoreCtasThanSms",
       .rule = Rule::kTooManyCtas,
       .message = "CTAs: expected 1 to 3, one per SM, got 4",
       .damage = [](Plan& plan) { plan.limits.num_sms = plan.num_ctas - 1; }},
      {.name = "NoCta",
       .rule = Rule::kTooManyCtas,
       .message = "CTAs: expected 1 to 4, one per SM, got 0",
       .damage = [](Plan& plan) { plan.num_ctas = 0; }},
  };
  return plans;
}

namespace {

// A chunk of down's input, which is wider than that; all of an input that is narrower.
TEST(Verify, SharedMemoryHoldsAChunkOfAnInput) {
  const auto refused_x = [](Plan plan) {
    shared(plan, "x").bytes -= 16;
    return refusals(plan);
  };
  Plan plan = shipped_plan("llama-3.1-8b", "h200");
  EXPECT_EQ(refused_x(plan), "piece too small: shared memory: x: expected 16384 bytes or more, got 16368\n");
  plan.chunk_columns += kPageColumns;
  EXPECT_EQ(refusals(plan), "piece too small: shared memory: x: expected 18432 bytes or more, got 16384\n");

  ModelConfig narrow = shipped_model("tiny-stories");
  narrow.facts.hidden = narrow.facts.ffn = 1664;  // three pages and a quarter
  plan = make_plan(narrow, shipped_gpu("h200"));
  ASSERT_EQ(plan.chunk_columns, 2048);
  EXPECT_EQ(refusals(plan), "");
  EXPECT_EQ(refused_x(plan), "piece too small: shared memory: x: expected 6656 bytes or more, got 6640\n");
}

}  // namespace
}  // namespace soliton
