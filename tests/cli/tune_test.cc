// soliton-bench --tune.
#include <nlohmann/json.hpp>

#include "cli/cli_fixture.h"
#include "long_tests.h"

namespace soliton {
namespace {

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
  expect_error("soliton-bench", tune({"--gpu", "cpu", "--top-k", "5"}), kUsage, "--tune",
               "got flags of sampling");
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
               "CUDACXX, CUDA_HOME, PATH", {"CUDACXX=", "CUDA_HOME=", "VIRTUAL_ENV=", "PATH=/absent"});
}

// In emulation the times mean nothing, and so which plan wins; what is said of it has to agree everywhere.
TEST_F(Cli, TuneFindsWritesAndIsFollowed) {
  SOLITON_LONG_RUNS_ONLY("TuneRemovesOverridesThatGainNothing searches too");
  write_small(path(), 5);  // one CTA does best in emulation, and is a candidate
  const Outcome outcome = run("soliton-bench",
                              {"--tune", "micro.yaml", "--gpu", "few.yaml", "-d", "0,70", "-n", "2", "-r",
                               "1", "--knobs", "num_ctas,ring_slots", "--json-file", "tuned.json"},
                              {quick_compiler(path())});
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
  const Outcome outcome = run(
      "soliton-bench",
      {"--tune", "micro.yaml", "--gpu", "few.yaml", "-d", "0", "-n", "1", "-r", "1", "--knobs", "num_ctas"},
      {quick_compiler(path())});
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_NE(outcome.out.find("Nothing beats the planner's choice"), std::string::npos);
  EXPECT_FALSE(fs::exists(path() / "tuned" / "micro-few.yaml"));
}

}  // namespace
}  // namespace soliton
