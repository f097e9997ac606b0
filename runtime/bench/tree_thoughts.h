// Trees of thoughts, as in the reasoning tasks of "DeFT: Decoding with Flash Tree-attention": ten thoughts at
// a time are decoded behind a prompt; when the one to be kept is done, ten more start behind it, while its
// longer siblings still go on. A thought that is done and has nothing behind it is pruned. The records of the
// paper are not ours, so these are made up, from a fixed seed, to the same statistics.
//
//   prompt ──┬─ thought ───────────         done later than its sibling: live beside what is behind that
//            ├─ kept ──┬─ thought ──
//            │         ├─ kept ──┬─ ...
//            └─ thought└─ thought             done early: pruned
#pragma once

#include <vector>

#include "runtime/bench/tree_spec.h"

namespace soliton {

/// Decodes its token i in step first_step + i. The prompt ends before step 0.
struct Thought {
  int parent = -1;  // index among the thoughts; -1: the prompt, which is the first of them
  int first_step = 0;
  int num_tokens = 0;
};

/// Prompt and thoughts of sorting 128 numbers, and of merging documents; parents before children.
std::vector<Thought> sorting_thoughts();
std::vector<Thought> document_thoughts();

/// Steps until the last thought is done.
int num_steps(const std::vector<Thought>& thoughts);

/// The tree that step `step`, 0 to num_steps() - 1, decodes over: live thoughts and what they stand on.
TreeSpec tree_at(const std::vector<Thought>& thoughts, int step);

/// Means over all steps.
struct ThoughtMeans {
  double rows = 0;
  double unique_tokens = 0;
};
ThoughtMeans means_of(const std::vector<Thought>& thoughts);

/// The tree of the step, of the middle half of all, whose rows and unique tokens are closest to the means.
TreeSpec typical_tree(const std::vector<Thought>& thoughts);

}  // namespace soliton
