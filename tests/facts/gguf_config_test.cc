// Facts from the metadata of GGUF files: of every architecture those that its config.json has, and what is refused.
#include "models/gguf_config.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numbers>

#include "error_of.h"
#include "gguf_builder.h"
#include "layout/fact_list.h"
#include "models/matrix_roles.h"
#include "temporary_folder.h"

namespace soliton {
namespace {

using nlohmann::json;

/// A model's metadata, and of its tensors those that facts depend on.
GgufBuilder metadata(const std::string& architecture) {
  const std::string prefix = architecture + ".";
  GgufBuilder builder;
  builder.key("general.architecture", architecture)
      .key(prefix + "context_length", 4096)
      .key(prefix + "embedding_length", 256)
      .key(prefix + "block_count", 2)
      .key(prefix + "feed_forward_length", 512)
      .key(prefix + "attention.head_count", 4)
      .key(prefix + "attention.head_count_kv", 2)
      .key(prefix + "attention.layer_norm_rms_epsilon", 1e-5f)
      .key(prefix + "rope.freq_base", 500000.0f)
      .tensor("token_embd.weight", GgufType::kF16, {40, 256}, std::string(40 * 512, '\0'));
  return builder;
}

GgufBuilder gpt_oss() {
  GgufBuilder builder = metadata("gpt-oss");
  return builder.key("gpt-oss.expert_count", 4)
      .key("gpt-oss.expert_used_count", 2)
      .key("gpt-oss.expert_feed_forward_length", 128)
      .key("gpt-oss.attention.sliding_window", 128)
      .key("gpt-oss.rope.scaling.type", "yarn")
      .key("gpt-oss.rope.scaling.factor", 32.0f)
      .key("gpt-oss.rope.scaling.original_context_length", 4096);
}

const json kConfig = json::parse(R"({"hidden_size": 256, "intermediate_size": 512, "num_hidden_layers": 2,
  "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 64, "vocab_size": 40,
  "max_position_embeddings": 4096, "rms_norm_eps": 1e-5, "rope_theta": 500000.0, "tie_word_embeddings": true})");

class GgufConfig : public testing::Test {
 protected:
  HfConfig open(const GgufBuilder& builder) const {
    builder.write(folder_.path() / "m.gguf");
    return HfConfig::open(folder_.path() / "m.gguf");
  }
  std::string refusal(const GgufBuilder& builder) const {
    return error_of([&] { open(builder); });
  }
  /// The facts of kConfig with these members, as one of such a family.
  static ModelFacts facts_of(const std::string& family, const json& members = json::object()) {
    json config = kConfig;
    config["architectures"] = {family};
    config.update(members);
    return HfConfig::read(config, "config.json", std::nullopt).facts;
  }
  void expect_facts(const GgufBuilder& builder, const ModelFacts& facts) const {
    EXPECT_EQ(hash_facts(open(builder).facts), hash_facts(facts));
  }

  const TemporaryFolder folder_;
};

TEST_F(GgufConfig, HasTheFactsOfConfigJson) {
  expect_facts(metadata("llama"), facts_of("LlamaForCausalLM"));
  expect_facts(metadata("llama").tensor("output.weight", GgufType::kF32, {1}, "1234"),
               facts_of("LlamaForCausalLM", {{"tie_word_embeddings", false}}));
  expect_facts(metadata("qwen2"), facts_of("Qwen2ForCausalLM"));
  expect_facts(metadata("qwen3").key("qwen3.attention.key_length", 128),
               facts_of("Qwen3ForCausalLM", {{"head_dim", 128}}));
  expect_facts(metadata("phi3"), facts_of("Phi3ForCausalLM"));
  expect_facts(metadata("phi3").key("phi3.attention.sliding_window", 2047),
               facts_of("Phi3ForCausalLM", {{"sliding_window", 2047}}));
  const json experts = {{"num_experts_per_tok", 2}, {"norm_topk_prob", true}};
  json mixtral = experts;
  mixtral["num_local_experts"] = 8;
  expect_facts(metadata("llama").key("llama.expert_count", 8).key("llama.expert_used_count", 2),
               facts_of("MixtralForCausalLM", mixtral));
  json qwen = experts;
  qwen.update({{"num_experts", 16}, {"moe_intermediate_size", 128}});
  expect_facts(metadata("qwen3moe")
                   .key("qwen3moe.expert_count", 16)
                   .key("qwen3moe.expert_used_count", 2)
                   .key("qwen3moe.expert_feed_forward_length", 128),
               facts_of("Qwen3MoeForCausalLM", qwen));
}

// What tests/verify/gguf_families_test.cc has not: what files leave out, or say otherwise.
TEST_F(GgufConfig, KnowsWhatFilesOfFamiliesLeaveOut) {
  const json gemma = {{"hidden_activation", "gelu_pytorch_tanh"}, {"query_pre_attn_scalar", 64}};
  expect_facts(metadata("gemma2"), facts_of("Gemma2ForCausalLM", gemma));
  json no_window = gemma;
  no_window["sliding_window"] = nullptr;
  no_window["layer_types"] = {"full_attention", "full_attention"};
  expect_facts(metadata("gemma3"), facts_of("Gemma3ForCausalLM", no_window));
  json windows = gemma;
  windows.update({{"sliding_window", 64}, {"sliding_window_pattern", 2}});
  const auto gemma3 = [] { return metadata("gemma3").key("gemma3.attention.sliding_window", 64); };
  expect_facts(gemma3().key("gemma3.attention.sliding_window_pattern", 2),
               facts_of("Gemma3ForCausalLM", windows));
  EXPECT_NE(refusal(gemma3().key("gemma3.attention.sliding_window_pattern", std::vector<int32_t>{1}))
                .find("gemma3.attention.sliding_window_pattern: expected 2 flags, one a layer, got 1"),
            std::string::npos);
  EXPECT_NE(refusal(metadata("qwen2").key("qwen2.attention.sliding_window_pattern", 2))
                .find("qwen2.attention.sliding_window_pattern: expected nothing, got 2: not supported"),
            std::string::npos);
  EXPECT_NE(refusal(metadata("gemma3").key("gemma3.attn_logit_softcapping", 30.0f))
                .find("attn_logit_softcapping: expected nothing, got 30"),
            std::string::npos);
  expect_facts(metadata("granite"), facts_of("GraniteForCausalLM", {{"attention_multiplier", 0.125}}));
  EXPECT_NE(refusal(metadata("granite").key("granite.rope.scaling.finetuned", false))
                .find("granite.rope.scaling.finetuned: expected true, got false"),
            std::string::npos);
  expect_facts(metadata("olmo2"), facts_of("Olmo2ForCausalLM"));
  expect_facts(metadata("olmo2").key("olmo2.attention.sliding_window", 64),
               facts_of("Olmo3ForCausalLM", {{"sliding_window", 64}, {"rope_local_base_freq", 500000.0}}));
  expect_facts(metadata("mistral3"), facts_of("Ministral3ForCausalLM", {{"sliding_window", nullptr}}));
  EXPECT_NE(refusal(metadata("mistral3").key("mistral3.attention.temperature_scale", 0.1f))
                .find("mistral3.attention.temperature_scale: expected nothing where rope is not stretched"),
            std::string::npos);
  expect_facts(metadata("glm4").key("glm4.rope.dimension_count", 32),
               facts_of("Glm4ForCausalLM", {{"attention_bias", false}}));
  expect_facts(metadata("seed_oss").tensor("blk.0.attn_q.bias", GgufType::kF32, {1}, "1234"),
               facts_of("SeedOssForCausalLM", {{"attention_out_bias", false}}));
}

TEST_F(GgufConfig, StretchesAsTheFileSays) {
  const auto scaled = [](const char* type) {
    return metadata("qwen2").key("qwen2.rope.scaling.type", type).key("qwen2.rope.scaling.factor", 4.0f);
  };
  expect_facts(scaled("none"), facts_of("Qwen2ForCausalLM"));
  expect_facts(scaled("linear"),
               facts_of("Qwen2ForCausalLM", {{"rope_scaling", {{"rope_type", "linear"}, {"factor", 4}}}}));
  expect_facts(
      scaled("yarn").key("qwen2.rope.scaling.original_context_length", 1024),
      facts_of("Qwen2ForCausalLM",
               {{"rope_scaling",
                 {{"rope_type", "yarn"}, {"factor", 4}, {"original_max_position_embeddings", 1024}}}}));
  const auto yarn = [&](const char* key, float value) {
    return scaled("yarn").key("qwen2.rope.scaling.original_context_length", 1024).key(key, value);
  };
  EXPECT_EQ(refusal(yarn("qwen2.rope.scaling.attn_factor", 1)), "no error");
  EXPECT_NE(refusal(yarn("qwen2.rope.scaling.attn_factor", 2)).find("attn_factor: expected nothing, got 2"),
            std::string::npos);
  EXPECT_NE(refusal(yarn("qwen2.rope.scaling.yarn_log_multiplier", 1))
                .find("yarn_log_multiplier: expected nothing"),
            std::string::npos);
  EXPECT_NE(
      refusal(scaled("longrope")).find("rope.scaling.type: expected none, linear or yarn, got \"longrope\""),
      std::string::npos);
  EXPECT_NE(refusal(scaled("yarn")).find("qwen2.rope.scaling.original_context_length: expected"),
            std::string::npos);
}

/// What Llama 3.1's converter writes.
std::string llama3_factors(double factor, double original, double theta, int dims) {
  std::string bytes;
  for (int pair = 0; pair < dims / 2; ++pair) {
    const double length = 2 * std::numbers::pi * std::pow(theta, 2.0 * pair / dims);
    const double smooth = (original / length - 1) / 3;
    const double value = length < original / 4 ? 1
                         : length > original   ? factor
                                               : 1 / ((1 - smooth) / factor + smooth);
    bytes += bytes_of(static_cast<float>(value));
  }
  return bytes;
}

TEST_F(GgufConfig, FindsLlama3sFormulaInItsFactors) {
  const auto with_factors = [](const std::string& bytes) {
    return metadata("llama").tensor("rope_freqs.weight", GgufType::kF32,
                                    {static_cast<int64_t>(bytes.size() / sizeof(float))}, bytes);
  };
  for (const auto& [factor, original] : {std::pair(8, 8192), std::pair(32, 8192), std::pair(8, 256)}) {
    expect_facts(with_factors(llama3_factors(factor, original, 500000, 64)),
                 facts_of("LlamaForCausalLM", {{"rope_scaling",
                                                {{"rope_type", "llama3"},
                                                 {"factor", factor},
                                                 {"low_freq_factor", 1},
                                                 {"high_freq_factor", 4},
                                                 {"original_max_position_embeddings", original}}}}));
  }
  std::string ones;
  for (int i = 0; i < 32; ++i) ones += bytes_of(1.0f);
  expect_facts(with_factors(ones), facts_of("LlamaForCausalLM"));
  std::string others = llama3_factors(8, 8192, 500000, 64);
  others.replace(20 * sizeof(float), sizeof(float), bytes_of(3.0f));
  EXPECT_NE(refusal(with_factors(others)).find("5 "), std::string::npos);
  EXPECT_NE(
      refusal(with_factors(others)).find("rope_freqs.weight: expected the factors of Llama 3.1's formula"),
      std::string::npos);
  for (const float last : {0.0f, -1.0f, std::numeric_limits<float>::infinity(), std::nanf("")}) {
    others.replace(31 * sizeof(float), sizeof(float), bytes_of(last));
    EXPECT_NE(refusal(with_factors(others)).find("formula"), std::string::npos) << last;
  }
  EXPECT_NE(refusal(with_factors(llama3_factors(8, 8192, 500000, 128))).find("expected F32 [32]"),
            std::string::npos);
  EXPECT_NE(
      refusal(with_factors(ones).key("llama.rope.scaling.factor", 2.0f)).find("beside rope_freqs.weight"),
      std::string::npos);
}

TEST_F(GgufConfig, KnowsTheEndsOfAnswers) {
  const std::vector<std::string> tokens = {"<s>", "</s>", "a", "<|im_end|>", "<|eot_id|>"};
  GgufBuilder builder = metadata("llama");
  builder.key("tokenizer.ggml.tokens", tokens)
      .key("tokenizer.ggml.token_type", std::vector<int32_t>{3, 3, 1, 3, 1});
  builder.key("tokenizer.ggml.bos_token_id", 0).key("tokenizer.ggml.eos_token_id", 1);
  const HfConfig config = open(builder);
  EXPECT_EQ(config.eos_ids, (std::vector<int>{1, 3}));  // the last is no special token
  EXPECT_EQ(config.bos_id, 0);
  GgufBuilder harmony = gpt_oss();
  harmony
      .key("tokenizer.ggml.tokens",
           std::vector<std::string>{"<|endoftext|>", "<|end|>", "<|return|>", "<|call|>"})
      .key("tokenizer.ggml.token_type", std::vector<int32_t>{3, 3, 3, 3});
  EXPECT_EQ(open(harmony).eos_ids, (std::vector<int>{0, 2, 3}));  // a message ends, and another one begins
  builder.key("tokenizer.ggml.eot_token_id", 40);
  EXPECT_NE(refusal(builder).find("tokenizer.ggml.eot_token_id: expected"), std::string::npos);
}

TEST_F(GgufConfig, RefusesByTheNamesOfTheFile) {
  const std::string path = (folder_.path() / "m.gguf").string();
  EXPECT_EQ(
      refusal(metadata("mamba")),
      "5 " + path +
          ": general.architecture: expected one of llama, qwen2, qwen3, qwen3moe, phi3, gemma2, gemma3, "
          "granite, olmo2, smollm3, mistral3, exaone4, glm4, seed_oss, hunyuan-dense, gpt-oss, got "
          "\"mamba\"");
  EXPECT_EQ(refusal(GgufBuilder()), "4 " + path + ": general.architecture: expected a string, got nothing");
  const auto refused_with = [&](const char* key, auto value) {
    GgufBuilder builder;
    builder.key("general.architecture", "llama").key(key, value);
    for (const char* other : {"llama.context_length", "llama.embedding_length", "llama.block_count",
                              "llama.feed_forward_length", "llama.attention.head_count"}) {
      if (std::string(other) != key) builder.key(other, 256);
    }
    builder.key("llama.attention.layer_norm_rms_epsilon", 1e-5f);
    builder.tensor("token_embd.weight", GgufType::kF16, {1, 1}, "12");
    return refusal(builder);
  };
  for (const auto& [key, value] :
       {std::pair("llama.feed_forward_length", 100), std::pair("llama.block_count", 5000)})
    EXPECT_NE(refused_with(key, value).find(": " + std::string(key) + ": expected"), std::string::npos)
        << refused_with(key, value);
  EXPECT_NE(refused_with("llama.embedding_length", "x").find("llama.embedding_length: expected an integer"),
            std::string::npos)
      << refused_with("llama.embedding_length", "x");
  EXPECT_NE(refusal(metadata("llama").key("llama.rope.dimension_count", 32))
                .find("llama.rope.dimension_count: expected 64, as heads are wide, got 32"),
            std::string::npos);
  EXPECT_NE(
      refusal(metadata("qwen2").key("qwen2.expert_count", 4)).find("qwen2.expert_count: expected 0, got 4"),
      std::string::npos);
  EXPECT_NE(refusal(metadata("phi3").tensor("rope_factors_long.weight", GgufType::kF32, {1}, "1234"))
                .find("rope_factors_long.weight: longrope is not supported"),
            std::string::npos);
}

TEST_F(GgufConfig, RefusesMatricesThatNoKernelComputesWith) {
  const auto with = [&](const char* name, GgufType type) {
    const std::string block(gguf_type(type).block_bytes, '\0');
    return metadata("llama").tensor(name, type, {1, gguf_type(type).block_columns}, block);
  };
  const auto expect = [](const std::string& error, const std::string& part) {
    EXPECT_NE(error.find(part), std::string::npos) << error;
  };
  expect(refusal(with("blk.0.ffn_down.weight", GgufType::kMXFP4)),
         "blk.0.ffn_down.weight: expected floats, Q4_0, Q4_1, Q5_0, Q5_1, Q8_0, Q2_K to Q6_K, IQ4_NL or "
         "IQ4_XS, got MXFP4: no kernel");
  expect(refusal(with("output.weight", GgufType::kQ6_K)),
         "output.weight: expected BF16, F16 or F32, as layers have, got Q6_K: no kernel");
  expect(refusal(with("blk.0.ffn_gate_inp.weight", GgufType::kQ8_0)),
         "blk.0.ffn_gate_inp.weight: expected BF16, F16 or F32, got Q8_0: no kernel");
  // Of Q5_0 scales are f16, of Q6_K integers times one for a block: no format has both.
  expect(refusal(with("blk.0.attn_v.weight", GgufType::kQ6_K)
                     .tensor("blk.0.attn_k.weight", GgufType::kQ5_0, {1, 32}, std::string(22, '\0'))),
         "blk.0.attn_v.weight: expected a type that one format holds with those of other tensors, got Q6_K: "
         "no kernel");
  EXPECT_EQ(refusal(with("not_read.weight", GgufType::kQ6_K)), "no error");
  const auto experts = [](const char* name, GgufType type) {
    const GgufTypeFacts& facts = gguf_type(type);
    return gpt_oss()
        .tensor("blk.0.ffn_gate_exps.weight", GgufType::kMXFP4, {1, 1, 32}, std::string(17, '\0'))
        .tensor(name, type, {1, facts.block_columns}, std::string(facts.block_bytes, '\0'))
        .tensor("blk.1.attn_q.weight", GgufType::kQ8_0, {1, 32}, std::string(34, '\0'));
  };
  expect(refusal(experts("blk.0.ffn_up_exps.weight", GgufType::kQ8_0)),
         "blk.0.ffn_up_exps.weight: expected MXFP4, as other experts have, got Q8_0: no kernel");
  expect(refusal(experts("blk.0.attn_v.weight", GgufType::kQ5_0)),
         "expected one type beside the experts' MXFP4, got Q5_0: no kernel");
  expect(refusal(with("blk.0.ffn_down_exps.weight", GgufType::kMXFP4)), "got MXFP4: no kernel");
}

// As llama.cpp mixes Q4_K_M, and what one matrix has of both becomes.
TEST_F(GgufConfig, StatesTwoFormatsThatHoldAllTypes) {
  using enum GgufType;
  const auto matrix = [](GgufBuilder& builder, const std::string& name, GgufType type) {
    const GgufTypeFacts& facts = gguf_type(type);
    builder.tensor(name + ".weight", type, {1, facts.block_columns}, std::string(facts.block_bytes, '\0'));
  };
  GgufBuilder builder = metadata("llama");
  for (const auto& [layer, type] : {std::pair("blk.0.", kQ4_K), std::pair("blk.1.", kQ6_K)}) {
    for (const char* name : {"attn_q", "attn_k", "attn_output", "ffn_gate", "ffn_up"})
      matrix(builder, std::string(layer) + name, kQ4_K);
    for (const char* name : {"attn_v", "ffn_down"}) matrix(builder, std::string(layer) + name, type);
  }
  matrix(builder, "output", kQ6_K);
  const ModelFacts facts = open(builder).facts;
  EXPECT_EQ(weight_format(facts, 4), (WeightFormat{WeightType::kInt4, 32, false, true, 256}));
  EXPECT_EQ(weight_format(facts, 6), (WeightFormat{WeightType::kInt6, 16, false, true, 256}));
  EXPECT_EQ(facts.layer_further[0], 0);
  EXPECT_EQ(facts.layer_further[1], kQkvMatrix | kDownMatrix);
  EXPECT_EQ(facts.lm_head_bits, 6);
}

TEST_F(GgufConfig, ReadsIntegersWhereLayersHaveThem) {
  const auto q4 = [] { return std::string(18, '\0'); };
  GgufBuilder builder = metadata("llama").tensor("blk.0.attn_q.weight", GgufType::kQ4_0, {1, 32}, q4());
  HfConfig config = open(builder);
  ASSERT_TRUE(config.quantization.has_value());
  EXPECT_EQ(config.facts.weight_bits, 4);
  EXPECT_EQ(config.facts.weight_group, 32);
  EXPECT_EQ(config.facts.weight_zeros, 0);
  EXPECT_EQ(config.facts.lm_head_bits, 16);
  config = open(builder.tensor("output.weight", GgufType::kQ4_0, {1, 32}, q4()));
  EXPECT_EQ(config.facts.lm_head_bits, 4);
}

}  // namespace
}  // namespace soliton
