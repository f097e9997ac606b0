#include "runtime/bench/test_progress.h"

#include <fmt/format.h>

namespace soliton {

void TestProgress::begin(const std::string& test) {
  ++num_begun_;
  test_ = fmt::format("[{}/{}] {}", num_begun_, num_tests_, test);
  line_.draw(test_);
}

void TestProgress::repeat(int done, int num_repeats) {
  if (line_.is_due()) line_.draw(fmt::format("{}: {} of {}", test_, done, num_repeats));
}

}  // namespace soliton
