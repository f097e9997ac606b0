// Clients that others wrote, against a server in this process; and soliton-server itself.
#include <gmock/gmock.h>

#include "long_tests.h"
#include "server/clients_fixture.h"
#include "server/program_fixture.h"

namespace soliton {
namespace {

using nlohmann::json;
using testing::HasSubstr;
using testing::StartsWith;

TEST_F(ClientsTest, CurlSeesEventsAsTheyCome) {
  if (shell("command -v curl").first != 0) GTEST_SKIP() << "no curl";
  const auto [status, output] =
      shell("curl -sN -m 60 http://127.0.0.1:" + std::to_string(port()) +
            R"(/v1/completions -d '{"prompt": "abc", "max_tokens": 3, "ignore_eos": true, "stream": true}')");
  EXPECT_EQ(status, 0);
  EXPECT_THAT(output, StartsWith("data: {"));
  EXPECT_THAT(output, HasSubstr("\"finish_reason\":\"length\""));
  EXPECT_TRUE(output.ends_with("data: [DONE]\n\n")) << output;
}

TEST_F(ClientsTest, TheOfficialPythonClient) {
  expect_good("openai_client.py");
}

TEST_F(ClientsTest, LangChain) {
  expect_good("langchain_client.py");
}

// What the server says of itself, against what it does, by whoever reads such descriptions.
TEST_F(ClientsTest, Schemathesis) {
  if (!long_tests()) GTEST_SKIP() << "skipped: only in long runs (SOLITON_LONG_TESTS=1)";
  expect_good("schemathesis_client.py", "100");
}

class JsonClientsTest : public ClientsTest {
 protected:
  JsonClientsTest() : ClientsTest(kJsonSigns) {}
};

TEST_F(JsonClientsTest, AnswersToRandomSchemasAreValid) {
  SOLITON_LONG_RUNS_ONLY("RandomSchemas are, without a server");
  expect_good("schema_client.py", "100");
}

class ToolClientsTest : public ClientsTest {
 protected:
  ToolClientsTest() : ClientsTest(signs(), kCallingTemplate) {}

  /// With that of the names that clients give their functions.
  static std::vector<std::string> signs() {
    std::vector<std::string> signs = kJsonSigns;
    std::ranges::replace(signs, "+", "_");
    return signs;
  }
};

TEST_F(ToolClientsTest, Anthropics) {
  expect_good("anthropic_client.py");
}

TEST_F(ToolClientsTest, OpenAisForResponses) {
  expect_good("responses_client.py");
}

TEST_F(ToolClientsTest, Ollamas) {
  expect_good("ollama_client.py");
}

TEST_F(ToolClientsTest, LiteLlm) {
  if (!long_tests()) GTEST_SKIP() << "skipped: only in long runs (SOLITON_LONG_TESTS=1)";
  expect_good("litellm_client.py");
}

TEST_F(ToolClientsTest, Agents) {
  if (!long_tests()) GTEST_SKIP() << "skipped: only in long runs (SOLITON_LONG_TESTS=1)";
  expect_good("agents_client.py");
}

TEST_F(ToolClientsTest, CallFunctions) {
  expect_good("tools_client.py");
}

// ---- The script that measures

class ServeLoad : public ClientsTest {
 protected:
  using ClientsTest::ClientsTest;
  void SetUp() override {
    if (shell("command -v " + python()).first != 0) GTEST_SKIP() << "no " << python();
  }
  /// Exit status and output.
  std::pair<int, std::string> load(const std::string& arguments, uint16_t at) {
    return shell(python() + " -B " SOLITON_SOURCE_DIR "/runtime/bench/serve_load.py --url http://127.0.0.1:" +
                 std::to_string(at) + " --json-file " + figures_.string() + " " + arguments);
  }
  json figures() const { return json::parse(read_text(figures_)); }

  std::filesystem::path figures_ = folder_.path() / "load.json";
};

TEST_F(ServeLoad, CountsWhatTheServerDoes) {
  const auto [status, output] =
      load("--clients 1,3 --requests 2 --prompt 70 --shared-prefix 65 --max-tokens 4 --token-ids 50", port());
  ASSERT_EQ(status, 0) << output;
  EXPECT_THAT(output, HasSubstr("| 3 | 6 | 0 |"));
  const json results = figures();
  EXPECT_THAT(results["command"].get<std::string>(), StartsWith("serve_load.py --url http"));
  EXPECT_EQ(results["model"], "small");
  int num_requests = 0;
  for (const json& point : results["points"]) {
    const int clients = point["clients"];
    num_requests += 3 * clients;  // one of them to warm up
    EXPECT_EQ(point["requests"], 2 * clients);
    EXPECT_EQ(point["failures"], 0);
    EXPECT_EQ(point["prompt_tokens"], 2 * clients * 70);
    EXPECT_GE(point["cached_tokens"], 2 * clients * 65);
    EXPECT_EQ(point["generated_tokens"], 2 * clients * 4);
    EXPECT_EQ(point["first_token_ms"]["count"], 2 * clients);
    EXPECT_GT(point["first_token_ms"]["p50"], 0);
    EXPECT_GE(point["first_token_ms"]["p99"], point["first_token_ms"]["p50"]);
    EXPECT_NEAR(point["tokens_per_s"].get<double>() * point["seconds"].get<double>(), 8 * clients, 1e-6);
  }
  EXPECT_EQ(metrics_.value(Metrics::Counter::kGeneratedTokens), static_cast<uint64_t>(num_requests) * 4);
}

TEST_F(ServeLoad, CountsFailuresByTheirReasons) {
  const auto [status, output] =
      load("--requests 2 --warm-up 0 --prompt 8 --max-tokens 400 --token-ids 50", port());
  EXPECT_EQ(status, 1) << output;
  EXPECT_THAT(output, HasSubstr("| 1 | 2 | 2 |"));
  EXPECT_THAT(output, HasSubstr("2 failed: status 400"));
  EXPECT_EQ(load("--prompt 3 --shared-prefix 4", port()).first, 2);
  server_->stop_listening();
  const auto [no_server, complaint] = load("", 1);
  EXPECT_EQ(no_server, 2);
  EXPECT_THAT(complaint, StartsWith("serve_load.py: --url: expected a server"));
  EXPECT_EQ(std::count(complaint.begin(), complaint.end(), '\n'), 1) << complaint;
}

TEST_F(ServeLoad, TakesRequestsByChanceAndChats) {
  const auto [status, output] = load(
      "--rate 50 --requests 3 --warm-up 0 --api chat --prompt 2 --max-tokens 3 --turns 2 --turn 1 --seed 4",
      port());
  ASSERT_EQ(status, 0) << output;
  const json point = figures()["points"][0];
  EXPECT_EQ(point["requests"], 6);
  EXPECT_EQ(point["turns"][1]["requests"], 3);
  EXPECT_GT(point["turns"][1]["prompt_tokens"], point["turns"][0]["prompt_tokens"]);
}

class ServeMix : public ServeLoad {
 protected:
  ServeMix() : ServeLoad(kJsonSigns) {}
};

TEST_F(ServeMix, AsksForABitOfEverything) {
  SOLITON_LONG_RUNS_ONLY("each of it has tests of its own");
  const std::string script =
      python() + " -B " SOLITON_SOURCE_DIR "/runtime/bench/serve_mix.py --url http://127.0.0.1:";
  const auto [status, output] =
      shell(script + std::to_string(port()) +
            " --clients 2,12 --duration 2 --prompt 40 --max-tokens 30 --json-file " + figures_.string());
  EXPECT_EQ(status, 0) << output;
  const json results = figures();
  for (const json& point : results["points"]) {
    EXPECT_EQ(point["failures"], 0) << point;
    EXPECT_GT(point["requests"], 2);
  }
  service_->end();
  const auto [other, complaint] =
      shell(script + std::to_string(port()) + " --clients 3 --duration 1 --prompt 40");
  EXPECT_EQ(other, 1) << complaint;
  EXPECT_THAT(complaint, HasSubstr("expected status 200, got 503"));
}

// ---- The program

TEST_F(ServerProgram, ServesUntilItIsTold) {
  start();
  const HttpAnswer answer = ask(port_, "POST", "/v1/completions", R"({"prompt": "abc", "max_tokens": 3})");
  EXPECT_EQ(answer.status, 200) << answer.body;
  EXPECT_EQ(answer.json()["model"], "small");
  process_->signal(SIGTERM);
  const Outcome outcome = process_->wait();
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_EQ(outcome.out, "");
}

// Answers under way have their time; what takes longer is told.
TEST_F(ServerProgram, EndsStreamsWhenItsTimeIsOver) {
  kernel_ = kPacedKernel;
  start({"--grace", "1"});
  HttpClient client(port_);
  client.ask("POST", "/v1/completions", kLongStream);
  EXPECT_TRUE(client.reads("data: "));
  process_->signal(SIGTERM);
  EXPECT_EQ(client.answer().events().back(), "[DONE]");
  EXPECT_EQ(process_->wait().status, 0);
}

// A prompt of 30 steps, of which the client sees some.
TEST_F(ServerProgram, ReadsNoPromptOfAClientThatHasGone) {
  kernel_ = kPacedKernel;
  start({"--log-format", "json"});
  HttpClient client(port_);
  const json body = {
      {"prompt", std::string(240, 'a')}, {"max_tokens", 5}, {"stream", true}, {"return_progress", true}};
  client.ask("POST", "/v1/completions", body.dump());
  ASSERT_TRUE(client.reads("\"processed\":0"));
  client.forget();
  ASSERT_TRUE(client.reads("\"time_ms\":"));
  EXPECT_THAT(client.forget(), testing::Not(HasSubstr("\"processed\":240")));
  client.close();
  wait_until_it_says("\"cancelled\"");
  const std::string metrics = ask(port_, "GET", "/metrics").body;
  const std::string name = "\nsoliton_launches_total ";
  ASSERT_NE(metrics.find(name), std::string::npos);
  EXPECT_LT(std::stoi(metrics.substr(metrics.find(name) + name.size())), 30);
}

TEST_F(ServerProgram, EndsAtOnceWhenItIsToldTwice) {
  kernel_ = kPacedKernel;
  start({"--grace", "60"});
  HttpClient client(port_);
  client.ask("POST", "/v1/completions", kLongStream);
  EXPECT_TRUE(client.reads("data: "));
  process_->signal(SIGTERM);
  wait_until_it_says("Ending: ");
  process_->signal(SIGTERM);
  const std::optional<Outcome> outcome = process_->wait_for(std::chrono::seconds(10));
  ASSERT_TRUE(outcome);
  EXPECT_EQ(outcome->status, 128 + SIGTERM);
}

// A compiler that takes long, and its child, which would go on without it.
TEST_F(ServerProgram, EndsAtOnceWhileItMakesAKernel) {
  const std::filesystem::path compiler = folder_.path() / "compiler";
  write_text(compiler,
             "#!/bin/sh\nif [ \"$1\" = --version ]; then echo 'tools V1.0 1.0'; exit; fi\n"
             "sleep 60 & echo $! > '" +
                 (folder_.path() / "child").string() + "'; wait\n");
  std::filesystem::permissions(compiler, std::filesystem::perms::owner_all);
  const TemporaryFolder cache;
  process_.emplace(
      "soliton-server", std::vector<std::string>{folder_.path(), "-c", "256", "--port", "0"}, folder_.path(),
      std::vector<std::string>{"CXX=" + compiler.string(), "XDG_CACHE_HOME=" + cache.path().string()});
  const auto wait_until = [](const auto& is_true) {
    for (int i = 0; i < 3000 && !is_true(); ++i) std::this_thread::sleep_for(std::chrono::milliseconds(10));
    return is_true();
  };
  const auto num_files = [&] {
    const std::filesystem::recursive_directory_iterator files(cache.path());
    return std::count_if(begin(files), end(files), [](const auto& file) { return file.is_regular_file(); });
  };
  ASSERT_TRUE(wait_until([&] { return read_text(folder_.path() / "child").ends_with("\n"); }));
  const pid_t child = std::stoi(read_text(folder_.path() / "child"));
  EXPECT_GT(num_files(), 0);
  process_->signal(SIGTERM);
  const std::optional<Outcome> outcome = process_->wait_for(std::chrono::seconds(10));
  ASSERT_TRUE(outcome);
  EXPECT_EQ(outcome->status, 128 + SIGTERM);
  EXPECT_TRUE(wait_until([&] { return ::kill(child, 0) != 0; }));
  EXPECT_TRUE(wait_until([&] { return num_files() == 0; }));
}

// A kernel is enough to measure a server: tokens for text, and numbers back.
TEST_F(ServerProgram, ServesRandomWeights) {
  process_.emplace("soliton-server",
                   std::vector<std::string>{"--random-weights", "-k", kKernel, "-c", "256", "--port", "0"},
                   folder_.path());
  wait_until_it_serves("micro");
  const json body = {{"prompt", {1, 2, 3}}, {"max_tokens", 6}, {"logprobs", 0}};
  const json answer = ask(port_, "POST", "/v1/completions", body.dump()).json();
  std::string expected;
  for (const json& token : answer["choices"][0]["logprobs"]["tokens"]) {
    EXPECT_LT(std::stoi(token.get<std::string>()), 50);
    expected += token.get<std::string>();
  }
  EXPECT_EQ(answer["choices"][0]["text"], expected);
  EXPECT_EQ(answer["usage"]["completion_tokens"], 6);
  EXPECT_EQ(ask(port_, "POST", "/v1/completions", body.dump()).json()["choices"], answer["choices"]);
  for (const auto& [path, text] : std::map<std::string, std::string>{
           {"/v1/completions", R"({"prompt": "abc"})"},
           {"/v1/chat/completions", R"({"messages": [{"role": "user", "content": "a"}]})"},
           {"/tokenize", R"({"content": "a"})"}}) {
    const HttpAnswer refusal = ask(port_, "POST", path, text);
    EXPECT_EQ(refusal.status, 400) << path;
    EXPECT_THAT(refusal.body, HasSubstr("random weights read no text")) << path;
  }
  EXPECT_EQ(ask(port_, "POST", "/detokenize", R"({"tokens": [7, 49]})").json()["content"], " 7 49");
  process_->signal(SIGTERM);
  EXPECT_EQ(process_->wait().status, 0);
}

// A model that drafts for itself is right. Where logits are wanted nothing is drafted, and the answer is the same.
TEST_F(ServerProgram, DraftsWhatItIsToldTo) {
  const std::string model = SOLITON_SOURCE_DIR "/models/tiny-stories";
  process_.emplace(
      "soliton-server",
      std::vector<std::string>{model, "--draft", model, "--draft-max", "3", "-k",
                               SOLITON_KERNELS "/tiny-stories-cpu.so", "-c", "128", "--port", "0"},
      folder_.path());
  wait_until_it_serves("tiny-stories");
  json body = {{"prompt", "Once upon a time"}, {"max_tokens", 12}, {"temperature", 0}};
  const json drafted = ask(port_, "POST", "/v1/completions", body.dump()).json();
  EXPECT_THAT(ask(port_, "GET", "/metrics").body,
              testing::ContainsRegex("soliton_accepted_tokens_total [1-9]"));
  body["logprobs"] = 1;
  const json plain = ask(port_, "POST", "/v1/completions", body.dump()).json();
  EXPECT_EQ(drafted["choices"][0]["text"], plain["choices"][0]["text"]);
  process_->signal(SIGTERM);
  EXPECT_EQ(process_->wait().status, 0);
}

TEST_F(ServerProgram, RefusesItsFlagsByName) {
  const auto error = [&](const std::vector<std::string>& flags, int status, const std::string& fragment) {
    const Outcome outcome = run(flags);
    EXPECT_EQ(outcome.status, status) << outcome.err;
    EXPECT_THAT(outcome.err, HasSubstr(fragment));
    EXPECT_EQ(std::count(outcome.err.begin(), outcome.err.end(), '\n'), 1) << outcome.err;
  };
  error({}, 2, "usage: soliton-server MODEL");
  error({"--port", "70000", "x"}, 2, "--port: expected an integer from 0 to 65535");
  error({"--bogus"}, 2, "--bogus");
  for (const char* tokens : {"0", "137438953409", "4611686018427387904", "9223372036854775807"}) {
    error({"--cache-tokens", tokens, "x"}, 2, "--cache-tokens: expected an integer from 1 to 137438953408");
  }
  error({"--cache-tokens", "137438953408", "-k", kKernel, "-c", "256", "--random-weights"}, 7,
        "device memory: expected");
  error({"--random-weights"}, 2, "--kernel: expected a value with --random-weights");
  error({"--random-weights", "-k", kKernel, folder_.path()}, 2, "--random-weights");
  error({"--random-weights", "-k", kKernel, "--draft", folder_.path()}, 2, "--random-weights");
  error({"--lookup", "3", "--draft", "x", "y"}, 2, "--lookup: expected no --draft, got both");
  error({"no-such-model"}, 3, "no-such-model");
  const std::string model = folder_.path();
  error({model, "--draft", "no-such-draft"}, 3, "no-such-draft");
  error({model, "-k", kKernel, "-c", "256", "--lookup", "8"}, 2, "--lookup: expected at most 7");
  const TemporaryFolder other;
  write_small_model(KernelLibrary::open(kKernel).model().facts, other,
                    exchanged(small_tokenizer(), "a", "b"));
  error({model, "--draft", other.path()}, 5, "tokenizer.json: expected the tokens of");
  error({model, "-c", "5000"}, 7, "--ctx-size");
  // Before anything of the model is read.
  start();
  error({"no-such-model", "--port", std::to_string(port_)}, 2, "--port: expected one that is free");
  process_->signal(SIGTERM);
  EXPECT_EQ(process_->wait().status, 0);
}

}  // namespace
}  // namespace soliton
