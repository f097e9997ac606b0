// The verifier's rules where CTAs share the columns of tiles, each broken in turn; and how a deal of blocks looks.
#include <gmock/gmock.h>

#include <functional>
#include <map>
#include <set>

#include "generator/plan/verify.h"
#include "models/error.h"
#include "tests/generator/plan_fixture.h"

namespace soliton {
namespace {

struct SlicesMutant {
  const char* name;
  Rule rule;
  std::function<void(Plan&)> change;
};

void PrintTo(const SlicesMutant& mutant, std::ostream* out) {
  *out << mutant.name;
}

class VerifySlices : public testing::TestWithParam<SlicesMutant> {};

INSTANTIATE_TEST_SUITE_P(
    Mutants, VerifySlices,
    testing::Values(
        SlicesMutant{"three_share", Rule::kNumberOutOfRange,
                     [](Plan& plan) { named(plan.phases, "o").column_slices = 3; }},
        SlicesMutant{"more_share_than_can", Rule::kNumberOutOfRange,
                     [](Plan& plan) { named(plan.phases, "o").column_slices = 2 * kMostColumnSlices; }},
        SlicesMutant{"half_a_chunk", Rule::kNumberOutOfRange,
                     [](Plan& plan) { plan.matrices[named(plan.phases, "o").matrix].padded += 64; }},
        SlicesMutant{"a_slice_without_columns", Rule::kNumberOutOfRange,
                     [](Plan& plan) { plan.matrices[named(plan.phases, "o").matrix].padded = 128; }},
        SlicesMutant{"ring_of_odd_slots", Rule::kParityTwoAhead, [](Plan& plan) { ++plan.ring_slots; }},
        SlicesMutant{"attention_is_shared", Rule::kUnusedNumber,
                     [](Plan& plan) { named(plan.phases, "attention").column_slices = 2; }},
        SlicesMutant{"too_few_counters", Rule::kPieceTooSmall,
                     [](Plan& plan) { named(plan.workspace, kCountersRegion).bytes = 128; }},
        SlicesMutant{"sums_too_small", Rule::kPieceTooSmall,
                     [](Plan& plan) { named(plan.workspace, kSumsRegion).bytes /= 2; }},
        SlicesMutant{"finishes_a_tile_of_others", Rule::kDealtUnlike,
                     [](Plan& plan) {
                       PlanPhase& phase = named(plan.phases, "o");
                       std::swap(phase.runs[0], phase.runs[1]);
                     }},
        SlicesMutant{"without_bulk_copies", Rule::kNumberOutOfRange,
                     [](Plan& plan) { plan.copies = CopyKind::kLanes; }},
        SlicesMutant{"on_a_later_card", Rule::kNumberOutOfRange,
                     [](Plan& plan) { plan.limits.compute_capability = 100; }},
        SlicesMutant{"in_ptx", Rule::kNumberOutOfRange, [](Plan& plan) { plan.limits.ptx = true; }}),
    [](const testing::TestParamInfo<SlicesMutant>& info) { return std::string(info.param.name); });

TEST_P(VerifySlices, IsRefused) {
  Plan plan = shipped_plan("llama-3.1-8b", "h200", {.rows = 128});
  ASSERT_TRUE(plan.warpgroups);
  ASSERT_GT(named(plan.phases, "qkv").column_slices, 1);
  ASSERT_GT(named(plan.phases, "o").column_slices, 1);
  ASSERT_TRUE(verify(plan).empty());
  GetParam().change(plan);
  const std::vector<Violation> violations = verify(plan);
  EXPECT_TRUE(std::any_of(violations.begin(), violations.end(), [](const Violation& violation) {
    return violation.rule == GetParam().rule;
  })) << (violations.empty() ? "nothing refused" : violations[0].message);
}

// Some places of sums are only those of a kind of layers that comes every `distance` layers: where these put down seven times
// as many sums, those of the one before look like its own.
std::string refusals_of_rare_sums(int distance) {
  ModelConfig model = shipped_model("llama-3.2-1b");
  model.facts.num_layers = distance + 1;
  std::fill_n(model.facts.layer_ffn, model.facts.num_layers, 4096);
  model.facts.layer_ffn[0] = model.facts.layer_ffn[distance] = model.facts.ffn;
  Plan plan = make_plan(model, shipped_gpu("h200"), {.rows = 64, .num_ctas = 128});
  EXPECT_EQ(refusals(plan), "");
  for (PlanPhase& phase : plan.phases) {
    if (phase.kind != PhaseKind::kMatrix || phase.output == OutputKind::kLogits) continue;
    const bool is_down = phase.output == OutputKind::kResidual && !phase.appends;
    phase.column_slices = is_down && phase.layer_kind == plan.layers[0].kind ? kMostColumnSlices : 2;
  }
  return refusals(plan);
}

TEST(ColumnSlices, TellSumsFromThoseThatAPlaceStillHolds) {
  // Four phases of a layer put down sums; there is nothing between the last layer of a step and the first of the next but the
  // choice of a token.
  EXPECT_EQ(refusals_of_rare_sums(6), "");
  EXPECT_THAT(refusals_of_rare_sums(7), testing::HasSubstr("before their tag comes again"));
  EXPECT_EQ(refusals_of_rare_sums(8), "");
}

TEST(ColumnSlices, GiveEveryPieceOneOwnerWhateverTheNumbers) {
  for (const int num_ctas : {4, 6, 8, 128}) {
    for (int slices = 1; slices <= 4; slices *= 2) {
      if (num_ctas % slices != 0) continue;
      for (const int num_tiles : {1, 7, 8, 9, 300}) {
        for (const int first_cta : {0, 3, num_ctas - 1}) {
          std::set<std::pair<int, int>> owned;  // tile and slice
          for (int cta = 0; cta < num_ctas; ++cta) {
            const TileBlock block = deal_block(num_tiles, first_cta, num_ctas, slices, cta);
            for (int i = 0; i < block.tiles.count; ++i) {
              EXPECT_TRUE(owned.insert({block.tiles.first + i * block.tiles.stride, block.slice}).second);
            }
            const TileRun own = deal_tiles(num_tiles, first_cta, num_ctas, cta);
            for (int i = 0; i < own.count; ++i) {
              const int place = block.first_own + i * slices;
              ASSERT_LT(place, block.tiles.count);
              EXPECT_EQ(block.tiles.first + place * block.tiles.stride, own.first + i * own.stride);
            }
          }
          EXPECT_EQ(static_cast<int>(owned.size()), num_tiles * slices);
        }
      }
    }
  }
}

TEST(ColumnSlices, CoverAllColumns) {
  constexpr int kChunk = 128;
  for (const int padded : {128, 256, 1536, 14336}) {
    for (int slices = 1; slices <= 8; slices *= 2) {
      EXPECT_EQ(slice_begin(padded, kChunk, slices, 0), 0);
      EXPECT_EQ(slice_begin(padded, kChunk, slices, slices), padded);
      for (int slice = 0; slice < slices; ++slice)
        EXPECT_LE(slice_begin(padded, kChunk, slices, slice), slice_begin(padded, kChunk, slices, slice + 1));
    }
  }
}

TEST(ColumnSlices, AreWalkedWholeFromAnyChunkOn) {
  for (const int count : {1, 2, 7, 32}) {
    for (int first = 0; first < count; ++first) {
      const TileBlock block = {.num_chunks = count, .first_chunk = first};
      EXPECT_EQ(block.chunk(0), first);
      std::set<int> met;
      for (int i = 0; i < count; ++i) met.insert(block.chunk(i));
      EXPECT_EQ(static_cast<int>(met.size()), count);
      EXPECT_EQ(*met.begin(), 0);
      EXPECT_EQ(*met.rbegin(), count - 1);
    }
  }
}

TEST(ColumnSlices, WantARingOfWhichEachWarpgroupAlwaysMeetsTheSameSlots) {
  EXPECT_EQ(shipped_plan("llama-3.1-8b", "h200", {.rows = 128}).ring_slots % 2, 0);
  EXPECT_EQ(shipped_plan("llama-3.1-8b", "h200", {.rows = 128, .ring_slots = 4}).ring_slots, 4);
  EXPECT_THROW(shipped_plan("llama-3.1-8b", "h200", {.rows = 128, .ring_slots = 5}), Error);
}

TEST(ColumnSlices, AreForWarpgroupsAlone) {
  EXPECT_FALSE(shipped_plan("llama-3.1-8b", "h200", {.rows = 32}).warpgroups);
  EXPECT_TRUE(shipped_plan("llama-3.1-8b", "h200", {.rows = 64}).warpgroups);
  EXPECT_THROW(shipped_plan("llama-3.1-8b", "h200", {.rows = 128, .copies = CopyKind::kLanes}), Error);
}

// Sums of tiles lie in the memory of one card, and the tiles of a team too.
TEST(ColumnSlices, AreSharedWithinACard) {
  for (const char* model : {"llama-3.1-8b", "llama-3.1-8b-gptq", "llama-3.2-1b"}) {
    for (const int cards : {2, 3, 8}) {
      const Plan plan = shipped_plan(model, "h200", {.rows = 128, .num_cards = cards});
      EXPECT_EQ(refusals(plan), "") << model << " over " << cards;
      for (const PlanPhase& phase : plan.phases) {
        if (phase.column_slices == 1) continue;
        const int num_tiles = plan.matrices[phase.matrix].num_tiles;
        std::map<int, std::set<int>> cards_of_tile;
        for (int cta = 0; cta < plan.all_ctas(); ++cta) {
          const TileBlock block =
              deal_block(num_tiles, phase.first_cta, plan.all_ctas(), phase.column_slices, cta);
          for (int i = 0; i < block.tiles.count; ++i)
            cards_of_tile[block.tiles.first + i * block.tiles.stride].insert(cta % cards);
        }
        for (const auto& [tile, of_tile] : cards_of_tile)
          EXPECT_EQ(of_tile, std::set<int>{tile % cards}) << phase.name << ", tile " << tile;
      }
    }
  }
}

// Of integers a slot, of which a CTA has whole ones, holds two chunks of columns, or four where they meet digits.
TEST(ColumnSlices, OfIntegersAreWholeSlots) {
  const auto padded_to = [](int rows, int columns) {
    Plan plan = shipped_plan("llama-3.1-8b-gptq", "h200", {.rows = rows});
    EXPECT_TRUE(plan.warpgroups);
    EXPECT_EQ(named(plan.phases, "o").column_slices, 4);
    plan.matrices[named(plan.phases, "o").matrix].padded = columns;
    return refusals(plan);
  };
  for (const int rows : {8, 16, 32, 64, 128, 256}) {
    const int slot = rows <= 16 ? 512 : 256;
    const auto refused = testing::HasSubstr(fmt::format("o: expected whole chunks of {} columns", slot));
    EXPECT_EQ(padded_to(rows, 4096), "");
    EXPECT_THAT(padded_to(rows, 4096 + slot / 2), refused);
    EXPECT_THAT(padded_to(rows, slot), refused);
  }
}

// Digits of a slice are made once for all groups of tiles if there is room for all of them: in the 8B there is.
TEST(ColumnSlices, LeaveRoomForTheirDigits) {
  for (const int rows : {8, 16}) {
    const Plan plan = shipped_plan("llama-3.1-8b-gptq", "h200", {.rows = rows});
    for (const char* name : {"qkv", "o", "gate_up", "down"}) {
      const PlanPhase& phase = named(plan.phases, name);
      EXPECT_LE(plan.matrices[phase.matrix].padded / phase.column_slices, plan.shape().digit_columns) << name;
    }
  }
}

}  // namespace
}  // namespace soliton
