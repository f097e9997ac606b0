// No place of a vector is written again while anybody may still read it.
#include <gtest/gtest.h>

#include "tests/generator/bad_plans.h"

namespace soliton {
namespace {

/// Takes the tiles of the last CTA away, where it has any: the large model has some for every CTA.
void unshow(Plan& plan, const std::string& name) {
  phase(plan, name).runs.back().count = 0;
}

}  // namespace

const std::vector<BadPlan>& bad_places() {
  static const std::vector<BadPlan> plans = {
      // A step of the tiny model has 6 x 5 + 1 phases: qkv 0, attention 1, o 2, gate_up 3, down 4, qkv 5. With 17 CTAs
      // gate_up alone has tiles for all of them, with 128 no phase has.
      {.name = "OnePlaceWhereTwoAreNeeded",
       .rule = Rule::kOverwritten,
       .message =
           "ffn: read in phase 4 and its place written again in phase 8, expected a phase between that shows "
           "a word of every CTA",
       .damage =
           [](Plan& plan) {
             vector(plan, "ffn").places = 1;
             for (const char* name : {"o", "down"}) unshow(plan, name);
           },
       .also = {Rule::kPageSkipped, Rule::kDealtUnlike},
       .choices = {.num_ctas = 17}},
      {.name = "NoPlace",
       .rule = Rule::kOverwritten,
       .message = "qkv: expected 1 or 2 places, got 0",
       .damage = [](Plan& plan) { vector(plan, "qkv").places = 0; }},
      {.name = "ThreePlaces",
       .rule = Rule::kOverwritten,
       .message = "qkv: expected 1 or 2 places, got 3",
       .damage =
           [](Plan& plan) {
             vector(plan, "qkv").places = 3;
             place(plan, {});
           }},
      {.name = "NothingShowsEveryCta",
       .rule = Rule::kOverwritten,
       .message =
           "heads: read in phase 2 and its place written again in phase 6, expected a phase between that "
           "shows a word of every CTA",
       .damage =
           [](Plan& plan) {
             vector(plan, "ffn").signatures = 0;
             for (const char* name : {"o", "gate_up", "down"}) unshow(plan, name);
           },
       .also = {Rule::kWaitUnsatisfied, Rule::kPageSkipped, Rule::kDealtUnlike},
       .choices = {.num_ctas = 128}},
      // Of q, k and v a CTA reads its heads only: that they are all there says nothing.
      {.name = "ShownToNobody",
       .rule = Rule::kWaitUnsatisfied,
       .message = "o: appends to the cache, expected a phase of the layer behind it that shows a word of "
                  "every CTA, got none",
       .damage =
           [](Plan& plan) {
             for (const char* name : {"o", "gate_up", "down"}) unshow(plan, name);
           },
       .also = {Rule::kOverwritten, Rule::kPageSkipped, Rule::kDealtUnlike}},
      // In time for the places, too late for the cache.
      {.name = "ShownBeforeItAppends",
       .rule = Rule::kWaitUnsatisfied,
       .message = "o: appends to the cache, expected a phase of the layer behind it that shows a word of "
                  "every CTA, got none",
       .damage =
           [](Plan& plan) {
             for (const char* name : {"gate_up", "down"}) unshow(plan, name);
             vector(plan, "heads").signatures = plan.all_ctas();
             place(plan, {});
           },
       .also = {Rule::kPageSkipped, Rule::kDealtUnlike, Rule::kResidualMoved}},
      {.name = "SignatureOfOneCtaMissing",
       .rule = Rule::kWaitUnsatisfied,
       .message = "heads: expected 0 or 4 signatures, got 3",
       .damage =
           [](Plan& plan) {
             vector(plan, "heads").signatures = plan.all_ctas() - 1;
             place(plan, {});
           }},
  };
  return plans;
}

namespace {

const PlanVector& ffn(const Plan& plan) {
  return named(plan.vectors, "ffn");
}

// The fewer phases have tiles for all CTAs, the more it takes until a place is free again.
TEST(Places, AreAsManyAsTheTilesOfALayerAskFor) {
  for (const auto& [ctas, places, signatures] :
       {std::tuple(4, 1, 0), {16, 1, 0}, {17, 2, 0}, {96, 2, 0}, {97, 2, 97}, {128, 2, 128}}) {
    const Plan plan = shipped_plan("tiny-stories", "h200", {.num_ctas = ctas});
    EXPECT_EQ(ffn(plan).places, places) << ctas;
    EXPECT_EQ(ffn(plan).signatures, signatures) << ctas;
    EXPECT_EQ(refusals(plan), "") << ctas;
    for (const PlanVector& vector : plan.vectors) {
      if (vector.name == "ffn") continue;
      EXPECT_EQ(vector.places, 1) << vector.name << ", " << ctas << " CTAs";
      EXPECT_EQ(vector.signatures, 0) << vector.name << ", " << ctas << " CTAs";
    }
  }
}

// Uses are counted by layers: of the kind that alone writes a vector, or of all.
TEST(Places, OfSomeKindsOfLayersAreRefused) {
  ModelConfig model = load_model_config(std::string(SOLITON_SOURCE_DIR) + "/tests/models/kinds.yaml");
  model.facts.layer_ffn[2] = 256;
  Plan plan = make_plan(model, shipped_gpu("cpu"));
  ASSERT_EQ(plan.once(), 3);
  EXPECT_EQ(refusals(plan), "");
  const auto kind_of = [&](const char* name) {
    return PlannedKernel(plan)->vectors[index_of(plan.vectors, name)].layer_kind;
  };
  EXPECT_EQ(kind_of("ffn"), 0);
  EXPECT_EQ(kind_of("ffn_2"), 2);
  EXPECT_EQ(kind_of("hidden"), kNone);
  EXPECT_EQ(kind_of("candidates"), kNone);
  phase(plan, "gate_up_2").writes = index_of(plan.vectors, "ffn");
  read_and_await(plan, "down_2", "ffn");
  EXPECT_NE(refusals(plan).find("ffn: expected one kind of layers or all 3 to write it, got 2"),
            std::string::npos);
}

// What a CTA keeps of a head block that is split is written in every layer from the first time on: while a launch goes on
// there are only more splits.
TEST(Places, OfPartialsAreWrittenAtEveryUse) {
  for (const auto& [blocks, ctas, min_pages, most] : {std::tuple(8, 128, 1, kMaxSplits),
                                                      {8, 132, 3, kMaxSplits},
                                                      {2, 11, 2, 4},
                                                      {16, 128, 1, 5},
                                                      {3, 100, 1, 32}}) {
    std::vector<bool> splits(ctas);
    for (int pages = 0; pages < 600; ++pages) {
      for (int cta = 0; cta < ctas; ++cta) {
        const AttentionShare share = share_attention(blocks, pages, min_pages, ctas, cta, most);
        const bool writes = share.num_splits > 1 && share.count > 0;
        ASSERT_TRUE(writes || !splits[cta]) << pages << " pages, CTA " << cta << " of " << ctas;
        splits[cta] = writes;
      }
    }
  }
}

}  // namespace
}  // namespace soliton
