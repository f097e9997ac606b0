// HfConfig: every reason to refuse a config.json.
#include "tests/facts/hf_config_fixture.h"

namespace soliton {
namespace {

TEST_F(HfConfigTest, RefusesBadYarn) {
  const auto refused = [&](const json& patch, const std::string& message) {
    json config = base_config();
    config["rope_scaling"] = {
        {"rope_type", "yarn"}, {"factor", 4.0}, {"original_max_position_embeddings", 32768}};
    config["rope_scaling"].merge_patch(patch);
    write("config.json", config.dump());
    expect_refused_as_is(ExitCode::kBadFile, "rope_scaling." + message);
  };
  refused({{"factor", 0.5}}, "factor: expected a number from 1 to 1024, got 0.5");
  refused({{"factor", "4"}}, "factor: expected a number, got \"4\"");
  refused({{"original_max_position_embeddings", 0}},
          "original_max_position_embeddings: expected an integer from 1 to 4194304, got 0");
  refused({{"beta_fast", 1}}, "beta_fast: expected a number above beta_slow = 1, got 1");
  refused({{"attention_factor", 0}}, "attention_factor: expected a number above 0 and below 64, got 0");
  refused({{"truncate", 1}}, "truncate: expected true or false, got 1");
  refused({{"original_max_position_embeddings", 1}, {"factor", nullptr}},
          "factor: expected a number from 1 to 1024, got 131072");
  json config = base_config();
  config["rope_scaling"] = {
      {"rope_type", "yarn"}, {"factor", 64}, {"original_max_position_embeddings", 131072}};
  write("config.json", config.dump());
  expect_refused_as_is(
      ExitCode::kBadFile,
      "max_position_embeddings: expected an integer from 1 to 4194304, got 131072, stretched to "
      "8388608 by rope_scaling.factor");
  config["rope_scaling"] = {{"rope_type", "linear"}};
  write("config.json", config.dump());
  expect_refused_as_is(ExitCode::kBadFile, "rope_scaling.factor: expected a number, got nothing");
}

TEST_F(HfConfigTest, RefusesBadExperts) {
  const json mixture = {{"architectures", {"Qwen3MoeForCausalLM"}},
                        {"model_type", "qwen3_moe"},
                        {"num_experts", 16},
                        {"num_experts_per_tok", 2},
                        {"moe_intermediate_size", 128},
                        {"norm_topk_prob", true}};
  const auto refused = [&](const json& patch, ExitCode code, const std::string& message) {
    json members = mixture;
    members.update(patch);
    expect_refused(members, code, message);
  };
  refused({{"num_experts_per_tok", 0}}, ExitCode::kBadFile,
          "num_experts_per_tok: expected an integer from 1 to 16, got 0");
  refused({{"num_experts", 1}, {"num_experts_per_tok", 1}}, ExitCode::kMismatch,
          "num_experts: expected an integer from 2 to 512, got 1");
  refused({{"num_experts", -1}}, ExitCode::kBadFile,
          "num_experts: expected an integer from 2 to 512, got -1");
  refused({{"num_experts_per_tok", 16}, {"num_experts", 8}}, ExitCode::kBadFile,
          "num_experts_per_tok: expected at most num_experts = 8, got 16");
  refused({{"num_local_experts", 8}}, ExitCode::kBadFile,
          "num_local_experts: expected num_experts = 16, got 8");
  refused({{"num_experts", nullptr}, {"num_local_experts", 1}}, ExitCode::kMismatch,
          "num_local_experts: expected an integer from 2 to 512, got 1");
  refused({{"num_experts", nullptr}}, ExitCode::kBadFile, "num_experts: expected an integer, got nothing");
  refused({{"moe_intermediate_size", 100}}, ExitCode::kMismatch,
          "moe_intermediate_size: expected a multiple of 64 from 64 to 262144, got 100");
  refused({{"moe_intermediate_size", 64}, {"num_experts_per_tok", 3}}, ExitCode::kMismatch,
          "moe_intermediate_size: expected a width of which 3 are a multiple of 128, got 64");
  refused({{"moe_intermediate_size", nullptr}}, ExitCode::kBadFile,
          "moe_intermediate_size: expected an integer, got nothing");
  refused({{"decoder_sparse_step", 0}}, ExitCode::kBadFile,
          "decoder_sparse_step: expected an integer in [1, 2147483647], got 0");
  refused({{"mlp_only_layers", "all"}}, ExitCode::kBadFile,
          "mlp_only_layers: expected an array, got \"all\"");
}

TEST_F(HfConfigTest, RefusesBadSharedExperts) {
  const json mixture = {{"architectures", {"Qwen2MoeForCausalLM"}},
                        {"model_type", "qwen2_moe"},
                        {"num_experts", 16},
                        {"num_experts_per_tok", 2},
                        {"moe_intermediate_size", 128},
                        {"norm_topk_prob", false},
                        {"shared_expert_intermediate_size", 256}};
  const auto refused = [&](const json& patch, ExitCode code, const std::string& message) {
    json members = mixture;
    members.update(patch);
    expect_refused(members, code, message);
  };
  refused({{"shared_expert_intermediate_size", 192}}, ExitCode::kMismatch,
          "shared_expert_intermediate_size: expected a multiple of moe_intermediate_size = 128, got 192");
  refused({{"shared_expert_intermediate_size", 128 * 17}}, ExitCode::kBadFile,
          "shared_expert_intermediate_size: expected an integer from 0 to 16, got 2176, which is 17 times "
          "moe_intermediate_size");
  refused({{"shared_expert_intermediate_size", nullptr}}, ExitCode::kBadFile,
          "shared_expert_intermediate_size: expected an integer, got nothing");
  refused({{"shared_expert_intermediate_size", 64}, {"moe_intermediate_size", 64}}, ExitCode::kMismatch,
          "moe_intermediate_size: expected a width of which 3 are a multiple of 128, got 64");
}

TEST_F(HfConfigTest, ReadsNetworksWithoutAGate) {
  const ModelFacts facts =
      open({{"architectures", {"ArceeForCausalLM"}}, {"model_type", "arcee"}, {"hidden_act", nullptr}}).facts;
  EXPECT_EQ(facts.ungated, 1);
  EXPECT_EQ(facts.activation, static_cast<int32_t>(Activation::kReluSquared));
  const ModelFacts gelu =
      open({{"architectures", {"ArceeForCausalLM"}}, {"model_type", "arcee"}, {"hidden_act", "gelu"}}).facts;
  EXPECT_EQ(gelu.activation, static_cast<int32_t>(Activation::kGelu));
}

TEST_F(HfConfigTest, RefusesWhatMptModelsMayBeBesides) {
  const json mpt = {{"architectures", {"MPTForCausalLM"}},
                    {"model_type", "mpt"},
                    {"d_model", 512},
                    {"n_heads", 8},
                    {"n_layers", 2},
                    {"max_seq_len", 2048},
                    {"vocab_size", 1024},
                    {"rope_scaling", nullptr},
                    {"attn_config", {{"alibi", true}}}};
  const auto refused = [&](const json& patch, ExitCode code, const std::string& message) {
    json members = mpt;
    members.merge_patch(patch);
    write("config.json", members.dump());
    expect_refused_as_is(code, message);
  };
  refused({{"d_model", nullptr}}, ExitCode::kBadFile, "d_model: expected an integer, got nothing");
  refused({{"expansion_ratio", 2}}, ExitCode::kMismatch, "expansion_ratio: expected 4, got 2: not supported");
  refused({{"no_bias", false}}, ExitCode::kMismatch, "no_bias: expected true, got false: not supported");
  refused({{"norm_type", "rmsnorm"}}, ExitCode::kMismatch,
          "norm_type: expected \"low_precision_layernorm\" or \"layernorm\", got \"rmsnorm\"");
  refused({{"logit_scale", 0.5}}, ExitCode::kMismatch, "logit_scale: expected null, got 0.5: not supported");
  refused({{"attn_config", {{"alibi", false}}}}, ExitCode::kMismatch,
          "attn_config.alibi: expected true, got false: not supported");
  refused({{"attn_config", {{"clip_qkv", 6}}}}, ExitCode::kMismatch,
          "attn_config.clip_qkv: expected null, got 6: not supported");
  refused({{"attn_config", {{"attn_type", "grouped_query_attention"}}}}, ExitCode::kMismatch,
          "attn_config.attn_type: expected \"multihead_attention\", got \"grouped_query_attention\": not "
          "supported");
  refused({{"n_heads", 16}}, ExitCode::kMismatch,  // heads of 32 dims
          "head_dim: expected one of 64, 96, 128, 256");
}

TEST_F(HfConfigTest, RefusesWhatGranite4ModelsMayBeBesides) {
  std::vector<std::string> layers(16, "attention");
  const json granite = {{"architectures", {"GraniteMoeHybridForCausalLM"}},
                        {"model_type", "granitemoehybrid"},
                        {"num_local_experts", 0},
                        {"layer_types", layers},
                        {"position_embedding_type", "rope"},
                        {"shared_intermediate_size", 4096}};
  const auto refused = [&](const json& patch, ExitCode code, const std::string& message) {
    json members = granite;
    members.update(patch);
    expect_refused(members, code, message);
  };
  layers[5] = "mamba";
  refused({{"layer_types", layers}, {"num_local_experts", 64}}, ExitCode::kMismatch,
          "layer_types[5]: expected a model without state space layers (Mamba), got \"mamba\"");
  layers[5] = "linear_attention";
  refused({{"layer_types", layers}}, ExitCode::kMismatch,
          "layer_types[5]: expected a model without state space layers (Mamba), got \"linear_attention\"");
  refused({{"layer_types", nullptr}}, ExitCode::kMismatch,
          "layer_types: expected a model without state space layers (Mamba), got nothing");
  layers[5] = "sliding_attention";
  refused({{"layer_types", layers}}, ExitCode::kMismatch,
          "layer_types[5]: expected \"attention\" or \"full_attention\", got \"sliding_attention\"");
  refused({{"layer_types", {"attention"}}}, ExitCode::kBadFile,
          "layer_types: expected one for each of 16 layers (num_hidden_layers), got 1");
  refused({{"num_local_experts", 62}}, ExitCode::kMismatch,
          "num_local_experts: expected 0, got 62: not supported");
  refused({{"num_local_experts", nullptr}}, ExitCode::kMismatch,
          "num_local_experts: expected 0, got nothing: not supported");
  refused({{"position_embedding_type", "alibi"}}, ExitCode::kMismatch,
          "position_embedding_type: expected \"rope\" or \"nope\", got \"alibi\"");
  refused({{"shared_intermediate_size", nullptr}}, ExitCode::kBadFile,
          "shared_intermediate_size: expected an integer, got nothing");
  refused({{"shared_intermediate_size", 1000}}, ExitCode::kMismatch,
          "shared_intermediate_size: expected a multiple of 64");
  refused({{"attention_bias", true}}, ExitCode::kMismatch,
          "attention_bias: expected false, got true: not supported");
  refused({{"logits_scaling", 0}}, ExitCode::kBadFile, "logits_scaling: expected");
}

TEST_F(HfConfigTest, RefusesBadSigmoids) {
  const json mixture = {{"architectures", {"Glm4MoeForCausalLM"}},
                        {"model_type", "glm4_moe"},
                        {"n_routed_experts", 16},
                        {"n_shared_experts", 1},
                        {"num_experts_per_tok", 3},
                        {"moe_intermediate_size", 128}};
  const auto refused = [&](const json& patch, ExitCode code, const std::string& message) {
    json members = mixture;
    members.update(patch);
    expect_refused(members, code, message);
  };
  refused({{"n_group", 8}}, ExitCode::kMismatch, "n_group: expected 1, got 8: not supported");
  refused({{"routed_scaling_factor", 0}}, ExitCode::kBadFile,
          "routed_scaling_factor: expected a number above 0 and below 1024, got 0");
  refused({{"n_shared_experts", -1}}, ExitCode::kBadFile,
          "n_shared_experts: expected an integer from 0 to 16, got -1");
  refused({{"first_k_dense_replace", -1}}, ExitCode::kBadFile,
          "first_k_dense_replace: expected an integer in [0, 1024], got -1");
  refused({{"num_nextn_predict_layers", -1}}, ExitCode::kBadFile,
          "num_nextn_predict_layers: expected an integer in [0, 1024], got -1");
  refused({{"partial_rotary_factor", 0.02}}, ExitCode::kMismatch,
          "partial_rotary_factor: expected a multiple of 2 from 2 to 256, got 0.02, which is 1 dims");
}

TEST_F(HfConfigTest, RefusesBadWindowsAndSinks) {
  const json mixture = {{"architectures", {"GptOssForCausalLM"}},
                        {"model_type", "gpt_oss"},
                        {"attention_bias", true},
                        {"intermediate_size", 128},
                        {"num_local_experts", 16},
                        {"num_experts_per_tok", 4}};
  const auto refused = [&](const json& patch, ExitCode code, const std::string& message) {
    json members = mixture;
    members.update(patch);
    expect_refused(members, code, message);
  };
  refused({{"swiglu_limit", 6.5}}, ExitCode::kMismatch, "swiglu_limit: expected 7, got 6.5: not supported");
  refused({{"swiglu_alpha", 1}}, ExitCode::kMismatch, "swiglu_alpha: expected 1.702, got 1: not supported");
  refused({{"hidden_act", "gelu_pytorch_tanh"}}, ExitCode::kMismatch,
          "hidden_act: expected \"silu\", got \"gelu_pytorch_tanh\": not supported");
  refused({{"sliding_window", 0}}, ExitCode::kBadFile,
          "sliding_window: expected an integer in [1, 2147483647]");
  refused({{"sliding_window", 1 << 23}}, ExitCode::kBadFile,
          "sliding_window: expected 0 or an integer from 1 to 4194304, of each layer, got 8388608");
  refused({{"layer_types", {"full_attention"}}}, ExitCode::kBadFile,
          "layer_types: expected one for each of 16 layers (num_hidden_layers), got 1");
  refused({{"layer_types", {"chunked_attention"}}}, ExitCode::kMismatch,
          "layer_types[0]: expected \"sliding_attention\" or \"full_attention\", got \"chunked_attention\"");
  refused({{"rope_scaling", nullptr}}, ExitCode::kBadFile, "rope_scaling: expected an object, got nothing");
  refused({{"num_hidden_layers", 200}}, ExitCode::kMismatch,
          "sliding_window: expected one for all of more than 128 layers, got 128");
  refused({{"hidden_act", "clamped_swiglu"}}, ExitCode::kMismatch,
          "hidden_act: expected \"silu\", \"gelu_pytorch_tanh\" or \"gelu\", got \"clamped_swiglu\"");
}

TEST_F(HfConfigTest, RefusesUnsupportedModels) {
  const auto refused = [&](const json& patch, const std::string& message) {
    expect_refused(patch, ExitCode::kMismatch, message);
  };
  refused({{"architectures", {"GemmaForCausalLM"}}},
          "architectures: expected ForCausalLM of Llama, Mistral, Qwen2, Qwen3, Phi3, Qwen3Moe, Mixtral, "
          "Qwen2Moe, Glm4Moe, "
          "Olmoe, GptOss, Gemma2, Gemma3, Olmo2, Olmo3, Granite, GraniteMoeHybrid, SmolLM3, SeedOss, "
          "Exaone4, Glm4, "
          "Ministral, Ministral3, HunYuanDenseV1, Cohere, Cohere2, Mpt, MPT, Arcee, Nemotron, Starcoder2, or "
          "Gemma3ForConditionalGeneration, "
          "Mistral3ForConditionalGeneration, got \"GemmaForCausalLM\"");
  refused(
      {{"architectures", {"DeepseekV3ForCausalLM"}}},
      "architectures: expected a model without multi-head latent attention, got \"DeepseekV3ForCausalLM\"");
  refused({{"architectures", {"Gemma3nForConditionalGeneration"}}},
          "architectures: expected a model without embeddings of each layer, AltUp, LAuReL, sparse "
          "activations, caches that "
          "layers share, got \"Gemma3nForConditionalGeneration\"");
  refused({{"architectures", {"OlmoeForCausalLM"}}, {"model_type", "olmoe"}, {"clip_qkv", 8.0}},
          "clip_qkv: expected null, got 8.0: not supported");
  refused({{"architectures", {"CohereForCausalLM"}}, {"model_type", "cohere"}, {"use_qk_norm", true}},
          "use_qk_norm: expected false, got true: not supported");
  refused({{"model_type", "mllama"}}, "model_type: expected \"llama\", got \"mllama\"");
  refused({{"architectures", {"MistralForCausalLM"}}}, "model_type: expected \"mistral\", got \"llama\"");
  refused({{"quantization_config", {{"quant_method", "eetq"}}}},
          "quantization_config.quant_method: expected \"gptq\", \"awq\", \"compressed-tensors\", \"fp8\", "
          "\"modelopt\", \"quark\" or \"bitsandbytes\", got \"eetq\"");
  refused({{"attention_bias", true}}, "attention_bias: expected false, got true: not supported");
  refused({{"mlp_bias", true}}, "mlp_bias: expected false, got true: not supported");
  refused({{"hidden_act", "relu2"}},
          "hidden_act: expected \"silu\", \"gelu_pytorch_tanh\" or \"gelu\", got \"relu2\"");
  refused({{"hidden_size", 2080}}, "hidden_size: expected a multiple of 64 from 64 to 65536, got 2080");
  refused({{"intermediate_size", 8191}},
          "intermediate_size: expected a multiple of 64 from 64 to 262144, got 8191");
  json widths = std::vector<int>(16, 8192);
  widths[3] = 8191;
  refused({{"intermediate_size", widths}},
          "intermediate_size: expected a multiple of 64 from 64 to 262144 for each layer, got [8192, 8192");
  for (int i = 0; i < 5; ++i) widths[i] = 64 * (i + 1);
  refused({{"intermediate_size", widths}}, "intermediate_size: expected at most 4 widths, got [64, 128");
  refused({{"head_dim", 80}}, "head_dim: expected one of 64, 96, 128, 256, got 80");
  refused({{"head_dim", nullptr}, {"num_attention_heads", 64}, {"num_key_value_heads", 8}},
          "head_dim: expected one of 64, 96, 128, 256, got 32");
  for (const char* type : {"su", "LLAMA3", ""}) {
    refused({{"rope_scaling", {{"rope_type", type}}}},
            "rope_scaling.rope_type: expected one of \"default\", \"llama3\", \"linear\", \"yarn\", "
            "\"longrope\", \"dynamic\", got \"" +
                std::string(type) + "\"");
  }
  refused({{"rope_scaling", {{"rope_type", nullptr}, {"type", "su"}}}}, "rope_scaling.type: expected");
  refused({{"partial_rotary_factor", 0.5}}, "partial_rotary_factor: expected 1, got 0.5");
  refused({{"rope_scaling", nullptr},
           {"rope_parameters",
            {{"full_attention", {{"rope_theta", 5e5}}}, {"sliding_attention", {{"rope_theta", 1e4}}}}}},
          "rope_parameters: expected the same for every layer type");
}

TEST_F(HfConfigTest, RefusesMalformedMembers) {
  const auto refused = [&](const json& patch, const std::string& message) {
    expect_refused(patch, ExitCode::kBadFile, message);
  };
  refused({{"num_key_value_heads", 5}},
          "num_key_value_heads: expected a divisor of num_attention_heads = 32, got 5");
  refused({{"num_key_value_heads", 64}},
          "num_key_value_heads: expected a divisor of num_attention_heads = 32, got 64");
  refused({{"head_dim", nullptr}, {"num_attention_heads", 24}},
          "num_attention_heads: expected a divisor of hidden_size = 2048 where head_dim is absent, got 24");
  refused({{"intermediate_size", {8192, 4096}}},
          "intermediate_size: expected one for each of 16 layers, got [8192, 4096]");
  refused({{"architectures", nullptr}}, "architectures: expected an array, got nothing");
  refused({{"architectures", json::array()}}, "architectures: expected one architecture, got 0");
  refused({{"architectures", {1}}}, "architectures[0]: expected a string, got 1");
  refused({{"quantization_config", "gptq"}}, "quantization_config: expected an object, got \"gptq\"");
  refused({{"attention_bias", "no"}}, "attention_bias: expected true or false, got \"no\"");
  refused({{"tie_word_embeddings", 1}}, "tie_word_embeddings: expected true or false, got 1");
  refused({{"rms_norm_eps", 0}}, "rms_norm_eps: expected a number above 0 and below 0.1, got 0");
  refused({{"rms_norm_eps", "1e-5"}}, "rms_norm_eps: expected a number, got \"1e-5\"");
  refused({{"rope_theta", -1}}, "rope_theta: expected a number above 1 and below 1000000000000, got -1");
  refused({{"dtype", "float32"}}, "torch_dtype: expected what dtype says, \"float32\", got \"bfloat16\"");
  refused({{"eos_token_id", -1}}, "eos_token_id: expected an integer in [0, 128255], got -1");
  refused({{"eos_token_id", {1, 1.5}}}, "eos_token_id[1]: expected an integer, got 1.5");
  refused({{"bos_token_id", 128256}}, "bos_token_id: expected an integer in [0, 128255], got 128256");
}

TEST_F(HfConfigTest, RefusesBadSizes) {
  for (const auto& [key, range] : {std::pair("hidden_size", "a multiple of 64 from 64 to 65536"),
                                   {"intermediate_size", "a multiple of 64 from 64 to 262144"},
                                   {"num_hidden_layers", "an integer from 1 to 1024"},
                                   {"num_attention_heads", "an integer from 1 to 1024"},
                                   {"vocab_size", "an integer from 1 to 16777216"},
                                   {"max_position_embeddings", "an integer from 1 to 4194304"}}) {
    const std::string name = key;
    const auto refused = [&](const json& value, const std::string& message) {
      expect_refused({{name, value}}, ExitCode::kBadFile, name + ": " + message);
    };
    const std::string out_of_range = fmt::format("expected {}, got ", range);
    refused(nullptr, "expected an integer, got nothing");
    refused(0, out_of_range + "0");
    refused(-64, out_of_range + "-64");
    refused(int64_t{1} << 31, out_of_range + "2147483648");
    refused((int64_t{1} << 32) + 64, out_of_range + "4294967360");
    refused(std::numeric_limits<int64_t>::min(), out_of_range + "-9223372036854775808");
    refused(~uint64_t{0}, out_of_range + "18446744073709551615");
    refused(1e30, "expected an integer, got 1e+30");
    refused(64.0, "expected an integer, got 64.0");
    refused("64", "expected an integer, got \"64\"");
    if (name != "intermediate_size") refused({64}, "expected an integer, got an array");
  }
  expect_refused({{"num_key_value_heads", 0}}, ExitCode::kBadFile,
                 "num_key_value_heads: expected an integer from 1 to 1024, got 0");
  expect_refused({{"head_dim", -64}}, ExitCode::kBadFile,
                 "head_dim: expected one of 64, 96, 128, 256, got -64");
  // What an absent member means is not worked out from a size that cannot be.
  expect_refused({{"head_dim", nullptr}, {"num_attention_heads", 0}}, ExitCode::kBadFile,
                 "num_attention_heads: expected an integer from 1 to 1024, got 0");
  expect_refused({{"head_dim", nullptr}, {"hidden_size", 65537}}, ExitCode::kBadFile,
                 "hidden_size: expected a multiple of 64 from 64 to 65536, got 65537");
}

TEST_F(HfConfigTest, RefusesBadRope) {
  const auto refused = [&](const json& patch, const std::string& message) {
    expect_refused({{"rope_scaling", patch}}, ExitCode::kBadFile, message);
  };
  refused(8, "rope_scaling: expected an object, got 8");
  refused({{"rope_type", nullptr}}, "rope_scaling.rope_type: expected a string beside factor, got nothing");
  refused({{"type", "default"}},
          "rope_scaling.type: expected what rope_type says, \"llama3\", got \"default\"");
  refused({{"factor", nullptr}}, "rope_scaling.factor: expected a number, got nothing");
  refused({{"factor", 0}}, "rope_scaling.factor: expected a number from 1 to 1024, got 0");
  refused({{"low_freq_factor", 0}},
          "rope_scaling.low_freq_factor: expected a number above 0 and below 1024, got 0");
  refused({{"high_freq_factor", 1}},
          "rope_scaling.high_freq_factor: expected a number above low_freq_factor = 1, got 1");
  refused({{"original_max_position_embeddings", nullptr}},
          "rope_scaling.original_max_position_embeddings: expected an integer, got nothing");
  refused({{"original_max_position_embeddings", 0}},
          "rope_scaling.original_max_position_embeddings: expected an integer from 1 to 4194304, got 0");
  refused({{"rope_theta", 10000}},
          "rope_scaling.rope_theta: expected what rope_theta at the top says, 500000, got 10000");
  expect_refused({{"rope_parameters", {{"rope_type", "default"}}}}, ExitCode::kBadFile,
                 "rope_scaling: expected what rope_parameters says");
}

TEST_F(HfConfigTest, RefusesWhatIsNoJson) {
  expect_refused_as_is(ExitCode::kNotFound, "no such file");
  write("config.json", R"({"hidden_size": 64, "hidden_size": 128})");
  expect_refused_as_is(ExitCode::kBadFile, "hidden_size: duplicate key");
  write("config.json", std::string(1 << 20, '['));
  expect_refused_as_is(ExitCode::kBadFile, "expected JSON nested at most 64 deep");
  write("config.json", "[]");
  expect_refused_as_is(ExitCode::kBadFile, "expected an object, got an array");
  write("config.json", "version https://git-lfs.github.com/spec/v1\n");
  expect_refused_as_is(ExitCode::kBadFile, "a git-LFS pointer");
}

}  // namespace
}  // namespace soliton
