// soliton-bench without --tune.
#include <nlohmann/json.hpp>

#include "cli/cli_fixture.h"

namespace soliton {
namespace {

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

TEST_F(Cli, BenchFindsTheKernelOfAModel) {
  for (const Arguments& model : {Arguments{"tiny-stories"}, Arguments{"-m", "tiny-stories"}}) {
    Arguments arguments = {"-n", "1", "-r", "1"};
    arguments.insert(arguments.end(), model.begin(), model.end());
    const Outcome outcome = run("soliton-bench", arguments);
    EXPECT_EQ(outcome.status, 0) << outcome.err;
    EXPECT_EQ(outcome.out.find("tiny-stories on "), 0u) << outcome.out;
    EXPECT_EQ(outcome.out.find(" 0 MHz"), std::string::npos) << outcome.out;
    EXPECT_EQ(outcome.out.find("driver 0"), std::string::npos) << outcome.out;
  }
  expect_error("soliton-bench", bench({"tiny-stories"}), kUsage, "MODEL",
               "expected no --random-weights, got both");
}

TEST_F(Cli, BenchShowsWhereTheTimeGoes) {
  const std::string kernel = std::string(SOLITON_TEST_KERNELS) + "/plain-4-timeline.so";
  const auto file = [&](const std::string& name, const std::string& columns, const Arguments& more = {}) {
    Arguments arguments = {"-k", kernel, "--random-weights", "-n", "1", "-d", "4",
                           "-r", "1",    "--timeline",       name};
    arguments.insert(arguments.end(), more.begin(), more.end());
    const Outcome outcome = run("soliton-bench", arguments);
    EXPECT_EQ(outcome.status, 0) << outcome.err;
    EXPECT_NE(outcome.out.find(columns), std::string::npos) << outcome.out;
    return read_text(path() / name);
  };
  const std::string of_tree = file("tree.json", "| phase | us | share |", {"--tree", "parallel:3@7"});
  EXPECT_NE(of_tree.find("attention"), std::string::npos);
  EXPECT_TRUE(nlohmann::json::parse(file("trace.json", "| phase | MB | us |")).contains("traceEvents"));
  const std::string picture = file("trace.svg", "| phase | MB | us |");
  EXPECT_TRUE(picture.ends_with("</svg>\n"));
  for (int cta = 0; cta < 4; ++cta) {
    for (const char* phase : {"qkv", "gate_up", "down"})
      EXPECT_NE(picture.find(fmt::format("<title>CTA {}, {}: ", cta, phase)), std::string::npos)
          << cta << phase;
  }
  EXPECT_EQ(picture.find("nan"), std::string::npos);
  EXPECT_EQ(picture.find("\"-"), std::string::npos);
}

TEST_F(Cli, BenchRefusesFiles) {
  expect_error("soliton-bench", {"--random-weights", "-k", "absent.so"}, kNotFound, "absent.so",
               "no such file");
  expect_error("soliton-bench", {"-m", "absent", "-k", kTinyKernel}, kNotFound, "absent",
               "found no such folder");
  expect_error("soliton-bench", {"-m", "tiny-stories", "-k", kOtherKernel}, kMismatch,
               "tiny-stories/config.json", "kernel of micro");
}

TEST_F(Cli, BenchRefusesMoreThanTheContext) {
  expect_error("soliton-bench", bench({"-d", "2048"}), kLimit, "--n-depth and --n-gen", "got 2048 and 128");
  expect_error("soliton-bench", bench({"-d", "2147483647"}), kLimit, "--n-depth and --n-gen",
               "got 2147483647");
  expect_error("soliton-bench", bench({"-p", "2049"}), kLimit, "--n-prompt", "got 2049");
}

// A model that drafts for itself is right, whatever its weights.
TEST_F(Cli, BenchMeasuresDrafts) {
  Arguments arguments = bench({"-n", "6", "-p", "4", "-o", "json", "--draft-max", "4"});
  for (const char* argument : {"--draft-kernel", kTinyKernel.c_str(), "--draft-seed", "1"})
    arguments.push_back(argument);
  const Outcome outcome = run("soliton-bench", arguments);
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  const auto drafts = nlohmann::json::parse(outcome.out).at("drafts");
  EXPECT_EQ(drafts.at("draft_model"), "tiny-stories");
  EXPECT_EQ(drafts.at("draft_weights"), "random, seed 1");
  EXPECT_EQ(drafts.at("tokens_per_s").size(), 1u);
  EXPECT_GT(drafts.at("tokens_per_step")[0].get<double>(), 2);
  EXPECT_GT(drafts.at("equal_one_by_one").get<int>(), 0);
  expect_error("soliton-bench", {"tiny-stories", "--draft-kernel", kTinyKernel}, kUsage, "MODEL",
               "expected no --draft-kernel, got both");
  expect_error("soliton-bench", bench({"--draft-max", "4"}), kUsage, "--draft-max", "--draft-kernel");
  expect_error("soliton-bench", bench({"--draft-kernel", "absent.so"}), kNotFound, "absent.so");
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
  for (const char* key :
       {"command", "model", "kernel_gpu", "num_ctas", "num_cards", "weights", "device", "driver",
        "sm_clock_khz", "memory_clock_khz", "read_bandwidth_bytes_per_s", "read_bandwidth", "repeats"}) {
    EXPECT_TRUE(json.contains(key)) << key;
  }
  ASSERT_EQ(json.at("rows").size(), 2u);
  const auto& prompt = json.at("rows")[0];
  for (const char* key : {"tokens_per_s", "first_token_ms_p50", "first_token_ms_max", "flops", "flops_per_s"})
    EXPECT_GT(prompt.at(key).get<double>(), 0) << key;
  EXPECT_FALSE(prompt.contains("of_read_bandwidth"));
  for (const char* key : {"tokens_per_s", "token_us_p50", "token_us_p90", "token_us_p99", "token_us_max",
                          "token_bytes", "bytes_per_s"}) {
    EXPECT_GT(json.at("rows")[1].at(key).get<double>(), 0) << key;
  }
}

// A prompt's tokens share what they read: of the bandwidth they would have many times what there is.
TEST_F(Cli, BenchSaysOfPromptsWhatIsMultiplied) {
  const Outcome outcome = run("soliton-bench", bench({"-n", "1", "-p", "2,3"}));
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_EQ(outcome.err, "");  // no terminal: nothing of progress
  const size_t prompts = outcome.out.find("\n| prompt | t/s | p50 ms | max ms | TFLOP/s |\n");
  const size_t tests = outcome.out.find("\n| test | t/s | p50 us |");
  ASSERT_NE(prompts, std::string::npos) << outcome.out;
  EXPECT_LT(prompts, outcome.out.find("\n| pp2 |"));
  EXPECT_LT(outcome.out.find("\n| pp3 |"), tests) << outcome.out;
  EXPECT_LT(tests, outcome.out.find("\n| tg1 |"));
}

// Messages name a kernel from where the user stands, not from where it was built.
TEST_F(Cli, BenchNamesTheKernelFromHere) {
  fs::create_directory(path() / "kernels");
  fs::copy(kTinyKernel, path() / "kernels" / "tiny-stories-cpu.so");
  const Outcome outcome = run("soliton-bench", {"tiny-stories", "-n", "1", "-r", "1", "--timeline", "t"},
                              {"SOLITON_KERNELS=" + (path() / "kernels").string()});
  EXPECT_EQ(outcome.status, kMismatch);
  EXPECT_NE(outcome.err.find("soliton-bench: kernels/tiny-stories-cpu.so: expected a kernel compiled with"),
            std::string::npos)
      << outcome.err;
}

TEST_F(Cli, BenchTimesSamplingBesideGreedy) {
  expect_error("soliton-bench", bench({"--top-p", "2"}), kUsage, "--top-p", "expected a number from 0 to 1");
  const Outcome outcome =
      run("soliton-bench", bench({"-n", "3", "--top-k", "5", "--repeat-penalty", "1.1", "-o", "json"}));
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  const auto json = nlohmann::json::parse(outcome.out);
  EXPECT_EQ(json.at("sampling").at("top_k"), 5);
  EXPECT_EQ(json.at("sampling").at("temperature"), 1);
  ASSERT_EQ(json.at("rows").size(), 2u);
  EXPECT_EQ(json.at("rows")[0].at("test"), "tg3");
  EXPECT_EQ(json.at("rows")[1].at("test"), "tg3, sampled");
  EXPECT_GT(json.at("rows")[1].at("token_us_p50"), 0);
}

TEST_F(Cli, BenchRefusesFlagsBesideEdge) {
  expect_error("soliton-bench", bench({"-o", "svg"}), kUsage, "--output",
               "expected md or json without --edge");
  expect_error("soliton-bench", bench({"--svg-file", "x.svg"}), kUsage, "--svg-file", "--edge");
  expect_error("soliton-bench", bench({"--edge", "--tree", "all"}), kUsage, "--tree", "--edge");
  expect_error("soliton-bench", bench({"--edge", "--timeline", "t"}), kUsage, "--timeline", "--edge");
  expect_error("soliton-bench", bench({"--edge", "--top-k", "5"}), kUsage, "--edge", "flags of sampling");
  expect_error("soliton-bench", bench({"--edge", "-n", "2,3"}), kUsage, "--n-gen", "got 2,3");
  expect_error("soliton-bench", bench({"--edge", "-p", "0"}), kUsage, "--n-prompt", "got 0");
  expect_error("soliton-bench", bench({"--edge", "--svg-file", "absent/x.svg"}), kNotFound, "absent/x.svg",
               "No such file");
  expect_error("soliton-bench", bench({"--edge", "-p", "4096", "-d", "4096"}), kLimit, "--edge",
               "left out a prompt of 4096 tokens: the model takes 2048");
}

// Where there is no card, all but what only a card has.
TEST_F(Cli, BenchReportsACard) {
  const Outcome outcome =
      run("soliton-bench", {"tiny-stories", "-k", kTinyKernel, "--edge", "-p", "2,3000", "-d", "4", "-n", "2",
                            "--json-file", "r.json", "--svg-file", "r.svg"});
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_EQ(outcome.out.find("tiny-stories on CPU emulation, kernel for cpu, weights: tiny-stories\n"), 0u);
  for (const char* text : {"| prompt | first token ms |", "| context | tokens/s |", "| throttling | n/a |",
                           "Left out: a prompt of 3000 tokens: the model takes 2048\n"}) {
    EXPECT_NE(outcome.out.find(text), std::string::npos) << text;
  }
  const auto json = nlohmann::json::parse(read_text(path() / "r.json"));
  ASSERT_EQ(json.at("prompts").size(), 1u);
  EXPECT_GT(json.at("prompts")[0].at("first_token_ms_p50"), 0);
  ASSERT_EQ(json.at("rows").size(), 1u);
  EXPECT_EQ(json.at("rows")[0].at("context"), 4);
  EXPECT_GT(json.at("rows")[0].at("token_us_p50"), 0);
  EXPECT_TRUE(json.at("rows")[0].at("predicted_token_us").is_null());
  EXPECT_TRUE(json.at("read_bandwidth").is_null());
  EXPECT_TRUE(json.at("sensors").at("watts").is_null());
  EXPECT_EQ(json.at("sensors").at("absent"), "the kernel is emulated");
  EXPECT_TRUE(json.at("make_s").is_null());
  EXPECT_GT(json.at("load_s"), 0);
  EXPECT_GT(json.at("memory").at("weight_bytes"), 0);
  EXPECT_GT(json.at("memory").at("host_peak_bytes"), json.at("memory").at("weight_bytes"));
  const std::string page = read_text(path() / "r.svg");
  EXPECT_EQ(page.find("<?xml"), 0u);
  EXPECT_NE(page.find(">2 tokens</text>"), std::string::npos);
}

}  // namespace
}  // namespace soliton
