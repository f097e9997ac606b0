// What is said of a model that does not fit a device's memory.
#include "runtime/make/model_memory.h"

#include <gtest/gtest.h>

#include "error_of.h"
#include "models/model_config.h"

namespace soliton {
namespace {

ModelFacts facts_of(const std::string& model) {
  return load_model_config(std::filesystem::path(SOLITON_SOURCE_DIR) / "models" / (model + ".yaml")).facts;
}

/// "7 MESSAGE", or "no error" if it fits.
std::string refusal(const ModelFacts& facts, int32_t context, int64_t free_bytes) {
  return error_of([&] { check_memory("config.json", facts, context, free_bytes); });
}

TEST(CheckMemory, AgreesWithWhatFits) {
  const ModelFacts facts = facts_of("llama-3.1-8b");
  for (const int32_t context : {64, 4096, 131072}) {
    const int64_t least = device_bytes(facts, context);
    EXPECT_EQ(fitting_context(facts, least), context);
    EXPECT_LT(fitting_context(facts, least - 1), context);
    EXPECT_EQ(refusal(facts, context, least), "no error");
    EXPECT_NE(refusal(facts, context, least - 1), "no error");
  }
  EXPECT_EQ(refusal(facts, 0, device_bytes(facts, 64)), "no error") << "any context will do";
  EXPECT_EQ(device_bytes(facts, 65), device_bytes(facts, 128)) << "whole pages";
}

// Of layers with a window the context takes nothing more from some length on.
TEST(CheckMemory, CountsWindowsOnce) {
  ModelFacts facts = facts_of("llama-3.1-8b");
  const int64_t plain = device_bytes(facts, 131072) - device_bytes(facts, 65536);
  for (int layer = 0; layer < 24; ++layer) facts.layer_window[layer] = 4096;
  EXPECT_EQ(device_bytes(facts, 131072) - device_bytes(facts, 65536),
            int64_t{65536} * (8 * 2 * 8 * 128 * 2 + 128 * 4));
  EXPECT_EQ(plain, int64_t{65536} * (32 * 2 * 8 * 128 * 2 + 128 * 4));
  for (const int32_t context : {64, 4096, 8192, 131072}) {
    const int64_t least = device_bytes(facts, context);
    EXPECT_EQ(fitting_context(facts, least), context);
    EXPECT_LT(fitting_context(facts, least - 1), context);
  }
}

TEST(CheckMemory, SaysWhatWouldFit) {
  const ModelFacts facts = facts_of("llama-3.1-8b");
  const std::string expected =
      "7 config.json: expected 16.14 GB of the card's memory for the weights and a context of 64 tokens, "
      "got ";
  EXPECT_EQ(
      refusal(facts, 0, 12'000'000'000),
      expected +
          "12.00 GB free; what would fit: 4-bit layers (5.78 GB), or 4-bit layers and lm_head (5.00 GB)");
  EXPECT_EQ(refusal(facts, 0, 5'500'000'000),
            expected + "5.50 GB free; what would fit: 4-bit layers and lm_head (5.00 GB)");
  EXPECT_EQ(refusal(facts, 0, 4'900'000'000),
            expected + "4.90 GB free; nor do 4-bit layers and lm_head fit (5.00 GB)");
  EXPECT_EQ(
      refusal(facts, 32768, 20'000'000'000),
      "7 config.json: expected 20.44 GB of the card's memory for the weights and a context of 32768 tokens, "
      "got 20.00 GB free; what would fit: a context of " +
          std::to_string(fitting_context(facts, 20'000'000'000)) +
          ", or 4-bit layers (10.08 GB), or 4-bit layers and lm_head (9.30 GB)");
}

TEST(CheckMemory, KnowsWhatIsSmallAlready) {
  const std::vector<SmallerFormat> formats = smaller_formats(facts_of("llama-3.1-8b-gptq"));
  ASSERT_EQ(formats.size(), 1u);
  EXPECT_EQ(formats[0].name, "4-bit layers and lm_head");
  EXPECT_EQ(device_weight_bytes(formats[0].facts),
            device_weight_bytes(facts_of("llama-3.1-8b-gptq-lm-head")));
  const ModelFacts smallest = facts_of("llama-3.1-8b-gptq-lm-head");
  EXPECT_TRUE(smaller_formats(smallest).empty());
  EXPECT_NE(refusal(smallest, 0, 1000).find("got 0.00 GB free; there is no smaller format of it"),
            std::string::npos)
      << refusal(smallest, 0, 1000);
}

// The formats are those of checkpoints that there are.
TEST(CheckMemory, CountsFormatsAsTheirModels) {
  const std::vector<SmallerFormat> formats = smaller_formats(facts_of("llama-3.1-8b"));
  ASSERT_EQ(formats.size(), 2u);
  EXPECT_EQ(device_weight_bytes(formats[0].facts), device_weight_bytes(facts_of("llama-3.1-8b-gptq")));
  EXPECT_EQ(device_weight_bytes(formats[1].facts),
            device_weight_bytes(facts_of("llama-3.1-8b-gptq-lm-head")));
}

}  // namespace
}  // namespace soliton
