// Batches of the tiles of experts that a CTA multiplies pair by pair: as many experts at a time as shared memory has room for the
// lines of (layout/expert_pairs.h).
#pragma once

#include "rows/pair_digits.cuh"

namespace soliton::rows {

/// Where lines stand: where chunks of activations are otherwise, or where sums of tiles are, which experts have none of.
enum class LinesPlace : int { kInput, kTiles };

template <const KernelPlan& kPlan>
SOLITON_DEVICE unsigned char* lines_at(const Context<kPlan>& context, LinesPlace place) {
  return place == LinesPlace::kTiles ? context.region(RegionId::kTiles) : context.region(RegionId::kInput);
}

/// Tiles of neighbouring experts, and the pairs of these.
struct Batch {
  int tile = 0;
  int end = 0;
  int slot = 0;  // the first one's expert
  int first_pair = 0;
  int pairs = 0;
  LinesPlace place = LinesPlace::kInput;
  bool gates = false;        // of gate and up?
  bool second_half = false;  // see Context::kExpertHalves

  SOLITON_DEVICE bool is_empty() const { return tile == end; }
};

/// Those of gate and up and behind them those of down, or of down alone. What finds the next one stands there once.
template <const KernelPlan& kPlan>
class Batches {
  using Slot = ExpertSlot<kPlan>;
  static constexpr int kFfn = kPlan.model.mixture.ffn;
  static constexpr int room(int bytes, int columns) { return bytes / kPlan.pair_lines(columns).bytes(); }

 public:
  /// Are lines of gate and up made of the pairs at hand, as those of down?
  static constexpr bool kGathers = gathers_lines(kPlan.rows);
  /// Of gate and up, padded.
  static constexpr int kColumns = [] {
    for (int i = 0; i < kPlan.num_matrices; ++i) {
      if (kPlan.matrices[i].experts.axis == ExpertAxis::kRows) return kPlan.matrices[i].padded_columns;
    }
    return 0;
  }();
  /// Of an expert.
  static constexpr int kGateTiles = kExpertTiles<kPlan, ExpertAxis::kRows>;
  static constexpr int kDownTiles = kExpertTiles<kPlan, ExpertAxis::kColumns>;

  SOLITON_DEVICE Batches(const Context<kPlan>& context, bool gates) : context_(context), gates_(gates) {}

  /// The next one; empty at the end. Of down every other one has its lines where sums of tiles are, if there is room for them.
  SOLITON_DEVICE Batch take() {
    SOLITON_NO_UNROLL
    for (; tile_ == end_; ++half_) {
      if (half_ == Context<kPlan>::kExpertHalves) {
        if (!gates_ || !awaits_pairs(kPlan)) return {};
        gates_ = false;
        half_ = 0;
      }
      tile_ = context_.run(gates_, half_, ExpertsLayout::kTile);
      end_ = context_.run(gates_, half_, ExpertsLayout::kEndTile);
      slot_ = context_.run(gates_, half_, ExpertsLayout::kSlot);
      first_pair_ = context_.run(gates_, half_, ExpertsLayout::kFirstPair);
      end_pair_ = context_.run(gates_, half_, ExpertsLayout::kEndPair);
    }
    Batch batch = {tile_, end_, slot_, first_pair_, end_pair_ - first_pair_};
    batch.gates = gates_;
    batch.second_half = half_ > 1;
    if (kGathers || !gates_) {
      const int of_expert = gates_ ? kGateTiles : kDownTiles;
      int room = gates_ ? kGatesRoom : kInputRoom;
      if (!gates_ && place_ != LinesPlace::kTiles && pairs_of_slots(1) <= kTilesRoom) {
        batch.place = LinesPlace::kTiles;
        room = kTilesRoom;
      }
      if (batch.pairs > room) {
        int slots = 1;
        while (pairs_of_slots(slots + 1) <= room) ++slots;
        batch.pairs = pairs_of_slots(slots);
        slot_ += slots;
        first_pair_ += batch.pairs;
        batch.end = slot_ * of_expert;
      }
    }
    tile_ = batch.end;
    place_ = batch.place;
    return batch;
  }

 private:
  static constexpr int kInputRoom = room(kPlan.input_bytes(), kFfn);
  static constexpr int kGatesRoom = kGathers ? room(kPlan.input_bytes(), kColumns) : 0;
  static constexpr int kTilesRoom = room(kPlan.tile_bytes(), kFfn);

  /// Of the next slots, if there are so many.
  SOLITON_DEVICE int pairs_of_slots(int count) const {
    return Slot(context_, slot_ + count).first_pair() - first_pair_;
  }

  const Context<kPlan>& context_;
  bool gates_;
  int half_ = 0;  // the next one
  // What is left of the last one.
  int tile_ = 0;
  int end_ = 0;
  int slot_ = 0;
  int first_pair_ = 0;
  int end_pair_ = 0;
  LinesPlace place_ = LinesPlace::kInput;  // of the last one
};

}  // namespace soliton::rows
