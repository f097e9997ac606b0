// HfConfig: both schemas of config.json.
#include "layout/fact_list.h"
#include "tests/facts/hf_config_fixture.h"

namespace soliton {
namespace {

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

TEST_F(HfConfigTest, MistralIsALlamaWithAWindow) {
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
  for (const auto& [window, width] :
       {std::pair(json(32767), 32767), {json(4096), 4096}, {json(1), 1}, {absent, 4096}}) {
    with_window(window);
    ModelFacts facts = HfConfig::open(folder_).facts;
    for (int layer = 0; layer < kMostListedLayers; ++layer) {
      EXPECT_EQ(facts.layer_window[layer], layer < facts.num_layers ? width : 0) << layer;
      facts.layer_window[layer] = 0;
    }
    EXPECT_EQ(hash_facts(facts), hash_facts(llama));
  }
  with_window(0);
  expect_refused_as_is(ExitCode::kBadFile, "sliding_window: expected an integer in [1, ");
  with_window("none");
  expect_refused_as_is(ExitCode::kBadFile, "sliding_window: expected an integer, got \"none\"");
  config["max_position_embeddings"] = 4096;
  with_window(absent);
  EXPECT_FALSE(has_windows(HfConfig::open(folder_).facts)) << "no token is left out";
  // Not a Llama's business: its config class has no such member.
  EXPECT_FALSE(has_windows(open({{"sliding_window", 16}}).facts));
}

TEST_F(HfConfigTest, MinistralsLayersSayWhetherTheyHaveAWindow) {
  json config = base_config();
  config.merge_patch({{"architectures", {"MinistralForCausalLM"}}, {"model_type", "ministral"}});
  config["sliding_window"] = 64;
  write("config.json", config.dump());
  EXPECT_EQ(show_windows(HfConfig::open(folder_).facts), "[64]") << "all, where none says so";
  config["sliding_window"] = nullptr;
  write("config.json", config.dump());
  EXPECT_EQ(show_windows(HfConfig::open(folder_).facts), "[0]");
}

TEST_F(HfConfigTest, ReadsTheTextOfMistral3) {
  json text = base_config();
  text.erase("architectures");
  text["model_type"] = "ministral3";
  text["rope_scaling"] = nullptr;
  text["rope_parameters"] = {{"rope_type", "yarn"},
                             {"factor", 16},
                             {"original_max_position_embeddings", 8192},
                             {"llama_4_scaling_beta", 0.25}};
  text["max_position_embeddings"] = 131072;
  json config = {{"architectures", {"Mistral3ForConditionalGeneration"}},
                 {"model_type", "mistral3"},
                 {"text_config", text}};
  write("config.json", config.dump());
  const HfConfig read = HfConfig::open(folder_);
  EXPECT_EQ(read.facts.query_scale_beta, 0.25);
  EXPECT_EQ(read.facts.query_scale_context, 8192);
  EXPECT_TRUE(read.checkpoint.in_layer(0, "x").starts_with("language_model.model.layers.0."));
  config["text_config"]["rope_parameters"].erase("llama_4_scaling_beta");
  config["text_config"]["model_type"] = "mistral";
  write("config.json", config.dump());
  EXPECT_EQ(HfConfig::open(folder_).facts.query_scale_beta, 0);
  config["text_config"]["model_type"] = "mixtral";
  write("config.json", config.dump());
  expect_refused_as_is(ExitCode::kMismatch,
                       "text_config.model_type: expected \"mistral\" or \"ministral3\", got \"mixtral\"");
  expect_refused({{"rope_scaling", {{"rope_type", "default"}, {"llama_4_scaling_beta", 0.1}}}},
                 ExitCode::kMismatch,
                 "rope_scaling.llama_4_scaling_beta: expected nothing, got 0.1: not supported");
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
  expect_refused_as_is(ExitCode::kMismatch,
                       "head_dim: expected 64, 128 or 256 where heads are normed, got 96");
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
    const auto windows = [&] { return show_windows(HfConfig::open(folder_).facts); };
    with(false, 4096);
    EXPECT_EQ(windows(), "[0]");
    with(absent, 4096);
    EXPECT_EQ(windows(), "[0]");
    with(true, 32768);
    EXPECT_EQ(windows(), "[0]");
    with(true, nullptr);
    EXPECT_EQ(windows(), "[0]");
    config["max_window_layers"] = 1;
    for (const json& window : {json(4096), absent}) {
      with(true, window);
      const ModelFacts facts = HfConfig::open(folder_).facts;
      EXPECT_EQ(facts.layer_window[0], 0);
      EXPECT_EQ(facts.layer_window[1], 4096);
      EXPECT_EQ(facts.max_context, 32768);
    }
    config["max_window_layers"] = config["num_hidden_layers"];
    with(true, 4096);
    EXPECT_EQ(windows(), "[0]");
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

TEST_F(HfConfigTest, ReadsGranite4) {
  const std::vector<std::string> layers(16, "attention");
  json granite = {{"architectures", {"GraniteMoeHybridForCausalLM"}},
                  {"model_type", "granitemoehybrid"},
                  {"num_local_experts", 0},
                  {"layer_types", layers},
                  {"position_embedding_type", "rope"},
                  {"intermediate_size", 512},
                  {"shared_intermediate_size", 4096},
                  {"residual_multiplier", 0.25}};
  const ModelFacts facts = open(granite).facts;
  EXPECT_EQ(facts.ffn, 4096);
  EXPECT_EQ(facts.residual_scale, 0.25);
  EXPECT_EQ(facts.attention_scale, 1) << "absent";
  EXPECT_EQ(show_ropes(facts), "[0]");
  granite["layer_types"] = std::vector<std::string>(16, "full_attention");
  EXPECT_EQ(hash_facts(open(granite).facts), hash_facts(facts)) << "as transformers 5 saves it";
  for (const json& none : {json("nope"), json()}) {
    granite["position_embedding_type"] = none;
    EXPECT_EQ(show_ropes(open(granite).facts), "[2]") << none;
  }
}

/// Phi-3-mini's shape.
json phi3() {
  return {{"architectures", {"Phi3ForCausalLM"}},
          {"model_type", "phi3"},
          {"hidden_size", 3072},
          {"intermediate_size", 8192},
          {"num_hidden_layers", 32},
          {"num_attention_heads", 32},
          {"num_key_value_heads", nullptr},
          {"head_dim", nullptr},
          {"vocab_size", 32064},
          {"max_position_embeddings", 4096},
          {"rms_norm_eps", nullptr},
          {"rope_theta", 10000.0},
          {"tie_word_embeddings", false},
          {"rope_scaling", nullptr},
          {"sliding_window", 2047},
          {"bos_token_id", 1},
          {"eos_token_id", 32000}};
}

TEST_F(HfConfigTest, ReadsPhi3) {
  const HfConfig config = open(phi3());
  EXPECT_EQ(config.facts.num_kv_heads, 32) << "absent: as many as heads";
  EXPECT_EQ(config.facts.head_dim, 96);
  EXPECT_EQ(config.facts.norm_epsilon, 1e-5) << "absent";
  EXPECT_EQ(config.facts.max_context, 4096);
  EXPECT_EQ(show_windows(config.facts), "[2047]");
  json patch = phi3();
  patch["sliding_window"] = nullptr;
  EXPECT_EQ(show_windows(open(patch).facts), "[0]");
  const LinearStack& qkv = config.checkpoint.stacks[0];
  EXPECT_EQ(qkv.parts[2].name, "self_attn.qkv_proj");
  EXPECT_EQ(qkv.parts[2].first, 2 * 3072);
  EXPECT_EQ(qkv.parts[2].tensor_rows, 3 * 3072);
  EXPECT_EQ(config.checkpoint.stacks[2].parts[1].first, 8192);
}

TEST_F(HfConfigTest, ReadsLongrope) {
  json patch = phi3();
  patch["max_position_embeddings"] = 131072;
  patch["original_max_position_embeddings"] = 4096;
  patch["partial_rotary_factor"] = 0.75;
  const std::vector<double> ones(36, 1.0);
  patch["rope_scaling"] = {
      {"rope_type", nullptr}, {"type", "longrope"}, {"short_factor", ones}, {"long_factor", ones}};
  patch["rope_scaling"]["long_factor"][35] = 64.5;
  const ModelFacts facts = open(patch).facts;
  EXPECT_EQ(facts.rope_kind, RopeKind::kLongrope);
  EXPECT_EQ(facts.rope_dims, 72);
  EXPECT_EQ(facts.rope_original_context, 4096);
  EXPECT_EQ(facts.max_context, 131072);
  EXPECT_NEAR(facts.rope_attention_factor, std::sqrt(1 + std::log(32) / std::log(4096)), 1e-12);
  EXPECT_EQ(facts.rope_short_factors[35], 1);
  EXPECT_EQ(facts.rope_long_factors[35], 64.5);
  EXPECT_EQ(facts.rope_long_factors[36], 0);
  ModelFacts other = facts;
  other.rope_long_factors[0] = 2;
  EXPECT_NE(hash_facts(other), hash_facts(facts));
  EXPECT_NE(error_of([&] {
              check_same(open(patch).stated, other, "kernel of x");
            }).find("rope_scaling.long_factor: expected others (kernel of x), got an array"),
            std::string::npos);
  json wrong = patch;
  wrong["rope_scaling"]["short_factor"] = {1.0};
  expect_refused(wrong, ExitCode::kBadFile,
                 "rope_scaling.short_factor: expected one for each of 36 pairs of dims, got 1");
  wrong = patch;
  wrong["rope_scaling"]["long_factor"][3] = 0;
  expect_refused(wrong, ExitCode::kBadFile,
                 "rope_scaling.long_factor[3]: expected a number in [0.001, 1000000], got 0");
  wrong = patch;
  wrong["rope_scaling"]["long_mscale"] = 1.2;
  expect_refused(wrong, ExitCode::kMismatch,
                 "rope_scaling.long_mscale: expected nothing, got 1.2: not supported");
}

// Beyond max_position_embeddings dynamic scaling would turn the keys by another theta with every token.
TEST_F(HfConfigTest, DynamicRopeIsPlainUpToItsContext) {
  const json scaling = {{"rope_type", "dynamic"}, {"factor", 2.0}, {"alpha", 1000.0}};
  EXPECT_EQ(hash_facts(open({{"rope_scaling", scaling}}).facts),
            hash_facts(open({{"rope_scaling", nullptr}}).facts));
  json hunyuan = {{"architectures", {"HunYuanDenseV1ForCausalLM"}},
                  {"model_type", "hunyuan_v1_dense"},
                  {"rope_theta", 10000.0},
                  {"rope_scaling", scaling}};
  const HfConfig read = open(hunyuan);
  EXPECT_EQ(read.facts.head_norm_last, 1);
  EXPECT_EQ(read.checkpoint.head_norms[1], "self_attn.key_layernorm");
  const double dims = read.facts.head_dim;
  EXPECT_DOUBLE_EQ(read.facts.rope_theta, 10000 * std::pow(1000.0, dims / (dims - 2)));
}

}  // namespace
}  // namespace soliton
