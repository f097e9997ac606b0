// soliton-doctor, on a machine with or without a card: always a report, whatever is missing.
#include <gmock/gmock.h>

#include <nlohmann/json.hpp>

#include "cli/cli_fixture.h"

namespace soliton {
namespace {

TEST_F(Cli, DoctorReports) {
  const Outcome outcome = run("soliton-doctor", {}, {"XDG_CACHE_HOME=" + path().string()});
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_EQ(outcome.err, "");
  for (const char* label :
       {"GPU ", "\ndriver ", "\nnvcc ", "\nC++ compiler ", "\nhost memory ", "\nkernels "}) {
    EXPECT_NE(outcome.out.find(label), std::string::npos) << outcome.out;
  }
  EXPECT_NE(outcome.out.find("tiny-stories-cpu.so: tiny-stories on cpu, 1,8 rows\n"), std::string::npos);
  EXPECT_NE(outcome.out.find("made here    " + path().string() + "/soliton/kernels: none\n"),
            std::string::npos);
  EXPECT_THAT(outcome.out, testing::ContainsRegex("\n +llama-3.1-8b +16.06 GB at 16 bits"));
  const bool has_card = fs::exists("/dev/nvidia0");
  EXPECT_EQ(outcome.out.starts_with("GPU          no NVIDIA card found\n"), !has_card) << outcome.out;
}

// The driver itself is asked: no kernel library has to be there.
TEST_F(Cli, ACardIsKnownWithoutAnyKernel) {
  fs::create_directory(path() / "none");
  const std::vector<std::string> environment = {kFakeCard, "SOLITON_KERNELS=none", "CUDACXX=absent"};
  const Outcome report = run("soliton-doctor", {}, environment);
  EXPECT_EQ(report.status, 0) << report.err;
  EXPECT_EQ(report.out.find("GPU          NVIDIA H200 (sm_90, 132 SMs), planned for as h200\n"
                            "GPU memory   149.00 GB free of 150.00 GB\n"),
            0u)
      << report.out;
  expect_error("soliton-chat", {"tiny-stories", "-p", "x"}, kNotFound, "CUDACXX",
               "needed to make the kernel of tiny-stories for NVIDIA H200", environment);
}

TEST_F(Cli, DoctorListsWhatWasMadeAndWhatIsDamaged) {
  fs::create_directories(path() / "soliton" / "kernels");
  fs::copy(kOtherKernel, path() / "soliton" / "kernels" / "made.so");
  write_text(path() / "soliton" / "kernels" / "damaged.so", "text");
  const Outcome outcome = run("soliton-doctor", {"--json"}, {"XDG_CACHE_HOME=" + path().string()});
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  const auto json = nlohmann::json::parse(outcome.out);
  const auto& made = json.at("made_kernels").at("kernels");
  ASSERT_EQ(made.size(), 2u);
  EXPECT_EQ(made[0].at("file"), "damaged.so");
  EXPECT_EQ(made[0].at("problem"), "damaged.so: expected a kernel library, got no shared library");
  EXPECT_EQ(made[1].at("model"), "micro");
  EXPECT_EQ(made[1].at("rows"), nlohmann::json({1}));
  EXPECT_GT(json.at("host_memory").at("available_bytes"), 0);
  EXPECT_GE(json.at("models").size(), 6u);
}

TEST_F(Cli, DoctorReportsWhatIsMissing) {
  const Outcome outcome =
      run("soliton-doctor", {"--json", "--device", "7"},
          {"SOLITON_KERNELS=absent", "CXX=absent", "CUDACXX=absent", "XDG_CACHE_HOME=", "HOME=relative"});
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  const auto json = nlohmann::json::parse(outcome.out);
  EXPECT_TRUE(json.at("gpu").contains("problem"));
  EXPECT_EQ(json.at("nvcc").at("problem"), "CUDACXX: expected a compiler, got \"absent\"");
  EXPECT_EQ(json.at("cxx").at("problem"), "CXX: expected a compiler, got \"absent\"");
  EXPECT_EQ(json.at("kernels").at("problem"),
            "absent: expected a folder of kernel libraries, got: No such file or directory");
  EXPECT_NE(json.at("made_kernels").at("problem").get<std::string>().find("HOME"), std::string::npos);
}

TEST_F(Cli, ChatReportsAsTheDoctorDoes) {
  const std::vector<std::string> environment = {"XDG_CACHE_HOME=" + path().string()};
  const Outcome outcome = run("soliton-chat", {"--doctor"}, environment);
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_EQ(outcome.err, "");
  EXPECT_NE(outcome.out.find("tiny-stories-cpu.so: tiny-stories on cpu, 1,8 rows\n"), std::string::npos);
  const Outcome json = run("soliton-chat", {"--doctor", "--json", "--device", "7"}, environment);
  EXPECT_EQ(json.status, 0) << json.err;
  EXPECT_TRUE(nlohmann::json::parse(json.out).contains("models"));
}

TEST_F(Cli, DoctorRefusesFlags) {
  expect_error("soliton-doctor", {"--bogus"}, kUsage, "--bogus", "expected a flag");
  expect_error("soliton-doctor", {"--device", "-1"}, kUsage, "--device", "got \"-1\"");
  expect_error("soliton-doctor", {"tiny-stories", "word"}, kUsage, "\"word\"", "expected a flag");
}

TEST_F(Cli, DoctorCleansTheCache) {
  const fs::path cache = path() / "soliton" / "kernels";
  fs::create_directories(cache);
  fs::copy(kOtherKernel, cache / "cpu-0123456789abcdef-c++-1.0.so");
  const std::vector<std::string> environment = {"XDG_CACHE_HOME=" + path().string()};
  expect_error("soliton-doctor", {"--clean", "tiny-stories"}, kUsage, "MODEL", "expected no --clean",
               environment);
  const auto bytes = fs::file_size(kOtherKernel);
  const Outcome outcome = run("soliton-doctor", {"--clean", "--json"}, environment);
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  const auto json = nlohmann::json::parse(outcome.out);
  EXPECT_EQ(json.at("removed_bytes"), bytes);
  EXPECT_EQ(json.at("removed").at(0).at("file"), (cache / "cpu-0123456789abcdef-c++-1.0.so").string());
  EXPECT_TRUE(fs::is_empty(cache));
  EXPECT_EQ(run("soliton-doctor", {"--clean"}, environment).out,
            "removed 0 files, 0 bytes; kept 0 kernels, 0 bytes\n");
}

TEST_F(Cli, DoctorSaysWhetherAModelRuns) {
  if (fs::exists("/dev/nvidia0")) GTEST_SKIP() << "there is a card";
  const Outcome good = run("soliton-doctor", {"tiny-stories"});
  EXPECT_EQ(good.status, 0) << good.err;
  EXPECT_NE(good.out.find("\nmodel        tiny-stories\n"), std::string::npos) << good.out;
  EXPECT_NE(good.out.find("tiny-stories runs here, but only in emulation on the CPU, for checking: about "),
            std::string::npos)
      << good.out;
  EXPECT_NE(good.out.find("its kernel is there\n"), std::string::npos) << good.out;
  EXPECT_EQ(good.out.find("             llama-3.1-8b  "), std::string::npos)
      << good.out;  // of another model's room
  const Outcome chat = run("soliton-chat", {"tiny-stories", "--doctor", "--json"});
  EXPECT_EQ(nlohmann::json::parse(chat.out).at("model").at("runs"), true);

  // The status is that of the chat, and all that is wrong is said.
  fs::remove(model() / "tokenizer.json");
  fs::remove(model() / "model.safetensors");
  const Outcome cut = run("soliton-doctor", {"tiny-stories"});
  EXPECT_EQ(cut.status, kNotFound);
  EXPECT_NE(
      cut.out.find(
          "verdict      tiny-stories does not run here:\n             tiny-stories/tokenizer.json: no such "
          "file"),
      std::string::npos)
      << cut.out;
  EXPECT_NE(cut.out.find("             tiny-stories: expected model.safetensors"), std::string::npos)
      << cut.out;
  edit_config("\"hidden_act\": \"silu\"", "\"hidden_act\": \"relu2\"");
  EXPECT_EQ(run("soliton-doctor", {"tiny-stories"}).status, kMismatch);
  const Outcome absent =
      run("soliton-chat", {"--doctor", "org/name", "--offline"}, {"HF_HOME=" + path().string()});
  EXPECT_EQ(absent.status, kNotFound);
  EXPECT_NE(absent.out.find("nothing is downloaded with --offline\n"), std::string::npos) << absent.out;
}

TEST_F(Cli, DoctorSaysHowFastACardIsAtBest) {
  fs::create_directory(path() / "none");
  std::vector<std::string> environment = {kFakeCard, "SOLITON_KERNELS=none"};
  if (!fs::exists("/usr/local/cuda/bin/nvcc")) GTEST_SKIP() << "no nvcc";
  const Outcome good = run("soliton-doctor", {"tiny-stories"}, environment);
  EXPECT_EQ(good.status, 0) << good.out;
  EXPECT_NE(
      good.out.find(
          " tokens/s at best, with a context of up to 2048 tokens; its kernel is made at the first start"),
      std::string::npos)
      << good.out;
  EXPECT_EQ(good.out.find("over --cards"), std::string::npos) << good.out;
  environment.push_back("FAKE_CUDA_CARDS=3");
  const Outcome shared = run("soliton-doctor", {"tiny-stories", "--json"}, environment);
  const nlohmann::json model = nlohmann::json::parse(shared.out)["model"];
  EXPECT_EQ(model["shared"]["cards"], nlohmann::json({0, 1, 2}));
  EXPECT_EQ(model["shared"]["fitting_context"], 2048);
  EXPECT_DOUBLE_EQ(model["shared"]["tokens_per_s_at_best"], 3 * model["tokens_per_s_at_best"].get<double>());
  environment.push_back("FAKE_CUDA_FREE_BYTES=73000000");  // 67 MB of it are not for the model
  const Outcome wide = run("soliton-doctor", {"tiny-stories"}, environment);
  EXPECT_EQ(wide.status, kLimit);
  EXPECT_NE(wide.out.find("over --cards 0,1,2: "), std::string::npos) << wide.out;
  environment.back() = "FAKE_CUDA_FREE_BYTES=1000000";
  const Outcome full = run("soliton-doctor", {"tiny-stories"}, environment);
  EXPECT_EQ(full.status, kLimit);
  EXPECT_NE(full.out.find("of the card's memory"), std::string::npos) << full.out;
}

}  // namespace
}  // namespace soliton
