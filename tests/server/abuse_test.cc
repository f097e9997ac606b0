// What no client should do, before the whole server on the small model: it goes on, answers others rightly, and keeps
// nothing of those who are gone.
#include <gmock/gmock.h>

#include <fstream>
#include <thread>

#include "cli/run_program.h"
#include "long_tests.h"
#include "server/service_fixture.h"

namespace soliton {
namespace {

using nlohmann::json;
using testing::AnyOf;
using testing::Each;
using testing::Eq;
using testing::HasSubstr;

constexpr int kMaxWaiting = 64;
constexpr const char* kEndless =
    R"({"prompt": "abc", "max_tokens": 300, "stream": true, "ignore_eos": true})";

class AbuseTest : public ServiceTest {
 protected:
  explicit AbuseTest(int num_pages = 40)
      : ServiceTest({.model = "small", .api_key = {}, .origins = {}}, kMaxWaiting, num_pages) {
    expected_ = alone("expected");
  }

  json completion(const std::string& prompt, int max_tokens = 8) {
    return complete({{"prompt", prompt}, {"max_tokens", max_tokens}, {"ignore_eos", true}});
  }
  std::string alone(const std::string& prompt) { return completion(prompt)["choices"][0]["text"]; }
  /// Others are answered, and rightly.
  void expect_good_answer() { EXPECT_EQ(alone("expected"), expected_); }
  void wait_until_idle() {
    while (!scheduler_->is_idle()) std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  void expect_nobody_is_left() {
    EXPECT_EQ(ask(port(), "GET", "/health").status, 200);  // all who came before are let in by then
    while (metrics_.value(Metrics::Gauge::kConnections) > 0)
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
    wait_until_idle();  // with what they asked for before they went
  }

  std::string expected_;
};

TEST_F(AbuseTest, TwoHundredSlowClientsDelayNobody) {
  std::vector<HttpClient> slow;
  const std::string request =
      "POST /v1/completions HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n{\"prompt\": ";
  for (size_t i = 0; i < 200; ++i) {
    slow.emplace_back(port());
    slow.back().send(std::string_view(request).substr(0, i % request.size()));
  }
  for (int round = 0; round < 3; ++round) {
    for (HttpClient& client : slow) client.send(" ");
    expect_good_answer();
  }
  slow.clear();
  expect_nobody_is_left();
}

// They ask for much and read nothing of it.
TEST_F(AbuseTest, ThoseWhoDoNotReadAreLetGo) {
  std::vector<HttpClient> deaf;
  for (int i = 0; i < 12; ++i) {
    deaf.emplace_back(port());
    deaf.back().ask("POST", "/v1/completions", kEndless);
  }
  deaf.clear();
  expect_good_answer();
  expect_nobody_is_left();
}

TEST_F(AbuseTest, LargeBodiesAreRefused) {
  constexpr size_t kLarge = 50 << 20;
  EXPECT_EQ(ask(port(), "POST", "/v1/completions", std::string(kLarge, ' ')).status, 413);
  HttpClient chunked(port());
  chunked.send("POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n");
  const std::string chunk = "100000\r\n" + std::string(1 << 20, ' ') + "\r\n";
  for (int i = 0; i < 50 && chunked.send(chunk); ++i) {
  }
  EXPECT_EQ(chunked.answer().status, 413);
  // As large as may be: what it holds is refused for what it is.
  const std::string prompt(long_tests() ? HttpLimits().body_bytes - 100 : 1 << 20, 'a');
  const HttpAnswer answer = post("/v1/completions", {{"prompt", prompt}});
  EXPECT_EQ(answer.json()["error"]["code"], "context_length_exceeded") << answer.status;
  expect_good_answer();
}

TEST_F(AbuseTest, WhatIsNoTextIsRefusedInText) {
  for (const std::string bytes : {"\xff", "\xc0\xaf", "\xed\xa0\x80", "\xf4\x90\x80\x80", "\xe2\x82"}) {
    for (const std::string& body :
         {"{\"prompt\": \"" + bytes + "\"}", "{\"" + bytes + "\": 1, \"prompt\": \"a\"}", bytes}) {
      const HttpAnswer answer = ask(port(), "POST", "/v1/completions", body);
      EXPECT_EQ(answer.status, 400);
      EXPECT_EQ(answer.json()["error"]["type"], "invalid_request_error");  // which is JSON
    }
    for (const std::string& headers : {"Authorization: " + bytes + "\r\n", "Origin: " + bytes + "\r\n"}) {
      const HttpAnswer answer = ask(port(), "GET", "/v1/models", "", headers);
      EXPECT_THAT(answer.status, AnyOf(200, 400, 403));
      EXPECT_FALSE(answer.json().empty());
    }
    HttpClient path(port());
    path.send("GET /v1/models/" + bytes + " HTTP/1.1\r\nHost: localhost\r\n\r\n");
    const HttpAnswer answer = path.answer();
    EXPECT_THAT(answer.status, AnyOf(400, 404));
    EXPECT_FALSE(answer.json().empty());
  }
  expect_good_answer();
}

TEST_F(AbuseTest, DeepAndWideJsonIsRefusedOrTaken) {
  for (const int depth : {60, 65, 1000, long_tests() ? 1'000'000 : 100'000}) {
    std::string nested =
        std::string(static_cast<size_t>(depth), '[') + std::string(static_cast<size_t>(depth), ']');
    for (
        const std::string& body :
        {nested, R"({"prompt": )" + nested + "}", R"({"prompt": "a", "max_tokens": 1, "x": )" + nested + "}",
         R"({"messages": [{"role": "user", "content": "a"}], "max_tokens": 1, "chat_template_kwargs": {"x": )" +
             nested + "}}"}) {
      const HttpAnswer answer =
          ask(port(), "POST",
              depth < 65 && body.find("messages") != std::string::npos ? "/v1/chat/completions"
                                                                       : "/v1/completions",
              body);
      EXPECT_THAT(answer.status, AnyOf(200, 400)) << answer.body;
      EXPECT_TRUE(depth < 64 || answer.status == 400) << depth;
    }
  }
  std::string wide = "[0";
  for (int i = 0; i < (long_tests() ? 1'000'000 : 100'000); ++i) wide += ",0";
  EXPECT_EQ(ask(port(), "POST", "/v1/completions", R"({"prompt": )" + wide + "]}").json()["error"]["code"],
            "context_length_exceeded");
  expect_good_answer();
}

TEST_F(AbuseTest, ThousandConnectsAndDropsLeaveNothing) {
  const int num_drops = 1000;
  for (int i = 0; i < num_drops; ++i) {
    HttpClient client(port());
    if (i % 4 == 1) client.send("POST /v1/comp");
    if (i % 4 == 2) client.ask("POST", "/v1/completions", kEndless);
    if (i % 4 == 3) client.ask("POST", "/v1/completions", R"({"prompt": "abc", "n": 5, "max_tokens": 300})");
  }
  expect_nobody_is_left();
  expect_good_answer();
}

TEST_F(AbuseTest, OneConnectionServesManyRequests) {
  HttpClient client(port());
  for (int i = 0; i < 100; ++i) {
    client.ask("POST", "/v1/completions", R"({"prompt": "a", "max_tokens": 1, "stream": true})");
    client.ask("POST", "/v1/completions", "{");
    client.ask("GET", "/nothing");
    client.ask("GET", "/v1/models");
    EXPECT_EQ(client.answer().events().back(), "[DONE]");
    for (const int status : {400, 404, 200}) EXPECT_EQ(client.answer().status, status);
  }
  EXPECT_EQ(metrics_.value(Metrics::Gauge::kConnections), 1);
}

// ---- The kernel fails

TEST_F(AbuseTest, AStalledKernelIsToldToAll) {
  std::vector<HttpClient> clients;
  const auto ask_all = [&] {
    for (const char* body : {kEndless, R"({"prompt": "abc", "max_tokens": 300, "ignore_eos": true})"}) {
      clients.emplace_back(port());
      clients.back().ask("POST", "/v1/completions", body);
    }
  };
  kernel_.engine().set_num_ctas(1);  // of two: the kernel waits for one that is not there
  for (int i = 0; i < 6; ++i) ask_all();
  for (size_t i = 0; i < clients.size(); ++i) {
    const HttpAnswer answer = clients[i].answer();
    const bool is_late = answer.status == 503;  // for a stream: not begun before the kernel had failed
    const json error = is_late ? answer.json()["error"] : json::parse(answer.events().at(0))["error"];
    EXPECT_THAT(error["message"].get<std::string>(), HasSubstr("stalled")) << i;
    EXPECT_EQ(error["type"], "server_error");
    EXPECT_TRUE(is_late || answer.events().back() == "[DONE]");
  }
  EXPECT_EQ(ask(port(), "GET", "/health").status, 503);
  EXPECT_EQ(ask(port(), "GET", "/metrics").status, 200);
}

// ---- Whose tokens are whose

/// A prompt that is a function of its number, and whose answer leaves no doubt: where the best token is hardly better than
/// the next one, rounding decides, and that depends on who else is there.
class Answers : public AbuseTest {
 protected:
  using AbuseTest::AbuseTest;

  static constexpr int kTokens = 6;
  static constexpr double kDoubt = 0.02;  // nats

  struct Known {
    std::string prompt;
    std::string text;
  };

  static std::string prompt(uint32_t number, size_t length) {
    std::string text;
    for (size_t i = 0; i < length; ++i) text += static_cast<char>('a' + random_bits(i, number) % 26);
    return text;
  }
  /// Prompts with their answers, found while nobody else asks.
  std::vector<Known> known_answers(size_t count, size_t length) {
    std::vector<Known> known;
    for (uint32_t number = 0; known.size() < count; ++number) {
      const std::string text = prompt(number, length + number % 7);
      const json choice = complete(
          {{"prompt", text}, {"max_tokens", kTokens}, {"ignore_eos", true}, {"logprobs", 2}})["choices"][0];
      if (is_certain(choice["logprobs"]["top_logprobs"])) known.push_back({text, choice["text"]});
    }
    return known;
  }
  std::string answer_to(const std::string& prompt, HttpClient& client) {
    const json body = {{"prompt", prompt}, {"max_tokens", kTokens}, {"ignore_eos", true}, {"temperature", 0}};
    client.ask("POST", "/v1/completions", body.dump());
    const HttpAnswer answer = client.answer();
    return answer.status == 200 ? answer.json()["choices"][0]["text"].get<std::string>() : answer.body;
  }

 private:
  static bool is_certain(const json& steps) {
    for (const json& step : steps) {
      std::vector<double> best;
      for (const auto& [token, logprob] : step.items()) best.push_back(logprob);
      if (best.size() < 2 || std::abs(best[0] - best[1]) < kDoubt) return false;
    }
    return true;
  }
};

TEST_F(Answers, AreThoseOfOnesOwnPromptWhoeverIsThere) {
  const std::vector<Known> known = known_answers(long_tests() ? 48 : 6, 12);
  const int num_rounds = long_tests() ? 20 : 2;
  std::vector<std::thread> clients;
  for (size_t i = 0; i < known.size(); ++i) {
    clients.emplace_back([&, i] {
      HttpClient client(port());
      for (size_t round = 0; round < static_cast<size_t>(num_rounds); ++round) {
        const Known& mine = known[(i + round * 5) % known.size()];
        EXPECT_EQ(answer_to(mine.prompt, client), mine.text) << mine.prompt;
      }
    });
  }
  for (std::thread& client : clients) client.join();
}

/// Eight pages of 64 tokens, of which each prompt wants two.
class AnswersWithFewPages : public Answers {
 protected:
  AnswersWithFewPages() : Answers(8) {}
};

TEST_F(AnswersWithFewPages, AreRightWhereTheCacheIsFull) {
  const std::vector<Known> known = known_answers(long_tests() ? 40 : 6, 70);
  const uint64_t evicted_before = metrics_.value(Metrics::Counter::kEvicted);
  std::vector<std::thread> clients;
  for (size_t first = 0; first < (long_tests() ? 8 : 3); ++first) {
    clients.emplace_back([&, first] {
      HttpClient client(port());
      for (size_t i = first; i < known.size(); i += 2)  // so that several ask for the same
        EXPECT_EQ(answer_to(known[i].prompt, client), known[i].text) << known[i].prompt;
    });
  }
  for (std::thread& client : clients) client.join();
  EXPECT_GT(metrics_.value(Metrics::Counter::kEvicted), evicted_before);
}

}  // namespace
}  // namespace soliton
