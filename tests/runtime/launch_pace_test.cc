// How many steps launches have where they may not last long: with clocks that are made up.
#include "runtime/engine/launch_pace.h"

#include <gtest/gtest.h>

namespace soliton {
namespace {

constexpr int kEndless = std::numeric_limits<int>::max();

TEST(LaunchPace, DoesNotLimitWithoutALimit) {
  LaunchPace pace(false, 2);
  EXPECT_EQ(pace.max_steps(1, true), kEndless);
  pace.took(1, true, 1, 100.0);
  EXPECT_EQ(pace.max_steps(1, true), kEndless);
  EXPECT_EQ(LaunchPace().max_steps(0, false), kEndless);
}

TEST(LaunchPace, BeginsWithAStepOfEachKind) {
  LaunchPace pace(true, 2);
  pace.took(0, true, 1, 0.01);
  EXPECT_GT(pace.max_steps(0, true), 1);
  EXPECT_EQ(pace.max_steps(0, false), 1);
  EXPECT_EQ(pace.max_steps(1, true), 1);
}

/// Launches of a card that takes so long a step, and for each launch so long besides.
class Card {
 public:
  Card(double step_s, double launch_s) : step_s_(step_s), launch_s_(launch_s) {}

  /// Seconds of the next launch.
  double launch(LaunchPace& pace) {
    num_steps = pace.max_steps(0, true);
    const double seconds = launch_s_ + num_steps * step_s_;
    pace.took(0, true, num_steps, seconds);
    return seconds;
  }

  int num_steps = 0;

 private:
  double step_s_;
  double launch_s_;
};

TEST(LaunchPace, FillsTheTimeAndNoMore) {
  for (const double step_s : {2e-5, 1e-4, 3.4e-3, 0.03, 0.09}) {
    LaunchPace pace(true, 1);
    Card card(step_s, 5e-5);
    for (int i = 0; i < 12; ++i)
      EXPECT_LE(card.launch(pace), LaunchPace::kMaxSeconds) << step_s << ", launch " << i;
    EXPECT_GE(card.launch(pace), LaunchPace::kPlannedSeconds - step_s - 0.01) << step_s;
  }
}

TEST(LaunchPace, LeavesAStepWhole) {
  LaunchPace pace(true, 1);
  Card card(0.7, 0);
  card.launch(pace);
  card.launch(pace);
  EXPECT_EQ(card.num_steps, 1);
}

// A fifth slower from one launch to the next, as when clocks fall.
TEST(LaunchPace, HasRoomForSlowerSteps) {
  LaunchPace pace(true, 1);
  Card fast(0.004, 0);
  for (int i = 0; i < 5; ++i) fast.launch(pace);
  Card slow(0.0048, 0);
  EXPECT_LE(slow.launch(pace), LaunchPace::kMaxSeconds);
  slow.launch(pace);
  EXPECT_LT(slow.num_steps, fast.num_steps);
}

TEST(LaunchPace, DistrustsAClockThatStoodStill) {
  LaunchPace pace(true, 1);
  pace.took(0, true, 1, 1e-12);
  EXPECT_LE(pace.max_steps(0, true), 8);
}

TEST(LaunchPace, ForgetsASlowLaunch) {
  LaunchPace pace(true, 1);
  Card card(0.004, 0);
  for (int i = 0; i < 5; ++i) card.launch(pace);
  const int before = card.num_steps;
  pace.took(0, true, before, 30.0);  // the machine slept
  card.launch(pace);
  EXPECT_EQ(card.num_steps, 1);
  card.launch(pace);
  EXPECT_EQ(card.num_steps, before);
}

}  // namespace
}  // namespace soliton
