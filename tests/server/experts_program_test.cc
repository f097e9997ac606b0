// soliton-server on a mixture of experts, the tiny one.
#include <gmock/gmock.h>

#include <thread>

#include "long_tests.h"
#include "server/program_fixture.h"

namespace soliton {
namespace {

using nlohmann::json;

json completion(uint16_t port, const std::string& prompt) {
  const json body = {{"prompt", prompt}, {"max_tokens", 6}, {"temperature", 0}};
  return ask(port, "POST", "/v1/completions", body.dump()).json().at("choices").at(0).at("text");
}

// Twice as many as the kernel has rows: who waits, and whose tokens go through the same experts, makes no difference.
TEST_F(ServerProgram, ServesSixteenClientsOfAMixture) {
  SOLITON_LONG_RUNS_ONLY("SchedulerTest.TogetherAsAlone does, of a dense model");
  process_.emplace(
      "soliton-server",
      std::vector<std::string>{SOLITON_SOURCE_DIR "/models/tiny-stories-experts", "-k",
                               SOLITON_KERNELS "/tiny-stories-experts-cpu.so", "-c", "128", "--port", "0"},
      folder_.path());
  wait_until_it_serves("tiny-stories-experts");
  const std::vector<std::string> prompts = {"Once upon a time", "One day, a curious fox named Ruby was",
                                            "There once was a brave mouse named Leo",
                                            "In a small house on the hill lived"};
  std::vector<json> alone;
  for (const std::string& prompt : prompts) alone.push_back(completion(port_, prompt));
  EXPECT_EQ(alone[3], " a young boy named Pip.");
  std::vector<json> answers(16);
  std::vector<std::thread> clients;
  for (size_t i = 0; i < answers.size(); ++i)
    clients.emplace_back([&, i] { answers[i] = completion(port_, prompts[i % prompts.size()]); });
  for (std::thread& client : clients) client.join();
  for (size_t i = 0; i < answers.size(); ++i) EXPECT_EQ(answers[i], alone[i % prompts.size()]) << i;
  process_->signal(SIGTERM);
  EXPECT_EQ(process_->wait().status, 0);
}

}  // namespace
}  // namespace soliton
