// Several cards: a store to another card's memory arrives late and out of order, and only what is of the system's scope
// orders anything for another card.
#include <gtest/gtest.h>

#include <string>

#include "emulator_testing.h"

namespace soliton {
namespace {

constexpr int kLanes = 32;
constexpr uint64_t kSeeds = 20;

/// A card's memory: words that the other card writes to.
struct Mail {
  alignas(16) uint64_t data;
  uint64_t flag;
  uint32_t count;
  float seen;
};

Mail* mail_of(const LaunchParams& params, int card) {
  return reinterpret_cast<Mail*>(static_cast<unsigned char*>(params.workspace) +
                                 params.peers[card].workspace);
}

/// What stands between data and the flag that says that it is there.
enum class Between { kNothing, kCardFence, kSystemFence };

/// Card 0 writes data and a flag to card 1, which reads the data once it sees the flag.
template <Between kBetween>
void send(LaunchParams params) {
  Mail* mail = mail_of(params, 1);
  if (thread_index() != 0) return;
  if (params.card == 0) {
    store_relaxed_system(&mail->data, uint64_t{7});
    if constexpr (kBetween == Between::kCardFence) fence_device();
    if constexpr (kBetween == Between::kSystemFence) fence_system();
    store_relaxed_system(&mail->flag, uint64_t{1});
  } else {
    Spin spin({});
    while (load_relaxed_system(&mail->flag) == 0) spin.pause({WaitKind::kVector, 0, 0, 0, 0, 0});
    mail->seen = static_cast<float>(load_relaxed_system(&mail->data));
  }
}

/// Card 1 clears a word of its own, and tells card 0, which then writes it.
template <Between kBetween>
void clear_and_write(LaunchParams params) {
  Mail* mine = mail_of(params, 1);
  Mail* other = mail_of(params, 0);
  if (thread_index() != 0) return;
  if (params.card == 1) {
    store_global(&mine->data, uint64_t{0});
    if constexpr (kBetween == Between::kCardFence) fence_device();
    if constexpr (kBetween == Between::kSystemFence) fence_system();
    store_relaxed_system(&other->flag, uint64_t{1});
  } else {
    Spin spin({});
    while (load_relaxed_system(&other->flag) == 0) spin.pause({WaitKind::kVector, 0, 0, 0, 0, 0});
    store_relaxed_system(&mine->data, uint64_t{5});
  }
}

/// Every thread of both cards arrives on the counter of each.
template <bool kSystem>
void count(LaunchParams params) {
  for (int card = 0; card < 2; ++card) {
    if constexpr (kSystem) {
      add_release_system(&mail_of(params, card)->count, 1);
    } else {
      add_release(&mail_of(params, card)->count, 1);
    }
  }
  Spin spin({});
  while (load_acquire_system(&mail_of(params, params.card)->count) < 2 * kLanes)
    spin.pause({WaitKind::kCounter, 0, 0, 0, 0, 0});
}

struct TwoCards {
  Buffer<Mail> mail[2] = {Buffer<Mail>(1, {}, 0), Buffer<Mail>(1, {}, 1)};
  EmulationControl control;

  std::string run(emulation::Kernel kernel, const EmulationOptions& options) {
    std::vector<emulation::CardLaunch> cards;
    for (int card = 0; card < 2; ++card) {
      mail[card][0] = {};
      LaunchParams params{};
      params.workspace = mail[card].data();
      params.card = card;
      for (int other = 0; other < 2; ++other) {
        params.peers[other].workspace = reinterpret_cast<unsigned char*>(mail[other].data()) -
                                        reinterpret_cast<unsigned char*>(mail[card].data());
      }
      cards.emplace_back(params);
    }
    control.options = options;
    return emulation::run_cards(kernel, cards, {.num_ctas = 1, .threads_per_cta = kLanes, .shared_bytes = 16},
                                control);
  }
};

EmulationOptions unchecked(uint64_t seed) {
  EmulationOptions options;
  options.seed = seed;
  options.copies = CopyPolicy::kLate;
  return options;
}

TEST(RemoteStores, OvertakeOneAnotherWithoutAFenceOfTheSystem) {
  TwoCards cards;
  int overtaken[3] = {};
  for (uint64_t seed = 1; seed <= kSeeds; ++seed) {
    ASSERT_EQ(cards.run(send<Between::kNothing>, unchecked(seed)), "");
    overtaken[0] += cards.mail[1][0].seen == 0;
    ASSERT_EQ(cards.run(send<Between::kCardFence>, unchecked(seed)), "");
    overtaken[1] += cards.mail[1][0].seen == 0;
    ASSERT_EQ(cards.run(send<Between::kSystemFence>, unchecked(seed)), "");
    overtaken[2] += cards.mail[1][0].seen == 0;
  }
  EXPECT_GT(overtaken[0], 0);
  EXPECT_GT(overtaken[1], 0);
  EXPECT_EQ(overtaken[2], 0);
  EXPECT_EQ(cards.control.stats.remote_stores, 2u);
}

TEST(RemoteStores, RaceWithWhatTheOtherCardClearedWithoutAFenceOfTheSystem) {
  TwoCards cards;
  for (uint64_t seed = 1; seed <= kSeeds; ++seed) {
    EXPECT_EQ(cards.run(clear_and_write<Between::kSystemFence>, checked(seed)), "");
    EXPECT_EQ(cards.mail[1][0].data, 5u);
    for (const auto kernel : {clear_and_write<Between::kNothing>, clear_and_write<Between::kCardFence>}) {
      const std::string text = cards.run(kernel, checked(seed));
      EXPECT_TRUE(contains(text, "store_relaxed_system is not ordered after store")) << text;
    }
  }
}

TEST(RemoteStores, AreCountedByEachCard) {
  TwoCards cards;
  for (const CopyPolicy policy : {CopyPolicy::kLate, CopyPolicy::kRandom, CopyPolicy::kEager}) {
    EXPECT_EQ(cards.run(count<true>, checked(3, policy)), "");
    EXPECT_EQ(cards.mail[0][0].count, 2u * kLanes);
    EXPECT_EQ(cards.mail[1][0].count, 2u * kLanes);
  }
  const std::string text = cards.run(count<false>, checked());
  EXPECT_TRUE(contains(text, "used at the scope of card")) << text;
}

TEST(RemoteStores, LandBeforeTheLaunchEnds) {
  TwoCards cards;
  const auto kernel = [](LaunchParams params) {
    if (params.card == 0 && thread_index() == 0) store_relaxed_system(&mail_of(params, 1)->data, uint64_t{9});
  };
  ASSERT_EQ(cards.run(kernel, unchecked(1)), "");
  EXPECT_EQ(cards.mail[1][0].data, 9u);
}

}  // namespace
}  // namespace soliton
