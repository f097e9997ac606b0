// The one check of facts: every fact has a limit, and both readers' files are refused by the same.
#include "models/check.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <fstream>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>

#include "error_of.h"
#include "layout/fact_list.h"
#include "models/hf_config.h"
#include "models/limits.h"
#include "models/model_config.h"

namespace soliton {
namespace {

using nlohmann::json;

const std::filesystem::path kModels = std::filesystem::path(SOLITON_SOURCE_DIR) / "models";

/// Facts to which every rule applies.
ModelFacts good_facts() {
  ModelFacts facts = load_model_config(kModels / "llama-3.1-8b-gptq.yaml").facts;
  facts.rope_kind = RopeKind::kYarn;
  return facts;
}

std::string refusal_of(const ModelFacts& facts) {
  return error_of(
      [&] { check({.file = "config.json", .unsupported = ExitCode::kMismatch, .facts = facts}); });
}

TEST(Check, TakesTheFactsOfShippedModels) {
  EXPECT_EQ(refusal_of(good_facts()), "no error");
}

TEST(Check, EveryFactHasALimit) {
  ModelFacts facts = good_facts();
  int num_facts = 0;
  for_each_fact(facts, [&](const char* name, auto& value) {
    using Value = std::decay_t<decltype(value)>;
    if constexpr (!std::is_enum_v<Value>) {
      ++num_facts;
      std::string key = name;
      if (key.starts_with("rope_")) key[4] = '.';
      const Value good = value;
      for (const Value bad : {std::numeric_limits<Value>::max(), std::numeric_limits<Value>::lowest()}) {
        value = bad;
        const std::string refusal = refusal_of(facts);
        EXPECT_NE(refusal.find(" config.json: " + key + ": expected "), std::string::npos) << refusal;
        EXPECT_TRUE(refusal.ends_with(fmt::format(", got {}", bad))) << refusal;
      }
      value = good;
    }
  });
  EXPECT_EQ(num_facts, 28);
  EXPECT_EQ(refusal_of(facts), "no error");
}

TEST(Check, TellsWhatCannotBeFromWhatIsNotSupported) {
  ModelFacts facts = good_facts();
  facts.ffn = 14337;
  EXPECT_EQ(refusal_of(facts), "5 config.json: ffn: expected a multiple of 64 from 64 to 262144, got 14337");
  facts.ffn = 1 << 20;
  EXPECT_EQ(refusal_of(facts),
            "4 config.json: ffn: expected a multiple of 64 from 64 to 262144, got 1048576");
  facts = good_facts();
  facts.head_dim = 80;
  EXPECT_EQ(refusal_of(facts), "5 config.json: head_dim: expected one of 64, 96, 128, 256, got 80");
  EXPECT_EQ(error_of([&] { check({.file = "m.yaml", .facts = facts}); }),
            "4 m.yaml: head_dim: expected one of 64, 96, 128, 256, got 80");
  facts = good_facts();
  facts.norm_epsilon = std::numeric_limits<double>::quiet_NaN();
  EXPECT_EQ(refusal_of(facts),
            "4 config.json: norm_epsilon: expected a number above 0 and below 0.1, got nan");
  facts = good_facts();
  facts.rope_theta = 1;
  EXPECT_EQ(refusal_of(facts),
            "4 config.json: rope.theta: expected a number above 1 and below 1000000000000, got 1");
}

TEST(Check, FactsMustGoTogether) {
  ModelFacts facts = good_facts();
  facts.num_kv_heads = 5;
  EXPECT_EQ(refusal_of(facts), "4 config.json: num_kv_heads: expected a divisor of num_heads = 32, got 5");
  facts = good_facts();
  facts.head_dim = 96;
  EXPECT_EQ(refusal_of(facts), "no error");
  facts.head_norm = 1;
  EXPECT_EQ(refusal_of(facts),
            "5 config.json: head_dim: expected 64, 128 or 256 where heads are normed, got 96");
  facts = good_facts();
  facts.rope_beta_slow = 32;
  EXPECT_EQ(refusal_of(facts),
            "4 config.json: rope.beta_fast: expected a number above beta_slow = 32, got 32");
  facts.rope_kind = RopeKind::kLlama3;
  EXPECT_EQ(refusal_of(facts), "no error") << "no business of this kind";
  facts.rope_high_freq_factor = facts.rope_low_freq_factor;
  EXPECT_EQ(refusal_of(facts),
            "4 config.json: rope.high_freq_factor: expected a number above low_freq_factor = 1, got 1");
}

TEST(Check, NamesThePlaceThatWasStatedLast) {
  StatedFacts stated = {.file = "config.json", .facts = good_facts()};
  stated.state(&ModelFacts::num_layers, int64_t{1} << 40,
               {.file = "config.json", .key = "num_hidden_layers", .got = "1099511627776"});
  EXPECT_EQ(error_of([&] { check(stated); }),
            "4 config.json: num_hidden_layers: expected an integer from 1 to 1024, got 1099511627776");
  stated.state(&ModelFacts::num_layers, 0, {.file = "m.yaml:4", .key = "num_layers", .got = "0"});
  EXPECT_EQ(error_of([&] { check(stated); }),
            "4 m.yaml:4: num_layers: expected an integer from 1 to 1024, got 0");
  stated.state(&ModelFacts::num_layers, 4, {.file = "m.yaml:4", .key = "num_layers", .got = "4"});
  EXPECT_EQ(error_of([&] { check(stated); }), "no error");
}

/// A model of every kind of fact, but for those of other kinds of RoPE.
// What norms behind blocks, and scales of what blocks give, do not go with.
TEST(Check, BlocksMustBeSuchAsKernelsCanEnd) {
  ModelFacts facts = good_facts();
  facts.norms = static_cast<int32_t>(NormPlacement::kAround);
  EXPECT_EQ(refusal_of(facts), "no error");
  facts.residual_scale = 0.5;
  EXPECT_EQ(refusal_of(facts),
            "5 config.json: residual_scale: expected 1 where norms follow blocks, got 0.5");
  facts.norms = 0;
  EXPECT_EQ(refusal_of(facts), "no error");
  facts.o_bias = 1;
  EXPECT_EQ(refusal_of(facts),
            "5 config.json: residual_scale: expected 1 where outputs of blocks have biases, got 0.5");
  facts = good_facts();
  facts.norms = static_cast<int32_t>(NormPlacement::kAfter);
  facts.weight_bits = 4;
  facts.weight_group = 128;
  EXPECT_EQ(refusal_of(facts), "no error");
  facts.weight_order = 1;
  EXPECT_EQ(refusal_of(facts),
            "5 config.json: weight_order: expected inputs in natural order where norms follow blocks, got 1");
  facts.norms = 5;
  EXPECT_EQ(refusal_of(facts),
            "5 config.json: norms: expected \"before\" or \"around\" or \"after\" or \"parallel\" or "
            "\"centred\", got 5");
}

TEST(Check, NetworksWithoutAGateAreOfOneNumber) {
  ModelFacts facts = good_facts();
  facts.ungated = 1;
  EXPECT_EQ(refusal_of(facts), "no error");
  facts.weight_order = 1;
  EXPECT_EQ(refusal_of(facts),
            "5 config.json: weight_order: expected inputs in natural order without a gate, got 1");
  facts.weight_order = 0;
  facts.activation = static_cast<int32_t>(Activation::kClampedSwiglu);
  EXPECT_EQ(refusal_of(facts),
            "5 config.json: activation: expected a function of one number without a gate, got 2");
}

TEST(Check, BiasesOfNormsNeedLayerNormsAndFloats) {
  ModelFacts facts = good_facts();
  facts.norm_bias = 1;
  EXPECT_EQ(refusal_of(facts),
            "5 config.json: norm_bias: expected false where norms are no LayerNorms, got 1");
  facts.norms = static_cast<int32_t>(NormPlacement::kCentred);
  EXPECT_EQ(refusal_of(facts), "5 config.json: weight_bits: expected 16 where norms have biases, got 4");
}

TEST(Check, BiasesOfNetworksAreThoseOfAllLayersAlike) {
  ModelFacts facts = good_facts();
  facts.ffn_bias = 1;
  EXPECT_EQ(refusal_of(facts), "no error");
  facts.residual_scale = 0.5;
  EXPECT_EQ(refusal_of(facts),
            "5 config.json: residual_scale: expected 1 where outputs of blocks have biases, got 0.5");
  facts.residual_scale = 1;
  facts.layer_ffn[0] = facts.ffn;
  for (int layer = 1; layer < facts.num_layers; ++layer) facts.layer_ffn[layer] = facts.ffn / 2;
  EXPECT_EQ(refusal_of(facts).substr(0, 87),
            "5 config.json: ffn: expected one for all layers where feed-forward networks have biases");
}

TEST(Check, RotationsOfLayersMustBeThere) {
  ModelFacts facts = good_facts();
  facts.layer_rope[1] = kNoRope;
  EXPECT_EQ(refusal_of(facts), "no error");
  facts.layer_rope[0] = kLocalRope;
  EXPECT_TRUE(refusal_of(facts).starts_with(
      "4 config.json: rope.layers: expected no layer with a theta of its own, got [1, 2, 0"));
  facts.rope_local_theta = 10000;
  EXPECT_EQ(refusal_of(facts), "no error");
  facts.layer_rope[0] = kMainRope;
  EXPECT_EQ(
      refusal_of(facts),
      "4 config.json: rope.local_theta: expected nothing where no layer has a theta of its own, got 10000");
  facts = good_facts();
  facts.layer_rope[facts.num_layers] = kNoRope;
  EXPECT_TRUE(refusal_of(facts).starts_with("4 config.json: rope.layers: expected 0 to 2, of each layer"));
}

TEST(Check, ScalesOfQueriesAndWeightsBehindTheRotationHaveTheirPlaces) {
  ModelFacts facts = good_facts();
  facts.query_scale_beta = 0.5;
  EXPECT_EQ(refusal_of(facts),
            "4 config.json: query_scale_context: expected an integer from 1 to 4194304, got 0");
  facts.query_scale_context = 8;
  EXPECT_EQ(refusal_of(facts), "no error");
  facts.head_norm = 1;
  EXPECT_NE(refusal_of(facts), "no error");
  facts.head_norm = 0;
  facts.layer_rope[1] = kNoRope;
  EXPECT_EQ(refusal_of(facts),
            "5 config.json: query_scale_beta: expected 0 where heads are normed, or layers not all "
            "rotated alike, got 0.5");
  facts = good_facts();
  facts.head_norm_last = 1;
  EXPECT_EQ(refusal_of(facts),
            "4 config.json: head_norm_last: expected false where heads are not normed each by itself, got 1");
  facts = good_facts();
  facts.rope_kind = RopeKind::kLongrope;
  EXPECT_EQ(refusal_of(facts),
            "4 config.json: rope.short_factors: expected 64 numbers from 0.001 to 1000000, got nothing");
}

constexpr const char* kRichConfig = R"({
  "architectures": ["Qwen2ForCausalLM"], "hidden_size": 512, "intermediate_size": 1024, "num_hidden_layers": 6,
  "num_attention_heads": 8, "num_key_value_heads": 2, "vocab_size": 2048, "max_position_embeddings": 4096,
  "rope_parameters": {"rope_type": "yarn", "rope_theta": 10000.0, "factor": 4.0, "beta_fast": 16},
  "quantization_config": {"quant_method": "gptq", "bits": 4, "group_size": 64, "sym": false, "desc_act": true}})";

// Also those that it leaves out.
TEST(CheckSame, NamesEveryFactAsTheFileDoes) {
  const TemporaryFolder folder;
  const std::string file = folder.write("config.json", kRichConfig);
  const StatedFacts stated = HfConfig::open(folder.path()).stated;
  const std::map<std::string, std::string> complaints = {
      {"hidden", "hidden_size: expected 513 (kernel of x), got 512"},
      {"ffn", "intermediate_size: expected 1025 (kernel of x), got 1024"},
      {"num_layers", "num_hidden_layers: expected 7 (kernel of x), got 6"},
      {"num_heads", "num_attention_heads: expected 9 (kernel of x), got 8"},
      {"num_kv_heads", "num_key_value_heads: expected 3 (kernel of x), got 2"},
      {"head_dim", "head_dim: expected 65 (kernel of x), got 64"},
      {"vocabulary", "vocab_size: expected 2049 (kernel of x), got 2048"},
      {"tied_lm_head", "tie_word_embeddings: expected true (kernel of x), got false"},
      {"qkv_bias", "architectures: biases of q, k and v: expected false (kernel of x), got true"},
      {"head_norm", "architectures: norms of heads: expected true (kernel of x), got false"},
      {"activation", "hidden_act: expected gelu_pytorch_tanh (kernel of x), got silu"},
      {"max_context",
       "max_position_embeddings: expected 16385 (kernel of x), got 4096, stretched to 16384 by "
       "rope_parameters.factor"},
      {"rope_original_context",
       "rope_parameters.original_max_position_embeddings: expected 4097 (kernel of x), got 4096"},
      {"rope_truncate", "rope_parameters.truncate: expected false (kernel of x), got true"},
      {"weight_bits", "quantization_config: bits: expected 5 (kernel of x), got 4"},
      {"weight_group", "quantization_config: group size: expected 65 (kernel of x), got 64"},
      {"weight_zeros", "quantization_config: zeros: expected false (kernel of x), got true"},
      {"weight_order", "quantization_config: act-order: expected false (kernel of x), got true"},
      {"lm_head_bits", "quantization_config: bits of lm_head: expected 17 (kernel of x), got 16"},
      {"norm_epsilon", "rms_norm_eps: expected 1.000001 (kernel of x), got 1e-06"},
      {"rope_theta", "rope_parameters.rope_theta: expected 10001 (kernel of x), got 10000.0"},
      {"rope_factor", "rope_parameters.factor: expected 5 (kernel of x), got 4.0"},
      {"rope_beta_fast", "rope_parameters.beta_fast: expected 17 (kernel of x), got 16"},
      {"rope_beta_slow", "rope_parameters.beta_slow: expected 2 (kernel of x), got 1"},
      {"rope_kind", "rope_parameters.rope_type: expected linear (kernel of x), got yarn"}};
  ModelFacts expected = stated.facts;
  for_each_fact(expected, [&](const char* name, auto& value) {
    const auto complaint = complaints.find(name);
    const auto before = value;
    if constexpr (std::is_enum_v<std::decay_t<decltype(value)>>) {
      value = RopeKind::kLinear;
    } else {
      const bool is_set = complaint != complaints.end() && complaint->second.ends_with("got true");
      value = is_set ? 0 : value + 1;
    }
    const std::string refusal = error_of([&] { check_same(stated, expected, "kernel of x"); });
    value = before;
    if (std::string_view(name) == "kv_bits") {
      EXPECT_EQ(refusal, "no error");
    } else if (complaint != complaints.end()) {
      EXPECT_EQ(refusal, "5 " + file + ": " + complaint->second);
    }
  });
  EXPECT_EQ(error_of([&] { check_same(stated, expected, "kernel of x"); }), "no error");
}

TEST(CheckSame, NamesWhatNoMemberSays) {
  const TemporaryFolder folder;
  json config = json::parse(kRichConfig);
  const auto refusal_by = [&](auto ModelFacts::*fact, auto value) {
    const std::string file = folder.write("config.json", config.dump());
    const StatedFacts stated = HfConfig::open(folder.path()).stated;
    ModelFacts expected = stated.facts;
    expected.*fact = value;
    return error_of([&] { check_same(stated, expected, "kernel of x"); }).substr(file.size() + 4);
  };
  config.erase("quantization_config");
  EXPECT_EQ(refusal_by(&ModelFacts::weight_bits, 4),
            "quantization_config: bits: expected 4 (kernel of x), got 16");
  config.erase("rope_parameters");
  EXPECT_EQ(refusal_by(&ModelFacts::rope_kind, RopeKind::kLlama3),
            "rope_scaling: expected llama3 (kernel of x), got default");
  folder.write("quantize_config.json", R"({"bits": 4, "group_size": 32, "sym": true, "desc_act": false})");
  const StatedFacts stated = HfConfig::open(folder.path()).stated;
  EXPECT_EQ(stated.place(&ModelFacts::weight_group).file, folder.path() / "quantize_config.json");
}

/// What follows the key in the refusal of a file with this one change.
std::string complaint(const std::string& refusal) {
  return refusal.substr(std::min(refusal.size(), refusal.rfind(": ")));
}

// The same value in either file: each names its own key, and both say the same of it.
TEST(Check, ReadersShareItsLimits) {
  const TemporaryFolder folder;
  std::ifstream yaml_stream(kModels / "llama-3.1-8b.yaml");
  const std::string yaml{std::istreambuf_iterator<char>(yaml_stream), {}};
  const json config = json::parse(std::ifstream(kModels / "tiny-stories" / "config.json"));
  const auto of_yaml = [&](const std::string& key, const json& value) {
    std::istringstream lines(yaml);
    std::string changed;
    for (std::string line; std::getline(lines, line);) {
      const size_t start = line.find_first_not_of(' ');
      if (start != std::string::npos && line.substr(start).starts_with(key + ":")) {
        line = std::string(start, ' ') + key + ": " + value.dump();
      }
      changed += line + "\n";
    }
    return error_of([&] { load_model_config(folder.write("llama-3.1-8b.yaml", changed)); });
  };
  const auto of_json = [&](const json& pointer, const json& value) {
    json changed = config;
    changed[json::json_pointer("/" + pointer.get<std::string>())] = value;
    folder.write("config.json", changed.dump());
    return error_of([&] { HfConfig::open(folder.path()); });
  };
  EXPECT_EQ(of_yaml("hidden", 4096), "no error");
  EXPECT_EQ(of_json("hidden_size", 4096), "no error");
  const std::tuple<const char*, const char*, std::vector<json>> facts[] = {
      {"hidden", "hidden_size", {0, 65600, 4097}},
      {"ffn", "intermediate_size", {0, 262208, 100}},
      {"num_layers", "num_hidden_layers", {0, 1025, 5000}},
      {"num_heads", "num_attention_heads", {0, 1025}},
      {"num_kv_heads", "num_key_value_heads", {0, 1025}},
      {"head_dim", "head_dim", {0, 80, 512}},
      {"vocabulary", "vocab_size", {0, 16777217}},
      {"max_context", "max_position_embeddings", {0, 4194305, 20000000}},
      {"norm_epsilon", "rms_norm_eps", {0, 0.1, 1.5}},
      {"theta", "rope_theta", {1, 2000000000000}},
      {"factor", "rope_scaling/factor", {0.5, 1025}},
      {"low_freq_factor", "rope_scaling/low_freq_factor", {0, 1024}},
      {"high_freq_factor", "rope_scaling/high_freq_factor", {0, 1024}},
      {"original_context", "rope_scaling/original_max_position_embeddings", {0, 4194305}},
  };
  for (const auto& [yaml_key, json_key, values] : facts) {
    for (const json& value : values) {
      const std::string refusal = of_yaml(yaml_key, value);
      EXPECT_TRUE(refusal.starts_with("4 ")) << yaml_key << " " << value << ": " << refusal;
      EXPECT_EQ(complaint(of_json(json_key, value)), complaint(refusal));
    }
  }
}

}  // namespace
}  // namespace soliton
