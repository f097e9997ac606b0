// Layers that are mixtures of experts: which experts the rows of a step go through, and which rows go through each. Every
// CTA finds out alike, out of the router's logits: its workers choose for some rows each, the first of them makes the list
// of experts that any row has chosen (layout/several_rows.h), and all roles go by that.
//
// Gate and up of an expert are multiplied with its rows alone, side by side as its pairs are; so is down, whose sums are
// then each row's again. What the experts put out lies in memory pair by pair, see expert_input_offset().
#pragma once

#include "ops/experts.cuh"
#include "rows/expert_slot.cuh"
#include "rows/row_logits.cuh"

namespace soliton::rows {

/// Where, among what experts put out, an element of pair `rank` of a slot lies that has `pairs` of them: as
/// activation_offset() has it of so many rows.
template <const KernelPlan& kPlan>
SOLITON_DEVICE int64_t expert_input_offset(int first_pair, int pairs, int part, int rank, int column) {
  constexpr int kParts = kShape<kPlan>.parts;
  const int line = (column / kColumnBlock * kParts + part) * pairs + rank;
  return static_cast<int64_t>(first_pair) * kPlan.pair_bytes() + line * (kColumnBlock * 2) +
         column % kColumnBlock * 2;
}

/// Do all workers multiply the same pairs of an expert, though these are divided as a step's rows are? So few are one half's,
/// and the sums of the other workers lie where the rest would.
template <const KernelPlan& kPlan>
SOLITON_DEVICE bool shares_pairs(const MatrixPhase& phase, int pairs) {
  return kColumnWarps<kPlan> * 2 == kWorkers && !has_scales<kPlan>(phase.format.type) &&
         pairs <= kPlan.rows / 2;
}

/// Workers of all CTAs that put out logits of experts.
template <const KernelPlan& kPlan>
constexpr uint32_t kRouters = router_ctas<kPlan>().count* kShape<kPlan>.finishing_workers();

template <const KernelPlan& kPlan>
class ExpertChooser {
  static constexpr Mixture kMixture = kPlan.model.mixture;
  static constexpr ExpertsLayout kLayout = Context<kPlan>::kExpertsLayout;
  static constexpr int kMaskWords = kLayout.mask_words();
  using Logits = RouterLogits<kMixture.logits()>;

 public:
  SOLITON_DEVICE ExpertChooser(const Context<kPlan>& context, int worker)
      : context_(context), worker_(worker) {}

  /// Chooses the experts of a layer, once all its logits are there. Collective of the workers.
  SOLITON_DEVICE void choose(const Vector& routes, int layer) const {
    RouterBias<kMixture> bias;
    bias.load(context_.params.router_biases, layer, context_.lane);
    if (worker_ < context_.params.tree.num_rows) wait_routes(layer);
    for (int row = worker_; row < context_.params.tree.num_rows; row += kWorkers) pick(routes, row, bias);
    warp_arrive(&context_.barrier(BarrierId::kPicksKnown));
    if (worker_ == 0) {
      const uint32_t before = context_.choices(layer);
      context_.wait(context_.barrier(BarrierId::kPicksKnown), before & 1, WaitKind::kPicksKnown, before);
      // True at once for the first choice. Pairs with the producers' arrival once they need the last one's no more.
      context_.wait(context_.barrier(BarrierId::kExpertsTaken), (before & 1) ^ 1, WaitKind::kExpertsTaken,
                    before);
      warp_sync();
      list_slots();
      list_pairs();
      if constexpr (kPairs<kPlan>) list_runs();
      warp_arrive(&context_.barrier(BarrierId::kExpertsChosen));
    }
    context_.wait_experts(layer);
    warp_sync();
  }

 private:
  SOLITON_DEVICE uint32_t* words(int offset) const { return context_.expert_words(offset); }

  /// Waits for the router's logits of a layer. Pairs with report_routes(). Every lane observes the counter itself, so that its
  /// own later loads are ordered.
  SOLITON_DEVICE void wait_routes(int layer) const {
    const uint32_t target = (context_.choices(layer) + 1) * kRouters<kPlan>;
    Spin spin(context_.bound());
    for (;;) {
      const uint32_t seen = load_arrivals<kPlan>(context_.counter(kRoutesCounterWord));
      if (!warp_any(seen < target)) return;
      spin.pause(context_.site(WaitKind::kCounter, kRoutesCounterWord, target, seen));
    }
  }

  /// What a row goes through.
  SOLITON_DEVICE void pick(const Vector& routes, int row, const RouterBias<kMixture>& bias) const {
    const Logits logits = row_logits(context_, routes, row);
    const ExpertChoice<kMixture> choice(logits, bias, context_.lane);
    const float weight = choice.weight(context_.lane, kPlan.model.router_scale);
    if (context_.lane >= kMixture.used()) return;
    const int place = row * kMixture.used() + context_.lane;
    store_shared(words(kLayout.picks()) + place, static_cast<uint32_t>(choice.expert()));
    store_shared(words(kLayout.pick_weights()) + place, float_bits(weight));
    add_shared(words(kLayout.expert_masks()) + choice.expert() * kMaskWords + row / 32, 1u << row % 32);
  }

  /// Slots of an expert with so many pairs.
  static SOLITON_DEVICE uint32_t slots_for(uint32_t pairs) {
    if constexpr (kLayout.slot_pairs == 0) {
      return pairs == 0 ? 0 : 1;
    } else {
      return (pairs + kLayout.slot_pairs - 1) / kLayout.slot_pairs;
    }
  }
  /// Every lane looks after some neighbouring experts; leaves their masks empty for the next choice.
  SOLITON_DEVICE void list_slots() const {
    constexpr int kExperts = kLayout.stored();
    constexpr int kOwn = ceil_divide(kExperts, kWarpLanes);
    constexpr int kPairBits = 16;
    uint32_t masks[kOwn][kMaskWords];
    uint32_t own = 0;  // slots, and in the upper half pairs
    SOLITON_UNROLL
    for (int i = 0; i < kOwn; ++i) {
      const int expert = context_.lane * kOwn + i;
      uint32_t pairs = 0;
      SOLITON_UNROLL
      for (int word = 0; word < kMaskWords; ++word) {
        uint32_t* mask = words(kLayout.expert_masks()) + expert * kMaskWords + word;
        masks[i][word] = expert < kExperts ? load_shared(mask) : 0;
        if (expert < kExperts) store_shared(mask, 0u);
        pairs += count_bits(masks[i][word]);
      }
      own += slots_for(pairs) | pairs << kPairBits;
    }
    uint32_t end = own;
    for (int delta = 1; delta < kWarpLanes; delta *= 2) {
      const uint32_t before = shuffle(end, (context_.lane - delta) & (kWarpLanes - 1));
      if (context_.lane >= delta) end += before;
    }
    int slot = static_cast<int>((end - own) & ((1u << kPairBits) - 1));
    int pair = static_cast<int>((end - own) >> kPairBits);
    SOLITON_UNROLL
    for (int i = 0; i < kOwn; ++i) {
      uint32_t pairs = 0;
      SOLITON_UNROLL
      for (int word = 0; word < kMaskWords; ++word) pairs += count_bits(masks[i][word]);
      if (pairs == 0) continue;
      const int expert = context_.lane * kOwn + i;
      store_shared(words(kLayout.slots_of()) + expert, static_cast<uint32_t>(slot));
      if constexpr (kLayout.slot_pairs == 0) {
        put_slot(slot, expert, pair, masks[i]);
        ++slot;
      } else {
        static_assert(kMaskWords == 1);
        int first = pair;
        SOLITON_NO_UNROLL
        for (uint32_t left = masks[i][0]; left != 0; ++slot) {
          const uint32_t rest = without_lowest(left, kLayout.slot_pairs);
          const uint32_t taken[1] = {left & ~rest};
          put_slot(slot, expert, first, taken);
          first += count_bits(taken[0]);
          left = rest;
        }
      }
      pair += static_cast<int>(pairs);
    }
    if (context_.lane == kWarpLanes - 1) {
      store_shared(words(kLayout.count()), static_cast<uint32_t>(slot));
      store_shared(words(kLayout.first_pairs()) + slot, static_cast<uint32_t>(pair));
    }
    warp_sync();
  }
  SOLITON_DEVICE void put_slot(int slot, int expert, int first_pair,
                               const uint32_t (&mask)[kMaskWords]) const {
    store_shared(words(kLayout.experts()) + slot, static_cast<uint32_t>(expert));
    store_shared(words(kLayout.first_pairs()) + slot, static_cast<uint32_t>(first_pair));
    SOLITON_UNROLL
    for (int word = 0; word < kMaskWords; ++word)
      store_shared(words(kLayout.masks()) + slot * kMaskWords + word, mask[word]);
  }
  /// A mask without its lowest `count` bits.
  static SOLITON_DEVICE uint32_t without_lowest(uint32_t mask, int count) {
    SOLITON_NO_UNROLL
    for (; count > 0 && mask != 0; --count) mask &= mask - 1;
    return mask;
  }

  SOLITON_DEVICE void list_pairs() const {
    const int count = context_.params.tree.num_rows * kMixture.used();
    SOLITON_NO_UNROLL
    for (int i = context_.lane; i < count; i += kWarpLanes) {
      const int row = i / kMixture.used();
      const int expert = static_cast<int>(load_shared(words(kLayout.picks()) + i));
      const int pair = slot_of_row(context_, expert, row).pair_of(row);
      store_shared(words(kLayout.pair_rows()) + pair, static_cast<uint32_t>(row));
      store_shared(words(kLayout.pair_weights()) + pair, load_shared(words(kLayout.pick_weights()) + i));
    }
  }

  /// What tiles of experts this CTA has, of whole slots of the ring; a lane finds a run.
  SOLITON_DEVICE void list_runs() const {
    constexpr TileRun kLate = router_ctas<kPlan>();
    constexpr int kGateTiles = kExpertTiles<kPlan, ExpertAxis::kRows>;
    constexpr int kDownTiles = kExpertTiles<kPlan, ExpertAxis::kColumns>;
    constexpr int kGateSlots = kSlotTiles<kPlan, ExpertAxis::kRows>;
    constexpr int kDownSlots = kSlotTiles<kPlan, ExpertAxis::kColumns>;
    constexpr int kHalves = Context<kPlan>::kExpertHalves;
    const bool gates = context_.lane < 2;
    const int half = context_.lane % 2;
    const int all = context_.expert_slots();
    const int per = gates ? kGateTiles / kGateSlots : kDownTiles / kDownSlots;
    const int most = all * per / (2 * kPlan.all_ctas());
    const int less = !gates ? 0 : most < kRouterSlots ? most : kRouterSlots;
    TileRun own = deal_neighbours(all * per, kPlan.all_ctas(), context_.global_cta(), kLate, less);
    if constexpr (kHalves > 1) own = deal_half(own, all, ceil_divide(all, 2), per, half != 0);
    if (context_.lane < ExpertsLayout::kRuns && half < kHalves) {
      const int first = own.first * (gates ? kGateSlots : kDownSlots);
      const int end = first + own.count * (gates ? kGateSlots : kDownSlots);
      const auto slot_of = [&](int tile) { return gates ? tile / kGateTiles : tile / kDownTiles; };
      const int slot = slot_of(first);
      const int last = own.count == 0 ? slot : slot_of(end - 1);
      const uint32_t* first_pairs = words(kLayout.first_pairs());
      const auto put = [&](int word, uint32_t value) {
        store_shared(context_.run_word(gates, half, word), value);
      };
      put(ExpertsLayout::kTile, static_cast<uint32_t>(first));
      put(ExpertsLayout::kEndTile, static_cast<uint32_t>(end));
      put(ExpertsLayout::kSlot, static_cast<uint32_t>(slot));
      put(ExpertsLayout::kFirstPair, load_shared(first_pairs + slot));
      put(ExpertsLayout::kEndPair, own.count == 0 ? 0 : load_shared(first_pairs + last + 1));
    }
    warp_sync();
  }

  const Context<kPlan>& context_;
  int worker_;
};

}  // namespace soliton::rows
