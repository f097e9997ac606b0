// Where a page of integers has what, written down apart from those who pack and read it.
#pragma once

#include "layout/weight_format.h"

namespace soliton {

/// Where a page of `columns` columns holds the integer of `row` (0..15) and `column`: `shift` bits up in the
/// 32-bit word at byte `offset`, of integers of `bits` bits, 4 or 8.
struct IntegerPlace {
  int offset = 0;
  int shift = 0;
};
constexpr IntegerPlace integer_place(int bits, int columns, int row, int column) {
  const int steps = columns / kMinIntegerColumns;
  const int unit = column / (kStrips * steps * kStepColumns);
  const int strip = column / (steps * kStepColumns) % kStrips;
  const int step = column / kStepColumns % steps;
  const int lane = row % 8 * 4 + column % kStepColumns / 8;
  const int word = column % 8 / 4;
  const int byte = column % 2 * 2 + column % 4 / 2;
  const int step_begin = (unit * steps + step) * (bits == 4 ? 512 : 1024);
  if (bits == 4) return {step_begin + lane * 16 + word * 8 + strip * 4, byte * 8 + row / 8 * 4};
  return {step_begin + strip * 512 + lane * 16 + (word * 2 + row / 8) * 4, byte * 8};
}

}  // namespace soliton
