// An expert that some rows of a step go through, and what shared memory has room for of it.
#pragma once

#include "formats/formats.cuh"
#include "rows/context.cuh"

namespace soliton::rows {

/// Columns of `num_rows` gathered rows that a chunk has room for: as many as of all rows, some times over; whole pages if there
/// is room for one.
template <const KernelPlan& kPlan>
SOLITON_DEVICE int gathered_columns(int num_rows) {
  constexpr int kOfAll = kShape<kPlan>.chunk_columns();
  demand(num_rows > 0 && num_rows <= kPlan.rows, "who gathers rows has some, and no more than there are");
  const int columns = kPlan.rows / num_rows * kOfAll;
  return columns < kPageColumns ? columns : columns / kPageColumns * kPageColumns;
}

/// Columns of a slot of an expert with so many pairs, whose weights are no integers: a page's, if a chunk of activations has
/// some times as many; else fewer, so that slots end where chunks do.
template <const KernelPlan& kPlan>
SOLITON_DEVICE int expert_slot_columns(WeightType type, int pairs) {
  const int most = gathered_columns<kPlan>(pairs);
  return with_blocks<kPlan>(type, [&]<WeightFormat kFormat>() {
    int columns = most < kPageColumns ? most : kPageColumns;
    while (columns < kFormat.page_columns() && most % (2 * columns) == 0) columns *= 2;
    return columns;
  });
}

/// An expert that some rows go through, as shared memory has it.
template <const KernelPlan& kPlan>
class ExpertSlot {
  static constexpr ExpertsLayout kLayout = Context<kPlan>::kExpertsLayout;

 public:
  SOLITON_DEVICE ExpertSlot(const Context<kPlan>& context, int slot)
      : words_(context.expert_words(0)), slot_(slot) {}

  /// The expert's.
  SOLITON_DEVICE int number() const { return word(kLayout.experts() + slot_); }
  SOLITON_DEVICE int first_pair() const { return word(kLayout.first_pairs() + slot_); }
  SOLITON_DEVICE int end_pair() const { return word(kLayout.first_pairs() + slot_ + 1); }
  /// Its rows.
  SOLITON_DEVICE int pairs() const { return end_pair() - first_pair(); }
  /// Of the rows from 32 i on a bit each.
  SOLITON_DEVICE uint32_t mask(int i) const {
    return load_shared(words_ + kLayout.masks() + slot_ * kLayout.mask_words() + i);
  }
  SOLITON_DEVICE bool has(int row) const { return (mask(word_of(row)) >> row % 32 & 1) != 0; }
  /// How many of its rows come before this one.
  SOLITON_DEVICE int rank(int row) const {
    int before = count_bits(mask(word_of(row)) & ((1u << row % 32) - 1));
    for (int i = 0; i < word_of(row); ++i) before += count_bits(mask(i));
    return before;
  }
  /// Of a row that the slot has.
  SOLITON_DEVICE int pair_of(int row) const { return first_pair() + rank(row); }
  SOLITON_DEVICE int row_of(int pair) const { return word(kLayout.pair_rows() + pair); }
  SOLITON_DEVICE float weight_of(int pair) const {
    return float_from_bits(load_shared(words_ + kLayout.pair_weights() + pair));
  }

 private:
  /// Of a mask that which has a row's bit.
  static SOLITON_DEVICE int word_of(int row) { return kLayout.mask_words() == 1 ? 0 : row / 32; }
  SOLITON_DEVICE int word(int offset) const { return static_cast<int>(load_shared(words_ + offset)); }

  const uint32_t* words_;
  int slot_;
};

/// The slot with a row's pair of an expert.
template <const KernelPlan& kPlan>
SOLITON_DEVICE ExpertSlot<kPlan> slot_of_row(const Context<kPlan>& context, int expert, int row) {
  constexpr ExpertsLayout kLayout = Context<kPlan>::kExpertsLayout;
  int slot = static_cast<int>(load_shared(context.expert_words(kLayout.slots_of()) + expert));
  if constexpr (kLayout.slot_pairs > 0) {
    while (!ExpertSlot<kPlan>(context, slot).has(row)) ++slot;
  }
  return {context, slot};
}

}  // namespace soliton::rows
