// Steps that take blocks of rows of one prompt: the logits behind it, whichever block its last token is in, and the same bits
// under every schedule. These kernels need several CTAs a block, and hundreds of tokens: one test for what others have several.
#include "bands.h"
#include "kernel/kernel_cases.h"
#include "kernel/kernel_fixture.h"
#include "layout/several_rows.h"
#include "models/error.h"

namespace soliton {
namespace {

constexpr int kContext = 640;

class PromptOfBlocks : public KernelCases {};

INSTANTIATE_TEST_SUITE_P(Kernels, PromptOfBlocks,
                         testing::Values("broad-4-rows512", "int4-wide-4-rows512", "mixture-groups-4-rows512",
                                         "mixture-joint-3-rows256", "mixture-mxfp4-groups-3-rows256",
                                         "int4-groups-3-rows256", "fp8-4-rows512", "broad-3-rows256"),
                         [](const testing::TestParamInfo<const char*>& info) {
                           std::string name = info.param;
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

// Behind a page that is cached and one that begins within a page, the second block is nearly full: all of it is one step.
TEST_P(PromptOfBlocks, MatchesTheReference) {
  KernelUnderTest kernel(GetParam(), kContext);
  const int rows = kernel.engine().max_prompt_rows();
  ASSERT_GE(rows, 256);
  const std::vector<int32_t> tokens = kernel.prompt(70 + rows - 14);
  kernel.fill({tokens.begin(), tokens.begin() + 70});
  kernel.expect_like_reference({tokens.begin() + 70, tokens.end()}, 2);
}

TEST_P(PromptOfBlocks, GivesTheSameBitsUnderEverySchedule) {
  KernelUnderTest kernel(GetParam(), kContext);
  // One step, whose last block is not full; in long runs a kernel of 256 rows goes on behind it.
  const int length = long_tests() ? 390 : std::min(390, kernel.engine().max_prompt_rows() - 6);
  const std::vector<int32_t> tokens = kernel.prompt(length);
  const DecodeResult expected = kernel.decode_from(0, tokens, 1);
  for (uint64_t seed = 1; seed <= (long_tests() ? 4 : 1); ++seed) {
    kernel.emulation().seed = seed;
    kernel.emulation().copies = seed % 2 == 0 ? CopyPolicy::kEager : CopyPolicy::kLate;
    const DecodeResult result = kernel.decode_from(0, tokens, 1);
    EXPECT_EQ(result.logits, expected.logits) << "seed " << seed;
  }
}

// Of one block, whose logits all CTAs find.
TEST_P(PromptOfBlocks, ChoosesTheSameWhereFewRowsAreWanted) {
  KernelUnderTest kernel(GetParam(), kContext);
  Engine& engine = kernel.engine();
  const int rows = engine.max_prompt_rows() - 6;
  const KernelPlan& plan = *engine.library().descriptor(engine.kernel_for_prompt(rows)).plan;
  EXPECT_EQ(rows::multiplies_bands(plan), plan.model.mixture.experts == 0);
  expect_bands_choose_alike(engine, kernel.prompt(rows));
}

// A kernel of blocks draws for no row, and takes no branches.
TEST(PromptOfBlocks, RefusesBranches) {
  KernelUnderTest kernel("broad-4-rows512", kContext);
  EXPECT_EQ(kernel.engine().max_rows(), 8);
  EXPECT_EQ(kernel.engine().kernel_for_prompt(9), kernel.engine().kernel_for_rows(8) + 1);
  EXPECT_THROW(kernel.engine().kernel_for_rows(9), Error);
}

}  // namespace
}  // namespace soliton
