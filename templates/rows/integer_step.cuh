// Which words of a page of integers belong together.
#pragma once

#include "layout/weight_format.h"
#include "primitives/primitives.h"

namespace soliton::rows {

/// The step of a page of integers that a worker has of one chunk of columns.
template <WeightFormat kFormat>
struct IntegerStep {
  int columns;  // of the page
  int steps;    // of a unit
  int unit;
  int step;
  int offset;  // of its words in the page
  int chunk;   // first column

  /// `steps`: of a unit, whose columns the page may have fewer units of than kUnits.
  SOLITON_DEVICE IntegerStep(int columns, int steps, int chunk, int column_warp)
      : columns(columns), steps(steps), chunk(chunk) {
    const int index = chunk / (kStrips * kStepColumns) + column_warp;
    unit = steps == 4 ? index / 4 : steps == 2 ? index / 2 : index;
    step = index - unit * steps;
    offset = index * kStepBytes;
  }
  /// Has the page so many units?
  SOLITON_DEVICE bool is_there() const { return offset < columns / (kStrips * kStepColumns) * kStepBytes; }
  /// The first of a strip's 32 columns.
  SOLITON_DEVICE int column(int strip) const {
    return ((unit * kStrips + strip) * steps + step) * kStepColumns;
  }
  /// Its block of columns in the chunk.
  SOLITON_DEVICE int block(int strip) const { return (column(strip) - chunk) / kColumnBlock; }

 private:
  static constexpr int kStepBytes = kFormat.step_bytes();
};

}  // namespace soliton::rows
