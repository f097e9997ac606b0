// Weights of the reference: random ones, those of a checkpoint, and folders written from them.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <fstream>
#include <nlohmann/json.hpp>
#include <span>
#include <stdexcept>

#include "layout/random.h"
#include "tests/reference_model.h"

namespace soliton {
namespace {

namespace fs = std::filesystem;
using nlohmann::ordered_json;

uint64_t fnv1a(const std::string& text) {
  uint64_t hash = 14695981039346656037ull;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 1099511628211ull;
  return hash;
}

// Half the width of a uniform distribution; a power of two, so that 1 + kNormBound * random_unit() is exact.
constexpr float kNormBound = 0.25f;
constexpr float kBiasBound = 0.5f;

/// Of experts' gates and ups, so wide that some are clamped.
float bias_bound(const std::string& name) {
  return name.ends_with("gate_up_proj_bias") ? 8.0f : kBiasBound;
}

float matrix_bound(const std::string& name, int64_t columns) {
  const bool makes_scores = name.ends_with("q_proj.weight") || name.ends_with("k_proj.weight");
  const double variance = (makes_scores ? 2.0 : 1.0) / static_cast<double>(columns);
  return static_cast<float>(std::sqrt(3.0 * variance));
}

/// Its architecture and model_type.
std::pair<const char*, const char*> family_of(const ModelFacts& facts) {
  if (facts.sinks != 0) return {"GptOssForCausalLM", "gpt_oss"};
  const NormPlacement norms = norm_placement(facts);
  if (facts.norm_bias != 0 && facts.ffn_bias != 0) return {"Starcoder2ForCausalLM", "starcoder2"};
  if (facts.norm_bias != 0) return {"NemotronForCausalLM", "nemotron"};
  if (norms == NormPlacement::kCentred) return {"MptForCausalLM", "mpt"};
  if (facts.ungated != 0) return {"ArceeForCausalLM", "arcee"};
  if (norms == NormPlacement::kParallel) return {"Cohere2ForCausalLM", "cohere2"};
  if (norms == NormPlacement::kAround && facts.head_norm != 0) return {"Gemma3ForCausalLM", "gemma3_text"};
  if (norms == NormPlacement::kAround) return {"Gemma2ForCausalLM", "gemma2"};
  if (norms == NormPlacement::kAfter && facts.joint_norm == 0) return {"Exaone4ForCausalLM", "exaone4"};
  if (norms == NormPlacement::kAfter && has_windows(facts)) return {"Olmo3ForCausalLM", "olmo3"};
  if (norms == NormPlacement::kAfter) return {"Olmo2ForCausalLM", "olmo2"};
  if (facts.head_norm_last != 0) return {"HunYuanDenseV1ForCausalLM", "hunyuan_v1_dense"};
  if (scales_queries(facts)) return {"Ministral3ForCausalLM", "ministral3"};
  if (facts.residual_scale != 1) return {"GraniteForCausalLM", "granite"};
  if (lists_ropes(facts)) return {"SmolLM3ForCausalLM", "smollm3"};
  if (facts.router_scores != 0) return {"Glm4MoeForCausalLM", "glm4_moe"};
  if (facts.joint_norm != 0) return {"OlmoeForCausalLM", "olmoe"};
  if (facts.shared_gate != 0) return {"Qwen2MoeForCausalLM", "qwen2_moe"};
  if (facts.num_experts > 0) return {"Qwen3MoeForCausalLM", "qwen3_moe"};
  if (facts.head_norm != 0) return {"Qwen3ForCausalLM", "qwen3"};
  if (facts.qkv_bias != 0) return {"Qwen2ForCausalLM", "qwen2"};
  return {"LlamaForCausalLM", "llama"};
}

/// What layers differ in, and scales, in words of the families that have them.
void add_dense_members(const ModelFacts& facts, ordered_json& config) {
  config["hidden_activation"] = kActivationNames[facts.activation];
  config["query_pre_attn_scalar"] = 1 / (attention_scale(facts) * attention_scale(facts));
  config["rope_local_base_freq"] = facts.rope_local_theta;
  const auto cap = [](double value) { return value == 0 ? ordered_json() : ordered_json(value); };
  config["final_logit_softcapping"] = cap(facts.logit_soft_cap);
  config["attn_logit_softcapping"] = cap(facts.attention_soft_cap);
  config["embedding_multiplier"] = facts.embedding_scale;
  config["residual_multiplier"] = facts.residual_scale;
  config["attention_multiplier"] = attention_scale(facts);
  config["logits_scaling"] = 1 / facts.logit_scale;
  config["logit_scale"] = facts.logit_scale;  // Cohere's, and the next
  config["layer_norm_eps"] = facts.norm_epsilon;
  config["sliding_window"] = nullptr;
  for (int layer = 0; layer < facts.num_layers; ++layer) {
    const int32_t window = window_of_layer(facts, layer);
    config["layer_types"].push_back(window == 0 ? "full_attention" : "sliding_attention");
    if (window != 0) config["sliding_window"] = window;
    config["no_rope_layers"].push_back(rope_of_layer(facts, layer) == kNoRope ? 0 : 1);
  }
}

/// What MPT calls what others have too, and what it has of its own.
void add_mpt_members(const ModelFacts& facts, ordered_json& config) {
  config["d_model"] = facts.hidden;
  config["n_heads"] = facts.num_heads;
  config["n_layers"] = facts.num_layers;
  config["max_seq_len"] = facts.max_context;
  config["expansion_ratio"] = facts.ffn / facts.hidden;
  config["layer_norm_epsilon"] = facts.norm_epsilon;
  config["attn_config"] = {{"alibi", true}, {"alibi_bias_max", facts.alibi}};
  config["hidden_act"] = "silu";  // which it does not ask for
}

/// MPT's names of tensors.
std::string mpt_name(std::string name) {
  constexpr std::pair<std::string_view, std::string_view> kNames[] = {
      {"model.embed_tokens", "transformer.wte"}, {"model.layers.", "transformer.blocks."},
      {"model.norm", "transformer.norm_f"},      {"input_layernorm", "norm_1"},
      {"post_attention_layernorm", "norm_2"},    {"self_attn.q_proj", "attn.Wqkv"},
      {"self_attn.o_proj", "attn.out_proj"},     {"mlp.", "ffn."}};
  for (const auto& [most, mpt] : kNames) {
    if (const size_t at = name.find(most); at != std::string::npos) name.replace(at, most.size(), mpt);
  }
  return name;
}

/// StarCoder2's.
void name_as_starcoder(std::vector<StoredTensor>& tensors) {
  constexpr std::pair<std::string_view, std::string_view> kNames[] = {{"up_proj", "c_fc"},
                                                                      {"down_proj", "c_proj"}};
  for (StoredTensor& tensor : tensors) {
    for (const auto& [most, own] : kNames) {
      if (const size_t at = tensor.name.find(most); at != std::string::npos)
        tensor.name.replace(at, most.size(), own);
    }
  }
}

/// As MPT has them: q, k and v of a layer, which follow one another, are one tensor.
void name_as_mpt(std::vector<StoredTensor>& tensors) {
  std::vector<StoredTensor> named;
  for (StoredTensor& tensor : tensors) {
    if (tensor.name.ends_with("k_proj.weight") || tensor.name.ends_with("v_proj.weight")) {
      named.back().shape[0] += tensor.shape[0];
      named.back().bytes.insert(named.back().bytes.end(), tensor.bytes.begin(), tensor.bytes.end());
      continue;
    }
    tensor.name = mpt_name(tensor.name);
    named.push_back(std::move(tensor));
  }
  tensors = std::move(named);
}

ordered_json classic_config(const ModelFacts& facts) {
  const bool is_mixture = facts.num_experts > 0;
  const auto [architecture, model_type] = family_of(facts);
  ordered_json config = {
      {"architectures", {architecture}},
      {"model_type", model_type},
      {"hidden_size", facts.hidden},
      {"intermediate_size", facts.ffn},
      {"num_hidden_layers", facts.num_layers},
      {"num_attention_heads", facts.num_heads},
      {"num_key_value_heads", facts.num_kv_heads},
      {"head_dim", facts.head_dim},
      {"vocab_size", facts.vocabulary},
      {"max_position_embeddings", facts.max_context},
      {"rms_norm_eps", facts.norm_epsilon},
      {"rope_theta", facts.rope_theta},
      {"rope_scaling", nullptr},
      {"tie_word_embeddings", facts.tied_lm_head != 0},
      {"hidden_act", kActivationNames[facts.activation]},
      {"attention_bias", false},
      {"mlp_bias", false},
      {"bos_token_id", kReferenceBosId},
      {"eos_token_id", kReferenceEosId},
      {"torch_dtype", "bfloat16"},
  };
  if (facts.sinks != 0) {
    config["hidden_act"] = "silu";
    config["attention_bias"] = facts.qkv_bias != 0;
    config["rope_scaling"] = {{"rope_type", "default"}};
    config["num_local_experts"] = facts.num_experts;
    config["num_experts_per_tok"] = facts.experts_per_token;
    config["swiglu_limit"] = 7.0;
    if (facts.further_e2m1 != 0) config["quantization_config"] = {{"quant_method", "mxfp4"}};
    for (int layer = 0; layer < facts.num_layers; ++layer) {
      const int32_t window = window_of_layer(facts, layer);
      config["layer_types"].push_back(window == 0 ? "full_attention" : "sliding_attention");
      if (window != 0) config["sliding_window"] = window;
    }
  } else if (is_mixture) {
    config["num_experts"] = facts.num_experts;
    config["num_experts_per_tok"] = facts.experts_per_token;
    config["moe_intermediate_size"] = facts.expert_ffn;
    config["norm_topk_prob"] = facts.renormalised != 0;
    config["decoder_sparse_step"] = 1;
    if (facts.shared_experts > 0)
      config["shared_expert_intermediate_size"] = facts.shared_experts * facts.expert_ffn;
    std::vector<int> dense;
    for (int layer = 0; layer < facts.num_layers; ++layer) {
      if (ffn_of_layer(facts, layer) != kMixture) dense.push_back(layer);
    }
    config["mlp_only_layers"] = dense;
    if (facts.joint_norm != 0) config["intermediate_size"] = facts.expert_ffn;  // OLMoE's
    if (facts.router_scores != 0) {                                             // GLM's
      config["attention_bias"] = facts.qkv_bias != 0;
      config["use_qk_norm"] = facts.head_norm != 0;
      config["partial_rotary_factor"] = 1.0 * rotated_dims(facts) / facts.head_dim;
      config["n_routed_experts"] = facts.num_experts;
      config["n_shared_experts"] = facts.shared_experts;
      config["first_k_dense_replace"] = dense.size();
      config["routed_scaling_factor"] = facts.router_scale;
    }
  } else if (facts.norm_bias != 0 && facts.ffn_bias != 0) {
    config["norm_epsilon"] = facts.norm_epsilon;
    if (has_windows(facts)) config["sliding_window"] = window_of_layer(facts, 0);
  } else if (facts.norm_bias != 0) {
    config["norm_eps"] = facts.norm_epsilon;
    config["partial_rotary_factor"] = 1.0 * rotated_dims(facts) / facts.head_dim;
  } else if (norm_placement(facts) == NormPlacement::kCentred) {
    add_mpt_members(facts, config);
  } else if (holds_blocks(norm_placement(facts)) || facts.residual_scale != 1 || lists_ropes(facts)) {
    add_dense_members(facts, config);
  } else if (lists_layers(facts)) {
    config["intermediate_size"] = std::span(facts.layer_ffn).first(static_cast<size_t>(facts.num_layers));
  }
  if (facts.weight_e4m3 != 0) {
    const ordered_json weights = {
        {"num_bits", 8}, {"type", "float"}, {"strategy", "channel"}, {"symmetric", true}};
    config["quantization_config"] = {
        {"quant_method", "compressed-tensors"},
        {"format", "float-quantized"},
        {"ignore", facts.lm_head_bits < 16 ? ordered_json::array() : ordered_json{"lm_head"}},
        {"config_groups", {{"group_0", {{"targets", {"Linear"}}, {"weights", weights}}}}}};
  } else if (facts.weight_bits < 16) {
    config["quantization_config"] = {{"quant_method", "gptq"},
                                     {"bits", facts.weight_bits},
                                     {"group_size", facts.weight_group},
                                     {"sym", facts.weight_zeros == 0},
                                     {"desc_act", facts.weight_order != 0},
                                     {"lm_head", facts.lm_head_bits < 16},
                                     {"checkpoint_format", "gptq_v2"}};
  }
  if (facts.rope_kind == RopeKind::kLlama3) {
    config["rope_scaling"] = {
        {"rope_type", "llama3"},
        {"factor", facts.rope_factor},
        {"low_freq_factor", facts.rope_low_freq_factor},
        {"high_freq_factor", facts.rope_high_freq_factor},
        {"original_max_position_embeddings", facts.rope_original_context},
    };
  }
  if (facts.rope_kind == RopeKind::kLinear) {
    config["rope_scaling"] = {{"rope_type", "linear"}, {"factor", facts.rope_factor}};
  }
  if (facts.rope_kind == RopeKind::kYarn) {
    config["rope_scaling"] = {
        {"rope_type", "yarn"},
        {"factor", facts.rope_factor},
        {"beta_fast", facts.rope_beta_fast},
        {"beta_slow", facts.rope_beta_slow},
        {"truncate", facts.rope_truncate != 0},
        {"attention_factor", facts.rope_attention_factor},
        {"original_max_position_embeddings", facts.rope_original_context},
    };
  }
  if (facts.rope_kind == RopeKind::kLongrope) {
    const auto pairs = static_cast<size_t>(rotated_pairs(facts));
    config["rope_scaling"] = {
        {"rope_type", "longrope"},
        {"short_factor", std::span(facts.rope_short_factors).first(pairs)},
        {"long_factor", std::span(facts.rope_long_factors).first(pairs)},
        {"attention_factor", facts.rope_attention_factor},
        {"original_max_position_embeddings", facts.rope_original_context},
    };
  }
  if (scales_queries(facts) && std::string_view(model_type) == "ministral3") {
    config["rope_scaling"]["llama_4_scaling_beta"] = facts.query_scale_beta;
    config["rope_scaling"]["original_max_position_embeddings"] = facts.query_scale_context;
  }
  return config;
}

class OutputFile {
 public:
  explicit OutputFile(const fs::path& path) : path_(path), stream_(path, std::ios::binary) {}
  void write(const void* data, size_t bytes) {
    stream_.write(static_cast<const char*>(data), static_cast<std::streamsize>(bytes));
  }
  void close() {
    stream_.close();
    if (!stream_) throw std::runtime_error(path_.string() + ": cannot write");
  }

 private:
  fs::path path_;
  std::ofstream stream_;
};

void write_json(const fs::path& path, const ordered_json& document) {
  const std::string text = document.dump(2) + "\n";
  OutputFile file(path);
  file.write(text.data(), text.size());
  file.close();
}

void write_safetensors(const fs::path& path, std::span<const StoredTensor> tensors) {
  static_assert(std::endian::native == std::endian::little, "the file is little-endian");
  ordered_json header = {{"__metadata__", {{"format", "pt"}}}};
  size_t end = 0;
  for (const StoredTensor& tensor : tensors) {
    const size_t begin = end;
    end += tensor.bytes.size();
    header[tensor.name] = {{"dtype", tensor.dtype}, {"shape", tensor.shape}, {"data_offsets", {begin, end}}};
  }
  std::string text = header.dump();
  constexpr size_t kAlignment = 8;
  text.resize((text.size() + kAlignment - 1) / kAlignment * kAlignment, ' ');
  const uint64_t length = text.size();
  OutputFile file(path);
  file.write(&length, sizeof(length));
  file.write(text.data(), text.size());
  for (const StoredTensor& tensor : tensors) file.write(tensor.bytes.data(), tensor.bytes.size());
  file.close();
}

/// The i-th of `parts` neighbouring runs of the tensors.
std::span<const StoredTensor> shard_of(std::span<const StoredTensor> tensors, size_t i, size_t parts) {
  const size_t begin = tensors.size() * i / parts;
  return tensors.subspan(begin, tensors.size() * (i + 1) / parts - begin);
}

void write_shards(const fs::path& folder, std::span<const StoredTensor> tensors, size_t num_shards) {
  ordered_json weight_map = ordered_json::object();
  size_t bytes = 0;
  for (size_t i = 0; i < num_shards; ++i) {
    const std::string name = fmt::format("model-{:05}-of-{:05}.safetensors", i + 1, num_shards);
    const auto shard = shard_of(tensors, i, num_shards);
    write_safetensors(folder / name, shard);
    for (const StoredTensor& tensor : shard) {
      weight_map[tensor.name] = name;
      bytes += tensor.bytes.size();
    }
  }
  write_json(folder / "model.safetensors.index.json",
             {{"metadata", {{"total_size", bytes}}}, {"weight_map", weight_map}});
}

/// Rows of q or k with those of a rotated pair side by side, as Cohere has them.
Bf16Bits paired_rows(const Bf16Bits& bits, int64_t rows, int64_t head_dim) {
  const auto row_size = static_cast<ptrdiff_t>(bits.size()) / rows;
  Bf16Bits paired;
  for (int64_t row = 0; row < rows; ++row) {
    const int64_t dim = row % head_dim;
    const auto from = bits.begin() + (row - dim + dim % 2 * (head_dim / 2) + dim / 2) * row_size;
    paired.insert(paired.end(), from, from + row_size);
  }
  return paired;
}

}  // namespace

int64_t num_elements(std::span<const int64_t> shape) {
  int64_t product = 1;
  for (const int64_t extent : shape) product *= extent;
  return product;
}

ReferenceWeights random_weights(const ModelFacts& facts, uint64_t seed) {
  ReferenceWeights weights;
  weights.layers.resize(static_cast<size_t>(facts.num_layers));
  for_each_tensor(weights, facts, [&](const std::string& name, const auto& shape, Bf16Bits& bits) {
    if (has_integers(name, facts)) {
      const auto [at, is_new] = weights.integers.emplace(
          name, random_quantized(name, shape[0], shape[1], matrix_bound(name, shape[1]), facts,
                                 seed ^ fnv1a(name)));
      for (int64_t row = 0; row < shape[0]; ++row) {
        for (int64_t column = 0; column < shape[1]; ++column)
          bits.push_back(to_bf16_bits(at->second.weight(row, column)));
      }
      return;
    }
    if (has_mxfp4(name, facts)) {
      bits = random_mxfp4({shape.begin(), shape.end()}, matrix_bound(name, shape[1]) * 2, seed ^ fnv1a(name));
      return;
    }
    const bool is_bias = name.ends_with(".bias") || name.ends_with("_proj_bias");
    const bool is_norm = shape.size() == 1 && !is_bias;
    // In double neither product nor sum is rounded, so that every compiler gets the same bits.
    const bool is_offset = facts.norm_offset != 0 && name.ends_with("norm.weight");
    const double centre = is_norm && !is_offset ? 1.0 : 0.0;
    const double bound = is_norm ? kNormBound : is_bias ? bias_bound(name) : matrix_bound(name, shape[1]);
    const uint64_t tensor_seed = seed ^ fnv1a(name);
    bits.resize(static_cast<size_t>(num_elements(shape)));
    for (size_t i = 0; i < bits.size(); ++i) {
      bits[i] = to_bf16_bits(static_cast<float>(centre + bound * random_unit(i, tensor_seed)));
    }
  });
  return weights;
}

ReferenceWeights load_weights(const TensorSource& source, const ModelFacts& facts) {
  ReferenceWeights weights;
  weights.layers.resize(static_cast<size_t>(facts.num_layers));
  for_each_tensor(weights, facts, [&](const std::string& name, const auto& shape, Bf16Bits& bits) {
    const Tensor* found = source.find(name);
    std::vector<float> floats;
    if (found == nullptr && shape.size() == 2) floats = gptq_weights(source, name, shape[0], shape[1]);
    if (found != nullptr && found->dtype == DType::kF32) {
      const Tensor& tensor = source.require(name, DType::kF32, shape);
      floats.resize(tensor.data.size() / sizeof(float));
      std::memcpy(floats.data(), tensor.data.data(), tensor.data.size());
    }
    if (!floats.empty()) {
      std::transform(floats.begin(), floats.end(), std::back_inserter(bits), to_bf16_bits);
      weights.floats.emplace(name, std::move(floats));
      return;
    }
    const Tensor& tensor = source.require(name, DType::kBF16, shape);
    bits.resize(tensor.data.size() / sizeof(uint16_t));
    std::memcpy(bits.data(), tensor.data.data(), tensor.data.size());
  });
  return weights;
}

void write_hf_folder(const ReferenceWeights& weights, const ModelFacts& facts, const fs::path& folder,
                     int num_shards) {
  std::vector<StoredTensor> tensors;
  for_each_tensor(weights, facts, [&](const std::string& name, auto shape, const Bf16Bits& bits) {
    if (bits.size() != static_cast<size_t>(num_elements(shape))) {
      throw std::invalid_argument(name + ": size differs from the facts");
    }
    if (const auto found = weights.integers.find(name); found != weights.integers.end()) {
      for (StoredTensor& tensor :
           found->second.is_e4m3 ? fp8_tensors(name, found->second) : gptq_tensors(name, found->second))
        tensors.push_back(std::move(tensor));
      return;
    }
    if (has_mxfp4(name, facts)) {
      for (StoredTensor& tensor : mxfp4_tensors(name, {shape.begin(), shape.end()}, bits))
        tensors.push_back(std::move(tensor));
      return;
    }
    const bool is_rotated = name.ends_with("q_proj.weight") || name.ends_with("k_proj.weight");
    const bool is_paired = is_rotated && is_parallel(norm_placement(facts));
    const Bf16Bits stored = is_paired ? paired_rows(bits, shape[0], facts.head_dim) : bits;
    const auto* bytes = reinterpret_cast<const uint8_t*>(stored.data());
    tensors.push_back({name, "BF16", shape, {bytes, bytes + stored.size() * sizeof(uint16_t)}});
  });
  if (norm_placement(facts) == NormPlacement::kCentred && facts.norm_bias == 0) name_as_mpt(tensors);
  if (facts.norm_bias != 0 && facts.ffn_bias != 0) name_as_starcoder(tensors);
  if (num_shards < 1 || static_cast<size_t>(num_shards) > tensors.size()) {
    throw std::invalid_argument(
        fmt::format("num_shards: expected 1 to {}, got {}", tensors.size(), num_shards));
  }
  fs::create_directories(folder);
  write_json(folder / "config.json", classic_config(facts));
  write_json(folder / "generation_config.json",
             {{"bos_token_id", kReferenceBosId}, {"eos_token_id", kReferenceEosId}});
  if (num_shards == 1) {
    write_safetensors(folder / "model.safetensors", tensors);
  } else {
    write_shards(folder, tensors, static_cast<size_t>(num_shards));
  }
}

}  // namespace soliton
