// Where a page of integers has what, written down apart from those who pack and read it.
#pragma once

#include "layout/weight_format.h"

namespace soliton {

/// Where a page of `columns` columns holds the integer of `row` (0..15) and `column`: `shift` bits up in the
/// 32-bit word at byte `offset`.
struct IntegerPlace {
  int offset = 0;
  int shift = 0;
};
constexpr IntegerPlace integer_place(int columns, int row, int column) {
  const int steps = columns / kMinIntegerColumns;
  const int unit = column / (kStrips * steps * kStepColumns);
  const int strip = column / (steps * kStepColumns) % kStrips;
  const int step = column / kStepColumns % steps;
  const int lane = row % 8 * 4 + column % kStepColumns / 8;
  const int word = column % 8 / 4;
  const int byte = column % 2 * 2 + column % 4 / 2;
  return {(unit * steps + step) * kStepBytes + lane * 16 + strip * 8 + word * 4, byte * 8 + row / 8 * 4};
}

}  // namespace soliton
