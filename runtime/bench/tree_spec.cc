#include "runtime/bench/tree_spec.h"

#include <algorithm>
#include <utility>

#include "layout/page.h"

namespace soliton {
namespace {

std::vector<int> num_children(const TreeSpec& spec) {
  std::vector<int> counts(spec.nodes.size());
  for (const TreeSpec::Node& node : spec.nodes) {
    if (node.parent >= 0) ++counts[node.parent];
  }
  return counts;
}

/// Cached tokens from the root to the end of each node.
std::vector<int64_t> path_ends(const TreeSpec& spec) {
  std::vector<int64_t> ends;
  for (const TreeSpec::Node& node : spec.nodes) {
    ends.push_back((node.parent < 0 ? 0 : ends[node.parent]) + node.num_tokens);
  }
  return ends;
}

/// Most tokens of a draft that one of them sees.
int draft_depth(const std::vector<int32_t>& draft) {
  std::vector<int> depths;
  for (const int32_t parent : draft) depths.push_back(parent < 0 ? 1 : depths[parent] + 1);
  return depths.empty() ? 0 : *std::max_element(depths.begin(), depths.end());
}

}  // namespace

int64_t unique_tokens(const TreeSpec& spec) {
  int64_t tokens = 0;
  for (const TreeSpec::Node& node : spec.nodes) tokens += node.num_tokens;
  return tokens;
}

int64_t path_tokens(const TreeSpec& spec) {
  const std::vector<int64_t> ends = path_ends(spec);
  int64_t tokens = 0;
  for (size_t i = 0; i < spec.nodes.size(); ++i) tokens += ends[i] * std::ssize(spec.nodes[i].draft);
  return tokens;
}

int num_rows(const TreeSpec& spec) {
  size_t rows = 0;
  for (const TreeSpec::Node& node : spec.nodes) rows += node.draft.size();
  return static_cast<int>(rows);
}

int max_depth(const TreeSpec& spec) {
  std::vector<int> depths;
  for (const TreeSpec::Node& node : spec.nodes)
    depths.push_back(node.parent < 0 ? 0 : depths[node.parent] + 1);
  return depths.empty() ? 0 : *std::max_element(depths.begin(), depths.end());
}

int longest_path(const TreeSpec& spec) {
  const std::vector<int64_t> ends = path_ends(spec);
  int64_t longest = 0;
  for (size_t i = 0; i < spec.nodes.size(); ++i) {
    longest = std::max(longest, ends[i] + draft_depth(spec.nodes[i].draft));
  }
  return static_cast<int>(longest);
}

int num_pages_needed(const TreeSpec& spec, int num_steps) {
  int pages = 0;
  for (const TreeSpec::Node& node : spec.nodes) {
    const auto num_new = static_cast<int>(node.draft.size());
    const int reserved = num_new == 0 ? 0 : std::max(num_new, num_steps);
    pages += ceil_divide(node.num_tokens + reserved, kKvPageTokens);
  }
  return pages;
}

std::vector<Branch> build_tree(KvTree& tree, const TreeSpec& spec, int num_steps) {
  const std::vector<int> counts = num_children(spec);
  std::vector<std::vector<Branch>> forked(
      spec.nodes.size());  // those still without a node, the next one last
  std::vector<Branch> live;
  for (size_t i = 0; i < spec.nodes.size(); ++i) {
    const TreeSpec::Node& node = spec.nodes[i];
    Branch branch = 0;
    if (node.parent < 0) {
      branch = tree.open();
    } else {
      branch = forked[node.parent].back();
      forked[node.parent].pop_back();
    }
    tree.append(branch, node.num_tokens);
    if (counts[i] == 0) {
      tree.draft(branch, node.draft);
      live.push_back(branch);
    } else {
      forked[i] = tree.fork(branch, counts[i]);
      std::reverse(forked[i].begin(), forked[i].end());
    }
  }
  tree.reserve(num_steps);
  return live;
}

void join_only_children(TreeSpec& spec) {
  const std::vector<int> counts = num_children(spec);
  std::vector<int> joined;  // where each node goes
  std::vector<TreeSpec::Node> nodes;
  for (TreeSpec::Node& node : spec.nodes) {
    if (node.parent >= 0 && counts[node.parent] == 1) {
      joined.push_back(joined[node.parent]);
      TreeSpec::Node& upper = nodes[joined.back()];
      upper.num_tokens += node.num_tokens;
      upper.draft = std::move(node.draft);
      continue;
    }
    joined.push_back(static_cast<int>(nodes.size()));
    nodes.push_back(std::move(node));
    if (nodes.back().parent >= 0) nodes.back().parent = joined[nodes.back().parent];
  }
  spec.nodes = std::move(nodes);
}

}  // namespace soliton
