// Layers with a window have as many pages as that reaches: a later page takes the place of an earlier one, within a launch,
// behind chunks of a prompt, and where tokens are taken back.
#include "kernel/kernel_fixture.h"

namespace soliton {
namespace {

class WindowPages : public testing::TestWithParam<const char*> {
 protected:
  static constexpr int kFilled = 250;  // the fifth page begins soon

  WindowPages() : kernel_(GetParam()) {}

  KvTree& tree() { return kernel_.engine().tree(); }
  /// First token of the first page that is still there.
  int first_there() {
    int position = 0;
    for (const PageTokens& page : tree().path(kernel_.engine().main_branch())) {
      if (page.window_page >= 0) return position;
      position += page.num_tokens;
    }
    return position;
  }

  KernelUnderTest kernel_;
};

INSTANTIATE_TEST_SUITE_P(Kernels, WindowPages, testing::Values("variant-4-all", "after-3-all"),
                         [](const auto& info) { return std::string(info.param).substr(0, 5); });

TEST_P(WindowPages, AreUsedAgainWithinALaunch) {
  const KvWindows windows = tree().windows();
  ASSERT_EQ(windows.num_pages, windows.reach);
  ASSERT_LT(windows.reach, 5);
  kernel_.fill(kernel_.prompt(kFilled), 0);
  const int before = first_there();
  kernel_.expect_like_reference(kernel_.prompt(1), 10, 1);
  EXPECT_EQ(first_there(), before + kKvPageTokens);
}

TEST_P(WindowPages, AreUsedAgainBehindChunks) {
  kernel_.fill(kernel_.prompt(kFilled), 0);
  kernel_.expect_like_reference(kernel_.prompt(12), 2);
}

// The launch would have gone on into another page, and may have before it ended.
TEST_P(WindowPages, AreThereWhenALaunchEndsEarlyAndTokensAreTakenBack) {
  kernel_.fill(kernel_.prompt(kFilled), 0);
  kernel_.engine().decode({.tokens = kernel_.prompt(1), .max_tokens = 60}, [](int32_t) { return false; });
  EXPECT_EQ(kernel_.engine().usable_position(kFilled), kFilled);
  kernel_.engine().set_position(kFilled);
  kernel_.expect_like_reference(kernel_.prompt(1), 2, 1);
}

TEST_P(WindowPages, SayFromWhereTokensCanBeFedAnew) {
  constexpr int kTokens = 270;
  kernel_.engine().set_position(kTokens);
  const int window = longest_window(kernel_.facts());
  const int first = first_there();
  ASSERT_GT(first, 0);
  EXPECT_EQ(kernel_.engine().usable_position(kTokens - 1), kTokens - 1);
  EXPECT_EQ(kernel_.engine().usable_position(first + window - 1), first + window - 1);
  EXPECT_EQ(kernel_.engine().usable_position(first + window - 2), 0);
}

// What a page that another one took over too early would do.
TEST_P(WindowPages, ThatAreOverwrittenAreNoticed) {
  kernel_.fill(kernel_.prompt(kFilled), 0);
  const std::vector<int32_t> last = kernel_.prompt(1);
  const std::vector<float> expected = kernel_.decode(last, 1).logits;
  kernel_.overwrite_window(kFilled - 30, kFilled - 100);
  kernel_.engine().set_position(kFilled);
  const std::vector<float> logits = kernel_.decode(last, 1).logits;
  float scale = 0;
  float worst = 0;
  for (size_t i = 0; i < expected.size(); ++i) {
    scale = std::max(scale, std::abs(expected[i]));
    worst = std::max(worst, std::abs(logits[i] - expected[i]));
  }
  EXPECT_GT(worst, scale * kernel_.tolerance());
}

}  // namespace
}  // namespace soliton
