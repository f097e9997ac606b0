// The reference forward pass against small cases worked out by hand and against its own weights: every tensor
// matters, folders are read back.
#include "tests/reference_model.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "layout/fact_list.h"
#include "layout/random.h"
#include "models/hf_config.h"
#include "temporary_folder.h"
#include "tests/reference_testing.h"

namespace soliton {
namespace {

namespace fs = std::filesystem;

/// Grouped heads, two layers; as small as the loader accepts.
ModelFacts small_facts() {
  return {.hidden = 64,
          .ffn = 128,
          .num_layers = 2,
          .num_heads = 4,
          .num_kv_heads = 2,
          .head_dim = 64,
          .vocabulary = 32,
          .tied_lm_head = 0,
          .max_context = 128};
}

Bf16Bits bf16(std::initializer_list<float> values) {
  Bf16Bits bits;
  for (const float value : values) bits.push_back(to_bf16_bits(value));
  return bits;
}

double root_mean_square(std::span<const float> values) {
  double squares = 0.0;
  for (const double value : values) squares += value * value;
  return std::sqrt(squares / static_cast<double>(values.size()));
}

TEST(ReferenceSteps, Bf16RoundsToNearestAndTiesToEven) {
  EXPECT_EQ(to_bf16_bits(1.0f), 0x3f80);
  EXPECT_EQ(to_bf16_bits(-2.0f), 0xc000);
  EXPECT_EQ(to_bf16_bits(1.0f + 0x1p-8f), 0x3f80);             // tie, down to even
  EXPECT_EQ(to_bf16_bits(1.0f + 0x3p-8f), 0x3f82);             // tie, up to even
  EXPECT_EQ(to_bf16_bits(1.0f + 0x1p-8f + 0x1p-23f), 0x3f81);  // just above the tie
  EXPECT_EQ(to_bf16_bits(0x1.ffp127f), 0x7f80);                // past the largest: infinity
  EXPECT_TRUE(std::isnan(from_bf16_bits(to_bf16_bits(NAN))));
  EXPECT_EQ(from_bf16_bits(0xbf40), -0.75f);
  EXPECT_EQ(round_f16(1.0f + 0x1p-11f), 1.0f);  // tie, down to even
  EXPECT_EQ(round_f16(1.0f + 0x3p-11f), 1.0f + 0x1p-9f);
  EXPECT_EQ(round_f16(-1e6f), -65504.0f);
}

TEST(ReferenceSteps, NormDividesByRootMeanSquareAndScales) {
  const std::array x = {3.0, -4.0};
  // The mean square is 12.5; with epsilon 3.5 its root is 4.
  EXPECT_EQ(rms_norm(x, bf16({1.0f, 0.5f}), 3.5), (std::vector<double>{0.75, -0.5}));
}

TEST(ReferenceSteps, FrequenciesAreThetaToTheMinusDimOverHeadDim) {
  const ModelFacts facts = {.head_dim = 4, .rope_theta = 10000.0};
  EXPECT_EQ(rotary_frequencies(facts), (std::vector<float>{1.0f, 0.01f}));
}

TEST(ReferenceSteps, Llama3KeepsBlendsAndDividesFrequenciesByBand) {
  // theta 256: frequencies 1, 1/4, 1/16, 1/64; wavelengths 6.3, 25.1, 100.5, 402.
  const ModelFacts facts = {.head_dim = 8,
                            .rope_kind = RopeKind::kLlama3,
                            .rope_original_context = 128,
                            .rope_theta = 256.0,
                            .rope_factor = 8.0,
                            .rope_low_freq_factor = 1.0,
                            .rope_high_freq_factor = 4.0};
  const std::vector<float> frequencies = rotary_frequencies(facts);
  EXPECT_EQ(frequencies[0], 1.0f);           // wavelength below 128 / 4
  EXPECT_EQ(frequencies[1], 0.25f);          // likewise
  EXPECT_EQ(frequencies[3], 1.0f / 512.0f);  // wavelength above 128 / 1
  const double smooth = (128.0 / (2.0 * M_PI * 16.0) - 1.0) / 3.0;
  EXPECT_NEAR(frequencies[2], (1.0 - smooth) / 128.0 + smooth / 16.0, 1e-8);
}

TEST(ReferenceSteps, RotationAtPositionZeroChangesNothing) {
  std::array head = {1.0, -2.0, 3.0, -4.0};
  const auto before = head;
  rotate(head, 0, std::array{1.0f, 0.01f});
  EXPECT_EQ(head, before);
}

TEST(ReferenceSteps, RotationPairsHalvesAndTurnsCounterClockwise) {
  std::array head = {1.0, 0.0, 0.0, 2.0};  // pairs (1, 0) and (0, 2)
  const auto quarter = static_cast<float>(M_PI / 6.0);
  rotate(head, 3, std::array{quarter, 2.0f * quarter});
  constexpr double kTolerance = 1e-6;  // of an angle near pi, rounded to float
  EXPECT_NEAR(head[0], 0.0, kTolerance);
  EXPECT_NEAR(head[2], 1.0, kTolerance);
  EXPECT_NEAR(head[1], 0.0, kTolerance);
  EXPECT_NEAR(head[3], -2.0, kTolerance);
}

TEST(ReferenceSteps, AngleIsAFloatProductWithExactCosine) {
  // 100003 * 0.1f rounds by 2e-4: far more than the tolerance.
  const float angle = 100003.0f * 0.1f;
  std::array head = {1.0, 0.0};
  rotate(head, 100003, std::array{0.1f});
  EXPECT_EQ(head[0], static_cast<float>(std::cos(double{angle})));
  EXPECT_EQ(head[1], static_cast<float>(std::sin(double{angle})));
}

TEST(ReferenceSteps, SoftmaxOfOneIsOneAndOfManyFollowsRatios) {
  EXPECT_EQ(softmax(std::array{-1000.0}), std::vector<double>{1.0});
  const std::vector<double> probabilities = softmax(std::array{1000.0, 1000.0 + std::log(3.0)});
  EXPECT_NEAR(probabilities[0], 0.25, 1e-12);
  EXPECT_NEAR(probabilities[1], 0.75, 1e-12);
}

TEST(ReferenceSteps, ArgmaxTakesTheLowestOnATie) {
  EXPECT_EQ(argmax(std::array{1.0f, 3.0f, 3.0f, 2.0f}), 1);
}

/// One layer of width 4 with two heads of 2 and no ffn: its attention is all there is.
struct AttentionOnly {
  ModelFacts facts = {.hidden = 4,
                      .ffn = 1,
                      .num_layers = 1,
                      .num_heads = 2,
                      .num_kv_heads = 1,
                      .head_dim = 2,
                      .vocabulary = 4,
                      .tied_lm_head = 0,
                      .max_context = 4,
                      .norm_epsilon = 0.0};
  ReferenceWeights weights;

  AttentionOnly() {
    weights.layers.resize(1);
    for_each_tensor(weights, facts, [](const std::string&, const auto& shape, Bf16Bits& bits) {
      bits.assign(static_cast<size_t>(shape.size() == 1 ? shape[0] : shape[0] * shape[1]),
                  to_bf16_bits(shape.size() == 1 ? 1.0f : 0.0f));
    });
    weights.embedding = identity();
    weights.lm_head = identity();
  }
  static Bf16Bits identity() { return bf16({1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1}); }
};

/// Expects what an identity lm_head makes of the last residual: it divided by its root mean square.
void expect_normed(std::span<const float> logits, const std::vector<double>& residual) {
  double squares = 0.0;
  for (const double value : residual) squares += value * value;
  const double scale = std::sqrt(static_cast<double>(residual.size()) / squares);
  ASSERT_EQ(logits.size(), residual.size());
  constexpr double kTolerance = 1e-6;  // a few roundings to float of values below 2
  for (size_t i = 0; i < logits.size(); ++i) EXPECT_NEAR(logits[i], residual[i] * scale, kTolerance) << i;
}

TEST(ReferenceModel, WithoutLayersMixingLogitsAreTheNormedEmbedding) {
  AttentionOnly model;
  // Token 2's row has mean square 1/4: normed, its 1 becomes 2.
  EXPECT_EQ(ReferenceModel(model.facts, model.weights).step(2, 0), (std::vector<float>{0, 0, 2, 0}));
}

TEST(ReferenceModel, AttentionOverOneTokenReturnsItsValueToEveryHeadOfItsGroup) {
  AttentionOnly model;
  ReferenceLayer& layer = model.weights.layers[0];
  layer.q = AttentionOnly::identity();
  layer.k = bf16({1, 2, 3, 4, 5, 6, 7, 8});
  layer.v = bf16({0, 1.5, 0, 0, 0, -0.5, 0, 0});  // token 1, normed to 2: value (3, -1)
  layer.o = AttentionOnly::identity();
  // Residual (0, 1, 0, 0) plus heads (3, -1) and (3, -1).
  expect_normed(ReferenceModel(model.facts, model.weights).step(1, 0), {3, 0, 3, -1});
}

TEST(ReferenceModel, QueryHeadsOfAGroupAreNeighbours) {
  AttentionOnly model;
  model.facts.num_heads = 4;
  model.facts.num_kv_heads = 2;
  model.facts.head_dim = 2;
  ReferenceLayer& layer = model.weights.layers[0];
  layer.q.assign(8 * 4, 0);
  layer.k.assign(4 * 4, 0);
  // Values (2, 0) for KV head 0 and (4, 0) for KV head 1; o sends the first dim of head h to channel h.
  layer.v = bf16({1, 0, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0});
  layer.o.assign(4 * 8, 0);
  for (size_t head = 0; head < 4; ++head) layer.o[head * 8 + head * 2] = to_bf16_bits(1.0f);
  // Residual (1, 0, 0, 0) plus (2, 2, 4, 4).
  expect_normed(ReferenceModel(model.facts, model.weights).step(0, 0), {3, 2, 4, 4});
}

TEST(ReferenceModel, ScoresAreScaledByTheRootOfHeadDim) {
  AttentionOnly model;
  ReferenceLayer& layer = model.weights.layers[0];
  layer.v = bf16({1, 0, 0, 0, 0, 1, 0, 0});
  layer.o = AttentionOnly::identity();
  layer.q = bf16({0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0});
  layer.k = bf16({1, 0, 0, 0, 0, 0, 0, 0});
  ReferenceModel reference(model.facts, model.weights);
  reference.step(0, 0);  // key (2, 0), value (2, 0)
  // Head 0's query is (2, 0) turned by 1 radian, the new key zero: scores 4 cos(1) / sqrt(2) and 0. The new
  // value is (0, 2). Head 1's query is zero: it averages the values.
  const double weight = 1.0 / (1.0 + std::exp(-4.0 * std::cos(1.0) / std::sqrt(2.0)));
  expect_normed(reference.step(1, 1), {2.0 * weight, 1.0 + 2.0 * (1.0 - weight), 1.0, 1.0});
}

TEST(ReferenceModel, FeedForwardIsSiluOfGateTimesUp) {
  AttentionOnly model;
  ReferenceLayer& layer = model.weights.layers[0];
  layer.gate = bf16({1, 0, 0, 0});  // 2
  layer.up = bf16({1.5, 0, 0, 0});  // 3
  layer.down = bf16({0, 1, 0, 0});
  const double activated = 2.0 / (1.0 + std::exp(-2.0)) * 3.0;
  expect_normed(ReferenceModel(model.facts, model.weights).step(0, 0), {1.0, activated, 0.0, 0.0});
}

TEST(ReferenceModel, ZeroingAnyTensorChangesTheLogits) {
  constexpr std::array kTokens = {3, 31, 7};
  for (const int32_t tied : {0, 1}) {
    ModelFacts facts = small_facts();
    facts.tied_lm_head = tied;
    const ReferenceWeights weights = random_weights(facts, 1);
    const auto before = run(ReferenceModel(facts, weights), kTokens).back();
    ReferenceWeights changed = weights;
    for_each_tensor(changed, facts, [&](const std::string& name, const auto&, Bf16Bits& bits) {
      const Bf16Bits saved = bits;
      std::fill(bits.begin(), bits.end(), uint16_t{0});
      const auto after = run(ReferenceModel(facts, changed), kTokens).back();
      // Far above the noise: a kernel that ignored the tensor could not pass for correct.
      EXPECT_GT(max_difference(before, after), 0.1 * root_mean_square(before)) << name;
      bits = saved;
    });
  }
}

TEST(ReferenceModel, ActivationsOfRandomWeightsAreOfOrderOne) {
  constexpr std::array kTokens = {3, 31, 7, 7, 12};
  const auto logits = run(ReferenceModel(small_facts(), random_weights(small_facts(), 2)), kTokens);
  for (const auto& row : logits) {
    EXPECT_GT(root_mean_square(row), 0.3);
    EXPECT_LT(root_mean_square(row), 3.0);
  }
}

TEST(ReferenceModel, RoundingsAreSmallAndCanBeTurnedOff) {
  constexpr std::array kTokens = {3, 31, 7, 7, 12};
  const auto weights = std::make_shared<const ReferenceWeights>(random_weights(small_facts(), 3));
  const auto logits_with = [&](ReferenceOptions options) {
    return run(ReferenceModel(small_facts(), weights, options), kTokens).back();
  };
  const auto exact = logits_with({.round_activations = false, .round_cache = false});
  const auto rounded = logits_with({.round_activations = true, .round_cache = false});
  const auto cached = logits_with({.round_activations = true, .round_cache = true});
  constexpr double kFloatEpsilon = 0x1p-24;
  constexpr double kBf16Epsilon = 0x1p-9;
  constexpr double kRoundings = 2 * 10;  // layers x rounded vectors on the way
  EXPECT_GT(max_difference(exact, rounded), 0.0);
  EXPECT_LT(max_difference(exact, rounded), kRoundings * kFloatEpsilon * 10.0);
  EXPECT_GT(max_difference(rounded, cached), 0x1p-20);
  EXPECT_LT(max_difference(rounded, cached), kRoundings * kBf16Epsilon);
}

TEST(ReferenceModel, ForkGoingBackAndResetRepeatTheSameLogits) {
  ReferenceModel model(small_facts(), random_weights(small_facts(), 4));
  const auto first = model.step(3, 0);
  const auto second = model.step(31, 1);
  ReferenceModel fork = model;
  const auto third = model.step(7, 2);
  EXPECT_EQ(fork.length(), 2);
  const auto other = fork.step(8, 2);
  EXPECT_GT(max_difference(third, other), 0.0);
  EXPECT_EQ(fork.step(7, 2), third);  // goes back over its own token 8
  fork.step(9, 3);
  EXPECT_EQ(model.step(31, 1), second);
  EXPECT_EQ(model.length(), 2);
  model.reset();
  EXPECT_EQ(model.step(3, 0), first);
}

// What attention reads: a position's own key and value, the same whatever comes after.
TEST(ReferenceModel, ShowsTheKeysAndValuesOfItsCache) {
  const ModelFacts facts = small_facts();
  ReferenceModel model(facts, random_weights(facts, 3));
  model.step(4, 0);
  const auto copy = [](std::span<const double> row) { return std::vector<double>(row.begin(), row.end()); };
  const std::vector<double> keys = copy(model.keys(1, 0));
  const std::vector<double> values = copy(model.values(1, 0));
  ASSERT_EQ(keys.size(), static_cast<size_t>(facts.num_kv_heads * facts.head_dim));
  ASSERT_EQ(values.size(), keys.size());
  model.step(5, 1);
  EXPECT_EQ(copy(model.keys(1, 0)), keys);
  EXPECT_EQ(copy(model.values(1, 0)), values);
  EXPECT_NE(copy(model.keys(1, 1)), keys);
  EXPECT_NE(copy(model.values(1, 1)), values);
  for (const double key : keys) EXPECT_EQ(key, round_f16(static_cast<float>(key)));
}

TEST(ReferenceModel, RefusesWhatItCannotCompute) {
  const ModelFacts facts = small_facts();
  ReferenceModel model(facts, random_weights(facts, 5));
  EXPECT_THROW(model.step(0, 1), std::invalid_argument);
  EXPECT_THROW(model.step(0, -1), std::invalid_argument);
  EXPECT_THROW(model.step(facts.vocabulary, 0), std::invalid_argument);
  EXPECT_THROW(model.step(-1, 0), std::invalid_argument);
  ReferenceWeights cut = random_weights(facts, 5);
  cut.layers[1].up.pop_back();
  EXPECT_THROW(ReferenceModel(facts, cut), std::invalid_argument);
}

TEST(ReferenceWeights, FolderIsReadBackByTheLoader) {
  for (const int num_shards : {1, 3, 21}) {
    ModelFacts facts = small_facts();
    facts.tied_lm_head = 0;
    facts.rope_kind = RopeKind::kLlama3;
    facts.rope_original_context = 32;
    facts.rope_factor = 8.0;
    facts.rope_high_freq_factor = 4.0;
    facts.norm_epsilon = 1e-6;
    const ReferenceWeights weights = random_weights(facts, 6);
    const TemporaryFolder folder;
    write_hf_folder(weights, facts, folder.path(), num_shards);

    const HfConfig config = HfConfig::open(folder.path());
    EXPECT_EQ(hash_facts(config.facts), hash_facts(facts));
    EXPECT_EQ(config.dtype, "bfloat16");
    EXPECT_EQ(config.bos_id, kReferenceBosId);
    EXPECT_EQ(config.eos_ids, std::vector<int>{kReferenceEosId});
    const TensorSource source = TensorSource::open(folder.path());
    EXPECT_EQ(source.names().size(), 21u);
    const ReferenceWeights read = load_weights(source, config.facts);
    EXPECT_EQ(run(ReferenceModel(facts, read), std::array{1, 2}),
              run(ReferenceModel(facts, weights), std::array{1, 2}));
  }
}

TEST(ReferenceWeights, QwensFoldersAreReadBack) {
  ModelFacts qwen2 = small_facts();
  qwen2.qkv_bias = 1;
  qwen2.rope_kind = RopeKind::kYarn;
  qwen2.rope_original_context = qwen2.max_context / 4;
  qwen2.rope_factor = 4.0;
  qwen2.rope_attention_factor = yarn_attention_factor(4.0);
  ModelFacts qwen3 = small_facts();
  qwen3.head_norm = 1;
  qwen3.rope_kind = RopeKind::kLinear;
  qwen3.rope_factor = 2.0;
  for (const ModelFacts& facts : {qwen2, qwen3}) {
    const ReferenceWeights weights = random_weights(facts, 6);
    const TemporaryFolder folder;
    write_hf_folder(weights, facts, folder.path());
    const HfConfig config = HfConfig::open(folder.path());
    EXPECT_EQ(config.architecture, facts.head_norm != 0 ? "Qwen3ForCausalLM" : "Qwen2ForCausalLM");
    EXPECT_EQ(hash_facts(config.facts), hash_facts(facts));
    const ReferenceWeights read = load_weights(TensorSource::open(folder.path()), config.facts);
    EXPECT_EQ(run(ReferenceModel(facts, read), std::array{1, 2}),
              run(ReferenceModel(facts, weights), std::array{1, 2}));
  }
}

TEST(ReferenceWeights, TiedFolderHasNoLmHead) {
  ModelFacts facts = small_facts();
  facts.tied_lm_head = 1;
  const TemporaryFolder folder;
  write_hf_folder(random_weights(facts, 7), facts, folder.path());
  EXPECT_EQ(TensorSource::open(folder.path()).find("lm_head.weight"), nullptr);
  EXPECT_EQ(hash_facts(HfConfig::open(folder.path()).facts), hash_facts(facts));
  EXPECT_THROW(write_hf_folder(random_weights(facts, 7), facts, folder.path(), 0), std::invalid_argument);
  EXPECT_THROW(write_hf_folder(random_weights(facts, 7), facts, folder.path(), 21), std::invalid_argument);
}

}  // namespace
}  // namespace soliton
