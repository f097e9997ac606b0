// The facts of a family's config.json: they are those of models/<name>.yaml, and written as YAML they are read
// back.
#include <gtest/gtest.h>

#include <fstream>
#include <map>
#include <nlohmann/json.hpp>

#include "error_of.h"
#include "layout/fact_list.h"
#include "models/hf_config.h"
#include "models/matrix_roles.h"
#include "models/model_config.h"
#include "models/strict_yaml.h"
#include "temporary_folder.h"

namespace soliton {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

const fs::path kModelsFolder = fs::path(SOLITON_SOURCE_DIR) / "models";

/// config.json as published, without what does not matter here.
json llama(int hidden, int ffn, int layers, int heads, double factor, bool tied) {
  return {{"architectures", {"LlamaForCausalLM"}},
          {"model_type", "llama"},
          {"attention_bias", false},
          {"bos_token_id", 128000},
          {"eos_token_id", 128001},
          {"hidden_act", "silu"},
          {"hidden_size", hidden},
          {"intermediate_size", ffn},
          {"max_position_embeddings", 131072},
          {"mlp_bias", false},
          {"num_attention_heads", heads},
          {"num_hidden_layers", layers},
          {"num_key_value_heads", 8},
          {"rms_norm_eps", 1e-05},
          {"rope_scaling",
           {{"factor", factor},
            {"low_freq_factor", 1.0},
            {"high_freq_factor", 4.0},
            {"original_max_position_embeddings", 8192},
            {"rope_type", "llama3"}}},
          {"rope_theta", 500000.0},
          {"tie_word_embeddings", tied},
          {"torch_dtype", "bfloat16"},
          {"vocab_size", 128256}};
}

/// The same of Qwen2.5, of its base models.
json qwen2(int hidden, int ffn, int heads, int kv_heads, int vocabulary, bool tied) {
  return {{"architectures", {"Qwen2ForCausalLM"}},
          {"model_type", "qwen2"},
          {"bos_token_id", 151643},
          {"eos_token_id", 151643},
          {"hidden_act", "silu"},
          {"hidden_size", hidden},
          {"intermediate_size", ffn},
          {"max_position_embeddings", 131072},
          {"max_window_layers", 28},
          {"num_attention_heads", heads},
          {"num_hidden_layers", 28},
          {"num_key_value_heads", kv_heads},
          {"rms_norm_eps", 1e-06},
          {"rope_theta", 1000000.0},
          {"sliding_window", 131072},
          {"tie_word_embeddings", tied},
          {"torch_dtype", "bfloat16"},
          {"use_mrope", false},
          {"use_sliding_window", false},
          {"vocab_size", vocabulary}};
}

/// And of Qwen3.
json qwen3(int hidden, int ffn, int layers, int heads, bool tied) {
  return {{"architectures", {"Qwen3ForCausalLM"}},
          {"model_type", "qwen3"},
          {"attention_bias", false},
          {"bos_token_id", 151643},
          {"eos_token_id", 151645},
          {"head_dim", 128},
          {"hidden_act", "silu"},
          {"hidden_size", hidden},
          {"intermediate_size", ffn},
          {"max_position_embeddings", 40960},
          {"max_window_layers", layers},
          {"num_attention_heads", heads},
          {"num_hidden_layers", layers},
          {"num_key_value_heads", 8},
          {"rms_norm_eps", 1e-06},
          {"rope_scaling", nullptr},
          {"rope_theta", 1000000},
          {"sliding_window", nullptr},
          {"tie_word_embeddings", tied},
          {"torch_dtype", "bfloat16"},
          {"use_sliding_window", false},
          {"vocab_size", 151936}};
}

/// Qwen3-30B-A3B.
json qwen3_moe() {
  json config = qwen3(2048, 6144, 48, 32, false);
  config.update({{"architectures", {"Qwen3MoeForCausalLM"}},
                 {"model_type", "qwen3_moe"},
                 {"decoder_sparse_step", 1},
                 {"mlp_only_layers", json::array()},
                 {"moe_intermediate_size", 768},
                 {"norm_topk_prob", true},
                 {"num_experts", 128},
                 {"num_experts_per_tok", 8},
                 {"num_key_value_heads", 4},
                 {"output_router_logits", false},
                 {"router_aux_loss_coef", 0.001}});
  return config;
}

/// Qwen1.5-MoE-A2.7B.
json qwen2_moe() {
  json config = qwen2(2048, 5632, 16, 16, 151936, false);
  config.update({{"architectures", {"Qwen2MoeForCausalLM"}},
                 {"model_type", "qwen2_moe"},
                 {"decoder_sparse_step", 1},
                 {"max_position_embeddings", 8192},
                 {"max_window_layers", 21},
                 {"moe_intermediate_size", 1408},
                 {"norm_topk_prob", false},
                 {"num_experts", 60},
                 {"num_experts_per_tok", 4},
                 {"num_hidden_layers", 24},
                 {"output_router_logits", false},
                 {"router_aux_loss_coef", 0.001},
                 {"shared_expert_intermediate_size", 5632},
                 {"sliding_window", 32768}});
  return config;
}

/// GLM-4.5-Air.
json glm4_moe() {
  return {{"architectures", {"Glm4MoeForCausalLM"}},
          {"model_type", "glm4_moe"},
          {"attention_bias", true},
          {"eos_token_id", {151329, 151336, 151338}},
          {"first_k_dense_replace", 1},
          {"head_dim", 128},
          {"hidden_act", "silu"},
          {"hidden_size", 4096},
          {"intermediate_size", 10944},
          {"max_position_embeddings", 131072},
          {"moe_intermediate_size", 1408},
          {"n_group", 1},
          {"n_routed_experts", 128},
          {"n_shared_experts", 1},
          {"norm_topk_prob", true},
          {"num_attention_heads", 96},
          {"num_experts_per_tok", 8},
          {"num_hidden_layers", 46},
          {"num_key_value_heads", 8},
          {"num_nextn_predict_layers", 1},
          {"pad_token_id", 151329},
          {"partial_rotary_factor", 0.5},
          {"rms_norm_eps", 1e-05},
          {"rope_scaling", nullptr},
          {"rope_theta", 1000000},
          {"routed_scaling_factor", 1.0},
          {"tie_word_embeddings", false},
          {"topk_group", 1},
          {"torch_dtype", "bfloat16"},
          {"use_qk_norm", false},
          {"vocab_size", 151552}};
}

/// OLMoE-1B-7B-0924.
json olmoe() {
  return {{"architectures", {"OlmoeForCausalLM"}},
          {"model_type", "olmoe"},
          {"attention_bias", false},
          {"clip_qkv", nullptr},
          {"eos_token_id", 50279},
          {"hidden_act", "silu"},
          {"hidden_size", 2048},
          {"intermediate_size", 1024},
          {"max_position_embeddings", 4096},
          {"norm_topk_prob", false},
          {"num_attention_heads", 16},
          {"num_experts", 64},
          {"num_experts_per_tok", 8},
          {"num_hidden_layers", 16},
          {"num_key_value_heads", 16},
          {"output_router_logits", false},
          {"rms_norm_eps", 1e-05},
          {"rope_scaling", nullptr},
          {"rope_theta", 10000.0},
          {"router_aux_loss_coef", 0.01},
          {"tie_word_embeddings", false},
          {"torch_dtype", "bfloat16"},
          {"vocab_size", 50304}};
}

/// gpt-oss.
json gpt_oss(int layers, int experts) {
  json types = json::array();
  for (int layer = 0; layer < layers; ++layer)
    types.push_back(layer % 2 == 0 ? "sliding_attention" : "full_attention");
  return {{"architectures", {"GptOssForCausalLM"}},
          {"model_type", "gpt_oss"},
          {"attention_bias", true},
          {"attention_dropout", 0.0},
          {"eos_token_id", 200002},
          {"experts_per_token", 4},
          {"head_dim", 64},
          {"hidden_act", "silu"},
          {"hidden_size", 2880},
          {"initial_context_length", 4096},
          {"intermediate_size", 2880},
          {"layer_types", types},
          {"max_position_embeddings", 131072},
          {"num_attention_heads", 64},
          {"num_experts_per_tok", 4},
          {"num_hidden_layers", layers},
          {"num_key_value_heads", 8},
          {"num_local_experts", experts},
          {"output_router_logits", false},
          {"pad_token_id", 199999},
          {"quantization_config",
           {{"modules_to_not_convert",
             {"model.layers.*.self_attn", "model.layers.*.mlp.router", "model.embed_tokens", "lm_head"}},
            {"quant_method", "mxfp4"}}},
          {"rms_norm_eps", 1e-05},
          {"rope_scaling",
           {{"beta_fast", 32.0},
            {"beta_slow", 1.0},
            {"factor", 32.0},
            {"original_max_position_embeddings", 4096},
            {"rope_type", "yarn"},
            {"truncate", false}}},
          {"rope_theta", 150000},
          {"router_aux_loss_coef", 0.9},
          {"sliding_window", 128},
          {"swiglu_limit", 7.0},
          {"tie_word_embeddings", false},
          {"torch_dtype", "bfloat16"},
          {"vocab_size", 201088}};
}

/// As GPTQ's programs leave it by default.
json gptq(json config, bool lm_head) {
  config["quantization_config"] = {{"quant_method", "gptq"},
                                   {"checkpoint_format", "gptq"},
                                   {"bits", 4},
                                   {"group_size", 128},
                                   {"sym", true},
                                   {"desc_act", false},
                                   {"lm_head", lm_head},
                                   {"damp_percent", 0.01},
                                   {"true_sequential", true}};
  return config;
}

/// As Qwen3 and DeepSeek are published.
json fp8(json config) {
  config["quantization_config"] = {{"quant_method", "fp8"},
                                   {"fmt", "e4m3"},
                                   {"activation_scheme", "dynamic"},
                                   {"modules_to_not_convert", {"lm_head", "model.layers.0.input_layernorm"}},
                                   {"weight_block_size", {128, 128}}};
  return config;
}

/// As NVIDIA publishes it.
json nvfp4(json config) {
  config["quantization_config"] = {{"quant_method", "modelopt"},
                                   {"quant_algo", "NVFP4"},
                                   {"kv_cache_scheme", {{"num_bits", 8}, {"type", "float"}}},
                                   {"ignore", {"lm_head"}}};
  return config;
}

std::map<std::string, json> published_configs() {
  return {{"llama-3.1-8b-nvfp4", nvfp4(llama(4096, 14336, 32, 32, 8.0, false))},
          {"llama-3.1-8b-fp8", fp8(llama(4096, 14336, 32, 32, 8.0, false))},
          {"llama-3.1-8b-gptq-lm-head", gptq(llama(4096, 14336, 32, 32, 8.0, false), true)},
          {"llama-3.1-8b-gptq", gptq(llama(4096, 14336, 32, 32, 8.0, false), false)},
          {"llama-3.1-70b-gptq", gptq(llama(8192, 28672, 80, 64, 8.0, false), false)},
          {"llama-3.1-8b", llama(4096, 14336, 32, 32, 8.0, false)},
          {"llama-3.1-70b", llama(8192, 28672, 80, 64, 8.0, false)},
          {"llama-3.2-1b", llama(2048, 8192, 16, 32, 32.0, true)},
          {"llama-3.2-3b", llama(3072, 8192, 28, 24, 32.0, true)},
          {"qwen2.5-1.5b", qwen2(1536, 8960, 12, 2, 151936, true)},
          {"qwen2.5-7b", qwen2(3584, 18944, 28, 4, 152064, false)},
          {"qwen3-0.6b", qwen3(1024, 3072, 28, 16, true)},
          {"qwen3-8b", qwen3(4096, 12288, 36, 32, false)},
          {"qwen3-30b-a3b", qwen3_moe()},
          {"qwen3-30b-a3b-nvfp4", nvfp4(qwen3_moe())},
          {"qwen3-30b-a3b-gptq", gptq(qwen3_moe(), false)},
          {"qwen1.5-moe-a2.7b", qwen2_moe()},
          {"glm-4.5-air", glm4_moe()},
          {"glm-4.5-air-fp8", fp8(glm4_moe())},
          {"olmoe-1b-7b", olmoe()},
          {"gpt-oss-20b", gpt_oss(24, 32)},
          {"gpt-oss-120b", gpt_oss(36, 128)},
          {"mixtral-8x7b",
           {{"architectures", {"MixtralForCausalLM"}},
            {"bos_token_id", 1},
            {"eos_token_id", 2},
            {"hidden_act", "silu"},
            {"hidden_size", 4096},
            {"intermediate_size", 14336},
            {"max_position_embeddings", 32768},
            {"model_type", "mixtral"},
            {"num_attention_heads", 32},
            {"num_experts_per_tok", 2},
            {"num_hidden_layers", 32},
            {"num_key_value_heads", 8},
            {"num_local_experts", 8},
            {"output_router_logits", false},
            {"rms_norm_eps", 1e-05},
            {"rope_theta", 1000000.0},
            {"router_aux_loss_coef", 0.02},
            {"sliding_window", nullptr},
            {"tie_word_embeddings", false},
            {"torch_dtype", "bfloat16"},
            {"vocab_size", 32000}}},
          {"mistral-7b",
           {{"architectures", {"MistralForCausalLM"}},
            {"attention_dropout", 0.0},
            {"bos_token_id", 1},
            {"eos_token_id", 2},
            {"hidden_act", "silu"},
            {"hidden_size", 4096},
            {"initializer_range", 0.02},
            {"intermediate_size", 14336},
            {"max_position_embeddings", 32768},
            {"model_type", "mistral"},
            {"num_attention_heads", 32},
            {"num_hidden_layers", 32},
            {"num_key_value_heads", 8},
            {"rms_norm_eps", 1e-05},
            {"rope_theta", 1000000.0},
            {"sliding_window", nullptr},
            {"tie_word_embeddings", false},
            {"torch_dtype", "bfloat16"},
            {"use_cache", true},
            {"vocab_size", 32768}}}};
}

void expect_alike(const ModelFacts& facts, const std::string& name) {
  SCOPED_TRACE(name);
  EXPECT_EQ(hash_facts(facts), hash_facts(load_model_config(kModelsFolder / (name + ".yaml")).facts));
  const std::string text = format_model_config(name, facts, "");
  const ModelConfig written = parse_model_config(StrictYaml::parse(text, name + ".yaml"), "");
  EXPECT_EQ(hash_facts(written.facts), hash_facts(facts)) << text;
}

TEST(FolderFacts, AreThoseOfTheShippedModels) {
  const TemporaryFolder folder;
  for (const auto& [name, config] : published_configs()) {
    std::ofstream(folder.path() / "config.json") << config;
    expect_alike(HfConfig::open(folder.path()).facts, name);
  }
  for (const char* name : {"tiny-stories", "tiny-stories-gptq", "tiny-stories-experts"}) {
    expect_alike(HfConfig::open(kModelsFolder / name).facts, name);
  }
}

// As version 5 of transformers saves it: the count of experts has Mixtral's name.
TEST(FolderFacts, OfQwenMixturesAreTheSameUnderEitherName) {
  const TemporaryFolder folder;
  json config = qwen3_moe();
  config["num_local_experts"] = config["num_experts"];
  std::ofstream(folder.path() / "config.json") << config;
  expect_alike(HfConfig::open(folder.path()).facts, "qwen3-30b-a3b");
  config.erase("num_experts");
  std::ofstream(folder.path() / "config.json") << config;
  expect_alike(HfConfig::open(folder.path()).facts, "qwen3-30b-a3b");
}

// As version 5 of transformers writes it: what is rotated stands in rope_parameters, and absent members mean something.
TEST(FolderFacts, OfGlmAreTheSameInEitherSchema) {
  const TemporaryFolder folder;
  json config = glm4_moe();
  for (const char* key :
       {"partial_rotary_factor", "rope_scaling", "rope_theta", "routed_scaling_factor", "n_group",
        "first_k_dense_replace", "norm_topk_prob", "use_qk_norm", "num_nextn_predict_layers"})
    config.erase(key);
  config["rope_parameters"] = {
      {"partial_rotary_factor", 0.5}, {"rope_theta", 1000000}, {"rope_type", "default"}};
  std::ofstream(folder.path() / "config.json") << config;
  expect_alike(HfConfig::open(folder.path()).facts, "glm-4.5-air");
  config["rope_parameters"].erase("partial_rotary_factor");
  std::ofstream(folder.path() / "config.json") << config;
  expect_alike(HfConfig::open(folder.path()).facts, "glm-4.5-air");
  config["partial_rotary_factor"] = 1.0;
  std::ofstream(folder.path() / "config.json") << config;
  EXPECT_EQ(HfConfig::open(folder.path()).facts.rope_dims, 0);
}

TEST(FolderFacts, OfIntegersAreThoseOfTheTestsModels) {
  const TemporaryFolder folder;
  const auto facts_of = [&](const json& quantization) {
    json config = llama(4096, 14336, 32, 32, 8.0, false);
    config["quantization_config"] = quantization;
    std::ofstream(folder.path() / "config.json") << config;
    return HfConfig::open(folder.path()).facts;
  };
  const auto expect_written = [](const ModelFacts& facts, const std::string& text) {
    const std::string whole = format_model_config("m", facts, "");
    EXPECT_NE(whole.find(text), std::string::npos) << whole;
    EXPECT_EQ(hash_facts(parse_model_config(StrictYaml::parse(whole, "m.yaml"), "").facts),
              hash_facts(facts));
  };
  json quantization = {{"quant_method", "gptq"}, {"bits", 4},         {"group_size", 64},
                       {"sym", false},           {"desc_act", false}, {"lm_head", true}};
  expect_written(
      facts_of(quantization),
      "quantization:\n  bits: 4\n  group: 64\n  symmetric: false\n  act_order: false\n  lm_head: true\n"
      "rope:\n");
  quantization["group_size"] = -1;
  quantization["desc_act"] = true;  // which says nothing of a single group
  expect_written(facts_of(quantization), "  group: -1\n  symmetric: false\n  act_order: false\n");
  expect_written(facts_of({{"quant_method", "awq"}, {"bits", 4}, {"group_size", 32}, {"zero_point", true}}),
                 "  group: 32\n  symmetric: false\n  act_order: false\n  lm_head: false\n");
  expect_written(facts_of(nullptr), "norm_epsilon: 1e-05\nrope:\n");
  quantization["group_size"] = 128;
  expect_written(facts_of(quantization), "  group: 128\n  symmetric: false\n  act_order: true\n");
}

// Layers that GPTQModel was told to quantise otherwise, or not at all: two formats.
TEST(FolderFacts, OfOverridesAreThoseOfTheLayersThatTheyName) {
  const TemporaryFolder folder;
  json config = gptq(llama(4096, 14336, 32, 32, 8.0, false), true);
  config["quantization_config"]["desc_act"] = false;
  const auto with_dynamic = [&](const json& dynamic) {
    config["quantization_config"]["dynamic"] = dynamic;
    std::ofstream(folder.path() / "config.json") << config;
    return HfConfig::open(folder.path()).facts;
  };
  const json eight = {{"bits", 8}, {"group_size", 32}};
  const ModelFacts some = with_dynamic({{R"(.*\.(0|31)\.mlp\.down)", eight}, {"lm_head", eight}});
  EXPECT_EQ(some.weight_bits, 4);
  EXPECT_EQ(some.further_bits, 8);
  EXPECT_EQ(some.further_group, 32);
  EXPECT_EQ(some.lm_head_bits, 8);
  EXPECT_EQ(some.layer_further[31], kDownMatrix);
  EXPECT_EQ(some.layer_further[30], 0);
  const ModelFacts skipped = with_dynamic({{R"(-:model\.layers\.1\.self_attn)", json::object()}});
  EXPECT_EQ(skipped.further_bits, 16);
  EXPECT_EQ(skipped.layer_further[1], kQkvMatrix | kOMatrix);
  EXPECT_EQ(skipped.lm_head_bits, 4);
  const auto expect = [&](const json& dynamic, const std::string& part) {
    const std::string got = error_of([&] { with_dynamic(dynamic); });
    EXPECT_NE(got.find(part), std::string::npos) << got;
  };
  expect({{".*q_proj", eight}},
         "model.layers.0.self_attn.k_proj: expected 8 bits in groups of 32, as "
         "model.layers.0.self_attn.q_proj has, "
         "which is multiplied together with it, got 4 bits in groups of 128");
  expect({{".*o_proj", eight}, {"-:.*down_proj", json::object()}},
         "model.layers.0.mlp.down_proj: expected 4 bits in groups of 128 or 8 bits in groups of 32, as "
         "others have, "
         "got floats: no kernel computes with all");
  expect({{".*o_proj", {{"group_size", 32}}}},
         "model.layers.0.self_attn.o_proj: expected 4 bits in groups of 128, as "
         "others of so many bits have, got 4 bits in groups of 32");
}

// What is multiplied together has one format; lm_head stays in bf16, and so do experts beside NVFP4.
TEST(FolderFacts, OfE2m1AreRefusedWhereLayersDoNotFitTogether) {
  const TemporaryFolder folder;
  const auto refusal = [&](json config, const json& ignore, const char* algorithm) {
    config["quantization_config"] = {
        {"quant_method", "modelopt"}, {"quant_algo", algorithm}, {"ignore", ignore}};
    std::ofstream(folder.path() / "config.json") << config;
    return error_of([&] { HfConfig::open(folder.path()); });
  };
  const json dense = llama(4096, 14336, 32, 32, 8.0, false);
  const auto expect = [](const std::string& got, const std::string& part) {
    EXPECT_NE(got.find(part), std::string::npos) << got;
  };
  expect(refusal(dense, {"lm_head", "*.7.self_attn.v_proj"}, "NVFP4"),
         "config.json: model.layers.7.self_attn.v_proj: expected 4 bits in groups of 16, as "
         "model.layers.7.self_attn.q_proj has, which is multiplied together with it, got floats");
  expect(refusal(dense, {"lm_head", "*.7.mlp.gate_proj"}, "NVFP4"),
         "model.layers.7.mlp.up_proj: expected floats, as model.layers.7.mlp.gate_proj has, ");
  expect(refusal(dense, json::array(), "NVFP4"),
         "config.json: lm_head: expected floats, got 4 bits in groups of 16: not supported");
  for (const char* left_out : {"*mlp.gate", "*mlp*", "*self_attn*", "*.3.self_attn.o_proj"})
    EXPECT_EQ(refusal(qwen3_moe(), {"lm_head", left_out}, "NVFP4"), "no error") << left_out;
  expect(refusal(gpt_oss(24, 32), {"lm_head"}, "NVFP4"),
         "expected no E2M1 in groups of 16 (NVFP4) where experts have biases, got 16");
  expect(refusal(qwen3_moe(), {"lm_head", "*.3.mlp.experts.17.up_proj"}, "NVFP4"),
         "config.json: model.layers.3.mlp.experts.17.up_proj: expected 4 bits in groups of 16, as "
         "model.layers.3.mlp.experts.0.gate_proj has, which is multiplied together with it, got floats");
}

TEST(FolderFacts, OfGptOssAreTheSameInEitherSchemaAndWithoutWhatIsImplied) {
  const TemporaryFolder folder;
  json config = gpt_oss(24, 32);
  json rope = config["rope_scaling"];
  rope["rope_theta"] = 150000.0;
  for (const char* key : {"rope_scaling", "rope_theta", "layer_types", "sliding_window", "swiglu_limit",
                          "attention_bias", "hidden_act", "head_dim", "num_key_value_heads", "rms_norm_eps"})
    config.erase(key);
  config["rope_parameters"] = rope;
  std::ofstream(folder.path() / "config.json") << config;
  expect_alike(HfConfig::open(folder.path()).facts, "gpt-oss-20b");
}

// Experts are in MXFP4 as they are published, and in bf16 where somebody has made that of them.
TEST(FolderFacts, OfGptOssSayWhatItsExpertsAreIn) {
  const TemporaryFolder folder;
  json config = gpt_oss(24, 32);
  std::ofstream(folder.path() / "config.json") << config;
  ModelFacts facts = HfConfig::open(folder.path()).facts;
  EXPECT_EQ(facts.further_e2m1, 1);
  EXPECT_EQ(facts.layer_further[23], kGateUpMatrix | kDownMatrix);
  EXPECT_FALSE(HfConfig::open(folder.path()).quantization.has_value());

  config.erase("quantization_config");
  std::ofstream(folder.path() / "config.json") << config;
  const ModelFacts in_bf16 = HfConfig::open(folder.path()).facts;
  EXPECT_EQ(in_bf16.further_bits, 0);
  facts.further_bits = facts.further_e2m1 = 0;
  EXPECT_EQ(hash_facts(in_bf16), hash_facts(facts));
}

TEST(FolderFacts, WindowsAreThoseOfTheLayersThatSlide) {
  const TemporaryFolder folder;
  json config = gpt_oss(3, 32);
  config["layer_types"] = {"full_attention", "full_attention", "sliding_attention"};
  config["sliding_window"] = 64;
  std::ofstream(folder.path() / "config.json") << config;
  const HfConfig read = HfConfig::open(folder.path());
  EXPECT_EQ(std::vector(read.facts.layer_window, read.facts.layer_window + 4), (std::vector{0, 0, 64, 0}));
  EXPECT_EQ(read.facts.max_context, 131072);
  EXPECT_NE(format_model_config("a", read.facts, "").find("\nwindows: [0, 0, 64]\n"), std::string::npos);
}

TEST(FolderFacts, EveryShippedModelIsComparedWithItsFolder) {
  for (const auto& entry : fs::directory_iterator(kModelsFolder)) {
    const std::string name = entry.path().stem();
    if (entry.path().extension() != ".yaml" || name.starts_with("tiny-stories")) continue;
    EXPECT_TRUE(published_configs().contains(name)) << name;
  }
}

}  // namespace
}  // namespace soliton
