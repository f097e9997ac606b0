#include "runtime/server/fair_queue.h"

#include <gmock/gmock.h>

namespace soliton {
namespace {

using testing::ElementsAre;

std::vector<int> pop_all(FairQueue<int>& queue) {
  std::vector<int> order;
  while (!queue.empty()) {
    EXPECT_EQ(queue.front(), queue.front());
    const int next = queue.front();
    EXPECT_EQ(queue.pop(), next);
    order.push_back(next);
  }
  return order;
}

TEST(FairQueue, LinesTakeTurns) {
  FairQueue<int> queue;
  for (const int item : {10, 11, 12, 13}) queue.push("greedy", item);
  queue.push("modest", 20);
  queue.push("late", 30);
  queue.push("late", 31);
  EXPECT_EQ(queue.size(), 7u);
  EXPECT_THAT(pop_all(queue), ElementsAre(10, 20, 30, 11, 31, 12, 13));
}

TEST(FairQueue, WhoComesBackIsNext) {
  FairQueue<int> queue;
  queue.push("a", 1);
  queue.push("b", 2);
  EXPECT_EQ(queue.pop(), 1);
  queue.push_front(1);
  EXPECT_THAT(pop_all(queue), ElementsAre(1, 2));
}

TEST(FairQueue, WhoMayNotGoKeepsHisTurn) {
  FairQueue<int> queue;
  for (const int item : {10, 11}) queue.push("a", item);
  for (const int item : {20, 21}) queue.push("b", item);
  EXPECT_EQ(queue.size_of("a"), 2u);
  const auto only = [](const std::string& wanted) {
    return [wanted](const std::string& client) { return client == wanted; };
  };
  EXPECT_EQ(queue.pop_of(only("b")), 20);
  EXPECT_EQ(queue.pop_of(only("c")), std::nullopt);
  EXPECT_EQ(queue.size_of("b"), 1u);
  EXPECT_THAT(pop_all(queue), ElementsAre(10, 21, 11));
}

TEST(FairQueue, TakesOutWhereverTheyAre) {
  FairQueue<int> queue;
  for (const int item : {1, 2, 3, 4}) queue.push("a", item);
  queue.push("b", 6);
  queue.push("c", 7);
  queue.push_front(8);
  EXPECT_THAT(queue.take_if([](int item) { return item % 2 == 0; }), ElementsAre(8, 2, 4, 6));
  EXPECT_EQ(queue.size(), 3u);
  queue.push("b", 9);
  EXPECT_THAT(pop_all(queue), ElementsAre(1, 7, 9, 3));
}

}  // namespace
}  // namespace soliton
