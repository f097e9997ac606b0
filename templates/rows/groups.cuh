// The groups of a layer's rows (layout/grouped_rows.h), as a CTA holds them in shared memory.
#pragma once

#include "rows/context.cuh"

namespace soliton::rows {

/// An expert with some of its rows.
struct ExpertGroup {
  int expert;
  int first_line;
  int pairs;
  int first_rank;    // of its pairs among all of the expert
  int costs_before;  // of a piece of each of the groups before it
};

template <const KernelPlan& kPlan>
constexpr GroupedRows kGroupedRows = kPlan.grouped();

/// Columns that a line of a group has where experts stand by this axis.
template <const KernelPlan& kPlan>
SOLITON_DEVICE int columns_of_groups(const ExpertPhase& experts) {
  return experts.axis == ExpertAxis::kRows ? kGroupedRows<kPlan>.columns() : kPlan.model.mixture.ffn;
}

/// Of a group of so many lines, pieces of kGroupColumns columns in a chunk of activations.
template <const KernelPlan& kPlan>
SOLITON_DEVICE constexpr int pieces_of_chunk(int width) {
  return kBlockRows<kPlan> / width;
}

/// The phase that puts out what rows choose by.
template <const KernelPlan& kPlan>
consteval Phase router_phase() {
  for (int i = 0; i < kPlan.num_phases; ++i) {
    const Phase& phase = kPlan.phases[i];
    if (phase.kind == PhaseKind::kMatrix && phase.output == OutputKind::kRouter) return phase;
  }
  return {};
}

/// The list of groups, once it is made.
template <const KernelPlan& kPlan>
class GroupList {
  static constexpr int kWords = GroupedRows::kGroupWords;

 public:
  SOLITON_DEVICE explicit GroupList(const Context<kPlan>& context) : words_(context.expert_words(0)) {}

  SOLITON_DEVICE int count() const { return static_cast<int>(load_shared(words_)); }
  SOLITON_DEVICE int costs() const { return static_cast<int>(load_shared(words_ + 1)); }
  SOLITON_DEVICE ExpertGroup operator[](int i) const {
    const auto word = [&](int k) { return static_cast<int>(load_shared(at(i) + k)); };
    return {word(0), word(1), word(2), word(3), word(4)};
  }
  SOLITON_DEVICE int costs_before(int i) const { return static_cast<int>(load_shared(at(i) + kWords - 1)); }
  SOLITON_DEVICE void set_count(int count, int costs) const {
    store_shared(words_, static_cast<uint32_t>(count));
    store_shared(words_ + 1, static_cast<uint32_t>(costs));
  }
  SOLITON_DEVICE void set(int i, const ExpertGroup& group) const {
    uint32_t* at = this->at(i);
    store_shared(at, static_cast<uint32_t>(group.expert));
    store_shared(at + 1, static_cast<uint32_t>(group.first_line));
    store_shared(at + 2, static_cast<uint32_t>(group.pairs));
    store_shared(at + 3, static_cast<uint32_t>(group.first_rank));
    store_shared(at + 4, static_cast<uint32_t>(group.costs_before));
  }

 private:
  SOLITON_DEVICE uint32_t* at(int i) const { return words_ + 2 + i * kWords; }

  uint32_t* words_;
};

/// What a CTA multiplies of a phase of experts: pieces of up to tiles_at_once() tiles of a group, which follow one another. CTAs
/// share them by what they cost: a CTA has those that begin in its part of all costs. All roles walk them alike. One register
/// knows where: those that multiply have no more, nor has the producer, so that what a piece is of is found anew.
template <const KernelPlan& kPlan>
class GroupPieces {
  static constexpr int kTiles = kTilesAtOnce<kPlan>;

 public:
  struct Piece {
    ExpertGroup group;
    int first_tile;  // of the expert's
    int tiles;
    bool begins_group;  // in this CTA
  };

  SOLITON_DEVICE GroupPieces(const Context<kPlan>& context, const ExpertPhase& experts)
      : context_(context), experts_(experts) {
    const GroupList<kPlan> list(context_);
    const int begin = begin_of(context_.cta);
    int number = 0;
    int behind = list.count();
    while (behind - number > 1) {  // the last group that begins there at the latest
      const int middle = (number + behind) / 2;
      (list.costs_before(middle) * of_group() <= begin ? number : behind) = middle;
    }
    const ExpertGroup group = list[number];
    set(number, ceil_divide(begin - group.costs_before * of_group(), cost_of(group)), kFirst);
  }

  SOLITON_DEVICE bool at_end() const {
    const GroupList<kPlan> list(context_);
    if (number() == list.count()) return true;
    const ExpertGroup group = list[number()];
    return group.costs_before * of_group() + piece() * cost_of(group) >= begin_of(context_.cta + 1);
  }
  SOLITON_DEVICE Piece operator*() const {
    const int first_tile = piece() * kTiles;
    const int left = experts_.tiles - first_tile;
    return {GroupList<kPlan>(context_)[number()], first_tile, left < kTiles ? left : kTiles,
            piece() == 0 || (place_ & kFirst) != 0};
  }
  SOLITON_DEVICE void next() { set(number(), piece() + 1, 0); }
  /// So that nothing that was found before is kept.
  SOLITON_DEVICE void forget() { place_ = opaque(place_); }

 private:
  static constexpr int kFirst = 1;
  static constexpr int kPieceBits = 16;
  static_assert(kGroupedRows<kPlan>.most_groups() < 1 << (31 - kPieceBits));

  SOLITON_DEVICE int number() const { return place_ >> kPieceBits; }  // of the group
  SOLITON_DEVICE int piece() const { return (place_ & ((1 << kPieceBits) - 1)) >> 1; }
  SOLITON_DEVICE void set(int number, int piece, int first) {
    const bool ends = piece >= of_group();
    place_ = (number + (ends ? 1 : 0)) << kPieceBits | (ends ? 0 : piece) << 1 | first;
  }
  SOLITON_DEVICE int of_group() const { return ceil_divide(experts_.tiles, kTiles); }
  static SOLITON_DEVICE int cost_of(const ExpertGroup& group) {
    return GroupedRows::piece_cost(group_width(group.pairs));
  }
  /// Where this CTA's part of all costs begins.
  SOLITON_DEVICE int begin_of(int cta) const {
    const int64_t all = GroupList<kPlan>(context_).costs() * of_group();
    return static_cast<int>(all * cta / kPlan.num_ctas);
  }

  const Context<kPlan>& context_;
  const ExpertPhase& experts_;
  int place_;
};

}  // namespace soliton::rows
