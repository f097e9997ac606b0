// Copies of 16 bytes by single lanes: when they land, and who may read them.
#include <gtest/gtest.h>

#include "emulator_testing.h"

namespace soliton {
namespace {

constexpr int kLanes = 32;

struct alignas(16) Page {
  uint32_t words[kLanes];
};

/// Lanes copy two pages in pieces, wait until kInFlight sets are in flight at most, meet or not, and read page
/// params.num_steps.
struct TwoPages {
  Page pages[2];
};

template <int kInFlight, bool kMeets>
void pieces_kernel(LaunchParams params) {
  auto* shared = reinterpret_cast<TwoPages*>(shared_memory());
  auto* pages = static_cast<Page*>(params.workspace);
  constexpr int kPieceWords = 4;
  const int first = thread_index() * kPieceWords;
  for (int page = 0; page < 2; ++page) {
    if (first < kLanes) copy_page_piece(&shared->pages[page].words[first], &pages[page].words[first]);
    commit_copies();
  }
  wait_copies<kInFlight>();
  if (kMeets) warp_sync();
  const int read = params.num_steps;
  store_global(&pages[2].words[thread_index()], load_shared(&shared->pages[read].words[thread_index()]) + 1);
  wait_copies<0>();
}

TEST(Pieces, AreThereAfterTheWaitForTheirSet) {
  const LaunchShape shape = {1, kLanes, sizeof(TwoPages)};
  for (const CopyPolicy policy : {CopyPolicy::kEager, CopyPolicy::kLate, CopyPolicy::kRandom}) {
    Buffer<Page> pages(3);
    for (uint32_t i = 0; i < kLanes; ++i) {
      pages[0].words[i] = i * i;
      pages[1].words[i] = 7 * i;
    }
    LaunchParams params = with_workspace(pages.data());
    params.num_steps = 0;
    EXPECT_EQ(run(pieces_kernel<1, true>, params, shape, checked(1, policy)), "");
    for (uint32_t i = 0; i < kLanes; ++i) EXPECT_EQ(pages[2].words[i], i * i + 1);
    params.num_steps = 1;
    EXPECT_EQ(run(pieces_kernel<0, true>, params, shape, checked(1, policy)), "");
    for (uint32_t i = 0; i < kLanes; ++i) EXPECT_EQ(pages[2].words[i], 7 * i + 1);
  }
}

// Who waits for pieces sleeps until they land: it looks once, whatever others store meanwhile.
TEST(Pieces, AreWaitedForWithoutPolls) {
  Buffer<Page> pages(3);
  EmulationControl control;
  control.options = checked(1, CopyPolicy::kLate);
  EXPECT_EQ(emulation::run(pieces_kernel<0, true>, with_workspace(pages.data()),
                           {1, kLanes, sizeof(TwoPages)}, control),
            "");
  EXPECT_EQ(control.stats.polls, 0u);
}

TEST(Pieces, OfASetThatIsInFlightMayNotBeRead) {
  const LaunchShape shape = {1, kLanes, sizeof(TwoPages)};
  for (const CopyPolicy policy : {CopyPolicy::kEager, CopyPolicy::kLate, CopyPolicy::kRandom}) {
    Buffer<Page> pages(3);
    LaunchParams params = with_workspace(pages.data());
    params.num_steps = 1;
    const std::string error = run(pieces_kernel<1, true>, params, shape, checked(1, policy));
    EXPECT_TRUE(contains(error, "load is not ordered after copy write")) << error;
  }
}

TEST(Pieces, OfAnotherLaneAreNotThereBeforeItIsMet) {
  Buffer<Page> pages(3);
  const std::string error =
      run(pieces_kernel<0, false>, with_workspace(pages.data()), {1, kLanes, sizeof(TwoPages)}, checked());
  EXPECT_TRUE(contains(error, "load is not ordered after copy write") ||
              contains(error, "copy write is not ordered after load"))
      << error;
}

void abandoned_piece_kernel(LaunchParams params) {
  if (thread_index() == 0) copy_page_piece(shared_memory(), params.workspace);
  commit_copies();
}

TEST(Pieces, InFlightAtTheEndOfTheCtaAreAnError) {
  Buffer<uint4> words(1);
  const std::string error = run(abandoned_piece_kernel, with_workspace(words.data()), {1, kLanes, 16},
                                checked(1, CopyPolicy::kLate));
  EXPECT_TRUE(contains(error, "CTA 0 returned with a copy in flight: shared+0, 16 bytes")) << error;
}

/// Another thread has stored what a lane copies; the lane has met it before, or not.
void written_source_kernel(LaunchParams params) {
  auto* words = static_cast<uint32_t*>(params.workspace);
  if (thread_index() == 1) store_global(&words[2], 5u);
  if (params.num_steps == 1) warp_sync();
  if (thread_index() == 0) copy_page_piece(shared_memory(), words);
  commit_copies();
  wait_copies<0>();
}

TEST(Pieces, ReadWhatTheirLaneIsOrderedAfter) {
  Buffer<uint4> words(1);
  LaunchParams params = with_workspace(words.data());
  params.num_steps = 1;
  EXPECT_EQ(run(written_source_kernel, params, {1, kLanes, 16}, checked()), "");
  params.num_steps = 0;
  int found = 0;
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    const std::string error = run(written_source_kernel, params, {1, kLanes, 16}, checked(seed));
    if (error.empty())
      continue;  // the store came later: found as a write below a read in flight, or not at all
    ++found;
    EXPECT_TRUE(contains(error, "reads what the issuing thread is not ordered after") ||
                contains(error, "store is not ordered after copy read"))
        << error;
  }
  EXPECT_GT(found, 0);
}

}  // namespace
}  // namespace soliton
