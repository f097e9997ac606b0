// Matrices, vectors, inputs and norms fit the model and the phases that use them.
#include <gtest/gtest.h>

#include "tests/generator/bad_plans.h"

namespace soliton {

const std::vector<BadPlan>& bad_shapes() {
  static const std::vector<BadPlan> plans = {
      {.name = "TileMoreThanTheRowsFill",
       .rule = Rule::kMatrixShape,
       .message = "matrix qkv: expected 32 tiles, got 33",
       .damage =
           [](Plan& plan) {
             ++matrix(plan, "qkv").num_tiles;
             deal_again(plan, "qkv");
             place(plan, {});
           }},
      {.name = "RowsBeyondTheResidualStream",
       .rule = Rule::kMatrixShape,
       .message = "matrix down: expected 256 rows, got 240",
       .damage =
           [](Plan& plan) {
             set_rows(plan, "down", matrix(plan, "down").rows - kTileRows);
             set_rows(plan, "o", matrix(plan, "o").rows - kTileRows);
           },
       .also = {Rule::kWaitUnsatisfied}},
      {.name = "RowsBeyondQkv",
       .rule = Rule::kMatrixShape,
       .message = "matrix qkv: expected 512 rows, got 528",
       .damage = [](Plan& plan) { set_rows(plan, "qkv", matrix(plan, "qkv").rows + kTileRows); }},
      {.name = "HalfOfTheGateRows",
       .rule = Rule::kMatrixShape,
       .message = "matrix gate_up: expected 1536 rows, got 768",
       .damage = [](Plan& plan) { set_rows(plan, "gate_up", matrix(plan, "gate_up").rows / 2); }},
      {.name = "TokenThatThereIsNot",
       .rule = Rule::kMatrixShape,
       .message = "matrix lm_head: expected 2048 rows, got 2049",
       .damage = [](Plan& plan) { set_rows(plan, "lm_head", matrix(plan, "lm_head").rows + 1); }},
      {.name = "ColumnsThatTheVectorHasNot",
       .rule = Rule::kMatrixShape,
       .message = "matrix o: expected 256 columns, one of each element that is read, got 255",
       .damage = [](Plan& plan) { --matrix(plan, "o").columns; }},
      {.name = "PaddingOfHalfAUnit",
       .rule = Rule::kMatrixShape,
       .message = "matrix o: expected 256 columns with padding, got 320",
       .damage =
           [](Plan& plan) {
             matrix(plan, "o").padded += kColumnBlock * plan.consumer_warps / 2;
             place(plan, {});
           }},
      {.name = "PaddingOfAWholeUnit",
       .rule = Rule::kMatrixShape,
       .message = "matrix o: expected 256 columns with padding, got 384",
       .damage =
           [](Plan& plan) {
             matrix(plan, "o").padded += kColumnBlock * plan.consumer_warps;
             place(plan, {});
           }},
      {.name = "ColumnsCutOff",
       .rule = Rule::kMatrixShape,
       .message = "matrix o: expected 256 columns with padding, got 128",
       .damage =
           [](Plan& plan) {
             matrix(plan, "o").padded -= kColumnBlock * plan.consumer_warps;
             place(plan, {});
           }},
      {.name = "LmHeadOfEveryLayer",
       .rule = Rule::kMatrixShape,
       .message = "matrix lm_head: expected 1 as kind of layer, got 0",
       .damage =
           [](Plan& plan) {
             matrix(plan, "lm_head").layer_kind = 0;
             place(plan, {});
           }},
      {.name = "GateRowsInPlainOrder",
       .rule = Rule::kMatrixShape,
       .message = "matrix gate_up: expected gate and up rows, got plain ones",
       .damage = [](Plan& plan) { matrix(plan, "gate_up").row_order = RowOrder::kPlain; }},
      {.name = "CandidatesOfHalfAWord",
       .rule = Rule::kVectorShape,
       .message = "candidates: expected 8 bytes an element, got 4",
       .damage = [](Plan& plan) { vector(plan, "candidates").element_bytes = 4; }},
      {.name = "SignedCandidates",
       .rule = Rule::kVectorShape,
       .message = "candidates: expected no signatures beside a candidate of every CTA, got 4",
       .damage =
           [](Plan& plan) {
             vector(plan, "candidates").signatures = plan.num_ctas;
             place(plan, {});
           }},
      {.name = "HeadsThatNobodyHas",
       .rule = Rule::kVectorShape,
       .message = "heads: expected 256 elements, got 272",
       .damage =
           [](Plan& plan) {
             vector(plan, "heads").elements += 16;
             place(plan, {});
           },
       .also = {Rule::kMatrixShape}},
      {.name = "EmbeddingWithoutCandidates",
       .rule = Rule::kInputKind,
       .message = "gate_up: expected candidates to be read before the embedding, got nothing read",
       .damage = [](Plan& plan) { phase(plan, "gate_up").input = InputKind::kHidden; }},
      {.name = "CandidatesWithoutEmbedding",
       .rule = Rule::kInputKind,
       .message = "qkv: expected the embedding as input once candidates are read, got another",
       .damage = [](Plan& plan) { phase(plan, "qkv").input = InputKind::kNormed; }},
      {.name = "StepThatBeginsWithAnotherVector",
       .rule = Rule::kInputKind,
       .message = "qkv: expected layer 0 to read candidates, got post_attention",
       .damage =
           [](Plan& plan) {
             phase(plan, "qkv").first_layer_reads = index_of(plan.vectors, "post_attention");
           },
       .also = {Rule::kWaitTooEarly, Rule::kOverwritten}},
      {.name = "NormedResidual",
       .rule = Rule::kInputKind,
       .message = "o: expected an input without norm, got a normed one",
       .damage =
           [](Plan& plan) {
             // Not down: its input comes in chunks, and a normed one must not.
             phase(plan, "o").input = InputKind::kNormed;
             phase(plan, "o").norm = 1;
           },
       .also = {Rule::kNormRow}},
      {.name = "ChunksOfHalfAPage",
       .rule = Rule::kMatrixShape,
       .message = "chunks: expected a multiple of 512 columns, got 768",
       .damage =
           [](Plan& plan) {
             plan.chunk_columns += kPageColumns / 2;
             place(plan, {});
           }},
      {.name = "ChunksOfNothing",
       .rule = Rule::kMatrixShape,
       .message = "chunks: expected a multiple of 512 columns, got 0",
       .damage = [](Plan& plan) { plan.chunk_columns = 0; }},
      {.name = "ChunksOfLessThanNothing",
       .rule = Rule::kMatrixShape,
       .message = "chunks: expected a multiple of 512 columns, got -512",
       .damage = [](Plan& plan) { plan.chunk_columns = -kPageColumns; }},
      {.name = "NormedInputInChunks",
       .rule = Rule::kMatrixShape,
       .message = "gate_up: expected its normed input of 256 columns in one chunk, got chunks of 128",
       .damage =
           [](Plan& plan) {
             plan.chunk_columns = matrix(plan, "gate_up").padded / 2;
             place(plan, {});
           }},
      {.name = "EmbeddingInChunks",
       .rule = Rule::kMatrixShape,
       .message = "qkv: expected its normed input of 256 columns in one chunk, got chunks of 128",
       .damage =
           [](Plan& plan) {
             plan.chunk_columns = matrix(plan, "qkv").padded / 2;
             place(plan, {});
           }},
      {.name = "NormBehindTheLast",
       .rule = Rule::kNormRow,
       .message = "lm_head (layer 6): expected a row of the norms of 0 to 12, got 13",
       .damage = [](Plan& plan) { ++phase(plan, "lm_head").norm; }},
      {.name = "NormedWithoutNorm",
       .rule = Rule::kNormRow,
       .message = "gate_up (layer 0): expected a row of the norms of 0 to 12, got -1",
       .damage = [](Plan& plan) { phase(plan, "gate_up").norm = -1; }},
      {.name = "NormOfTheSameLayer",
       .rule = Rule::kNormRow,
       .message = "norms: row 0: expected one use, got 2",
       .damage = [](Plan& plan) { plan.layers[1].first_norm = 0; }},
      {.name = "NormOfAnotherReader",
       .rule = Rule::kNormRow,
       .message = "down: expected row 2 of the norms, which qkv reads it with, got 3",
       .damage = [](Plan& plan) { phase(plan, "down").norm = 3; }},
      {.name = "ExpertsOfADenseModel",
       .rule = Rule::kExpertsUnlike,
       .message = "down: expected 1 of 1 experts by axis 0, got 2 of 8 by axis 2",
       .damage =
           [](Plan& plan) {
             matrix(plan, "down").experts = {ExpertAxis::kColumns, 8, 2};
             place(plan, {});
           }},
  };
  return plans;
}

namespace {

// The tiny model's chunks are a page, wider than its normed inputs: here a chunk may be just too narrow.
TEST(Verify, OnlyNormedInputsMustComeInOneChunk) {
  Plan plan = shipped_plan("llama-3.1-8b", "h200");
  ASSERT_EQ(plan.chunk_columns, 4096);
  ASSERT_EQ(matrix(plan, "down").padded, 14336);
  EXPECT_EQ(refusals(plan), "");
  plan.chunk_columns -= kPageColumns;
  std::string expected;
  for (const char* name : {"qkv", "gate_up", "lm_head"}) {
    expected += fmt::format(
        "matrix shape: {}: expected its normed input of 4096 columns in one chunk, got chunks of 3584\n",
        name);
  }
  place(plan, {});  // with less room for a chunk
  EXPECT_EQ(refusals(plan), expected);
}

// More consumer warps would want padding between experts.
TEST(Verify, RefusesPaddingBetweenExperts) {
  const ModelConfig mixture =
      load_model_config(std::filesystem::path(SOLITON_SOURCE_DIR) / "tests" / "models" / "mixture.yaml");
  EXPECT_EQ(refusals(make_plan(mixture, shipped_gpu("h200"))), "");
  const std::string padded = refusals(make_plan(mixture, shipped_gpu("h200"), {.consumer_warps = 8}));
  EXPECT_NE(padded.find("experts unlike: down: expected 128 columns of experts without padding, got 256"),
            std::string::npos)
      << padded;
}

/// Damage to a plan with experts, and what is said of it.
struct BadExperts {
  std::string refusal;
  void (*damage)(Plan& plan);
};

TEST(Verify, RefusesExpertsThatDoNotFit) {
  const BadExperts all[] = {
      {"gate_up: expected 8 of 128 experts by axis 1, got 8 of 127 by axis 1",
       [](Plan& plan) { matrix(plan, "gate_up").experts.count = 127; }},
      {"down: expected 8 of 128 experts by axis 2, got 8 of 128 by axis 1",
       [](Plan& plan) { matrix(plan, "down").experts.axis = ExpertAxis::kRows; }},
      {"gate_up: expected the router right before it, of the same input, got none",
       [](Plan& plan) { phase(plan, "gate_up").routes = phase(plan, "gate_up").writes; }},
      {"down: expected no router, got one",
       [](Plan& plan) { phase(plan, "down").routes = phase(plan, "router").writes; }},
      {"router: expected slices of whole pages, got 3 slices of 2048 columns",
       [](Plan& plan) { phase(plan, "router").column_slices = 3; }},
      {"gate_up: expected whole tiles, got 2 slices of 2048 columns",
       [](Plan& plan) { phase(plan, "gate_up").column_slices = 2; }}};
  const Plan sound = shipped_plan("qwen3-30b-a3b", "h200");
  ASSERT_EQ(refusals(sound), "");
  for (const auto& [refusal, damage] : all) {
    Plan plan = sound;
    damage(plan);
    EXPECT_NE(refusals(plan).find("experts unlike: " + refusal), std::string::npos) << refusal << "\n"
                                                                                    << refusals(plan);
  }
}

}  // namespace
}  // namespace soliton
