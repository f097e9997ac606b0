// How much of a prompt is fed between two looks at whether it is still wanted.
#include "runtime/answer/feed_prompt.h"

#include <gtest/gtest.h>

namespace soliton {
namespace {

TEST(FeedPace, IsAStepOfAKernelOfSeveralRows) {
  FeedPace pace(256, 256);
  EXPECT_EQ(pace.num_tokens(), 256);
  pace.took(256, 10);
  EXPECT_EQ(pace.num_tokens(), 256);
}

// Once a step of many rows has lasted too long to be waited for, shorter ones follow.
TEST(FeedPace, TakesFewerRowsWhereManyTakeLong) {
  FeedPace pace(256, 1024);
  EXPECT_EQ(pace.num_tokens(), 1024);
  pace.took(1024, 0.031);
  EXPECT_EQ(pace.num_tokens(), 1024);
  pace.took(1024, 0.27);
  EXPECT_EQ(pace.num_tokens(), 256);
}

// A token of an 8B takes 3.4 ms, one of a small model 0.02 ms; and a launch never lasts as long as 50 ms.
TEST(FeedPace, IsAsManyStepsOfOneRowAsTakeAMoment) {
  for (const double each : {3.4e-3, 2e-5, 0.5}) {
    FeedPace pace(1, 1);
    for (int i = 0; i < 20; ++i) {
      EXPECT_LT(pace.num_tokens() * each, each < 5e-3 ? 0.05 : 3);
      pace.took(pace.num_tokens(), pace.num_tokens() * each);
    }
    EXPECT_EQ(pace.num_tokens(), std::clamp(static_cast<int>(FeedPace::kSeconds / each), 1, 256));
  }
}

TEST(FeedPace, GrowsStepByStep) {
  FeedPace pace(1, 1);
  const int first = pace.num_tokens();
  pace.took(first, 0);  // by a clock that was set
  EXPECT_LE(pace.num_tokens(), 8 * first);
  pace.took(1, 100);
  EXPECT_EQ(pace.num_tokens(), 1);
}

}  // namespace
}  // namespace soliton
