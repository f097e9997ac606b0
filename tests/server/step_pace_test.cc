// How many rows steps may have, on a card that this test makes up.
#include "runtime/server/step_pace.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace soliton {
namespace {

using namespace std::chrono_literals;

constexpr double kMs = 1e-3;

/// Steps of a card that takes a fixed time for the weights, and more for each row and each page that it reads.
class StepPaceTest : public testing::Test {
 protected:
  StepPaceTest() { calibrate(); }

  void calibrate() {
    pace_ = StepPace({8, 32, 64, 128, 256});
    for (const int rows : pace_.kernel_rows()) pace_.calibrate(rows, step_s(rows, 0));
  }
  double step_s(int rows, int depth) const { return slow_ * (4 + rows * (0.02 + depth * per_token_)) * kMs; }
  /// Takes steps as long as the pace allows; returns the rows of the last one, and notes what the longest took.
  int run(int steps, int depth, double max_ms) {
    int rows = 0;
    for (int i = 0; i < steps; ++i) {
      rows = pace_.max_rows(depth, max_ms * kMs, now_);
      const double seconds = step_s(rows, depth);
      longest_ms_ = std::max(longest_ms_, seconds / kMs);
      pace_.took(rows, depth, seconds, now_);
      now_ += 10ms;
    }
    return rows;
  }

  StepPace pace_{{1}};
  StepPace::Clock::time_point now_ = StepPace::Clock::now();
  double slow_ = 1;
  double per_token_ = 1e-6;
  double longest_ms_ = 0;
};

TEST_F(StepPaceTest, TakesTheLargestKernelThatFits) {
  for (const double max_ms : {4.2, 5.0, 5.5, 6.5, 8.0, 11.0}) {
    longest_ms_ = 0;
    const int rows = run(10, 0, max_ms);
    for (const int other : pace_.kernel_rows())
      EXPECT_EQ(other <= rows, other == 8 || step_s(other, 0) <= StepPace::kPlanned * max_ms * kMs) << max_ms;
  }
}

// Behind some thousand tokens: a prompt of which much is cached begins at any depth.
TEST_F(StepPaceTest, TriesDeepStepsFromTheShortestOn) {
  per_token_ = 4e-6;
  for (const double max_ms : {6.0, 9.0, 15.0, 20.0, 40.0, 100.0}) {
    for (const int depth : {20'000, 100'000}) {
      calibrate();
      longest_ms_ = 0;
      const int rows = run(20, depth, max_ms);
      EXPECT_LE(longest_ms_, std::max(max_ms, step_s(8, depth) / kMs)) << max_ms;
      // As far as is known: a kernel of four times the rows, as there is none in between.
      if (rows < 256) {
        EXPECT_GT(4 * step_s(rows, depth), StepPace::kPlanned * max_ms * kMs) << max_ms;
      }
    }
  }
}

TEST_F(StepPaceTest, ShrinksAsPromptsGrowAndForgetsThatForShortOnes) {
  int rows = 256;
  for (int depth = 0; depth < 120'000; depth += 250) {
    const int before = rows;
    rows = run(1, depth, 20);
    EXPECT_LE(rows, before);
  }
  EXPECT_LT(rows, 256);
  EXPECT_LE(longest_ms_, 20);
  EXPECT_EQ(run(1, 0, 20), 256);  // at once
}

TEST_F(StepPaceTest, AHiccupDoesNoHarm) {
  EXPECT_EQ(run(2, 0, 20), 256);
  pace_.took(256, 0, 1, now_);
  EXPECT_EQ(run(1, 0, 20), 256);
}

// As when another program has the card for a while.
TEST_F(StepPaceTest, TriesAgainWhatHasBeenTooLong) {
  EXPECT_EQ(run(2, 0, 10.5), 256);
  slow_ = 2;
  EXPECT_LT(run(4, 0, 10.5), 256);
  now_ += 6s;
  EXPECT_LT(run(4, 0, 10.5), 256);  // the others say that it would still be
  slow_ = 1;
  EXPECT_LT(run(1, 0, 10.5), 256);
  now_ += 6s;
  EXPECT_EQ(run(5, 0, 10.5), 256);
}

TEST_F(StepPaceTest, DividesRowsWhereASmallerKernelIsFasterByParts) {
  for (const int rows : {1, 8, 9, 40, 100, 256}) EXPECT_EQ(pace_.num_parts(rows), 1) << rows;
  pace_.took(128, 0, 20 * kMs, now_);  // as of a mixture of experts in 4 bits
  pace_.took(128, 0, 20 * kMs, now_);
  EXPECT_EQ(pace_.num_parts(64), 1);
  EXPECT_EQ(pace_.num_parts(65), 2);  // of 64 rows, 5.28 ms each
  EXPECT_EQ(pace_.num_parts(128), 2);
  EXPECT_EQ(pace_.num_parts(129), 1);  // by 256 rows in 9.12 ms
  pace_.took(64, 0, 9.5 * kMs, now_);
  pace_.took(64, 0, 9.5 * kMs, now_);
  EXPECT_EQ(pace_.num_parts(65), 3);   // of 32 rows, 4.64 ms each
  EXPECT_EQ(pace_.num_parts(128), 1);  // four of 32 rows are no faster than one, within what steps differ
  StepPace unknown({8, 32});
  unknown.took(32, 0, 1, now_);
  EXPECT_EQ(unknown.num_parts(20), 1);  // nobody knows what 8 rows take
}

TEST_F(StepPaceTest, IsTheSmallestKernelWhereNothingFits) {
  EXPECT_EQ(run(50, 0, 0), 8);
  EXPECT_EQ(run(50, 0, -5), 8);
}

}  // namespace
}  // namespace soliton
