// One kernel over several emulated cards, whose memories see each other's stores late and out of order: the reference,
// schedules, races, and faults that take the scope of the system away.
#include <gmock/gmock.h>

#include "error_of.h"
#include "kernel/kernel_cases.h"
#include "kernel/kernel_fixture.h"

namespace soliton {
namespace {

using testing::HasSubstr;

std::string name_of_cards(const testing::TestParamInfo<const char*>& info) {
  std::string name = info.param;
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
}

constexpr CopyPolicy kPolicies[] = {CopyPolicy::kLate, CopyPolicy::kRandom, CopyPolicy::kEager};

class Cards : public KernelCases {};

INSTANTIATE_TEST_SUITE_P(Kernels, Cards,
                         testing::Values("micro-3-cards2", "plain-2-split-cards2",
                                         "plain-2-split-cards2-counter", "micro-2-cards3", "plain-1-cards4",
                                         "micro-1-cards8", "int4-ordered-2-all-cards2",
                                         "norm128-2-cards2-lanes", "after-2-cards2-all"),
                         name_of_cards);

TEST_P(Cards, MatchReferenceAroundPageBoundaries) {
  constexpr int kFed = 3;
  KernelUnderTest kernel(GetParam());
  kernel.expect_like_reference(kernel.prompt(1), 2, kFed);   // positions 0, 1
  kernel.expect_like_reference(kernel.prompt(60), 4, kFed);  // around 64, the end of a page
  kernel.expect_like_reference(kernel.prompt(62), 4, kFed);  // around 128
}

TEST_P(Cards, GiveTheSameBitsUnderEverySchedule) {
  KernelUnderTest kernel(GetParam());
  kernel.fill(kernel.prompt(62));
  const std::vector<int32_t> last = kernel.prompt(1);
  const DecodeResult expected = kernel.decode_from(62, last, 3);
  for (uint64_t seed = 1; seed <= (long_tests() ? 9 : 3); ++seed) {
    kernel.emulation().seed = seed;
    kernel.emulation().copies = kPolicies[seed % 3];
    EXPECT_EQ(kernel.decode_from(62, last, 3).logits, expected.logits) << "seed " << seed;
  }
}

TEST_P(Cards, HaveNoRaces) {
  KernelUnderTest kernel(GetParam());
  kernel.fill(kernel.prompt(127));
  kernel.emulation().check = true;
  for (uint64_t seed = 1; seed <= (long_tests() ? 4 : 2); ++seed) {
    kernel.emulation().seed = seed;
    kernel.emulation().copies = kPolicies[seed % 2];
    EXPECT_EQ(kernel.decode_from(127, kernel.prompt(1), 2).tokens.size(), 2u);
  }
}

// Every dot product is summed whole by one CTA, and attention is split alike as long as a card's CTAs are enough for it.
TEST(CardsBits, AreThoseOfOneCard) {
  KernelUnderTest one("micro-6");
  KernelUnderTest two("micro-3-cards2");
  KernelUnderTest three("micro-2-cards3");
  const std::vector<int32_t> prompt = one.prompt(130);
  std::vector<DecodeResult> results;
  for (KernelUnderTest* kernel : {&one, &two, &three}) {
    kernel->fill({prompt.begin(), prompt.end() - 1});
    results.push_back(kernel->decode({prompt.back()}, 3));
  }
  EXPECT_EQ(results[1].logits, results[0].logits);
  EXPECT_EQ(results[2].logits, results[0].logits);
}

// At any length, where the plan says so: alone these four CTAs a card would split a head block over four, not over two.
TEST(CardsBits, AreThoseOfOneCardIfAttentionIsSplitAlike) {
  KernelUnderTest one("plain-4-split");
  KernelUnderTest two("plain-4-split2-cards2");
  const std::vector<int32_t> prompt = one.prompt(250);
  std::vector<DecodeResult> results;
  for (KernelUnderTest* kernel : {&one, &two}) {
    kernel->fill({prompt.begin(), prompt.end() - 1});
    results.push_back(kernel->decode({prompt.back()}, 2));
  }
  EXPECT_EQ(results[1].logits, results[0].logits);
}

// Drawn from the same logits by the same seed: truncation is a search that all cards take part in.
TEST(CardsSampling, DrawsTheTokensOfOneCard) {
  constexpr int kTokens = 4;
  const RowSampling kinds[] = {
      {.inverse_temperature = 0.5f, .seed = 3},
      {.inverse_temperature = 0.5f, .seed = 4, .top_k = 9},
      {.inverse_temperature = 0.5f, .seed = 5, .top_p = 0.7f, .max_distance = 2.0f, .penalty = 1.5f}};
  for (const RowSampling& sampling : kinds) {
    std::vector<DecodeResult> results;
    for (const char* name : {"micro-6", "micro-3-cards2", "plain-2-split-cards2"}) {
      KernelUnderTest kernel(name);
      kernel.emulation().check = sampling.top_k > 0;
      const std::vector<int32_t> prompt = kernel.prompt(5);
      results.push_back(kernel.engine().decode({.tokens = prompt,
                                                .max_tokens = kTokens,
                                                .sampling = sampling,
                                                .want_logits = true,
                                                .want_logprobs = true}));
    }
    EXPECT_EQ(results[1].tokens, results[0].tokens);
    EXPECT_EQ(results[1].logprobs, results[0].logprobs);
    // Of another model, whose second card has every other tile: the token's logit is found on its card.
    const DecodeResult& plain = results[2];
    const size_t vocabulary = plain.logits.size() / plain.tokens.size();
    for (size_t i = 0; i < plain.tokens.size(); ++i) {
      const float* logits = plain.logits.data() + i * vocabulary;
      double sum = 0;
      for (size_t t = 0; t < vocabulary; ++t) sum += std::exp(static_cast<double>(logits[t]));
      EXPECT_NEAR(plain.logprobs[i], logits[plain.tokens[i]] - std::log(sum), 1e-3);
    }
  }
}

struct ScopeFault {
  const char* name;
  const char* kernel;
  FaultKind kind;
  bool samples = false;
};

class CardsFault : public testing::TestWithParam<ScopeFault> {};

INSTANTIATE_TEST_SUITE_P(Each, CardsFault,
                         testing::Values(ScopeFault{"accesses_of_the_card", "micro-3-cards2",
                                                    FaultKind::kWeakenSystemAccess},
                                         ScopeFault{"arrivals_of_the_card", "plain-2-split-cards2-counter",
                                                    FaultKind::kWeakenSystemRelease},
                                         ScopeFault{"arrivals_of_an_exchange", "micro-3-cards2",
                                                    FaultKind::kWeakenSystemRelease, true}),
                         [](const auto& info) { return std::string(info.param.name); });

TEST_P(CardsFault, IsFound) {
  const ScopeFault& fault = GetParam();
  KernelUnderTest kernel(fault.kernel);
  kernel.fill(kernel.prompt(66));
  kernel.emulation().check = true;
  kernel.emulation().fault.kind = fault.kind;
  const std::vector<int32_t> last = kernel.prompt(1);
  DecodeRequest request{.tokens = last, .max_tokens = 3, .want_logprobs = fault.samples};
  if (fault.samples) request.sampling = RowSampling{.inverse_temperature = 1.0f, .seed = 1, .top_k = 5};
  std::string found;
  for (uint64_t seed = 1; seed <= 4 && found.empty(); ++seed) {
    kernel.emulation().seed = seed;
    kernel.emulation().copies = kPolicies[seed % 2];
    kernel.engine().set_position(66);
    try {
      kernel.engine().decode(request);
    } catch (const Error& error) {
      found = error.what();
    }
  }
  EXPECT_NE(found, "");
}

// As if it had died: the others wait for its first words, and say so.
TEST(CardsLaunch, EndsWithoutACardThatNeverBegins) {
  KernelUnderTest kernel("micro-3-cards2");
  for (const int lost : {1, 0}) {
    kernel.engine().lose_card(lost);
    const std::string error = error_of([&] { kernel.decode(kernel.prompt(1), 1); });
    EXPECT_THAT(error, HasSubstr(fmt::format("kernel stalled: device {}: CTA", 1 - lost)));
    EXPECT_THAT(error, HasSubstr(fmt::format("; device {}: nothing is running there", lost)));
  }
}

// Where no wait has lasted too long yet, as when a card is lost in mid-launch.
TEST(CardsLaunch, NamesACardThatFails) {
  KernelUnderTest kernel("micro-3-cards2");
  for (const int failing : {1, 0}) {
    kernel.device().failing_card = failing;
    const std::string error = error_of([&] { kernel.decode(kernel.prompt(1), 1); });
    EXPECT_THAT(error, HasSubstr(fmt::format("device {}: CPU emulation: the card has failed", failing)));
    EXPECT_THAT(error, HasSubstr(fmt::format("device {}: nothing is running there", 1 - failing)));
    kernel.device() = {};
  }
}

TEST(CardsLaunch, WantsCardsOfOneKindThatReachOneAnother) {
  KernelUnderTest kernel("micro-3-cards2");
  const auto error_with = [&](std::vector<int> devices) {
    KernelLibrary library = KernelLibrary::open(kernel.engine().library().path());
    return error_of([&] { library.select_cards(std::move(devices)); });
  };
  EXPECT_EQ(error_with({0, 1}), "no error");
  EXPECT_THAT(error_with({0}), HasSubstr("--cards: expected 2 devices, got 1"));
  EXPECT_THAT(error_with({1, 1}), HasSubstr("--cards: expected each device once, got one twice"));
  EXPECT_THAT(error_with({0, 2}), HasSubstr("there are devices 0 to 1, got 2"));
  kernel.device().unreachable_card = 1;
  EXPECT_THAT(error_with({0, 1}), HasSubstr("--cards: CPU emulation: device 1 shares its memory with none"));
  kernel.device() = {.odd_card = 1};
  EXPECT_THAT(error_with({0, 1}), HasSubstr("--cards: expected cards of one kind, got CPU emulation ("));
  kernel.device() = {};
}

}  // namespace
}  // namespace soliton
