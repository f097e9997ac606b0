// A card with too little memory for the model: found out before a kernel is made or weights are read.
#include <filesystem>

#include "cli/cli_fixture.h"

namespace soliton {
namespace {

TEST_F(Cli, TooLittleMemoryIsOneLineBeforeAKernelIsMade) {
  fs::create_directory(path() / "none");
  const std::vector<std::string> environment = {
      kFakeCard, "SOLITON_KERNELS=none", "XDG_CACHE_HOME=" + path().string(), "FAKE_CUDA_FREE_BYTES=1000000"};
  for (const auto& [program, arguments] :
       {std::pair<std::string, Arguments>("soliton-chat", {"-m", "tiny-stories", "-p", "Once"}),
        {"soliton-bench", {"tiny-stories", "-n", "2"}},
        {"soliton-chat", {"-m", "tiny-stories", "-p", "Once", "-c", "128"}}}) {
    const Outcome outcome = run(program, arguments, environment);
    EXPECT_EQ(outcome.status, kLimit) << outcome.err;
    EXPECT_EQ(outcome.out, "");
    EXPECT_NE(outcome.err.find("config.json: expected "), std::string::npos) << outcome.err;
    EXPECT_NE(outcome.err.find("of the card's memory for the weights and a context of "), std::string::npos)
        << outcome.err;
    EXPECT_EQ(outcome.err.find("Making the kernel"), std::string::npos) << outcome.err;
  }
  EXPECT_FALSE(fs::exists(path() / "soliton")) << "no cache of kernels";
}

}  // namespace
}  // namespace soliton
