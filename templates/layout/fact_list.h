// Every fact of a model by its name, for who reads, writes, compares or hashes them all.
#pragma once

#include <cstdint>

#include "layout/model_facts.h"

namespace soliton {

/// Calls visit(name, value) for every fact but the lists of layers, of experts only where there are any, and of what few
/// models have only where it is so, in a fixed order; names are those of models/*.yaml.
template <class Facts, class Visitor>
constexpr void for_each_fact(Facts& facts, Visitor&& visit) {
  visit("hidden", facts.hidden);
  visit("ffn", facts.ffn);
  visit("num_layers", facts.num_layers);
  visit("num_heads", facts.num_heads);
  visit("num_kv_heads", facts.num_kv_heads);
  visit("head_dim", facts.head_dim);
  visit("vocabulary", facts.vocabulary);
  visit("tied_lm_head", facts.tied_lm_head);
  visit("qkv_bias", facts.qkv_bias);
  if (facts.o_bias != 0) visit("o_bias", facts.o_bias);
  visit("head_norm", facts.head_norm);
  if (facts.joint_norm != 0) visit("joint_norm", facts.joint_norm);
  if (facts.head_norm_last != 0) visit("head_norm_last", facts.head_norm_last);
  if (facts.sinks != 0) visit("sinks", facts.sinks);
  if (facts.norms != 0) visit("norms", facts.norms);
  if (facts.norm_offset != 0) visit("norm_offset", facts.norm_offset);
  if (facts.norm_bias != 0) visit("norm_bias", facts.norm_bias);
  if (facts.ffn_bias != 0) visit("ffn_bias", facts.ffn_bias);
  if (facts.ungated != 0) visit("ungated", facts.ungated);
  visit("activation", facts.activation);
  visit("kv_bits", facts.kv_bits);
  visit("max_context", facts.max_context);
  visit("rope_kind", facts.rope_kind);
  visit("rope_original_context", facts.rope_original_context);
  visit("rope_truncate", facts.rope_truncate);
  if (facts.rope_dims != 0) visit("rope_dims", facts.rope_dims);
  visit("weight_bits", facts.weight_bits);
  visit("weight_group", facts.weight_group);
  visit("weight_zeros", facts.weight_zeros);
  visit("weight_order", facts.weight_order);
  if (facts.weight_minima != 0) visit("weight_minima", facts.weight_minima);
  if (facts.weight_block != 0) visit("weight_block", facts.weight_block);
  if (facts.weight_e4m3 != 0) visit("weight_e4m3", facts.weight_e4m3);
  visit("lm_head_bits", facts.lm_head_bits);
  if (facts.further_bits != 0) {
    visit("further_bits", facts.further_bits);
    visit("further_group", facts.further_group);
    if (facts.further_minima != 0) visit("further_minima", facts.further_minima);
    if (facts.further_block != 0) visit("further_block", facts.further_block);
    if (facts.further_e2m1 != 0) visit("further_e2m1", facts.further_e2m1);
  }
  if (facts.num_experts > 0) {
    visit("num_experts", facts.num_experts);
    visit("experts_per_token", facts.experts_per_token);
    visit("expert_ffn", facts.expert_ffn);
    visit("renormalised", facts.renormalised);
    if (facts.shared_experts != 0) visit("shared_experts", facts.shared_experts);
    if (facts.shared_gate != 0) visit("shared_gate", facts.shared_gate);
    if (facts.router_scores != 0) visit("router_scores", facts.router_scores);
    if (facts.router_bias != 0) visit("router_bias", facts.router_bias);
    if (facts.expert_bias != 0) visit("expert_bias", facts.expert_bias);
    if (facts.router_scale != 1.0) visit("router_scale", facts.router_scale);
  }
  visit("norm_epsilon", facts.norm_epsilon);
  if (facts.embedding_scale != 1.0) visit("embedding_scale", facts.embedding_scale);
  if (facts.residual_scale != 1.0) visit("residual_scale", facts.residual_scale);
  if (facts.attention_scale != 0.0) visit("attention_scale", facts.attention_scale);
  if (facts.attention_soft_cap != 0.0) visit("attention_soft_cap", facts.attention_soft_cap);
  if (facts.alibi != 0.0) visit("alibi", facts.alibi);
  if (facts.logit_scale != 1.0) visit("logit_scale", facts.logit_scale);
  if (facts.logit_soft_cap != 0.0) visit("logit_soft_cap", facts.logit_soft_cap);
  visit("rope_theta", facts.rope_theta);
  visit("rope_factor", facts.rope_factor);
  visit("rope_low_freq_factor", facts.rope_low_freq_factor);
  visit("rope_high_freq_factor", facts.rope_high_freq_factor);
  visit("rope_beta_fast", facts.rope_beta_fast);
  visit("rope_beta_slow", facts.rope_beta_slow);
  visit("rope_attention_factor", facts.rope_attention_factor);
  if (facts.rope_local_theta != 0.0) visit("rope_local_theta", facts.rope_local_theta);
  if (facts.query_scale_beta != 0.0) {
    visit("query_scale_beta", facts.query_scale_beta);
    visit("query_scale_context", facts.query_scale_context);
  }
}

/// 64-bit FNV-1a over the bytes of every fact.
inline uint64_t hash_facts(const ModelFacts& facts) {
  uint64_t hash = 14695981039346656037ull;
  const auto add = [&hash](const char*, const auto& value) {
    const auto* bytes = reinterpret_cast<const unsigned char*>(&value);
    for (unsigned i = 0; i < sizeof(value); ++i) hash = (hash ^ bytes[i]) * 1099511628211ull;
  };
  for_each_fact(facts, add);
  if (lists_layers(facts)) add("layer_ffn", facts.layer_ffn);
  if (facts.further_bits != 0) add("layer_further", facts.layer_further);
  if (has_windows(facts)) add("layer_window", facts.layer_window);
  if (has_chunks(facts)) add("layer_chunk", facts.layer_chunk);
  if (lists_ropes(facts)) add("layer_rope", facts.layer_rope);
  if (facts.rope_kind == RopeKind::kLongrope) {
    add("rope_short_factors", facts.rope_short_factors);
    add("rope_long_factors", facts.rope_long_factors);
  }
  return hash;
}

}  // namespace soliton
