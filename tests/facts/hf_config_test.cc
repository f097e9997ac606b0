// HfConfig: both schemas of config.json, and every reason to refuse one.
#include "models/hf_config.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>

#include "models/error.h"
#include "temporary_folder.h"

namespace soliton {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

/// Llama-3.2-1B's shape.
json base_config() {
  return json::parse(R"({
    "architectures": ["LlamaForCausalLM"], "model_type": "llama", "torch_dtype": "bfloat16", "hidden_act": "silu",
    "attention_bias": false, "mlp_bias": false, "bos_token_id": 128000, "eos_token_id": [128009, 128001, 128008],
    "hidden_size": 2048, "intermediate_size": 8192, "num_hidden_layers": 16, "num_attention_heads": 32,
    "num_key_value_heads": 8, "head_dim": 64, "vocab_size": 128256, "max_position_embeddings": 131072,
    "rms_norm_eps": 1e-05, "rope_theta": 500000.0, "tie_word_embeddings": true,
    "rope_scaling": {"factor": 32.0, "high_freq_factor": 4.0, "low_freq_factor": 1.0,
                     "original_max_position_embeddings": 8192, "rope_type": "llama3"}})");
}

class HfConfigTest : public testing::Test {
 protected:
  void write(const char* name, const std::string& text) { std::ofstream(folder_ / name) << text; }
  /// Opens the base with `patch` merged in: null removes a member (RFC 7396).
  HfConfig open(const json& patch = json::object()) {
    json config = base_config();
    config.merge_patch(patch);
    write("config.json", config.dump());
    return HfConfig::open(folder_);
  }
  void expect_refused_as_is(ExitCode code, const std::string& message, const char* file = "config.json") {
    try {
      HfConfig::open(folder_);
      ADD_FAILURE() << "accepted; expected: " << message;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), code) << error.what();
      const std::string expected = (folder_ / file).string() + ": " + message;
      EXPECT_EQ(std::string(error.what()).substr(0, expected.size()), expected);
    }
  }
  void expect_refused(const json& patch, ExitCode code, const std::string& message) {
    json config = base_config();
    config.merge_patch(patch);
    write("config.json", config.dump());
    expect_refused_as_is(code, message);
  }

  const TemporaryFolder temporary_;
  const fs::path folder_ = temporary_.path();
};

TEST_F(HfConfigTest, ReadsEveryFact) {
  const HfConfig config = open();
  ModelFacts expected;
  expected.hidden = 2048;
  expected.ffn = 8192;
  expected.num_layers = 16;
  expected.num_heads = 32;
  expected.num_kv_heads = 8;
  expected.head_dim = 64;
  expected.vocabulary = 128256;
  expected.tied_lm_head = 1;
  expected.max_context = 131072;
  expected.rope_kind = RopeKind::kLlama3;
  expected.rope_original_context = 8192;
  expected.norm_epsilon = 1e-5;
  expected.rope_theta = 500000;
  expected.rope_factor = 32;
  expected.rope_low_freq_factor = 1;
  expected.rope_high_freq_factor = 4;
  EXPECT_EQ(hash_facts(config.facts), hash_facts(expected));
  EXPECT_EQ(config.eos_ids, (std::vector<int>{128001, 128008, 128009}));
  EXPECT_EQ(config.bos_id, 128000);
  EXPECT_EQ(config.architecture, "LlamaForCausalLM");
  EXPECT_EQ(config.dtype, "bfloat16");
}

TEST_F(HfConfigTest, BothSchemasGiveTheSame) {
  const ModelFacts expected = open().facts;
  json parameters = base_config()["rope_scaling"];
  parameters["rope_theta"] = 500000;
  const json newer = {{"rope_theta", nullptr}, {"rope_scaling", nullptr}, {"rope_parameters", parameters}};
  EXPECT_EQ(hash_facts(open(newer).facts), hash_facts(expected));
  json nested = newer;
  nested["rope_parameters"] = {{"full_attention", parameters}};
  EXPECT_EQ(hash_facts(open(nested).facts), hash_facts(expected));
  const json legacy = {{"rope_scaling", {{"rope_type", nullptr}, {"type", "llama3"}}}};
  EXPECT_EQ(hash_facts(open(legacy).facts), hash_facts(expected));
  EXPECT_EQ(open({{"torch_dtype", nullptr}, {"dtype", "float16"}}).dtype, "float16");
}

TEST_F(HfConfigTest, ReadsQuantisation) {
  EXPECT_FALSE(open().quantization);
  const json gptq = {{"quant_method", "gptq"}, {"bits", 4}, {"group_size", 64}, {"sym", false}};
  EXPECT_EQ(open({{"quantization_config", gptq}}).quantization.value().group_size, 64);
  write("quantize_config.json", R"({"bits": 4, "group_size": 32})");
  EXPECT_EQ(open().quantization.value().group_size, 32);
}

/// The facts of integers alone: bits, group, zeros, order, bits of the lm_head.
std::array<int32_t, 5> integer_facts(const ModelFacts& facts) {
  return {facts.weight_bits, facts.weight_group, facts.weight_zeros, facts.weight_order, facts.lm_head_bits};
}

TEST_F(HfConfigTest, QuantisationReachesTheFacts) {
  using Facts = std::array<int32_t, 5>;
  EXPECT_EQ(integer_facts(open().facts), (Facts{16, 0, 0, 0, 16}));
  const auto gptq = [&](const json& changes) {
    json config = {{"quant_method", "gptq"}, {"bits", 4},       {"group_size", 128}, {"sym", true},
                   {"desc_act", false},      {"lm_head", false}};
    config.merge_patch(changes);
    return integer_facts(open({{"quantization_config", config}}).facts);
  };
  EXPECT_EQ(gptq(json::object()), (Facts{4, 128, 0, 0, 16}));
  EXPECT_EQ(gptq({{"group_size", 32}}), (Facts{4, 32, 0, 0, 16}));
  EXPECT_EQ(gptq({{"group_size", -1}}), (Facts{4, -1, 0, 0, 16}));
  EXPECT_EQ(gptq({{"sym", false}}), (Facts{4, 128, 1, 0, 16}));
  EXPECT_EQ(gptq({{"desc_act", true}}), (Facts{4, 128, 0, 1, 16}));
  EXPECT_EQ(gptq({{"desc_act", true}, {"group_size", -1}}),
            (Facts{4, -1, 0, 0, 16}));  // one group has no order
  EXPECT_EQ(gptq({{"lm_head", true}}), (Facts{4, 128, 0, 0, 4}));
  const json awq = {{"quant_method", "awq"}, {"bits", 4}, {"group_size", 64}, {"zero_point", true}};
  EXPECT_EQ(integer_facts(open({{"quantization_config", awq}}).facts), (Facts{4, 64, 1, 0, 16}));
  const json weights = {
      {"num_bits", 4}, {"type", "int"}, {"symmetric", true}, {"strategy", "group"}, {"group_size", 32}};
  const json compressed = {{"quant_method", "compressed-tensors"},
                           {"format", "pack-quantized"},
                           {"config_groups", {{"group_0", {{"targets", {"Linear"}}, {"weights", weights}}}}},
                           {"ignore", {"lm_head"}}};
  EXPECT_EQ(integer_facts(open({{"quantization_config", compressed}}).facts), (Facts{4, 32, 0, 0, 16}));
}

// A kernel for bf16 must not take integers, and the other way round.
TEST_F(HfConfigTest, QuantisationReachesTheHash) {
  const json gptq = {{"quant_method", "gptq"}, {"bits", 4}, {"group_size", 64}, {"sym", false}};
  EXPECT_NE(hash_facts(open({{"quantization_config", gptq}}).facts), hash_facts(open().facts));
}

TEST_F(HfConfigTest, DefaultRopeLeavesTheLlama3FieldsAlone) {
  const ModelFacts fresh;
  for (const json& scaling : {json(), json{{"rope_type", "default"}, {"factor", 8}}}) {
    json config = base_config();
    config["rope_scaling"] = scaling;
    write("config.json", config.dump());
    const ModelFacts facts = HfConfig::open(folder_).facts;
    EXPECT_EQ(facts.rope_kind, RopeKind::kDefault);
    EXPECT_EQ(facts.rope_original_context, fresh.rope_original_context);
    EXPECT_EQ(facts.rope_factor, fresh.rope_factor);
    EXPECT_EQ(facts.rope_low_freq_factor, fresh.rope_low_freq_factor);
    EXPECT_EQ(facts.rope_high_freq_factor, fresh.rope_high_freq_factor);
  }
}

TEST_F(HfConfigTest, AbsentMembersTakeTheArchitecturesDefaults) {
  const HfConfig config = open({{"head_dim", nullptr},
                                {"num_key_value_heads", nullptr},
                                {"rms_norm_eps", nullptr},
                                {"rope_theta", nullptr},
                                {"rope_scaling", nullptr},
                                {"tie_word_embeddings", nullptr},
                                {"hidden_act", nullptr},
                                {"attention_bias", nullptr},
                                {"mlp_bias", nullptr},
                                {"torch_dtype", nullptr},
                                {"model_type", nullptr},
                                {"bos_token_id", nullptr},
                                {"eos_token_id", nullptr}});
  EXPECT_EQ(config.facts.head_dim, 64);
  EXPECT_EQ(config.facts.num_kv_heads, 32);
  EXPECT_EQ(config.facts.norm_epsilon, 1e-6);
  EXPECT_EQ(config.facts.rope_theta, 10000.0);
  EXPECT_EQ(config.facts.tied_lm_head, 0);
  EXPECT_EQ(config.bos_id, -1);
  EXPECT_TRUE(config.eos_ids.empty());
  EXPECT_EQ(config.dtype, "");
  json explicit_null = base_config();
  explicit_null["head_dim"] = nullptr;
  explicit_null["num_key_value_heads"] = nullptr;
  write("config.json", explicit_null.dump());
  EXPECT_EQ(HfConfig::open(folder_).facts.head_dim, 64);
}

TEST_F(HfConfigTest, MistralIsALlamaWithoutAWindow) {
  json config = base_config();
  config["architectures"] = {"MistralForCausalLM"};
  config["model_type"] = "mistral";
  config["max_position_embeddings"] = 32768;
  const ModelFacts llama = open({{"max_position_embeddings", 32768}}).facts;
  const auto with_window = [&](const json& window) {
    json patched = config;
    if (!window.is_discarded()) patched["sliding_window"] = window;
    write("config.json", patched.dump());
  };
  const json absent(json::value_t::discarded);
  for (const json& window : {json(), json(32768), json(1 << 20)}) {
    with_window(window);
    EXPECT_EQ(HfConfig::open(folder_).architecture, "MistralForCausalLM");
    EXPECT_EQ(hash_facts(HfConfig::open(folder_).facts), hash_facts(llama)) << window;
  }
  const std::string expected =
      "sliding_window: expected null, or at least max_position_embeddings = 32768, got ";
  with_window(32767);
  expect_refused_as_is(ExitCode::kMismatch, expected + "32767: not supported");
  with_window(4096);
  expect_refused_as_is(ExitCode::kMismatch, expected + "4096: not supported");
  with_window(absent);
  expect_refused_as_is(ExitCode::kMismatch, expected + "nothing, which means 4096: not supported");
  with_window(0);
  expect_refused_as_is(ExitCode::kBadFile, "sliding_window: expected an integer in [1, ");
  with_window("none");
  expect_refused_as_is(ExitCode::kBadFile, "sliding_window: expected an integer, got \"none\"");
  config["max_position_embeddings"] = 4096;
  with_window(absent);
  EXPECT_EQ(HfConfig::open(folder_).facts.max_context, 4096);
  // Not a Llama's business: its config class has no such member.
  EXPECT_EQ(open({{"sliding_window", 16}}).facts.max_context, 131072);
}

TEST_F(HfConfigTest, MistralsAbsentKvHeadsAreEight) {
  json config = base_config();
  config.merge_patch({{"architectures", {"MistralForCausalLM"}}, {"model_type", "mistral"}});
  config["sliding_window"] = nullptr;
  config.erase("num_key_value_heads");
  write("config.json", config.dump());
  EXPECT_EQ(HfConfig::open(folder_).facts.num_kv_heads, 8);
  config["num_key_value_heads"] = nullptr;
  write("config.json", config.dump());
  EXPECT_EQ(HfConfig::open(folder_).facts.num_kv_heads, 32);
}

TEST_F(HfConfigTest, Qwen2HasBiases) {
  json config = base_config();
  config.merge_patch({{"architectures", {"Qwen2ForCausalLM"}},
                      {"model_type", "qwen2"},
                      {"head_dim", nullptr},
                      {"num_attention_heads", 16},
                      {"attention_bias", nullptr}});
  write("config.json", config.dump());
  ModelFacts expected = open({{"head_dim", 128}, {"num_attention_heads", 16}}).facts;
  expected.qkv_bias = 1;
  write("config.json", config.dump());
  EXPECT_EQ(hash_facts(HfConfig::open(folder_).facts), hash_facts(expected));
  config.erase("num_key_value_heads");
  config["num_attention_heads"] = 32;
  write("config.json", config.dump());
  EXPECT_EQ(HfConfig::open(folder_).facts.num_kv_heads, 32);
}

TEST_F(HfConfigTest, Qwen3NormsHeads) {
  json config = base_config();
  config.merge_patch({{"architectures", {"Qwen3ForCausalLM"}}, {"model_type", "qwen3"}});
  ModelFacts expected = open().facts;
  expected.head_norm = 1;
  write("config.json", config.dump());
  EXPECT_EQ(hash_facts(HfConfig::open(folder_).facts), hash_facts(expected));
  config.erase("head_dim");
  write("config.json", config.dump());
  EXPECT_EQ(HfConfig::open(folder_).facts.head_dim, 128);
  config["head_dim"] = 96;
  write("config.json", config.dump());
  expect_refused_as_is(ExitCode::kMismatch, "head_dim: expected 64 or 128 where heads are normed, got 96");
  config["head_dim"] = 128;
  config["attention_bias"] = true;
  write("config.json", config.dump());
  expect_refused_as_is(ExitCode::kMismatch, "attention_bias: expected false, got true: not supported");
}

TEST_F(HfConfigTest, QwensWindowIsThereWhereItIsUsed) {
  for (const char* family : {"Qwen2", "Qwen3"}) {
    json config = base_config();
    config["architectures"] = {std::string(family) + "ForCausalLM"};
    config["model_type"] = family[4] == '2' ? "qwen2" : "qwen3";
    config["max_position_embeddings"] = 32768;
    const auto with = [&](const json& used, const json& window) {
      json patched = config;
      if (!used.is_discarded()) patched["use_sliding_window"] = used;
      if (!window.is_discarded()) patched["sliding_window"] = window;
      write("config.json", patched.dump());
    };
    const json absent(json::value_t::discarded);
    with(false, 4096);
    EXPECT_EQ(HfConfig::open(folder_).facts.max_context, 32768);
    with(absent, 4096);
    EXPECT_EQ(HfConfig::open(folder_).facts.max_context, 32768);
    with(true, 32768);
    EXPECT_EQ(HfConfig::open(folder_).facts.max_context, 32768);
    with(true, nullptr);
    EXPECT_EQ(HfConfig::open(folder_).facts.max_context, 32768);
    const std::string expected =
        "sliding_window: expected null, or at least max_position_embeddings = 32768, got ";
    with(true, 4096);
    expect_refused_as_is(ExitCode::kMismatch, expected + "4096: not supported");
    with(true, absent);
    expect_refused_as_is(ExitCode::kMismatch, expected + "nothing, which means 4096: not supported");
    with("yes", 4096);
    expect_refused_as_is(ExitCode::kBadFile, "use_sliding_window: expected true or false, got \"yes\"");
  }
}

TEST_F(HfConfigTest, ReadsLinearAndYarn) {
  const auto facts_of = [&](const json& scaling) {
    json config = base_config();
    config["rope_scaling"] = scaling;
    config["max_position_embeddings"] = 32768;
    write("config.json", config.dump());
    return HfConfig::open(folder_).facts;
  };
  const ModelFacts linear = facts_of({{"type", "linear"}, {"factor", 2.5}});
  EXPECT_EQ(linear.rope_kind, RopeKind::kLinear);
  EXPECT_EQ(linear.rope_factor, 2.5);
  EXPECT_EQ(linear.rope_attention_factor, 1.0);
  EXPECT_EQ(linear.max_context, 32768);
  json scaling = {{"rope_type", "yarn"}, {"factor", 4.0}, {"original_max_position_embeddings", 32768}};
  const ModelFacts yarn = facts_of(scaling);
  EXPECT_EQ(yarn.rope_kind, RopeKind::kYarn);
  EXPECT_EQ(yarn.rope_factor, 4.0);
  EXPECT_EQ(yarn.rope_original_context, 32768);
  EXPECT_EQ(yarn.rope_beta_fast, 32.0);
  EXPECT_EQ(yarn.rope_beta_slow, 1.0);
  EXPECT_EQ(yarn.rope_truncate, 1);
  EXPECT_DOUBLE_EQ(yarn.rope_attention_factor, 0.1 * std::log(4.0) + 1.0);
  EXPECT_EQ(yarn.max_context, 131072) << "what the context is stretched to";
  scaling.update({{"beta_fast", 16}, {"beta_slow", 2}, {"truncate", false}, {"attention_factor", 1.5}});
  const ModelFacts stated = facts_of(scaling);
  EXPECT_EQ(stated.rope_beta_fast, 16.0);
  EXPECT_EQ(stated.rope_beta_slow, 2.0);
  EXPECT_EQ(stated.rope_truncate, 0);
  EXPECT_EQ(stated.rope_attention_factor, 1.5);
  EXPECT_NE(hash_facts(stated), hash_facts(yarn));
}

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

TEST_F(HfConfigTest, GenerationConfigAddsEndTokens) {
  write("generation_config.json", R"({"eos_token_id": [5, 128001], "bos_token_id": 7})");
  EXPECT_EQ(open({{"eos_token_id", 128001}}).eos_ids, (std::vector<int>{5, 128001}));
  EXPECT_EQ(open().bos_id, 128000) << "config.json goes first";
  EXPECT_EQ(open({{"bos_token_id", nullptr}}).bos_id, 7);
  const auto refused = [&](const char* text, ExitCode code, const std::string& message) {
    write("generation_config.json", text);
    expect_refused_as_is(code, message, "generation_config.json");
  };
  refused(R"({"eos_token_id": [128256]})", ExitCode::kBadFile,
          "eos_token_id[0]: expected an integer in [0, 128255], got 128256");
  refused(R"({"eos_token_id": "</s>"})", ExitCode::kBadFile,
          "eos_token_id: expected an integer, got \"</s>\"");
  refused("{", ExitCode::kBadFile, "not valid JSON");
}

TEST_F(HfConfigTest, RefusesUnsupportedModels) {
  const auto refused = [&](const json& patch, const std::string& message) {
    expect_refused(patch, ExitCode::kMismatch, message);
  };
  refused({{"architectures", {"MixtralForCausalLM"}}},
          "architectures: expected one of LlamaForCausalLM, MistralForCausalLM, Qwen2ForCausalLM, "
          "Qwen3ForCausalLM, got \"MixtralForCausalLM\"");
  refused({{"model_type", "mllama"}}, "model_type: expected \"llama\", got \"mllama\"");
  refused({{"architectures", {"MistralForCausalLM"}}}, "model_type: expected \"mistral\", got \"llama\"");
  refused(
      {{"quantization_config", {{"quant_method", "fp8"}}}},
      "quantization_config.quant_method: expected \"gptq\", \"awq\" or \"compressed-tensors\", got \"fp8\"");
  refused({{"attention_bias", true}}, "attention_bias: expected false, got true: not supported");
  refused({{"mlp_bias", true}}, "mlp_bias: expected false, got true: not supported");
  refused({{"hidden_act", "gelu"}}, "hidden_act: expected \"silu\", got \"gelu\"");
  refused({{"hidden_size", 2080}}, "hidden_size: expected a multiple of 64 from 64 to 65536, got 2080");
  refused({{"intermediate_size", 8191}},
          "intermediate_size: expected a multiple of 64 from 64 to 262144, got 8191");
  refused({{"head_dim", 80}}, "head_dim: expected one of 64, 96, 128, 256, got 80");
  refused({{"head_dim", nullptr}, {"num_attention_heads", 64}, {"num_key_value_heads", 8}},
          "head_dim: expected one of 64, 96, 128, 256, got 32");
  for (const char* type : {"dynamic", "longrope", "LLAMA3", ""}) {
    refused({{"rope_scaling", {{"rope_type", type}}}},
            "rope_scaling.rope_type: expected one of \"default\", \"llama3\", \"linear\", \"yarn\", got \"" +
                std::string(type) + "\"");
  }
  refused({{"rope_scaling", {{"rope_type", nullptr}, {"type", "dynamic"}}}}, "rope_scaling.type: expected");
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
    refused({64}, "expected an integer, got an array");
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

TEST_F(HfConfigTest, ReadsHowTokensAreChosen) {
  EXPECT_FALSE(open().generation.do_sample);
  EXPECT_EQ(open().generation.temperature, std::nullopt);
  write("generation_config.json",
        R"({"do_sample": true, "temperature": 0.6, "top_k": 40, "top_p": 0.9, "min_p": null,
            "repetition_penalty": 1.05})");
  const GenerationDefaults defaults = open().generation;
  EXPECT_TRUE(defaults.do_sample);
  EXPECT_EQ(defaults.temperature, 0.6);
  EXPECT_EQ(defaults.top_k, 40);
  EXPECT_EQ(defaults.top_p, 0.9);
  EXPECT_EQ(defaults.min_p, std::nullopt);
  EXPECT_EQ(defaults.repetition_penalty, 1.05);
  for (const auto& [text, message] :
       {std::pair(R"({"temperature": -1})", "temperature: expected a number in [0, 100], got -1"),
        {R"({"top_p": 1.5})", "top_p: expected a number in [0, 1], got 1.5"},
        {R"({"top_k": 0.5})", "top_k: expected an integer"},
        {R"({"do_sample": 1})", "do_sample: expected"},
        {R"({"repetition_penalty": 0})", "repetition_penalty: expected a number in"}}) {
    write("generation_config.json", text);
    expect_refused_as_is(ExitCode::kBadFile, message, "generation_config.json");
  }
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
