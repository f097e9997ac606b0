// Drafts for KvTree::draft(), and what could be accepted of them.
#pragma once

#include <cstdint>
#include <random>
#include <vector>

namespace soliton {

/// Each token follows the one before, as in a chunk of a prompt.
inline std::vector<int32_t> chain(int num_tokens) {
  std::vector<int32_t> parents;
  for (int i = 0; i < num_tokens; ++i) parents.push_back(i - 1);
  return parents;
}

/// A random tree of draft tokens in depth-first preorder.
inline std::vector<int32_t> random_draft(std::mt19937& random, int num_tokens) {
  std::vector<int32_t> parents;
  for (int i = 0; i < num_tokens; ++i) {
    int32_t parent = i - 1;
    while (parent >= 0 && random() % 3 == 0) parent = parents[parent];
    parents.push_back(parent);
  }
  return parents;
}

/// A random path down from a token without parent.
inline std::vector<int32_t> random_path(std::mt19937& random, const std::vector<int32_t>& parents) {
  std::vector<int32_t> path;
  int32_t last = -1;
  for (int32_t token = 0; token < std::ssize(parents); ++token) {
    if (parents[token] != last || random() % 3 == 0) continue;
    path.push_back(token);
    last = token;
  }
  return path;
}

}  // namespace soliton
