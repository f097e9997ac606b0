// The variant of attention that a plan has (layout/attention_variant.h): the mask, what becomes of a score, and where
// softmax starts. The kernels of one row and of several ask it alike.
#pragma once

#include <numbers>

#include "layout/kernel_plan.h"
#include "primitives/primitives.h"

namespace soliton {

/// Of all layers, in constant memory.
template <const KernelPlan& kPlan>
struct AttentionWindows {
  int of_layer[kPlan.model.num_layers] = {};
  constexpr AttentionWindows() {
    for (int i = 0; i < kPlan.model.num_layers; ++i) of_layer[i] = kPlan.model.layers[i].window;
  }
};
template <const KernelPlan& kPlan>
SOLITON_CONSTANT AttentionWindows<kPlan> kAttentionWindows{};

/// Softmax before the first key: its maximum, in base 2, and its sum relative to that. Exactly one of the states that are
/// merged in the end begins with it.
struct SoftmaxStart {
  float maximum = -INFINITY;
  float sum = 0.0f;
};

/// Attention of one layer.
template <const KernelPlan& kPlan>
class Variant {
  static constexpr AttentionVariant kVariant = kPlan.model.attention;

 public:
  static constexpr bool kWindows = kPlan.model.has_windows();
  static constexpr bool kSinks = kVariant.sinks;
  static constexpr bool kCaps = kVariant.soft_cap != 0;
  /// Makes scores in base 2 of products.
  static constexpr float kScale = kPlan.model.score_scale;

  SOLITON_DEVICE explicit Variant(int layer) : layer_(layer) {}

  /// A product of query and key whose scaled score is the capped one. Before the mask: that of a key that is not seen is
  /// minus infinity.
  static SOLITON_DEVICE float capped(float product) {
    if constexpr (!kCaps) {
      return product;
    } else {
      // cap * tanh(s / cap), where tanh(x) is 1 - 2 / (e^2x + 1).
      constexpr float kCap = kVariant.soft_cap * std::numbers::log2e_v<float> / kScale;
      constexpr float kExponent = 2 * kScale / kVariant.soft_cap;
      return kCap - 2 * kCap / (exp2_fast(product * kExponent) + 1.0f);
    }
  }

  SOLITON_DEVICE int window() const {
    if constexpr (kWindows) return kAttentionWindows<kPlan>.of_layer[layer_];
    return 0;
  }
  /// The first position that a query sees: of its path all from there on up to its own.
  SOLITON_DEVICE int first_key(int query) const { return first_seen(query, window()); }

  /// Of query head `head` of the model. `biases`: LaunchParams::layer_biases.
  SOLITON_DEVICE SoftmaxStart start(const float* biases, int head) const {
    if constexpr (kSinks) {
      constexpr LayerBiases kBiases = kPlan.model.biases();
      return {load_constant(biases + static_cast<int64_t>(layer_) * kBiases.words() + kBiases.sinks() + head),
              1.0f};
    }
    return {};
  }

 private:
  int layer_;
};

}  // namespace soliton
