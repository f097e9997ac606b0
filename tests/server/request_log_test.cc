// The line that each request leaves, and that nobody waits for it.
#include "runtime/server/request_log.h"

#include <gmock/gmock.h>

#include "server/program_fixture.h"

namespace soliton {
namespace {

using nlohmann::json;
using testing::HasSubstr;
using testing::Not;

const RequestRecord kRecord = {
    .id = "chatcmpl-1",
    .client = "127.0.0.1",
    .path = "/v1/chat/completions",
    .end = "length",
    .usage = {.num_prompt = 20, .num_cached = 5, .num_generated = 7, .prompt_s = 0.5, .generation_s = 1}};

TEST(RequestLogs, SayWhoAskedAndWhatItTook) {
  EXPECT_THAT(log_line(kRecord, LogFormat::kText),
              testing::MatchesRegex(
                  "20.*Z 127.0.0.1 /v1/chat/completions 200 length chatcmpl-1: 20 tokens of the prompt, "
                  "5 of them cached, 7 generated; first after 500 ms, all after 1500 ms"));
  const json object = json::parse(log_line(kRecord, LogFormat::kJson));
  EXPECT_EQ(object["id"], "chatcmpl-1");
  EXPECT_EQ(object["cached_tokens"], 5);
  EXPECT_EQ(object["total_ms"], 1500);
  const RequestRecord refused{.id = {}, .client = "::1", .path = "/tokenize", .status = 400};
  EXPECT_THAT(log_line(refused, LogFormat::kText), testing::EndsWith("Z ::1 /tokenize 400"));
  EXPECT_FALSE(json::parse(log_line(refused, LogFormat::kJson)).contains("prompt_tokens"));
}

class LoggedService : public ServiceTest {
 protected:
  LoggedService() : ServiceTest(options()) {}
  ServiceOptions options() {
    ServiceOptions options = small_options();
    options.log = [this](const RequestRecord& record) {
      const std::lock_guard lock(mutex_);
      records_.push_back(record);
    };
    return options;
  }
  RequestRecord wait_for(size_t number) {
    for (;;) {
      {
        const std::lock_guard lock(mutex_);
        if (records_.size() >= number) return records_[number - 1];
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  }

  std::mutex mutex_;
  std::vector<RequestRecord> records_;
};

TEST_F(LoggedService, TellsOfEachRequestOnce) {
  const json answer = complete({{"prompt", "abc"}, {"max_tokens", 3}, {"ignore_eos", true}});
  const RequestRecord whole = wait_for(1);
  EXPECT_EQ(whole.id, answer["id"]);
  EXPECT_EQ(whole.path, "/v1/completions");
  EXPECT_EQ(whole.client, "127.0.0.1");
  EXPECT_EQ(whole.end, "length");
  EXPECT_EQ(whole.usage.num_generated, 3u);
  post("/completions/", {{"prompt", 5}});
  EXPECT_EQ(wait_for(2).status, 400);
  EXPECT_EQ(wait_for(2).path, "/v1/completions");
  HttpClient client(port());
  client.ask("POST", "/v1/completions",
             R"({"prompt": "abc", "max_tokens": 300, "stream": true, "ignore_eos": true})");
  EXPECT_TRUE(client.reads("data: "));
  client.close();
  EXPECT_EQ(wait_for(3).end, "cancelled");
  kernel_.engine().set_num_ctas(1);
  post("/v1/messages", {{"messages", {{{"role", "user"}, {"content", "a"}}}}, {"max_tokens", 4}});
  EXPECT_EQ(wait_for(4).end, "failed");
  EXPECT_EQ(wait_for(4).status, 503);
  EXPECT_EQ(records_.size(), 4u);
}

TEST_F(ServerProgram, LogsAsItIsTold) {
  for (const char* format : {"json", "none"}) {
    start({"--log-format", format});
    ask(port_, "POST", "/v1/completions", R"({"prompt": "secret", "max_tokens": 3})");
    process_->signal(SIGTERM);
    const Outcome outcome = process_->wait();
    EXPECT_THAT(outcome.err, Not(HasSubstr("secret")));
    const bool is_logged =
        outcome.err.find("\"path\":\"/v1/completions\",\"status\":200") != std::string::npos;
    EXPECT_EQ(is_logged, std::string(format) == "json") << outcome.err;
  }
}

}  // namespace
}  // namespace soliton
