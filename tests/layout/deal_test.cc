#include "layout/deal.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace soliton {
namespace {

/// Every number of things has one CTA, in order, and late CTAs have as many less.
TEST(DealNeighbours, GiveLateCtasLess) {
  constexpr int kCtas = 129;
  for (const TileRun late :
       {TileRun{}, TileRun{128, 1, 32}, TileRun{0, 1, 32}, TileRun{97, 1, 32}, TileRun{60, 1, 129}}) {
    for (const int num : {0, 1, 128, 129, 1290, 4953}) {
      for (const int less : {0, std::min(5, num / (2 * kCtas))}) {
        int end = 0;
        for (int cta = 0; cta < kCtas; ++cta) {
          const TileRun own = deal_neighbours(num, kCtas, cta, late, less);
          const bool is_late = (cta - late.first + kCtas) % kCtas < late.count;
          const int share = (num + late.count * less) / kCtas - (is_late ? less : 0);
          EXPECT_EQ(own.first, end) << cta;
          EXPECT_GE(own.count, share) << cta;
          EXPECT_LE(own.count, share + 1) << cta;
          EXPECT_GE(own.count, 0) << cta;
          end = own.first + own.count;
        }
        EXPECT_EQ(end, num);
      }
    }
  }
}

/// Every CTA has as many in both halves as without halves, and each of a half's has one CTA, in order.
TEST(DealHalf, DividesWhatACtaHas) {
  constexpr int kCtas = 129;
  constexpr TileRun kLate = {128, 1, 32};
  for (const int per : {1, 32, 96}) {
    for (const int num : {1, 2, 3, 8, 52, 129}) {
      const int less = std::min(5, num * per / (2 * kCtas));
      const int first_half = ceil_divide(num, 2);
      int end[2] = {0, first_half * per};
      for (int cta = 0; cta < kCtas; ++cta) {
        const TileRun own = deal_neighbours(num * per, kCtas, cta, kLate, less);
        int count = 0;
        for (const bool second : {false, true}) {
          const TileRun half = deal_half(own, num, first_half, per, second);
          EXPECT_EQ(half.first, end[second]) << cta;
          EXPECT_GE(half.count, 0) << cta;
          end[second] = half.first + half.count;
          count += half.count;
        }
        EXPECT_EQ(count, own.count) << cta;
      }
      EXPECT_EQ(end[0], first_half * per);
      EXPECT_EQ(end[1], num * per);
    }
  }
}

}  // namespace
}  // namespace soliton
