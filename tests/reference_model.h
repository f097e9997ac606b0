// The scalar forward pass of a model: the specification that every kernel is held to. Plain loops, one
// token at a time; products are exact and sums run in double, so that only the roundings named in
// ReferenceOptions happen. Shares nothing with templates/ but the facts and the random numbers.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "layout/model_facts.h"
#include "runtime/weights/safetensors.h"
#include "tests/reference_quantized.h"

namespace soliton {

/// Bits of a bf16 matrix, row-major [out][in] as Hugging Face stores it, or of a vector.
using Bf16Bits = std::vector<uint16_t>;

struct ReferenceExpert {
  Bf16Bits gate;  // [expert_ffn][hidden]
  Bf16Bits up;    // [expert_ffn][hidden]
  Bf16Bits down;  // [hidden][expert_ffn]
};

struct ReferenceLayer {
  Bf16Bits attention_norm;            // [hidden]
  Bf16Bits attention_norm_bias = {};  // [hidden]; empty without
  Bf16Bits ffn_norm_bias = {};        // likewise
  Bf16Bits q_bias;                    // [num_heads * head_dim]; empty without biases
  Bf16Bits k_bias;                    // [num_kv_heads * head_dim]
  Bf16Bits v_bias;                    // [num_kv_heads * head_dim]
  Bf16Bits q_norm;                    // [head_dim], or of all heads; empty where they are not normed
  Bf16Bits k_norm;                    // likewise
  Bf16Bits q;                         // [num_heads * head_dim][hidden]
  Bf16Bits k;                         // [num_kv_heads * head_dim][hidden]
  Bf16Bits v;                         // [num_kv_heads * head_dim][hidden]
  Bf16Bits o;                         // [hidden][num_heads * head_dim]
  Bf16Bits o_bias;                    // [hidden]; empty without
  Bf16Bits gate_bias = {};            // [ffn]; the same, as up's and down's are
  Bf16Bits up_bias = {};              // [ffn]
  Bf16Bits down_bias = {};            // [hidden]
  Bf16Bits sinks;                     // [num_heads]; the same
  Bf16Bits block_norm;                // [hidden]: of what attention gives; empty where no norm follows blocks
  Bf16Bits ffn_norm;                  // [hidden]
  Bf16Bits ffn_block_norm;            // [hidden]: of what the feed-forward network gives, likewise
  Bf16Bits gate;                      // [ffn][hidden]; empty where there are experts, as up and down are
  Bf16Bits up;                        // [ffn][hidden]
  Bf16Bits down;                      // [hidden][ffn]
  Bf16Bits router;                    // [num_experts][hidden]
  Bf16Bits router_bias;               // [num_experts]; empty without
  Bf16Bits shared_gate;               // [1][hidden]; the same
  ReferenceExpert shared = {};        // of all shared experts together
  std::vector<ReferenceExpert> experts = {};
  // gpt-oss's, in place of those.
  Bf16Bits gate_up_proj = {};       // [num_experts][hidden][2 expert_ffn]: gate and up in turn
  Bf16Bits gate_up_proj_bias = {};  // [num_experts][2 expert_ffn]
  Bf16Bits down_proj = {};          // [num_experts][expert_ffn][hidden]
  Bf16Bits down_proj_bias = {};     // [num_experts][hidden]
};

struct ReferenceWeights {
  Bf16Bits embedding;  // [vocabulary][hidden]
  std::vector<ReferenceLayer> layers;
  Bf16Bits final_norm;                               // [hidden]
  Bf16Bits final_norm_bias;                          // [hidden]; empty without
  Bf16Bits lm_head;                                  // [vocabulary][hidden]; empty if tied
  std::map<std::string, QuantizedMatrix> integers;   // of which tensors above are the exact products, by name
  std::map<std::string, std::vector<float>> floats;  // by name, of tensors above that are rounded from them
};

/// Calls visit(name, shape, bits) for every tensor that facts ask for: its Hugging Face name, its shape as
/// std::vector<int64_t>, and its array in `weights`, whatever that holds. Needs weights.layers at full
/// length.
template <class Weights, class Visitor>
void for_each_tensor(Weights& weights, const ModelFacts& facts, Visitor&& visit) {
  using Shape = std::vector<int64_t>;
  const int64_t hidden = facts.hidden;
  const int64_t q_rows = int64_t{facts.num_heads} * facts.head_dim;
  const int64_t kv_rows = int64_t{facts.num_kv_heads} * facts.head_dim;
  visit(std::string("model.embed_tokens.weight"), Shape{facts.vocabulary, hidden}, weights.embedding);
  for (int32_t i = 0; i < facts.num_layers; ++i) {
    auto& layer = weights.layers.at(static_cast<size_t>(i));
    const int64_t ffn = ffn_of_layer(facts, i);
    const std::string prefix = "model.layers." + std::to_string(i) + ".";
    const NormPlacement norms = norm_placement(facts);
    if (norms_before(norms)) visit(prefix + "input_layernorm.weight", Shape{hidden}, layer.attention_norm);
    if (facts.norm_bias != 0) {
      visit(prefix + "input_layernorm.bias", Shape{hidden}, layer.attention_norm_bias);
      if (!is_parallel(norms))
        visit(prefix + "post_attention_layernorm.bias", Shape{hidden}, layer.ffn_norm_bias);
    }
    visit(prefix + "self_attn.q_proj.weight", Shape{q_rows, hidden}, layer.q);
    visit(prefix + "self_attn.k_proj.weight", Shape{kv_rows, hidden}, layer.k);
    visit(prefix + "self_attn.v_proj.weight", Shape{kv_rows, hidden}, layer.v);
    if (facts.qkv_bias != 0) {
      visit(prefix + "self_attn.q_proj.bias", Shape{q_rows}, layer.q_bias);
      visit(prefix + "self_attn.k_proj.bias", Shape{kv_rows}, layer.k_bias);
      visit(prefix + "self_attn.v_proj.bias", Shape{kv_rows}, layer.v_bias);
    }
    if (facts.head_norm != 0) {
      const bool is_joint = facts.joint_norm != 0;
      const bool is_last = facts.head_norm_last != 0;  // Hunyuan's
      visit(prefix + (is_last ? "self_attn.query_layernorm.weight" : "self_attn.q_norm.weight"),
            Shape{is_joint ? q_rows : facts.head_dim}, layer.q_norm);
      visit(prefix + (is_last ? "self_attn.key_layernorm.weight" : "self_attn.k_norm.weight"),
            Shape{is_joint ? kv_rows : facts.head_dim}, layer.k_norm);
    }
    visit(prefix + "self_attn.o_proj.weight", Shape{hidden, q_rows}, layer.o);
    if (facts.o_bias != 0) visit(prefix + "self_attn.o_proj.bias", Shape{hidden}, layer.o_bias);
    if (facts.sinks != 0) visit(prefix + "self_attn.sinks", Shape{facts.num_heads}, layer.sinks);
    if (norms_after(norms)) {
      visit(prefix + "post_attention_layernorm.weight", Shape{hidden}, layer.block_norm);
      if (norms_before(norms))
        visit(prefix + "pre_feedforward_layernorm.weight", Shape{hidden}, layer.ffn_norm);
      visit(prefix + "post_feedforward_layernorm.weight", Shape{hidden}, layer.ffn_block_norm);
    } else if (!is_parallel(norms)) {
      visit(prefix + "post_attention_layernorm.weight", Shape{hidden}, layer.ffn_norm);
    }
    const auto visit_gated = [&](const std::string& at, int64_t width, auto& gated) {
      if (facts.ungated == 0) visit(at + "gate_proj.weight", Shape{width, hidden}, gated.gate);
      visit(at + "up_proj.weight", Shape{width, hidden}, gated.up);
      visit(at + "down_proj.weight", Shape{hidden, width}, gated.down);
    };
    if (ffn != kMixture) {
      visit_gated(prefix + "mlp.", ffn, layer);
      if (facts.ffn_bias != 0) {
        if (facts.ungated == 0) visit(prefix + "mlp.gate_proj.bias", Shape{ffn}, layer.gate_bias);
        visit(prefix + "mlp.up_proj.bias", Shape{ffn}, layer.up_bias);
        visit(prefix + "mlp.down_proj.bias", Shape{hidden}, layer.down_bias);
      }
      continue;
    }
    if (facts.expert_bias != 0) {
      const int64_t width = facts.expert_ffn;
      visit(prefix + "mlp.router.weight", Shape{facts.num_experts, hidden}, layer.router);
      visit(prefix + "mlp.router.bias", Shape{facts.num_experts}, layer.router_bias);
      visit(prefix + "mlp.experts.gate_up_proj", Shape{facts.num_experts, hidden, 2 * width},
            layer.gate_up_proj);
      visit(prefix + "mlp.experts.gate_up_proj_bias", Shape{facts.num_experts, 2 * width},
            layer.gate_up_proj_bias);
      visit(prefix + "mlp.experts.down_proj", Shape{facts.num_experts, width, hidden}, layer.down_proj);
      visit(prefix + "mlp.experts.down_proj_bias", Shape{facts.num_experts, hidden}, layer.down_proj_bias);
      continue;
    }
    visit(prefix + "mlp.gate.weight", Shape{facts.num_experts, hidden}, layer.router);
    if (facts.router_bias != 0)
      visit(prefix + "mlp.gate.e_score_correction_bias", Shape{facts.num_experts}, layer.router_bias);
    if constexpr (!std::is_const_v<Weights>) layer.experts.resize(static_cast<size_t>(facts.num_experts));
    for (size_t expert = 0; expert < layer.experts.size(); ++expert)
      visit_gated(prefix + "mlp.experts." + std::to_string(expert) + ".", facts.expert_ffn,
                  layer.experts[expert]);
    if (facts.shared_experts == 0) continue;
    visit_gated(prefix + (facts.shared_gate != 0 ? "mlp.shared_expert." : "mlp.shared_experts."),
                int64_t{facts.shared_experts} * facts.expert_ffn, layer.shared);
    if (facts.shared_gate != 0)
      visit(prefix + "mlp.shared_expert_gate.weight", Shape{1, hidden}, layer.shared_gate);
  }
  visit(std::string("model.norm.weight"), Shape{hidden}, weights.final_norm);
  if (facts.norm_bias != 0) visit(std::string("model.norm.bias"), Shape{hidden}, weights.final_norm_bias);
  if (!facts.tied_lm_head) {
    visit(std::string("lm_head.weight"), Shape{facts.vocabulary, hidden}, weights.lm_head);
  }
}

/// Weights by layout/random.h, each tensor with its own seed, `seed` xor FNV-1a of its name. Matrices are
/// uniform with variance 1 / columns (2 / columns for q and k, so that attention prefers some tokens), norms
/// and sinks within 1/4 of 1, biases within 1/2 of 0, of gate and up of experts within 8, so that some are clamped; where the facts ask for integers, random_quantized(). Every layer's share of the residual stream is O(1). tests/goldens/make_goldens.py makes
/// the same bits.
ReferenceWeights random_weights(const ModelFacts& facts, uint64_t seed);

/// Copies a checkpoint's tensors: in bf16, in float, or of integers as GPTQ's second format stores them.
/// Throws kMismatch if one is absent, of another type or of another shape.
ReferenceWeights load_weights(const TensorSource& source, const ModelFacts& facts);

// Of the folders that write_hf_folder() makes.
inline constexpr int kReferenceBosId = 0;
inline constexpr int kReferenceEosId = 1;

/// Writes a Hugging Face folder (created if absent): config.json in the classic schema,
/// generation_config.json and model.safetensors, or num_shards shards with their index. No tokenizer. The architecture
/// is gpt-oss's for sinks, Qwen3's mixture for experts, Qwen3's for normed heads, else Qwen2's for biases, else Llama's. Throws std::runtime_error if it can't.
void write_hf_folder(const ReferenceWeights& weights, const ModelFacts& facts,
                     const std::filesystem::path& folder, int num_shards = 1);

struct ReferenceOptions {
  bool round_activations = true;  // to float after every operation; else they stay double
  bool round_cache =
      true;  // K and V to one f16, or two, when cached, as the kernel does; attention reads the cache
};

/// An expert and what its output is multiplied with.
struct RoutedExpert {
  int expert;
  double weight;
};

/// A model with its KV cache. A copy is a fork: it shares the weights and owns its cache.
class ReferenceModel {
 public:
  /// Throws std::invalid_argument if an array's size is not that of the facts.
  ReferenceModel(const ModelFacts& facts, std::shared_ptr<const ReferenceWeights> weights,
                 ReferenceOptions options = {});
  ReferenceModel(const ModelFacts& facts, ReferenceWeights weights, ReferenceOptions options = {});

  /// Logits [vocabulary] after `token` at `position`, which is at most length(). Positions from there on are
  /// forgotten first, so that a caller may go back. Throws std::invalid_argument outside of that.
  std::vector<float> step(int token, int position);

  void reset() { length_ = 0; }
  int length() const { return length_; }  // positions cached
  /// [layer]: where the last step's token went, the best expert first; nowhere in layers without experts.
  const std::vector<std::vector<RoutedExpert>>& routes() const { return routes_; }
  /// Of a cached position, [kv_head][head_dim].
  std::span<const double> keys(int layer, int position) const {
    return row(caches_.at(layer).keys, position);
  }
  std::span<const double> values(int layer, int position) const {
    return row(caches_.at(layer).values, position);
  }

 private:
  using Vector = std::vector<double>;
  struct LayerCache {
    Vector keys;  // [position][kv_head][head_dim]
    Vector values;
  };

  std::span<const double> row(const Vector& cache, int position) const {
    const size_t size = cache.size() / static_cast<size_t>(length_);
    return std::span(cache).subspan(static_cast<size_t>(position) * size, size);
  }
  Vector round(Vector values) const;
  /// Without weights it is none.
  Vector norm(const Vector& x, const Bf16Bits& weight) const;
  /// RMS norm, or LayerNorm.
  Vector norm_stream(Vector x, const Bf16Bits& weight, const Bf16Bits& bias) const;
  /// By the floats that the matrix is rounded from, if there are any.
  Vector multiply(const Bf16Bits& matrix, const Vector& x) const;
  Vector embed(int token) const;
  /// Queries or keys: multiplied, with their bias and norm, if there are any, and rotated.
  Vector project(size_t layer, const Bf16Bits& matrix, const Bf16Bits& bias, const Bf16Bits& norm,
                 const Vector& x, int position) const;
  void add_bias(Vector& values, const Bf16Bits& bias) const;
  void norm_heads(Vector& heads, const Bf16Bits& weight) const;
  void rotate_heads(size_t layer, Vector& heads, int position) const;
  void append(Vector& cache, const Vector& rows, int position) const;
  Vector attention(size_t index, LayerCache& cache, const Vector& x, int position) const;
  Vector feed_forward(size_t index, const Vector& x);
  template <class Gated>
  Vector gated(const Gated& weights, const Vector& x) const;
  Vector mixture(const ReferenceLayer& layer, std::span<const RoutedExpert> route, const Vector& x) const;
  Vector interleaved_expert(const ReferenceLayer& layer, int expert, const Vector& x) const;
  /// What a block gives, normed if there are weights.
  void add(Vector& residual, Vector block, const Bf16Bits& weight) const;

  ModelFacts facts_;
  ReferenceOptions options_;
  std::shared_ptr<const ReferenceWeights> weights_;
  std::map<const Bf16Bits*, const std::vector<float>*> floats_;  // of tensors that are rounded from them
  std::vector<float> frequencies_;                               // [head_dim / 2], radians a position
  std::vector<float> local_frequencies_;                         // likewise; empty without
  std::vector<LayerCache> caches_;
  std::vector<std::vector<RoutedExpert>> routes_;
  int length_ = 0;
};

/// Product of a shape's extents.
int64_t num_elements(std::span<const int64_t> shape);

/// Index of the largest logit, the lowest one on a tie.
int argmax(std::span<const float> logits);

// The steps of the forward pass, for tests of their own.

float round_f16(float value);  // to f16 and back; beyond its range, to the largest value
/// As a cache of 8 bits holds a token's keys or values, which are f16: E4M3, each head's with a power of two.
void round_to_bytes(std::span<double> heads, int head_dim);
uint16_t to_bf16_bits(float value);  // to nearest, ties to even
float from_bf16_bits(uint16_t bits);

/// x / sqrt(mean(x^2) + epsilon) * (offset + weight).
std::vector<double> rms_norm(std::span<const double> x, std::span<const uint16_t> weight, double epsilon,
                             double offset = 0);
/// Inverse frequencies [rotated dims / 2], float operation by float operation as transformers computes them.
std::vector<float> rotary_frequencies(const ModelFacts& facts);
/// Turns the pairs (i, i + frequencies) of one head. The angle is a float product; its cosine and sine are
/// the exact ones rounded to float, times `scale`.
void rotate(std::span<double> head, int position, std::span<const float> frequencies, float scale = 1.0f);
std::vector<double> softmax(std::span<const double> scores);
/// What a score of each head loses for every token that its key is away; zeros without ALiBi.
std::vector<double> alibi_slopes(const ModelFacts& facts);

/// Where a token goes by its logits, of equal scores to the lower expert first. `biases`: of the scores; empty without.
std::vector<RoutedExpert> route(std::span<const double> logits, std::span<const float> biases,
                                const ModelFacts& facts);

}  // namespace soliton
