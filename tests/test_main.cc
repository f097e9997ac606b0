// main() of every test program. ctest may run several cases as one entry, so a program ends with 77, which ctest calls
// skipped, only if no case ran; and it adds what became of its cases as lines "passed failed skipped" to the file that
// SOLITON_CASE_COUNTS names: all have failed until it ends, for who dies on the way.
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <string>
#include <utility>

namespace {

constexpr int kAllSkipped = 77;  // SKIP_RETURN_CODE in tests/list_tests.cmake

/// The file to count in, taken out of the environment: what tests run is not counted.
std::string take_count_file() {
  const char* const path = std::getenv("SOLITON_CASE_COUNTS");
  const std::string taken = path == nullptr ? "" : path;
  unsetenv("SOLITON_CASE_COUNTS");
  return taken;
}

/// Adds a line, if there is a file: in one piece, for programs that run beside this one.
void count_cases(const std::string& path, int passed, int failed, int skipped) {
  const std::string line =
      std::to_string(passed) + " " + std::to_string(failed) + " " + std::to_string(skipped) + "\n";
  if (!path.empty()) std::ofstream(path, std::ios::app) << line;
}

/// Counts the cases that are to run as failed as long as they run.
class CaseCounter : public testing::EmptyTestEventListener {
 public:
  explicit CaseCounter(std::string path) : path_(std::move(path)) {}

  void OnTestProgramStart(const testing::UnitTest& all) override {
    count_cases(path_, 0, all.test_to_run_count(), 0);
  }
  void OnTestProgramEnd(const testing::UnitTest& all) override {
    count_cases(path_, all.successful_test_count(), all.failed_test_count() - all.test_to_run_count(),
                all.skipped_test_count());
  }

 private:
  std::string path_;
};

}  // namespace

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  testing::UnitTest& all = *testing::UnitTest::GetInstance();
  all.listeners().Append(new CaseCounter(take_count_file()));  // googletest deletes it
  const int status = RUN_ALL_TESTS();
  const bool only_skipped = all.skipped_test_count() > 0 && all.successful_test_count() == 0;
  return status == 0 && only_skipped ? kAllSkipped : status;
}
