// Models for tests as GGUF files, as llama.cpp's converter would write them.
#pragma once

#include <fmt/format.h>

#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <numbers>
#include <string>
#include <vector>

#include "gguf_builder.h"
#include "reference_model.h"
#include "runtime/weights/packing.h"
#include "runtime/weights/quantization/nibbles.h"

namespace soliton {

inline std::string gguf_architecture(const ModelFacts& facts) {
  return facts.num_experts > 0  ? "qwen3moe"
         : facts.head_norm != 0 ? "qwen3"
         : facts.qkv_bias != 0  ? "qwen2"
                                : "llama";
}

/// "blk.0.attn_q.weight" of "model.layers.0.self_attn.q_proj.weight"; of an expert's without its number.
inline std::string gguf_tensor_name(std::string name) {
  const std::vector<std::pair<std::string, std::string>> parts = {{"model.embed_tokens", "token_embd"},
                                                                  {"model.norm", "output_norm"},
                                                                  {"lm_head", "output"},
                                                                  {"model.layers.", "blk."},
                                                                  {"input_layernorm", "attn_norm"},
                                                                  {"post_attention_layernorm", "ffn_norm"},
                                                                  {"self_attn.q_proj", "attn_q"},
                                                                  {"self_attn.k_proj", "attn_k"},
                                                                  {"self_attn.v_proj", "attn_v"},
                                                                  {"self_attn.o_proj", "attn_output"},
                                                                  {"self_attn.q_norm", "attn_q_norm"},
                                                                  {"self_attn.k_norm", "attn_k_norm"},
                                                                  {"mlp.gate_proj", "ffn_gate"},
                                                                  {"mlp.up_proj", "ffn_up"},
                                                                  {"mlp.down_proj", "ffn_down"},
                                                                  {"mlp.gate.", "ffn_gate_inp."}};
  if (const size_t at = name.find("mlp.experts."); at != std::string::npos) {
    const std::string layer = name.substr(name.find('.', at + 12) + 1);  // "gate_proj.weight"
    return gguf_tensor_name(name.substr(0, at)) + "ffn_" + layer.substr(0, layer.find('_')) + "_exps.weight";
  }
  for (const auto& [from, to] : parts) {
    if (const size_t at = name.find(from); at != std::string::npos) name.replace(at, from.size(), to);
  }
  return name;
}

/// Values of bf16 as one of the types of floats.
inline std::string gguf_floats(const Bf16Bits& bits, GgufType type) {
  std::string bytes;
  for (const uint16_t value : bits) {
    const float number = bf16_bits_to_float(value);
    if (type == GgufType::kF32) bytes += bytes_of(number);
    if (type == GgufType::kBF16) bytes += bytes_of(value);
    if (type == GgufType::kF16) bytes += bytes_of(f16_bits(number));
  }
  return bytes;
}

/// Of symmetric integers in groups of 32.
inline std::string gguf_q4_0(const QuantizedMatrix& matrix) {
  std::string bytes;
  for (int64_t first = 0; first < matrix.rows * matrix.columns; first += 32) {
    const uint8_t* const values = &matrix.values[static_cast<size_t>(first)];
    bytes += bytes_of(f16_bits(matrix.scales[static_cast<size_t>(first / 32)]));
    for (int j = 0; j < 16; ++j) bytes += static_cast<char>(values[j] | values[j + 16] << 4);
  }
  return bytes;
}

/// Rows of a rotated pair side by side.
inline std::string paired_rows(const std::string& bytes, int64_t rows, int64_t head_dim) {
  const size_t row_bytes = bytes.size() / static_cast<size_t>(rows);
  std::string paired;
  for (int64_t row = 0; row < rows; ++row) {
    const int64_t in_head = row % head_dim;
    const int64_t from = row - in_head + in_head % 2 * (head_dim / 2) + in_head / 2;
    paired += bytes.substr(static_cast<size_t>(from) * row_bytes, row_bytes);
  }
  return paired;
}

inline void add_gguf_facts(GgufBuilder& builder, const ModelFacts& facts, const std::string& architecture) {
  const std::string prefix = architecture + ".";
  builder.key("general.architecture", architecture)
      .key(prefix + "context_length", facts.max_context)
      .key(prefix + "embedding_length", facts.hidden)
      .key(prefix + "block_count", facts.num_layers)
      .key(prefix + "feed_forward_length", facts.ffn)
      .key(prefix + "attention.head_count", facts.num_heads)
      .key(prefix + "attention.head_count_kv", facts.num_kv_heads)
      .key(prefix + "attention.key_length", facts.head_dim)
      .key(prefix + "attention.layer_norm_rms_epsilon", static_cast<float>(facts.norm_epsilon))
      .key(prefix + "rope.freq_base", static_cast<float>(facts.rope_theta));
  if (facts.num_experts > 0) {
    builder.key(prefix + "expert_count", facts.num_experts)
        .key(prefix + "expert_used_count", facts.experts_per_token)
        .key(prefix + "expert_feed_forward_length", facts.expert_ffn);
  }
  if (facts.rope_kind == RopeKind::kYarn || facts.rope_kind == RopeKind::kLinear) {
    builder.key(prefix + "rope.scaling.type", facts.rope_kind == RopeKind::kYarn ? "yarn" : "linear")
        .key(prefix + "rope.scaling.factor", static_cast<float>(facts.rope_factor));
  }
  if (facts.rope_kind == RopeKind::kYarn)
    builder.key(prefix + "rope.scaling.original_context_length",
                static_cast<int>(facts.rope_original_context));
}

/// What Llama 3.1's converter writes.
inline std::string gguf_llama3_factors(const ModelFacts& facts) {
  std::string bytes;
  for (int pair = 0; pair < facts.head_dim / 2; ++pair) {
    const double length = 2 * std::numbers::pi * std::pow(facts.rope_theta, 2.0 * pair / facts.head_dim);
    const double original = facts.rope_original_context;
    const double smooth = (original / length - 1) / 3;
    const double value = length < original / 4 ? 1
                         : length > original   ? facts.rope_factor
                                               : 1 / ((1 - smooth) / facts.rope_factor + smooth);
    bytes += bytes_of(static_cast<float>(value));
  }
  return bytes;
}

/// All of a model but its tokenizer. Integers become Q4_0, norms and biases F32, and other tensors `type`. As "phi3", q, k and
/// v are joined, and gate and up.
inline GgufBuilder gguf_model(const ReferenceWeights& weights, const ModelFacts& facts, GgufType type,
                              const std::string& architecture) {
  GgufBuilder builder;
  add_gguf_facts(builder, facts, architecture);
  struct Joined {
    GgufType type;
    std::vector<int64_t> shape;
    std::string bytes;
    int64_t count = 0;  // of experts
  };
  std::map<std::string, Joined> all;
  for_each_tensor(
      weights, facts, [&](const std::string& name, const std::vector<int64_t>& shape, const Bf16Bits& bits) {
        const auto integers = weights.integers.find(name);
        const bool is_vector = shape.size() == 1;
        Joined tensor{is_vector                            ? GgufType::kF32
                      : integers == weights.integers.end() ? type
                                                           : GgufType::kQ4_0,
                      shape,
                      {}};
        tensor.bytes =
            tensor.type == GgufType::kQ4_0 ? gguf_q4_0(integers->second) : gguf_floats(bits, tensor.type);
        const bool is_rotated = name.ends_with("q_proj.weight") || name.ends_with("k_proj.weight");
        if (architecture == "llama" && is_rotated)
          tensor.bytes = paired_rows(tensor.bytes, shape[0], facts.head_dim);
        std::string to = gguf_tensor_name(name);
        if (architecture == "phi3") {
          for (const char* part : {"attn_q.", "attn_k.", "attn_v."}) {
            if (const size_t at = to.find(part); at != std::string::npos) to.replace(at, 7, "attn_qkv.");
          }
          if (const size_t at = to.find("ffn_gate."); at != std::string::npos) to.replace(at, 9, "ffn_up.");
        }
        const auto [at, is_new] = all.emplace(to, tensor);
        if (to.ends_with("_exps.weight")) ++at->second.count;
        if (is_new) return;
        if (at->second.count == 0) at->second.shape[0] += shape[0];
        at->second.bytes += tensor.bytes;
      });
  for (auto& [name, tensor] : all) {
    if (tensor.count > 0) tensor.shape.insert(tensor.shape.begin(), tensor.count);
    builder.tensor(name, tensor.type, tensor.shape, tensor.bytes);
  }
  if (facts.rope_kind == RopeKind::kLlama3)
    builder.tensor("rope_freqs.weight", GgufType::kF32, {facts.head_dim / 2}, gguf_llama3_factors(facts));
  return builder;
}

/// Adds what a folder's tokenizer.json says of a byte-level tokenizer.
inline void add_gguf_tokenizer(GgufBuilder& builder, const std::filesystem::path& file,
                               const std::string& pre) {
  std::ifstream stream(file);
  const nlohmann::json document = nlohmann::json::parse(stream);
  std::map<int, std::pair<std::string, int>> tokens;
  for (const auto& [text, id] : document["model"]["vocab"].items()) tokens[id] = {text, 1};
  for (const auto& token : document["added_tokens"])
    tokens[token["id"]] = {token["content"], token["special"] ? 3 : 4};
  std::vector<std::string> texts;
  std::vector<int32_t> types;
  for (const auto& [id, token] : tokens) {
    texts.push_back(token.first);
    types.push_back(token.second);
  }
  std::vector<std::string> merges;
  for (const auto& merge : document["model"]["merges"])
    merges.push_back(merge.is_string()
                         ? merge.get<std::string>()
                         : fmt::format("{} {}", merge[0].get<std::string>(), merge[1].get<std::string>()));
  builder.key("tokenizer.ggml.model", "gpt2")
      .key("tokenizer.ggml.pre", pre)
      .key("tokenizer.ggml.tokens", texts)
      .key("tokenizer.ggml.token_type", types)
      .key("tokenizer.ggml.merges", merges);
}

}  // namespace soliton
