// Merging the partial results of a row, in the order of its path: by all workers of all CTAs. Heads are those of this card.
//
// Partial results say themselves that they have arrived: no phase separates who writes them from who merges them. Every
// word of them is read by one warp, which makes it missing again when it has ended the phase, while it waits for the others.
// That comes before it ends the next phase, and so before the next layer writes it: the grid counters of the phases from
// the next one on are in between.
#pragma once

#include <type_traits>

#include "ops/missing.cuh"
#include "ops/quotient.cuh"
#include "rows/context.cuh"

namespace soliton::rows {

/// A share of the dims of a query head of a row, a unit, while its partial results are merged: by a warp, or by a half of
/// it, so that two units wait for theirs at the same time. Groups of these lanes look after a partial each; in a group each
/// lane has four neighbouring outputs, or four of each of kPieces pieces.
template <const KernelPlan& kPlan>
class HeadMerge {
 public:
  static constexpr int kHeads = kPlan.model.group();
  static constexpr int kHeadDim = kPlan.model.head_dim;
  static constexpr int kShares = kMergeShares<kPlan>;
  static constexpr int kDims = kHeadDim / kShares;
  static constexpr int kGroups = kShares;
  static constexpr int kUnits = kHeadDim <= 128 ? kShape<kPlan>.merged_units : 1;  // of a warp, at once
  static constexpr int kUnitLanes = kWarpLanes / kUnits;
  static constexpr int kLanes = kUnitLanes / kGroups;  // of a group
  static constexpr int kPieces = ceil_divide(kDims, 4 * kLanes);
  /// Partials of a group at once.
  static constexpr int kLoads = kGroups > 1 ? kLanes / 2 : kShape<kPlan>.merge_loads / kPieces;
  static constexpr int kPartials = kLoads * kGroups;  // of all groups
  static constexpr int kWords = tree_partial_words(kHeads, kHeadDim);
  static constexpr bool kPacked = kShape<kPlan>.packs_partials;
  static_assert(!kPacked || kShares == 1);
  using Loaded = std::conditional_t<kPacked, uint2, float4>;  // four outputs
  static_assert(kPartials <= kUnitLanes, "a lane looks after the weight of each");

  /// Of unit `unit` of this card, the same in all lanes of a unit. `own`: of another one's own().
  SOLITON_DEVICE HeadMerge(const Context<kPlan>& context, int unit, int own = -1)
      : context_(context), share_(unit % kShares), own_(own) {
    const int heads = context.card_kv_heads() * kHeads;
    row_ = unit / kShares / heads;
    head_ = unit / kShares % heads;
    partials_ = context.params.partials +
                static_cast<int64_t>(head_ / kHeads) * context.params.tree.partials_per_head * kWords;
  }
  SOLITON_DEVICE int row() const { return row_; }
  /// Where softmax of layer `layer` starts.
  SOLITON_DEVICE void start(int layer) {
    if constexpr (Variant<kPlan>::kStarts) {
      const SoftmaxStart start =
          Variant<kPlan>(layer).start(context_.params.layer_biases, context_.head_of_model(head_));
      maximum_ = start.maximum;
      sum_ = start.sum;
    }
  }
  /// Where the partial lies whose weight this lane looks after, in words, of those that were added last; -1: there is none.
  SOLITON_DEVICE int own() const { return own_; }

  /// Adds up to kPartials partials; everything is on its way at once. `place`: of the partial whose weight this lane looks
  /// after, lane l after the l-th; -1: there is none. They have to be cleared then.
  SOLITON_DEVICE void add(int place) {
    own_ = place < 0 ? -1 : place * kWords;
    const Places places = places_of_group();
    float maximum = -INFINITY;
    float sum = 0.0f;
    const auto load_own = [&] {
      const float* const own = of_share() + own_;
      maximum = load_relaxed(own);
      sum = load_relaxed(own + kHeads);
    };
    if (own_ >= 0) load_own();
    Loaded loaded[kLoads][kPieces] = {};
    on_outputs(places, [&](int k, int p, const Loaded* at) { loaded[k][p] = load_relaxed(at); });
    Spin spin(context_.bound());
    for (;;) {
      bool missing = false;
      if (own_ >= 0 && (is_missing(maximum) || is_missing(sum))) {
        missing = true;
        load_own();
      }
      on_outputs(places, [&](int k, int p, const Loaded* at) {
        if (!is_missing(loaded[k][p])) return;
        missing = true;
        loaded[k][p] = load_relaxed(at);
      });
      if (!warp_any(missing)) break;
      spin.pause(context_.site(WaitKind::kPartial, row_, 0, kMissing));
    }
    const float weight = raise_maximum(maximum, sum);
    SOLITON_UNROLL
    for (int k = 0; k < kLoads; ++k) {
      const float scale = of_lane(weight, k * kGroups + group());
      SOLITON_UNROLL
      for (int p = 0; p < kPieces; ++p) {
        const float4 added = unpacked(loaded[k][p]);
        outputs_[p].x += scale * added.x;
        outputs_[p].y += scale * added.y;
        outputs_[p].z += scale * added.z;
        outputs_[p].w += scale * added.w;
      }
    }
  }
  /// Makes those missing again that were added last: nobody waits for it.
  SOLITON_DEVICE void clear() const {
    const float none = float_from_bits(kMissing);
    if (own_ >= 0) {
      float* const own = of_share() + own_;
      store_relaxed(own, none);
      store_relaxed(own + kHeads, none);
    }
    on_outputs(places_of_group(), [&](int, int, Loaded* at) {
      if constexpr (kPacked) {
        store_relaxed(at, make_uint2(kMissing, kMissing));
      } else {
        store_relaxed(at, make_float4(none, none, none, none));
      }
    });
  }

  /// Writes the outputs, divided by the sum, where the next phase, of layer `layer`, reads them, if this unit is there.
  SOLITON_DEVICE void publish(int layer, bool is_unit) {
    const float scale = quotient<kPlan>(1.0f, sum_);
    SOLITON_UNROLL
    for (int p = 0; p < kPieces; ++p) {
      for (int mask = kLanes; mask < kUnitLanes; mask *= 2) {
        outputs_[p].x += shuffle_xor(outputs_[p].x, mask);
        outputs_[p].y += shuffle_xor(outputs_[p].y, mask);
        outputs_[p].z += shuffle_xor(outputs_[p].z, mask);
        outputs_[p].w += shuffle_xor(outputs_[p].w, mask);
      }
      if (!is_unit || group() != 0 || !is_there(p)) continue;
      const float4 v = make_float4(outputs_[p].x * scale, outputs_[p].y * scale, outputs_[p].z * scale,
                                   outputs_[p].w * scale);
      const int column = context_.head_of_model(head_) * kHeadDim + share_ * kDims + dim(p);
      if constexpr (kPlan.model.ordered) {
        publish_each(v, column, layer);
      } else {
        publish_pairs(v, column);
      }
    }
  }

 private:
  /// This lane, among those of its unit.
  SOLITON_DEVICE int lane() const { return context_.lane % kUnitLanes; }
  SOLITON_DEVICE int group() const { return kGroups == 1 ? 0 : lane() / kLanes; }
  /// `value` of another lane of the unit.
  template <class T>
  SOLITON_DEVICE T of_lane(T value, int lane) const {
    return shuffle(value, kUnits == 1 ? lane : context_.lane / kUnitLanes * kUnitLanes + lane);
  }
  /// The first of this lane's dims of a piece, in the share; neighbours follow, but where outputs are packed as those have
  /// them that write: of 16 dims a lane has two pairs that are 8 apart.
  SOLITON_DEVICE int dim(int piece) const {
    if constexpr (kPacked) return (lane() / 4 + piece * kLanes / 4) * 16 + lane() % 4 * 2;
    return (lane() % kLanes + piece * kLanes) * 4;
  }
  SOLITON_DEVICE bool is_there(int piece) const { return dim(piece) < kDims; }
  static constexpr int kNext = kPacked ? 8 : 2;  // from the first two of a piece's columns to the others

  SOLITON_DEVICE void publish_pairs(float4 v, int column) const {
    constexpr int kParts = kShape<kPlan>.parts;
    constexpr float kScale = kInputScale<kPlan>;
    v = make_float4(v.x * kScale, v.y * kScale, v.z * kScale, v.w * kScale);
    unsigned char* heads = context_.template workspace<unsigned char>(kPlan.heads_out().offset);
    SOLITON_UNROLL
    for (int part = 0; part < kParts; ++part) {
      const uint2 packed = make_uint2(pack_bf16(v.x, v.y), pack_bf16(v.z, v.w));
      unsigned char* to = heads + activation_offset(kShape<kPlan>, part, row_, column);
      if constexpr (kPacked || kShape<kPlan>.warpgroups) {  // two pairs of columns lie apart
        context_.publish(reinterpret_cast<uint32_t*>(to), packed.x);
        context_.publish(
            reinterpret_cast<uint32_t*>(heads + activation_offset(kShape<kPlan>, part, row_, column + kNext)),
            packed.y);
      } else {
        context_.publish(reinterpret_cast<uint2*>(to), packed);
      }
      if (part + 1 == kParts) break;
      v = make_float4(low_part(v.x), low_part(v.y), low_part(v.z), low_part(v.w));
    }
  }
  /// Where the reader has columns in an order of its own.
  SOLITON_DEVICE void publish_each(float4 v, int column, int layer) const {
    const float values[] = {v.x, v.y, v.z, v.w};
    SOLITON_UNROLL
    for (int i = 0; i < 4; ++i) {
      const int place = context_.attention_place(layer, column + i / 2 * kNext + i % 2);
      context_.publish_element(kPlan.heads_out(), row_, place, values[i]);
    }
  }

  /// Maxima and sums of this head for this share's mergers.
  SOLITON_DEVICE float* of_share() const { return partials_ + share_ * 2 * kHeads + head_ % kHeads; }

  /// Where the partials lie whose outputs this lane adds, as own_.
  struct Places {
    int of_load[kLoads];
  };
  SOLITON_DEVICE Places places_of_group() const {
    Places places;
    SOLITON_UNROLL
    for (int k = 0; k < kLoads; ++k) places.of_load[k] = of_lane(own_, k * kGroups + group());
    return places;
  }
  /// visit(load, piece, address) for this lane's outputs of every partial of its group.
  template <class Visit>
  SOLITON_DEVICE void on_outputs(const Places& places, const Visit& visit) const {
    constexpr int kOutputsOfWord = kPacked ? 2 : 1;
    float* const outputs =
        partials_ + tree_partial_outputs(kHeads) +
        (head_ % kHeads * kHeadDim + share_ * kDims + lane() % kLanes * 4) / kOutputsOfWord;
    SOLITON_UNROLL
    for (int k = 0; k < kLoads; ++k) {
      if (places.of_load[k] < 0) continue;
      SOLITON_UNROLL
      for (int p = 0; p < kPieces; ++p) {
        if (is_there(p))
          visit(k, p,
                reinterpret_cast<Loaded*>(outputs + places.of_load[k] + p * kLanes * 4 / kOutputsOfWord));
      }
    }
  }

  static SOLITON_DEVICE float4 unpacked(float4 v) { return v; }
  static SOLITON_DEVICE float4 unpacked(uint2 v) {
    const auto number = [](uint32_t word) { return f16_to_float(static_cast<uint16_t>(word)); };
    return make_float4(number(v.x), number(v.x >> 16), number(v.y), number(v.y >> 16));
  }

  /// Takes this lane's partial into maximum and sum, and rescales the outputs so far; returns the partial's weight.
  SOLITON_DEVICE float raise_maximum(float own_maximum, float own_sum) {
    float most = own_maximum > maximum_ ? own_maximum : maximum_;
    for (int mask = kUnitLanes / 2; mask > 0; mask /= 2) {
      const float other = shuffle_xor(most, mask);
      most = other > most ? other : most;
    }
    const float base = most == -INFINITY ? 0.0f : most;  // nothing seen so far
    const float before = exp2_fast(maximum_ - base);
    const float weight = exp2_fast(own_maximum - base);
    maximum_ = most;
    float added = own_sum * weight;
    for (int mask = kUnitLanes / 2; mask > 0; mask /= 2) added += shuffle_xor(added, mask);
    sum_ = sum_ * before + added;
    SOLITON_UNROLL
    for (int p = 0; p < kPieces; ++p) {
      outputs_[p] = make_float4(outputs_[p].x * before, outputs_[p].y * before, outputs_[p].z * before,
                                outputs_[p].w * before);
    }
    return kPacked ? own_sum * weight : weight;
  }

  const Context<kPlan>& context_;
  int row_;
  int head_;
  int share_;
  float* partials_;  // of the KV head
  int own_;
  float maximum_ = -INFINITY;
  float sum_ = 0.0f;
  float4 outputs_[kPieces] = {};
};

/// Units whose partials have been merged, the last ones of which are not missing again yet: of each lane its own.
struct MergedUnit {
  int unit = -1;  // none
  int own = -1;   // HeadMerge::own()
};
template <const KernelPlan& kPlan>
SOLITON_DEVICE void clear_partials(const Context<kPlan>& context, const MergedUnit& merged) {
  const bool is_there = merged.unit >= 0;
  if (HeadMerge<kPlan>::kUnits == 1 ? is_there : warp_any(is_there))
    HeadMerge<kPlan>(context, is_there ? merged.unit : 0, merged.own).clear();
}

/// Merges units of this card, each a share of a query head of a row: `unit` of this lane's part of the warp; -1: none.
/// `worker` holds the merge list of its first.
template <const KernelPlan& kPlan>
SOLITON_DEVICE MergedUnit merge_units(const Context<kPlan>& context, int unit, int worker, int layer) {
  using Merge = HeadMerge<kPlan>;
  const bool is_there = Merge::kUnits == 1 || unit >= 0;
  Merge merge(context, is_there ? unit : 0);
  merge.start(layer);
  const int row = merge.row();
  const TreeView& tree = context.params.tree;
  const bool is_held = Context<kPlan>::kHoldsMerges && unit == context.first_unit(worker);
  worker = opaque(worker);  // no register holds the address for the launch
  const int count =
      is_held ? load_shared(&context.held_merges().count[worker])
              : load_constant(&tree.rows[row].end_merge) - load_constant(&tree.rows[row].first_merge);
  const int end = is_there ? count : 0;
  const auto goes_on = [&](int first) { return Merge::kUnits == 1 ? first < end : warp_any(first < end); };
  const int lane = context.lane % Merge::kUnitLanes;
  SOLITON_NO_UNROLL
  for (int first = 0; goes_on(first); first += Merge::kPartials) {
    const int i = first + lane;
    TreeMerge at = {.partial = -1};
    if (lane < Merge::kPartials && i < end) at = context.merge(worker, is_held, row, i);
    merge.add(at.first_step <= context.step ? at.partial : -1);
    if (goes_on(first + Merge::kPartials)) merge.clear();
  }
  merge.publish(layer, is_there && (!kPlan.ends_rows() || count > 0));
  return {is_there ? unit : -1, merge.own()};
}

/// Merges all units of a worker, as many at once as a warp takes; returns the last.
template <const KernelPlan& kPlan>
SOLITON_DEVICE MergedUnit merge_all(const Context<kPlan>& context, int worker, int layer) {
  using Merge = HeadMerge<kPlan>;
  constexpr int kStride = Context<kPlan>::kUnitStride;
  const int units = context.num_units();
  MergedUnit last;
  if (kPlan.ends_rows() && context.params.tree.partials_per_head == 0)
    return last;  // attention wrote all itself
  SOLITON_NO_UNROLL
  for (int first = context.first_unit(worker); first < units; first += Merge::kUnits * kStride) {
    clear_partials(context, last);
    const int unit = first + context.lane / Merge::kUnitLanes * kStride;
    last = merge_units(context, unit < units ? unit : -1, worker, layer);
  }
  return last;
}

}  // namespace soliton::rows
