// Mixtures of experts in kernels of few rows whose experts are integers of 4 bits. A row with an expert of its choice is a pair
// (ExpertsLayout in layout/several_rows.h). Each worker multiplies whole tiles of an expert by its pairs, of which shared memory
// holds the activations as digits, a line each; what down puts out stays pair by pair, and a phase behind it adds it up for
// every row:
//
//   what gate and up put out:  [pair][part]{ffn bf16}
//   what down puts out:        [tile][pair]{16 sums, as threads that finish tiles want them}
#pragma once

#include "layout/model_shape.h"
#include "layout/packed_matrix.h"
#include "layout/weight_format.h"

namespace soliton {

/// Digits of 8 bits of each activation: up to 8 rows are there in two parts, more in one, see RowsPolicy::digits.
SOLITON_HOST_DEVICE constexpr int pair_digits(int rows) {
  return rows <= 8 ? 3 : 2;
}

/// Lines of gate and up that shared memory has room for, beside a ring with a slot for every worker. Of up to 16 rows these are those
/// of all rows; of more those of the pairs at hand, and there an expert with more pairs is several slots.
SOLITON_HOST_DEVICE constexpr int most_pair_lines(int rows) {
  return rows <= 16 ? rows : 12;
}
SOLITON_HOST_DEVICE constexpr bool gathers_lines(int rows) {
  return rows > most_pair_lines(rows);
}

/// Columns of an expert's down that units of a full page are whole with.
constexpr int kPairUnitColumns = 256;

/// Are experts of such formats multiplied pair by pair? `columns`: of the widest of their matrices.
SOLITON_HOST_DEVICE constexpr bool suits_pairs(int rows, WeightFormat format, int columns) {
  return (rows == 8 || rows == 16 || rows == 32) && format.bits() == 4 && format.takes_digits() &&
         !format.has_minima && format.block == 0 && format.group >= kStepColumns &&
         columns <= format.page_columns();
}

/// Does each worker have a unit of every page of dense layers, see rows/unit_multiplier.cuh? Where shared memory has room for what all
/// units of a page meet.
SOLITON_HOST_DEVICE constexpr bool suits_units(int rows) {
  return rows <= 16;
}

/// Columns of the widest page of integers that dense layers have.
SOLITON_HOST_DEVICE constexpr int unit_columns(const PackedMatrix* matrices, int num_matrices) {
  int widest = 0;
  for (int i = 0; i < num_matrices; ++i) {
    if (!matrices[i].format.has_scales() || matrices[i].experts.axis != ExpertAxis::kNone) continue;
    const int columns = page_columns(matrices[i].format, matrices[i].padded_columns);
    widest = columns > widest ? columns : widest;
  }
  return widest;
}

/// The activations of a pair in shared memory: of each step of 32 columns [digit][quad of lanes]{8 bytes}, or where there are two
/// digits, which are columns of a product side by side, of two steps [digit][step][quad]{8 bytes}. Behind them of every set of columns
/// float2{up, sum}, the weight of a unit and what a weight of the format's zero would give (or of 1, where zeros are in the scales).
struct PairLines {
  int columns = 0;
  int set_columns = 0;  // whose products share a scale
  int digits = 0;

  SOLITON_HOST_DEVICE constexpr int digit_offset(int step, int digit) const {
    if (digits == 2) return step / 2 * (4 * kStepColumns) + (digit * 2 + step % 2) * kStepColumns;
    return (step * digits + digit) * kStepColumns;
  }
  SOLITON_HOST_DEVICE constexpr int scales_offset() const { return columns * digits; }
  /// From one line to the next: a quarter of all banks further on, so that lanes that load of eight lines meet no bank twice.
  SOLITON_HOST_DEVICE constexpr int bytes() const {
    return round_up(scales_offset() + columns / set_columns * 8, 128) + 32;
  }
};

/// Shared memory for as many lines as there may be at once, of down, `line`, or of gate and up; or for what all units of a page meet,
/// `unit_bytes` a column.
SOLITON_HOST_DEVICE constexpr int pair_input_bytes(PairLines line, int rows, const PackedMatrix* matrices,
                                                   int num_matrices, int unit_bytes) {
  for (int i = 0; i < num_matrices; ++i) {
    if (matrices[i].experts.axis != ExpertAxis::kRows) continue;
    line.columns = matrices[i].padded_columns > line.columns ? matrices[i].padded_columns : line.columns;
  }
  const int lines = most_pair_lines(rows) * line.bytes();
  const int units = unit_columns(matrices, num_matrices) * unit_bytes;
  return lines > units ? lines : units;
}

}  // namespace soliton
