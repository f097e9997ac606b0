// What soliton-chat prints, and how it ends when interrupted.
#include <chrono>
#include <csignal>
#include <fstream>
#include <nlohmann/json.hpp>
#include <regex>
#include <sstream>
#include <thread>

#include "cli/cli_fixture.h"
#include "long_tests.h"

namespace soliton {
namespace {

const std::regex kStatistics(R"((.*\n)*\[ Prompt: \d+\.\d t/s \| Generation: \d+\.\d t/s \]\n)");
const std::regex kStopped(
    R"((.*\n)*\[ Prompt: \d+\.\d t/s \| Generation: \d+\.\d t/s.* \]\n\[ stopped \]\n)");

void expect_note_of_emulation(const Outcome& outcome) {
  const std::regex note(
      R"((.*\n)*(No card: e|E)mulating on the CPU, for checking; about \d+(\.\d+)? tokens/s\n(.*\n)*)");
  EXPECT_TRUE(std::regex_match(outcome.err, note)) << outcome.err;
}

TEST_F(Cli, ChatPrintsTextAndStatistics) {
  const Outcome outcome = run("soliton-chat", {"-m", "tiny-stories", "-p", "Once upon", "-n", "6"});
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_GT(outcome.out.size(), 12u);
  EXPECT_TRUE(outcome.out.ends_with("\n"));
  EXPECT_TRUE(std::regex_match(outcome.err, kStatistics)) << outcome.err;
  EXPECT_TRUE(outcome.err.starts_with("Context: 2048 tokens, all that the model takes\n")) << outcome.err;
  expect_note_of_emulation(outcome);
}

/// Lines of JSON.
std::vector<nlohmann::ordered_json> lines_of(const std::string& text) {
  std::vector<nlohmann::ordered_json> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(nlohmann::ordered_json::parse(line));
  return lines;
}

TEST_F(Cli, ChatPrintsJsonForScripts) {
  const Outcome outcome = run("soliton-chat", chat({"--json", "--logprobs", "-c", "24"}));
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_TRUE(outcome.err.starts_with("Context: 24 of the model's 2048 tokens\n")) << outcome.err;
  expect_note_of_emulation(outcome);
  const auto json = nlohmann::ordered_json::parse(outcome.out);
  std::vector<std::string> keys;
  for (const auto& [key, value] : json.items()) keys.push_back(key);
  EXPECT_EQ(keys, (std::vector<std::string>{"model", "content", "finish_reason", "tokens", "logprobs",
                                            "usage", "prompt_n", "prompt_ms", "predicted_n", "predicted_ms",
                                            "predicted_per_second"}));
  EXPECT_EQ(json.at("model"), "tiny-stories");
  EXPECT_TRUE(json.at("content").is_string());
  EXPECT_EQ(json.at("predicted_n"), 2);
  EXPECT_EQ(json.at("tokens").size(), 2u);
  EXPECT_EQ(json.at("finish_reason"), "length");
  for (const char* key : {"prompt_n", "prompt_ms", "predicted_ms", "predicted_per_second"})
    EXPECT_GT(json.at(key).get<double>(), 0) << key;
  const auto& usage = json.at("usage");
  EXPECT_EQ(usage.at("prompt_tokens"), json.at("prompt_n"));
  EXPECT_EQ(usage.at("completion_tokens"), 2);
  EXPECT_EQ(usage.at("total_tokens"), json.at("prompt_n").get<int>() + 2);
  // Digits that mean something: microseconds, and what a float can tell.
  const std::regex number(R"(-?\d+(\.\d{1,3})?)");
  for (const char* key : {"prompt_ms", "predicted_ms", "predicted_per_second"})
    EXPECT_TRUE(std::regex_match(json.at(key).dump(), number)) << json.at(key);
  constexpr size_t kMaxDigits = 12;  // of a float: -12.345678
  for (const auto& value : json.at("logprobs")) EXPECT_LE(value.dump().size(), kMaxDigits) << value;
}

TEST_F(Cli, ChatPrintsALineAToken) {
  // Which kernel of a library is the faster the clock says, and logprobs of two starts are compared: those of one row.
  const auto with = [&](const Arguments& more, const char* num_tokens = "6",
                        const std::string& kernel = kOneRowKernel) {
    Arguments all{"-m",       "tiny-stories", "-p",   "Once upon",  "-n",
                  num_tokens, "-k",           kernel, "--logprobs", "--ignore-eos"};
    all.insert(all.end(), more.begin(), more.end());
    const Outcome outcome = run("soliton-chat", all);
    EXPECT_EQ(outcome.status, 0) << outcome.err;
    return lines_of(outcome.out);
  };
  const auto plain = with({"--json"}).at(0);
  const std::string whole = plain.at("content");
  ASSERT_GT(whole.size(), 12u);
  // Without a stop string, and with one that begins in the middle of a word.
  for (const Arguments& stop : {Arguments{}, Arguments{"--stop", whole.substr(6, 5)}}) {
    Arguments as_lines = stop;
    as_lines.push_back("--jsonl");
    Arguments as_one = stop;
    as_one.push_back("--json");
    const auto json = stop.empty() ? plain : with(as_one).at(0);
    const auto lines = with(as_lines);
    std::string content;
    auto tokens = nlohmann::ordered_json::array();
    auto logprobs = nlohmann::ordered_json::array();
    for (size_t i = 0; i + 1 < lines.size(); ++i) {
      EXPECT_EQ(lines[i].size(), 3u) << lines[i];
      content += lines[i].at("text").get<std::string>();
      tokens.push_back(lines[i].at("token"));
      logprobs.push_back(lines[i].at("logprob"));
    }
    EXPECT_EQ(content, json.at("content"));
    EXPECT_EQ(tokens, json.at("tokens"));
    EXPECT_EQ(logprobs, json.at("logprobs"));
    const auto& last = lines.back();
    for (const char* key : {"model", "finish_reason", "usage", "predicted_n"})
      EXPECT_EQ(last.at(key), json.at(key));
    EXPECT_FALSE(last.contains("tokens"));
    EXPECT_EQ(content, stop.empty() ? whole : whole.substr(0, whole.find(stop[1])));
    EXPECT_EQ(last.at("finish_reason"), stop.empty() ? "length" : "stop_text");
    EXPECT_EQ(tokens.size() < last.at("usage").at("completion_tokens"), !stop.empty());
  }
  const auto samples = with({"--jsonl", "-np", "2"}, "2", kTinyKernel);
  std::string contents[2];
  for (size_t i = 0; i + 1 < samples.size(); ++i)
    contents[samples[i].at("index").get<size_t>()] += samples[i].at("text").get<std::string>();
  const auto expected = with({"--json", "-np", "2"}, "2", kTinyKernel).at(0).at("samples");
  for (size_t i = 0; i < 2; ++i) {
    EXPECT_EQ(contents[i], expected[i].at("content"));
    EXPECT_EQ(samples.back().at("samples")[i],
              (nlohmann::ordered_json{{"finish_reason", "length"}, {"seed", i}}));
  }
  expect_error("soliton-chat", chat({"--json", "--jsonl"}), kUsage, "--json", "--json");
}

// While the answer comes, and what has come is sound if it is cut.
TEST_F(Cli, ChatStreamsLines) {
  const Process process(
      "soliton-chat",
      {"-m", "tiny-stories", "-p", "Once", "-n", "2000", "--ignore-eos", "-k", kTinyKernel, "--jsonl"},
      path());
  constexpr int kMaxPolls = 6000;
  const auto num_lines = [&] {
    const std::string out = process.out_so_far();
    return std::count(out.begin(), out.end(), '\n');
  };
  for (int i = 0; i < kMaxPolls && num_lines() < 3; ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  process.signal(SIGINT);
  const Outcome outcome = process.wait();
  EXPECT_EQ(outcome.status, kInterrupted) << outcome.err;
  const auto lines = lines_of(outcome.out);
  ASSERT_GE(lines.size(), 4u);
  EXPECT_LT(lines.size(), 2000u);
  EXPECT_EQ(lines.back().at("finish_reason"), "interrupted");
  EXPECT_EQ(lines.back().at("usage").at("completion_tokens"), lines.size() - 1);
}

TEST_F(Cli, ChatPrintsSamples) {
  const Outcome outcome = run("soliton-chat", chat({"-np", "3", "--seed", "7"}));
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  expect_note_of_emulation(outcome);
  const std::regex samples(
      R"(--- sample 0 \(seed 7\)\n.+\n--- sample 1 \(seed 8\)\n.+\n--- sample 2 \(seed 9\)\n.+\n)");
  EXPECT_TRUE(std::regex_match(outcome.out, samples)) << outcome.out;
  const std::regex statistics(
      R"((.*\n)*\[ Prompt: \d+\.\d t/s \| Generation: \d+\.\d t/s \| 3 samples \]\n)");
  EXPECT_TRUE(std::regex_match(outcome.err, statistics)) << outcome.err;
}

TEST_F(Cli, ChatPrintsSamplesAsJson) {
  const Arguments base{"-m", "tiny-stories", "-p", "Once upon", "-n", "2", "-k", kTinyKernel, "--json"};
  const auto json = [&](const Arguments& more) {
    Arguments arguments = base;
    arguments.insert(arguments.end(), more.begin(), more.end());
    const Outcome outcome = run("soliton-chat", arguments);
    EXPECT_EQ(outcome.status, 0) << outcome.err;
    return nlohmann::json::parse(outcome.out);
  };
  const auto together = json({"-np", "3", "--seed", "7"});
  ASSERT_EQ(together.at("samples").size(), 3u);
  for (size_t i = 0; i < 3; ++i) {
    const auto& sample = together.at("samples")[i];
    EXPECT_EQ(sample.at("seed"), 7 + i);
    EXPECT_TRUE(sample.at("content").is_string());
    EXPECT_EQ(sample.at("tokens").size(), 2u);
    EXPECT_EQ(sample.at("finish_reason"), "length");
  }
  EXPECT_EQ(together.at("predicted_n"), 6);
  for (const char* key : {"prompt_n", "prompt_ms", "predicted_ms", "predicted_per_second"})
    EXPECT_GT(together.at(key).get<double>(), 0) << key;

  // One alone is an answer like others, the same as among others.
  const auto alone = json({"--temp", "0.8", "--seed", "8"});
  EXPECT_EQ(alone.at("tokens"), together.at("samples")[1].at("tokens"));
  EXPECT_EQ(alone.at("content"), together.at("samples")[1].at("content"));

  const auto greedy = json({});
  const auto alike = json({"-np", "2", "--temp", "0"});
  for (const auto& sample : alike.at("samples")) EXPECT_EQ(sample.at("tokens"), greedy.at("tokens"));
}

TEST_F(Cli, ChatDrawsAsFlagsAndFilesSay) {
  const auto json = [&](const Arguments& more) {
    Arguments arguments{"-m", "tiny-stories", "-p", "Once upon", "-n", "4", "-k", kTinyKernel, "--json"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    const Outcome outcome = run("soliton-chat", arguments);
    EXPECT_EQ(outcome.status, 0) << outcome.err;
    return nlohmann::json::parse(outcome.out);
  };
  const auto greedy = json({});
  EXPECT_EQ(json({"--temp", "3", "--top-k", "1"}).at("tokens"), greedy.at("tokens"));
  const Arguments drawn = {"--temp", "3", "--top-k", "40", "--min-p", "0.01", "--repeat-penalty", "1.2"};
  const auto by_flags = json(drawn);
  EXPECT_NE(by_flags.at("tokens"), greedy.at("tokens"));

  write_text(
      model() / "generation_config.json",
      R"({"do_sample": true, "temperature": 3.0, "top_k": 40, "min_p": 0.01, "repetition_penalty": 1.2})");
  EXPECT_EQ(json({}).at("tokens"), by_flags.at("tokens"));
  EXPECT_EQ(json({"--temp", "0", "--repeat-penalty", "1"}).at("tokens"), greedy.at("tokens"));
  EXPECT_EQ(json({"--lookup", "3"}).at("tokens"), by_flags.at("tokens"));
  write_text(model() / "generation_config.json", R"({"top_p": 7})");
  expect_error("soliton-chat", chat(), kBadFile, "tiny-stories/generation_config.json",
               "top_p: expected a number in [0, 1], got 7");
}

TEST_F(Cli, ChatSaysLogprobs) {
  const Outcome text = run("soliton-chat", chat({"--logprobs"}));
  EXPECT_EQ(text.status, 0) << text.err;
  const std::regex lines(R"((.*\n)* +-?\d+\.\d{4} +\d+ ".*"\n +-?\d+\.\d{4} +\d+ ".*"\n\[ Prompt: .*\n)");
  EXPECT_TRUE(std::regex_match(text.err, lines)) << text.err;
  EXPECT_EQ(text.out, " a time\n") << "as without it";
  const auto json = nlohmann::json::parse(run("soliton-chat", chat({"--logprobs", "--json"})).out);
  ASSERT_EQ(json.at("logprobs").size(), 2u);
  for (const double logprob : json.at("logprobs")) EXPECT_LE(logprob, 0);
  const auto samples = nlohmann::json::parse(
      run("soliton-chat", chat({"--logprobs", "--json", "-np", "2", "--temp", "0"})).out);
  for (const auto& sample : samples.at("samples")) {
    ASSERT_EQ(sample.at("logprobs").size(), 2u);
    EXPECT_NEAR(sample.at("logprobs")[0].get<double>(), json.at("logprobs")[0].get<double>(), 0.01);
  }
}

TEST_F(Cli, ChatWithLookupGivesTheSameAnswer) {
  const Arguments base{"-m", "tiny-stories", "-p",       "the cat, the cat, the cat,", "-n",
                       "8",  "-k",           kTinyKernel};
  Arguments lookup = base;
  lookup.insert(lookup.end(), {"--lookup", "7"});
  const Outcome expected = run("soliton-chat", base);
  const Outcome outcome = run("soliton-chat", lookup);
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_EQ(outcome.out, expected.out);
  const std::regex statistics(
      R"((.*\n)*\[ Prompt: .* t/s \| Generation: .* t/s \| Drafts: \d+\.\d\d tokens accepted/step, \d+ steps \]\n)");
  EXPECT_TRUE(std::regex_match(outcome.err, statistics)) << outcome.err;
}

// The model drafts for itself: what it says is what it would have said.
TEST_F(Cli, ChatWithADraftModelGivesTheSameAnswer) {
  std::vector<Arguments> ways = {{}};
  if (long_tests()) ways.push_back({"--temp", "0.8", "--seed", "5", "--repeat-penalty", "1.1"});
  for (const Arguments& way : ways) {
    Arguments arguments{"-m", "tiny-stories", "-p", "Once upon", "-n", "10", "-k", kTinyKernel, "--json"};
    arguments.insert(arguments.end(), way.begin(), way.end());
    const auto plain = nlohmann::json::parse(run("soliton-chat", arguments).out);
    arguments.insert(arguments.end(), {"--draft", "tiny-stories", "--draft-max", "4"});
    const Outcome outcome = run("soliton-chat", arguments);
    EXPECT_EQ(outcome.status, 0) << outcome.err;
    EXPECT_THAT(outcome.err, testing::HasSubstr("Draft model: "));
    const auto drafted = nlohmann::json::parse(outcome.out);
    EXPECT_EQ(drafted.at("tokens"), plain.at("tokens"));
    EXPECT_LE(drafted.at("steps").get<int>(), 10 * 2 / 5) << "2.5 tokens a step";
  }
}

// Which beams are found, chat-tests compare with transformers.
TEST_F(Cli, ChatSearchesWithBeams) {
  Arguments arguments{"-m", "tiny-stories", "-p", "Once upon", "-n", "3", "-k", kTinyKernel, "--beams", "2"};
  const Outcome text = run("soliton-chat", arguments);
  EXPECT_EQ(text.status, 0) << text.err;
  EXPECT_THAT(text.err, testing::HasSubstr(" | 2 beams, 3 steps ]"));
  arguments.push_back("--json");
  const auto json = nlohmann::json::parse(run("soliton-chat", arguments).out);
  ASSERT_EQ(json.at("beams").size(), 2u);
  EXPECT_NE(json.at("beams")[0].at("tokens"), json.at("beams")[1].at("tokens"));
  EXPECT_GE(json.at("beams")[0].at("score"), json.at("beams")[1].at("score"));
  EXPECT_EQ(json.at("tokens"), json.at("beams")[0].at("tokens"));
  EXPECT_EQ(json.at("content").get<std::string>() + "\n", text.out);
  EXPECT_EQ(json.at("usage").at("completion_tokens"), 3);
}

TEST_F(Cli, ChatRefusesDraftModelsOfOtherTokens) {
  expect_error("soliton-chat", chat({"--draft", "absent"}), kNotFound, "absent");
  const fs::path other = path() / "other";
  fs::create_directory(other);
  for (const char* name : {"config.json", "tokenizer_config.json", "model.safetensors"})
    fs::copy(model() / name, other / name);
  std::ifstream file(model() / "tokenizer.json");
  auto tokenizer = nlohmann::json::parse(file);
  auto& vocabulary = tokenizer.at("model").at("vocab");
  std::swap(vocabulary.at("hind"), vocabulary.at("he"));
  write_text(other / "tokenizer.json", tokenizer.dump());
  expect_error("soliton-chat", chat({"--draft", "other"}), kMismatch, "other/tokenizer.json",
               "expected the tokens of tiny-stories, got another one with id");
}

// -np is not a prompt's business.
TEST_F(Cli, ChatTakesAnyPrompt) {
  const Outcome outcome =
      run("soliton-chat", {"-m", "tiny-stories", "-p", "-np", "-n", "1", "-k", kTinyKernel, "--json"});
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  const Outcome other =
      run("soliton-chat", {"-m", "tiny-stories", "--prompt=-np", "-n", "1", "-k", kTinyKernel, "--json"});
  EXPECT_EQ(nlohmann::json::parse(outcome.out).at("prompt_n"),
            nlohmann::json::parse(other.out).at("prompt_n"));
}

// A script must not take for complete what was cut.
TEST_F(Cli, ChatEndsEveryWayToDecodeOnInterrupt) {
  SOLITON_LONG_RUNS_ONLY("ChatTerminal.CtrlCStopsTheAnswerOnly stops one");
  for (const Arguments& way : {Arguments{"-np", "2"}, Arguments{"--lookup", "3"}, Arguments{"--temp", "1"}}) {
    Arguments arguments{"-m",   "tiny-stories", "-p", "Once",      "-n",
                        "2000", "--ignore-eos", "-k", kTinyKernel, "--json"};
    arguments.insert(arguments.end(), way.begin(), way.end());
    const Process process("soliton-chat", arguments, path());
    // JSON is printed at the end only: some time after the model has been read.
    constexpr int kMaxPolls = 6000;
    for (int i = 0; i < kMaxPolls && process.err_so_far().find("mulating on the CPU") == std::string::npos;
         ++i)
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    std::this_thread::sleep_for(std::chrono::milliseconds(800));
    process.signal(SIGINT);
    const Outcome outcome = process.wait();
    EXPECT_EQ(outcome.status, kInterrupted) << outcome.err;
    EXPECT_TRUE(std::regex_match(outcome.err, kStopped)) << outcome.err;
    auto json = nlohmann::json::parse(outcome.out);
    if (!json.contains("samples")) json = {{"samples", {json}}};
    for (const auto& sample : json.at("samples")) {
      EXPECT_EQ(sample.at("finish_reason"), "interrupted");
      EXPECT_LT(sample.at("tokens").size(), 2000u);
    }
  }
}

TEST_F(Cli, ChatEndsTheAnswerOnInterrupt) {
  const Process process("soliton-chat", {"-m", "tiny-stories", "-p", "Once", "-n", "2000", "--ignore-eos"},
                        path());
  constexpr int kMaxPolls = 6000;
  for (int i = 0; i < kMaxPolls && process.out_so_far().empty(); ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  process.signal(SIGINT);
  const Outcome outcome = process.wait();
  EXPECT_EQ(outcome.status, kInterrupted) << outcome.err;
  EXPECT_TRUE(outcome.out.ends_with("\n"));
  EXPECT_TRUE(std::regex_match(outcome.err, kStopped)) << outcome.err;
}

TEST_F(Cli, ChatVerifiesKernels) {
  const Outcome good = run("soliton-chat", {"--verify", "tiny-stories"});
  EXPECT_EQ(good.status, 0) << good.err;
  EXPECT_TRUE(good.out.starts_with("verified: ")) << good.out;
  EXPECT_NE(good.out.find("largest difference "), std::string::npos) << good.out;
  EXPECT_EQ(std::count(good.out.begin(), good.out.end(), '\n'), 1);
  const std::string mutant = std::string(SOLITON_TEST_KERNELS) + "/mutant-norm.so";
  const Outcome bad = run("soliton-chat", {"--verify", "tiny-stories", "-k", mutant});
  EXPECT_EQ(bad.status, kNotVerified) << bad.err;
  EXPECT_TRUE(bad.out.starts_with("NOT verified: " + mutant + ": token 1 of 8: largest difference "))
      << bad.out;
  expect_error("soliton-chat", {"--verify", "tiny-stories", "-p", "x"}, kUsage, "--verify",
               "expected no prompt");
  expect_error("soliton-chat", {"--verify", "absent"}, kNotFound, "absent", "found no such folder");
}

TEST_F(Cli, ChatFindsATensorThatTheKernelIsWithout) {
  const auto without = [](const char* tensor, const Arguments& more = {}) {
    Arguments arguments{"--verify-without", tensor, "tiny-stories", "-k", kTinyKernel};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return arguments;
  };
  const std::string weights = read_text(model() / "model.safetensors");
  // Without the embedding, which is that of the outputs too, all logits are 0.
  for (const char* tensor : {"model.layers.1.mlp.down_proj.weight", "model.embed_tokens.weight"}) {
    SCOPED_TRACE(tensor);
    const Outcome outcome = run("soliton-chat", without(tensor));
    EXPECT_EQ(outcome.status, kNotVerified) << outcome.err;
    EXPECT_TRUE(
        outcome.out.starts_with("NOT verified: " + kTinyKernel + ": token 1 of 8: largest difference "))
        << outcome.out;
    EXPECT_EQ(std::count(outcome.out.begin(), outcome.out.end(), '\n'), 1);
  }
  EXPECT_EQ(read_text(model() / "model.safetensors"), weights);
  expect_error("soliton-chat", without("model.absent"), kUsage, "--verify-without",
               "expected a tensor of tiny-stories, got \"model.absent\"");
  expect_error("soliton-chat", without(""), kUsage, "--verify-without", "got \"\"");
  write_text(path() / "prompt.txt", "x");
  for (const Arguments& prompt : {Arguments{"-p", "x"}, Arguments{"-f", "prompt.txt"}}) {
    expect_error("soliton-chat", without("model.norm.weight", prompt), kUsage, "--verify-without",
                 "expected no prompt");
  }
}

}  // namespace
}  // namespace soliton
