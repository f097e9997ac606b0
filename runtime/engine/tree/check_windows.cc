#include "runtime/engine/tree/check_windows.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <vector>

#include "layout/page.h"
#include "models/error.h"

namespace soliton {
namespace {

constexpr int kNever = std::numeric_limits<int>::max();

/// What a page of the pool stands for while it must not change.
struct Held {
  int32_t node = -1;
  int position = 0;   // of its first token
  int last_seen = 0;  // the last query that sees one of its tokens
};

/// Where nodes begin, and the least position of a query at or below them.
struct Extent {
  int first = 0;
  int least_query = kNever;
};

std::vector<Extent> measure(const TreeSnapshot& tree) {
  std::vector<Extent> extents(tree.nodes.size());
  std::vector<bool> is_leaf(tree.nodes.size(), true);
  for (size_t i = 0; i < tree.nodes.size(); ++i) {
    const int32_t parent = tree.nodes[i].parent;
    if (parent < 0) continue;
    is_leaf[parent] = false;
    extents[i].first = extents[parent].first + tree.nodes[parent].num_tokens;
  }
  for (size_t i = tree.nodes.size(); i-- > 0;) {
    Extent& extent = extents[i];
    if (is_leaf[i]) extent.least_query = extent.first + tree.nodes[i].num_tokens;
    if (const int32_t parent = tree.nodes[i].parent; parent >= 0)
      extents[parent].least_query = std::min(extents[parent].least_query, extent.least_query);
  }
  return extents;
}

}  // namespace

void check_windows(const TreeSnapshot& tree, int window, int32_t gone_page, int num_steps) {
  const std::vector<Extent> extents = measure(tree);
  std::vector<Held> held(static_cast<size_t>(gone_page) + 1);
  for (size_t n = 0; n < tree.nodes.size(); ++n) {
    const SnapshotNode& node = tree.nodes[n];
    const auto [first, least_query] = extents[n];
    const int end_written = node.num_tokens + (node.num_new > 0 ? node.num_new + num_steps - 1 : 0);
    for (int begin = 0; begin < end_written; begin += kKvPageTokens) {
      const int end = std::min(begin + kKvPageTokens, end_written);  // in the node, as begin
      const bool is_written = end > node.num_tokens;
      const int last_seen = first + end - 1 + window - 1;
      if (!is_written && last_seen < least_query) continue;
      const int32_t page = tree.window_pages[static_cast<size_t>(node.first_page + begin / kKvPageTokens)];
      if (page < 0 || page >= gone_page) {
        throw Error(
            ExitCode::kInternal,
            fmt::format("windows: expected a page for tokens from position {} on, which a query at {} "
                        "sees, got none",
                        first + begin, least_query));
      }
      // Of several new tokens the first query is there when all are written.
      const int query = node.num_new > 1 ? least_query : std::max(least_query, first + begin);
      Held& other = held[static_cast<size_t>(page)];
      const bool follows = other.node == static_cast<int32_t>(n) && is_written && other.last_seen < query;
      if (other.node >= 0 && !follows) {
        throw Error(ExitCode::kInternal,
                    fmt::format("windows: page {}: expected tokens from position {} on alone, which queries "
                                "see up to {}, got those from {} on too",
                                page, other.position, other.last_seen, first + begin));
      }
      other = {.node = static_cast<int32_t>(n), .position = first + begin, .last_seen = last_seen};
    }
  }
}

}  // namespace soliton
