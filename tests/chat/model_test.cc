// How long a context is made where nobody says so, and what is said of it.
#include "runtime/answer/model.h"

#include <gmock/gmock.h>

#include "error_of.h"
#include "models/model_config.h"
#include "models/model_tables.h"
#include "runtime/make/model_memory.h"

namespace soliton {
namespace {

class ChooseContext : public testing::Test {
 protected:
  /// The context on a card with so many bytes free, or what is thrown.
  std::string chosen(int64_t free_bytes) const {
    DeviceInfo card{};
    card.free_bytes = free_bytes;
    std::string context;
    const std::string error =
        error_of([&] { context = std::to_string(choose_context(options_, config(), card)); });
    return context.empty() ? error : context;
  }

  HfConfig config() const {
    HfConfig config;
    config.facts = facts_;
    return config;
  }

  ModelFacts facts_ =
      load_model_config(std::filesystem::path(SOLITON_SOURCE_DIR) / "models" / "llama-3.1-8b.yaml").facts;
  const int64_t weights_ = device_weight_bytes(facts_);
  const int64_t token_ = context_token_bytes(facts_);
  Options options_ = [] {
    Options options;
    options.model = "models/8b";
    return options;
  }();
};

TEST_F(ChooseContext, IsWhatModelMemoryAndTheCapAllow) {
  constexpr int64_t kGigabyte = 1'000'000'000;
  EXPECT_EQ(chosen(80 * kGigabyte), "32768") << "the cap";
  const int most = std::stoi(chosen(weights_ + 3 * kGigabyte));
  EXPECT_GT(most, 8'000);
  EXPECT_LT(most, 3 * kGigabyte / token_);
  EXPECT_EQ(most % 64, 0);
  facts_.max_context = 2048;
  EXPECT_EQ(chosen(80 * kGigabyte), "2048") << "the model's";
  EXPECT_EQ(chosen(weights_ + kGigabyte / 5), "64") << "when little is left, less is left free";
  EXPECT_EQ(
      chosen(kGigabyte),
      "7 models/8b/config.json: expected 16.14 GB of the card's memory for the weights and a context of 64 "
      "tokens, got 1.00 GB free; nor do 4-bit layers and lm_head fit (5.00 GB)");
  EXPECT_EQ(choose_context(options_, config(), std::nullopt), 2048);
  facts_.max_context = 131072;
  EXPECT_EQ(choose_context(options_, config(), std::nullopt), 4096) << "in emulation";
}

// A named kernel of the card's kind has the card's memory, the emulation's four contexts.
TEST_F(ChooseContext, TheCacheOfManyTextsIsWhatMemoryHolds) {
  DeviceInfo card{};
  card.free_bytes = weights_ + 10'000'000'000;
  const auto tokens = [&](int64_t wanted, bool has_card = true) {
    return choose_pool_tokens(options_, config(), 4096, wanted,
                              has_card ? std::optional(card) : std::nullopt);
  };
  const int64_t room = tokens(0);
  EXPECT_GT(room, 60'000);
  EXPECT_LT(room, 10'000'000'000 / token_);
  EXPECT_EQ(tokens(5000), 5000);
  EXPECT_EQ(tokens(100), 4096 + 64) << "a context and a page at least";
  EXPECT_THAT(error_of([&] { tokens(room + 1); }), testing::StartsWith("7 --cache-tokens: expected at most"));
  EXPECT_EQ(tokens(0, false), 4 * 4096);
  options_.kernel = SOLITON_BINARY_DIR "/fake_kernel/kernel.so";
  EXPECT_EQ(tokens(0), room);
  options_.kernel = SOLITON_TEST_KERNELS "/plain-4-all.so";
  EXPECT_EQ(tokens(0), 4 * 4096);
}

TEST_F(ChooseContext, CountsTheBitsOfTheCache) {
  const int64_t bytes = weights_ + 3'000'000'000;
  const int most = std::stoi(chosen(bytes));
  options_.kv_bits = 32;
  EXPECT_LE(std::stoi(chosen(bytes)), most / 2 + 64);
}

TEST_F(ChooseContext, IsWhatIsAskedForIfItFits) {
  options_.context = 100'000;
  EXPECT_EQ(chosen(80'000'000'000), "100000");
  EXPECT_EQ(choose_context(options_, config(), std::nullopt), 100'000);
  const int most = fitting_context(facts_, weights_ + 3'000'000'000);
  EXPECT_EQ(
      chosen(weights_ + 3'000'000'000),
      "7 --ctx-size: expected 29.29 GB of the card's memory for the weights and a context of 100000 tokens, "
      "got 19.06 GB free; what would fit: a context of " +
          std::to_string(most) + ", or 4-bit layers (18.93 GB), or 4-bit layers and lm_head (18.15 GB)");
  options_.context = most;
  EXPECT_EQ(chosen(weights_ + 3'000'000'000), std::to_string(most));
  options_.kernel = "kernel.so";
  EXPECT_EQ(chosen(1000), std::to_string(most)) << "and the engine says that not even the weights fit";
  options_.kernel = "";
  options_.context = 131'073;
  EXPECT_EQ(chosen(80'000'000'000), "7 --ctx-size: expected at most the model's 131072 tokens, got 131073");
}

TEST_F(ChooseContext, SaysWhy) {
  EXPECT_EQ(describe_context(options_, 2048, 2048, false), "2048 tokens, all that the model takes");
  EXPECT_EQ(describe_context(options_, 32768, 131072, false), "32768 of the model's 131072 tokens, see -c");
  EXPECT_EQ(describe_context(options_, 4096, 131072, true), "4096 of the model's 131072 tokens, see -c");
  EXPECT_EQ(describe_context(options_, 640, 131072, false),
            "640 of the model's 131072 tokens, as the card's free memory holds");
  options_.context = 640;
  EXPECT_EQ(describe_context(options_, 640, 131072, false), "640 of the model's 131072 tokens");
}

}  // namespace
}  // namespace soliton
