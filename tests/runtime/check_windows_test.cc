// The judge of window pages: of a launch that it lets pass every page that is taken away or given twice is found.
#include "runtime/engine/tree/check_windows.h"

#include <gtest/gtest.h>

#include "error_of.h"
#include "layout/page.h"
#include "runtime/engine/tree/kv_tree.h"

namespace soliton {
namespace {

constexpr int kWindow = 100;
constexpr int kReach = 3;  // of steps of one token
constexpr int kSteps = 300;

/// A branch of 250 tokens that goes on, beside one that waits behind the first 128.
KvTree two_branches(int reach) {
  KvTree tree(40, {.window = kWindow, .num_pages = 12, .reach = reach});
  const Branch waiting = tree.open();
  tree.append(waiting, 128);
  tree.draft(waiting, {});
  const Branch branch = tree.branch_off(waiting, 128);
  tree.append(branch, 122);
  tree.reserve(kSteps);
  return tree;
}

std::string judge(const TreeSnapshot& tree, int32_t gone_page) {
  return error_of([&] { check_windows(tree, kWindow, gone_page, kSteps); });
}

TEST(CheckWindows, FindsEveryPageThatIsMissingOrOverwritten) {
  const KvTree tree = two_branches(kReach);
  TreeSnapshot sound;
  tree.snapshot(sound);
  ASSERT_EQ(judge(sound, tree.gone_page()), "no error");
  std::vector<size_t> needed;
  for (size_t i = 0; i < sound.window_pages.size(); ++i) {
    TreeSnapshot missing = sound;
    missing.window_pages[i] = tree.gone_page();
    if (judge(missing, tree.gone_page()) != "no error") needed.push_back(i);
  }
  EXPECT_GE(needed.size(), 8u) << "and all that are written";
  const auto node_of = [&](size_t page) {
    size_t node = 0;
    while (static_cast<size_t>(sound.nodes[node].first_page + sound.nodes[node].num_pages) <= page) ++node;
    return node;
  };
  for (const size_t i : needed) {
    for (const size_t j : needed) {
      const bool is_near = (i < j ? j - i : i - j) < kReach;
      if (i == j || (node_of(i) == node_of(j) && !is_near)) continue;
      TreeSnapshot twice = sound;
      twice.window_pages[j] = sound.window_pages[i];
      EXPECT_NE(judge(twice, tree.gone_page()), "no error") << i << ", " << j;
    }
  }
}

TEST(CheckWindows, FindsAReachThatIsTooShort) {
  const KvTree tree = two_branches(kReach - 1);
  TreeSnapshot snapshot;
  tree.snapshot(snapshot);
  EXPECT_NE(judge(snapshot, tree.gone_page()).find("windows: page"), std::string::npos);
}

}  // namespace
}  // namespace soliton
