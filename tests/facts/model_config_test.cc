// Shipped models load with the facts they are known for; every contradiction is refused by its exact line.
#include "models/model_config.h"

#include <gtest/gtest.h>

#include <set>

#include "error_of.h"
#include "layout/fact_list.h"
#include "models/check.h"
#include "models/graph.h"
#include "models/model_tables.h"
#include "models/strict_yaml.h"

namespace soliton {
namespace {

const std::filesystem::path kShippedModels = std::filesystem::path(SOLITON_SOURCE_DIR) / "models";

const std::string kGood =
    "name: m\n"
    "hidden: 4096\n"
    "ffn: 14336\n"
    "num_layers: 32\n"
    "num_heads: 32\n"
    "num_kv_heads: 8\n"
    "head_dim: 128\n"
    "vocabulary: 128256\n"
    "tied_lm_head: false\n"
    "max_context: 131072\n"
    "norm_epsilon: 1e-5\n"
    "rope:\n"
    "  kind: llama3\n"
    "  theta: 500000\n"
    "  factor: 8\n"
    "  low_freq_factor: 1\n"
    "  high_freq_factor: 4\n"
    "  original_context: 8192\n";

const std::string kDefaultRope =
    kGood.substr(0, kGood.find("rope:")) + "rope:\n  kind: default\n  theta: 10000\n";

const std::string kYarnRope = kGood.substr(0, kGood.find("rope:")) +
                              "rope:\n  kind: yarn\n  theta: 10000\n  factor: 4\n"
                              "  original_context: 32768\n";

const std::string kQuantization =
    "quantization:\n"
    "  bits: 4\n"
    "  group: 128\n"
    "  symmetric: true\n"
    "  act_order: false\n"
    "  lm_head: false\n";

const std::string kGoodInt4 = kGood + kQuantization;

std::string parse_error(const std::string& text) {
  return error_of([&] { parse_model_config(StrictYaml::parse(text, "models/m.yaml"), "models/m.yaml"); });
}

std::string refusal(int line, const std::string& rest) {
  return "4 models/m.yaml:" + std::to_string(line) + ": " + rest;
}

TEST(ModelConfig, ReadsEveryFact) {
  const ModelConfig config = parse_model_config(StrictYaml::parse(kGood, "models/m.yaml"), "models/m.yaml");
  EXPECT_EQ(config.name, "m");
  EXPECT_EQ(config.path, "models/m.yaml");
  const ModelFacts& facts = config.facts;
  EXPECT_EQ(facts.hidden, 4096);
  EXPECT_EQ(facts.ffn, 14336);
  EXPECT_EQ(facts.num_layers, 32);
  EXPECT_EQ(facts.num_heads, 32);
  EXPECT_EQ(facts.num_kv_heads, 8);
  EXPECT_EQ(facts.head_dim, 128);
  EXPECT_EQ(facts.vocabulary, 128256);
  EXPECT_EQ(facts.tied_lm_head, 0);
  EXPECT_EQ(facts.max_context, 131072);
  EXPECT_EQ(facts.rope_kind, RopeKind::kLlama3);
  EXPECT_EQ(facts.rope_original_context, 8192);
  EXPECT_EQ(facts.norm_epsilon, 1e-5);
  EXPECT_EQ(facts.rope_theta, 500000.0);
  EXPECT_EQ(facts.rope_factor, 8.0);
  EXPECT_EQ(facts.rope_low_freq_factor, 1.0);
  EXPECT_EQ(facts.rope_high_freq_factor, 4.0);
}

std::string with_ffns(const std::string& list) {
  return kGood.substr(0, kGood.find("ffn:")) + "ffn: " + list + "\nnum_layers: 3\n" +
         kGood.substr(kGood.find("num_heads:"));
}

TEST(ModelConfig, LayersHaveWidthsOfTheirOwn) {
  const auto facts_of = [](const std::string& text) {
    return parse_model_config(StrictYaml::parse(text, "models/m.yaml"), "models/m.yaml").facts;
  };
  const ModelFacts facts = facts_of(with_ffns("[192, 320, 192]"));
  EXPECT_EQ(facts.ffn, 320) << "the widest";
  EXPECT_EQ(ffn_of_layer(facts, 0), 192);
  EXPECT_EQ(ffn_of_layer(facts, 1), 320);
  EXPECT_EQ(ffn_of_layer(facts, 2), 192);
  EXPECT_EQ(hash_facts(facts_of(format_model_config("m", facts, ""))), hash_facts(facts));
  EXPECT_NE(hash_facts(facts), hash_facts(facts_of(with_ffns("[320, 192, 192]"))));
  EXPECT_EQ(hash_facts(facts_of(with_ffns("[192, 192, 192]"))), hash_facts(facts_of(with_ffns("192"))));
  for (const auto& [list, expected] :
       {std::pair("[192, 320]", "one for each of 3 layers, got [192, 320]"),
        {"[192, 320, 100]", "a multiple of 64 from 64 to 262144 for each layer, got [192, 320, 100]"},
        {"[192, 0, 192]", "a multiple of 64 from 64 to 262144 for each layer, got [192, 0, 192]"},
        {"[192, x, 192]", "a multiple of 64 from 64 to 262144 in each place, got x"},
        {"[]", "a multiple of 64 from 64 to 262144, got an empty list"}}) {
    EXPECT_EQ(parse_error(with_ffns(list)), refusal(3, std::string("ffn: expected ") + expected));
  }
}

TEST(ModelConfig, DefaultRopeLeavesTheFactorsAlone) {
  const ModelFacts facts = parse_model_config(StrictYaml::parse(kDefaultRope, "m.yaml"), "m.yaml").facts;
  EXPECT_EQ(facts.rope_kind, RopeKind::kDefault);
  EXPECT_EQ(facts.rope_theta, 10000.0);
  EXPECT_EQ(facts.rope_factor, 1.0);
  EXPECT_EQ(facts.rope_original_context, 0);
}

TEST(ModelConfig, YarnHasDefaults) {
  const auto facts_of = [](const std::string& text) {
    return parse_model_config(StrictYaml::parse(text, "m.yaml"), "m.yaml").facts;
  };
  const ModelFacts facts = facts_of(kYarnRope);
  EXPECT_EQ(facts.rope_kind, RopeKind::kYarn);
  EXPECT_EQ(facts.rope_factor, 4.0);
  EXPECT_EQ(facts.rope_original_context, 32768);
  EXPECT_EQ(facts.rope_beta_fast, 32.0);
  EXPECT_EQ(facts.rope_beta_slow, 1.0);
  EXPECT_EQ(facts.rope_truncate, 1);
  EXPECT_DOUBLE_EQ(facts.rope_attention_factor, 1.138629436111989);  // 0.1 ln 4 + 1
  const ModelFacts stated =
      facts_of(kYarnRope + "  beta_fast: 16\n  beta_slow: 2\n  attention_factor: 1.5\n  truncate: false\n");
  EXPECT_EQ(stated.rope_beta_fast, 16.0);
  EXPECT_EQ(stated.rope_beta_slow, 2.0);
  EXPECT_EQ(stated.rope_attention_factor, 1.5);
  EXPECT_EQ(stated.rope_truncate, 0);
}

ModelFacts facts_of(const std::string& text) {
  return parse_model_config(StrictYaml::parse(text, "m.yaml"), "m.yaml").facts;
}

TEST(ModelConfig, TheCacheHas16BitsUnlessItSaysOtherwise) {
  EXPECT_EQ(facts_of(kGood).kv_bits, 16);
  EXPECT_EQ(facts_of(kGood + "kv_bits: 16\n").kv_bits, 16);
  EXPECT_EQ(facts_of(kGood + "kv_bits: 32\n").kv_bits, 32);
  EXPECT_NE(hash_facts(facts_of(kGood + "kv_bits: 32\n")), hash_facts(facts_of(kGood)));
  EXPECT_EQ(parse_error(kGood + "kv_bits: 4\n"), refusal(19, "kv_bits: expected one of 8, 16, 32, got 4"));
}

TEST(ModelConfig, BiasesAndNormedHeadsAreSaidWhereTheyAre) {
  EXPECT_EQ(facts_of(kGood).qkv_bias, 0);
  EXPECT_EQ(facts_of(kGood).head_norm, 0);
  EXPECT_EQ(facts_of(kGood + "qkv_bias: true\n").qkv_bias, 1);
  EXPECT_EQ(facts_of(kGood + "head_norm: true\n").head_norm, 1);
  EXPECT_NE(hash_facts(facts_of(kGood + "qkv_bias: true\n")), hash_facts(facts_of(kGood)));
  EXPECT_NE(
      parse_error(kGood + "joint_norm: true\n").find("joint_norm: expected false where heads are not normed"),
      std::string::npos);
  EXPECT_NE(hash_facts(facts_of(kGood + "head_norm: true\n")), hash_facts(facts_of(kGood)));
  EXPECT_EQ(parse_error(with(kGood, "head_dim: 128", "head_dim: 96") + "head_norm: true\n"),
            refusal(7, "head_dim: expected 64, 128 or 256 where heads are normed, got 96"));
}

ModelFacts quantized_facts(const std::string& text) {
  return parse_model_config(StrictYaml::parse(text, "m.yaml"), "m.yaml").facts;
}

TEST(ModelConfig, WeightsAreBf16WithoutTheKey) {
  const ModelFacts facts = quantized_facts(kGood);
  EXPECT_EQ(facts.weight_bits, 16);
  EXPECT_EQ(facts.weight_group, 0);
  EXPECT_EQ(facts.weight_zeros, 0);
  EXPECT_EQ(facts.weight_order, 0);
  EXPECT_EQ(facts.lm_head_bits, 16);
}

TEST(ModelConfig, ReadsQuantization) {
  const ModelFacts plain = quantized_facts(kGoodInt4);
  EXPECT_EQ(plain.weight_bits, 4);
  EXPECT_EQ(plain.weight_group, 128);
  EXPECT_EQ(plain.weight_zeros, 0);
  EXPECT_EQ(plain.weight_order, 0);
  EXPECT_EQ(plain.lm_head_bits, 16);
  for (const int group : {-1, 32, 64, 128}) {
    EXPECT_EQ(quantized_facts(with(kGoodInt4, "group: 128", "group: " + std::to_string(group))).weight_group,
              group);
  }
  EXPECT_EQ(quantized_facts(with(kGoodInt4, "symmetric: true", "symmetric: false")).weight_zeros, 1);
  EXPECT_EQ(quantized_facts(with(kGoodInt4, "act_order: false", "act_order: true")).weight_order, 1);
  EXPECT_EQ(quantized_facts(with(kGoodInt4, "  lm_head: false", "  lm_head: true")).lm_head_bits, 4);
}

// A fact that the reader forgot would leave the hash alone.
TEST(ModelConfig, EveryFactReachesTheHash) {
  const std::pair<const char*, const char*> changes[] = {
      {"hidden: 4096", "hidden: 4160"},
      {"ffn: 14336", "ffn: 64"},
      {"num_layers: 32", "num_layers: 31"},
      {"num_heads: 32", "num_heads: 16"},
      {"num_kv_heads: 8", "num_kv_heads: 4"},
      {"head_dim: 128", "head_dim: 64"},
      {"vocabulary: 128256", "vocabulary: 128255"},
      {"tied_lm_head: false", "tied_lm_head: true"},
      {"max_context: 131072", "max_context: 131071"},
      {"norm_epsilon: 1e-5", "norm_epsilon: 1e-6"},
      {"theta: 500000", "theta: 500001"},
      {"factor: 8", "factor: 32"},
      {"low_freq_factor: 1", "low_freq_factor: 2"},
      {"high_freq_factor: 4", "high_freq_factor: 5"},
      {"original_context: 8192", "original_context: 8191"},
  };
  const std::pair<const char*, const char*> quantization_changes[] = {
      {"group: 128", "group: 64"},
      {"group: 128", "group: -1"},
      {"symmetric: true", "symmetric: false"},
      {"act_order: false", "act_order: true"},
      {"  lm_head: false", "  lm_head: true"},
  };
  const auto hash = [](const std::string& text) {
    return hash_facts(parse_model_config(StrictYaml::parse(text, "m.yaml"), "m.yaml").facts);
  };
  std::set<uint64_t> hashes = {hash(kGood), hash(kDefaultRope), hash(kGoodInt4)};
  for (const auto& [from, to] : changes) hashes.insert(hash(with(kGood, from, to)));
  for (const auto& [from, to] : quantization_changes) hashes.insert(hash(with(kGoodInt4, from, to)));
  EXPECT_EQ(hashes.size(), std::size(changes) + std::size(quantization_changes) + 3);
}

TEST(ModelConfig, RefusesSizesOutOfRange) {
  const auto changed = [](const std::string& from, const std::string& to) {
    return parse_error(with(kGood, from, to));
  };
  EXPECT_EQ(changed("hidden: 4096", "hidden: 4097"),
            refusal(2, "hidden: expected a multiple of 64 from 64 to 65536, got 4097"));
  EXPECT_EQ(changed("hidden: 4096", "hidden: 65536"), "no error");
  EXPECT_EQ(changed("hidden: 4096", "hidden: 65600"),
            refusal(2, "hidden: expected a multiple of 64 from 64 to 65536, got 65600"));
  EXPECT_EQ(changed("ffn: 14336", "ffn: 0"),
            refusal(3, "ffn: expected a multiple of 64 from 64 to 262144, got 0"));
  EXPECT_EQ(changed("ffn: 14336", "ffn: 14337"),
            refusal(3, "ffn: expected a multiple of 64 from 64 to 262144, got 14337"));
  EXPECT_EQ(changed("num_layers: 32", "num_layers: 1025"),
            refusal(4, "num_layers: expected an integer from 1 to 1024, got 1025"));
  EXPECT_EQ(changed("num_heads: 32", "num_heads: -32"),
            refusal(5, "num_heads: expected an integer from 1 to 1024, got -32"));
  EXPECT_EQ(changed("num_kv_heads: 8", "num_kv_heads: 0"),
            refusal(6, "num_kv_heads: expected an integer from 1 to 1024, got 0"));
  EXPECT_EQ(changed("head_dim: 128", "head_dim: 80"),
            refusal(7, "head_dim: expected one of 64, 96, 128, 256, got 80"));
  EXPECT_EQ(changed("vocabulary: 128256", "vocabulary: 16777217"),
            refusal(8, "vocabulary: expected an integer from 1 to 16777216, got 16777217"));
  EXPECT_EQ(changed("tied_lm_head: false", "tied_lm_head: 0"),
            refusal(9, "tied_lm_head: expected true or false, got 0"));
  EXPECT_EQ(changed("max_context: 131072", "max_context: 4194305"),
            refusal(10, "max_context: expected an integer from 1 to 4194304, got 4194305"));
  EXPECT_EQ(changed("norm_epsilon: 1e-5", "norm_epsilon: 0.1"),
            refusal(11, "norm_epsilon: expected a number above 0 and below 0.1, got 0.1"));
}

TEST(ModelConfig, KvHeadsMustDivideHeads) {
  EXPECT_EQ(parse_error(with(kGood, "num_kv_heads: 8", "num_kv_heads: 5")),
            refusal(6, "num_kv_heads: expected a divisor of num_heads = 32, got 5"));
  EXPECT_EQ(parse_error(with(kGood, "num_kv_heads: 8", "num_kv_heads: 64")),
            refusal(6, "num_kv_heads: expected a divisor of num_heads = 32, got 64"));
  EXPECT_EQ(parse_error(with(kGood, "num_kv_heads: 8", "num_kv_heads: 32")), "no error");
}

TEST(ModelConfig, RefusesImpossibleRope) {
  const auto changed = [](const std::string& from, const std::string& to) {
    return parse_error(with(kGood, from, to));
  };
  EXPECT_EQ(changed("kind: llama3", "kind: su"),
            refusal(13, "rope.kind: expected one of default, llama3, linear, yarn, longrope, got su"));
  EXPECT_EQ(changed("theta: 500000", "theta: 1"),
            refusal(14, "rope.theta: expected a number above 1 and below 1000000000000, got 1"));
  EXPECT_EQ(changed("  factor: 8", "  factor: 0.5"),
            refusal(15, "rope.factor: expected a number from 1 to 1024, got 0.5"));
  EXPECT_EQ(changed("  factor: 8\n", ""),
            refusal(12, "rope.factor: expected a number from 1 to 1024, got no such key"));
  EXPECT_EQ(changed("low_freq_factor: 1", "low_freq_factor: 0"),
            refusal(16, "rope.low_freq_factor: expected a number above 0 and below 1024, got 0"));
  EXPECT_EQ(changed("high_freq_factor: 4", "high_freq_factor: 1"),
            refusal(17, "rope.high_freq_factor: expected a number above low_freq_factor = 1, got 1"));
  EXPECT_EQ(changed("original_context: 8192", "original_context: 0"),
            refusal(18, "rope.original_context: expected an integer from 1 to 4194304, got 0"));
  EXPECT_EQ(
      changed("kind: llama3", "kind: default"),
      refusal(15,
              "rope.factor: expected this key only with kind = llama3 or linear or yarn, got it with kind = "
              "default"));
  EXPECT_EQ(changed("kind: llama3", "kind: linear"),
            refusal(16,
                    "rope.low_freq_factor: expected this key only with kind = llama3, got it with kind = "
                    "linear"));
  EXPECT_EQ(parse_error(kDefaultRope + "  original_context: 8192\n"),
            refusal(15,
                    "rope.original_context: expected this key only with kind = llama3 or yarn or longrope, "
                    "got it with kind = "
                    "default"));
  EXPECT_EQ(parse_error(kYarnRope + "  beta_fast: 1\n"),
            refusal(17, "rope.beta_fast: expected a number above beta_slow = 1, got 1"));
  EXPECT_EQ(parse_error(kYarnRope + "  attention_factor: 0\n"),
            refusal(17, "rope.attention_factor: expected a number above 0 and below 64, got 0"));
  EXPECT_EQ(parse_error(kYarnRope + "  truncate: 1\n"),
            refusal(17, "rope.truncate: expected true or false, got 1"));
  EXPECT_EQ(
      changed("  factor: 8", "  fator: 8"),
      refusal(15,
              "rope.fator: expected one of kind, theta, dims, factor, low_freq_factor, high_freq_factor, "
              "original_context, beta_fast, beta_slow, attention_factor, truncate, short_factors, "
              "long_factors, local_theta, layers, got "
              "an unknown "
              "key"));
}

TEST(ModelConfig, RefusesImpossibleQuantization) {
  const auto changed = [](const std::string& from, const std::string& to) {
    return parse_error(with(kGoodInt4, from, to));
  };
  EXPECT_EQ(parse_error(kGoodInt4), "no error");
  EXPECT_EQ(changed("bits: 4", "bits: 3"),
            refusal(20, "quantization.bits: expected one of 4, 5, 6, 8, 16, got 3"));
  EXPECT_EQ(changed("bits: 4", "bits: four"),
            refusal(20, "quantization.bits: expected one of 4, 5, 6, 8, 16, got four"));
  EXPECT_EQ(changed("group: 128", "group: 256"),
            refusal(21, "quantization.group: expected one of -1, 16, 32, 64, 128, got 256"));
  EXPECT_EQ(changed("group: 128", "group: 0"),
            refusal(21, "quantization.group: expected one of -1, 16, 32, 64, 128, got 0"));
  EXPECT_EQ(changed("symmetric: true", "symmetric: 1"),
            refusal(22, "quantization.symmetric: expected true or false, got 1"));
  EXPECT_EQ(changed("act_order: false", "act_order: no"),
            refusal(23, "quantization.act_order: expected true or false, got no"));
  EXPECT_EQ(changed("  lm_head: false", "  lm_head: 4"),
            refusal(24, "quantization.lm_head: expected true or false, got 4"));
  EXPECT_EQ(changed("  bits: 4\n", ""),
            refusal(19, "quantization.bits: expected one of 4, 5, 6, 8, 16, got no such key"));
  EXPECT_EQ(changed("  group: 128\n", ""),
            refusal(19, "quantization.group: expected one of -1, 16, 32, 64, 128, got no such key"));
  for (const char* key : {"symmetric: true", "act_order: false", "lm_head: false"}) {
    const std::string name = std::string(key).substr(0, std::string(key).find(':'));
    EXPECT_EQ(changed("  " + std::string(key) + "\n", ""),
              refusal(19, "quantization." + name + ": expected true or false, got no such key"));
  }
  EXPECT_EQ(
      changed("symmetric: true", "sym: true"),
      refusal(22,
              "quantization.sym: expected one of bits, e4m3, group, symmetric, act_order, minima, block, "
              "lm_head, further, got an "
              "unknown key"));
  EXPECT_EQ(parse_error(kGood + "quantization:\n  bits: 4\n  e4m3: true\n  lm_head: false\n"),
            "4 models/m.yaml: weight_bits: expected 8 for E4M3, got 4");
  EXPECT_EQ(parse_error(kGood + "quantization:\n  bits: 8\n  e4m3: true\n  group: 64\n  lm_head: false\n"),
            refusal(22, "quantization.group: expected one of bits, e4m3, lm_head, got an unknown key"));
  EXPECT_EQ(parse_error(kGood + "quantization: gptq\n"),
            refusal(19, "quantization: expected a map of keys, got gptq"));
}

TEST(ModelConfig, ReadsChunksAndAlibiAndWritesThem) {
  const ModelFacts facts = facts_of(kGood + "chunks: [8192, 0]\nalibi: 8.0\n");
  EXPECT_EQ(show_chunks(facts), "[8192, 0]");
  EXPECT_EQ(first_seen_in_layer(facts, 0, 8191), 0);
  EXPECT_EQ(first_seen_in_layer(facts, 0, 8192), 8192);
  EXPECT_EQ(first_seen_in_layer(facts, 1, 8192), 0);
  const ModelFacts again = facts_of(format_model_config("m", facts, ""));
  EXPECT_EQ(hash_facts(again), hash_facts(facts));
  EXPECT_NE(hash_facts(facts_of(kGood + "chunks: 8192\nalibi: 8.0\n")), hash_facts(facts));
  EXPECT_NE(hash_facts(facts_of(kGood + "chunks: [8192, 0]\n")), hash_facts(facts));
  EXPECT_EQ(parse_error(kGood + "chunks: [40, -1]\n"),
            refusal(19, "chunks: expected 0 or an integer from 1 to 4194304, of each layer, got [40, -1]"));
  EXPECT_EQ(parse_error(kGood + "alibi: 65\n"),
            refusal(19, "alibi: expected a number above 0 and below 64, got 65"));
}

TEST(ModelConfig, RefusesImpossibleWindowsAndBiases) {
  const std::string experts = "experts:\n  count: 8\n  per_token: 2\n  ffn: 192\n  renormalised: true\n";
  const ModelFacts facts = facts_of(kGood + "windows: [40, 0, 7]\n" + experts + "  router_bias: true\n");
  for (int layer = 0; layer < facts.num_layers; ++layer)
    EXPECT_EQ(window_of_layer(facts, layer), (std::array{40, 0, 7})[layer % 3]);
  EXPECT_EQ(facts.router_bias, 1);
  EXPECT_EQ(parse_error(kGood + "windows: [40, -1]\n"),
            refusal(19, "windows: expected 0 or an integer from 1 to 4194304, of each layer, got [40, -1]"));
  EXPECT_EQ(facts_of(kGood + "windows: 40\n").layer_window[1], 40);
  EXPECT_EQ(parse_error(kGood + "windows: a\n"),
            refusal(19, "windows: expected a number of tokens for all layers, or a list of them, got a"));
  EXPECT_NE(parse_error(kGood + experts + "  choice_bias: true\n")
                .find("experts.choice_bias: expected router_bias where scores are a softmax, got it"),
            std::string::npos);
  EXPECT_NE(parse_error(kGood + experts + "  scores: sigmoid\n  router_bias: true\n")
                .find("experts.router_bias: expected choice_bias where scores are sigmoids, got it"),
            std::string::npos);
}

// Shared experts are slices of columns of one network.
TEST(ModelConfig, RefusesSharedExpertsThatDivideGroups) {
  const std::string quantization =
      "quantization:\n  bits: 4\n  group: 128\n  symmetric: true\n  act_order: false\n  lm_head: false\n";
  const auto experts = [](const std::string& width, const std::string& shared) {
    return "experts:\n  count: 8\n  per_token: 2\n  ffn: " + width + "\n  renormalised: true\n" + shared;
  };
  EXPECT_EQ(facts_of(kGood + experts("192", "") + quantization).expert_ffn, 192);
  EXPECT_EQ(facts_of(kGood + experts("192", "  shared: 1\n") + quantization).shared_experts, 1);
  EXPECT_EQ(facts_of(kGood + experts("1408", "  shared: 4\n") + quantization).shared_experts, 4);
  EXPECT_NE(parse_error(kGood + experts("192", "  shared: 2\n") + quantization)
                .find("experts.ffn: expected a multiple of 128, the columns of a group, got 192"),
            std::string::npos);
}

TEST(ModelConfig, RefusesUnknownAndMissingKeys) {
  EXPECT_EQ(
      parse_error(kGood + "dtype: bf16\n"),
      refusal(
          19,
          "dtype: expected one of name, hidden, ffn, num_layers, num_heads, num_kv_heads, head_dim, "
          "vocabulary, tied_lm_head, qkv_bias, o_bias, head_norm, joint_norm, head_norm_last, sinks, norms, "
          "norm_offset, windows, chunks, alibi, norm_bias, ffn_bias, ungated, activation, kv_bits, "
          "max_context, "
          "norm_epsilon, "
          "embedding_scale, "
          "residual_scale, attention_scale, attention_soft_cap, logit_scale, logit_soft_cap, "
          "query_scale_beta, query_scale_context, "
          "experts, quantization, rope, got an unknown key"));
  EXPECT_EQ(parse_error(with(kGood, "ffn: 14336\n", "")),
            refusal(1, "ffn: expected a multiple of 64 from 64 to 262144, got no such key"));
  EXPECT_EQ(parse_error(with(kGood, "name: m", "name: M")),
            refusal(1, "name: expected lower-case letters, digits, '.', '-' and '_', got M"));
}

TEST(ModelConfig, EveryShippedModelLoads) {
  int num_models = 0;
  for (const auto& entry : std::filesystem::directory_iterator(kShippedModels)) {
    if (entry.path().extension() != ".yaml") continue;
    ++num_models;
    EXPECT_EQ(error_of([&] { load_model_config(entry.path()); }), "no error");
  }
  EXPECT_GE(num_models, 5);
}

// Weights of one token: known sizes of the models, so that a mistyped fact is seen.
TEST(ModelConfig, ShippedModelsHaveTheirKnownNumberOfParameters) {
  const auto num_parameters = [](const std::string& name) {
    const ModelFacts f = load_model_config(kShippedModels / (name + ".yaml")).facts;
    const int64_t hidden = f.hidden;
    const int64_t attention = hidden * f.head_dim * (2 * f.num_heads + 2 * f.num_kv_heads);
    const int64_t layer = attention + 3 * hidden * f.ffn + 2 * hidden;
    return f.num_layers * layer + hidden + hidden * f.vocabulary * (f.tied_lm_head ? 1 : 2);
  };
  EXPECT_EQ(num_parameters("llama-3.1-8b"), 8030261248);
  EXPECT_EQ(num_parameters("llama-3.1-70b"), 70553706496);
  EXPECT_EQ(num_parameters("llama-3.2-1b"), 1235814400);
  EXPECT_EQ(num_parameters("llama-3.2-3b"), 3212749824);
  EXPECT_EQ(num_parameters("mistral-7b"), 7248023552);
}

// In memory, as transformers counts them, and of those that a token goes through.
TEST(ModelConfig, ShippedMixturesHaveTheirKnownNumberOfParameters) {
  struct Parameters {
    int64_t all = 0;
    int64_t used = 0;
    bool operator==(const Parameters&) const = default;
  };
  const auto count = [](const std::string& name) {
    const ModelFacts facts = load_model_config(kShippedModels / (name + ".yaml")).facts;
    const Graph graph = build_graph(facts);
    const ModelTables tables = model_tables(facts);
    Parameters parameters;
    graph.for_each_op([&](const GraphOp& op, int /*layer*/) {
      if (op.matrix == kNone) return;
      const GraphMatrix& matrix = graph.matrices[op.matrix];
      const int64_t used = int64_t{matrix.rows} * matrix.columns;
      parameters.used += used;
      parameters.all += used / matrix.experts.chosen * matrix.experts.count;
    });
    const LayerBiases biases = layer_biases(facts);
    const int64_t of_expert =
        int64_t{facts.num_layers} * (biases.num_gate_up + biases.num_down) / std::max(1, facts.num_experts);
    const int64_t others = tables.embedding + tables.norms + tables.head_norms + tables.qkv_biases +
                           facts.num_layers * int64_t{biases.gate_up()} +
                           (facts.expert_bias != 0 ? tables.router_biases : 0);
    return Parameters{parameters.all + others + of_expert * facts.num_experts,
                      parameters.used + others + of_expert * facts.experts_per_token};
  };
  EXPECT_EQ(count("mixtral-8x7b"), (Parameters{46702792704, 12879925248}));
  EXPECT_EQ(count("qwen3-30b-a3b"), (Parameters{30532122624, 3353032704}));
  EXPECT_EQ(count("qwen1.5-moe-a2.7b"), (Parameters{14315784192, 2689173504}));
  EXPECT_EQ(count("glm-4.5-air"), (Parameters{106852245504, 13424123904}));
  EXPECT_EQ(count("olmoe-1b-7b"), (Parameters{6919161856, 1282017280}));
  EXPECT_EQ(count("gpt-oss-20b"), (Parameters{20914757184, 4187440704}));
  EXPECT_EQ(count("gpt-oss-120b"), (Parameters{116829156672, 5711982912}));
}

TEST(ModelConfig, RefusesImpossibleMixesOfIntegers) {
  const std::string mixed = with(kGoodInt4, "  lm_head: false",
                                 "  minima: true\n  block: 256\n  lm_head: false\n  further:\n    bits: 6\n  "
                                 "  group: 16\n    block: 256\n"
                                 "    lm_head: true\n    down: [0, 1]");
  const auto changed = [&](const std::string& from, const std::string& to) {
    return parse_error(with(mixed, from, to));
  };
  EXPECT_EQ(parse_error(mixed), "no error");
  EXPECT_NE(changed("    bits: 6", "    bits: 7").find("expected one of 0, 4, 5, 6, 8, 16, got 7"),
            std::string::npos);
  EXPECT_NE(changed("    bits: 6", "    bits: 16").find("expected 0 for bf16, got 16"), std::string::npos);
  EXPECT_NE(changed("    bits: 6", "    bits: 4").find("expected other integers than the layers have, got 4"),
            std::string::npos);
  EXPECT_NE(changed("    group: 16", "    group: 24").find("expected one of 0, 16, 32, 64, 128, got 24"),
            std::string::npos);
  EXPECT_NE(
      changed("    block: 256\n    lm", "    block: 128\n    lm").find("expected one of 0, 256, got 128"),
      std::string::npos);
  EXPECT_NE(changed("[0, 1]", "[0, 99]").find("expected numbers of layers below"), std::string::npos);
  EXPECT_NE(changed("[0, 1]", "[-1]").find("expected numbers of layers below"), std::string::npos);
  EXPECT_NE(changed("symmetric: true", "symmetric: false").find("expected symmetric weights of 4 bits"),
            std::string::npos);
  EXPECT_NE(changed("    group: 16", "    e2m1: true").find("expected 4 for E2M1, and layers in other bits"),
            std::string::npos);
  EXPECT_NE(changed("    down", "    up").find("got an unknown key"), std::string::npos);
}

TEST(ModelConfig, WrittenFactsAreReadBackBitByBit) {
  for (const auto& folder : {kShippedModels, kShippedModels.parent_path() / "tests" / "models"}) {
    for (const auto& entry : std::filesystem::directory_iterator(folder)) {
      if (entry.path().extension() != ".yaml") continue;
      const ModelConfig config = load_model_config(entry.path());
      const std::string file = "models/" + config.name + ".yaml";
      const std::string text = format_model_config(config.name, config.facts, "Source: a\nfolder.");
      EXPECT_TRUE(text.starts_with("# Source: a\n# folder.\nname: "));
      const ModelConfig again = parse_model_config(StrictYaml::parse(text, file), file);
      EXPECT_EQ(again.name, config.name);
      EXPECT_EQ(hash_facts(again.facts), hash_facts(config.facts)) << text;
    }
  }
  // Doubles that no short decimal number stands for.
  ModelFacts odd = load_model_config(kShippedModels / "llama-3.1-8b.yaml").facts;
  odd.norm_epsilon = 1.0 / 3e5;
  odd.rope_theta = 1e12 / 3;
  odd.rope_factor = 0x1.921fb54442d18p+1;
  odd.rope_low_freq_factor = 1e-300;
  EXPECT_EQ(hash_facts(facts_of(format_model_config("m", odd, ""))), hash_facts(odd));
}

TEST(ModelConfig, ModelsAreNamedAfterTheirFolder) {
  EXPECT_EQ(model_name_of("/models/Llama-3.1-8B"), "llama-3.1-8b");
  EXPECT_EQ(model_name_of("/models/Llama-3.1-8B//"), "llama-3.1-8b");
  EXPECT_EQ(model_name_of("a/./My Model (v2)/x/.."), "my-model--v2-");
  EXPECT_EQ(model_name_of("/hub/models--meta-llama--Llama-3.2-1B/snapshots/0123abc/"), "llama-3.2-1b");
  EXPECT_EQ(model_name_of("/hub/else/snapshots/0123abc"), "0123abc");
  EXPECT_EQ(model_name_of("/models/.hidden"), "hidden");
  EXPECT_EQ(model_name_of("/models/--"), "model");
  EXPECT_EQ(model_name_of("/"), "model");
  EXPECT_EQ(model_name_of("."), model_name_of(std::filesystem::current_path()));
}

TEST(ModelConfig, MissingFileIsNamed) {
  EXPECT_EQ(error_of([] { load_model_config("models/none.yaml"); }),
            "3 models/none.yaml: expected a readable file, got: No such file or directory");
}

}  // namespace
}  // namespace soliton
