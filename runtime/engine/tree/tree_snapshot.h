// The tree as its planner sees it: nodes and rows in depth-first preorder, flat arrays without links.
#pragma once

#include <cstdint>
#include <vector>

namespace soliton {

/// Names a live branch of a KvTree; ids of pruned and forked branches are given out again.
using Branch = int32_t;

struct SnapshotNode {
  int32_t parent = -1;  // index in TreeSnapshot::nodes, smaller than its own; -1: none
  int32_t num_tokens = 0;
  int32_t num_new = 0;     // rows of its own, which are [first_row, end_row) then; 0 for nodes with children
  int32_t first_page = 0;  // in TreeSnapshot::pages
  int32_t num_pages = 0;   // with those reserved
  int32_t first_row = 0;   // rows below the node, or its own
  int32_t end_row = 0;
};

struct SnapshotRow {
  Branch branch = 0;
  int32_t node = 0;      // in TreeSnapshot::nodes
  int32_t draft = 0;     // which of the branch's new tokens; its slot is the node's num_tokens + draft
  int32_t position = 0;  // tokens before it on its path
  int32_t seen_end = 0;  // rows [own, seen_end) see it
};

struct TreeSnapshot {
  std::vector<SnapshotNode> nodes;
  std::vector<int32_t> pages;
  std::vector<int32_t> window_pages;  // at the same places, of layers with a window; empty if there are none
  std::vector<SnapshotRow> rows;
};

}  // namespace soliton
