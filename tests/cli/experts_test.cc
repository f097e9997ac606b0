// soliton-chat on a mixture of experts, the tiny one: drafts, samples and grammars change nothing that they should not.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "change_header.h"
#include "cli/run_program.h"
#include "long_tests.h"

namespace soliton {
namespace {

using nlohmann::json;

class ExpertsCli : public testing::Test {
 protected:
  json run(const std::vector<std::string>& more) const {
    std::vector<std::string> arguments{"-k", SOLITON_KERNELS "/tiny-stories-experts-cpu.so", "-m",
                                       SOLITON_SOURCE_DIR "/models/tiny-stories-experts", "--json"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    const Outcome outcome = Process("soliton-chat", arguments, folder_.path(), {}, "/dev/null").wait();
    EXPECT_EQ(outcome.status, 0) << outcome.err;
    return outcome.status == 0 ? json::parse(outcome.out) : json();
  }

  TemporaryFolder folder_;
};

// What it tells by itself of a small house on the hill, but for the end, which is behind 120 tokens.
constexpr const char* kStory =
    "In a small house on the hill lived a young boy named Pip. He had a yellow toy boat and loved to let it "
    "float on the "
    "water. One afternoon, the wind grew wild and the sky turned black. The wind broke a window, and the toy "
    "boat got wet. "
    "Then someone knocked. It was Hugo, a kind teacher who lived next door. \"Do not be afraid,\" said Hugo. "
    "Hugo pushed from "
    "one side and Pip from the other until it was closed. Pip put the toy boat in a dry place. And whenever "
    "someone needed "
    "help, Pip thought of Hugo";

TEST_F(ExpertsCli, EndsAStory) {
  const json answer = run({"-p", kStory, "-n", "20"});
  EXPECT_EQ(answer.at("finish_reason"), "stop");
  EXPECT_EQ(answer.at("content"), " and was kind too.");
}

std::vector<std::string> with(std::vector<std::string> arguments, const std::vector<std::string>& more) {
  arguments.insert(arguments.end(), more.begin(), more.end());
  return arguments;
}

TEST_F(ExpertsCli, DraftsGiveTheSameAnswer) {
  SOLITON_LONG_RUNS_ONLY("Cli.ChatWithADraftModelGivesTheSameAnswer and ChatWithLookupGivesTheSameAnswer do");
  constexpr size_t kTokens = 10;
  const std::vector<std::string> greedy{"-p", "the cat, the cat, the cat,", "-n", std::to_string(kTokens)};
  const json plain = run(greedy);
  ASSERT_EQ(plain.at("tokens").size(), kTokens);
  EXPECT_EQ(run(with(greedy, {"--lookup", "7"})).at("tokens"), plain.at("tokens"));

  const std::vector<std::string> sampled =
      with(greedy, {"--temp", "0.8", "--seed", "5", "--repeat-penalty", "1.1"});
  const json drafted =
      run(with(sampled, {"--draft", SOLITON_SOURCE_DIR "/models/tiny-stories-experts", "--draft-max", "4"}));
  EXPECT_EQ(drafted.at("tokens"), run(sampled).at("tokens"));
  EXPECT_LE(drafted.at("steps").get<size_t>(), kTokens * 2 / 5) << "2.5 tokens a step";
}

TEST_F(ExpertsCli, SamplesAreTheirSeedsAlone) {
  const std::vector<std::string> arguments{"-p", "Once upon a time", "-n", "3", "--temp", "1", "--seed", "3"};
  const json samples = run(with(arguments, {"-np", "8"})).at("samples");
  ASSERT_EQ(samples.size(), 8u);
  EXPECT_EQ(samples[0].at("tokens"), run(arguments).at("tokens"));
  EXPECT_NE(samples[0].at("tokens"), samples[1].at("tokens"));
}

// In one line, before the kernel has a context or weights.
TEST_F(ExpertsCli, RefusesExpertsThatAreMissingOrOfAnotherShape) {
  const std::filesystem::path model = folder_.path() / "mixture";
  std::filesystem::copy(SOLITON_SOURCE_DIR "/models/tiny-stories-experts", model);
  const std::string tensor = "model.layers.2.mlp.experts.5.up_proj.weight";
  const auto expect_refused = [&](const std::string& line) {
    const Outcome outcome =
        Process("soliton-chat",
                {"-k", SOLITON_KERNELS "/tiny-stories-experts-cpu.so", "mixture", "-p", "Once"},
                folder_.path(), {}, "/dev/null")
            .wait();
    EXPECT_EQ(outcome.status, 5);
    EXPECT_EQ(outcome.out, "");
    EXPECT_EQ(outcome.err, "soliton-chat: mixture" + line + "\n");
  };
  change_header(model / "model.safetensors", [&](json& header) { header[tensor]["shape"] = {192, 128}; });
  expect_refused("/model.safetensors: " + tensor + ": expected BF16 [128, 192], got BF16 [192, 128]");
  change_header(model / "model.safetensors", [&](json& header) {
    header["elsewhere"] = header[tensor];
    header.erase(tensor);
  });
  expect_refused(": " + tensor + ": expected BF16 [128, 192], but there is no such tensor");
  std::string config = read_text(model / "config.json");
  const std::string experts = "\"num_experts\": 8";
  write_text(model / "config.json",
             config.replace(config.find(experts), experts.size(), "\"num_experts\": 16"));
  expect_refused(
      "/model.safetensors: model.layers.0.mlp.gate.weight: expected BF16 [16, 192], got BF16 [8, 192]");
}

TEST_F(ExpertsCli, AnswersFitASchema) {
  const std::string schema = folder_.write("schema.json", R"({"type": "object", "properties":
      {"name": {"enum": ["Tom", "Lily"]}, "age": {"type": "integer", "minimum": 3, "maximum": 12}},
      "required": ["name", "age"]})");
  const json answer = run({"--json-schema", schema, "-p", "Once upon a time", "-n", "60"});
  EXPECT_EQ(answer.at("finish_reason"), "stop");
  const json object = json::parse(answer.at("content").get<std::string>());
  EXPECT_TRUE(object.at("name") == "Tom" || object.at("name") == "Lily") << object;
  EXPECT_GE(object.at("age"), 3);
  EXPECT_LE(object.at("age"), 12);
}

}  // namespace
}  // namespace soliton
