// The cells of the race detector, and what a write passes on to those who read it.
#pragma once

#include <algorithm>

#include "primitives/emulation/race_detector.h"

namespace soliton::emulation {

constexpr size_t kCellBytes = 4;
constexpr size_t kBlockBytes = 4096;
constexpr size_t kBlockCells = kBlockBytes / kCellBytes;

struct RaceDetector::Message {
  uint64_t id = 0;                    // see acquire_from()
  SnapshotPointer writes;             // of a relaxed store: F, or null if its thread never fenced,
  SnapshotPointer writes_wide;        // and S for other cards
  int card = 0;                       // of its thread
  SharedClocks made;                  // of a relaxed store: those of its thread, whose `reads` it passes on
  std::unique_ptr<ClockPair> sum;     // of release adds
  std::vector<Write> additions = {};  // the last of each thread, since
  Write base = {-1, 0, Access::kStore};  // this other write

  /// The first write later than the last one of its thread that `known` tells, or null.
  template <class Known>
  const Write* unknown_addition(const Known& known) const {
    const auto is_unknown = [&](const Write& addition) { return addition.epoch > known(addition.thread); };
    const auto found = std::find_if(additions.begin(), additions.end(), is_unknown);
    return found == additions.end() ? nullptr : &*found;
  }
};

/// Visits the cells of aligned bytes in order, until one returns false.
template <class Visit>
bool RaceDetector::for_each_cell(Shadow& shadow, size_t offset, size_t bytes, Visit visit) {
  for (size_t at = offset; at < offset + bytes; at = (at / kCellBytes + 1) * kCellBytes) {
    Cell& cell = block(shadow, at, true).cells[at % kBlockBytes / kCellBytes];
    if (!visit_parts(cell, kCellBytes, at % kCellBytes, bytes, visit)) return false;
  }
  return true;
}

/// Of a cell, or a part of one, of `size` bytes: `bytes` from `at` on, or all.
template <class Visit>
bool RaceDetector::visit_parts(Cell& cell, size_t size, size_t at, size_t bytes, const Visit& visit) {
  if (bytes < size) cell.split();
  if (cell.halves == nullptr) return visit(cell);
  for (size_t half = 0; half < 2; ++half) {
    const bool touched = bytes >= size || half == at * 2 / size;
    if (touched && !visit_parts((*cell.halves)[half], size / 2, at % (size / 2), bytes, visit)) return false;
  }
  return true;
}

}  // namespace soliton::emulation
