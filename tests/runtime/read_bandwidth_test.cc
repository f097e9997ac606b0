// How much of a card is read to measure S, and how what comes of it is told. The kernels themselves need a card.
#include "runtime/device/read_bandwidth.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace soliton {
namespace {

TEST(ReadBandwidth, BufferIsTheCardsBusiness) {
  EXPECT_EQ(read_buffer_bytes(int64_t{150} << 30), int64_t{4} << 30);
  EXPECT_EQ(read_buffer_bytes(int64_t{8} << 30), int64_t{4} << 30);
  EXPECT_EQ(read_buffer_bytes(int64_t{6} << 30), int64_t{3} << 30);
  EXPECT_EQ(read_buffer_bytes(100'001), 49'152);  // three pages
  EXPECT_EQ(read_buffer_bytes(0), 0);
}

TEST(ReadBandwidth, SaysWhichKernelIsFaster) {
  const ReadBandwidth hopper{.bytes = int64_t{4} << 30,
                             .rates = {.bulk_ring = 4.6e12, .warp_rings = 4.662e12}};
  EXPECT_EQ(describe(hopper), "4.662 TB/s by rings of the warps (a ring of bulk copies: 4.600), over 4.3 GB");
  EXPECT_EQ(as_json(hopper).at("kernel"), "warp_rings");
  EXPECT_EQ(as_json(hopper).at("bulk_ring_bytes_per_s"), 4.6e12);
  EXPECT_EQ(hopper.best(), 4.662e12);
  const ReadBandwidth bulk{.bytes = 1'000'000'000, .rates = {.bulk_ring = 2e12, .warp_rings = 1e12}};
  EXPECT_EQ(describe(bulk), "2.000 TB/s by a ring of bulk copies (rings of the warps: 1.000), over 1.0 GB");
  EXPECT_EQ(as_json(bulk).at("kernel"), "bulk_ring");
  const ReadBandwidth ampere{.bytes = int64_t{4} << 30, .rates = {.warp_rings = 0.9e12}};
  EXPECT_EQ(describe(ampere), "0.900 TB/s by rings of the warps, over 4.3 GB");
  EXPECT_TRUE(as_json(ampere).at("bulk_ring_bytes_per_s").is_null());
  EXPECT_TRUE(as_json(ReadBandwidth{}).is_null());
}

}  // namespace
}  // namespace soliton
