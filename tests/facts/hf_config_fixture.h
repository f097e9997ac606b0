// What tests of HfConfig share: a config that is sound, and how to damage it.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>

#include "models/error.h"
#include "models/hf_config.h"
#include "temporary_folder.h"

namespace soliton {

namespace fs = std::filesystem;
using nlohmann::json;

/// Llama-3.2-1B's shape.
inline json base_config() {
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
}  // namespace soliton
