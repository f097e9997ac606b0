#include "runtime/answer/stop_filter.h"

#include <gtest/gtest.h>

#include <random>

#include "cpu_time.h"

namespace soliton {
namespace {

using Stops = std::vector<std::string>;

/// What passes, by trying every end of the text.
std::string expected_of(const std::string& text, const Stops& stops) {
  for (size_t end = 1; end <= text.size(); ++end) {
    size_t longest = 0;
    for (const std::string& stop : stops) {
      if (std::string_view(text).substr(0, end).ends_with(stop)) longest = std::max(longest, stop.size());
    }
    if (longest > 0) return text.substr(0, end - longest);
  }
  return text;
}

TEST(StopFilter, PassesEverythingAtOnceWithoutStops) {
  StopFilter filter({});
  EXPECT_EQ(filter.push("some text"), "some text");
  EXPECT_EQ(filter.finish(), "");
  EXPECT_FALSE(filter.stopped());
}

TEST(StopFilter, HoldsBackOnlyWhatCouldBecomeAStop) {
  StopFilter filter({"\nUser:"});
  EXPECT_EQ(filter.push("Yes.\nUs"), "Yes.");
  EXPECT_EQ(filter.push("e it"), "\nUse it");
  EXPECT_EQ(filter.push("\n\nUser"), "\n");
  EXPECT_EQ(filter.finish(), "\nUser");
}

TEST(StopFilter, FindsAStopAcrossPieces) {
  StopFilter filter({"STOP"});
  EXPECT_EQ(filter.push("one ST"), "one ");
  EXPECT_FALSE(filter.stopped());
  EXPECT_EQ(filter.push("OP two"), "");
  EXPECT_TRUE(filter.stopped());
  EXPECT_EQ(filter.push("three"), "");
  EXPECT_EQ(filter.finish(), "");
}

TEST(StopFilter, TakesTheStopThatIsCompleteFirst) {
  StopFilter filter({"abcd", "bc"});
  EXPECT_EQ(filter.push("xabcd"), "xa");
  StopFilter both({"bc", "abc"});
  EXPECT_EQ(both.push("xabcd"), "x");
}

TEST(StopFilter, TakesLongTextsAndStopsInLinearTime) {
  constexpr size_t kBytes = 200'000;
  const std::string many(kBytes, 'a');
  const std::string half(kBytes / 2, 'a');
  StopFilter filter({half + "b" + half, "b" + many, many + "b", "ab"});
  const CpuTime time;
  size_t num_passed = 0;
  for (size_t at = 0; at < kBytes; at += 4) num_passed += filter.push(many.substr(at, 4)).size();
  EXPECT_EQ(num_passed, 0u);
  EXPECT_EQ(filter.push("ac").size(), kBytes + 2);
  EXPECT_EQ(filter.push("ab"), "");
  EXPECT_TRUE(filter.stopped());
  EXPECT_LT(time.seconds(), 5);
}

TEST(StopFilter, EqualsANaiveSearchHoweverTheTextIsCut) {
  std::mt19937 random(7);
  const auto below = [&random](size_t bound) {
    return std::uniform_int_distribution<size_t>(0, bound - 1)(random);
  };
  const auto word = [&](size_t most) {
    std::string text;
    for (size_t length = 1 + below(most); length > 0; --length) text += static_cast<char>('a' + below(2));
    return text;
  };
  int num_stopped = 0;
  for (int round = 0; round < 20'000; ++round) {
    Stops stops(below(4));
    for (std::string& stop : stops) stop = word(6);
    const std::string text = word(24);
    StopFilter filter(stops);
    std::string passed;
    for (size_t at = 0; at < text.size() && !filter.stopped();) {
      const size_t length = 1 + below(5);
      passed += filter.push(std::string_view(text).substr(at, length));
      at += length;
      // Nothing that is shown can turn out to belong to a stop.
      const std::string expected = expected_of(text, stops);
      ASSERT_EQ(passed, expected.substr(0, passed.size()));
    }
    passed += filter.finish();
    ASSERT_EQ(passed, expected_of(text, stops)) << text;
    num_stopped += filter.stopped() ? 1 : 0;
  }
  EXPECT_GT(num_stopped, 5'000);
  EXPECT_LT(num_stopped, 18'000);
}

}  // namespace
}  // namespace soliton
