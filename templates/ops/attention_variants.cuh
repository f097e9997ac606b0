// The variants of attention, a class each: what a model differs in from softmax(q k^T / sqrt(head_dim)) v over all keys up to
// the query's own. A plan that does not have one says so while it is compiled, and then it costs nothing. ops/README.md says
// how to write a further one.
#pragma once

#include <numbers>

#include "layout/kernel_plan.h"
#include "primitives/primitives.h"

namespace soliton {

/// Of what a score is: query head of the model, and positions of query and key.
struct ScorePlace {
  int head;
  int query;
  int key;
};

/// Softmax before the first key: its maximum, in base 2, and its sum relative to that. Exactly one of the states that are
/// merged in the end begins with it.
struct SoftmaxStart {
  float maximum = -INFINITY;
  float sum = 0.0f;
};

/// What all variants are without what they say themselves. A variant derives from it, sets the flags of what it changes, and
/// has the functions that go with them.
template <const KernelPlan& kPlan>
struct PlainAttention {
  static constexpr bool kHidesKeys = false;      // has it first_key()?
  static constexpr bool kChangesScores = false;  // has it score()?
  static constexpr bool kPlacesScores = false;  // does score() look at the place? Else that is not worked out
  static constexpr bool kStarts = false;        // has it start()?

  /// What scores are multiplied with to become products, in which they are kept until the exponential: where score() adds to a
  /// score, it adds so many times as much.
  static constexpr float kOfScore = std::numbers::log2e_v<float> / kPlan.model.score_scale;

  /// The first position that the query at `query` sees in a layer. Later queries must not see earlier ones, as pages are left
  /// out by the earliest query that reads them.
  static SOLITON_DEVICE int first_key(int /*layer*/, int /*query*/) { return 0; }

  /// What becomes of a score, as a product of query and key whose scaled score it is. Of keys that are not seen too: what is
  /// made of them is not looked at.
  static SOLITON_DEVICE float score(int /*layer*/, float product, const ScorePlace& /*place*/) {
    return product;
  }

  /// Where softmax of a query head of the model starts. `biases`: LaunchParams::layer_biases.
  static SOLITON_DEVICE SoftmaxStart start(int /*layer*/, const float* /*biases*/, int /*head*/) {
    return {};
  }
};

/// Of all layers, in constant memory.
template <const KernelPlan& kPlan, int Layer::*kWidth>
struct LayerWidths {
  int of_layer[kPlan.model.num_layers] = {};
  constexpr LayerWidths() {
    for (int i = 0; i < kPlan.model.num_layers; ++i) of_layer[i] = kPlan.model.layers[i].*kWidth;
  }
};
template <const KernelPlan& kPlan, int Layer::*kWidth>
SOLITON_CONSTANT LayerWidths<kPlan, kWidth> kLayerWidths{};

/// A query sees so many keys, of which its own is the last, in layers that have a window (Mistral, Gemma).
template <const KernelPlan& kPlan>
struct SlidingWindow : PlainAttention<kPlan> {
  static constexpr bool kHidesKeys = kPlan.model.has_windows();
  static SOLITON_DEVICE int first_key(int layer, int query) {
    return first_of_window(query, kLayerWidths<kPlan, &Layer::window>.of_layer[layer]);
  }
};

/// A query sees the keys of its own chunk of the context, in layers that have chunks (Llama 4).
template <const KernelPlan& kPlan>
struct Chunks : PlainAttention<kPlan> {
  static constexpr bool kHidesKeys = kPlan.model.has_chunks();
  static SOLITON_DEVICE int first_key(int layer, int query) {
    return first_of_chunk(query, kLayerWidths<kPlan, &Layer::chunk>.of_layer[layer]);
  }
};

/// A score s becomes cap * tanh(s / cap), where tanh(x) is 1 - 2 / (e^2x + 1) (Gemma 2).
template <const KernelPlan& kPlan>
struct SoftCap : PlainAttention<kPlan> {
  static constexpr bool kChangesScores = kPlan.model.attention.soft_cap != 0;
  static SOLITON_DEVICE float score(int /*layer*/, float product, const ScorePlace& /*place*/) {
    constexpr float kScale = kPlan.model.score_scale;
    constexpr float kCap = kPlan.model.attention.soft_cap * std::numbers::log2e_v<float> / kScale;
    constexpr float kExponent = 2 * kScale / kPlan.model.attention.soft_cap;
    return kCap - divide_fast(2 * kCap, exp2_fast(product * kExponent) + 1.0f);
  }
};

/// A score loses so much for every token that its key is away, by a slope of each head (MPT, BLOOM).
template <const KernelPlan& kPlan>
struct Alibi : PlainAttention<kPlan> {
  static constexpr bool kChangesScores = kPlan.model.attention.alibi != 0;
  static constexpr bool kPlacesScores = kChangesScores;
  static SOLITON_DEVICE float score(int /*layer*/, float product, const ScorePlace& place) {
    constexpr float kAlibi = kPlan.model.attention.alibi;
    const float slope = exp2_fast(-alibi_exponent(place.head, kPlan.model.num_heads, kAlibi));
    return product - slope * static_cast<float>(place.query - place.key) * Alibi::kOfScore;
  }
};

/// Every head has the score of a key without a value, of its weights (gpt-oss).
template <const KernelPlan& kPlan>
struct Sinks : PlainAttention<kPlan> {
  static constexpr bool kStarts = kPlan.model.attention.sinks;
  static SOLITON_DEVICE SoftmaxStart start(int layer, const float* biases, int head) {
    constexpr LayerBiases kBiases = kPlan.model.biases();
    return {load_constant(biases + static_cast<int64_t>(layer) * kBiases.words() + kBiases.sinks() + head),
            1.0f};
  }
};

}  // namespace soliton
