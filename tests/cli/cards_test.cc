// Cards as a driver describes them: those that nobody has written down, and those that do not do.
#include "cli/cli_fixture.h"

namespace soliton {
namespace {

// A card of compute capability 8.9 that has no file, by CUdevice_attribute.
constexpr const char* kUnknown = "FAKE_CUDA_ATTRIBUTES=16=80,75=8,76=9,97=101376,36=11501000,37=256";
constexpr const char* kUnknownName = "FAKE_CUDA_NAME=NVIDIA GeForce RTX 4080 SUPER";
constexpr const char* kUnknownBytes = "FAKE_CUDA_TOTAL_BYTES=16700000000";

class Cards : public Cli {
 protected:
  /// The environment of a machine with a card and without kernels of any.
  std::vector<std::string> with_card(std::vector<std::string> more) const {
    fs::create_directories(path() / "none");
    more.insert(more.end(), {kFakeCard, "SOLITON_KERNELS=none", "XDG_CACHE_HOME=" + path().string()});
    return more;
  }
  void expect_chat_refuses(const std::string& subject, const std::string& rest,
                           const std::vector<std::string>& card) {
    expect_error("soliton-chat", {"tiny-stories", "-p", "x"}, kMismatch, subject, rest, with_card(card));
  }
};

TEST_F(Cards, AnUnknownOneIsPlannedForByItsDriver) {
  const Outcome report =
      run("soliton-doctor", {"tiny-stories"}, with_card({kUnknown, kUnknownName, kUnknownBytes}));
  EXPECT_TRUE(
      report.out.starts_with("GPU          NVIDIA GeForce RTX 4080 SUPER (sm_89, 80 SMs), planned for as "
                             "rtx-4080-super-80sm-17gb\n"))
      << report.out;
  EXPECT_FALSE(fs::exists(path() / "soliton")) << "a report measures nothing";
}

TEST_F(Cards, OnesBeforeAmpereAreRefused) {
  expect_chat_refuses("Tesla T4", "expected a card of compute capability 8.0 or later, got 7.5",
                      {"FAKE_CUDA_ATTRIBUTES=16=40,75=7,76=5", "FAKE_CUDA_NAME=Tesla T4"});
}

TEST_F(Cards, ADriverOlderThanTheToolkitIsNamed) {
  if (!fs::exists("/usr/local/cuda/bin/nvcc")) GTEST_SKIP() << "no nvcc";
  expect_chat_refuses("driver", "or later, to run what nvcc-", {"FAKE_CUDA_VERSION=11040"});
}

TEST_F(Cards, AKeptSpecThatClaimsMoreThanTheCardHasIsNamed) {
  const fs::path kept = path() / "soliton" / "kernels" / "rtx-4080-super-80sm-17gb.yaml";
  fs::create_directories(kept.parent_path());
  std::string text = read_text(fs::path(SOLITON_SOURCE_DIR) / "generator" / "gpus" / "rtx-4090.yaml");
  text.replace(text.find("name: rtx-4090"), 14, "name: rtx-4080-super-80sm-17gb");
  write_text(kept, text);
  expect_chat_refuses(
      kept.string(),
      "num_sms: expected at most 80 as NVIDIA GeForce RTX 4080 SUPER has, got 128; without this "
      "file one is made",
      {kUnknown, kUnknownName, kUnknownBytes});
}

}  // namespace
}  // namespace soliton
