// Tiles have one reader each, dealt as the kernel deals them; rows of the residual stream stay with one CTA.
#include <gtest/gtest.h>

#include "tests/generator/bad_plans.h"

namespace soliton {

const std::vector<BadPlan>& bad_work() {
  static const std::vector<BadPlan> plans = {
      {.name = "LastTileOfACtaForgotten",
       .rule = Rule::kPageSkipped,
       .message = "qkv: tile 31: expected one CTA that reads its pages, got none",
       .damage = [](Plan& plan) { --phase(plan, "qkv").runs.back().count; },
       .also = {Rule::kDealtUnlike}},
      {.name = "CtaForgotten",
       .rule = Rule::kPageSkipped,
       .message = "gate_up: tile 3: expected one CTA that reads its pages, got none",
       .damage = [](Plan& plan) { phase(plan, "gate_up").runs.resize(3); },
       .also = {Rule::kWaitUnsatisfied, Rule::kDealtUnlike}},
      {.name = "TilesThatNobodyWasDealt",
       .rule = Rule::kPageSkipped,
       .message = "lm_head: tile 128: expected one CTA that reads its pages, got none",
       .damage =
           [](Plan& plan) {
             ++matrix(plan, "lm_head").num_tiles;
             ++matrix(plan, "lm_head").card_tiles;
             plan.weight_bytes += tile_bytes({}, matrix(plan, "lm_head").padded);
           },
       .also = {Rule::kDealtUnlike, Rule::kMatrixShape}},
      {.name = "CtaThatStaysAtItsTile",
       .rule = Rule::kPageRepeated,
       .message = "qkv: tile 5: expected to be read once, CTA 5 reads it again",
       .damage = [](Plan& plan) { phase(plan, "qkv").runs[5] = {.first = 5, .stride = 0, .count = 2}; },
       .also = {Rule::kPageSkipped, Rule::kDealtUnlike},  // in the large model
       .choices = {.num_ctas = 32}},
      {.name = "CtaThatReadsEverything",
       .rule = Rule::kPageTwoOwners,
       .message = "lm_head: tile 1: expected one owner, got CTA 0 and CTA 1",
       .damage =
           [](Plan& plan) {
             phase(plan, "lm_head").runs[0] = {
                 .first = 0, .stride = 1, .count = matrix(plan, "lm_head").num_tiles};
           },
       .also = {Rule::kDealtUnlike}},
      {.name = "TwoCtasWithOneShare",
       .rule = Rule::kPageTwoOwners,
       .message = "gate_up: tile 1: expected one owner, got CTA 1 and CTA 2",
       .damage = [](Plan& plan) { phase(plan, "gate_up").runs[2] = phase(plan, "gate_up").runs[1]; },
       .also = {Rule::kPageSkipped, Rule::kDealtUnlike}},
      {.name = "TileBehindTheLast",
       .rule = Rule::kPageOutOfRange,
       .message = "qkv: CTA 3: expected tiles 0 to 31, got 35",
       .damage = [](Plan& plan) { ++phase(plan, "qkv").runs[3].count; },
       .also = {Rule::kDealtUnlike}},
      {.name = "TileBeforeTheFirst",
       .rule = Rule::kPageOutOfRange,
       .message = "qkv: CTA 0: expected tiles 0 to 31, got -4",
       .damage =
           [](Plan& plan) {
             TileRun& run = phase(plan, "qkv").runs[0];
             run = {.first = run.first - run.stride, .stride = run.stride, .count = run.count + 1};
           },
       .also = {Rule::kDealtUnlike}},
      {.name = "TilesOfALargerMatrix",
       .rule = Rule::kPageOutOfRange,
       .message = "lm_head: CTA 3: expected tiles 0 to 126, got 127",
       .damage = [](Plan& plan) { --matrix(plan, "lm_head").num_tiles; },
       .also = {Rule::kDealtUnlike, Rule::kMatrixShape, Rule::kWeightsSize}},
      {.name = "RunsOfTwoCtasSwapped",
       .rule = Rule::kDealtUnlike,
       .message = "qkv: CTA 0: expected the tiles that the kernel deals it, 8 from 0 by 4, got 8 from 1 by 4",
       .damage = [](Plan& plan) { std::swap(phase(plan, "qkv").runs[0], phase(plan, "qkv").runs[1]); }},
      {.name = "FirstCtaOfOtherRuns",
       .rule = Rule::kDealtUnlike,
       .message =
           "gate_up: CTA 0: expected the tiles that the kernel deals it, 24 from 3 by 4, got 24 from 0 by 4",
       .damage = [](Plan& plan) { phase(plan, "gate_up").first_cta = 1; }},
      {.name = "FirstCtaThatThereIsNot",
       .rule = Rule::kDealtUnlike,
       .message = "qkv: expected a first CTA of 0 to 3, got 4",
       .damage = [](Plan& plan) { phase(plan, "qkv").first_cta = plan.num_ctas; }},
      {.name = "RunsOfACtaThatThereIsNot",
       .rule = Rule::kDealtUnlike,
       .message = "qkv: expected the tiles of 4 CTAs, got those of 5",
       .damage = [](Plan& plan) { phase(plan, "qkv").runs.emplace_back(); }},
      {.name = "DealtFromAnotherCard",
       .rule = Rule::kPageOfOtherCard,
       .message = "gate_up: tile 7: expected a CTA of card 1, among whose 48 tiles it is number 3, got CTA 0 "
                  "of card 0",
       .damage =
           [](Plan& plan) {
             phase(plan, "gate_up").first_cta = 1;
             deal_again(plan, "gate_up");
           },
       .choices = {.num_cards = 2}},
      {.name = "DownDealtFromAnotherCta",
       .rule = Rule::kResidualMoved,
       .message = "down: CTA 0: expected the tiles of o, 4 from 0 by 4, got 4 from 3 by 4",
       .damage =
           [](Plan& plan) {
             phase(plan, "down").first_cta = 1;
             deal_again(plan, "down");
           }},
      {.name = "DownDealtInBlocks",
       .rule = Rule::kResidualMoved,
       .message = "down: CTA 0: expected the tiles of o, 4 from 0 by 4, got 4 from 0 by 1",
       .damage =
           [](Plan& plan) {
             const int share = matrix(plan, "down").num_tiles / plan.num_ctas;
             for (int cta = 0; cta < plan.num_ctas; ++cta) {
               phase(plan, "down").runs[cta] = {.first = cta * share, .stride = 1, .count = share};
             }
           },
       .also = {Rule::kDealtUnlike}},
  };
  return plans;
}
}  // namespace soliton
