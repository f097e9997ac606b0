// The facts of a model's architecture that a kernel is generated for: shared by generator, kernel descriptor
// and runtime, which refuses to run a kernel on weights with other facts.
#pragma once

#include <cmath>
#include <cstdint>

#include "layout/activation.h"
#include "layout/attention_variant.h"
#include "layout/layer_biases.h"
#include "layout/norms.h"
#include "layout/page.h"
#include "layout/rope.h"
#include "layout/router_scores.h"
#include "layout/weight_format.h"

namespace soliton {

// Of a model whose layers differ so many may be listed, and so many kinds: one row has code for each width of an input.
constexpr int kMostListedLayers = 128;
constexpr int kMostLayerKinds = 4;

struct ModelFacts {
  int32_t hidden = 0;
  int32_t ffn = 0;
  int32_t num_layers = 0;
  int32_t num_heads = 0;
  int32_t num_kv_heads = 0;
  int32_t head_dim = 0;
  int32_t vocabulary = 0;
  int32_t tied_lm_head = 0;    // lm_head shares the embedding's weights
  int32_t qkv_bias = 0;        // the projections to q, k and v add a bias
  int32_t o_bias = 0;          // so does what attention puts out
  int32_t head_norm = 0;       // every head of q and k is RMS-normed before it is rotated
  int32_t joint_norm = 0;      // all heads of q are normed together, and all of k; only with head_norm
  int32_t head_norm_last = 0;  // heads are multiplied with the weights of their norm once they are rotated
  int32_t sinks = 0;           // every head has the score of a key without a value
  int32_t norms = 0;           // of the residual stream, where they stand: a NormPlacement
  int32_t norm_offset = 0;     // all norms multiply with 1 + their weight
  int32_t norm_bias = 0;       // LayerNorms add a bias, which matrices add as biases of their own
  int32_t ffn_bias = 0;        // gate, up and down of layers that are no mixtures add biases
  int32_t ungated = 0;         // feed-forward networks have no gate: up alone is activated
  int32_t activation = 0;      // what gate and up become: an Activation
  int32_t kv_bits = 16;        // of a key or value in the cache: 8 (E4M3), 16 (f16) or 32 (two f16)
  int32_t max_context = 0;     // tokens
  RopeKind rope_kind = RopeKind::kDefault;
  int32_t rope_original_context = 0;  // tokens; llama3, yarn and longrope
  int32_t rope_truncate = 1;          // are the bounds of the ramp whole dims? yarn only
  int32_t rope_dims = 0;              // of a head, the first, that are rotated; 0: all
  int32_t weight_bits = 16;           // of the layers' matrices: 16 (bf16), or 4, 5, 6 or 8 (integers)
  int32_t weight_group = 0;           // columns that share a scale, -1: all; integers only, as all of weights
  int32_t weight_zeros = 0;           // have groups zeros of their own?
  int32_t weight_order = 0;           // do groups take columns in an order of their own?
  int32_t weight_minima = 0;          // have groups minima?
  int32_t weight_block = 0;   // columns of a block, within which scales are integers; 0: there is none
  int32_t weight_e4m3 = 0;    // are weights of 8 bits E4M3 (fp8) with a float for a scale, not integers?
  int32_t lm_head_bits = 16;  // like weight_bits or further_bits; the rest as the others of so many bits
  // Others than the layers' format, of the matrices that layer_further says; 0: there are none. 16: bf16 beside integers.
  int32_t further_bits = 0;
  int32_t further_group = 0;  // of E2M1 16 (NVFP4), or 0 for 32
  int32_t further_minima = 0;
  int32_t further_block = 0;
  int32_t further_e2m1 =
      0;  // are they E2M1, not integers? With a power of two for 32 columns (MXFP4), or NVFP4
  int32_t num_experts = 0;        // of a layer that is a mixture of them; 0: none is
  int32_t experts_per_token = 0;  // that each token goes through
  int32_t expert_ffn = 0;         // like ffn, of one expert
  int32_t renormalised = 0;       // do weights of those that a token goes through add up to 1?
  int32_t shared_experts = 0;     // further ones, that every token goes through
  int32_t shared_gate = 0;        // do they have a weight, the sigmoid of a row of the router? Else it is 1
  int32_t router_scores = 0;      // by which tokens are routed: a RouterScores
  int32_t router_bias = 0;    // has each expert one: of its logit, or of its sigmoid for the choice alone?
  int32_t expert_bias = 0;    // do gate, up and down of each add one?
  double router_scale = 1.0;  // of the weights of those that a token chose
  double norm_epsilon = 1e-5;
  double embedding_scale = 1.0;     // of what the residual stream begins with
  double residual_scale = 1.0;      // of what a block gives, before it is added to the stream
  double attention_scale = 0.0;     // of the products of queries and keys; 0: 1 / sqrt(head_dim)
  double attention_soft_cap = 0.0;  // a score s becomes cap * tanh(s / cap); 0: stays s
  double alibi = 0.0;               // see alibi_exponent(); 0: scores do not depend on distance
  double logit_scale = 1.0;
  double logit_soft_cap = 0.0;  // the same of logits, once they are scaled
  double rope_theta = 10000.0;
  double rope_factor = 1.0;            // all but default
  double rope_low_freq_factor = 1.0;   // llama3 only
  double rope_high_freq_factor = 1.0;  // llama3 only
  double rope_beta_fast = 32.0;        // turns within the original context; yarn only
  double rope_beta_slow = 1.0;         // the same
  double rope_attention_factor = 1.0;  // of cosine and sine; yarn and longrope
  double rope_local_theta =
      0.0;  // of the default kind, in the layers that layer_rope says; 0: there are none
  // Queries of position p are multiplied with 1 + beta * ln(1 + floor(p / query_scale_context)); 0: stay as they are.
  double query_scale_beta = 0.0;
  int32_t query_scale_context = 0;  // tokens
  // Of each layer where they differ, kMixture of one that is a mixture of experts, and ffn is the widest; else zeros.
  int32_t layer_ffn[kMostListedLayers] = {};
  // Of each layer which matrices have further_bits: several of MatrixRole (models/matrix_roles.h).
  int32_t layer_further[kMostListedLayers] = {};
  // Of each layer the keys that a query sees, its own is the last, 0: all; zeros where no layer has a window.
  int32_t layer_window[kMostListedLayers] = {};
  // Of each layer the positions of a chunk, outside of which its queries see nothing, 0: all; zeros where no layer has chunks.
  int32_t layer_chunk[kMostListedLayers] = {};
  // Of each layer by what its heads are rotated: a LayerRope; zeros where all are by the same.
  int32_t layer_rope[kMostListedLayers] = {};
  // What wavelengths of the rotated pairs are multiplied with, of contexts up to rope_original_context and of longer ones;
  // longrope only, else zeros.
  float rope_short_factors[kMostRotatedPairs] = {};
  float rope_long_factors[kMostRotatedPairs] = {};
};

constexpr int32_t kMixture = -1;

/// Experts of a mixture that lie in memory: those that tokens are routed to, then the shared ones.
constexpr int32_t stored_experts(const ModelFacts& facts) {
  return facts.num_experts + facts.shared_experts;
}
/// Experts that a token is multiplied with: the shared ones, then those that it is routed to.
constexpr int32_t used_experts(const ModelFacts& facts) {
  return facts.shared_experts + facts.experts_per_token;
}
/// A logit of each expert that tokens are routed to, and of the shared ones together if these have a gate.
constexpr int32_t router_rows(const ModelFacts& facts) {
  return facts.num_experts + facts.shared_gate;
}

/// Elements between gate and down of an expert as kernels have it: of integers whole units of a page, further ones are zero.
constexpr int32_t expert_width(const ModelFacts& facts) {
  int32_t unit = 1;  // of pages of 4 bits, or of narrower ones: powers of two
  for (const int32_t bits : {facts.weight_bits, facts.further_e2m1 != 0 ? 16 : facts.further_bits}) {
    const WeightFormat format{.type = type_of_bits(bits)};
    const int32_t own = format.has_scales() ? format.page_columns() / kUnits : 1;
    unit = own > unit ? own : unit;
  }
  return round_up(facts.expert_ffn, unit);
}

/// Dims of a head that are rotated, the first: each of the first half of them with one of the second half.
constexpr int32_t rotated_dims(const ModelFacts& facts) {
  return facts.rope_dims > 0 ? facts.rope_dims : facts.head_dim;
}
constexpr int32_t rotated_pairs(const ModelFacts& facts) {
  return rotated_dims(facts) / 2;
}

/// Has every layer a feed-forward network of its own width?
constexpr bool lists_layers(const ModelFacts& facts) {
  return facts.layer_ffn[0] != 0;
}
/// Elements between gate and down; kMixture: of each expert there are expert_ffn.
constexpr int32_t ffn_of_layer(const ModelFacts& facts, int layer) {
  if (lists_layers(facts) && layer < kMostListedLayers) return facts.layer_ffn[layer];
  return facts.num_experts > 0 ? kMixture : facts.ffn;
}

/// Which matrices of a layer have further_bits: several of MatrixRole.
constexpr int32_t further_of_layer(const ModelFacts& facts, int layer) {
  return facts.further_bits != 0 && layer < kMostListedLayers ? facts.layer_further[layer] : 0;
}

/// Of those matrices; bf16 where there are none.
constexpr WeightFormat further_format(const ModelFacts& facts) {
  const WeightType type = facts.further_e2m1 != 0 ? WeightType::kE2m1 : type_of_bits(facts.further_bits);
  if (type == WeightType::kBf16) return {};
  return {.type = type,
          .group = facts.further_group,
          .has_minima = facts.further_minima != 0,
          .block = facts.further_block};
}

/// Have warpgroups code for all formats that a model mixes? They have none for E2M1 beside integers.
constexpr bool suits_warpgroups(const ModelFacts& facts) {
  return facts.further_e2m1 == 0 || facts.weight_bits == 16;
}

/// Has a layer a window of its own?
constexpr bool has_windows(const ModelFacts& facts) {
  for (const int32_t window : facts.layer_window) {
    if (window != 0) return true;
  }
  return false;
}
constexpr int32_t window_of_layer(const ModelFacts& facts, int layer) {
  return layer < kMostListedLayers ? facts.layer_window[layer] : 0;
}
constexpr int32_t longest_window(const ModelFacts& facts) {
  int32_t longest = 0;
  for (const int32_t window : facts.layer_window) longest = window > longest ? window : longest;
  return longest;
}
constexpr int num_window_layers(const ModelFacts& facts) {
  int count = 0;
  for (int layer = 0; layer < facts.num_layers; ++layer) count += window_of_layer(facts, layer) != 0 ? 1 : 0;
  return count;
}

/// Does a layer attend in chunks?
constexpr bool has_chunks(const ModelFacts& facts) {
  for (const int32_t chunk : facts.layer_chunk) {
    if (chunk != 0) return true;
  }
  return false;
}
constexpr int32_t chunk_of_layer(const ModelFacts& facts, int layer) {
  return layer < kMostListedLayers ? facts.layer_chunk[layer] : 0;
}
/// The first position that the query at `position` sees in a layer.
constexpr int32_t first_seen_in_layer(const ModelFacts& facts, int layer, int position) {
  return first_seen(position, window_of_layer(facts, layer), chunk_of_layer(facts, layer));
}

/// Is a layer rotated otherwise than by rope_theta?
constexpr bool lists_ropes(const ModelFacts& facts) {
  for (const int32_t rope : facts.layer_rope) {
    if (rope != kMainRope) return true;
  }
  return false;
}
constexpr int32_t rope_of_layer(const ModelFacts& facts, int layer) {
  return layer < kMostListedLayers ? facts.layer_rope[layer] : kMainRope;
}
/// Are queries rotated by a table of their own, which scales them?
constexpr bool scales_queries(const ModelFacts& facts) {
  return facts.query_scale_beta != 0;
}
/// Tables of rotations that a position has.
constexpr int32_t rope_tables(const ModelFacts& facts) {
  return facts.rope_local_theta != 0 || scales_queries(facts) ? 2 : 1;
}

/// Heads of q and k, which are rotated.
constexpr int32_t rotary_heads(const ModelFacts& facts) {
  return facts.num_heads + facts.num_kv_heads;
}
/// q and k of a row before their heads are normed; if all are normed together, then the sum of squares of each of their tiles.
constexpr int32_t unnormed_words(const ModelFacts& facts) {
  const int32_t rotary = rotary_heads(facts) * facts.head_dim;
  return rotary + (facts.joint_norm != 0 ? rotary / kTileRows : 0);
}
/// What attention reads of a token: q, k and v; if q and k are normed whole, then the sum of squares of each of their tiles.
constexpr int32_t qkv_words(const ModelFacts& facts) {
  return unnormed_words(facts) + facts.num_kv_heads * facts.head_dim;
}
/// Where the norms of the residual stream stand.
constexpr NormPlacement norm_placement(const ModelFacts& facts) {
  return static_cast<NormPlacement>(facts.norms);
}
/// What one row's blocks put out where it is normed before it is added: all of it, then the sum of squares of each tile.
constexpr int32_t block_output_words(const ModelFacts& facts) {
  return facts.hidden + (holds_blocks(norm_placement(facts)) ? facts.hidden / kTileRows : 0);
}
/// Weights of a layer's norms of q and k.
constexpr int32_t head_norm_weights(const ModelFacts& facts) {
  if (facts.head_norm == 0) return 0;
  return (facts.joint_norm != 0 ? rotary_heads(facts) : 2) * facts.head_dim;
}

/// Rows of gate and up, or of up alone, of a layer that is no mixture, if they add biases, be they their own or what the norm's
/// makes of it.
constexpr int32_t up_biases(const ModelFacts& facts) {
  if (facts.norm_bias == 0 && facts.ffn_bias == 0) return 0;
  return facts.ungated != 0 ? facts.ffn : 2 * facts.ffn;
}
/// Do q, k and v add biases, be they their own or what the norm's makes of it?
constexpr bool adds_qkv_biases(const ModelFacts& facts) {
  return facts.qkv_bias != 0 || facts.norm_bias != 0;
}
/// Floats behind those of all layers: biases of logits, of whole tiles.
constexpr int32_t logit_biases(const ModelFacts& facts) {
  return facts.norm_bias == 0 ? 0 : round_up(facts.vocabulary, kTileRows);
}

/// As the kernels' ModelShape has it.
constexpr LayerBiases layer_biases(const ModelFacts& facts) {
  const int32_t experts = facts.expert_bias != 0 ? stored_experts(facts) : 0;
  return {facts.sinks != 0 ? facts.num_heads : 0,
          facts.o_bias != 0 ? facts.hidden : 0,
          experts * 2 * expert_width(facts) + up_biases(facts),
          facts.ffn_bias != 0 ? facts.hidden : experts * facts.hidden,
          further_format(facts).has_factors() ? kNumFactors : 0,
          further_format(facts).has_factors() ? stored_experts(facts) * kNumExpertFactors : 0};
}

/// What scores are multiplied with.
inline double attention_scale(const ModelFacts& facts) {
  return facts.attention_scale != 0 ? facts.attention_scale
                                    : 1 / std::sqrt(static_cast<double>(facts.head_dim));
}

constexpr KvShape kv_shape(const ModelFacts& facts) {
  return {.num_layers = facts.num_layers,
          .num_kv_heads = facts.num_kv_heads,
          .head_dim = facts.head_dim,
          .parts = facts.kv_bits > 16 ? facts.kv_bits / 16 : 1,
          .e4m3 = facts.kv_bits == 8};
}

/// Head dims whose heads a kernel can norm: a power of two of lanes holds a head, four dims each, or of 256 twice four.
constexpr bool can_norm_heads(int head_dim) {
  return head_dim == 64 || head_dim == 128 || head_dim == 256;
}

}  // namespace soliton
