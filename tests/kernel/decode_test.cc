// Whole kernels in emulation against the scalar reference: many shapes, CTA counts, both ways of
// synchronising, many schedules; positions around every boundary of tiles and pages.
#include "kernel/kernel_cases.h"
#include "kernel/kernel_fixture.h"

namespace soliton {
namespace {

class Decode : public KernelCases {};

std::string test_name(const testing::TestParamInfo<const char*>& info) {
  std::string name = info.param;
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
}

INSTANTIATE_TEST_SUITE_P(
    Kernels, Decode,
    testing::Values(
        "micro-1", "micro-3", "micro-6", "micro-17", "plain-11-wide", "micro-3-counter", "plain-4-split",
        "plain-4-split-counter", "narrow96-5", "wide128-4-split", "deep256-5-split", "group7-4",
        "group8-6-split", "group8-3-counter", "broad-2", "broad-3", "broad-20", "int4-3", "int4-5-four",
        "int4-3-counter", "int4-zeros-4", "int4-wide-3", "int4-pages-3", "int4-pages-5-eight",
        "int4-ordered-3-all", "int4-ordered-4-split", "int8-3-all", "micro-1-rows8", "micro-3-rows8",
        "micro-12-rows16", "plain-4-rows8", "plain-4-rows32", "plain-3-rows64", "plain-3-rows64-lanes",
        "plain-2-rows128", "broad-2-rows256", "broad-4-rows64", "group7-4-rows64", "narrow96-3-rows128",
        "norm64-bias-2-rows128", "wide128-5-rows8", "wide128-5-rows32", "deep256-group4-3-rows32",
        "group7-4-rows8", "group7-4-rows32", "group8-6-rows8", "group8-3-rows64", "narrow96-5-rows8",
        "broad-2-rows8", "plain-4-all", "int4-3-all", "int4-zeros-2-rows8", "int4-wide-2-rows8",
        "int4-wide-2-rows32", "int4-wide-2-rows128", "int4-wide-2-rows256", "int4-zeros-3-rows64",
        "int4-bias-3-all", "norm128-4-all", "norm64-bias-5-counter", "norm64-bias-3-rows32",
        "plain-4-split-lanes", "micro-3-counter-lanes", "plain-4-rows8-lanes", "int4-3-rows8-lanes",
        "int4-3-lanes-all", "variant-4-all", "variant-3-rows64", "kinds-14-all", "int4-kinds-3-all",
        "mixture-3", "mixture-9-lanes", "mixture-wide-7", "mixture-wide-4-counter", "int4-mixture-5",
        "mixture-4-rows8", "int4-mixture-3-rows16", "int4-mixture-3-rows8-short",
        "int4-pairs-16-rows16-short", "int4-pairs-3-rows8", "int4-pairs-3-rows16", "int4-pairs-9-rows32",
        "int4-pairs-halved-3-rows8", "mixture-shared-5", "int4-sigmoid-5", "mixture-joint-6",
        "mixture-sinks-5", "mixture-mxfp4-5", "mixture-sinks-4-rows8", "mixture-mxfp4-4-rows8",
        "sandwich-4-all", "after-5-counter", "after-3-all", "int4-after-3-all", "scaled-4-all",
        "turned-3-all", "parallel-3-all", "centred-3-all", "int4-ungated-3-all", "norm-bias-3-all",
        "biases-3-all", "plain-3-bytes", "wide128-2-bytes-rows64", "deep256-3-bytes"),
    test_name);

TEST_P(Decode, MatchesReferenceAroundPageBoundaries) {
  const int num_fed = long_tests() ? 3 : 1;  // tokens before those that are compared
  KernelUnderTest kernel(GetParam());
  // Compared are the tokens on both sides of a boundary.
  kernel.expect_like_reference(kernel.prompt(1), 2, num_fed);   // positions 0, 1
  kernel.expect_like_reference(kernel.prompt(14), 2, num_fed);  // 15, 16: a tile of tokens ends
  kernel.expect_like_reference(kernel.prompt(47), 2, num_fed);  // 63, 64: a page ends
  kernel.expect_like_reference(kernel.prompt(63), 3, num_fed);  // 127, 128, 129
}

// Pages are split over CTAs from the first one on that the window reaches.
TEST(DecodeVariant, LeavesOutThePagesBeforeTheWindow) {
  KernelUnderTest kernel("variant-4-all");
  kernel.expect_like_reference(kernel.prompt(145), 3, 1);
}

// One of the schedules, with copies that land at once, has a launch for each token.
TEST_P(Decode, GivesTheSameBitsUnderEveryScheduleAndInManyLaunches) {
  const int count = long_tests() ? 4 : 2;  // across the end of a page
  const int start = 65 - count;
  KernelUnderTest kernel(GetParam());
  kernel.fill(kernel.prompt(start));
  const std::vector<int32_t> last = kernel.prompt(1);
  const DecodeResult expected = kernel.decode_from(start, last, count);
  for (uint64_t seed = 1; seed <= (long_tests() ? 6 : 3); ++seed) {  // each policy twice or once
    SCOPED_TRACE("seed " + std::to_string(seed));
    kernel.emulation().seed = seed;
    kernel.emulation().copies = seed % 3 == 0   ? CopyPolicy::kEager
                                : seed % 3 == 1 ? CopyPolicy::kLate
                                                : CopyPolicy::kRandom;
    DecodeResult result;
    if (seed % 3 == 0) {
      kernel.engine().set_position(start);
      for (std::vector<int32_t> next = last; std::ssize(result.tokens) < count;) {
        const DecodeResult one = kernel.decode(next, 1);
        next = one.tokens;
        result.tokens.push_back(one.tokens.at(0));
        result.logits.insert(result.logits.end(), one.logits.begin(), one.logits.end());
      }
    } else {
      result = kernel.decode_from(start, last, count);
    }
    EXPECT_EQ(result.tokens, expected.tokens);
    EXPECT_EQ(result.logits, expected.logits);
  }
}

// The checks keep a clock for each pair of threads: kernels of few CTAs only.
class Race : public KernelCases {};

INSTANTIATE_TEST_SUITE_P(
    Kernels, Race,
    testing::Values("micro-1", "micro-3", "micro-6", "micro-3-counter", "plain-4-split",
                    "plain-4-split-counter", "narrow96-5", "wide128-4-split", "deep256-5-split", "group7-4",
                    "group8-6-split", "group8-3-counter", "broad-2", "broad-3", "int4-3", "int4-5-four",
                    "int4-zeros-4", "int4-pages-3", "micro-3-rows8", "plain-4-rows8", "plain-4-rows32",
                    "plain-3-rows64", "plain-2-rows128", "broad-4-rows64", "norm64-bias-2-rows128",
                    "group7-4-rows32", "deep256-group4-3-rows32", "norm128-4-all", "norm64-bias-5-counter",
                    "norm64-bias-3-rows32", "plain-4-split-lanes", "micro-3-counter-lanes",
                    "plain-4-rows8-lanes", "int4-3-rows8-lanes", "int4-3-lanes-all", "mixture-sinks-5",
                    "mixture-sinks-4-rows8", "sandwich-4-all", "after-5-counter", "int4-after-3-all",
                    "plain-3-bytes"),
    test_name);

TEST_P(Race, HasNone) {
  KernelUnderTest kernel(GetParam());
  // The pages before are made without checks; then checked tokens, across the end of a page.
  const bool takes_rows = kernel.engine().library().descriptor().rows > 1;
  const std::vector<int32_t> last = kernel.prompt(takes_rows ? 13 : 1);
  kernel.fill(kernel.prompt(takes_rows ? 118 : 127));
  kernel.emulation().check = true;
  for (uint64_t seed = 1; seed <= (long_tests() ? 3 : 2); ++seed) {
    kernel.emulation().seed = seed;
    kernel.emulation().copies = seed % 2 == 0 ? CopyPolicy::kLate : CopyPolicy::kRandom;
    kernel.emulation().delays_stores = seed % 2 == 0;
    EXPECT_EQ(kernel.decode_from(takes_rows ? 118 : 127, last, 2).tokens.size(), 2u);
  }
}

/// Largest error of the logits behind a prompt, of the largest logit: against a reference whose cache rounds nothing.
double error_of_the_cache(const std::string& name) {
  KernelUnderTest kernel(name);
  kernel.engine().feed_one_by_one();
  const std::vector<int32_t> prompt = kernel.prompt(30);
  const DecodeResult result = kernel.decode(prompt, 1);
  const auto weights = std::make_shared<ReferenceWeights>(random_weights(kernel.facts(), kWeightSeed));
  ReferenceModel exact(kernel.facts(), weights, {.round_cache = false});
  std::vector<float> logits;
  for (const int32_t token : prompt) logits = exact.step(token, exact.length());
  double error = 0;
  double largest = 0;
  for (size_t i = 0; i < logits.size(); ++i) {
    error = std::max(error, std::abs(static_cast<double>(logits[i]) - result.logits[i]));
    largest = std::max(largest, std::abs(static_cast<double>(logits[i])));
  }
  return error / largest;
}

// In one part the rounding of keys and values is the largest error that there is.
TEST(DecodeCache, OfTwoPartsLosesNothing) {
  constexpr double kLimit = 2e-5;
  EXPECT_GT(error_of_the_cache("wide128-4-split"), kLimit);
  for (const char* name : {"group8-6-split", "norm128-4-all"})
    EXPECT_LT(error_of_the_cache(name), kLimit) << name;
}

// Prompts of every length up to two steps and a bit: what a step of several rows leaves in the cache is what
// the tokens one by one would have left.
TEST(DecodeRows, FeedLikeTheReferenceAtEveryLength) {
  KernelUnderTest kernel("plain-4-rows8");
  for (int length = 1; length <= 19; ++length) kernel.expect_like_reference(kernel.prompt(length), 2);
}

// One library, one packed copy of the weights: kernels of many rows take the prompt, that of one row goes on.
TEST(DecodeRows, ALibraryWithSeveralTakesThePromptInFewerSteps) {
  KernelUnderTest kernel("plain-4-all");
  ASSERT_EQ(kernel.engine().library().num_kernels(), 5);
  const std::vector<int32_t> prompt = kernel.prompt(70);  // 64 and 6
  const DecodeResult by_rows = kernel.decode_from(0, prompt, 5);
  EXPECT_EQ(kernel.engine().position(), 74);
  kernel.engine().feed_one_by_one();
  const DecodeResult one_by_one = kernel.decode_from(0, prompt, 5);
  EXPECT_NE(one_by_one.logits, by_rows.logits) << "was the other kernel used at all?";
  EXPECT_EQ(one_by_one.tokens, by_rows.tokens);
}

TEST(DecodeRows, StopTokensAndTheHostEndAPromptsFirstToken) {
  KernelUnderTest kernel("plain-4-all");
  const std::vector<int32_t> prompt = kernel.prompt(20);
  const DecodeResult all = kernel.decode_from(0, prompt, 3);
  kernel.engine().set_position(0);
  const int32_t stop[] = {all.tokens[0]};
  const DecodeResult stopped =
      kernel.engine().decode({.tokens = prompt, .max_tokens = 3, .stop_tokens = stop});
  EXPECT_TRUE(stopped.hit_stop_token);
  EXPECT_EQ(stopped.tokens.size(), 1u);
  EXPECT_EQ(kernel.engine().position(), 20);
  kernel.engine().set_position(0);
  const DecodeResult ended =
      kernel.engine().decode({.tokens = prompt, .max_tokens = 3}, [](int32_t) { return false; });
  EXPECT_EQ(ended.tokens.size(), 1u);
}

TEST(DecodeStop, EndsAfterAStopTokenAndGoesOnFromThere) {
  KernelUnderTest kernel("micro-3");
  const std::vector<int32_t> prompt = kernel.prompt(5);
  const DecodeResult all = kernel.decode_from(0, prompt, 12);
  const int32_t stop[] = {all.tokens[3]};
  const auto first = std::find(all.tokens.begin(), all.tokens.end(), stop[0]) - all.tokens.begin();
  kernel.engine().set_position(0);
  const DecodeResult stopped =
      kernel.engine().decode({.tokens = prompt, .max_tokens = 12, .stop_tokens = stop});
  EXPECT_TRUE(stopped.hit_stop_token);
  ASSERT_EQ(stopped.tokens.size(), static_cast<size_t>(first) + 1);
  EXPECT_EQ(kernel.engine().position(), 5 + static_cast<int>(first));
  const int32_t last[] = {stopped.tokens.back()};
  const DecodeResult rest = kernel.engine().decode({.tokens = last, .max_tokens = 3});
  EXPECT_TRUE(std::equal(rest.tokens.begin(), rest.tokens.end(), all.tokens.begin() + first + 1));
}

TEST(DecodeStop, EndsWhenTheHostAsks) {
  KernelUnderTest kernel("micro-3");
  const std::vector<int32_t> prompt = kernel.prompt(5);
  int seen = 0;
  const DecodeResult result =
      kernel.engine().decode({.tokens = prompt, .max_tokens = 300}, [&](int32_t) { return ++seen < 4; });
  EXPECT_EQ(result.tokens.size(), 4u);
  EXPECT_EQ(kernel.engine().position(), 8);
}

class DecodeLoad : public testing::TestWithParam<const char*> {};

INSTANTIATE_TEST_SUITE_P(Kernels, DecodeLoad, testing::Values("plain-4-split", "norm64-bias-5-counter"),
                         test_name);

TEST_P(DecodeLoad, ZeroingAnyWeightTensorChangesTheLogits) {
  KernelUnderTest kernel(GetParam());
  const std::vector<int32_t> prompt = kernel.prompt(3);
  const DecodeResult expected = kernel.decode_from(0, prompt, 1);
  const ReferenceWeights weights = random_weights(kernel.facts(), kWeightSeed);
  std::vector<std::string> names;
  ReferenceWeights visited = weights;
  for_each_tensor(visited, kernel.facts(),
                  [&](const std::string& name, const auto&, const auto&) { names.push_back(name); });
  for (const std::string& zeroed : names) {
    ReferenceWeights changed = weights;
    for_each_tensor(changed, kernel.facts(), [&](const std::string& name, const auto&, auto& bits) {
      if (name == zeroed) std::fill(bits.begin(), bits.end(), uint16_t{0});
    });
    const TemporaryModel folder(changed, kernel.facts());
    kernel.engine().load(TensorSource::open(folder.path()), nullptr);
    EXPECT_NE(kernel.decode_from(0, prompt, 1).logits, expected.logits) << zeroed;
  }
}

}  // namespace
}  // namespace soliton
