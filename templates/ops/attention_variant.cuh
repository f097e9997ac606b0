// What attention of a plan is, as the kernels of one row and of several ask it alike. A variant is a class of a few lines, one of
// ops/attention_variants.cuh; ops/README.md says how to write one.
#pragma once

#include "ops/attention_variants.cuh"

// A kernel may be compiled with a variant of the user's beside the others: -DSOLITON_OWN_VARIANT='"own.cuh"', a file that
// defines soliton::OwnVariant. It has no say in what the host knows of a model.
#ifdef SOLITON_OWN_VARIANT
#include SOLITON_OWN_VARIANT
#else
namespace soliton {
template <const KernelPlan& kPlan>
using OwnVariant = PlainAttention<kPlan>;
}  // namespace soliton
#endif

namespace soliton {

/// Attention of one layer: several variants, one after another.
template <class... Variants>
class VariantsTogether {
 public:
  /// Are there keys that a query does not see, other than those behind it?
  static constexpr bool kHidesKeys = (Variants::kHidesKeys || ...);
  static constexpr bool kChangesScores = (Variants::kChangesScores || ...);
  /// Do scores depend on where they stand?
  static constexpr bool kPlacesScores = (Variants::kPlacesScores || ...);
  static constexpr bool kStarts = (Variants::kStarts || ...);

  SOLITON_DEVICE explicit VariantsTogether(int layer) : layer_(layer) {}

  /// The first position that a query sees: of its path all from there on up to its own.
  SOLITON_DEVICE int first_key(int query) const {
    int first = 0;
    (later_of<Variants>(query, first), ...);
    return first;
  }

  /// What becomes of a product of query and key, before the mask: see PlainAttention::score().
  SOLITON_DEVICE float score(float product, const ScorePlace& place) const {
    (score_by<Variants>(product, place), ...);
    return product;
  }

  /// Of query head `head` of the model. `biases`: LaunchParams::layer_biases. At most one variant starts otherwise.
  SOLITON_DEVICE SoftmaxStart start(const float* biases, int head) const {
    SoftmaxStart start;
    (start_by<Variants>(biases, head, start), ...);
    return start;
  }

 private:
  template <class Each>
  SOLITON_DEVICE void later_of(int query, int& first) const {
    if constexpr (Each::kHidesKeys) {
      const int own = Each::first_key(layer_, query);
      first = own > first ? own : first;
    }
  }
  template <class Each>
  SOLITON_DEVICE void score_by(float& product, const ScorePlace& place) const {
    if constexpr (Each::kChangesScores) product = Each::score(layer_, product, place);
  }
  template <class Each>
  SOLITON_DEVICE void start_by(const float* biases, int head, SoftmaxStart& start) const {
    if constexpr (Each::kStarts) start = Each::start(layer_, biases, head);
  }

  int layer_;
};

/// In the order in which they change scores. A further one is a further name.
template <const KernelPlan& kPlan>
class Variant : public VariantsTogether<SlidingWindow<kPlan>, Chunks<kPlan>, SoftCap<kPlan>, Alibi<kPlan>,
                                        Sinks<kPlan>, OwnVariant<kPlan>> {
 public:
  using VariantsTogether<SlidingWindow<kPlan>, Chunks<kPlan>, SoftCap<kPlan>, Alibi<kPlan>, Sinks<kPlan>,
                         OwnVariant<kPlan>>::VariantsTogether;
  /// Makes scores in base 2 of products.
  static constexpr float kScale = kPlan.model.score_scale;
};

}  // namespace soliton
