// What is said to those who call a program as they are used to from others, or slip: the flag that was meant.
#include <nlohmann/json.hpp>

#include "cli/cli_fixture.h"

namespace soliton {
namespace {

/// The lines below a title of --help.
std::string section(const std::string& help, const std::string& title) {
  const size_t begin = help.find("\n" + title + ":\n");
  return begin == std::string::npos ? "" : help.substr(begin, help.find("\n\n", begin) - begin);
}

// Who looks for a flag finds it among its like, and what holds without it.
TEST_F(Cli, HelpIsInGroupsWithDefaults) {
  struct Expected {
    const char* program;
    const char* title;
    const char* line;
  };
  for (const auto& [program, title, line] :
       {Expected{"soliton-chat", "Model", "--device INT=0"},
        Expected{"soliton-chat", "Prompt", "--prompt TEXT"},
        Expected{"soliton-chat", "Answer", "--parallel INT=1"},
        Expected{"soliton-chat", "Sampling", "--seed UINT=0"}, Expected{"soliton-chat", "Drafts", "else 7"},
        Expected{"soliton-server", "Clients", "--port UINT=8080"},
        Expected{"soliton-server", "Clients", "--grace INT=10"},
        Expected{"soliton-server", "Clients", "--log-format TEXT=text"},
        Expected{"soliton-server", "Requests together", "--max-gap INT=0"},
        Expected{"soliton-server", "Requests together", "--queue INT=512"},
        Expected{"soliton-server", "Sampling", "--top-k INT"},
        Expected{"soliton-bench", "Tests", "--n-gen INT=128 ..."},
        Expected{"soliton-bench", "Tests", "--repetitions INT=5"},
        Expected{"soliton-bench", "Output", "--output TEXT=md"},
        Expected{"soliton-bench", "Further tests", "--draft-max INT=7"},
        Expected{"soliton-bench", "Search of a plan", "--tune TEXT"},
        Expected{"soliton-gen", "Card", "--gpu NAME"},
        Expected{"soliton-gen", "Output", "else generated/MODEL-GPU"}}) {
    const std::string found = section(run(program, {"--help"}).out, title);
    EXPECT_NE(found.find(line), std::string::npos) << program << " " << title << ": " << found;
  }
  for (const char* program : {"soliton-chat", "soliton-server", "soliton-bench", "soliton-gen"}) {
    const std::string rest = section(run(program, {"--help"}).out, "Options");
    EXPECT_EQ(std::count(rest.begin(), rest.end(), '\n'), 3) << rest;  // --help and --version
  }
}

TEST_F(Cli, AProgramAloneSaysHowItIsCalled) {
  for (const char* program : {"soliton-chat", "soliton-bench"}) {
    expect_error(program, {}, kUsage, std::string("usage: ") + program + " MODEL", "--help lists all flags");
  }
}

TEST_F(Cli, WordsBehindTheModelWereMeantForThePrompt) {
  expect_error("soliton-chat", {"tiny-stories", "Tell me a joke"}, kUsage, "\"Tell me a joke\"",
               "did you mean -p \"Tell me a joke\"?");
  expect_error("soliton-chat", {"tiny-stories", "Tell", "me", "-n", "1", "a", "joke"}, kUsage,
               "\"Tell me a joke\"", "did you mean -p \"Tell me a joke\"?");
  expect_error("soliton-chat", {"-m", "tiny-stories", "Hi"}, kUsage, "\"Hi\"", "did you mean -p \"Hi\"?");
  expect_error("soliton-bench", {"tiny-stories", "word"}, kUsage, "\"word\"", "expected a flag");
  expect_error("soliton-bench", {"-m", "tiny-stories", "word"}, kUsage, "\"word\"", "expected a flag");
}

TEST_F(Cli, TheNearestFlagIsNamed) {
  const auto expect_nearest = [&](const std::string& program, const std::string& flag,
                                  const std::string& nearest) {
    expect_error(program, {"tiny-stories", flag, "3"}, kUsage, flag.substr(0, flag.find('=')),
                 "did you mean " + nearest + "?");
  };
  expect_nearest("soliton-chat", "--tmep", "--temp");
  expect_nearest("soliton-chat", "--temps", "--temp");
  expect_nearest("soliton-chat", "--top_k", "--top-k");
  expect_nearest("soliton-chat", "--system", "--system-prompt");
  expect_nearest("soliton-chat", "--ctx_size=8", "--ctx-size");
  expect_nearest("soliton-chat", "-prompt", "--prompt");  // which is not -p with "rompt"
  expect_nearest("soliton-chat", "-predict=3", "--predict");
  expect_nearest("soliton-bench", "--repetition", "--repetitions");
  expect_nearest("soliton-doctor", "--jsn", "--json");
  const Outcome outcome = run("soliton-chat", {"tiny-stories", "--quite-different"});
  EXPECT_EQ(outcome.err, "soliton-chat: --quite-different: expected a flag that --help lists\n");
}

TEST_F(Cli, TheNearestCardAndModelAreNamed) {
  const std::vector<std::string> environment = {"HF_HOME=" + path().string(), "HF_HUB_OFFLINE=1"};
  fs::create_directories(path() / "hub" / "models--Qwen--Qwen3-0.6B" / "snapshots");
  const auto expect_nearest = [&](const std::string& program, const Arguments& arguments, int status,
                                  const std::string& culprit, const std::string& nearest) {
    expect_error(program, arguments, status, culprit,
                 nearest.empty() ? "" : "; did you mean " + nearest + "?\n", environment);
  };
  for (const char* program : {"soliton-chat", "soliton-server", "soliton-bench"}) {
    expect_nearest(program, {"tiny-storis"}, kNotFound, "tiny-storis", "tiny-stories");
    expect_nearest(program, {"./tiny_stories"}, kNotFound, "./tiny_stories", "./tiny-stories");
    expect_nearest(program, {"qwen/Qwen3-0.6"}, kNotFound, "qwen/Qwen3-0.6", "Qwen/Qwen3-0.6B");
  }
  const Outcome different = run("soliton-chat", {"org/quite-different"}, environment);
  EXPECT_EQ(different.err.find("did you mean"), std::string::npos) << different.err;
  expect_nearest("soliton-gen", {kTinyModel, "--gpu", "h20"}, kUsage, "--gpu", "h200");
  expect_nearest("soliton-gen", {kTinyModel, "--gpu", "RTX4090"}, kUsage, "--gpu", "rtx-4090");
  expect_nearest("soliton-gen", {kTinyModel, "--gpus", "h200"}, kUsage, "--gpus", "--gpu");
  write_text(path() / "llama-8b.yaml", "");
  expect_nearest("soliton-gen", {"lama-8b.yaml", "--gpu", "h200"}, kNotFound, "lama-8b.yaml",
                 "llama-8b.yaml");
  expect_nearest("soliton-gen", {"./llama-8.yaml", "--gpu", "h200"}, kNotFound, "./llama-8.yaml",
                 "./llama-8b.yaml");
}

TEST_F(Cli, FlagsOfLlamaCppAreKnown) {
  expect_error("soliton-chat", {"tiny-stories", "-ngl", "99"}, kUsage, "-ngl",
               "got one of llama.cpp: here the whole model is always on the card");
  expect_error("soliton-bench", {"tiny-stories", "--n-gpu-layers=99"}, kUsage, "--n-gpu-layers",
               "here the whole model is always on the card");
  expect_error("soliton-chat", {"-hf", "org/name"}, kUsage, "-hf", "in the place of a folder");
  EXPECT_EQ(run("soliton-chat", {"tiny-stories", "-p", "-ngl", "-n", "1", "-k", kTinyKernel}).status, 0);
}

TEST_F(Cli, MinusOneTokensAreAsManyAsFit) {
  const Outcome outcome = run("soliton-chat", chat({"-n", "-1", "-c", "16", "--ignore-eos", "--json"}));
  EXPECT_EQ(outcome.status, kUsage) << "-n is given twice: " << outcome.err;
  const Outcome all = run("soliton-chat", {"tiny-stories", "-p", "Once upon", "-n", "-1", "-c", "10",
                                           "--ignore-eos", "--json", "-k", kTinyKernel});
  ASSERT_EQ(all.status, 0) << all.err;
  const auto json = nlohmann::json::parse(all.out);
  EXPECT_EQ(json.at("prompt_n").get<int>() + json.at("predicted_n").get<int>(), 10 + 1);
  for (const char* count : {"0", "-2", "x"}) {
    expect_error("soliton-chat", {"tiny-stories", "-p", "x", "-n", count}, kUsage, "--predict",
                 std::string("got \"") + count + "\" (-1: as many as fit)");
  }
}

TEST_F(Cli, ValuesAreQuoted) {
  expect_error("soliton-chat", {"tiny-stories", "--kv-bits", "4"}, kUsage, "--kv-bits",
               "expected 8 or 16 or 32, got \"4\"");
  expect_error("soliton-bench", bench({"-o", "x\ny"}), kUsage, "--output",
               "expected md or json or svg, got \"x\\x0ay\"");
}

}  // namespace
}  // namespace soliton
