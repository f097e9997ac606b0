// The layouts against their definitions: every byte of a page has one meaning, every lane's 16-byte word is
// what the mma takes from it, and the formulas that deal out work neither skip nor repeat any.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "layout/deal.h"
#include "layout/library.h"
#include "layout/one_row.h"
#include "layout/page.h"
#include "layout/phase.h"
#include "layout/random.h"
#include "layout/rows.h"
#include "layout/several_rows.h"
#include "layout/tag.h"

namespace soliton {
namespace {

constexpr int kHeadDims[] = {64, 96, 128, 256};
constexpr int kConsumerWarps[] = {1, 2, 4, 8, 16};
constexpr int kElementBytes = 2;

/// One k of one row in the A operand of m16n8k16, as page.h defines it: register r of lane 4 g + j holds row
/// g + 8 (r odd), k pair j + 4 (r >= 2); `half` is the element of the pair.
struct OperandElement {
  int row;
  int pair;
  int half;
};

OperandElement operand_element(int lane, int reg, int half) {
  return {.row = lane / 4 + (reg % 2 == 1 ? 8 : 0), .pair = lane % 4 + (reg >= 2 ? 4 : 0), .half = half};
}

/// Calls visit(offset, fragment, element) for every 2-byte element of `bytes` bytes of operands.
template <class Visitor>
void for_each_operand_element(int bytes, const Visitor& visit) {
  for (int fragment = 0; fragment < bytes / kFragmentBytes; ++fragment) {
    for (int lane = 0; lane < kWarpLanes; ++lane) {
      for (int reg = 0; reg < 4; ++reg) {
        for (int half = 0; half < 2; ++half) {
          visit(fragment * kFragmentBytes + lane * 16 + reg * 4 + half * 2, fragment,
                operand_element(lane, reg, half));
        }
      }
    }
  }
}

/// Are `offsets` all even bytes from 0 to `bytes`, each once?
void expect_bijection(std::vector<int> offsets, int bytes) {
  std::sort(offsets.begin(), offsets.end());
  ASSERT_EQ(offsets.size(), static_cast<size_t>(bytes / kElementBytes));
  for (size_t i = 0; i < offsets.size(); ++i) ASSERT_EQ(offsets[i], static_cast<int>(i) * kElementBytes);
}

// One block of a warp, a page less a block, a page, a page and a block, and the widths of real models.
constexpr WeightFormat kBf16{};
constexpr int kWidths[] = {32, 64, 480, 512, 544, 768, 1024, 1056, 2048, 14336};

TEST(Page, WeightsFillTheirTile) {
  for (const int padded : kWidths) {
    std::vector<int> offsets;
    for (int row = 0; row < kTileRows; ++row) {
      for (int column = 0; column < padded; ++column) offsets.push_back(weight_offset(row, column));
    }
    expect_bijection(offsets, tile_bytes(kBf16, padded));
  }
}

/// Caches of every width, of one part and of two.
std::vector<KvShape> kv_shapes() {
  std::vector<KvShape> shapes;
  for (const int parts : {1, 2}) {
    for (const int head_dim : kHeadDims) {
      shapes.push_back({.num_layers = 3, .num_kv_heads = 2, .head_dim = head_dim, .parts = parts});
    }
  }
  return shapes;
}

/// visit(token, dim, part) for all that one half of a page holds.
template <class Visitor>
void for_each_cached(const KvShape& kv, const Visitor& visit) {
  for (int token = 0; token < kKvPageTokens; ++token) {
    for (int dim = 0; dim < kv.head_dim; ++dim) {
      for (int part = 0; part < kv.parts; ++part) visit(token, dim, part);
    }
  }
}

TEST(Page, KeysAndValuesFillTheirHalf) {
  for (const KvShape& kv : kv_shapes()) {
    std::vector<int> keys;
    std::vector<int> values;
    for_each_cached(kv, [&](int token, int dim, int part) {
      keys.push_back(kv.key_offset(token, dim, part));
      values.push_back(kv.value_offset(token, dim, part));
    });
    expect_bijection(keys, kv.half_bytes());
    expect_bijection(values, kv.half_bytes());
  }
}

// Of a cache of bytes: what ldmatrix gives a lane are four dims of a token, or four tokens of a dim, which become two
// registers of an operand; powers of two fill what is left.
TEST(Page, BytesAreTwoRegistersOfAnOperand) {
  for (const int head_dim : kHeadDims) {
    const KvShape kv{.num_layers = 3, .num_kv_heads = 2, .head_dim = head_dim, .e4m3 = true};
    const int quarter = head_dim / 4;
    std::vector<int> keys(static_cast<size_t>(kv.half_bytes()));
    std::vector<int> values = keys;
    for (int token = 0; token < kKvPageTokens; ++token) {
      const int tile = token / 16 * kv.tile_bytes();
      const int row = token % 16;
      ++keys[static_cast<size_t>(kv.exponent_offset(token))];
      ++values[static_cast<size_t>(kv.exponent_offset(token))];
      for (int dim = 0; dim < head_dim; ++dim) {
        ++keys[static_cast<size_t>(kv.key_offset(token, dim))];
        ++values[static_cast<size_t>(kv.value_offset(token, dim))];
        const int key_core = row / 8 * kv.key_stride() + dim % quarter / 4 * kCoreBytes;
        ASSERT_EQ(kv.key_offset(token, dim),
                  tile + key_core + row % 8 * 16 + dim / quarter * 4 + dim % quarter % 4);
        const int pair = row / 8 * 2 + row % 2;
        ASSERT_EQ(kv.value_offset(token, dim),
                  tile + dim / 8 * kCoreBytes + dim % 8 * 16 + row % 8 / 2 * 4 + pair);
      }
    }
    EXPECT_EQ(keys, std::vector<int>(keys.size(), 1));
    EXPECT_EQ(values, keys);
    EXPECT_EQ(kv.half_bytes() % (kv.slots_per_half() * 16), 0);
    EXPECT_LE(kv.half_bytes() / kv.slots_per_half(), kPageBytes);
  }
}

// The B operand of a lane with quad j is 16 bytes of x: columns 8 j to 8 j + 7 of a block of 32. The first
// mma takes the first four of them, two for the k pair j and two for the pair j + 4; the second mma the
// others.
TEST(Page, WeightOperandsMeetTheirColumnsOfX) {
  for (const int padded : kWidths) {
    for_each_operand_element(
        tile_bytes(kBf16, padded), [&](int offset, int fragment, const OperandElement& element) {
          const int block = fragment / 2;
          const int mma = fragment % 2;
          const int quad = element.pair % 4;
          const int reg_of_b = element.pair / 4;
          const int column = block * kColumnBlock + quad * 8 + mma * 4 + reg_of_b * 2 + element.half;
          ASSERT_EQ(weight_offset(element.row, column), offset) << padded << " columns, row " << element.row;
        });
  }
}

/// Offset of an element of the A operand whose core matrices lie from `first` on: what load_matrices() gives a lane.
int core_offset(int first, int next_rows, const OperandElement& element) {
  return first + element.row / 8 * next_rows + element.pair / 4 * kCoreBytes + element.row % 8 * 16 +
         element.pair % 4 * 4 + element.half * 2;
}

// Scores: rows are tokens. The lane with quad j has a quarter of q, dims j * head_dim / 4 and on; mma i of a
// token tile and part takes its dims 4 i to 4 i + 3.
TEST(Page, KeyOperandsMeetTheirDimsOfQ) {
  for (const KvShape& kv : kv_shapes()) {
    const int steps = kv.head_dim / kMmaColumns;
    for_each_operand_element(kv.half_bytes(), [&](int, int fragment, const OperandElement& element) {
      const int tile = fragment / steps / kv.parts;
      const int part = fragment / steps % kv.parts;
      const int quad = element.pair % 4;
      const int dim = quad * (kv.head_dim / 4) + fragment % steps * 4 + element.pair / 4 * 2 + element.half;
      const int first = tile * kv.tile_bytes() + part * kv.part_bytes() + fragment % steps * 2 * kCoreBytes;
      ASSERT_EQ(kv.key_offset(tile * 16 + element.row, dim, part),
                core_offset(first, kv.key_stride(), element))
          << "head_dim " << kv.head_dim;
    });
  }
}

// Output: rows are dims, k are the 16 tokens of a tile in their order.
TEST(Page, ValueOperandsMeetTheirTokens) {
  for (const KvShape& kv : kv_shapes()) {
    const int steps = kv.head_dim / 16;
    for_each_operand_element(kv.half_bytes(), [&](int, int fragment, const OperandElement& element) {
      const int token = fragment / steps / kv.parts * 16 + element.pair * 2 + element.half;
      const int dim = fragment % steps * 16 + element.row;
      ASSERT_EQ(kv.value_offset(token, dim, fragment / steps % kv.parts),
                core_offset(fragment * kFragmentBytes, KvShape::kValueStride, element))
          << "head_dim " << kv.head_dim;
    });
  }
}

// The B operands of wgmma: of a page of one part the core matrices of keys, and of the values of each 16 tokens, lie at one
// distance.
TEST(Page, CoreMatricesLieAtOneDistance) {
  for (const KvShape& kv : kv_shapes()) {
    if (kv.parts > 1) continue;
    for_each_cached(kv, [&](int token, int dim, int) {
      const int k = kv.key_offset(0, dim);
      ASSERT_EQ(kv.key_offset(token, dim), k + token / 8 * kv.key_stride() + token % 8 * 16);
      const int tile = token / 16 * 16;
      ASSERT_EQ(kv.value_offset(token, dim), kv.value_offset(tile, 0) + token % 16 / 8 * kCoreBytes +
                                                 token % 8 * 2 + dim / 8 * KvShape::kValueStride +
                                                 dim % 8 * 16);
    });
  }
}

// append() writes two dims of a key with one 4-byte store.
TEST(Page, NeighbouringDimsOfAKeyShareAWord) {
  for (const KvShape& kv : kv_shapes()) {
    for_each_cached(kv, [&](int token, int dim, int part) {
      if (dim % 2 == 1) return;
      ASSERT_EQ(kv.key_offset(token, dim, part) % 4, 0);
      ASSERT_EQ(kv.key_offset(token, dim + 1, part), kv.key_offset(token, dim, part) + 2);
    });
  }
}

TEST(Page, PagesOfATileAddUp) {
  for (const int padded : kWidths) {
    int columns = 0;
    for (int page = 0; columns < padded; ++page) {
      const int own = page_columns(kBf16, padded - columns);
      ASSERT_GT(own, 0) << padded;
      EXPECT_TRUE(own == kPageColumns || columns + own == padded) << padded;
      EXPECT_LE(own * kTileRows * kElementBytes, kPageBytes) << padded;
      // The page begins where the last one ended.
      EXPECT_EQ(weight_offset(0, columns), page * kPageBytes) << padded;
      columns += own;
    }
    EXPECT_EQ(columns, padded);
    EXPECT_EQ(tile_bytes(kBf16, padded), padded * kTileRows * kElementBytes);
  }
}

TEST(Page, EveryWarpOwnsWholeBlocksOfEveryPage) {
  for (const int warps : kConsumerWarps) {
    for (int columns = 64; columns <= 4096; columns += 64) {
      const int padded = padded_columns(kBf16, columns, warps);
      ASSERT_GE(padded, columns);
      ASSERT_LT(padded, columns + kColumnBlock * std::max(warps, kLeastPaddingWarps));
      for (int left = padded; left > 0; left -= page_columns(kBf16, left)) {
        ASSERT_EQ(page_columns(kBf16, left) % (kColumnBlock * warps), 0)
            << columns << ", " << warps << " warps";
      }
    }
  }
}

// A slot holds whole token tiles, and nothing of another slot's tokens.
TEST(Page, SlotsOfAHalfHoldTheirTokens) {
  for (const KvShape& kv : kv_shapes()) {
    const int slots = kv.slots_per_half();
    EXPECT_EQ(slots, kv.head_dim * kv.parts <= 128 ? 1 : kv.head_dim * kv.parts <= 256 ? 2 : 4);
    const int bytes = kv.half_bytes() / slots;
    EXPECT_LE(bytes, kPageBytes);
    EXPECT_EQ(kv.slot_tokens() % kTailTokens, 0);
    for_each_cached(kv, [&](int token, int dim, int part) {
      ASSERT_EQ(kv.key_offset(token, dim, part) / bytes, token / kv.slot_tokens());
      ASSERT_EQ(kv.value_offset(token, dim, part) / bytes, token / kv.slot_tokens());
    });
  }
}

TEST(Page, KvPagesLieOneAfterAnother) {
  for (const KvShape& kv : kv_shapes()) {
    int64_t expected = 0;
    for (int page = 0; page < 4; ++page) {
      for (int layer = 0; layer < kv.num_layers; ++layer) {
        for (int head = 0; head < kv.num_kv_heads; ++head) {
          EXPECT_EQ(kv.page_offset(page, layer, head), expected);
          expected += 2 * kv.half_bytes();
        }
      }
    }
    EXPECT_EQ(4 * kKvPageTokens * kv.token_bytes(), expected);
  }
  // 131072 tokens of Llama-3.1-70B: 40 GiB, beyond 32 bits.
  const KvShape large{.num_layers = 80, .num_kv_heads = 8, .head_dim = 128};
  EXPECT_EQ(large.page_offset(2048, 0, 0), int64_t{40} << 30);
}

/// Source rows of all packed rows; each source row must come up once.
void expect_permutation(RowOrder order, int num_rows, int rotary_rows, int head_dim) {
  std::vector<bool> seen(num_rows, false);
  for (int packed = 0; packed < num_rows; ++packed) {
    const int source = source_row(order, packed, num_rows, rotary_rows, head_dim);
    ASSERT_GE(source, 0);
    ASSERT_LT(source, num_rows);
    ASSERT_FALSE(seen[source]) << "row " << source << " twice, head_dim " << head_dim;
    seen[source] = true;
  }
}

TEST(Rows, EveryOrderIsAPermutation) {
  for (const int head_dim : kHeadDims) {
    for (const int heads : {1, 3, 8}) {
      for (const int kv_heads : {1, 2}) {
        expect_permutation(RowOrder::kRotary, (heads + 2 * kv_heads) * head_dim,
                           (heads + kv_heads) * head_dim, head_dim);
      }
    }
  }
  for (const int ffn : {64, 192, 768, 14336}) expect_permutation(RowOrder::kGateUp, 2 * ffn, 0, 64);
  for (const int rows : {1, 15, 16, 17, 2048}) expect_permutation(RowOrder::kPlain, rows, 0, 64);
}

TEST(Rows, RotationPairsStandEightRowsApartInATile) {
  for (const int head_dim : kHeadDims) {
    const int rotary_rows = 3 * head_dim;  // 2 heads and a KV head
    const int num_rows = 4 * head_dim;
    for (int tile = 0; tile < rotary_rows / kTileRows; ++tile) {
      for (int row = 0; row < 8; ++row) {
        const auto source = [&](int r) {
          return source_row(RowOrder::kRotary, tile * kTileRows + r, num_rows, rotary_rows, head_dim);
        };
        EXPECT_EQ(source(row + 8) - source(row), head_dim / 2);
        EXPECT_EQ(source(row) / head_dim, tile * kTileRows / head_dim) << "stays in its head";
        EXPECT_LT(source(row) % head_dim, head_dim / 2);
      }
    }
    for (int packed = rotary_rows; packed < num_rows; ++packed) {
      EXPECT_EQ(source_row(RowOrder::kRotary, packed, num_rows, rotary_rows, head_dim), packed)
          << "v is plain";
    }
  }
}

// Heads of 12 dims of which 4 are rotated: pairs (0, 2) and (1, 3).
TEST(Rows, DimsThatAreNotRotatedArePairsToo) {
  std::vector<int> dims;
  for (int dim = 0; dim < 12; ++dim) dims.push_back(model_dim(dim, 12, 4));
  EXPECT_EQ(dims, (std::vector{0, 1, 4, 5, 6, 7, 2, 3, 8, 9, 10, 11}));
  for (int dim = 0; dim < 128; ++dim) {
    EXPECT_EQ(model_dim(dim, 128, 0), dim);
    EXPECT_EQ(model_dim(dim, 128, 128), dim);
  }
  const int source = source_row(RowOrder::kRotary, 64 + 8, 4 * 64, 3 * 64, 64, 32);
  EXPECT_EQ(source, 64 + 16) << "of the second head the other half of dim 0";
}

TEST(Rows, GateAndUpOfAnElementStandEightRowsApartInATile) {
  constexpr int kFfn = 192;
  for (int element = 0; element < kFfn; ++element) {
    const int gate = element / 8 * kTileRows + element % 8;
    EXPECT_EQ(source_row(RowOrder::kGateUp, gate, 2 * kFfn, 0, 64), element);
    EXPECT_EQ(source_row(RowOrder::kGateUp, gate + 8, 2 * kFfn, 0, 64), kFfn + element);
  }
}

TEST(Deal, EveryTileHasOneOwner) {
  for (const int ctas : {1, 2, 3, 7, 31, 32, 33, 128, 132}) {
    for (const int tiles : {1, 2, ctas - 1, ctas, ctas + 1, 2 * ctas - 1, 2 * ctas, 2 * ctas + 1, 500}) {
      if (tiles < 1) continue;
      for (int first_cta = 0; first_cta < ctas; ++first_cta) {
        std::vector<int> owner(tiles, -1);
        for (int cta = 0; cta < ctas; ++cta) {
          const TileRun run = deal_tiles(tiles, first_cta, ctas, cta);
          ASSERT_TRUE(run.count == tiles / ctas || run.count == ceil_divide(tiles, ctas));
          for (int i = 0; i < run.count; ++i) {
            const int tile = run.first + i * run.stride;
            ASSERT_LT(tile, tiles);
            ASSERT_EQ(owner[tile], -1);
            owner[tile] = cta;
          }
        }
        for (int tile = 0; tile < tiles; ++tile) ASSERT_EQ(owner[tile], (first_cta + tile) % ctas);
      }
    }
  }
}

/// The shares of all CTAs at one position.
std::vector<AttentionShare> shares(int blocks, int pages, int min_pages, int ctas) {
  std::vector<AttentionShare> result;
  for (int cta = 0; cta < ctas; ++cta) result.push_back(share_attention(blocks, pages, min_pages, ctas, cta));
  return result;
}

class Attention : public testing::TestWithParam<int> {};  // CTAs

TEST_P(Attention, EveryPageOfEveryBlockIsReadOnce) {
  const int ctas = GetParam();
  for (const int min_pages : {1, 4}) {
    for (const int blocks : {1, 2, 3, 7, 8, 16, 31, 64, 200}) {
      for (const int pages : {0, 1, 3, 4, 5, 7, 8, 9, 63, 64, 65, 527, 528, 2048}) {
        std::vector<int> reads(blocks * pages, 0);
        std::vector<int> begins(blocks, 0);  // who takes the new token, even when no page is cached
        for (const AttentionShare& share : shares(blocks, pages, min_pages, ctas)) {
          for (int unit = 0; unit < share.count; ++unit) {
            const int block = share.first_block + unit * ctas;
            ASSERT_LT(block, blocks);
            if (share.split == share.num_splits - 1) ++begins[block];
            for (int page = share.first_page; page < share.end_page; ++page) ++reads[block * pages + page];
          }
        }
        ASSERT_EQ(std::count(reads.begin(), reads.end(), 1), blocks * pages)
            << blocks << " blocks, " << pages << " pages";
        ASSERT_EQ(std::count(begins.begin(), begins.end(), 1), blocks)
            << blocks << " blocks, " << pages << " pages";
      }
    }
  }
}

// The merge finds the parts of a block at neighbouring CTAs, in the order of the pages.
TEST_P(Attention, SplitsOfABlockAreNeighbours) {
  const int ctas = GetParam();
  for (const int blocks : {1, 2, 8, 16, 64, 200}) {
    for (const int pages : {0, 1, 4, 8, 9, 65, 2048}) {
      const std::vector<AttentionShare> all = shares(blocks, pages, 4, ctas);
      for (int cta = 0; cta < ctas; ++cta) {
        const AttentionShare& share = all[cta];
        ASSERT_EQ(share.num_splits, all[0].num_splits) << "all CTAs agree whether blocks are split";
        if (share.count == 0 || share.num_splits == 1) continue;
        ASSERT_EQ(share.count, 1) << "whoever has part of a block has nothing else";
        ASSERT_GE(cta - share.split, 0);
        const AttentionShare& first = all[cta - share.split];
        ASSERT_EQ(first.first_block, share.first_block);
        ASSERT_EQ(first.split, 0);
        ASSERT_EQ(first.first_page, 0);
        if (share.split > 0) {
          ASSERT_EQ(all[cta - 1].end_page, share.first_page);
        }
        if (share.split == share.num_splits - 1) {
          ASSERT_EQ(share.end_page, pages);
        }
      }
    }
  }
}

TEST_P(Attention, BlocksAreSplitJustWhenItIsWorthIt) {
  const int ctas = GetParam();
  for (const int min_pages : {1, 4, 5}) {
    for (const int blocks : {1, 2, 8, 16}) {
      for (int pages = 0; pages < 200; ++pages) {
        for (const AttentionShare& share : shares(blocks, pages, min_pages, ctas)) {
          ASSERT_EQ(share.num_splits == 1, pages < 2 * min_pages || ctas < 2 * blocks);
          ASSERT_LE(share.num_splits, std::max(1, ctas / blocks));
          if (share.num_splits > 1 && share.count > 0) {
            ASSERT_GE(share.end_page - share.first_page, min_pages);
          }
        }
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Deal, Attention, testing::Values(1, 2, 3, 4, 7, 8, 15, 16, 17, 128, 132),
                         testing::PrintToStringParamName());

TEST(Deal, LongContextsUseEveryCta) {
  for (const auto& share : shares(8, 2048, 4, 128)) {
    EXPECT_EQ(share.count, 1);
    EXPECT_EQ(share.num_splits, 16);
    EXPECT_EQ(share.end_page - share.first_page, 128);
  }
}

TEST(Deal, ShortContextsGoToFewCtas) {
  EXPECT_EQ(share_attention(8, 64, 4, 128, 0).num_splits, 16);
  EXPECT_EQ(share_attention(8, 63, 4, 128, 0).num_splits, 15);
  EXPECT_EQ(share_attention(8, 8, 4, 128, 0).num_splits, 2);
  EXPECT_EQ(share_attention(8, 7, 4, 128, 0).num_splits, 1);
}

TEST(Phase, UsesTakeTheTwoPlacesInTurn) {
  const Vector one = {.offset = 64, .elements = 8};
  const Vector two = {.offset = 64, .elements = 8, .to_second = 32};
  for (const uint32_t use : {0u, 1u, 6u, 0xffffffffu}) {
    EXPECT_EQ(one.place(use), 64) << use;
    EXPECT_EQ(two.place(use), use % 2 == 0 ? 64 : 96) << use;
  }
}

// A place holds what the use before it wrote, one of two places what the second use before it wrote; a fresh one zeros.
TEST(Tags, OfNeighbouringUsesDiffer) {
  for (uint32_t use = 0; use < 100; ++use) {
    EXPECT_NE(tag_of(use), 0u);
    EXPECT_EQ(tag_of(use) & ~kTagMask, 0u);
    EXPECT_NE(tag_of(use), tag_of(use + 1)) << use;
    EXPECT_NE(tag_of(use), tag_of(use + 2)) << use;
  }
}

TEST(Launch, RecordsHoldTokenAndTime) {
  const uint64_t record = uint64_t{0xfffffffe} << 32 | 128255;
  EXPECT_EQ(record_token(record), 128255);
  EXPECT_EQ(record_time_ns(record), 0xfffffffeu);
  EXPECT_NE(record, kNoRecord);
}

// The message of the watchdog names a barrier as the plan does.
TEST(Launch, WaitsForABarrierHaveItsName) {
  std::set<std::string> names(std::begin(kWaitNames), std::end(kWaitNames));
  EXPECT_EQ(names.size(), std::size(kWaitNames));
  EXPECT_STREQ(wait_name(WaitKind::kAttending), "attending");
  EXPECT_STREQ(wait_name(static_cast<WaitKind>(1000)), "unknown");
  for (const char* text : {"nothing", "vector", "grid counter", "partial", "exchange"}) names.erase(text);
  KernelPlan plan;
  plan.consumer_warps = kWorkers;
  plan.rows = 8;
  std::set<std::string> barriers;
  for (const BarrierRule& rule : one_row::barrier_rules(plan)) barriers.insert(rule.name);
  for (const BarrierRule& rule : rows::barrier_rules(plan)) barriers.insert(rule.name);
  for (const char* polled : {"stopped", "ended"}) barriers.erase(polled);
  EXPECT_EQ(names, barriers);
}

// Mean 0 and variance 1/3, each within five standard errors; both halves of the seed matter.
TEST(Random, IsUniform) {
  constexpr int kCount = 100000;
  double sum = 0;
  double squares = 0;
  for (int i = 0; i < kCount; ++i) {
    const double value = random_unit(i, 42);
    ASSERT_GE(value, -1.0);
    ASSERT_LT(value, 1.0);
    sum += value;
    squares += value * value;
  }
  EXPECT_NEAR(sum / kCount, 0.0, 5 * std::sqrt(1.0 / 3 / kCount));
  EXPECT_NEAR(squares / kCount, 1.0 / 3, 5 * std::sqrt(4.0 / 45 / kCount));
  EXPECT_NE(random_bits(0, 1), random_bits(0, 2));
  EXPECT_NE(random_bits(0, 1), random_bits(0, uint64_t{1} << 32));
  EXPECT_NE(random_bits(0, 1), random_bits(1, 1));
}

/// However rows choose, there is room for all slots: an expert has up to all rows, and a slot 12 of its pairs.
TEST(ExpertsOfRows, HasRoomForAllSlots) {
  constexpr int kRows = 32;
  constexpr int kSlotPairs = 12;
  for (const auto& [experts, chosen] : {std::pair{5, 3}, {8, 2}, {12, 8}, {64, 8}, {128, 8}}) {
    const rows::ExpertsLayout layout = {kRows, {.experts = experts, .chosen = chosen}, kSlotPairs};
    // Of so many pairs the most slots that the experts so far may be.
    std::vector<int> most(static_cast<size_t>(layout.pairs()) + 1, 0);
    for (int expert = 0; expert < experts; ++expert) {
      for (int pairs = layout.pairs(); pairs > 0; --pairs) {
        for (int own = 1; own <= std::min(pairs, kRows); ++own)
          most[pairs] = std::max(most[pairs], most[pairs - own] + ceil_divide(own, kSlotPairs));
      }
    }
    EXPECT_GE(layout.slots(), most[layout.pairs()]) << experts << " experts, " << chosen << " of them";
  }
}

TEST(RowBands, HaveABitForEveryRowTheyAreAskedFor) {
  EXPECT_EQ(row_bands(0, 0), 0u);
  EXPECT_EQ(row_bands(63, 64), 1u);
  EXPECT_EQ(row_bands(63, 65), 3u);
  EXPECT_EQ(row_bands(64, 256), 0b1110u);
  EXPECT_EQ(row_bands(1023, 1024), 1u << 15);
  EXPECT_EQ(row_bands(0, 1 << 20), ~0u);  // more than there are
  for (int first = 0; first < kBands; ++first) {
    for (int second = 0; second < kBands; ++second) {
      const int packed = pack_bands(first, second);
      EXPECT_NE(packed, 0);
      EXPECT_EQ(first_band(packed), first);
      EXPECT_EQ(second_band(packed), second);
    }
  }
}

/// The least of the integers becomes their zero, the others stay as they are.
TEST(Random, IntegersHaveTheirZeroForAMean) {
  for (uint32_t index = 0; index < 1000; ++index) {
    const uint32_t word = random_bits(index, 1);
    const uint32_t balanced = balanced_integers(word);
    for (int i = 0; i < 32; i += 4) {
      const uint32_t before = word >> i & 15;
      EXPECT_EQ(balanced >> i & 15, before == 0 ? 8 : before) << word;
    }
  }
}

}  // namespace
}  // namespace soliton
