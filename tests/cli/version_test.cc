// --version of every program: its name and the version of the CMake project, and nothing else.
#include "cli/cli_fixture.h"

namespace soliton {
namespace {

class Version : public Cli, public testing::WithParamInterface<const char*> {};

TEST_P(Version, IsThatOfTheProject) {
  const Outcome outcome = run(GetParam(), {"--version"});
  EXPECT_EQ(outcome.status, 0);
  EXPECT_EQ(outcome.out, std::string(GetParam()) + " " SOLITON_VERSION "\n");
  EXPECT_EQ(outcome.err, "");
}

TEST_P(Version, IsListedByHelp) {
  const Outcome outcome = run(GetParam(), {"--help"});
  EXPECT_EQ(outcome.status, 0);
  EXPECT_NE(outcome.out.find("\n  --version "), std::string::npos) << outcome.out;
}

INSTANTIATE_TEST_SUITE_P(Programs, Version,
                         testing::Values("soliton-gen", "soliton-chat", "soliton-bench", "soliton-doctor",
                                         "soliton-server"),
                         [](const auto& info) {
                           return std::string(info.param).substr(sizeof("soliton-") - 1);
                         });

}  // namespace
}  // namespace soliton
