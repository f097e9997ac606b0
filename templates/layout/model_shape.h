// What kernels know of a model: a part of the plan that they are compiled for.
#pragma once

#include "layout/activation.h"
#include "layout/attention_variant.h"
#include "layout/deal.h"
#include "layout/layer_biases.h"
#include "layout/norms.h"
#include "layout/packed_matrix.h"
#include "layout/page.h"
#include "layout/router_scores.h"

namespace soliton {

/// Experts of the layers that are mixtures of them.
struct Mixture {
  int experts = 0;            // that tokens are routed to; 0: there is no such layer
  int chosen = 0;             // of these, by each token
  int ffn = 0;                // elements between gate and down of each
  bool renormalised = false;  // do weights of the chosen add up to 1?
  int shared = 0;             // experts behind those, in memory, that every token goes through
  bool shared_gate = false;   // do they have a logit too, whose sigmoid is their weight? Else it is 1
  RouterScores scores = RouterScores::kSoftmax;
  /// Has each expert a bias? It is added to its sigmoid for the choice alone, or else to its logit. See LaunchParams.
  bool biased = false;
  bool expert_bias = false;  // have gate, up and down of each expert biases? See LayerBiases

  /// A token is multiplied with the shared experts, then with those that it chose.
  SOLITON_HOST_DEVICE constexpr int used() const { return shared + chosen; }
  /// That the router puts out.
  SOLITON_HOST_DEVICE constexpr int logits() const { return experts + (shared_gate ? 1 : 0); }
};

/// Words of a router's logits: whole loads of 4.
SOLITON_HOST_DEVICE constexpr int route_words(int num_logits) {
  return round_up(num_logits, 4);
}

struct ModelShape {
  const Layer* layers = nullptr;  // [num_layers], and what stands once
  int num_layers = 0;
  int num_heads = 0;
  int num_kv_heads = 0;
  int head_dim = 0;
  int kv_parts = 1;      // f16 values that a key or value is the sum of
  bool kv_e4m3 = false;  // is the cache of bytes? See KvShape
  int hidden = 0;
  bool qkv_bias = false;
  bool o_bias = false;
  bool head_norm = false;
  bool joint_norm = false;                       // of all heads of q together, and of all of k
  bool head_norm_last = false;                   // are norms' weights applied behind the rotation?
  NormPlacement norms = NormPlacement::kBefore;  // of the residual stream
  bool norm_offset = false;                      // do norms multiply with 1 + their weight?
  int up_biases = 0;                             // of gate and up of a layer, a row each
  bool down_bias = false;                        // has down of such a layer any?
  bool logit_biases = false;                     // have logits any? They lie behind those of all layers
  bool ungated = false;                          // have feed-forward networks no gate?
  bool ordered = false;  // do writers place activations in their reader's order? See layout/order.h
  float norm_epsilon = 0;
  float score_scale = 0;  // 1 / sqrt(head_dim) or what a model has for it, for exponentials in base 2
  float embedding_scale = 1;
  float residual_scale = 1;  // of what a block gives, before it is added to the residual stream
  float logit_scale = 1;
  float logit_soft_cap = 0;  // see AttentionVariant::soft_cap
  int rope_tables = 1;       // of a position, which layers name
  int query_table = 0;       // so many tables behind the one that a layer names is that of its queries
  AttentionVariant attention = {};
  Activation activation = Activation::kSilu;
  Mixture mixture = {};
  float router_scale = 1;      // of the weights of the experts that a token chose
  WeightFormat integers = {};  // of the matrices that are integers; of bf16 if none is
  WeightFormat further = {};   // of those of another type of integers; of bf16 if there are none

  SOLITON_HOST_DEVICE constexpr bool has_windows() const {
    for (int i = 0; i < num_layers; ++i) {
      if (layers[i].window > 0) return true;
    }
    return false;
  }
  SOLITON_HOST_DEVICE constexpr bool has_chunks() const {
    for (int i = 0; i < num_layers; ++i) {
      if (layers[i].chunk > 0) return true;
    }
    return false;
  }
  SOLITON_HOST_DEVICE constexpr int num_window_layers() const {
    int count = 0;
    for (int i = 0; i < num_layers; ++i) count += layers[i].window > 0 ? 1 : 0;
    return count;
  }
  /// Are all layers rotated by the first table?
  SOLITON_HOST_DEVICE constexpr bool rotates_alike() const {
    for (int i = 0; i < num_layers; ++i) {
      if (layers[i].rope != 0) return false;
    }
    return true;
  }
  /// Without what stands once.
  SOLITON_HOST_DEVICE constexpr int num_kinds() const { return layers[num_layers].kind; }
  SOLITON_HOST_DEVICE constexpr KvShape kv() const {
    return {num_layers, num_kv_heads, head_dim, kv_parts, kv_e4m3};
  }
  SOLITON_HOST_DEVICE constexpr int group() const { return num_heads / num_kv_heads; }
  SOLITON_HOST_DEVICE constexpr int qkv_rows() const { return (num_heads + 2 * num_kv_heads) * head_dim; }
  SOLITON_HOST_DEVICE constexpr LayerBiases biases() const {
    const int experts = mixture.expert_bias ? mixture.experts + mixture.shared : 0;
    return {attention.sinks ? num_heads : 0,
            o_bias ? hidden : 0,
            experts * 2 * mixture.ffn + up_biases,
            down_bias ? hidden : experts * hidden,
            further.has_factors() ? kNumFactors : 0,
            further.has_factors() ? (mixture.experts + mixture.shared) * kNumExpertFactors : 0};
  }
  /// Weights of a layer's norms of heads.
  SOLITON_HOST_DEVICE constexpr int head_norm_weights() const {
    return (joint_norm ? rotary_heads() : 2) * head_dim;
  }
  /// How many times four dims a lane has of a head that is normed: the lanes of a warp hold a head, or several.
  SOLITON_HOST_DEVICE constexpr int head_pieces() const { return head_norm && head_dim > 128 ? 2 : 1; }
  /// Heads of q and k, which are rotated.
  SOLITON_HOST_DEVICE constexpr int rotary_heads() const { return num_heads + num_kv_heads; }
  /// Head blocks of one row's attention.
  SOLITON_HOST_DEVICE constexpr int num_blocks() const {
    return num_kv_heads * ceil_divide(group(), kHeadsPerBlock);
  }
};

}  // namespace soliton
