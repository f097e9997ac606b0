// The tensors that a model's facts ask for: each one that is missing, of another shape or type, or too many, is named.
#include "runtime/weights/model_tensors.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "change_header.h"
#include "error_of.h"
#include "fused_folder.h"
#include "layout/fact_list.h"
#include "models/hf_config.h"
#include "models/model_config.h"
#include "reference_model.h"
#include "refusals.h"
#include "temporary_folder.h"

namespace soliton {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr uint64_t kSeed = 7;

ModelFacts facts_of(const std::string& name) {
  return load_model_config(fs::path(SOLITON_SOURCE_DIR) / "tests" / "models" / (name + ".yaml")).facts;
}

/// A folder of a model's weights, whose header tests change and whose facts they doubt.
class StoredModel {
 public:
  explicit StoredModel(const std::string& model) : facts(facts_of(model)) {
    write_hf_folder(random_weights(facts, kSeed), facts, folder_.path());
    config_ = HfConfig::open(folder_.path());
  }

  fs::path file() const { return folder_.path() / "model.safetensors"; }
  /// Of a mixture, whose experts are many, those of the last layer.
  std::vector<std::string> names() const {
    const TensorSource source = TensorSource::open(folder_.path());
    const std::string last_layer = in_layer(facts.num_layers - 1, "");
    std::vector<std::string> names;
    for (const std::string_view name : source.names()) {
      if (facts.num_experts == 0 || name.starts_with(last_layer)) names.emplace_back(name);
    }
    return names;
  }
  /// What a model with these facts has.
  void find(const ModelFacts& wanted) const {
    const TensorSource source = TensorSource::open(folder_.path());
    const MixtureNames gpt_oss{
        .router = "mlp.router", .router_bias = "mlp.router.bias", .is_interleaved = true};
    find_tensors(
        source, config_.quantization_or_null(), wanted,
        make_checkpoint(wanted, Projections::kApart, wanted.expert_bias != 0 ? gpt_oss : MixtureNames{}));
  }
  void expect_refused_by(const ModelFacts& wanted, const std::string& message) const {
    expect_error([&] { find(wanted); }, ExitCode::kMismatch, message);
  }
  /// With the header changed, which is put back.
  void expect_refused(const std::string& message, const std::function<void(json&)>& change) const {
    json before;
    change_header(file(), [&](json& header) {
      before = header;
      change(header);
    });
    expect_refused_by(facts, message);
    change_header(file(), [&](json& header) { header = before; });
  }

  const ModelFacts facts;

 private:
  const TemporaryFolder folder_;
  HfConfig config_;
};

TEST(ModelTensors, AreAllThatTheModelHas) {
  for (const char* name : {"micro", "norm64-bias", "int4-bias", "int4-ordered", "int4-mixed",
                           "mixture-shared", "mixture-sinks"}) {
    SCOPED_TRACE(name);
    const StoredModel checkpoint(name);
    checkpoint.find(checkpoint.facts);
  }
}

TEST(ModelTensors, AreNamedIfMissing) {
  for (const char* model : {"norm64-bias", "int4-bias", "int4-ordered", "mixture-shared", "mixture-sinks"}) {
    SCOPED_TRACE(model);
    const StoredModel checkpoint(model);
    for (const std::string& name : checkpoint.names()) {
      if (name.ends_with("g_idx") && checkpoint.facts.weight_order == 0) continue;  // says what is so anyway
      SCOPED_TRACE(name);
      const bool says_how = name.ends_with("qweight");  // without it the layer is none of integers
      const std::string layer = name.substr(0, name.rfind('.'));
      checkpoint.expect_refused((says_how ? layer : name) + ": expected ", [&](json& header) {
        header["elsewhere"] = header[name];
        header.erase(name);
      });
    }
  }
}

TEST(ModelTensors, AreNamedIfOfAnotherShapeOrType) {
  for (const char* model : {"norm64-bias", "int4-ordered", "mixture-shared", "mixture-sinks"}) {
    SCOPED_TRACE(model);
    const StoredModel checkpoint(model);
    for (const std::string& name : checkpoint.names()) {
      SCOPED_TRACE(name);
      checkpoint.expect_refused(name + ": expected ", [&](json& header) {
        json& shape = header[name]["shape"];
        shape.push_back(1);
      });
      checkpoint.expect_refused(name + ": expected ", [&](json& header) {
        const bool is_wide = header[name]["dtype"] == "I32" || header[name]["dtype"] == "F32";
        header[name]["dtype"] = is_wide ? "U32" : "I16";
      });
    }
  }
}

TEST(ModelTensors, AreRefusedInAShortLineWhateverTheirShape) {
  for (const char* model : {"plain", "int4-ordered"}) {
    const StoredModel checkpoint(model);
    const std::string name =
        std::string("model.layers.0.self_attn.q_proj.") + (model[0] == 'p' ? "weight" : "scales");
    change_header(checkpoint.file(), [&](json& header) {
      for (int i = 0; i < 10'000; ++i) header[name]["shape"].push_back(1);
      if (model[0] != 'p') header[name]["dtype"] = "U16";
    });
    const std::string line = error_of([&] { checkpoint.find(checkpoint.facts); });
    EXPECT_NE(line.find(name + ": expected"), std::string::npos) << line;
    EXPECT_LT(line.size(), 400u);
  }
}

TEST(ModelTensors, AreRefusedIfTheConfigIsAnothers) {
  const StoredModel checkpoint("plain");
  const auto expect_refused = [&](int32_t ModelFacts::*fact, int32_t value, const std::string& message) {
    ModelFacts wanted = checkpoint.facts;
    wanted.*fact = value;
    checkpoint.expect_refused_by(wanted, message);
  };
  const ModelFacts& facts = checkpoint.facts;
  expect_refused(
      &ModelFacts::num_layers, facts.num_layers - 1,
      fmt::format("model.layers.{0}.*: expected {0} layers (num_hidden_layers), got tensors of number {1}",
                  facts.num_layers - 1, facts.num_layers));
  checkpoint.expect_refused("model.layers.77.*: expected", [](json& header) {
    header["model.layers.77.x"] = header["model.norm.weight"];
    header.erase("model.norm.weight");
  });
  expect_refused(
      &ModelFacts::num_layers, facts.num_layers + 1,
      fmt::format("model.layers.{}.input_layernorm.weight: expected BF16 [{}], but there is no such tensor",
                  facts.num_layers, facts.hidden));
  expect_refused(&ModelFacts::vocabulary, facts.vocabulary + 1,
                 fmt::format("model.embed_tokens.weight: expected BF16 [{}, {}], got BF16 [{}, {}]",
                             facts.vocabulary + 1, facts.hidden, facts.vocabulary, facts.hidden));
  expect_refused(&ModelFacts::ffn, facts.ffn + 64, "model.layers.0.mlp.gate_proj.weight: expected BF16 [");
  expect_refused(&ModelFacts::num_heads, 2 * facts.num_heads,
                 "model.layers.0.self_attn.q_proj.weight: expected");
  expect_refused(&ModelFacts::qkv_bias, 1, "model.layers.0.self_attn.q_proj.bias: expected");
  expect_refused(&ModelFacts::head_norm, 1, "model.layers.0.self_attn.q_norm.weight: expected");
  expect_refused(&ModelFacts::weight_bits, 4, "model.layers.0.self_attn.q_proj: expected 4-bit weights");
}

TEST(ModelTensors, AreRefusedIfTheConfigIsTooPlain) {
  const StoredModel normed("norm64-bias");
  ModelFacts wanted = normed.facts;
  wanted.head_norm = 0;
  normed.expect_refused_by(wanted, "model.layers.0.self_attn.q_norm.weight: expected no norm of heads");
  wanted = normed.facts;
  wanted.qkv_bias = 0;
  normed.expect_refused_by(wanted, "model.layers.0.self_attn.q_proj: expected no bias");
  const StoredModel ordered("int4-ordered");
  wanted = ordered.facts;
  wanted.weight_order = 0;
  ordered.expect_refused_by(wanted,
                            "expected inputs in natural order, as the config says, got another order");
  wanted = ordered.facts;
  wanted.weight_zeros = 0;
  ordered.expect_refused_by(wanted, "expected zeros of 8, as the config says, got others");
  wanted = ordered.facts;
  wanted.weight_group = 64;
  ordered.expect_refused_by(wanted, "expected groups of 64 inputs, as the config says, got 32");
  wanted = ordered.facts;
  wanted.lm_head_bits = 16;
  ordered.expect_refused_by(wanted, "lm_head: expected 16-bit weights, as the config says, got others");
}

TEST(ModelTensors, OfSeveralLinearLayersAreNamed) {
  const ModelFacts facts = facts_of("micro");
  const TemporaryFolder folder;
  write_hf_folder(random_weights(facts, kSeed), facts, folder.path());
  fuse_projections(folder.path());
  const HfConfig config = HfConfig::open(folder.path());
  const auto find = [&] {
    const TensorSource source = TensorSource::open(folder.path());
    const ModelTensors tensors = find_tensors(source, nullptr, facts, config.checkpoint);
    const std::vector<LinearTensors>& qkv = tensors.matrices[0].at(0);
    ASSERT_EQ(qkv.size(), 3u);
    EXPECT_EQ(qkv[1].first, qkv[0].rows);
    EXPECT_EQ(qkv[2].first, qkv[0].rows + qkv[1].rows);
  };
  find();
  const std::string name = in_layer(0, "self_attn.qkv_proj.weight");
  change_header(folder.path() / "model.safetensors", [&](json& header) {
    header["elsewhere"] = header[name];
    header.erase(name);
  });
  expect_error(find, ExitCode::kMismatch, name + ": expected ");
}

TEST(ModelTensors, OfGranite4AreNamed) {
  const ModelFacts facts = facts_of("scaled");
  const TemporaryFolder folder;
  write_hf_folder(random_weights(facts, kSeed), facts, folder.path());
  fuse_granite(folder.path());
  const HfConfig config = HfConfig::open(folder.path());
  EXPECT_EQ(hash_facts(config.facts), hash_facts(facts));
  const auto find = [&] {
    return find_tensors(TensorSource::open(folder.path()), nullptr, facts, config.checkpoint);
  };
  EXPECT_EQ(find().matrices[2].at(0).at(1).first, facts.ffn);
  const int last = facts.num_layers - 1;
  const auto refused = [&](const std::string& name, const std::vector<int64_t>& shape) {
    json before;
    change_header(folder.path() / "model.safetensors", [&](json& header) {
      before = header;
      header[name]["shape"] = shape;
    });
    expect_error(find, ExitCode::kMismatch, fmt::format("{}: expected BF16 [", name));
    change_header(folder.path() / "model.safetensors", [&](json& header) { header = before; });
  };
  const std::string input = in_layer(last, "shared_mlp.input_linear.weight");
  refused(input, {facts.ffn, 2 * facts.hidden});
  refused(input, {2, facts.ffn, facts.hidden});
  refused(in_layer(last, "shared_mlp.output_linear.weight"), {facts.ffn, facts.hidden});
  change_header(folder.path() / "model.safetensors", [&](json& header) {
    header["elsewhere"] = header[input];
    header.erase(input);
  });
  expect_error(find, ExitCode::kMismatch, input + ": expected ");
}

// As GLM's checkpoints have it behind the last layer.
TEST(ModelTensors, OfALayerThatPredictsFurtherTokensAreNotRead) {
  const ModelFacts facts = facts_of("plain");
  const TemporaryFolder folder;
  write_hf_folder(random_weights(facts, kSeed), facts, folder.path());
  change_header(folder.path() / "model.safetensors", [&](json& header) {
    for (const char* name : {"eh_proj.weight", "enorm.weight"}) {
      header[in_layer(facts.num_layers, name)] = {
          {"dtype", "BF16"}, {"shape", {0}}, {"data_offsets", {0, 0}}};
    }
  });
  const TensorSource source = TensorSource::open(folder.path());
  Checkpoint checkpoint = make_checkpoint(facts, Projections::kApart);
  const auto find = [&] { return find_tensors(source, nullptr, facts, checkpoint); };
  const std::string layer = in_layer(facts.num_layers, "*");
  expect_error(find, ExitCode::kMismatch, layer + ": expected ");
  checkpoint.further_layers = 1;
  EXPECT_EQ(find().remarks, std::vector{layer + ": not read: a layer that predicts tokens beyond the next"});
}

TEST(ModelTensors, BiasesOfScoresAreFinite) {
  const ModelFacts facts = facts_of("int4-sigmoid");
  ReferenceWeights weights = random_weights(facts, kSeed);
  weights.layers[1].router_bias[3] = 0x7fc0;
  const TemporaryFolder folder;
  write_hf_folder(weights, facts, folder.path());
  const HfConfig config = HfConfig::open(folder.path());
  const TensorSource source = TensorSource::open(folder.path());
  expect_error(
      [&] { find_tensors(source, config.quantization_or_null(), facts, config.checkpoint); },
      ExitCode::kMismatch,
      "model.layers.1.mlp.gate.e_score_correction_bias: expected finite numbers, got NaN or infinity");
}

TEST(ModelTensors, OfAllExpertsAreNamed) {
  const ModelFacts facts = facts_of("mixture-shared");
  const TemporaryFolder folder;
  write_hf_folder(random_weights(facts, kSeed), facts, folder.path());
  fuse_experts(folder.path());
  const auto find = [&](const MixtureNames& names) {
    const TensorSource source = TensorSource::open(folder.path());
    const Checkpoint checkpoint = make_checkpoint(facts, Projections::kApart, names);
    const ModelTensors tensors = find_tensors(source, nullptr, facts, checkpoint);
    const std::vector<LinearTensors>& gate_up =
        tensors.matrices[facts.layer_ffn[0] == kMixture ? 3 : 7].at(1);
    ASSERT_EQ(gate_up.size(), 2u * (facts.num_experts + facts.shared_experts));
    EXPECT_EQ(gate_up[3].first, 3 * facts.expert_ffn);
    EXPECT_TRUE(gate_up[3].floats.is_same(gate_up[0].floats));
  };
  find({});
  find(
      {.router = "block_sparse_moe.gate", .experts = "block_sparse_moe.experts"});  // which version 5 renames
  // Older ones have inputs before outputs.
  const std::string name = in_layer(1, "mlp.experts.gate_up_proj");
  change_header(folder.path() / "model.safetensors",
                [&](json& header) { std::swap(header[name]["shape"][1], header[name]["shape"][2]); });
  expect_error([&] { find({}); }, ExitCode::kMismatch,
               name + ": expected BF16 [9, 384, 128], got BF16 [9, 128, 384]");
}

TEST(ModelTensors, SayThatAFileWasCutShort) {
  const StoredModel checkpoint("int4-ordered");
  const TensorSource source = TensorSource::open(checkpoint.file());
  const HfConfig config = HfConfig::open(checkpoint.file().parent_path());
  fs::resize_file(checkpoint.file(), 100);
  expect_error(
      [&] { find_tensors(source, config.quantization_or_null(), checkpoint.facts, config.checkpoint); },
      ExitCode::kBadFile, "model.safetensors: cut short while it was read");
}

}  // namespace
}  // namespace soliton
