// Bad input as a new user would give it. Whatever is wrong: one line on stderr that starts with the program's
// name and names the file or flag, nothing on stdout, no file left behind, and the exit status below.
//
//   status  soliton-chat, soliton-bench               soliton-gen
//   0       success, --help, Ctrl-C                   success, --help
//   2       a flag or its value                       a flag or its value
//   3       a file is absent, unreadable, unwritable  the same
//   4       a file's content is malformed or cut      a file says what cannot be
//   5       kernel, model and card do not fit         no plan for this model, card and flags
//   6       no device, or it or the kernel failed     -
//   7       memory, or longer than the context        -
//   70      a defect of ours                          a defect of ours
#include <gtest/gtest.h>

#include <algorithm>
#include <csignal>
#include <nlohmann/json.hpp>
#include <regex>
#include <thread>

#include "cli/run_program.h"

namespace soliton {
namespace {

namespace fs = std::filesystem;
using Arguments = std::vector<std::string>;

constexpr int kUsage = 2;
constexpr int kNotFound = 3;
constexpr int kBadFile = 4;
constexpr int kMismatch = 5;
constexpr int kDevice = 6;
constexpr int kLimit = 7;

const std::string kTinyKernel = std::string(SOLITON_KERNELS) + "/tiny-stories-cpu.so";
const std::string kCudaKernel = std::string(SOLITON_KERNELS) + "/tiny-stories-h200.so";
const std::string kOtherKernel = std::string(SOLITON_TEST_KERNELS) + "/micro-1.so";
const std::string kOneRowKernel = std::string(SOLITON_TEST_KERNELS) + "/tiny-3.so";
const std::string kTinyModel = std::string(SOLITON_SOURCE_DIR) + "/models/tiny-stories.yaml";
const std::string kLfsPointer =
    "version https://git-lfs.github.com/spec/v1\noid sha256:0123456789abcdef\nsize 10498464\n";

/// A working folder that holds a copy of the tiny model, to be damaged.
class Cli : public testing::Test {
 protected:
  Cli() {
    fs::create_directory(model());
    const fs::path source = fs::path(SOLITON_SOURCE_DIR) / "models" / "tiny-stories";
    for (const char* name : {"config.json", "generation_config.json", "tokenizer.json",
                             "tokenizer_config.json", "model.safetensors"}) {
      fs::copy(source / name, model() / name);
    }
  }

  fs::path model() const { return path() / "tiny-stories"; }
  const fs::path& path() const { return folder_.path(); }

  Outcome run(const std::string& program, const Arguments& arguments,
              const std::vector<std::string>& environment = {}) const {
    return Process(program, arguments, path(), environment).wait();
  }
  /// soliton-chat on the copy, with the kernel of the emulation and further arguments.
  Arguments chat(const Arguments& more = {}) const {
    Arguments arguments{"-m", "tiny-stories", "-p", "Once upon", "-n", "2", "-k", kTinyKernel};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return arguments;
  }
  /// soliton-bench with random weights and further arguments.
  Arguments bench(const Arguments& more = {}) const {
    Arguments arguments{"--random-weights", "-k", kTinyKernel, "-r", "1"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return arguments;
  }

  /// Runs and expects the one line, which names `culprit` and contains `reason`.
  void expect_error(const std::string& program, const Arguments& arguments, int status,
                    const std::string& culprit, const std::string& reason = "",
                    const std::vector<std::string>& environment = {}) const {
    const std::set<std::string> before = folder_.files();
    const Outcome outcome = run(program, arguments, environment);
    SCOPED_TRACE(outcome.err);
    EXPECT_EQ(outcome.status, status);
    EXPECT_EQ(outcome.out, "");
    EXPECT_EQ(std::count(outcome.err.begin(), outcome.err.end(), '\n'), 1);
    EXPECT_TRUE(outcome.err.ends_with("\n"));
    EXPECT_TRUE(outcome.err.starts_with(program + ": " + culprit)) << "expected to name " << culprit;
    EXPECT_NE(outcome.err.find(reason), std::string::npos) << "expected to say " << reason;
    EXPECT_LE(outcome.err.size(), 400u);
    EXPECT_EQ(folder_.files(), before);
  }

  /// Replaces `from`, which config.json holds once, by `to`.
  void edit_config(const std::string& from, const std::string& to) const {
    std::string text = read_text(model() / "config.json");
    const size_t at = text.find(from);
    ASSERT_NE(at, std::string::npos);
    write_text(model() / "config.json", text.replace(at, from.size(), to));
  }

  TemporaryFolder folder_;
};

// --- soliton-chat: files ---------------------------------------------------------------------------------

TEST_F(Cli, ChatNamesWhatIsMissing) {
  expect_error("soliton-chat", {"-m", "absent", "-p", "x"}, kNotFound, "absent", "no such file");
  for (const char* name : {"config.json", "tokenizer.json"}) {
    const std::string text = read_text(model() / name);
    fs::remove(model() / name);
    expect_error("soliton-chat", chat(), kNotFound, std::string("tiny-stories/") + name, "no such file");
    write_text(model() / name, text);
  }
  fs::remove(model() / "model.safetensors");
  expect_error("soliton-chat", chat(), kNotFound, "tiny-stories", "model.safetensors");
}

TEST_F(Cli, ChatRefusesAFileForAFolder) {
  expect_error("soliton-chat", {"-m", "tiny-stories/config.json", "-p", "x"}, kNotFound,
               "tiny-stories/config.json");
}

TEST_F(Cli, ChatRefusesEmptyFilesAndLfsPointers) {
  for (const char* name : {"config.json", "tokenizer.json", "model.safetensors"}) {
    const std::string text = read_text(model() / name);
    write_text(model() / name, "");
    expect_error("soliton-chat", chat(), kBadFile, std::string("tiny-stories/") + name, "empty");
    write_text(model() / name, kLfsPointer);
    expect_error("soliton-chat", chat(), kBadFile, std::string("tiny-stories/") + name, "git-LFS pointer");
    write_text(model() / name, text);
  }
}

TEST_F(Cli, ChatRefusesUnreadableFiles) {
  for (const char* name : {"config.json", "tokenizer.json", "model.safetensors"}) {
    fs::permissions(model() / name, fs::perms::none);
    if (access((model() / name).c_str(), R_OK) == 0) GTEST_SKIP() << "root reads everything";
    expect_error("soliton-chat", chat(), kNotFound, std::string("tiny-stories/") + name, "cannot be read");
    fs::permissions(model() / name, fs::perms::owner_read);
  }
}

TEST_F(Cli, ChatRefusesCutFiles) {
  const std::string weights = read_text(model() / "model.safetensors");
  for (const size_t size : {size_t{7}, size_t{100}, weights.size() / 2, weights.size() - 1}) {
    write_text(model() / "model.safetensors", weights.substr(0, size));
    expect_error("soliton-chat", chat(), kBadFile, "tiny-stories/model.safetensors", "cut short");
  }
  write_text(model() / "model.safetensors", weights);
  for (const char* name : {"config.json", "tokenizer.json"}) {
    const std::string text = read_text(model() / name);
    write_text(model() / name, text.substr(0, text.size() / 2));
    expect_error("soliton-chat", chat(), kBadFile, std::string("tiny-stories/") + name, "JSON");
    write_text(model() / name, text);
  }
}

TEST_F(Cli, ChatRefusesWrongShapes) {
  std::string weights = read_text(model() / "model.safetensors");
  const size_t tensor = weights.find("\"model.norm.weight\"");
  ASSERT_NE(tensor, std::string::npos);
  const size_t shape = weights.find("[256]", tensor);
  ASSERT_NE(shape, std::string::npos);
  std::string fewer = weights;
  fewer.replace(shape, 5, "[255]");  // fewer than its bytes
  write_text(model() / "model.safetensors", fewer);
  expect_error("soliton-chat", chat(), kBadFile, "tiny-stories/model.safetensors", "model.norm.weight");

  weights.replace(tensor, 19, "\"model.norm.weighs\"");
  write_text(model() / "model.safetensors", weights);
  expect_error("soliton-chat", chat(), kMismatch, "tiny-stories", "model.norm.weight: expected BF16 [256]");
}

TEST_F(Cli, ChatRefusesAConsistentFileOfOtherShapes) {
  std::string header = R"({"model.layers.0.self_attn.q_proj.weight":)"
                       R"({"dtype":"BF16","shape":[2,3],"data_offsets":[0,12]}})";
  std::string file(8, '\0');
  file[0] = static_cast<char>(header.size());
  write_text(model() / "model.safetensors", file + header + std::string(12, '\0'));
  expect_error("soliton-chat", chat(), kMismatch, "tiny-stories/model.safetensors",
               "expected BF16 [256, 256], got");
}

TEST_F(Cli, ChatRefusesHeadsThatDoNotDivide) {
  edit_config("\"num_key_value_heads\": 2", "\"num_key_value_heads\": 3");
  expect_error("soliton-chat", chat(), kBadFile, "tiny-stories/config.json: num_key_value_heads",
               "expected a divisor of num_attention_heads = 4, got 3");
}

TEST_F(Cli, ChatRefusesAConfigOfAnotherModel) {
  edit_config("\"intermediate_size\": 768", "\"intermediate_size\": 1024");
  expect_error("soliton-chat", chat(), kMismatch, "tiny-stories/config.json: ffn", "expected 768");
}

// --- soliton-chat: flags ---------------------------------------------------------------------------------

TEST_F(Cli, ChatRefusesFlags) {
  const std::string model = "tiny-stories";
  expect_error("soliton-chat", {}, kUsage, "--model", "expected a value, got nothing");
  expect_error("soliton-chat", {"-p", "x"}, kUsage, "--model", "expected a value, got nothing");
  expect_error("soliton-chat", {"-m", model}, kUsage, "--prompt", "expected a value, got nothing");
  expect_error("soliton-chat", {"-p", "x", "-m"}, kUsage, "--model", "expected a value, got nothing");
  expect_error("soliton-chat", {"-p", "x", "-m", ""}, kUsage, "--model", "got \"\"");
  expect_error("soliton-chat", chat({"-m", model}), kUsage, "--model", "got 2 times");
  expect_error("soliton-chat", chat({"--bogus", "3"}), kUsage, "--bogus", "expected a flag");
  expect_error("soliton-chat", chat({"word"}), kUsage, "word", "expected a flag");
  for (const char* value : {"0", "-1", "x", "1.5", "010", "99999999999", ""}) {
    for (const char* flag : {"--predict", "--ctx-size"}) {
      const std::string found = std::string("got \"") + value + "\"";
      expect_error("soliton-chat", {"-m", model, "-p", "x", std::string(flag) + "=" + value}, kUsage, flag,
                   *value == '\0' ? "" : found);
    }
  }
}

TEST_F(Cli, ChatRefusesFlagsOfSamplesAndLookup) {
  for (const char* value : {"0", "-1", "x", "1.5", "99999999999"}) {
    const std::string found = std::string("got \"") + value + "\"";
    expect_error("soliton-chat", chat({"-np", value}), kUsage, "--parallel", found);
    expect_error("soliton-chat", chat({"--parallel", value}), kUsage, "--parallel", found);
    expect_error("soliton-chat", chat({"--lookup", value}), kUsage, "--lookup", found);
  }
  for (const char* value : {"-0.1", "101", "x", "nan", "inf", "1 ", ""})
    expect_error("soliton-chat", chat({"--temp", value}), kUsage, "--temp");
  expect_error("soliton-chat", chat({"--seed", "-1"}), kUsage, "--seed", "got \"-1\"");
  expect_error("soliton-chat", chat({"--seed", "4294967296"}), kUsage, "--seed", "from 0 to 4294967295");
  expect_error("soliton-chat", chat({"-np"}), kUsage, "--parallel", "expected a value, got nothing");
  expect_error("soliton-chat", chat({"-np", "2", "--parallel", "2"}), kUsage, "--parallel", "got 2 times");

  const std::string one = "expected greedy decoding of one answer";
  expect_error("soliton-chat", chat({"--lookup", "3", "-np", "2"}), kUsage, "--lookup",
               one + ", got --parallel 2");
  expect_error("soliton-chat", chat({"--lookup", "3", "--temp", "0.5"}), kUsage, "--lookup",
               one + ", got --temp 0.5");
  expect_error("soliton-chat", chat({"--lookup", "3", "-np", "2", "--temp", "0"}), kUsage, "--lookup", one);
}

TEST_F(Cli, ChatRefusesMoreRowsThanTheKernelTakes) {
  expect_error("soliton-chat", chat({"-np", "9"}), kUsage, "--parallel",
               "expected at most 8, got 9: " + kTinyKernel + " takes 8 rows a step");
  expect_error("soliton-chat", chat({"-np", "2147483647"}), kUsage, "--parallel", "expected at most 8");
  expect_error("soliton-chat", chat({"--lookup", "8"}), kUsage, "--lookup",
               "expected at most 7, got 8: " + kTinyKernel + " takes 8 rows a step");
  expect_error("soliton-chat", chat({"--lookup", "2147483647"}), kUsage, "--lookup", "expected at most 7");
  const auto with_one_row = [](const Arguments& more) {
    Arguments arguments{"-m", "tiny-stories", "-p", "x", "-n", "2", "-k", kOneRowKernel};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return arguments;
  };
  const std::string takes = kOneRowKernel + " takes 1 row a step";
  expect_error("soliton-chat", with_one_row({"-np", "2"}), kUsage, "--parallel", takes);
  expect_error("soliton-chat", with_one_row({"--lookup", "1"}), kUsage, "--lookup", takes);
  expect_error("soliton-chat", with_one_row({"--temp", "0.5"}), kUsage, "--temp", takes);
  EXPECT_EQ(run("soliton-chat", with_one_row({"--temp", "0", "-np", "1"})).status, 0);
}

TEST_F(Cli, ChatRefusesMoreThanTheContextBeforeItReadsWeights) {
  const std::string flag = "--ctx-size";
  expect_error("soliton-chat", chat({"-c", "2049"}), kLimit, flag,
               "expected at most the model's 2048 tokens");
  expect_error("soliton-chat", chat({"-c", "2147483647"}), kLimit, flag, "got 2147483647");
  std::string prompt;
  for (int i = 0; i < 40; ++i) prompt += "Once upon a time ";
  const Arguments long_prompt{"-m", "tiny-stories", "-p", prompt, "-n", "1", "-k", kTinyKernel};
  Arguments arguments = long_prompt;
  arguments.insert(arguments.end(), {"-c", "16"});
  expect_error("soliton-chat", arguments, kLimit, flag, "of the prompt, 1 to generate), got 16");
  expect_error("soliton-chat", {"-m", "tiny-stories", "-p", "x", "-n", "2147483647"}, kLimit,
               "--prompt and --predict", "expected at most the model's 2048 tokens");
}

// --- soliton-chat: kernels -------------------------------------------------------------------------------

TEST_F(Cli, ChatRefusesKernels) {
  const auto with = [](const std::string& kernel) {
    return Arguments{"-m", "tiny-stories", "-p", "x", "-n", "1", "-k", kernel};
  };
  expect_error("soliton-chat", with("absent.so"), kNotFound, "absent.so", "no such file");
  expect_error("soliton-chat", with(""), kUsage, "--kernel", "got \"\"");
  expect_error("soliton-chat", with("tiny-stories"), kNotFound, "tiny-stories", "got a directory");
  expect_error("soliton-chat", with("tiny-stories/config.json"), kBadFile, "tiny-stories/config.json",
               "expected a kernel library");
  expect_error("soliton-chat", with(kOtherKernel), kMismatch, "tiny-stories/config.json", "kernel of micro");
  expect_error("soliton-chat", chat({"--device", "5"}), kDevice, kTinyKernel, "got 5");
}

TEST_F(Cli, ChatRefusesACutKernel) {
  const std::string kernel = read_text(kTinyKernel);
  for (const size_t size : {size_t{20}, size_t{4096}, kernel.size() / 3, kernel.size() - 1}) {
    write_text(path() / "cut.so", kernel.substr(0, size));
    expect_error("soliton-chat", {"-m", "tiny-stories", "-p", "x", "-k", "cut.so"}, kBadFile, "cut.so");
  }
}

TEST_F(Cli, ChatRefusesFoldersWithoutAFittingKernel) {
  const Arguments arguments{"-m", "tiny-stories", "-p", "x", "-n", "1"};
  expect_error("soliton-chat", arguments, kNotFound, "absent", "expected a folder of kernel libraries",
               {"SOLITON_KERNELS=absent"});
  fs::create_directory(path() / "kernels");
  expect_error("soliton-chat", arguments, kNotFound, "kernels", "found none", {"SOLITON_KERNELS=kernels"});
  fs::copy(kOtherKernel, path() / "kernels" / "micro.so");
  expect_error("soliton-chat", arguments, kNotFound, "kernels", "found none", {"SOLITON_KERNELS=kernels"});
  write_text(path() / "kernels" / "damaged.so", "text");
  expect_error("soliton-chat", arguments, kBadFile, "kernels/damaged.so", "", {"SOLITON_KERNELS=kernels"});
}

TEST_F(Cli, ChatSkipsADamagedKernelBesideAFittingOne) {
  fs::create_directory(path() / "kernels");
  fs::copy(kTinyKernel, path() / "kernels" / "tiny.so");
  write_text(path() / "kernels" / "damaged.so", "text");
  const Outcome outcome =
      run("soliton-chat", {"-m", "tiny-stories", "-p", "x", "-n", "1"}, {"SOLITON_KERNELS=kernels"});
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_NE(outcome.out, "");
}

TEST_F(Cli, ChatNamesTheDeviceThatACudaKernelLacks) {
  if (!fs::exists(kCudaKernel)) GTEST_SKIP() << "no CUDA kernels built";
  if (fs::exists("/dev/nvidia0")) GTEST_SKIP() << "there is a card";
  expect_error("soliton-chat", {"-m", "tiny-stories", "-p", "x", "-k", kCudaKernel}, kDevice, kCudaKernel,
               "device");
  fs::create_directory(path() / "kernels");
  fs::copy(kCudaKernel, path() / "kernels" / "tiny.so");
  expect_error("soliton-chat", {"-m", "tiny-stories", "-p", "x"}, kMismatch, "kernels/tiny.so", "device",
               {"SOLITON_KERNELS=kernels"});
}

// --- soliton-chat: success -------------------------------------------------------------------------------

const std::regex kStatistics(R"((.*\n)*\[ Prompt: \d+\.\d t/s \| Generation: \d+\.\d t/s \]\n)");

TEST_F(Cli, ChatPrintsTextAndStatistics) {
  const Outcome outcome = run("soliton-chat", {"-m", "tiny-stories", "-p", "Once upon", "-n", "12"});
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_GT(outcome.out.size(), 12u);
  EXPECT_TRUE(outcome.out.ends_with("\n"));
  EXPECT_TRUE(std::regex_match(outcome.err, kStatistics)) << outcome.err;
}

TEST_F(Cli, ChatPrintsJson) {
  const Outcome outcome = run("soliton-chat", chat({"--json"}));
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  const auto json = nlohmann::json::parse(outcome.out);
  EXPECT_TRUE(json.at("content").is_string());
  EXPECT_EQ(json.at("predicted_n"), 2);
  EXPECT_EQ(json.at("tokens").size(), 2u);
  for (const char* key : {"prompt_n", "prompt_ms", "predicted_ms", "predicted_per_second"}) {
    EXPECT_GT(json.at(key).get<double>(), 0) << key;
  }
}

TEST_F(Cli, ChatPrintsSamples) {
  const Outcome outcome = run("soliton-chat", chat({"-np", "3", "--seed", "7"}));
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  const std::regex samples(
      R"(--- sample 0 \(seed 7\)\n.+\n--- sample 1 \(seed 8\)\n.+\n--- sample 2 \(seed 9\)\n.+\n)");
  EXPECT_TRUE(std::regex_match(outcome.out, samples)) << outcome.out;
  const std::regex statistics(
      R"((.*\n)*\[ Prompt: \d+\.\d t/s \| Generation: \d+\.\d t/s \| 3 samples \]\n)");
  EXPECT_TRUE(std::regex_match(outcome.err, statistics)) << outcome.err;
}

TEST_F(Cli, ChatPrintsSamplesAsJson) {
  const Arguments base{"-m", "tiny-stories", "-p", "Once upon", "-n", "6", "-k", kTinyKernel, "--json"};
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
    EXPECT_EQ(sample.at("tokens").size(), 6u);
  }
  EXPECT_EQ(together.at("predicted_n"), 18);
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

TEST_F(Cli, ChatWithLookupGivesTheSameAnswer) {
  const Arguments base{"-m", "tiny-stories", "-p", "the cat, the cat, the cat,",
                       "-n", "16",           "-k", kTinyKernel};
  Arguments lookup = base;
  lookup.insert(lookup.end(), {"--lookup", "7"});
  const Outcome expected = run("soliton-chat", base);
  const Outcome outcome = run("soliton-chat", lookup);
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_EQ(outcome.out, expected.out);
  const std::regex statistics(
      R"((.*\n)*\[ Prompt: .* t/s \| Generation: .* t/s \| Lookup: \d+\.\d\d tokens accepted/step, \d+ steps \]\n)");
  EXPECT_TRUE(std::regex_match(outcome.err, statistics)) << outcome.err;
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

TEST_F(Cli, ChatEndsSamplesAndLookupOnInterrupt) {
  for (const Arguments& way : {Arguments{"-np", "2"}, Arguments{"--lookup", "3"}, Arguments{"--temp", "1"}}) {
    Arguments arguments{"-m", "tiny-stories", "-p", "Once", "-n", "2000", "--ignore-eos", "-k", kTinyKernel};
    arguments.insert(arguments.end(), way.begin(), way.end());
    const Process process("soliton-chat", arguments, path());
    std::this_thread::sleep_for(std::chrono::seconds(3));  // samples are printed at the end only
    process.signal(SIGINT);
    const Outcome outcome = process.wait();
    EXPECT_EQ(outcome.status, 0) << outcome.err;
    EXPECT_TRUE(outcome.out.ends_with("\n"));
    EXPECT_NE(outcome.err.find("[ Prompt: "), std::string::npos) << outcome.err;
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
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_TRUE(std::regex_match(outcome.err, kStatistics)) << outcome.err;
}

TEST_F(Cli, HelpGoesToStdout) {
  for (const char* program : {"soliton-chat", "soliton-bench", "soliton-gen"}) {
    const Outcome outcome = run(program, {"--help"});
    EXPECT_EQ(outcome.status, 0);
    EXPECT_EQ(outcome.err, "");
    EXPECT_NE(outcome.out.find("--help"), std::string::npos);
  }
}

// --- soliton-bench ---------------------------------------------------------------------------------------

TEST_F(Cli, BenchRefusesFlags) {
  expect_error("soliton-bench", {"-k", kTinyKernel}, kUsage, "--model", "or --random-weights, got neither");
  expect_error("soliton-bench", {"--random-weights"}, kUsage, "--kernel", "expected a value, got nothing");
  expect_error("soliton-bench", bench({"-m", "tiny-stories"}), kUsage, "--model", "--random-weights");
  expect_error("soliton-bench", bench({"-n", "0"}), kUsage, "--n-gen", "got 0");
  expect_error("soliton-bench", bench({"-n", "2,x"}), kUsage, "--n-gen", "got \"x\"");
  expect_error("soliton-bench", bench({"-d", ","}), kUsage, "--n-depth");
  expect_error("soliton-bench", bench({"-d", ""}), kUsage, "--n-depth");
  expect_error("soliton-bench", bench({"-o", "xml"}), kUsage, "--output", "xml");
  expect_error("soliton-bench", bench({"--seed", "-1"}), kUsage, "--seed", "got \"-1\"");
  expect_error("soliton-bench", bench({"--bogus"}), kUsage, "--bogus", "expected a flag");
}

TEST_F(Cli, BenchRefusesFiles) {
  expect_error("soliton-bench", {"--random-weights", "-k", "absent.so"}, kNotFound, "absent.so",
               "no such file");
  expect_error("soliton-bench", {"-m", "absent", "-k", kTinyKernel}, kNotFound, "absent/config.json",
               "no such file");
  expect_error("soliton-bench", {"-m", "tiny-stories", "-k", kOtherKernel}, kMismatch,
               "tiny-stories/config.json", "kernel of micro");
}

TEST_F(Cli, BenchRefusesMoreThanTheContext) {
  expect_error("soliton-bench", bench({"-d", "2048"}), kLimit, "--n-depth and --n-gen", "got 2048 and 128");
  expect_error("soliton-bench", bench({"-d", "2147483647"}), kLimit, "--n-depth and --n-gen",
               "got 2147483647");
  expect_error("soliton-bench", bench({"-p", "2049"}), kLimit, "--n-prompt", "got 2049");
}

// Found out before anything is measured: nothing of the table is on stdout.
TEST_F(Cli, BenchChecksTheJsonFileFirst) {
  expect_error("soliton-bench", bench({"--json-file", "absent/x.json"}), kNotFound, "absent/x.json",
               "No such file");
  expect_error("soliton-bench", bench({"--json-file", "tiny-stories"}), kNotFound, "tiny-stories",
               "got: a folder");
}

TEST_F(Cli, BenchWritesJson) {
  write_text(path() / "result.json", "old");
  const std::set<std::string> before = folder_.files();
  const Outcome outcome =
      run("soliton-bench", bench({"-n", "2", "-p", "2", "-o", "json", "--json-file", "result.json"}));
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_EQ(folder_.files(), before);
  EXPECT_EQ(read_text(path() / "result.json"), outcome.out);
  const auto json = nlohmann::json::parse(outcome.out);
  for (const char* key : {"command", "model", "kernel_gpu", "num_ctas", "weights", "device", "driver",
                          "sm_clock_khz", "memory_clock_khz", "read_bandwidth_bytes_per_s", "repeats"}) {
    EXPECT_TRUE(json.contains(key)) << key;
  }
  ASSERT_EQ(json.at("rows").size(), 2u);
  for (const auto& row : json.at("rows")) {
    for (const char* key : {"tokens_per_s", "token_us_p50", "token_us_p90", "token_us_p99", "token_us_max",
                            "token_bytes", "bytes_per_s"}) {
      EXPECT_GT(row.at(key).get<double>(), 0) << key;
    }
  }
}

// --- soliton-bench --tune ---------------------------------------------------------------------------------

/// The smallest model for a machine of `num_sms`, which is called `few`.
void write_small(const fs::path& folder, int num_sms) {
  fs::copy(fs::path(SOLITON_SOURCE_DIR) / "tests" / "models" / "micro.yaml", folder / "micro.yaml");
  std::string gpu = read_text(fs::path(SOLITON_SOURCE_DIR) / "generator" / "gpus" / "cpu.yaml");
  gpu.replace(gpu.find("name: cpu"), 9, "name: few");
  gpu.replace(gpu.find("num_sms: 4"), 10, "num_sms: " + std::to_string(num_sms));
  write_text(folder / "few.yaml", gpu);
}

TEST_F(Cli, TuneRefusesFlags) {
  const auto tune = [](const Arguments& more) {
    Arguments arguments{"--tune", kTinyModel};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return arguments;
  };
  expect_error("soliton-bench", tune({}), kUsage, "--gpu", "expected a value, got nothing");
  expect_error("soliton-bench", tune({"--gpu", "bogus"}), kUsage, "--gpu", "got bogus");
  expect_error("soliton-bench", tune({"--gpu", "cpu", "-k", kTinyKernel}), kUsage, "--kernel", "--tune");
  expect_error("soliton-bench", tune({"--gpu", "cpu", "-m", "tiny-stories"}), kUsage, "--model", "--tune");
  expect_error("soliton-bench", tune({"--gpu", "cpu", "-p", "3"}), kUsage, "--n-prompt", "--tune");
  expect_error("soliton-bench", tune({"--gpu", "cpu", "--timeline", "t"}), kUsage, "--timeline", "--tune");
  expect_error("soliton-bench", tune({"--gpu", "cpu", "--knobs", "bogus"}), kUsage, "--knobs", "bogus");
  expect_error("soliton-bench", tune({"--gpu", "cpu", "-n", "1,2"}), kUsage, "--n-gen", "got 1,2");
  expect_error("soliton-bench", tune({"--gpu", "cpu", "-n", "0"}), kUsage, "--n-gen", "got 0");
  expect_error("soliton-bench", bench({"--gpu", "cpu"}), kUsage, "--gpu", "--tune");
  expect_error("soliton-bench", bench({"--knobs", "window"}), kUsage, "--knobs", "--tune");
  expect_error("soliton-bench", tune({"--gpu", "cpu", "-d", "2048"}), kLimit, "--n-depth and --n-gen",
               "less than the model's 2048 tokens");
}

TEST_F(Cli, TuneRefusesFiles) {
  const auto tune = [&](const Arguments& more) {
    Arguments arguments{"--tune", "micro.yaml", "--gpu", "few.yaml", "-d", "0", "-n", "1"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return arguments;
  };
  expect_error("soliton-bench", tune({}), kNotFound, "micro.yaml", "No such file");
  write_small(path(), 1);
  expect_error("soliton-bench", tune({"--json-file", "absent/x"}), kNotFound, "absent/x", "No such file");
  expect_error("soliton-bench", tune({}), kNotFound, "CXX", "got \"absent\"", {"CXX=absent"});
  expect_error("soliton-bench", {"--tune", "micro.yaml", "--gpu", "h200", "-d", "0"}, kNotFound, "CUDACXX",
               "got \"absent\"", {"CUDACXX=absent"});
  write_text(path() / "tuned", "");
  expect_error("soliton-bench", tune({}), kNotFound, "tuned/micro-few.yaml", "a file where the folder");
  fs::remove(path() / "tuned");
  fs::create_directories(path() / "tuned" / "micro-few.yaml");
  expect_error("soliton-bench", tune({}), kNotFound, "tuned/micro-few.yaml", "a folder");
  fs::remove(path() / "tuned" / "micro-few.yaml");
  write_text(path() / "tuned" / "micro-few.yaml", "window: many");
  expect_error("soliton-bench", tune({}), kBadFile, "tuned/micro-few.yaml:1: window", "got many");
}

TEST_F(Cli, TuneNamesEveryPlaceWithoutNvcc) {
  if (fs::exists("/usr/local/cuda/bin/nvcc")) GTEST_SKIP() << "there is one";
  expect_error("soliton-bench", {"--tune", kTinyModel, "--gpu", "h200", "-d", "0"}, kNotFound, "nvcc",
               "CUDACXX, CUDA_HOME, PATH", {"CUDACXX=", "CUDA_HOME=", "PATH=/absent"});
}

// In emulation the times mean nothing, and so which plan wins; what is said of it has to agree everywhere.
TEST_F(Cli, TuneFindsWritesAndIsFollowed) {
  write_small(path(), 5);  // one CTA does best in emulation, and is a candidate
  const Outcome outcome =
      run("soliton-bench", {"--tune", "micro.yaml", "--gpu", "few.yaml", "-d", "0,70", "-n", "2", "-r", "1",
                            "--knobs", "num_ctas,ring_slots", "--json-file", "tuned.json"});
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_NE(outcome.out.find("| knobs | predicted us at context 0 / 70 | us (p50) at 0 / 70 |"),
            std::string::npos);
  EXPECT_NE(outcome.err.find("num_ctas 1: "), std::string::npos);
  const auto json = nlohmann::json::parse(read_text(path() / "tuned.json"));
  EXPECT_EQ(json.at("read_bandwidth_bytes_per_s"), 0);
  int measured = 0;
  for (const auto& row : json.at("rows")) {
    if (row.contains("skipped")) continue;
    ++measured;
    EXPECT_EQ(row.at("token_us_p50").size(), 2u);
    EXPECT_EQ(row.at("predicted_us").size(), 2u);
  }
  EXPECT_GE(measured, 5);

  const fs::path overrides = path() / "tuned" / "micro-few.yaml";
  const Outcome generated = run("soliton-gen", {"micro.yaml", "--gpu", "few.yaml", "--dry-run"});
  EXPECT_EQ(generated.status, 0) << generated.err;
  const bool is_tuned = !json.at("chosen").empty();
  EXPECT_EQ(fs::exists(overrides), is_tuned);
  EXPECT_EQ(generated.out.find("\ntuned: ") != std::string::npos, is_tuned);
  EXPECT_NE(outcome.out.find(is_tuned ? "written to tuned/micro-few.yaml" : "Nothing beats"),
            std::string::npos);
  for (const auto& [name, value] : json.at("chosen").items()) {
    EXPECT_NE(read_text(overrides).find("\n" + name + ": " + value.dump() + "\n"), std::string::npos);
  }
}

TEST_F(Cli, TuneRemovesOverridesThatGainNothing) {
  write_small(path(), 1);  // no candidate for the CTAs
  fs::create_directory(path() / "tuned");
  write_text(path() / "tuned" / "micro-few.yaml", "num_ctas: 1\n");
  const Outcome outcome = run("soliton-bench", {"--tune", "micro.yaml", "--gpu", "few.yaml", "-d", "0", "-n",
                                                "1", "-r", "1", "--knobs", "num_ctas"});
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_NE(outcome.out.find("Nothing beats the planner's choice"), std::string::npos);
  EXPECT_FALSE(fs::exists(path() / "tuned" / "micro-few.yaml"));
}

// --- soliton-gen -----------------------------------------------------------------------------------------

TEST_F(Cli, GenRefusesFlags) {
  expect_error("soliton-gen", {}, kUsage, "MODEL.yaml", "got nothing");
  expect_error("soliton-gen", {kTinyModel}, kUsage, "--gpu", "got nothing");
  expect_error("soliton-gen", {kTinyModel, "--gpu", "bogus"}, kUsage, "--gpu", "got bogus");
  expect_error("soliton-gen", {kTinyModel, "--gpu", "cpu", "--bogus"}, kUsage, "--bogus", "expected a flag");
  expect_error("soliton-gen", {kTinyModel, "--gpu", "cpu", "--ctas", "0"}, kUsage, "--ctas", "got 0");
}

TEST_F(Cli, GenRefusesFiles) {
  expect_error("soliton-gen", {"absent.yaml", "--gpu", "cpu"}, kNotFound, "absent.yaml", "No such file");
  expect_error("soliton-gen", {"tiny-stories", "--gpu", "cpu"}, kNotFound, "tiny-stories", "a folder");
  expect_error("soliton-gen", {kTinyModel, "--gpu", "absent.yaml"}, kNotFound, "absent.yaml", "No such file");
  for (const std::string& text :
       {std::string("hidden: [1"), std::string(), kLfsPointer, std::string("\x00\xff", 2)}) {
    write_text(path() / "bad.yaml", text);
    expect_error("soliton-gen", {"bad.yaml", "--gpu", "cpu"}, kBadFile, "bad.yaml", "expected");
  }
  std::string heads = read_text(kTinyModel);
  heads.replace(heads.find("num_kv_heads: 2"), 15, "num_kv_heads: 3");
  write_text(path() / "tiny-stories.yaml", heads);
  expect_error("soliton-gen", {"tiny-stories.yaml", "--gpu", "cpu"}, kBadFile, "tiny-stories.yaml", "got 3");
}

TEST_F(Cli, GenFollowsOverridesUnlessToldOtherwise) {
  fs::copy(kTinyModel, path() / "tiny-stories.yaml");
  const Arguments plain{"tiny-stories.yaml", "--gpu", "cpu", "-o", "out"};
  const auto line = [&](const Arguments& more) {
    Arguments arguments = plain;
    arguments.insert(arguments.end(), more.begin(), more.end());
    const Outcome outcome = run("soliton-gen", arguments);
    EXPECT_EQ(outcome.status, 0) << outcome.err;
    return outcome.out;
  };
  const std::string untuned = line({});
  EXPECT_NE(untuned.find(" 3 pages in flight"), std::string::npos);
  EXPECT_EQ(untuned.find("tuned"), std::string::npos);
  const std::string plan = read_text(path() / "out" / "plan.txt");

  fs::create_directory(path() / "tuned");
  write_text(path() / "tuned" / "tiny-stories-h200.yaml", "window: 5\n");
  EXPECT_EQ(line({}), untuned);
  write_text(path() / "tuned" / "tiny-stories-cpu.yaml", "window: 4\n");
  const std::string tuned = line({});
  EXPECT_NE(tuned.find(" 4 pages in flight"), std::string::npos) << tuned;
  EXPECT_TRUE(tuned.ends_with("; tuned: window 4 from tuned/tiny-stories-cpu.yaml\n")) << tuned;
  EXPECT_NE(read_text(path() / "out" / "plan.txt").find("tuned: window 4 from"), std::string::npos);
  EXPECT_NE(line({"--window", "2"}).find(" 2 pages in flight"), std::string::npos);
  EXPECT_EQ(line({"--window", "2"}).find("tuned"), std::string::npos);
  EXPECT_EQ(line({"--no-tuned"}), untuned);
  EXPECT_EQ(read_text(path() / "out" / "plan.txt"), plan);

  write_text(path() / "tuned" / "tiny-stories-cpu.yaml", "windows: 4\n");
  expect_error("soliton-gen", plain, kBadFile, "tuned/tiny-stories-cpu.yaml:1: windows", "an unknown key");
  write_text(path() / "tuned" / "tiny-stories-cpu.yaml", "consumer_warps: 3\n");
  expect_error("soliton-gen", plain, kMismatch, "--consumer-warps", "from tuned/tiny-stories-cpu.yaml");
}

TEST_F(Cli, GenRefusesFoldersItCannotWrite) {
  write_text(path() / "file", "");
  expect_error("soliton-gen", {kTinyModel, "--gpu", "cpu", "-o", "file"}, kNotFound, "file",
               "a file where the folder");
  expect_error("soliton-gen", {kTinyModel, "--gpu", "cpu", "-o", "file/below"}, kNotFound, "file/below");
  expect_error("soliton-gen", {kTinyModel, "--gpu", "cpu", "-o", "/proc/absent/x"}, kNotFound,
               "/proc/absent/x");
}

TEST_F(Cli, GenWritesNothingOfARefusedPlan) {
  expect_error("soliton-gen", {kTinyModel, "--gpu", "cpu", "-o", "out", "--ctas", "1000"}, kMismatch,
               "tiny-stories on cpu", "got 1000");
  expect_error("soliton-gen", {kTinyModel, "--gpu", "cpu", "-o", "out", "--consumer-warps", "3"}, kMismatch,
               "--consumer-warps", "got 3");
}

TEST_F(Cli, GenWritesNothingOnADryRun) {
  const std::set<std::string> before = folder_.files();
  for (const Arguments& output : {Arguments{}, Arguments{"-o", "out"}}) {
    Arguments arguments{kTinyModel, "--gpu", "cpu", "--dry-run"};
    arguments.insert(arguments.end(), output.begin(), output.end());
    const Outcome outcome = run("soliton-gen", arguments);
    EXPECT_EQ(outcome.status, 0) << outcome.err;
    EXPECT_EQ(outcome.err, "");
    EXPECT_NE(outcome.out, "");
    EXPECT_EQ(folder_.files(), before);
  }
}

}  // namespace
}  // namespace soliton
