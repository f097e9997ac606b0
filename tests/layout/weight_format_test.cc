// Pages of integers against their definition: every bit has one meaning, every lane's 16-byte word is what
// the mma takes from it, and pages are as wide as their groups allow.
#include "layout/weight_format.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/layout/integer_place.h"

namespace soliton {
namespace {

std::vector<WeightFormat> integer_formats() {
  std::vector<WeightFormat> formats;
  for (const int group : {32, 64, 128}) {
    for (const bool has_zeros : {false, true}) formats.push_back({WeightType::kInt4, group, has_zeros});
    formats.push_back({WeightType::kInt8, group, false});
  }
  return formats;
}

std::vector<int> page_widths(WeightFormat format) {
  std::vector<int> widths;
  for (int columns = 512; columns <= format.page_columns(); columns *= 2) widths.push_back(columns);
  return widths;
}

std::string describe(WeightFormat format) {
  return std::to_string(format.bits()) + " bits, groups of " + std::to_string(format.group) +
         (format.has_zeros ? " with zeros" : "");
}

/// How often each bit of a page is used.
class BitCount {
 public:
  explicit BitCount(int bytes) : uses_(static_cast<size_t>(bytes) * 8) {}
  void use(int bit, int count) {
    for (int i = bit; i < bit + count; ++i) ++uses_.at(i);
  }
  void expect_once() const {
    for (size_t bit = 0; bit < uses_.size(); ++bit) {
      ASSERT_EQ(uses_[bit], 1) << "byte " << bit / 8 << ", bit " << bit % 8;
    }
  }

 private:
  std::vector<int> uses_;
};

TEST(WeightFormat, IntegersScalesAndZerosFillTheirPage) {
  for (const WeightFormat format : integer_formats()) {
    for (const int columns : page_widths(format)) {
      SCOPED_TRACE(describe(format) + ", " + std::to_string(columns) + " columns");
      BitCount bits(weight_bytes(format, columns));
      for (int row = 0; row < kTileRows; ++row) {
        for (int column = 0; column < columns; ++column) {
          const IntegerPlace place = integer_place(format.bits(), columns, row, column);
          ASSERT_EQ(place.offset % 4, 0);
          ASSERT_LE(place.shift + format.bits(), 32);
          bits.use(place.offset * 8 + place.shift, format.bits());
        }
        for (int group = 0; group < columns / format.group; ++group) {
          bits.use(scale_offset(format, columns, row, group) * 8, format.has_zeros ? 32 : 16);
        }
      }
      bits.expect_once();
    }
  }
}

// m16n8k32, A operand of bytes: register r of lane 4 g + j holds row g + 8 (r odd), and four k, which quad j and
// r >= 2 tell apart. A word of 4 bits makes two registers: its lower halves of bytes one, the upper ones the next. Which
// columns those k are is ours to choose, the same for all rows: eight neighbours for a lane, in two words, and in a
// word the even ones before the odd ones.
TEST(WeightFormat, WordsMakeTheOperandsOfTheMma) {
  for (const WeightFormat format :
       {WeightFormat{WeightType::kInt4, 128}, WeightFormat{WeightType::kInt8, 128}})
    for (const int columns : page_widths(format)) {
      const int steps = columns / kMinIntegerColumns;
      for (int load = 0; load < kUnits * steps; ++load) {
        for (int lane = 0; lane < kWarpLanes; ++lane) {
          for (int strip = 0; strip < kStrips; ++strip) {
            const int unit = load / steps;
            const int step = load % steps;
            const int first = ((unit * kStrips + strip) * steps + step) * kStepColumns;
            for (int reg = 0; reg < 4; ++reg) {
              for (int byte = 0; byte < 4; ++byte) {
                const int row = lane / 4 + (reg % 2 == 1 ? 8 : 0);
                constexpr int kColumnOfByte[] = {0, 2, 1, 3};
                const int column = first + lane % 4 * 8 + reg / 2 * 4 + kColumnOfByte[byte];
                const IntegerPlace place = integer_place(format.bits(), columns, row, column);
                const int begin = load * format.step_bytes() + lane * 16;
                if (format.bits() == 4) {
                  ASSERT_EQ(place.offset, begin + reg / 2 * 8 + strip * 4)
                      << columns << " columns, row " << row << ", column " << column;
                  ASSERT_EQ(place.shift, byte * 8 + reg % 2 * 4);
                } else {
                  ASSERT_EQ(place.offset, begin + strip * kWarpLanes * 16 + reg * 4)
                      << columns << " columns, row " << row << ", column " << column;
                  ASSERT_EQ(place.shift, byte * 8);
                }
              }
            }
          }
        }
      }
    }
}

// A lane has the sums of rows g and g + 8: their scales are neighbours, each before its own zero.
TEST(WeightFormat, ScalesOfARowPairAreNeighbours) {
  for (const WeightFormat format : integer_formats()) {
    for (int group = 0; group < 512 / format.group; ++group) {
      for (int row = 0; row < 8; ++row) {
        const int lower = scale_offset(format, 512, row, group);
        EXPECT_EQ(lower % (2 * format.group_words() * 2), 0) << describe(format);
        EXPECT_EQ(scale_offset(format, 512, row + 8, group), lower + format.group_words() * 2);
      }
    }
  }
}

/// Columns of the pages of a tile.
std::vector<int> pages_of(WeightFormat format, int padded) {
  std::vector<int> pages;
  for (int begin = 0; begin < padded; begin += pages.back()) {
    pages.push_back(page_columns(format, padded - begin));
    if (pages.back() <= 0) break;
  }
  return pages;
}

TEST(WeightFormat, AColumnIsOfThePageThatHoldsIt) {
  for (const WeightFormat format : integer_formats()) {
    for (const int padded : {512, 1536, 2048, 3584, 14336}) {
      int begin = 0;
      for (const int columns : pages_of(format, padded)) {
        for (const int column : {begin, begin + columns / 2, begin + columns - 1}) {
          const PageSpan page = page_of(format, padded, column);
          EXPECT_EQ(page.first_column, begin) << "column " << column << " of " << padded;
          EXPECT_EQ(page.columns, columns);
        }
        begin += columns;
      }
    }
  }
}

TEST(WeightFormat, PagesAddUpToTheirTile) {
  for (const WeightFormat format : integer_formats()) {
    for (int padded = kMinIntegerColumns; padded <= 20480; padded += kMinIntegerColumns) {
      int columns = 0;
      int bytes = 0;
      for (const int own : pages_of(format, padded)) {
        ASSERT_EQ(weight_bytes(format, columns), bytes) << "the page begins where the last one ended";
        columns += own;
        const int groups = own / format.group;
        bytes += kTileRows * (own * format.bits() / 8 + groups * (format.has_zeros ? 4 : 2));
      }
      ASSERT_EQ(columns, padded) << describe(format);
      ASSERT_EQ(tile_bytes(format, padded), bytes) << describe(format) << ", " << padded << " columns";
    }
  }
}

TEST(WeightFormat, AStripHasWholeGroupsOrIsPartOfOne) {
  for (const WeightFormat format : integer_formats()) {
    for (int padded = kMinIntegerColumns; padded <= 20480; padded += kMinIntegerColumns) {
      int begin = 0;
      for (const int own : pages_of(format, padded)) {
        ASSERT_EQ(own % kMinIntegerColumns, 0);
        const int strip = own / (kUnits * kStrips);
        for (int first = begin; first < begin + own; first += strip) {
          const bool within = first / format.group == (first + strip - 1) / format.group;
          const bool whole = first % format.group == 0 && strip % format.group == 0;
          ASSERT_TRUE(within || whole)
              << describe(format) << ", columns " << first << " to " << first + strip;
        }
        begin += own;
      }
    }
  }
}

// Only what is left behind full pages comes in smaller ones, each at most once.
TEST(WeightFormat, PagesAreAsWideAsTheyMayBe) {
  const WeightFormat format = {WeightType::kInt4, 128, false};
  EXPECT_EQ(pages_of(format, 512), (std::vector<int>{512}));
  EXPECT_EQ(pages_of(format, 1024), (std::vector<int>{1024}));
  EXPECT_EQ(pages_of(format, 1536), (std::vector<int>{1024, 512}));
  EXPECT_EQ(pages_of(format, 2048), (std::vector<int>{2048}));
  EXPECT_EQ(pages_of(format, 2560), (std::vector<int>{2048, 512}));
  EXPECT_EQ(pages_of(format, 5632), (std::vector<int>{2048, 2048, 1024, 512}));
  EXPECT_EQ(pages_of(format, 14336), std::vector<int>(7, 2048));
}

TEST(WeightFormat, Bf16TakesWhatItsColumnsTake) {
  const WeightFormat format;
  EXPECT_FALSE(format.has_scales());
  EXPECT_EQ(format.page_columns(), kPageColumns);
  EXPECT_EQ(pages_of(format, 480), (std::vector<int>{480}));
  EXPECT_EQ(pages_of(format, 512), (std::vector<int>{512}));
  EXPECT_EQ(pages_of(format, 1056), (std::vector<int>{512, 512, 32}));
  EXPECT_EQ(tile_bytes(format, 14336), 14336 * kTileRows * 2);
  EXPECT_EQ(padded_columns(format, 96, 2), 128);
  EXPECT_EQ(padded_columns(format, 96, 4), 128);
  EXPECT_EQ(padded_columns(format, 96, 8), 256);
}

TEST(WeightFormat, E2m1IsPaddedToWhatASlotOfSeveralRowsHas) {
  for (const int group : {0, 16}) {
    const WeightFormat format = {WeightType::kE2m1, group};
    for (const int warps : {1, 2, 4, 8}) {
      EXPECT_EQ(padded_columns(format, 96, warps), 256);
      EXPECT_EQ(padded_columns(format, 512, warps), 512);
      EXPECT_EQ(padded_columns(format, 520, warps), 768);
    }
    EXPECT_EQ(padded_columns(format, 96, 16), 512);
  }
}

TEST(WeightFormat, IntegersArePaddedToWholeUnits) {
  const WeightFormat format = {WeightType::kInt4, 64, true};
  for (const int warps : {1, 2, 4, 8}) {
    for (int columns = 64; columns <= 4096; columns += 64) {
      const int padded = padded_columns(format, columns, warps);
      ASSERT_GE(padded, columns);
      ASSERT_LT(padded, columns + kMinIntegerColumns);
      // A warp has the same number of units of every page.
      ASSERT_EQ(padded % (kMinIntegerColumns / kUnits * warps), 0) << columns << ", " << warps << " warps";
    }
  }
}

// Four digits a column; of each 64 columns, a step of both strips of a unit, a word for each lane of a quad.
TEST(WeightFormat, AnInputOfIntegersTakesSixtyEightBytesOfSixteenColumns) {
  for (int columns = 64; columns <= 8192; columns += 64) {
    EXPECT_EQ(integer_input_bytes(columns), columns / 16 * 68);
    EXPECT_EQ(integer_input_bytes(columns) % 16, 0) << "loads of 16 bytes";
  }
}

}  // namespace
}  // namespace soliton
