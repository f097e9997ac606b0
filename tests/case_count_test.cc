// What test_main.cc counts for `./dev test`, which says how many cases have passed.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include "temporary_folder.h"

namespace soliton {
namespace {

struct Counts {
  int passed = 0;
  int failed = 0;
  int skipped = 0;
  bool operator==(const Counts&) const = default;
};

/// What this program counts if it runs a case that is disabled otherwise.
Counts count_of(const std::string& name) {
  const TemporaryFolder folder;
  const std::string file = folder.path() / "counts.txt";
  const std::string command =
      "SOLITON_CASE_COUNTS='" + file + "' '" + std::filesystem::read_symlink("/proc/self/exe").string() +
      "' --gtest_also_run_disabled_tests --gtest_filter=Counted.DISABLED_" + name + " > /dev/null 2>&1";
  EXPECT_NE(std::system(command.c_str()), -1);
  Counts all;
  Counts line;
  for (std::ifstream counts(file); counts >> line.passed >> line.failed >> line.skipped;) {
    all.passed += line.passed;
    all.failed += line.failed;
    all.skipped += line.skipped;
  }
  return all;
}

TEST(Counted, DISABLED_Passes) {}
TEST(Counted, DISABLED_Fails) {
  FAIL();
}
TEST(Counted, DISABLED_IsSkipped) {
  GTEST_SKIP();
}
TEST(Counted, DISABLED_Dies) {
  std::_Exit(0);
}

TEST(CaseCounts, AreOfWhatBecameOfEachCase) {
  EXPECT_EQ(count_of("Passes"), (Counts{1, 0, 0}));
  EXPECT_EQ(count_of("Fails"), (Counts{0, 1, 0}));
  EXPECT_EQ(count_of("IsSkipped"), (Counts{0, 0, 1}));
}

TEST(CaseCounts, CallFailedWhatDies) {
  EXPECT_EQ(count_of("Dies"), (Counts{0, 1, 0}));
}

}  // namespace
}  // namespace soliton
