// QuantizationConfig: the three dialects, two files of one folder, and every reason to refuse one.
#include "models/quantization_config.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "refusals.h"
#include "temporary_folder.h"

namespace soliton {
namespace {

using nlohmann::json;
using Method = QuantizationMethod;

json gptq() {
  return json::parse(R"({"quant_method": "gptq", "bits": 4, "group_size": 128, "sym": true, "desc_act": true,
    "lm_head": false, "checkpoint_format": "gptq", "pack_dtype": "int32", "dynamic": {}, "damp_percent": 0.1,
    "static_groups": false, "true_sequential": true, "meta": {"quantizer": ["gptqmodel:2.2.0"]}})");
}

json awq() {
  return json::parse(R"({"quant_method": "awq", "bits": 4, "group_size": 64, "zero_point": true,
    "version": "gemm", "backend": "autoawq", "modules_to_not_convert": null})");
}

json compressed_tensors() {
  return json::parse(
      R"({"quant_method": "compressed-tensors", "format": "pack-quantized", "ignore": ["lm_head"],
    "quantization_status": "compressed", "kv_cache_scheme": null, "sparsity_config": {}, "transform_config": {},
    "config_groups": {"group_0": {"targets": ["Linear"], "input_activations": null, "output_activations": null,
      "format": null, "weights": {"num_bits": 4, "type": "int", "symmetric": true, "strategy": "group",
        "group_size": 128, "actorder": "group", "dynamic": false, "block_structure": null}}}})");
}

/// As Qwen3 and DeepSeek are published.
json fp8() {
  return json::parse(R"({"quant_method": "fp8", "fmt": "e4m3", "activation_scheme": "dynamic",
    "weight_block_size": [128, 128], "modules_to_not_convert": ["lm_head", "model.layers.0.input_layernorm"]})");
}

/// compressed-tensors of floats.
json float_tensors() {
  return json::parse(
      R"({"quant_method": "compressed-tensors", "format": "float-quantized", "ignore": ["lm_head"],
    "quantization_status": "compressed", "kv_cache_scheme": {"num_bits": 8, "type": "float"},
    "config_groups": {"group_0": {"targets": ["Linear"], "output_activations": null,
      "input_activations": {"num_bits": 8, "type": "float", "strategy": "token", "dynamic": true},
      "weights": {"num_bits": 8, "type": "float", "symmetric": true, "strategy": "channel", "dynamic": false}}}})");
}

json modelopt() {
  return {{"quant_method", "modelopt"}, {"quant_algo", "FP8"}, {"ignore", {"lm_head"}}};
}

/// compressed-tensors of 4 bits: NVFP4, or MXFP4.
json e2m1_tensors(bool is_nvfp4) {
  const json weights = {{"num_bits", 4},
                        {"type", "float"},
                        {"symmetric", true},
                        {"dynamic", false},
                        {"strategy", is_nvfp4 ? "tensor_group" : "group"},
                        {"group_size", is_nvfp4 ? 16 : 32}};
  const json group = {
      {"targets", {"Linear"}}, {"weights", weights}, {"input_activations", {{"num_bits", 4}}}};
  return {{"quant_method", "compressed-tensors"},
          {"format", is_nvfp4 ? "nvfp4-pack-quantized" : "mxfp4-pack-quantized"},
          {"quantization_status", "compressed"},
          {"kv_cache_scheme", {{"num_bits", 8}}},
          {"ignore", {"lm_head", R"(re:.*\.3\.)", "model.layers.1.mlp.down_proj"}},
          {"config_groups", {{"group_0", group}}}};
}
json quark() {
  const json weight = {{"dtype", "fp4"},
                       {"qscheme", "per_group"},
                       {"group_size", 32},
                       {"scale_format", "e8m0"},
                       {"is_dynamic", false}};
  return {{"quant_method", "quark"},
          {"exclude", {"lm_head", "*.3.*", "model.layers.?.mlp.down_proj"}},
          {"export", {{"weight_format", "real_quantized"}, {"pack_method", "reorder"}}},
          {"layer_quant_config", {{"*v_proj", {{"weight", weight}, {"output_tensors", {{"dtype", "fp8"}}}}}}},
          {"global_quant_config", {{"weight", weight}, {"input_tensors", weight}}}};
}

/// A patch of the weights of compressed-tensors.
json weights(const json& patch) {
  return {{"config_groups", {{"group_0", {{"weights", patch}}}}}};
}

class QuantizationConfigTest : public testing::Test {
 protected:
  static json patched(json base, const json& patch) {
    base.merge_patch(patch);
    return base;
  }
  std::optional<QuantizationConfig> read_root(const json& root) {
    return QuantizationConfig::read(JsonView(root, name_), folder_.path());
  }
  QuantizationConfig read(const json& config) { return read_root({{"quantization_config", config}}).value(); }
  void refused(const json& base, const json& patch, ExitCode code, const std::string& message) {
    expect_refused([&] { read(patched(base, patch)); }, code, name_ + ": quantization_config." + message);
  }
  void unsupported(const json& base, const json& patch, const std::string& message) {
    refused(base, patch, ExitCode::kMismatch, message);
  }
  void malformed(const json& base, const json& patch, const std::string& message) {
    refused(base, patch, ExitCode::kBadFile, message);
  }
  void second_refused(const json& first, const std::string& second, ExitCode code,
                      const std::string& message) {
    const std::string path = folder_.write("quantize_config.json", second);
    expect_refused([&] { read_root({{"quantization_config", first}}); }, code, path + ": " + message);
  }

  const TemporaryFolder folder_;
  const std::string name_ = (folder_.path() / "config.json").string();
};

TEST_F(QuantizationConfigTest, NothingIsUnquantised) {
  EXPECT_FALSE(read_root(json::object()));
  EXPECT_FALSE(read_root({{"quantization_config", nullptr}}));
}

TEST_F(QuantizationConfigTest, ReadsGptq) {
  const QuantizationConfig config = read(gptq());
  EXPECT_EQ(config.method, Method::kGptq);
  EXPECT_EQ(config.bits, 4);
  EXPECT_EQ(config.group_size, 128);
  EXPECT_TRUE(config.symmetric);
  EXPECT_TRUE(config.act_order);
  EXPECT_FALSE(config.lm_head);
  EXPECT_EQ(config.zeros, ZeroFormat::kV1);
  EXPECT_EQ(config.file, name_);

  const QuantizationConfig other = read(patched(gptq(), {{"group_size", -1},
                                                         {"sym", false},
                                                         {"desc_act", false},
                                                         {"lm_head", true},
                                                         {"checkpoint_format", "gptq_v2"}}));
  EXPECT_EQ(other.group_size, -1);
  EXPECT_FALSE(other.symmetric);
  EXPECT_FALSE(other.act_order);
  EXPECT_TRUE(other.lm_head);
  EXPECT_EQ(other.zeros, ZeroFormat::kV2);
  EXPECT_EQ(read(patched(gptq(), {{"checkpoint_format", nullptr}, {"format", "gptq_v2"}})).zeros,
            ZeroFormat::kV2);
}

TEST_F(QuantizationConfigTest, AbsentMembersOfGptqTakeItsDefaults) {
  const QuantizationConfig config = read({{"quant_method", "gptq"}, {"bits", 4}, {"group_size", 32}});
  EXPECT_TRUE(config.symmetric);
  EXPECT_FALSE(config.act_order);
  EXPECT_FALSE(config.lm_head);
  EXPECT_EQ(config.zeros, ZeroFormat::kV1);
}

TEST_F(QuantizationConfigTest, ReadsAwq) {
  const QuantizationConfig config = read(awq());
  EXPECT_EQ(config.method, Method::kAwq);
  EXPECT_EQ(config.group_size, 64);
  EXPECT_FALSE(config.symmetric);
  EXPECT_FALSE(config.act_order);
  EXPECT_EQ(config.zeros, ZeroFormat::kV2);
  EXPECT_TRUE(read(patched(awq(), {{"zero_point", false}, {"version", "GEMM"}})).symmetric);
  EXPECT_FALSE(read(patched(awq(), {{"zero_point", nullptr}, {"version", nullptr}})).symmetric);
}

TEST_F(QuantizationConfigTest, ReadsCompressedTensors) {
  const QuantizationConfig config = read(compressed_tensors());
  EXPECT_EQ(config.method, Method::kCompressedTensors);
  EXPECT_EQ(config.bits, 4);
  EXPECT_EQ(config.group_size, 128);
  EXPECT_TRUE(config.symmetric);
  EXPECT_TRUE(config.act_order);
  EXPECT_FALSE(config.lm_head);
  EXPECT_EQ(config.zeros, ZeroFormat::kV2);

  const auto with = [&](const json& patch) { return read(patched(compressed_tensors(), weights(patch))); };
  EXPECT_EQ(with({{"strategy", "channel"}, {"group_size", nullptr}}).group_size, -1);
  EXPECT_EQ(with({{"strategy", "channel"}, {"group_size", -1}}).group_size, -1);
  EXPECT_EQ(with({{"strategy", nullptr}, {"group_size", -1}}).group_size, -1);
  EXPECT_EQ(with({{"strategy", nullptr}, {"group_size", 32}}).group_size, 32);
  EXPECT_FALSE(with({{"symmetric", false}}).symmetric);
  EXPECT_TRUE(with({{"actorder", "dynamic"}}).act_order);
  for (const json& natural : {json("static"), json("weight"), json()}) {
    EXPECT_FALSE(with({{"actorder", natural}}).act_order) << natural;
  }
  EXPECT_TRUE(read(patched(compressed_tensors(), {{"ignore", json::array()}})).lm_head);
  EXPECT_FALSE(read(patched(compressed_tensors(), {{"ignore", {"re:.*lm_head"}}})).lm_head);
}

// Scales of inputs, and of a cache, are for those who round these. modelopt may have a file of its own.
TEST_F(QuantizationConfigTest, ReadsFp8WhoeverWroteIt) {
  const json tensor = weights({{"strategy", "tensor"}});
  json blocks = weights({{"strategy", "block"}, {"block_structure", {128, 128}}});
  for (const json& config : {fp8(), patched(fp8(), {{"weight_block_size", nullptr}}), float_tensors(),
                             patched(float_tensors(), tensor), patched(float_tensors(), blocks),
                             patched(float_tensors(), {{"format", "naive-quantized"}}), modelopt()}) {
    SCOPED_TRACE(config.dump());
    const QuantizationConfig read = this->read(config);
    EXPECT_EQ(read.method, Method::kFp8);
    EXPECT_EQ(read.bits, 8);
    EXPECT_EQ(read.group_size, 128);
    EXPECT_TRUE(read.symmetric);
    EXPECT_FALSE(read.lm_head);
  }
  EXPECT_TRUE(read(patched(float_tensors(), {{"ignore", json::array()}})).lm_head);
  folder_.write("hf_quant_config.json",
                R"({"producer": {"name": "modelopt"}, "quantization": {"quant_algo": "FP8",
                    "kv_cache_quant_algo": "FP8", "exclude_modules": ["lm_head"]}})");
  const QuantizationConfig own = read_root(json::object()).value();
  EXPECT_EQ(own.method, Method::kFp8);
  EXPECT_FALSE(own.lm_head);
}

// Who leaves what out: by name, by wildcards, by expressions from the first character on.
TEST_F(QuantizationConfigTest, ReadsE2m1WhoeverWroteIt) {
  json modelopt = {{"quant_method", "modelopt"}, {"quant_algo", "NVFP4"}, {"ignore", quark()["exclude"]}};
  const auto expect_read = [](const QuantizationConfig& read, int group_size) {
    EXPECT_EQ(read.method, Method::kE2m1);
    EXPECT_EQ(read.bits, 4);
    EXPECT_EQ(read.group_size, group_size);
    for (const char* name : {"lm_head", "model.layers.3.self_attn.q_proj", "model.layers.1.mlp.down_proj"})
      EXPECT_TRUE(read.modules.is_left_out(name, "")) << name;
    for (const char* name :
         {"model.lm_head", "model.layers.13.self_attn.q_proj", "model.layers.1.mlp.down_proj2",
          "model.layers.11.mlp.down_proj", "model.layers.1.mlp.up_proj"})
      EXPECT_FALSE(read.modules.is_left_out(name, "")) << name;
  };
  expect_read(read(e2m1_tensors(true)), 16);
  expect_read(read(e2m1_tensors(false)), 32);
  expect_read(read(modelopt), 16);
  expect_read(read(quark()), 32);
  folder_.write("hf_quant_config.json",
                R"({"quantization": {"quant_algo": "NVFP4", "kv_cache_quant_algo": "FP8", "group_size": 16,
                    "exclude_modules": ["lm_head", "*.3.*", "model.layers.1.mlp.down_proj"]}})");
  expect_read(read_root(json::object()).value(), 16);

  const json some = {{"config_groups", {{"group_0", {{"targets", {"re:.*mlp", "a.q_proj"}}}}}}};
  const QuantizationConfig targeted = read(patched(e2m1_tensors(true), some));
  EXPECT_FALSE(targeted.modules.is_left_out("model.layers.1.mlp.up_proj", ""));
  EXPECT_FALSE(targeted.modules.is_left_out("a.q_proj", ""));
  EXPECT_TRUE(targeted.modules.is_left_out("a.k_proj", ""));
}

TEST_F(QuantizationConfigTest, RefusesVariantsOfE2m1) {
  const auto refused = [&](const json& patch, const std::string& message) {
    unsupported(e2m1_tensors(true), weights(patch), "config_groups.group_0.weights." + message);
  };
  refused({{"num_bits", 8}}, "num_bits: expected 4, got 8");
  refused({{"type", "int"}}, "type: expected \"float\", got \"int\"");
  refused({{"strategy", "group"}}, "strategy: expected \"tensor_group\", got \"group\"");
  refused({{"group_size", 32}}, "group_size: expected 16, got 32");
  refused({{"symmetric", false}}, "symmetric: expected true, got false");
  refused({{"dynamic", true}}, "dynamic: expected false, got true");
  unsupported(e2m1_tensors(false), weights({{"group_size", 16}}),
              "config_groups.group_0.weights.group_size: expected 32, got 16");
  unsupported(modelopt(), {{"quant_algo", "NVFP4_AWQ"}},
              "quant_algo: expected \"FP8\" or \"NVFP4\", got \"NVFP4_AWQ\"");
  unsupported(modelopt(), {{"quant_algo", "NVFP4"}, {"group_size", 32}}, "group_size: expected 16, got 32");
  const auto quark_refused = [&](const json& patch, const std::string& message) {
    unsupported(quark(), {{"global_quant_config", {{"weight", patch}}}},
                "global_quant_config.weight." + message);
  };
  quark_refused({{"dtype", "int4"}}, "dtype: expected \"fp4\", got \"int4\"");
  quark_refused({{"qscheme", "per_channel"}}, "qscheme: expected \"per_group\", got \"per_channel\"");
  quark_refused({{"scale_format", "float32"}}, "scale_format: expected \"e8m0\", got \"float32\"");
  quark_refused({{"group_size", 16}}, "group_size: expected 32, got 16");
  quark_refused({{"is_dynamic", true}}, "is_dynamic: expected false, got true");
  unsupported(quark(), {{"export", {{"weight_format", "fake_quantized"}}}},
              "export.weight_format: expected \"real_quantized\", got \"fake_quantized\"");
  unsupported(
      quark(), {{"layer_quant_config", {{"*v_proj", {{"weight", {{"dtype", "int8"}}}}}}}},
      "layer_quant_config.*v_proj.weight: expected weights as global_quant_config has them, got an object");
  malformed(quark(), {{"global_quant_config", {{"weight", {{"dtype", nullptr}}}}}},
            "global_quant_config.weight.dtype: expected a string, got nothing");
}

// By the first character on, as GPTQModel does; what an override leaves out is as of the others.
TEST_F(QuantizationConfigTest, ReadsOverridesOfSingleLayers) {
  const json dynamic = {{"-:.*\\.3\\.mlp\\.", json::object()},
                        {"+:.*down_proj$", {{"bits", 8}, {"group_size", 32}, {"sym", true}, {"mse", 2.4}}},
                        {"lm_head", {{"bits", 8}}}};
  const QuantizationConfig config = read(patched(gptq(), {{"dynamic", dynamic}}));
  const auto find = [&](const std::string& name) { return config.modules.find(name, "f"); };
  EXPECT_EQ(find("model.layers.0.mlp.up_proj"), nullptr);
  EXPECT_EQ(find("model.layers.0.mlp.down_proj")->bits, 8);
  EXPECT_EQ(find("model.layers.0.mlp.down_proj")->group_size, 32);
  EXPECT_EQ(find("lm_head")->group_size, 128);
  EXPECT_TRUE(config.modules.is_left_out("model.layers.3.mlp.up_proj", "f"));
  EXPECT_FALSE(config.modules.is_left_out("model.layers.33.mlp.up_proj", "f"));
  expect_refused(
      [&] { find("model.layers.3.mlp.down_proj"); }, ExitCode::kMismatch,
      "f: model.layers.3.mlp.down_proj: expected patterns that say the same of it, got several that "
      "do not");
  const auto own = [](const json& value) { return json{{"dynamic", {{".*", value}}}}; };
  unsupported(gptq(), own({{"bits", 3}}), "dynamic..*.bits: expected one of 4, 8, got 3: not supported");
  unsupported(gptq(), own({{"desc_act", false}}),
              "dynamic..*.desc_act: expected what other layers have, got false");
  unsupported(gptq(), own({{"adapter", "lora"}}),
              "dynamic..*.adapter: expected what other layers have, got ");
  malformed(gptq(), {{"dynamic", {{"(", json::object()}}}},
            "dynamic.(: expected a regular expression, got \"(\"");
  second_refused(patched(gptq(), {{"dynamic", dynamic}}), patched(gptq(), own({{"bits", 8}})).dump(),
                 ExitCode::kBadFile,
                 "dynamic: expected what quantization_config in config.json says, an object, got");
}

TEST_F(QuantizationConfigTest, RefusesExpressionsThatAreNoneOrTakeTooLong) {
  const auto ignoring = [](const std::string& pattern) { return json{{"ignore", {pattern}}}; };
  malformed(e2m1_tensors(true), ignoring("re:(a"), "ignore[0]: expected a regular expression, got \"(a\"");
  malformed(e2m1_tensors(true), ignoring(std::string(5000, 'a')),
            "ignore[0]: expected a pattern of at most 4096 characters, got 5000");
  const QuantizationConfig slow = read(patched(e2m1_tensors(true), ignoring("re:(a*)*(a*)*(a*)*[bd]")));
  expect_refused(
      [&] { slow.modules.is_left_out(std::string(60, 'a') + "c", ""); }, ExitCode::kMismatch,
      name_ + ": quantization_config.ignore[0]: expected an expression that matches in a few steps");
  const std::string stars = "*a*a*a*a*a*a*a*a*b";
  EXPECT_FALSE(
      read(patched(quark(), {{"exclude", {stars}}})).modules.is_left_out(std::string(4000, 'a'), ""));
}

TEST_F(QuantizationConfigTest, RefusesVariantsOfFp8) {
  unsupported(fp8(), {{"fmt", "e5m2"}}, "fmt: expected \"e4m3\", got \"e5m2\": not supported");
  for (const json& size : {json{64, 128}, json{128}, json{128, 128, 128}})
    unsupported(fp8(), {{"weight_block_size", size}}, "weight_block_size: expected [128, 128], got ");
  malformed(modelopt(), {{"quant_algo", nullptr}}, "quant_algo: expected a string");
  const auto refused = [&](const json& patch, const std::string& message) {
    unsupported(float_tensors(), weights(patch), "config_groups.group_0.weights." + message);
  };
  refused({{"num_bits", 4}}, "num_bits: expected 8, got 4");
  refused({{"type", "int"}}, "type: expected \"float\", got \"int\"");
  refused({{"symmetric", false}}, "symmetric: expected true, got false");
  refused({{"strategy", "group"}}, "strategy: expected \"channel\", \"tensor\" or \"block\", got \"group\"");
  refused({{"strategy", "block"}, {"block_structure", {64, 64}}},
          "block_structure: expected [128, 128], got ");
}

TEST_F(QuantizationConfigTest, RefusesWhatIsNotSupported) {
  unsupported(gptq(), {{"quant_method", "eetq"}},
              "quant_method: expected \"gptq\", \"awq\", \"compressed-tensors\", \"fp8\", \"modelopt\", "
              "\"quark\" or \"bitsandbytes\", got \"eetq\": not supported");
  const json nf4 = {{"quant_method", "bitsandbytes"}, {"load_in_4bit", true}, {"bnb_4bit_quant_type", "nf4"}};
  EXPECT_FALSE(read_root({{"quantization_config", nf4}}));  // floats, as far as kernels know
  unsupported(nf4, {{"load_in_4bit", false}, {"load_in_8bit", true}},
              "load_in_4bit: expected true, got false");
  unsupported(nf4, {{"bnb_4bit_quant_type", "fp4"}}, "bnb_4bit_quant_type: expected \"nf4\", got \"fp4\"");
  unsupported(nf4, {{"bnb_4bit_quant_storage", "bfloat16"}},
              "bnb_4bit_quant_storage: expected \"uint8\", got \"bfloat16\"");
  unsupported(awq(), {{"bits", 8}}, "bits: expected 4, got 8");
  for (const int bits : {2, 3, 16}) {
    unsupported(gptq(), {{"bits", bits}}, "bits: expected one of 4, 8, got " + std::to_string(bits));
    unsupported(awq(), {{"bits", bits}}, "bits: expected one of 4, 8, got " + std::to_string(bits));
    unsupported(compressed_tensors(), weights({{"num_bits", bits}}),
                "config_groups.group_0.weights.num_bits: expected one of 4, 8, got " + std::to_string(bits));
  }
  for (const int size : {0, 16, 96, 256, 1024}) {
    const std::string message = "group_size: expected one of -1, 32, 64, 128, got " + std::to_string(size);
    unsupported(gptq(), {{"group_size", size}}, message);
    unsupported(awq(), {{"group_size", size}}, message);
    unsupported(compressed_tensors(), weights({{"group_size", size}}),
                "config_groups.group_0.weights." + message);
  }
}

TEST_F(QuantizationConfigTest, RefusesVariantsOfGptqAndAwq) {
  unsupported(gptq(), {{"pack_dtype", "int8"}}, "pack_dtype: expected \"int32\", got \"int8\"");
  unsupported(gptq(), {{"checkpoint_format", "marlin"}},
              "checkpoint_format: expected \"gptq\" or \"gptq_v2\", got \"marlin\"");
  unsupported(gptq(), {{"is_marlin_format", true}}, "is_marlin_format: expected false, got true");
  for (const char* version : {"gemv", "gemv_fast", "marlin", "exllama", "ipex"}) {
    unsupported(awq(), {{"version", version}},
                "version: expected \"gemm\", got \"" + std::string(version) + "\"");
  }
  unsupported(awq(), {{"backend", "llm-awq"}}, "backend: expected \"autoawq\", got \"llm-awq\"");
}

TEST_F(QuantizationConfigTest, RefusesVariantsOfCompressedTensors) {
  const auto refused = [&](const json& patch, const std::string& message) {
    unsupported(compressed_tensors(), patch, message);
  };
  const auto weights_refused = [&](const json& patch, const std::string& message) {
    refused(weights(patch), "config_groups.group_0.weights." + message);
  };
  const json eight_bits = {{"num_bits", 8}};
  for (const char* format : {"int-quantized", "marlin-24", "mxfp8-quantized", "dense"}) {
    refused({{"format", format}},
            "format: expected \"pack-quantized\", \"float-quantized\", \"naive-quantized\", "
            "\"nvfp4-pack-quantized\" or \"mxfp4-pack-quantized\", got \"" +
                std::string(format) + "\": not supported");
  }
  refused({{"config_groups", {{"group_0", {{"format", "int-quantized"}}}}}},
          "config_groups.group_0.format: expected \"pack-quantized\", got \"int-quantized\"");
  refused({{"config_groups", {{"group_1", json::object()}}}}, "config_groups: expected one group, got 2");
  refused({{"quantization_status", "frozen"}},
          "quantization_status: expected \"compressed\", got \"frozen\"");
  refused({{"kv_cache_scheme", eight_bits}}, "kv_cache_scheme: expected nothing or null, got an object");
  refused({{"transform_config", eight_bits}}, "transform_config: expected no transforms, got an object");
  refused({{"sparsity_config", {{"format", "sparse-24-bitmask"}}}},
          "sparsity_config.format: expected \"dense\", got \"sparse-24-bitmask\"");
  for (const std::string side : {"input_activations", "output_activations"}) {
    refused({{"config_groups", {{"group_0", {{side, eight_bits}}}}}},
            "config_groups.group_0." + side + ": expected nothing or null, got an object");
  }
  weights_refused({{"type", "float"}}, "type: expected \"int\", got \"float\"");
  weights_refused({{"dynamic", true}}, "dynamic: expected false, got true");
  for (const char* strategy : {"tensor", "block", "token", "tensor_group"}) {
    weights_refused({{"strategy", strategy}}, "strategy: expected \"group\" or \"channel\", got \"" +
                                                  std::string(strategy) + "\": not supported");
  }
  weights_refused({{"actorder", "sorted"}},
                  "actorder: expected \"group\", \"static\", \"weight\" or null, got \"sorted\"");
}

TEST_F(QuantizationConfigTest, RefusesMalformedMembers) {
  expect_refused([&] { read("gptq"); }, ExitCode::kBadFile,
                 name_ + ": quantization_config: expected an object, got \"gptq\"");
  malformed(gptq(), {{"quant_method", nullptr}}, "quant_method: expected a string, got nothing");
  malformed(gptq(), {{"bits", nullptr}}, "bits: expected an integer, got nothing");
  malformed(gptq(), {{"bits", "4"}}, "bits: expected an integer, got \"4\"");
  malformed(gptq(), {{"bits", 0}}, "bits: expected an integer in [1, 64], got 0");
  malformed(gptq(), {{"group_size", nullptr}}, "group_size: expected an integer, got nothing");
  malformed(gptq(), {{"group_size", -2}}, "group_size: expected an integer in [-1, 1048576], got -2");
  malformed(gptq(), {{"group_size", 128.0}}, "group_size: expected an integer, got 128.0");
  malformed(gptq(), {{"sym", 1}}, "sym: expected true or false, got 1");
  malformed(gptq(), {{"desc_act", "no"}}, "desc_act: expected true or false, got \"no\"");
  malformed(gptq(), {{"lm_head", json::array()}}, "lm_head: expected true or false, got an array");
  malformed(gptq(), {{"dynamic", true}}, "dynamic: expected an object, got true");
  malformed(gptq(), {{"pack_dtype", 32}}, "pack_dtype: expected a string, got 32");
  malformed(gptq(), {{"checkpoint_format", 2}}, "checkpoint_format: expected a string, got 2");
  malformed(gptq(), {{"format", "gptq_v2"}},
            "format: expected what checkpoint_format says, \"gptq\", got \"gptq_v2\"");
  malformed(awq(), {{"zero_point", 1}}, "zero_point: expected true or false, got 1");
  malformed(compressed_tensors(), {{"format", nullptr}}, "format: expected a string, got nothing");
  malformed(compressed_tensors(), {{"config_groups", nullptr}}, "config_groups: expected an object");
  malformed(compressed_tensors(), {{"config_groups", {{"group_0", nullptr}}}},
            "config_groups: expected one group, got 0");
  malformed(compressed_tensors(), {{"ignore", "lm_head"}}, "ignore: expected an array, got \"lm_head\"");
  const std::string prefix = "config_groups.group_0.weights.";
  malformed(compressed_tensors(), weights(nullptr), "config_groups.group_0.weights: expected an object");
  malformed(compressed_tensors(), weights({{"num_bits", nullptr}}), prefix + "num_bits: expected an integer");
  malformed(compressed_tensors(), weights({{"group_size", nullptr}}),
            prefix + "group_size: expected an intege");
  malformed(compressed_tensors(), weights({{"group_size", -1}}),
            prefix + "group_size: expected inputs of a group, because strategy is \"group\"; got -1");
  malformed(compressed_tensors(), weights({{"strategy", "channel"}}),
            prefix + "group_size: expected -1 or null, because strategy is \"channel\"; got 128");
  malformed(compressed_tensors(), weights({{"actorder", 1}}), prefix + "actorder: expected a string, got 1");
}

TEST_F(QuantizationConfigTest, ReadsTheSecondFileAlone) {
  json second = gptq();
  second.erase("quant_method");
  second["checkpoint_format"] = "gptq_v2";
  const std::string path = folder_.write("quantize_config.json", second.dump());
  const QuantizationConfig config = read_root(json::object()).value();
  EXPECT_EQ(config.method, Method::kGptq);
  EXPECT_EQ(config.zeros, ZeroFormat::kV2);
  EXPECT_EQ(config.file, path);

  folder_.write("quantize_config.json", awq().dump());
  EXPECT_EQ(read_root(json::object()).value().method, Method::kAwq);
}

TEST_F(QuantizationConfigTest, TheSecondFileOnlyCompletesTheFirst) {
  json first = gptq();
  first.erase("bits");
  first.erase("group_size");
  first.erase("checkpoint_format");
  json second = gptq();
  second.erase("quant_method");
  second["checkpoint_format"] = "gptq_v2";
  second["damp_percent"] = 0.01;  // of no concern
  folder_.write("quantize_config.json", second.dump());
  const QuantizationConfig config = read(first);
  EXPECT_EQ(config.group_size, 128);
  EXPECT_EQ(config.zeros, ZeroFormat::kV2);
  EXPECT_EQ(config.file, name_);
}

TEST_F(QuantizationConfigTest, RefusesFilesThatContradictOneAnother) {
  const auto contradicted = [&](const json& patch, const std::string& message) {
    second_refused(gptq(), patched(gptq(), patch).dump(), ExitCode::kBadFile, message);
  };
  const std::string says = "expected what quantization_config in config.json says, ";
  contradicted({{"quant_method", "awq"}, {"checkpoint_format", nullptr}},
               "quant_method: " + says + "\"gptq\", got \"awq\"");
  contradicted({{"group_size", 64}}, "group_size: " + says + "128, got 64");
  contradicted({{"sym", false}}, "sym: " + says + "true, got false");
  contradicted({{"desc_act", false}}, "desc_act: " + says + "true, got false");
  contradicted({{"lm_head", true}}, "lm_head: " + says + "false, got true");
  contradicted({{"checkpoint_format", "gptq_v2"}},
               "checkpoint_format: " + says + "\"gptq\", got \"gptq_v2\"");
  second_refused(compressed_tensors(), R"({"bits": 4, "group_size": 128})", ExitCode::kBadFile,
                 "quant_method: " + says + "\"compressed-tensors\", got nothing");
}

TEST_F(QuantizationConfigTest, RefusesAnUnreadableSecondFile) {
  second_refused(gptq(), R"({"bits": 3})", ExitCode::kMismatch,
                 "bits: expected one of 4, 8, got 3: not supported");
  second_refused(gptq(), "{", ExitCode::kBadFile, "not valid JSON");
  second_refused(gptq(), "[]", ExitCode::kBadFile, "expected an object, got an array");
  second_refused(gptq(), "version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 9\n",
                 ExitCode::kBadFile, "a git-LFS pointer, not the content");
}

}  // namespace
}  // namespace soliton
