// The timeline of one decoded token, or of a step of several rows, recorded by a kernel compiled with SOLITON_TIMELINE: as a
// table of phases, as a file for Perfetto or chrome://tracing, and as a picture.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "layout/library.h"
#include "layout/timeline.h"

namespace soliton {

/// Records of one step of a kernel, as Engine::decode() or record_step() returns them, seen from the beginning of the step.
class Timeline {
 public:
  Timeline(const Descriptor& descriptor, int position, std::vector<PhaseRecord> records);

  /// One row a phase, layers averaged: bytes, time from the last output of the phase before to the last of
  /// this one (of several rows: from when the last CTA had ended it), and what that time went into.
  std::string table() const;
  /// One process a CTA, one thread a warp, one event a stretch of time; times in microseconds.
  std::string trace() const;
  /// SVG: which phase each CTA works on when, in two layers from the middle of the step.
  std::string svg() const;

 private:
  struct Row;
  struct RowsRow;

  const PhaseRecord& at(int phase, int cta, int warp) const {
    return records_[timeline_index(phase, cta, warp, num_ctas_, num_warps_)];
  }
  /// Which of KernelPlan::phases a phase of the step is.
  int row_of(int phase) const { return rows_[static_cast<size_t>(phase)]; }
  const char* name(int phase) const {
    return row_of(phase) < 0 ? "embed" : descriptor_.plan->phases[row_of(phase)].name;
  }
  double us(uint32_t time) const;
  int64_t bytes(int phase) const;
  int first_producer() const { return descriptor_.plan->consumer_warps; }
  std::string role(int warp) const;
  int epilogue() const { return num_warps_ - 1; }
  double published(int phase) const;
  double ended(int phase) const;
  void add(int phase, Row& row) const;
  void add(int phase, RowsRow& row) const;
  std::string rows_table() const;
  std::pair<int, int> phases_in_the_middle() const;

  const Descriptor& descriptor_;
  int position_;
  int num_ctas_;
  int num_warps_;
  int num_phases_;
  uint32_t origin_ = 0;  // when the first warp began the step
  std::vector<PhaseRecord> records_;
  std::vector<int> rows_;    // of the step's phases; -1: the embedding
  std::vector<int> layers_;  // likewise
};

}  // namespace soliton
