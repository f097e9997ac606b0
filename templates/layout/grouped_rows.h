// Mixtures of experts in kernels whose warpgroups multiply: rows stand side by side in device memory, grouped by the experts
// that they go through, so that each expert is multiplied with its rows as other matrices are with all (a grouped product).
//
// A row with an expert of its choice is a pair. A group is an expert with up to kMostBlockRows of its pairs, in the order of their
// rows; an expert with more of them is several groups, one behind the other, and one without any is none. A pair has a line
// in what its group is multiplied with and puts out; lines that no pair has fill a group up to a width that products have.
//
//   of a group, an activation vector:  [chunk of 64 columns][8 columns, as a core matrix has them][line]{8 bf16}
//   of experts of integers:            the same, but that blocks of 32 columns are in the order of words: of a step of both strips
//   what down puts out:                [tile][line]{16 sums, as threads that finish tiles want them}
#pragma once

#include "layout/activations.h"
#include "layout/model_shape.h"

namespace soliton {

/// Lines of a group: rows of activations of a product.
SOLITON_HOST_DEVICE constexpr int group_width(int pairs) {
  const int step = pairs <= 128 ? 32 : 64;
  return pairs <= 0 ? step : (pairs + step - 1) / step * step;
}

/// Columns of a piece of one line, and of a slot of weights in bf16, which meets two of them.
constexpr int kGroupColumns = 64;
constexpr int kGroupSlotColumns = 2 * kGroupColumns;
/// The same of E2M1 too, of which pieces of tiles of so few columns are slow to copy.
SOLITON_HOST_DEVICE constexpr int group_slot_columns(WeightType type) {
  return type == WeightType::kE2m1 ? kE2m1PaddedColumns : kGroupSlotColumns;
}

/// Integers of these are grouped: of 4 bits in pages as they have been packed.
constexpr bool suits_groups(WeightFormat format) {
  return format.type == WeightType::kInt4 && !format.has_minima && format.block == 0;
}

/// Where a page's units have `steps` steps, the place of a block of 32 columns among those in the order of words.
SOLITON_HOST_DEVICE constexpr int step_place(int block, int steps) {
  const int within = block % (kStrips * steps);
  return block - within + within % steps * kStrips + within / steps;
}

/// Does a kernel of so many rows group them? Fewer have few rows an expert: single warps multiply these.
SOLITON_HOST_DEVICE constexpr bool groups_rows(int rows) {
  return rows >= kMostBlockRows;
}

/// Offsets and sizes of what rows exchange with groups, all in bytes.
struct GroupedRows {
  int rows = 0;
  Mixture mixture = {};
  int hidden = 0;
  WeightFormat integers = {};  // of experts, if these are integers

  /// Columns of a row, with those that fill its last slot of weights: zeros.
  SOLITON_HOST_DEVICE constexpr int columns() const { return round_up(hidden, kGroupSlotColumns); }
  /// Of a slot of integers: those of a unit of a full page. Of others see group_slot_columns().
  SOLITON_HOST_DEVICE constexpr int slot_columns() const { return integers.page_columns() / kUnits; }
  /// Steps of a strip of integers, of the page that has a column of a row. What experts have between gate and down are units of
  /// full pages.
  SOLITON_HOST_DEVICE constexpr int steps_at(int column) const {
    if (hidden % integers.page_columns() == 0) return full_steps();
    return page_of(integers, hidden, column).columns / integers.least_columns();
  }
  SOLITON_HOST_DEVICE constexpr int full_steps() const {
    return integers.page_columns() / integers.least_columns();
  }
  /// The place of a block of 32 columns of a row, and of a column between gate and down.
  SOLITON_HOST_DEVICE constexpr int block_place(int block) const {
    if (!integers.has_scales()) return block;
    return step_place(block, steps_at(block * kColumnBlock));
  }
  SOLITON_HOST_DEVICE constexpr int gated_place(int column) const {
    if (!integers.has_scales()) return column;
    return step_place(column / kColumnBlock, full_steps()) * kColumnBlock + column % kColumnBlock;
  }
  SOLITON_HOST_DEVICE constexpr int pairs() const { return rows * mixture.used(); }
  SOLITON_HOST_DEVICE constexpr int experts() const { return mixture.experts + mixture.shared; }
  SOLITON_HOST_DEVICE constexpr int most_groups() const { return experts() + pairs() / kMostBlockRows; }
  /// Groups of more than 128 pairs have up to 63 lines that nobody has, others up to 31.
  SOLITON_HOST_DEVICE constexpr int most_lines() const {
    const int wide = pairs() / 129 < most_groups() ? pairs() / 129 : most_groups();
    return round_up(pairs() + 31 * most_groups() + 32 * wide, 32);
  }

  // What a row has chosen: of every row and each of its experts the number, then of all the weight, then the line.
  SOLITON_HOST_DEVICE constexpr int64_t weights_offset() const { return int64_t{4} * pairs(); }
  SOLITON_HOST_DEVICE constexpr int64_t lines_offset() const { return int64_t{8} * pairs(); }
  SOLITON_HOST_DEVICE constexpr int64_t choices_bytes() const { return int64_t{12} * pairs(); }

  // Rows as groups have them: activations; then of every line the factor of its row's norm.
  SOLITON_HOST_DEVICE constexpr int64_t factors_offset() const {
    return int64_t{2} * columns() * most_lines();
  }
  SOLITON_HOST_DEVICE constexpr int64_t grouped_bytes() const {
    return factors_offset() + int64_t{4} * most_lines();
  }
  SOLITON_HOST_DEVICE constexpr int64_t gated_bytes() const {
    return int64_t{2} * mixture.ffn * most_lines();
  }
  SOLITON_HOST_DEVICE constexpr int64_t outputs_bytes() const { return int64_t{4} * hidden * most_lines(); }

  /// Of an activation vector of `columns` columns, where a group begins, and of an element behind that, whose column is its place.
  static SOLITON_HOST_DEVICE constexpr int64_t group_offset(int columns, int first_line) {
    return int64_t{2} * columns * first_line;
  }
  static SOLITON_HOST_DEVICE constexpr int element_offset(int width, int line, int column) {
    const int block = column / kColumnBlock * 4 + column % 8 / 2;  // as activation_offset() has them
    const int place = column % kColumnBlock / 8 * 2 + column % 2;
    return (block * width + line) * 16 + place * 2;
  }

  /// What it takes to multiply a piece of an expert's tiles by so many lines: weights that come as fast as memory is, and beside
  /// them products. An estimate: with it CTAs still end apart where rows choose unevenly. Weights that become bf16 ask for no
  /// other: with 3 instead of 8, 1024 rows of gpt-oss would take 6% longer, of Qwen3-30B-A3B in 4 bits 5%.
  static SOLITON_HOST_DEVICE constexpr int piece_cost(int width) { return 8 + width / 32; }

  // The list of groups, which every CTA makes: words in shared memory. How many there are, and what a piece of each of them costs
  // in all; then of each group its expert, its first line, its pairs, the first of these among all of the expert, and what a piece
  // of each of those before it costs.
  static constexpr int kGroupWords = 5;
  SOLITON_HOST_DEVICE constexpr int list_bytes() const {
    return mixture.experts == 0 ? 0 : 4 * (2 + most_groups() * kGroupWords);
  }
  /// While it is made: of each expert its rows, a bit each, and how many there are.
  SOLITON_HOST_DEVICE constexpr int mask_words() const { return ceil_divide(rows, 32); }
  SOLITON_HOST_DEVICE constexpr int scratch_bytes() const { return 4 * experts() * (mask_words() + 1); }
};

}  // namespace soliton
