// On a card: what soliton-bench measures S with, and what NVML says. Skipped without one.
#include <gtest/gtest.h>

#include <cstdlib>
#include <string>

#include "models/error.h"
#include "runtime/bench/nvml.h"
#include "runtime/device/read_bandwidth.h"

namespace soliton {
namespace {

/// The tiny model's kernel for sm_90, of the build or where the environment says.
std::string bench_kernel() {
  const char* chosen = std::getenv("SOLITON_KERNELS");
  return std::string(chosen != nullptr ? chosen : SOLITON_KERNELS) + "/tiny-stories-sm90.so";
}

/// Nothing where there is no card, or no kernel for it; then `reason` says why.
std::optional<KernelLibrary> library_on_card(std::string& reason) {
  try {
    KernelLibrary library = KernelLibrary::open(bench_kernel());
    library.select_device(0);
    return library;
  } catch (const Error& error) {
    reason = error.what();
    return std::nullopt;
  }
}

// That the kernels have read everything, they see themselves: their sums are compared with those of plain loads.
TEST(CardBandwidth, IsMeasuredByBothKernels) {
  std::string reason;
  std::optional<KernelLibrary> library = library_on_card(reason);
  if (!library) GTEST_SKIP() << reason;
  const int64_t free_bytes = library->device().free_bytes;
  const ReadBandwidth bandwidth = measure_read_bandwidth(*library, 3);
  EXPECT_EQ(bandwidth.bytes, read_buffer_bytes(free_bytes));
  constexpr double kLeast = 50e9;  // the slowest cards from 8.0 on have 68e9
  constexpr double kMost = 20e12;
  EXPECT_GT(bandwidth.rates.warp_rings, kLeast);
  EXPECT_LT(bandwidth.best(), kMost);
  if (library->model().compute_capability < kBulkCopyCapability) {
    EXPECT_EQ(bandwidth.rates.bulk_ring, 0) << "code for cards without bulk copies";
  } else {
    EXPECT_GT(bandwidth.rates.bulk_ring, kLeast);
    EXPECT_NEAR(bandwidth.rates.warp_rings / bandwidth.rates.bulk_ring, 1, 0.2);
  }
  library->select_device(0);
  EXPECT_GE(library->device().free_bytes, free_bytes - (int64_t{64} << 20)) << "the buffer has been freed";
}

TEST(CardSensors, SayWhatTheCardDoes) {
  std::string reason;
  if (!library_on_card(reason)) GTEST_SKIP() << reason;
  std::optional<Nvml> card;
  try {
    card.emplace(0);
  } catch (const Error& absent) {
    GTEST_SKIP() << absent.what();
  }
  if (const auto watts = card->watts()) {
    EXPECT_GT(*watts, 1);
    EXPECT_LT(*watts, 3000);
  }
  if (const auto mhz = card->sm_mhz()) {
    EXPECT_GT(*mhz, 100);
    EXPECT_LT(*mhz, 5000);
  }
  if (const auto celsius = card->celsius()) {
    EXPECT_GT(*celsius, 0);
    EXPECT_LT(*celsius, 120);
  }
}

}  // namespace
}  // namespace soliton
