// Plans of launches that span several cards.
#include <gmock/gmock.h>

#include "generator/emit.h"
#include "models/error.h"
#include "tests/generator/plan_fixture.h"

namespace soliton {
namespace {

using testing::HasSubstr;

Plan plan_over(const std::string& model, int num_cards) {
  PlanChoices choices;
  choices.num_cards = num_cards;
  return shipped_plan(model, "h200", choices);
}

TEST(CardsPlan, IsSoundOverAnyNumberOfCards) {
  for (const char* model :
       {"tiny-stories", "llama-3.2-1b", "llama-3.1-8b", "llama-3.1-70b", "llama-3.1-70b-gptq"}) {
    for (int cards = 1; cards <= kMaxLaunchCards; ++cards)
      EXPECT_EQ(refusals(plan_over(model, cards)), "") << model << " over " << cards;
  }
}

TEST(CardsPlan, HasEveryTileOnceAmongAllCards) {
  for (const int cards : {2, 3, 5, 8}) {
    const Plan plan = plan_over("llama-3.2-3b", cards);
    for (const PlanPhase& phase : plan.phases) {
      if (phase.matrix < 0) continue;
      const PlanMatrix& matrix = plan.matrices[phase.matrix];
      std::vector<int> readers(matrix.num_tiles);
      std::vector<int> of_card(cards);
      for (int cta = 0; cta < plan.all_ctas(); ++cta) {
        const TileRun& run = phase.runs[cta];
        for (int i = 0; i < run.count; ++i) {
          const int tile = run.first + i * run.stride;
          ++readers[tile];
          ++of_card[cta % cards];
          EXPECT_EQ(tile % cards, cta % cards);
        }
      }
      EXPECT_EQ(std::count(readers.begin(), readers.end(), 1), matrix.num_tiles) << phase.name;
      for (const int tiles : of_card) {
        EXPECT_LE(tiles, matrix.card_tiles) << phase.name;
        EXPECT_GE(tiles, matrix.card_tiles - 1) << phase.name;
      }
    }
  }
}

TEST(CardsPlan, SharesWeightsAndCache) {
  const Plan one = plan_over("llama-3.1-70b", 1);
  for (const int cards : {2, 4, 8}) {
    const Plan plan = plan_over("llama-3.1-70b", cards);
    EXPECT_EQ(plan.weight_bytes * cards, one.weight_bytes);
    EXPECT_EQ(plan.needed_weight_bytes * cards, one.needed_weight_bytes);
    const KvShape kv = PlannedKernel(plan)->card_kv();
    EXPECT_EQ(kv.token_bytes() * cards, PlannedKernel(one)->card_kv().token_bytes());
    EXPECT_LT(device_bytes(plan, 1000) - device_bytes(plan, 0),
              device_bytes(one, 1000) - device_bytes(one, 0));
    EXPECT_LT(predicted_token_us(plan, 128), predicted_token_us(one, 128));
  }
}

TEST(CardsPlan, IsRefusedWithADealThatBeginsOnAnotherCard) {
  Plan plan = plan_over("llama-3.1-8b", 2);
  PlanPhase& phase = named(plan.phases, "gate_up");
  phase.first_cta = 1;
  for (int cta = 0; cta < plan.all_ctas(); ++cta) {
    phase.runs[cta] =
        deal_tiles(named(plan.matrices, "gate_up").num_tiles, phase.first_cta, plan.all_ctas(), cta);
  }
  EXPECT_THAT(refusals(plan),
              HasSubstr("page of another card: gate_up: tile 255: expected a CTA of card 1, among whose "
                        "896 tiles it is number 127, got CTA 0 of card 0"));
}

TEST(CardsPlan, IsRefusedWithoutRoomForAllTilesOfACard) {
  Plan plan = plan_over("llama-3.1-8b", 3);
  --named(plan.matrices, "down").card_tiles;
  EXPECT_THAT(refusals(plan), HasSubstr("page of another card: down"));
}

TEST(CardsPlan, IsRefusedWithTooManyCards) {
  Plan plan = plan_over("llama-3.1-8b", 8);
  plan.num_cards = 9;
  EXPECT_THAT(refusals(plan), HasSubstr("cards of a launch: expected 1 to 8, got 9"));
}

TEST(CardsPlan, SplitsAttentionAsItIsTold) {
  PlanChoices choices;
  choices.num_cards = 2;
  choices.max_splits = 16;
  Plan plan = shipped_plan("llama-3.1-8b", "h200", choices);
  EXPECT_EQ(refusals(plan), "");
  EXPECT_THAT(emit({plan}).at("plan.h"), HasSubstr(".max_splits = 16,"));
  EXPECT_THAT(emit({plan}).at("kernel.cu"), HasSubstr("--cards 2 --max-splits 16"));
  EXPECT_THAT(describe(plan), HasSubstr("split over 16 CTAs at most"));
  // As one card does at any length; alone the card's CTAs would be shared by 32.
  const PlannedKernel two(plan);
  const Plan one = plan_over("llama-3.1-8b", 1);
  for (int pages = 1; pages < 600; pages += 7) {
    const auto splits = [&](int blocks, int max_splits) {
      return share_attention(blocks, pages, plan.min_pages_per_split, plan.num_ctas, 0, max_splits)
          .num_splits;
    };
    EXPECT_EQ(splits(two->card_blocks(), two->max_splits),
              splits(PlannedKernel(one)->card_blocks(), one.max_splits));
  }
  plan.max_splits = kMaxSplits + 1;
  EXPECT_THAT(refusals(plan), HasSubstr("splits of attention: expected 1 to 32, one of each lane, got 33"));
}

TEST(CardsPlan, TakesSeveralRows) {
  for (const char* model : {"llama-3.1-8b", "llama-3.1-70b", "llama-3.1-8b-gptq", "qwen3-8b"}) {
    for (const int cards : {2, 3, 4, 8}) {
      for (const int rows : {8, 32}) {
        SCOPED_TRACE(fmt::format("{} over {} cards, {} rows", model, cards, rows));
        PlanChoices choices;
        choices.num_cards = cards;
        choices.rows = rows;
        const Plan plan = shipped_plan(model, "h200", choices);
        EXPECT_EQ(refusals(plan), "");
        // Queries, keys and values are those of a card's heads; of all CTAs are candidates and sums of squares.
        const PlanVector& qkv = named(plan.vectors, "qkv");
        EXPECT_EQ(qkv.bytes(), plan.qkv_layout().bytes());
        EXPECT_EQ(plan.qkv_layout().kv.num_kv_heads, kv_heads_of_card(plan.facts.num_kv_heads, cards, 0));
        EXPECT_EQ(named(plan.vectors, "candidates").elements, rows * plan.all_ctas() + 1);
        EXPECT_EQ(named(plan.vectors, "squares").elements, rows * PlannedKernel(plan)->squares_stride());
      }
    }
  }
}

TEST(CardsPlan, OfSeveralRowsIsRefusedWhereItHasNoRoomForAllCtas) {
  PlanChoices choices;
  choices.num_cards = 2;
  choices.rows = 8;
  Plan plan = shipped_plan("llama-3.1-8b", "h200", choices);
  named(plan.vectors, "candidates").elements = plan.rows * plan.num_ctas + 1;
  EXPECT_THAT(refusals(plan), HasSubstr("candidates: expected"));
  plan = shipped_plan("llama-3.1-8b", "h200", choices);
  --named(plan.vectors, "squares").elements;
  EXPECT_THAT(refusals(plan), HasSubstr("squares: expected"));
}

}  // namespace
}  // namespace soliton
