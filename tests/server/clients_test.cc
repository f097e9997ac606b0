// Clients that others wrote, against a server in this process; and soliton-server itself.
#include <gmock/gmock.h>

#include <cstdio>

#include "cli/run_program.h"
#include "server/service_fixture.h"

namespace soliton {
namespace {

using nlohmann::json;
using testing::HasSubstr;
using testing::StartsWith;

/// Exit status and output of a shell command.
std::pair<int, std::string> shell(const std::string& command) {
  FILE* const pipe = ::popen((command + " 2>&1").c_str(), "r");
  std::string output;
  char bytes[4096];
  for (size_t num_bytes; (num_bytes = std::fread(bytes, 1, sizeof(bytes), pipe)) > 0;)
    output.append(bytes, num_bytes);
  return {WEXITSTATUS(::pclose(pipe)), output};
}

class ClientsTest : public ServiceTest {};

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
  const char* python = std::getenv("SOLITON_PYTHON");
  const auto [status, output] =
      shell(std::string(python == nullptr ? "python3" : python) +
            " -B " SOLITON_SOURCE_DIR "/tests/server/openai_client.py " + std::to_string(port()));
  constexpr int kSkipped = 77;
  constexpr int kNoProgram = 127;
  if (status == kSkipped || status == kNoProgram) GTEST_SKIP() << output;
  EXPECT_EQ(status, 0) << output;
}

// ---- The program

class ServerProgram : public testing::Test {
 protected:
  ServerProgram() {
    const KernelLibrary library = KernelLibrary::open(kKernel);
    write_small_model(library.model().facts, folder_);
  }

  /// Starts it, with these flags too, and waits until it serves.
  void start(std::vector<std::string> flags = {}) {
    flags.insert(flags.begin(),
                 {folder_.path(), "-k", kKernel, "-c", "256", "--port", "0", "--alias", "small"});
    process_.emplace("soliton-server", flags, folder_.path());
    const std::string serving = "Serving small at http://127.0.0.1:";
    std::string said;
    while ((said = process_->err_so_far()).find(serving) == std::string::npos || !said.ends_with("\n")) {
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    port_ = static_cast<uint16_t>(std::stoi(said.substr(said.find(serving) + serving.size())));
  }
  Outcome run(const std::vector<std::string>& flags) {
    return Process("soliton-server", flags, folder_.path()).wait();
  }

  static constexpr const char* kKernel = SOLITON_TEST_KERNELS "/micro-2-all.so";
  TemporaryFolder folder_;
  std::optional<Process> process_;
  uint16_t port_ = 0;
};

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
  start({"--grace", "1"});
  HttpClient client(port_);
  client.ask("POST", "/v1/completions",
             R"({"prompt": "abc", "max_tokens": 250, "stream": true, "ignore_eos": true})");
  EXPECT_TRUE(client.reads("data: "));
  process_->signal(SIGTERM);
  process_->signal(SIGTERM);  // now
  EXPECT_EQ(client.answer().events().back(), "[DONE]");
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
  error({"no-such-model"}, 3, "no-such-model");
  const std::string model = folder_.path();
  error({model, "-c", "5000"}, 7, "--ctx-size");
}

}  // namespace
}  // namespace soliton
