// Plans by time: the CTAs of a KV head stand in a line and take a tree's pages one behind the other, each as much as fits into the
// least time in which all of it fits.
#include <algorithm>
#include <numeric>

#include "runtime/engine/tree/tree_plan.h"

namespace soliton {

/// With one line, strips have all pages that are seen. With one for each reach of layers, those of a line are seen in as many
/// layers, of the last line in all.
void TreePlanner::find_strips(const TreeSnapshot& tree, int num_lines) {
  strips_.clear();
  for (size_t i = 0; i < tree.nodes.size(); ++i) {
    const SnapshotNode& node = tree.nodes[i];
    const auto index = static_cast<int32_t>(i);
    if (costs_[i].num_seen == 0) continue;
    const int tokens = node.num_tokens + (node.num_new == 1 ? num_steps_ / 2 : node.num_new);
    for (int row = node.first_row, end_row = 0; row < node.end_row; row = end_row) {
      const Block block = block_of(tree, index, row);
      end_row = block.end_row;
      const int of_block = std::min(tokens, node.num_tokens + std::max(1, end_row - node.first_row));
      const int num_tokens = std::max(1, node.num_new > 1 ? of_block : tokens);
      first_pages_.clear();
      for (const LayerReach& reach : shape_.reaches)
        first_pages_.push_back(first_page(tree, index, block, reach));
      std::sort(first_pages_.begin(), first_pages_.end());
      int first = first_pages_.empty() ? 0 : first_pages_[0];
      for (int line = 0; line < num_lines && first * kKvPageTokens < num_tokens; ++line) {
        const int next =
            line + 1 < num_lines ? first_pages_[line + 1] : ceil_divide(num_tokens, kKvPageTokens);
        if (next <= first) continue;
        const bool is_last = next * kKvPageTokens >= num_tokens;
        const int own = (is_last ? num_tokens : next * kKvPageTokens) - first * kKvPageTokens;
        strips_.push_back({.node = index,
                           .block = block,
                           .line = line,
                           .first_page = first,
                           .num_tokens = own,
                           .end = !is_last            ? next * kKvPageTokens
                                  : node.num_new == 1 ? node.num_tokens + num_steps_
                                  : node.num_new > 1  ? num_tokens
                                                      : node.num_tokens,
                           .max_pages = std::max(1, max_item_tokens(row, end_row) / kKvPageTokens),
                           .item_ps = item_costs_.without_tokens(end_row - row),
                           .token_ps = item_costs_.token(end_row - row)});
        first = next;
      }
    }
  }
}

/// One CTA after the other takes of the strips of a line what fits into `limit_ps`, but no pieces under min_tokens if it can be
/// helped: take(piece). Returns how many CTAs that takes.
template <class Take>
int TreePlanner::take_strips(int line, int64_t limit_ps, const Take& take) const {
  int cta = 0;
  int64_t load = 0;
  const auto next = [&] {
    ++cta;
    load = 0;
  };
  for (size_t i = 0; i < strips_.size(); ++i) {
    const Strip& strip = strips_[i];
    if (strip.line != line) continue;
    // Of one page more than an item may have, two pieces are left.
    const int least = std::min(limits_.min_tokens / kKvPageTokens, (strip.max_pages + 1) / 2);
    for (int first = 0; first < strip.num_pages();) {
      const int left = strip.num_pages() - first;
      const int tokens_left = strip.num_tokens - first * kKvPageTokens;
      const int64_t room = std::max<int64_t>(0, limit_ps - load - strip.item_ps) / strip.token_ps;
      const int64_t fit = room >= tokens_left ? left : room / kKvPageTokens;
      int pages = static_cast<int>(std::min<int64_t>({fit, strip.max_pages, left}));
      if (pages < left && left - pages < least) pages = left - least;
      if (pages < std::min(least, left)) {
        if (load > 0) {
          next();
          continue;
        }
        pages = std::min(least, left);
      }
      take(Piece{.strip = static_cast<int32_t>(i), .first_page = first, .num_pages = pages, .cta = cta});
      load += strip.item_ps + std::min(pages * kKvPageTokens, tokens_left) * strip.token_ps;
      first += pages;
    }
  }
  return cta + 1;
}

/// Adds the pieces of a line, by the least time in which `group` CTAs have all of it. Every second line begins with the last
/// CTA: those at the end of a line have less.
void TreePlanner::take_line(int line, int group) {
  int64_t low = 0;
  int64_t total = 0;
  for (const Strip& strip : strips_) {
    if (strip.line != line) continue;
    low = std::max(low, strip.item_ps + std::min(limits_.min_tokens, strip.num_tokens) * strip.token_ps);
    total += strip.item_ps + strip.num_tokens * strip.token_ps;
  }
  const auto fits = [&](int64_t limit_ps) {
    return take_strips(line, limit_ps, [](const Piece&) {}) <= group;
  };
  low = std::max(low, total / group);
  int64_t high = low;
  while (!fits(high)) {
    low = high;
    high += high / 4 + 1;
  }
  while (high - low > high / kSearchSteps) {
    const int64_t middle = low + (high - low) / 2;
    (fits(middle) ? high : low) = middle;
  }
  take_strips(line, high, [&](Piece piece) {
    if (line % 2 == 1) piece.cta = group - 1 - piece.cta;
    pieces_.push_back(piece);
  });
}

/// The CTAs of a KV head, all heads alike. Returns the mean of all CTAs' times; 0 if there is no CTA for each head.
int64_t TreePlanner::slice_in_line(const TreeSnapshot& tree, int num_lines) {
  const int group = shape_.num_kv_heads == 0 ? 0 : shape_.num_ctas / shape_.num_kv_heads;
  if (group == 0) return 0;
  find_strips(tree, num_lines);
  pieces_.clear();
  for (int line = 0; line < num_lines; ++line) take_line(line, group);
  std::sort(pieces_.begin(), pieces_.end(), [](const Piece& a, const Piece& b) {
    return a.strip != b.strip ? a.strip < b.strip : a.first_page < b.first_page;
  });
  works_.clear();
  slices_.clear();
  node_slices_.assign(tree.nodes.size(), {});
  partials_per_head_ = 0;
  dealt_.clear();
  line_loads_.assign(group, 0);
  int64_t longest = 0;
  int64_t sum = 0;
  for (const Piece& piece : pieces_) {
    const Strip& strip = strips_[piece.strip];
    NodeSlices& slices = node_slices_[strip.node];
    if (slices.end == 0) slices.first = static_cast<int32_t>(slices_.size());
    const size_t before = works_.size();
    const int first = strip.first_page + piece.first_page;
    const bool is_last = piece.first_page + piece.num_pages == strip.num_pages();
    add_slice(tree.nodes[strip.node], costs_[strip.node].first_position, first * kKvPageTokens,
              is_last ? strip.end : (first + piece.num_pages) * kKvPageTokens, strip.block);
    slices.end = static_cast<int32_t>(slices_.size());
    for (size_t i = before; i < works_.size(); ++i) {
      line_loads_[piece.cta] += works_[i].cost_ps;
      sum += works_[i].cost_ps;
      longest = std::max(longest, works_[i].cost_ps);
      for (int head = 0; head < shape_.num_kv_heads; ++head)
        dealt_.push_back(piece.cta * shape_.num_kv_heads + head);
    }
  }
  order_.resize(works_.size());
  std::iota(order_.begin(), order_.end(), 0);
  const int64_t mean = (sum * shape_.num_kv_heads + shape_.num_ctas - 1) / shape_.num_ctas;
  planned_ = {.makespan_ps = shape_.reaches.size() > 1
                                 ? mean_makespan()
                                 : *std::max_element(line_loads_.begin(), line_loads_.end()),
              .bound_ps = std::max(mean, longest)};
  return mean;
}

}  // namespace soliton
