// soliton-server itself under clients that no server should have: what it keeps of them, and how it ends.
#include <gmock/gmock.h>

#include <cmath>
#include <fstream>

#include "long_tests.h"
#include "server/program_fixture.h"

namespace soliton {
namespace {

using nlohmann::json;

constexpr const char* kLongStream =
    R"({"prompt": "abc", "max_tokens": 250, "stream": true, "ignore_eos": true})";

/// Small, so that what one thread once needs for a body is no matter beside what would be lost with each.
constexpr size_t kMaxBody = 64 << 10;

class AbusedProgram : public ServerProgram {
 protected:
  /// As long as it takes.
  void wait_for_metric(const std::string& line) const {
    while (ask(port_, "GET", "/metrics").body.find(line + "\n") == std::string::npos)
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }

  /// A bit of everything; afterwards nobody is left.
  void abuse(int round) {
    for (int i = 0; i < 24; ++i) {
      HttpClient client(port_);
      if (i % 3 == 1) client.send("POST /v1/completions HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\n{");
      if (i % 3 == 2) client.ask("POST", "/v1/completions", kLongStream);
    }
    EXPECT_EQ(ask(port_, "POST", "/v1/completions", std::string(2 * kMaxBody, ' ')).status, 413);
    EXPECT_EQ(ask(port_, "POST", "/v1/completions", std::string(kMaxBody, '[')).status, 400);
    EXPECT_EQ(ask(port_, "POST", "/v1/completions", "{\"prompt\": \"\xff\"}").status, 400);
    for (int i = 0; i < 2; ++i) {
      const json body = {{"prompt", {{round % 50, i, 3, 4, 5}, {i, round % 50}}},
                         {"max_tokens", 3},
                         {"n", 2},
                         {"logprobs", 2}};
      EXPECT_EQ(ask(port_, "POST", "/v1/completions", body.dump()).status, 200);
    }
    wait_for_metric("soliton_connections 1");
  }
};

TEST_F(AbusedProgram, HasAsMuchMemoryAfterwardsAsBefore) {
  SOLITON_LONG_RUNS_ONLY("PendingTest.WhatIsNotReadIsBounded bounds it");
#ifdef __SANITIZE_ADDRESS__
  GTEST_SKIP() << "the sanitizer keeps what was freed, and finds leaks by itself";
#endif
  start({"--max-body", std::to_string(kMaxBody)});
  const int warm_rounds = 300;  // each thread has its own memory, and takes it when its turn comes
  const int rounds = 300;
  for (int i = 0; i < warm_rounds; ++i) abuse(i);
  const int64_t before = resident_bytes();
  ASSERT_GT(before, 0);
  std::vector<int64_t> sizes = {before};
  for (int i = 0; i < rounds; ++i) {
    abuse(i);
    sizes.push_back(resident_bytes());
  }
  EXPECT_LE(static_cast<double>(sizes.back()), 1.01 * static_cast<double>(before))
      << testing::PrintToString(sizes);
  process_->signal(SIGTERM);
  EXPECT_EQ(process_->wait().status, 0);
}

// Of eight rows and as many that wait, those under way and those that have not begun.
TEST_F(AbusedProgram, EndsAllStreamsWhenItIsTold) {
  start({"--grace", "0"});
  std::vector<HttpClient> clients;
  for (int i = 0; i < 16; ++i) {
    clients.emplace_back(port_);
    clients.back().ask("POST", "/v1/completions", kLongStream);
  }
  wait_for_metric("soliton_samples_waiting 8");
  process_->signal(SIGTERM);
  for (HttpClient& client : clients) {
    const HttpAnswer answer = client.answer();
    if (answer.status == 503) {
      EXPECT_EQ(answer.json()["error"]["code"], "shutdown");  // came too late
      continue;
    }
    ASSERT_EQ(answer.status, 200);
    const std::vector<std::string> events = answer.events();
    ASSERT_GE(events.size(), 2u);
    EXPECT_EQ(events.back(), "[DONE]");
    const json last = json::parse(events[events.size() - 2]);
    EXPECT_TRUE(last.contains("error") ? last["error"]["code"] == "shutdown"
                                       : last["choices"][0]["finish_reason"] == "length")
        << last;
  }
  EXPECT_EQ(process_->wait().status, 0);
}

}  // namespace
}  // namespace soliton
