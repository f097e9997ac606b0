// The faster kernel is taken, and generates what that kernel does.
#include "runtime/answer/emulation.h"

#include <gtest/gtest.h>

#include <vector>

namespace soliton {
namespace {

Engine make_engine(const std::string& kernel) {
  return {KernelLibrary::open(std::string(SOLITON_TEST_KERNELS) + "/" + kernel + ".so"), {.context = 128}};
}

/// A clock by which the kernel of one row takes so long, and another one so long.
auto clock(double one_row_s, double rows_s) {
  return [=](Engine& engine, double) { return engine.generating_kernel() == 0 ? one_row_s : rows_s; };
}

TEST(Emulation, TheFasterKernelIsTaken) {
  Engine engine = make_engine("plain-4-all");
  EXPECT_EQ(take_fastest_kernel(engine, clock(3, 1)), 1);
  EXPECT_EQ(engine.library().descriptor(engine.generating_kernel()).rows, 8);
  for (const double rows_s : {3.0, 0.9}) {
    EXPECT_EQ(take_fastest_kernel(engine, clock(1, rows_s)), 1);
    EXPECT_EQ(engine.generating_kernel(), 0) << rows_s;
  }
  Engine one_row = make_engine("plain-4-split");
  EXPECT_EQ(take_fastest_kernel(one_row, clock(2, 1)), 2);
  EXPECT_EQ(one_row.generating_kernel(), 0);
}

TEST(Emulation, AStepLeavesNothingBehind) {
  Engine engine = make_engine("plain-4-all");
  engine.load_random(1);
  const std::vector<int32_t> prompt = {1, 2, 3};
  const DecodeResult expected = engine.decode({.tokens = prompt, .max_tokens = 4});
  engine.reset_tree();
  EXPECT_GT(take_fastest_kernel(engine, seconds_of_step), 0);
  EXPECT_GT(seconds_of_step(engine, 1e-9), 0) << "the only step of its launch";
  EXPECT_EQ(engine.position(), 0);
  engine.generate_with(0);
  EXPECT_EQ(engine.decode({.tokens = prompt, .max_tokens = 4}).tokens, expected.tokens);
}

/// What decode() gives with the kernel of 8 rows is what decode_tree(), which has no other, gives.
TEST(Emulation, DecodesWithTheKernelThatIsTaken) {
  Engine engine = make_engine("plain-4-all");
  engine.load_random(1);
  const std::vector<int32_t> prompt = {1, 2, 3, 4, 5};
  constexpr int kTokens = 4;
  const RowSampling drawn{.inverse_temperature = 0.8f, .seed = 3};
  for (const bool draws : {false, true}) {
    engine.reset_tree();
    engine.generate_with(engine.kernel_for_rows(2));
    const auto sampling = draws ? std::optional(drawn) : std::nullopt;
    const DecodeResult result = engine.decode({.tokens = prompt,
                                               .max_tokens = kTokens,
                                               .sampling = sampling,
                                               .want_logits = true,
                                               .want_logprobs = draws});
    ASSERT_EQ(result.tokens.size(), static_cast<size_t>(kTokens));
    EXPECT_EQ(engine.position(), static_cast<int>(prompt.size()) + kTokens - 1);
    EXPECT_EQ(result.logprobs.size(), draws ? kTokens : 0u);

    engine.reset_tree();
    engine.feed(engine.main_branch(), std::span(prompt).first(prompt.size() - 1));
    const std::vector<RowSampling> samplings(draws ? 1 : 0, drawn);
    const TreeResult expected = engine.decode_tree({.tokens = std::span(prompt).last(1),
                                                    .num_steps = kTokens,
                                                    .sampling = samplings,
                                                    .want_logits = true});
    EXPECT_EQ(result.tokens, expected.chosen);
    // Greedily the chunk that ends the prompt chooses the first token too, and sums it otherwise.
    if (draws) {
      EXPECT_EQ(result.logits, expected.logits);
    }
  }
}

TEST(Emulation, SaysHowFastItIs) {
  const std::string begin = "No card: emulating on the CPU, for checking; about ";
  EXPECT_EQ(describe_emulation(3.2, false), begin + "0.31 tokens/s");
  EXPECT_EQ(describe_emulation(0.3, false), begin + "3.3 tokens/s");
  EXPECT_EQ(describe_emulation(0.008, false), begin + "125 tokens/s");
  EXPECT_EQ(describe_emulation(0.1, true), "Emulating on the CPU, for checking; about 10 tokens/s");
}

}  // namespace
}  // namespace soliton
