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
/// share them by what they cost: a CTA has those that begin in its part of all costs. All roles walk them alike.
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
      : list_(context), experts_(experts) {
    const int all = list_.costs() * of_group();
    const auto begin_of = [&](int cta) {
      return static_cast<int>(static_cast<int64_t>(all) * cta / kPlan.num_ctas);
    };
    const int begin = begin_of(context.cta);
    end_ = begin_of(context.cta + 1);
    int behind = list_.count();
    while (behind - number_ > 1) {  // the last group that begins there at the latest
      const int middle = (number_ + behind) / 2;
      (list_.costs_before(middle) * of_group() <= begin ? number_ : behind) = middle;
    }
    const ExpertGroup group = list_[number_];
    at_ = group.costs_before * of_group();
    const int cost = cost_of(group);
    piece_ = ceil_divide(begin - at_, cost);
    at_ += piece_ * cost;
    pass_end();
  }

  SOLITON_DEVICE bool at_end() const { return at_ >= end_; }
  SOLITON_DEVICE Piece take() {
    const int first_tile = piece_ * kTiles;
    const int left = experts_.tiles - first_tile;
    const Piece piece = {list_[number_], first_tile, left < kTiles ? left : kTiles, is_first_ || piece_ == 0};
    is_first_ = false;
    at_ += cost_of(piece.group);
    ++piece_;
    pass_end();
    return piece;
  }

 private:
  SOLITON_DEVICE int of_group() const { return ceil_divide(experts_.tiles, kTiles); }
  static SOLITON_DEVICE int cost_of(const ExpertGroup& group) {
    return GroupedRows::piece_cost(group_width(group.pairs));
  }
  SOLITON_DEVICE void pass_end() {
    if (piece_ < of_group()) return;
    piece_ = 0;
    ++number_;
  }

  // What can be found anew no register holds: the producer has few.
  GroupList<kPlan> list_;
  const ExpertPhase& experts_;
  int end_;         // of this CTA's costs
  int number_ = 0;  // of the group
  int piece_ = 0;   // of it, the next,
  int at_ = 0;      // and where its costs begin
  bool is_first_ = true;
};

}  // namespace soliton::rows
