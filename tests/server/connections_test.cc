// Who keeps his place, and who loses it to whom.
#include "runtime/server/connections.h"

#include <gmock/gmock.h>

#include <cstdlib>
#include <new>
#include <vector>

namespace {

thread_local int allocations_left = -1;  // of this thread, until one fails; negative: none does

}  // namespace

void* operator new(size_t bytes) {
  if (allocations_left == 0) throw std::bad_alloc();
  if (allocations_left > 0) --allocations_left;
  if (void* const memory = std::malloc(bytes == 0 ? 1 : bytes)) return memory;
  throw std::bad_alloc();
}
void operator delete(void* memory) noexcept {
  std::free(memory);
}
void operator delete(void* memory, size_t /*bytes*/) noexcept {
  std::free(memory);
}

namespace soliton {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

constexpr size_t kBody = 100;
constexpr size_t kOfOne = kBody * HttpLimits::kBodiesOfOne;
constexpr size_t kOfAll = kBody * HttpLimits::kBodiesOfAll;

class ConnectionsTest : public testing::Test {
 protected:
  using Entry = std::unique_ptr<Connections::Entry>;

  Entry enter(const std::string& client, const std::string& name) {
    return all_->enter(client, [this, name] { closed_.push_back(name); });
  }

  std::shared_ptr<Connections> all_ =
      std::make_shared<Connections>(HttpLimits{.body_bytes = kBody, .connections = 16});
  std::vector<std::string> closed_;
};

TEST_F(ConnectionsTest, TheGreediestGivesWayAndItsOldest) {
  std::vector<Entry> entries;
  for (int i = 0; i < 13; ++i) entries.push_back(enter("greedy", "g" + std::to_string(i)));
  for (int i = 0; i < 3; ++i) entries.push_back(enter("modest", "m" + std::to_string(i)));
  EXPECT_THAT(closed_, IsEmpty());
  entries.push_back(enter("late", "l"));
  EXPECT_THAT(closed_, ElementsAre("g0"));
  entries[1]->rest();  // it has been answered: others have waited longer
  entries[2]->work();  // it is being answered
  entries.push_back(enter("later", "m"));
  EXPECT_THAT(closed_, ElementsAre("g0", "g3"));
  EXPECT_FALSE(entries[3]->work());
}

TEST_F(ConnectionsTest, OneHasNotAll) {
  std::vector<Entry> entries;
  for (int i = 0; i < 14; ++i) {
    entries.push_back(enter("greedy", "g" + std::to_string(i)));
    entries.back()->work();
  }
  EXPECT_EQ(enter("greedy", "further"), nullptr);
  entries.push_back(enter("other", "o"));
  EXPECT_NE(entries.back(), nullptr);
  entries[7]->rest();
  entries.push_back(enter("greedy", "further"));
  EXPECT_THAT(closed_, ElementsAre("g7"));
}

TEST_F(ConnectionsTest, WhoEndsLeavesRoom) {
  for (int i = 0; i < 100; ++i) {
    const Entry entry = enter("client", "c");
    EXPECT_TRUE(entry->grow(kBody));
    EXPECT_TRUE(entry->work());
  }
  EXPECT_THAT(closed_, IsEmpty());
  EXPECT_EQ(all_->size(), 0u);
}

TEST_F(ConnectionsTest, TheOldestBodyOfOneWhoSendsTooManyGoes) {
  const Entry first = enter("a", "first");
  const Entry second = enter("a", "second");
  const Entry other = enter("b", "other");
  EXPECT_TRUE(other->grow(kBody));
  EXPECT_TRUE(first->grow(kOfOne - kBody));
  EXPECT_TRUE(second->grow(kBody));
  EXPECT_TRUE(second->grow(kBody + 1));
  EXPECT_THAT(closed_, ElementsAre("first"));
  EXPECT_FALSE(first->grow(kOfOne - kBody + 1));
  EXPECT_TRUE(second->grow(kOfOne));
  EXPECT_FALSE(second->grow(kOfOne + 1));  // nobody else is left
  EXPECT_THAT(closed_, ElementsAre("first"));
}

TEST_F(ConnectionsTest, OfAllTogetherTheGreediestGoes) {
  std::vector<Entry> entries;
  for (const size_t client : {0, 1, 2, 3}) {
    entries.push_back(enter("client " + std::to_string(client), std::to_string(client)));
    EXPECT_TRUE(entries.back()->grow(kOfAll / 4 - (client == 2 ? 0 : 2)));
  }
  const Entry modest = enter("modest", "modest");
  EXPECT_TRUE(modest->grow(6));
  EXPECT_THAT(closed_, IsEmpty());
  EXPECT_TRUE(modest->grow(7));
  EXPECT_THAT(closed_, ElementsAre("2"));
}

// What has come and waits to be read still takes its room, be the connection closed, until it has been read.
TEST_F(ConnectionsTest, BodiesTakeRoomUntilTheyAreRead) {
  std::vector<std::shared_ptr<const void>> kept;
  for (size_t i = 0; i < HttpLimits::kBodiesOfOne; ++i) {
    const Entry entry = enter("a", "a");
    EXPECT_TRUE(entry->grow(kBody));
    EXPECT_TRUE(entry->work());
    kept.push_back(entry->keep_body());
  }
  const Entry further = enter("a", "further");
  EXPECT_FALSE(further->grow(1));
  kept.pop_back();
  EXPECT_TRUE(further->grow(kBody));
  EXPECT_THAT(closed_, IsEmpty());
}

/// Does this with one more allocation each time until all are there. Returns how many there are.
template <class Body>
int for_each_allocation_that_fails(const Body& body) {
  for (int n = 0;; ++n) {
    try {
      allocations_left = n;
      body();
      allocations_left = -1;
      return n;
    } catch (const std::bad_alloc&) {
      allocations_left = -1;
    }
  }
}

// Who has no memory for a place, or for a body's, takes none, and holds nobody up.
TEST_F(ConnectionsTest, WithoutMemoryNothingIsTaken) {
  Entry entry;
  EXPECT_GT(for_each_allocation_that_fails([&] { entry = all_->enter("a", [] {}); }), 2);
  EXPECT_EQ(all_->size(), 1u);
  for (int i = 0; i < 2; ++i) {  // as often as there is room for
    EXPECT_TRUE(entry->grow(kOfOne));
    std::shared_ptr<const void> kept;
    EXPECT_GT(for_each_allocation_that_fails([&] { kept = entry->keep_body(); }), 0);
    EXPECT_FALSE(entry->grow(1));
    kept.reset();
    EXPECT_TRUE(entry->grow(0));
  }
}

}  // namespace
}  // namespace soliton
