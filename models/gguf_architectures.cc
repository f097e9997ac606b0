// As llama.cpp reads its files (src/models), which its converters (conversion) write.
#include "models/gguf_architectures.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <string_view>
#include <vector>

#include "models/limits.h"

namespace soliton {
namespace {

using nlohmann::json;

/// A member of config.json and its key, behind the architecture's name and a dot.
struct Renamed {
  const char* member;
  const char* key;
};

constexpr std::array kRenamed = {
    Renamed{"hidden_size", "embedding_length"},
    Renamed{"intermediate_size", "feed_forward_length"},
    Renamed{"num_hidden_layers", "block_count"},
    Renamed{"num_attention_heads", "attention.head_count"},
    Renamed{"num_key_value_heads", "attention.head_count_kv"},
    Renamed{"head_dim", "attention.key_length"},
    Renamed{"max_position_embeddings", "context_length"},
    Renamed{"rms_norm_eps", "attention.layer_norm_rms_epsilon"},
    Renamed{"rope_theta", "rope.freq_base"},
    Renamed{"rope_local_base_freq", "rope.freq_base_swa"},
    Renamed{"attn_logit_softcapping", "attn_logit_softcapping"},
    Renamed{"final_logit_softcapping", "final_logit_softcapping"},
    Renamed{"attention_multiplier", "attention.scale"},
    Renamed{"embedding_multiplier", "embedding_scale"},
    Renamed{"residual_multiplier", "residual_scale"},
    Renamed{"logits_scaling", "logit_scale"},
};

/// Those of mixtures, and of what is made by hand: for errors alone.
constexpr std::array kOtherNames = {
    Renamed{"num_local_experts", "expert_count"},
    Renamed{"num_experts", "expert_count"},
    Renamed{"num_experts_per_tok", "expert_used_count"},
    Renamed{"moe_intermediate_size", "expert_feed_forward_length"},
    Renamed{"sliding_window", "attention.sliding_window"},
    Renamed{"layer_types", "attention.sliding_window_pattern"},
    Renamed{"partial_rotary_factor", "rope.dimension_count"},
    Renamed{"rope_scaling.factor", "rope.scaling.factor"},
    Renamed{"rope_scaling.original_max_position_embeddings", "rope.scaling.original_context_length"},
    Renamed{"rope_scaling.llama_4_scaling_beta", "attention.temperature_scale"},
};

int64_t head_dim_of(const json& config) {
  return config["head_dim"].get<int64_t>();
}

/// No key has the scale of scores: all but the largest model take the one that heads imply.
template <int kLargestLayers>
void put_gemma(const GgufFile& /*file*/, json& config) {
  config["hidden_activation"] = "gelu_pytorch_tanh";
  const bool is_largest = config["num_hidden_layers"] == kLargestLayers;
  config["query_pre_attn_scalar"] =
      is_largest ? config["hidden_size"].get<int64_t>() / config["num_attention_heads"].get<int64_t>()
                 : head_dim_of(config);
}

/// Files of Gemma 2 may leave the window out.
void put_gemma2(const GgufFile& file, json& config) {
  constexpr int kLargestLayers = 46;
  put_gemma<kLargestLayers>(file, config);
  if (config["sliding_window"].is_null()) config.erase("sliding_window");
}

void put_granite(const GgufFile& file, json& config) {
  const JsonView rotates = file.view()["granite.rope.scaling.finetuned"];
  if (!rotates.is_null() && !rotates.boolean())
    throw rotates.error(ExitCode::kMismatch, "expected true, got false: not supported");
  if (!config.contains("attention_multiplier"))
    config["attention_multiplier"] = 1 / std::sqrt(static_cast<double>(head_dim_of(config)));
}

/// OLMo 3 has windows.
void put_olmo2(const GgufFile& /*file*/, json& config) {
  if (config["sliding_window"].is_null()) return;
  config["architectures"] = {"Olmo3ForCausalLM"};
  if (!config.contains("rope_local_base_freq") && config.contains("rope_theta"))
    config["rope_local_base_freq"] = config["rope_theta"];
}

void put_mistral3(const GgufFile& file, json& config) {
  const JsonView beta = file.view()["mistral3.attention.temperature_scale"];
  if (beta.is_null() || beta.number() == 0) return;
  if (!config["rope_scaling"].is_object())
    throw beta.error(ExitCode::kMismatch, "expected nothing where rope is not stretched, got {}",
                     beta.describe());
  config["rope_scaling"]["llama_4_scaling_beta"] = beta.number();
}

void put_biases(const GgufFile& file, json& config) {
  config["attention_bias"] = file.find("blk.0.attn_q.bias") != nullptr;
  config["attention_out_bias"] = file.find("blk.0.attn_output.bias") != nullptr;
}

void put_glm4(const GgufFile& file, json& config) {
  put_biases(file, config);
  const JsonView dims = file.view()["glm4.rope.dimension_count"];
  const int64_t head_dim = head_dim_of(config);
  config["partial_rotary_factor"] =
      dims.is_null() ? 1.0 : static_cast<double>(dims.integer(2, head_dim)) / static_cast<double>(head_dim);
}

/// As the model was trained: llama.cpp rounds the bounds of YaRN's ramp.
void put_gpt_oss(const GgufFile& /*file*/, json& config) {
  config["attention_bias"] = true;
  if (config["rope_scaling"].is_object()) config["rope_scaling"]["truncate"] = false;
}

constexpr std::array kArchitectures = {
    GgufArchitecture{.name = "llama",
                     .family = "LlamaForCausalLM",
                     .mixture = "MixtralForCausalLM",
                     .expert_ffn = "intermediate_size",
                     .expert_ffn_key = "feed_forward_length",
                     .num_experts = "num_local_experts",
                     .names = {.pairs = true}},
    GgufArchitecture{.name = "qwen2", .family = "Qwen2ForCausalLM"},
    GgufArchitecture{.name = "qwen3", .family = "Qwen3ForCausalLM"},
    GgufArchitecture{.name = "qwen3moe",
                     .mixture = "Qwen3MoeForCausalLM",
                     .expert_ffn = "moe_intermediate_size",
                     .expert_ffn_key = "expert_feed_forward_length",
                     .num_experts = "num_experts"},
    GgufArchitecture{
        .name = "phi3", .family = "Phi3ForCausalLM", .names = {.projections = Projections::kFused}},
    GgufArchitecture{.name = "gemma2",
                     .family = "Gemma2ForCausalLM",
                     .lists_windows = true,
                     .norm_offset = true,
                     .put_further = put_gemma2},
    GgufArchitecture{.name = "gemma3",
                     .family = "Gemma3ForCausalLM",
                     .lists_windows = true,
                     .norm_offset = true,
                     .put_further = put_gemma<62>},
    GgufArchitecture{.name = "granite",
                     .family = "GraniteForCausalLM",
                     .names = {.pairs = true},
                     .put_further = put_granite},
    GgufArchitecture{
        .name = "olmo2", .family = "Olmo2ForCausalLM", .lists_windows = true, .put_further = put_olmo2},
    GgufArchitecture{.name = "smollm3", .family = "SmolLM3ForCausalLM", .names = {.pairs = true}},
    GgufArchitecture{.name = "mistral3",
                     .family = "Ministral3ForCausalLM",
                     .names = {.pairs = true},
                     .states_mscale = true,
                     .put_further = put_mistral3},
    GgufArchitecture{.name = "exaone4", .family = "Exaone4ForCausalLM", .lists_windows = true},
    GgufArchitecture{.name = "glm4",
                     .family = "Glm4ForCausalLM",
                     .names = {.projections = Projections::kFusedGateUp, .pairs = true},
                     .partial_rotary = true,
                     .put_further = put_glm4},
    GgufArchitecture{.name = "seed_oss",
                     .family = "SeedOssForCausalLM",
                     .names = {.ffn_norm = "post_attention_norm"},
                     .put_further = put_biases},
    GgufArchitecture{.name = "hunyuan-dense", .family = "HunYuanDenseV1ForCausalLM"},
    GgufArchitecture{.name = "gpt-oss",
                     .mixture = "GptOssForCausalLM",
                     .expert_ffn = "intermediate_size",
                     .expert_ffn_key = "expert_feed_forward_length",
                     .num_experts = "num_local_experts",
                     .names = {.ffn_norm = "post_attention_norm", .router_bias = "ffn_gate_inp.bias"},
                     .lists_windows = true,
                     .mxfp4_experts = true,
                     .put_further = put_gpt_oss},
};

const GgufArchitecture* find_by_name(std::string_view name) {
  const auto found =
      std::ranges::find_if(kArchitectures, [&](const auto& each) { return name == each.name; });
  return found == kArchitectures.end() ? nullptr : &*found;
}

}  // namespace

const GgufArchitecture& find_gguf_architecture(const GgufFile& file) {
  const JsonView stated = file.view()["general.architecture"];
  const std::string& name = stated.string();
  if (const GgufArchitecture* const found = find_by_name(name)) return *found;
  std::vector<std::string> known;
  for (const GgufArchitecture& each : kArchitectures) known.emplace_back(each.name);
  throw stated.error(ExitCode::kMismatch, "expected one of {}, got {}", fmt::join(known, ", "),
                     in_quotes(name));
}

bool has_norm_offset(const GgufFile& file) {
  const auto name = file.metadata().find("general.architecture");
  if (name == file.metadata().end() || !name->is_string()) return false;
  const GgufArchitecture* const found = find_by_name(name->get_ref<const std::string&>());
  return found != nullptr && found->norm_offset;
}

std::string gguf_key_of(const std::string& prefix, const std::string& member) {
  const auto find = [&](const auto& table) -> std::optional<std::string> {
    const auto found =
        std::ranges::find_if(table, [&](const Renamed& each) { return member == each.member; });
    return found == table.end() ? std::nullopt : std::optional(prefix + found->key);
  };
  if (const auto key = find(kRenamed)) return *key;
  if (const auto key = find(kOtherNames)) return *key;
  return member;
}

void put_renamed(const GgufFile& file, const std::string& prefix, json& config) {
  for (const Renamed& each : kRenamed) {
    const std::string key = prefix + each.key;
    if (!file.view()[key].is_null()) config[each.member] = file.metadata()[key];
  }
}

}  // namespace soliton
