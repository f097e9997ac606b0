// Who keeps his place, and who loses it to whom.
#include "runtime/server/connections.h"

#include <gmock/gmock.h>

#include <vector>

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

}  // namespace
}  // namespace soliton
