// Rows grouped by experts: there is a line for every pair, whatever rows choose, and every element of a group has its place.
#include "layout/grouped_rows.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <set>
#include <vector>

namespace soliton {
namespace {

TEST(GroupedRows, WidthsAreThoseOfProducts) {
  const std::set<int> widths{32, 64, 96, 128, 192, 256};
  for (int pairs = 1; pairs <= kMostBlockRows; ++pairs) {
    EXPECT_GE(group_width(pairs), pairs);
    EXPECT_TRUE(widths.contains(group_width(pairs))) << pairs;
    EXPECT_EQ(kMostBlockRows / group_width(pairs) * group_width(pairs) * kGroupColumns * 2 % 16, 0);
  }
}

/// Groups and lines that rows need whose experts have so many pairs.
std::pair<int, int> needed(const std::vector<int>& pairs_of_experts) {
  int groups = 0;
  int lines = 0;
  for (int pairs : pairs_of_experts) {
    for (; pairs > 0; pairs -= kMostBlockRows) {
      ++groups;
      lines += group_width(std::min(pairs, kMostBlockRows));
    }
  }
  return {groups, lines};
}

TEST(GroupedRows, HaveLinesForWhateverRowsChoose) {
  std::mt19937 random(1);
  for (const GroupedRows rows : {GroupedRows{1024, {.experts = 128, .chosen = 8}, 64},
                                 GroupedRows{256, {.experts = 8, .chosen = 2}, 64},
                                 GroupedRows{512, {.experts = 20, .chosen = 3, .shared = 1}, 64}}) {
    const auto expect_fits = [&](const std::vector<int>& pairs) {
      const auto [groups, lines] = needed(pairs);
      EXPECT_LE(groups, rows.most_groups());
      EXPECT_LE(lines, rows.most_lines());
    };
    const int routed = rows.rows * rows.mixture.chosen;
    for (int least = 1; least <= kMostBlockRows;
         ++least) {  // as many of one size as there may be, the rest at one
      std::vector<int> pairs(rows.mixture.experts, 0);
      int left = routed;
      for (int& of_expert : pairs) {
        of_expert = std::min({least, left, rows.rows});
        left -= of_expert;
      }
      for (size_t i = 0; left > 0 && i < pairs.size(); ++i) {
        const int more = std::min(left, rows.rows - pairs[i]);
        pairs[i] += more;
        left -= more;
      }
      for (int i = 0; i < rows.mixture.shared; ++i) pairs.push_back(rows.rows);
      expect_fits(pairs);
    }
    for (int i = 0; i < 200; ++i) {
      std::vector<int> pairs(rows.mixture.experts, 0);
      for (int left = routed; left > 0; --left) {
        int& of_expert = pairs[random() % pairs.size()];
        of_expert < rows.rows ? ++of_expert : ++left;
      }
      for (int k = 0; k < rows.mixture.shared; ++k) pairs.push_back(rows.rows);
      expect_fits(pairs);
    }
  }
}

TEST(GroupedRows, GiveEveryElementItsPlace) {
  constexpr int kColumns = 128;
  constexpr int kWidth = 96;
  std::set<int> places;
  for (int line = 0; line < kWidth; ++line) {
    for (int column = 0; column < kColumns; ++column) {
      const int place = GroupedRows::element_offset(kWidth, line, column);
      EXPECT_EQ(place / (kWidth * kGroupColumns * 2),
                column / kGroupColumns);  // pieces lie one behind the other
      places.insert(place);
    }
  }
  EXPECT_EQ(std::ssize(places), kWidth * kColumns);
  EXPECT_EQ(*places.rbegin(), GroupedRows::group_offset(kColumns, kWidth) - 2);
}

// Words have a step of both strips of a unit, which are half a unit apart.
TEST(GroupedRows, HaveTheBlocksOfAStepSideBySide) {
  const WeightFormat int4{.type = WeightType::kInt4, .group = 128};
  const GroupedRows rows{256, {.experts = 8, .chosen = 2, .ffn = 512}, 2048 + 1024 + 512, int4};
  for (const auto& [first, columns] : {std::pair{0, 2048}, std::pair{2048, 1024}, std::pair{3072, 512}}) {
    const int steps = columns / kMinIntegerColumns;
    EXPECT_EQ(rows.steps_at(first), steps);
    int place = first / kStepColumns;
    for (int unit = 0; unit < kUnits; ++unit) {
      for (int step = 0; step < steps; ++step) {
        for (int strip = 0; strip < kStrips; ++strip)
          EXPECT_EQ(rows.block_place(first / kStepColumns + (unit * kStrips + strip) * steps + step),
                    place++);
      }
    }
  }
  EXPECT_EQ(rows.gated_place(256 + 128 + 32 + 5), 256 + 3 * 32 + 5);
  EXPECT_EQ(rows.slot_columns(), 256);
  EXPECT_EQ((GroupedRows{256, {}, 128}).block_place(3), 3);
}

}  // namespace
}  // namespace soliton
