// The verifier's rules for matrices of 4-bit integers: each is broken in turn.
#include <gtest/gtest.h>

#include <functional>

#include "generator/plan/verify.h"
#include "layout/weight_format.h"
#include "tests/generator/plan_fixture.h"

namespace soliton {
namespace {

constexpr int kRingSlots = 8;

struct Mutant {
  const char* name;
  Rule rule;
  const char* message;  // exactly, for Llama-3.1-8B in groups of 128 on an H200; null: any
  std::function<void(Plan&)> change;
};

void PrintTo(const Mutant& mutant, std::ostream* out) {
  *out << mutant.name;
}

PlanMatrix& matrix(Plan& plan, const char* name) {
  return named(plan.matrices, name);
}
PlanRegion& shared(Plan& plan, const char* name) {
  return named(plan.shared, name);
}

class VerifyIntegers : public testing::TestWithParam<Mutant> {};

INSTANTIATE_TEST_SUITE_P(
    Mutants, VerifyIntegers,
    testing::Values(
        Mutant{"pages_without_scales", Rule::kPieceTooSmall,
               "shared memory: pages: expected 135168 bytes or more, got 131072",
               [](Plan& plan) { shared(plan, "pages").bytes = int64_t{plan.ring_slots} * kPageBytes; }},
        Mutant{"pages_short_of_a_scale", Rule::kPieceTooSmall,
               "shared memory: pages: expected 135168 bytes or more, got 135166",
               [](Plan& plan) { shared(plan, "pages").bytes -= 2; }},
        Mutant{"smaller_groups_in_the_same_slots", Rule::kPieceTooSmall,
               "shared memory: pages: expected 147456 bytes or more, got 135168",
               [](Plan& plan) { matrix(plan, "o").format.group = 32; }},
        Mutant{"zeros_in_the_same_slots", Rule::kPieceTooSmall,
               "shared memory: pages: expected 139264 bytes or more, got 135168",
               [](Plan& plan) { matrix(plan, "o").format.has_zeros = true; }},
        Mutant{"padded_like_bf16", Rule::kMatrixShape,
               "matrix down: expected 14336 columns with padding, got 14592",
               [](Plan& plan) {
                 matrix(plan, "down").padded += kColumnBlock * plan.consumer_warps;
                 place(plan, {});
               }},
        Mutant{"padded_twice", Rule::kMatrixShape, "matrix o: expected 4096 columns with padding, got 4608",
               [](Plan& plan) {
                 matrix(plan, "o").padded += kMinIntegerColumns;
                 place(plan, {});
               }},
        Mutant{"columns_cut_off", Rule::kMatrixShape,
               "matrix down: expected 14336 columns with padding, got 13824",
               [](Plan& plan) {
                 matrix(plan, "down").padded -= kMinIntegerColumns;
                 place(plan, {});
               }},
        Mutant{"chunks_of_pages_of_bf16", Rule::kMatrixShape,
               "chunks: expected a multiple of 2048 columns, got 4608",
               [](Plan& plan) {
                 plan.chunk_columns += kPageColumns;
                 place(plan, {});
               }},
        Mutant{"chunks_of_half_a_page", Rule::kMatrixShape,
               "chunks: expected a multiple of 2048 columns, got 5120",
               [](Plan& plan) {
                 plan.chunk_columns += WeightFormat{WeightType::kInt4}.page_columns() / 2;
                 place(plan, {});
               }},
        Mutant{"normed_input_in_chunks", Rule::kMatrixShape,
               "gate_up: expected its normed input of 4096 columns in one chunk, got chunks of 2048",
               [](Plan& plan) {
                 plan.chunk_columns = WeightFormat{WeightType::kInt4}.page_columns();
                 place(plan, {});
               }},
        Mutant{"input_of_bf16", Rule::kPieceTooSmall,
               "shared memory: x: expected 20736 bytes or more, got 16384",
               [](Plan& plan) { shared(plan, "x").bytes = 4096 * 4; }},
        Mutant{"input_short_of_a_sum", Rule::kPieceTooSmall,
               "shared memory: x: expected 20736 bytes or more, got 20732",
               [](Plan& plan) { shared(plan, "x").bytes -= 4; }},
        Mutant{"tiles_of_four_warps", Rule::kPieceTooSmall,
               "shared memory: tiles: expected 2048 bytes or more, got 1024",
               [](Plan& plan) { shared(plan, "tiles").bytes /= 2; }},
        Mutant{
            "groups_of_another_size", Rule::kMatrixShape,
            "matrix o: expected integers of 4 bits in groups of 128, got integers of 4 bits in groups of 64",
            [](Plan& plan) { matrix(plan, "o").format.group = 64; }},
        Mutant{"groups_of_none", Rule::kNumberOutOfRange,
               "matrix o: expected groups of 16, 32, 64 or 128, got 0",
               [](Plan& plan) { matrix(plan, "o").format.group = 0; }},
        Mutant{"zeros_of_their_own", Rule::kMatrixShape,
               "matrix o: expected integers of 4 bits in groups of 128, got integers of 4 bits in groups of "
               "128 with zeros",
               [](Plan& plan) { matrix(plan, "o").format.has_zeros = true; }},
        Mutant{"an_lm_head_of_integers", Rule::kMatrixShape,
               "matrix lm_head: expected bf16, got integers of 4 bits in groups of 128",
               [](Plan& plan) { matrix(plan, "lm_head").format = matrix(plan, "o").format; }},
        Mutant{"lm_head_of_integers_in_its_place", Rule::kWeightsSize, nullptr,
               [](Plan& plan) { matrix(plan, "lm_head").format = matrix(plan, "o").format; }},
        Mutant{"layers_of_bf16_in_their_place", Rule::kWeightsOverlap, nullptr,
               [](Plan& plan) { matrix(plan, "o").format = {}; }},
        Mutant{"packed_weights_without_scales", Rule::kWeightsOverlap, nullptr,
               [](Plan& plan) {
                 const PlanMatrix& qkv = matrix(plan, "qkv");
                 matrix(plan, "o").offset = int64_t{qkv.num_tiles} * kTileRows * qkv.padded / 2;
               }}),
    [](const testing::TestParamInfo<Mutant>& info) { return std::string(info.param.name); });

TEST_P(VerifyIntegers, IsRefused) {
  Plan plan = shipped_plan("llama-3.1-8b-gptq", "h200", {.ring_slots = kRingSlots});
  ASSERT_EQ(refusals(plan), "");
  GetParam().change(plan);
  const std::vector<Violation> violations = verify(plan);
  const auto is_wanted = [](const Violation& violation) {
    return violation.rule == GetParam().rule &&
           (GetParam().message == nullptr || violation.message == GetParam().message);
  };
  EXPECT_TRUE(std::any_of(violations.begin(), violations.end(), is_wanted)) << refusals(plan);
}

// The largest page decides, wherever it is: the layers' pages are integers, the lm_head's too or bf16.
TEST(VerifyIntegers, SlotsHoldPagesOfEveryMatrix) {
  for (const auto& [group, zeros, page] :
       {std::tuple{128, 0, 16896}, {64, 0, 17408}, {32, 0, 18432}, {32, 1, 20480}}) {
    for (const int lm_head_bits : {4, 16}) {
      ModelConfig model = shipped_model("tiny-stories");
      model.facts.weight_bits = 4;
      model.facts.weight_group = group;
      model.facts.weight_zeros = zeros;
      model.facts.lm_head_bits = lm_head_bits;
      Plan plan = make_plan(model, shipped_gpu("h200"), {.ring_slots = 2});
      EXPECT_EQ(refusals(plan), "");
      shared(plan, "pages").bytes = 2 * page - 2;
      EXPECT_EQ(refusals(plan),
                fmt::format("piece too small: shared memory: pages: expected {} bytes or more, "
                            "got {}\n",
                            2 * page, 2 * page - 2));
    }
  }
}

}  // namespace
}  // namespace soliton
