// main() of every test program. ctest may run several cases as one entry, so a program ends with 77, which ctest calls
// skipped, only if no case ran; and it adds what became of its cases as a line "passed failed skipped" to the file that
// SOLITON_CASE_COUNTS names.
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <string>

namespace {

constexpr int kAllSkipped = 77;  // SKIP_RETURN_CODE in tests/list_tests.cmake

/// The file to count in, taken out of the environment: what tests run is not counted.
std::string take_count_file() {
  const char* const path = std::getenv("SOLITON_CASE_COUNTS");
  const std::string taken = path == nullptr ? "" : path;
  unsetenv("SOLITON_CASE_COUNTS");
  return taken;
}

void count_cases(const testing::UnitTest& all, const std::string& path) {
  const std::string line = std::to_string(all.successful_test_count()) + " " +
                           std::to_string(all.failed_test_count()) + " " +
                           std::to_string(all.skipped_test_count()) + "\n";
  std::ofstream(path, std::ios::app) << line;  // in one piece, for programs that run beside this one
}

}  // namespace

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  const std::string count_file = take_count_file();
  const int status = RUN_ALL_TESTS();
  const testing::UnitTest& all = *testing::UnitTest::GetInstance();
  if (!count_file.empty() && !testing::GTEST_FLAG(list_tests)) count_cases(all, count_file);
  const bool only_skipped = all.skipped_test_count() > 0 && all.successful_test_count() == 0;
  return status == 0 && only_skipped ? kAllSkipped : status;
}
