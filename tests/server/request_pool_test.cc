// Who is served when, by the threads that read requests.
#include "runtime/server/request_pool.h"

#include <gmock/gmock.h>

#include <future>

namespace soliton {
namespace {

using namespace std::chrono_literals;

class RequestPoolTest : public testing::Test {
 protected:
  std::shared_ptr<PendingReply> submit(RequestPool& pool, const std::string& client, RequestPool::Work work) {
    auto reply = std::make_shared<PendingReply>();
    if (!pool.submit(client, reply, std::move(work))) return nullptr;
    return reply;
  }
  /// Work that lasts until open().
  RequestPool::Work blocked() {
    return [this, gate = gate_.get_future().share()] {
      ++num_begun_;
      gate.wait();
    };
  }
  void wait_for_begun(int number) const {
    while (num_begun_ < number) std::this_thread::sleep_for(1ms);
  }

  std::promise<void> gate_;
  std::atomic<int> num_begun_ = 0;
};

TEST_F(RequestPoolTest, OneClientLeavesThreadsForOthers) {
  RequestPool pool({.num_threads = 4});
  const RequestPool::Work slow = blocked();
  for (int i = 0; i < 10; ++i) EXPECT_NE(submit(pool, "greedy", slow), nullptr);
  wait_for_begun(2);
  for (int i = 0; i < 50; ++i) {
    std::promise<void> done;
    submit(pool, "modest", [&] { done.set_value(); });
    done.get_future().wait();
  }
  EXPECT_EQ(num_begun_, 2);
  EXPECT_FALSE(pool.is_idle());
  gate_.set_value();
  while (!pool.is_idle()) std::this_thread::sleep_for(1ms);
  EXPECT_EQ(num_begun_, 10);
}

TEST_F(RequestPoolTest, TakesNoMoreThanItMay) {
  RequestPool pool({.num_threads = 1, .max_waiting = 5, .max_waiting_of_one = 3});
  const RequestPool::Work slow = blocked();
  submit(pool, "a", slow);
  wait_for_begun(1);
  for (int i = 0; i < 3; ++i) EXPECT_NE(submit(pool, "a", slow), nullptr);
  EXPECT_EQ(submit(pool, "a", slow), nullptr);
  for (int i = 0; i < 2; ++i) EXPECT_NE(submit(pool, "b", slow), nullptr);
  EXPECT_EQ(submit(pool, "c", slow), nullptr);
  gate_.set_value();
}

TEST_F(RequestPoolTest, WhatNobodyWaitsForIsNotBegun) {
  RequestPool pool({.num_threads = 1});
  submit(pool, "a", blocked());
  wait_for_begun(1);
  const auto held = std::make_shared<int>();
  const auto reply = submit(pool, "a", [this, held] { ++num_begun_; });
  EXPECT_EQ(held.use_count(), 2);
  reply->abandon();
  EXPECT_EQ(held.use_count(), 1);  // its body has gone at once
  gate_.set_value();
  while (!pool.is_idle()) std::this_thread::sleep_for(1ms);
  EXPECT_EQ(num_begun_, 1);
}

}  // namespace
}  // namespace soliton
