// The groups of a layer's rows (layout/grouped_rows.h), as a CTA holds them in shared memory.
#pragma once

#include "rows/context.cuh"

namespace soliton::rows {

/// An expert with some of its rows.
struct ExpertGroup {
  int expert;
  int first_line;
  int pairs;
  int first_rank;  // of its pairs among all of the expert
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
  SOLITON_DEVICE ExpertGroup operator[](int i) const {
    const uint32_t* at = words_ + 1 + i * kWords;
    const auto word = [&](int k) { return static_cast<int>(load_shared(at + k)); };
    return {word(0), word(1), word(2), word(3)};
  }
  SOLITON_DEVICE void set_count(int count) const { store_shared(words_, static_cast<uint32_t>(count)); }
  SOLITON_DEVICE void set(int i, const ExpertGroup& group) const {
    uint32_t* at = words_ + 1 + i * kWords;
    store_shared(at, static_cast<uint32_t>(group.expert));
    store_shared(at + 1, static_cast<uint32_t>(group.first_line));
    store_shared(at + 2, static_cast<uint32_t>(group.pairs));
    store_shared(at + 3, static_cast<uint32_t>(group.first_rank));
  }

 private:
  uint32_t* words_;
};

/// What a CTA multiplies of a phase of experts: pieces of up to tiles_at_once() tiles of a group, which follow one another. All
/// roles walk them alike.
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
      : list_(context),
        expert_tiles_(experts.tiles),
        of_group_(ceil_divide(expert_tiles_, kTiles)),
        next_(list_.count() * of_group_ * context.cta / kPlan.num_ctas),
        end_(list_.count() * of_group_ * (context.cta + 1) / kPlan.num_ctas) {
    group_ = next_ / of_group_;
    piece_ = next_ - group_ * of_group_;
  }

  SOLITON_DEVICE bool at_end() const { return next_ >= end_; }
  SOLITON_DEVICE Piece take() {
    const int first_tile = piece_ * kTiles;
    const int left = expert_tiles_ - first_tile;
    const Piece piece = {list_[group_], first_tile, left < kTiles ? left : kTiles, is_first_ || piece_ == 0};
    is_first_ = false;
    ++next_;
    if (++piece_ == of_group_) {
      piece_ = 0;
      ++group_;
    }
    return piece;
  }

 private:
  GroupList<kPlan> list_;
  int expert_tiles_;  // of one expert's matrix
  int of_group_;      // pieces
  int next_;
  int end_;
  int group_;
  int piece_;  // of the group
  bool is_first_ = true;
};

}  // namespace soliton::rows
