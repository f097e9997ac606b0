// A workload's tree: the pages that it says it needs are enough to make it, with the nodes that it has.
#include "fuzz/fuzz_target.h"
#include "runtime/bench/tree_spec.h"

namespace soliton {
namespace {

/// Above this many pages a tree is only counted.
constexpr int kMaxPages = 1 << 14;

void make(const TreeSpec& spec) {
  expect(unique_tokens(spec) <= path_tokens(spec) || num_rows(spec) == 0, "shared tokens counted once");
  expect(max_depth(spec) < static_cast<int>(spec.nodes.size()), "a depth below the number of nodes");
  const int num_pages = num_pages_needed(spec, 1);
  if (num_pages > kMaxPages) return;
  KvTree tree(num_pages);
  const std::vector<Branch> branches = build_tree(tree, spec, 1);
  int64_t num_tokens = 0;
  for (const Branch branch : branches) num_tokens += tree.num_tokens(branch);
  expect(static_cast<int>(branches.size()) == num_rows(spec), "a branch for each row");
  expect(num_tokens == path_tokens(spec), "branches of the tokens on their paths");
}

}  // namespace
}  // namespace soliton

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace soliton;
  const std::filesystem::path path = fuzz_folder().write("tree.json", as_text(data, size));
  accepts([&] {
    for (const TreeSpec& spec : parse_tree_spec(path.string())) make(spec);
  });
  return 0;
}
