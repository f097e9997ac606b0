// From the config.json that a model was published with to plans: its facts, as many parameters as it has, and kernels of one
// row and of several that read all of them, which the verifier accepts.
#include <cmath>
#include <nlohmann/json.hpp>

#include "layout/fact_list.h"
#include "models/check.h"
#include "models/hf_config.h"
#include "models/model_tables.h"
#include "models/strict_json.h"
#include "models/strict_yaml.h"
#include "tests/generator/plan_fixture.h"

namespace soliton {
namespace {

/// Of tests/configs. Parameters as transformers counts them, of what is text.
/// Their sources: what was published, or, of Ministral 3's 3B and 14B, Granite 4.0 micro, Hunyuan, and StarCoder2, the
/// numbers by which others' converters and tests run the published models; Minitron is as its makers' converter has it.
struct Published {
  const char* name;
  int64_t parameters;
};

constexpr Published kPublished[] = {
    {"gemma-2-2b", 2614341888},
    {"gemma-2-9b", 9241705984},
    {"gemma-2-27b", 27227128320},
    {"gemma-3-270m", 268098176},
    {"gemma-3-1b", 999885952},
    {"gemma-3-4b", 3880263168},
    {"gemma-3-12b", 11766034176},
    {"gemma-3-27b", 27009346304},
    {"olmo-2-1b", 1484916736},
    {"olmo-2-7b", 7298617344},
    {"olmo-2-13b", 13716198400},
    {"olmo-2-32b", 32234279936},
    {"olmo-3-7b", 7298011136},
    {"olmo-3-32b", 32233522176},
    {"granite-3.3-2b", 2533539840},
    {"granite-3.3-8b", 8170864640},
    {"granite-4.0-350m", 352379904},
    {"granite-4.0-1b", 1631750144},
    {"granite-4.0-micro", 3402836480},
    {"smollm3-3b", 3075098624},
    {"seed-oss-36b", 36151104512},
    {"exaone-4.0-1.2b", 1279391488},
    {"exaone-4.0-32b", 32003216384},
    {"glm-4-9b", 9400094720},
    {"glm-4-32b", 32566081536},
    {"falcon3-1b", 1669408768},
    {"falcon3-3b", 3227655168},
    {"falcon3-7b", 7455550464},
    {"falcon3-10b", 10305653760},
    {"phi-3-mini-4k", 3821079552},
    {"phi-3-medium-4k", 13960238080},
    {"phi-3.5-mini", 3821079552},
    {"phi-4", 14659507200},
    {"phi-4-mini", 3836021760},
    {"mistral-7b-v0.1", 7241732096},
    {"ministral-8b-2410", 8019808256},
    {"ministral-3-3b", 3429006336},
    {"ministral-3-8b", 8489553920},
    {"ministral-3-14b", 13506073600},
    {"mistral-small-3.1-24b", 23572403200},
    {"hunyuan-0.5b", 539010048},
    {"hunyuan-1.8b", 1791080448},
    {"hunyuan-4b", 4221757440},
    {"hunyuan-7b", 7504568320},
    {"command-r-32b", 32296476672},
    {"command-r7b", 8028033024},
    {"mpt-7b", 6649286656},
    {"minitron-4b", 4190509056},
    {"starcoder2-3b", 3030371328},
    {"starcoder2-7b", 7173923840},
};

ModelFacts facts_of(const std::string& name) {
  const std::string file = std::string(SOLITON_SOURCE_DIR) + "/tests/configs/" + name + ".json";
  return HfConfig::read(read_json(file), file, {}).facts;
}

/// What a token is multiplied with, in elements.
int64_t matrix_elements(const ModelFacts& facts) {
  const Graph graph = build_graph(facts);
  int64_t elements = 0;
  graph.for_each_op([&](const GraphOp& op, int /*layer*/) {
    if (op.matrix != kNone)
      elements += int64_t{graph.matrices[op.matrix].rows} * graph.matrices[op.matrix].columns;
  });
  return elements;
}

/// Elements of norms that a layer has once and its blocks read with twice.
int64_t repeated_norms(const ModelFacts& facts) {
  return is_parallel(norm_placement(facts)) ? int64_t{facts.num_layers} * facts.hidden : 0;
}

class PublishedConfig : public testing::TestWithParam<Published> {};

TEST_P(PublishedConfig, IsPlannedWithAllItsParameters) {
  const ModelFacts facts = facts_of(GetParam().name);
  const int64_t elements = matrix_elements(facts);
  const ModelTables tables = model_tables(facts);
  const int64_t tied = facts.tied_lm_head != 0 ? tables.embedding : 0;
  // Biases of norms are none of a table, but what matrices make of them.
  const int64_t of_norms = facts.norm_bias != 0 ? tables.norms : 0;
  const int64_t of_qkv = facts.qkv_bias != 0 ? tables.qkv_biases : 0;
  const int64_t of_layer = (facts.o_bias != 0 ? facts.hidden : 0) +
                           (facts.ffn_bias != 0 ? int64_t{up_biases(facts)} + facts.hidden : 0);
  const int64_t biases = of_norms + of_qkv + facts.num_layers * of_layer;
  EXPECT_EQ(
      elements + tables.embedding - tied + tables.norms - repeated_norms(facts) + tables.head_norms + biases,
      GetParam().parameters);
  const ModelConfig model = {.name = GetParam().name, .path = {}, .facts = facts};
  for (const int rows : {1, 8, 64}) {
    const Plan plan = make_plan(model, shipped_gpu("h200"), {.rows = rows});
    EXPECT_EQ(refusals(plan), "") << rows << " rows";
    EXPECT_EQ(plan.needed_weight_bytes, 2 * elements) << rows << " rows";
  }
  const std::string text = format_model_config(model.name, facts, "");
  const ModelConfig written = parse_model_config(StrictYaml::parse(text, model.name + ".yaml"), "");
  EXPECT_EQ(hash_facts(written.facts), hash_facts(facts)) << text;
}

INSTANTIATE_TEST_SUITE_P(Each, PublishedConfig, testing::ValuesIn(kPublished), [](const auto& info) {
  std::string name = info.param.name;
  std::replace_if(
      name.begin(), name.end(), [](unsigned char c) { return !std::isalnum(c); }, '_');
  return name;
});

// What the bench measures is the published model.
TEST(PublishedConfigs, AreThoseOfTheBench) {
  const std::string file = std::string(SOLITON_SOURCE_DIR) + "/tests/models/gemma-3-12b.yaml";
  EXPECT_EQ(hash_facts(load_model_config(file).facts), hash_facts(facts_of("gemma-3-12b")));
}

// What families say of layers and scales.
TEST(PublishedConfigs, SayWhatLayersDifferIn) {
  const ModelFacts gemma2 = facts_of("gemma-2-27b");
  EXPECT_EQ(show_windows(gemma2), "[4096, 0]");
  EXPECT_DOUBLE_EQ(gemma2.attention_scale, 1 / 12.0);
  EXPECT_EQ(gemma2.attention_soft_cap, 50);
  EXPECT_EQ(gemma2.logit_soft_cap, 30);
  EXPECT_DOUBLE_EQ(gemma2.embedding_scale * gemma2.embedding_scale, 4608);
  for (const char* name : {"gemma-3-270m", "gemma-3-1b"}) {
    const ModelFacts facts = facts_of(name);
    EXPECT_EQ(show_windows(facts), "[512, 512, 512, 512, 512, 0]") << name;
    EXPECT_EQ(show_ropes(facts), "[1, 1, 1, 1, 1, 0]") << name;
    EXPECT_EQ(facts.rope_local_theta, 10000) << name;
    EXPECT_EQ(facts.rope_kind, RopeKind::kDefault) << name;
  }
  const ModelFacts gemma3 = facts_of("gemma-3-27b");
  EXPECT_EQ(gemma3.rope_kind, RopeKind::kLinear);
  EXPECT_EQ(gemma3.rope_factor, 8);
  EXPECT_EQ(gemma3.max_context, 131072);
  EXPECT_EQ(gemma3.layer_window[5], 0);
  EXPECT_EQ(gemma3.layer_window[61], 1024);
  EXPECT_EQ(show_ropes(facts_of("olmo-2-7b")), "[0]");
  const ModelFacts olmo3 = facts_of("olmo-3-7b");
  EXPECT_EQ(show_ropes(olmo3), "[1, 1, 1, 0]");
  EXPECT_EQ(olmo3.rope_kind, RopeKind::kYarn);
  EXPECT_EQ(show_ropes(facts_of("smollm3-3b")), "[0, 0, 0, 2]");
  EXPECT_EQ(show_ropes(facts_of("exaone-4.0-32b")), "[0, 0, 0, 2]");
  EXPECT_EQ(show_ropes(facts_of("exaone-4.0-1.2b")), "[0]");
  const ModelFacts phi4 = facts_of("phi-4-mini");
  EXPECT_EQ(phi4.rope_kind, RopeKind::kLongrope);
  EXPECT_EQ(phi4.rope_dims, 96);
  EXPECT_EQ(phi4.rope_original_context, 4096);
  EXPECT_NEAR(phi4.rope_attention_factor, 1.190238, 1e-6);
  EXPECT_EQ(phi4.rope_long_factors[47], 47.77f);
  EXPECT_EQ(show_windows(phi4), "[0]") << "its window is wider than its context";
  EXPECT_EQ(show_windows(facts_of("phi-3-medium-4k")), "[2047]");
  EXPECT_EQ(show_windows(facts_of("phi-4")), "[0]");
  EXPECT_EQ(show_windows(facts_of("mistral-7b-v0.1")), "[4096]");
  EXPECT_EQ(show_windows(facts_of("ministral-8b-2410")), "[0]");
  const ModelFacts ministral = facts_of("ministral-3-8b");
  EXPECT_EQ(ministral.query_scale_beta, 0.1);
  EXPECT_EQ(ministral.query_scale_context, 16384);
  EXPECT_EQ(ministral.max_context, 262144);
  EXPECT_EQ(ministral.rope_attention_factor, 1);
  EXPECT_EQ(facts_of("mistral-small-3.1-24b").query_scale_beta, 0);
  const ModelFacts hunyuan = facts_of("hunyuan-7b");
  EXPECT_EQ(hunyuan.head_norm_last, 1);
  EXPECT_EQ(hunyuan.rope_kind, RopeKind::kDefault);
  EXPECT_DOUBLE_EQ(hunyuan.rope_theta, 10000 * std::pow(1000, 128 / 126.0));
  const ModelFacts command = facts_of("command-r7b");
  EXPECT_EQ(norm_placement(command), NormPlacement::kParallel);
  EXPECT_EQ(command.norm_epsilon, 1e-5);
  EXPECT_EQ(command.logit_scale, 0.25);
  EXPECT_EQ(show_windows(command), "[4096, 4096, 4096, 0]");
  EXPECT_EQ(rope_of_layer(command, 3), kNoRope);
  EXPECT_EQ(rope_of_layer(command, 4), kMainRope);
  const ModelFacts mpt = facts_of("mpt-7b");
  EXPECT_EQ(norm_placement(mpt), NormPlacement::kCentred);
  EXPECT_EQ(mpt.ungated, 1);
  EXPECT_EQ(mpt.alibi, 8);
  EXPECT_EQ(mpt.activation, static_cast<int32_t>(Activation::kGelu));
  EXPECT_EQ(show_ropes(mpt), "[2]");
  const ModelFacts minitron = facts_of("minitron-4b");
  EXPECT_EQ(minitron.norm_bias, 1);
  EXPECT_EQ(minitron.norm_offset, 1);
  EXPECT_EQ(minitron.rope_dims, 64);
  EXPECT_EQ(minitron.activation, static_cast<int32_t>(Activation::kReluSquared));
  const ModelFacts starcoder = facts_of("starcoder2-3b");
  EXPECT_EQ(show_windows(starcoder), "[4096]");
  EXPECT_EQ(starcoder.norm_bias + starcoder.qkv_bias + starcoder.o_bias + starcoder.ffn_bias, 4);
  EXPECT_EQ(starcoder.tied_lm_head, 1);
  EXPECT_EQ(starcoder.rope_theta, 999999.4420358813);
  EXPECT_EQ(starcoder.activation, static_cast<int32_t>(Activation::kGeluTanh));
  const ModelFacts granite = facts_of("granite-3.3-8b");
  EXPECT_EQ(granite.logit_scale, 1 / 16.0);
  EXPECT_EQ(granite.attention_scale, 1 / 128.0);
  EXPECT_EQ(granite.residual_scale, 0.22);
  const ModelFacts granite4 = facts_of("granite-4.0-350m");
  EXPECT_EQ(granite4.ffn, 2048);
  EXPECT_EQ(granite4.logit_scale, 0.25);
  EXPECT_EQ(granite4.attention_scale, 1 / 64.0);
  EXPECT_EQ(granite4.residual_scale, 0.263);
  EXPECT_EQ(show_ropes(granite4), "[0]");
}

}  // namespace
}  // namespace soliton
