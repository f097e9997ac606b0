#include "layout/activations.h"

#include <gtest/gtest.h>

#include <set>

namespace soliton {
namespace {

/// Every part of a query has a place of its own; both parts of a query of few are in one tile, which has half as many queries.
TEST(QkvLayout, GivesBothPartsOfFewQueriesOneTile) {
  for (const int group : {1, 4, 8, 9, 12}) {
    for (const int rows : {8, 16}) {
      constexpr int kHeads = 2;
      const RowsShape shape(rows, CopyKind::kBulk, {}, {}, false, false);
      const QkvLayout layout{shape, KvShape{.num_kv_heads = kHeads, .head_dim = 64}, group};
      EXPECT_EQ(layout.stacks_parts(), rows == 8 && group <= 8) << group;
      EXPECT_EQ(layout.tile_queries(), layout.stacks_parts() ? 8 : 16) << group;
      std::set<int64_t> places;
      for (int head = 0; head < kHeads; ++head) {
        for (int query = 0; query < rows * group; ++query) {
          const int64_t tile = layout.query_offset(head, query, 0, 0) / layout.query_tile_bytes();
          EXPECT_EQ(tile, head * layout.query_tiles() + query / layout.tile_queries());
          for (int part = 0; part < shape.parts; ++part) {
            for (int dim = 0; dim < 64; ++dim) {
              const int64_t place = layout.query_offset(head, query, dim, part);
              EXPECT_EQ(place / layout.query_tile_bytes(), tile);
              EXPECT_TRUE(places.insert(place).second) << query << " " << dim << " " << part;
            }
          }
        }
      }
      EXPECT_LE(*places.rbegin(), layout.keys_offset(0) - 2);
    }
  }
}

}  // namespace
}  // namespace soliton
