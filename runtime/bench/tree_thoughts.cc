#include "runtime/bench/tree_thoughts.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <utility>

#include "layout/random.h"

namespace soliton {
namespace {

constexpr int kThoughtsPerLevel = 10;
constexpr uint64_t kSeed = 1;

/// A share `share` of the thoughts has at most `num_tokens` tokens; linear in between.
struct Quantile {
  double share;
  double num_tokens;
};

struct Task {
  int prompt_tokens;
  int num_levels;
  int kept_tokens;  // of each level, the thought closest to it in length is kept: sets the mean of live rows
  std::vector<Quantile> lengths;  // from share 0 to 1
};

/// Lengths at evenly spaced shares, so that their percentiles are the task's, in random order.
std::vector<int> lengths_of(const Task& task) {
  const int num_thoughts = task.num_levels * kThoughtsPerLevel;
  std::vector<int> lengths;
  for (int i = 0; i < num_thoughts; ++i) {
    const double share = static_cast<double>(i) / (num_thoughts - 1);
    const auto upper = std::find_if(task.lengths.begin() + 1, task.lengths.end(),
                                    [&](const Quantile& quantile) { return share <= quantile.share; });
    const auto lower = upper - 1;
    const double part = (share - lower->share) / (upper->share - lower->share);
    lengths.push_back(static_cast<int>(std::lround(std::lerp(lower->num_tokens, upper->num_tokens, part))));
  }
  // Not std::shuffle, which is another one in every library.
  for (int i = num_thoughts - 1; i > 0; --i) {
    std::swap(lengths[i], lengths[random_bits(static_cast<uint64_t>(i), kSeed) % (i + 1)]);
  }
  return lengths;
}

std::vector<Thought> thoughts_of(const Task& task) {
  const std::vector<int> lengths = lengths_of(task);
  std::vector<Thought> thoughts = {
      {.parent = -1, .first_step = -task.prompt_tokens, .num_tokens = task.prompt_tokens}};
  int kept = 0;
  for (int level = 0; level < task.num_levels; ++level) {
    const int parent = kept;
    const int first_step = thoughts[parent].first_step + thoughts[parent].num_tokens;
    const auto far_off = [&](int index) { return std::abs(thoughts[index].num_tokens - task.kept_tokens); };
    for (int i = 0; i < kThoughtsPerLevel; ++i) {
      const auto index = static_cast<int>(thoughts.size());
      thoughts.push_back({parent, first_step, lengths[level * kThoughtsPerLevel + i]});
      if (i == 0 || far_off(index) < far_off(kept)) kept = index;
    }
  }
  return thoughts;
}

bool is_live(const Thought& thought, int step) {
  return thought.first_step <= step && step < thought.first_step + thought.num_tokens;
}

/// Adds a thought and what is behind it; leaves out what is done and has nothing live behind it.
void add_thought(const std::vector<Thought>& thoughts, int index, int parent, int step, TreeSpec& spec) {
  const Thought& thought = thoughts[index];
  const auto node = static_cast<int>(spec.nodes.size());
  spec.nodes.push_back(
      {.parent = parent, .num_tokens = std::min(step - thought.first_step, thought.num_tokens)});
  if (is_live(thought, step)) {
    spec.nodes.back().draft = {-1};
    return;
  }
  for (int child = index + 1; child < std::ssize(thoughts); ++child) {
    if (thoughts[child].parent == index && thoughts[child].first_step <= step) {
      add_thought(thoughts, child, node, step, spec);
    }
  }
  if (std::ssize(spec.nodes) == node + 1) spec.nodes.pop_back();
}

}  // namespace

std::vector<Thought> sorting_thoughts() {
  // An eighth fails at once. 61 nodes, between the 11 and 101 of the paper, give its mean of tokens.
  return thoughts_of({.prompt_tokens = 1104,
                      .num_levels = 6,
                      .kept_tokens = 430,
                      .lengths = {{0, 1}, {0.12, 1}, {0.5, 369}, {0.9, 888}, {1, 1450}}});
}

std::vector<Thought> document_thoughts() {
  return thoughts_of({.prompt_tokens = 1250,
                      .num_levels = 3,
                      .kept_tokens = 830,
                      .lengths = {{0, 450}, {0.1, 521}, {0.5, 1023}, {0.9, 1328}, {1, 1400}}});
}

int num_steps(const std::vector<Thought>& thoughts) {
  int end = 0;
  for (const Thought& thought : thoughts) end = std::max(end, thought.first_step + thought.num_tokens);
  return end;
}

TreeSpec tree_at(const std::vector<Thought>& thoughts, int step) {
  TreeSpec spec;
  add_thought(thoughts, 0, -1, step, spec);
  join_only_children(spec);
  return spec;
}

ThoughtMeans means_of(const std::vector<Thought>& thoughts) {
  const int end = num_steps(thoughts);
  ThoughtMeans means;
  for (int step = 0; step < end; ++step) {
    const TreeSpec spec = tree_at(thoughts, step);
    means.rows += static_cast<double>(num_rows(spec)) / end;
    means.unique_tokens += static_cast<double>(unique_tokens(spec)) / end;
  }
  return means;
}

TreeSpec typical_tree(const std::vector<Thought>& thoughts) {
  const ThoughtMeans means = means_of(thoughts);
  TreeSpec best;
  double least = std::numeric_limits<double>::max();
  const int end = num_steps(thoughts);
  for (int step = end / 4; step < end - end / 4; ++step) {
    TreeSpec spec = tree_at(thoughts, step);
    const double distance = std::abs(num_rows(spec) / means.rows - 1) +
                            std::abs(static_cast<double>(unique_tokens(spec)) / means.unique_tokens - 1);
    if (distance >= least) continue;
    least = distance;
    best = std::move(spec);
  }
  return best;
}

}  // namespace soliton
