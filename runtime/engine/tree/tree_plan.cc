#include "runtime/engine/tree/tree_plan.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <type_traits>

#include "layout/activations.h"
#include "models/error.h"

namespace soliton {
namespace {

static_assert(std::is_trivially_copyable_v<TreeItem> && std::is_trivially_copyable_v<TreeRow> &&
                  std::is_trivially_copyable_v<TreeMerge> && std::is_trivially_copyable_v<TreeView>,
              "uploaded byte by byte");

constexpr int kCtaBits = 12;  // of a word of the heap; the load has the others
constexpr int kMaxCtas = 1 << kCtaBits;
constexpr int kLimitEighths[] = {8, 7, 9, 6, 4};  // parts of the limit that are tried
constexpr double kGoodEnough = 1.02;              // a makespan as close to the limit ends the search
constexpr double kWholeEnough = 1.05;             // or to the mean, where nothing is to be merged then
constexpr int32_t kNoStep = std::numeric_limits<int32_t>::max();  // a step that no plan comes to

Error misuse(std::string_view what, std::string_view expected, double found) {
  return Error(ExitCode::kInternal, fmt::format("tree plan: {}: expected {}, got {}", what, expected, found));
}

void expect(bool holds, std::string_view what, std::string_view expected, double found) {
  if (!holds) throw misuse(what, expected, found);
}

/// What an item takes at a step in layers with a window or chunks.
int64_t seen_ps(const ItemCosts& costs, const TreeItem& item, int step, int window, int chunk) {
  return costs.of(without_unseen(item, step, first_seen(item.least_query + step, window, chunk)), step);
}

/// Adds `load` to the least word of a heap.
void add_to_least(std::vector<uint64_t>& heap, uint64_t load) {
  const uint64_t word = heap[0] + load;
  const size_t size = heap.size();
  size_t at = 0;
  for (;;) {
    size_t child = 2 * at + 1;
    if (child >= size) break;
    if (child + 1 < size && heap[child + 1] < heap[child]) ++child;
    if (word <= heap[child]) break;
    heap[at] = heap[child];
    at = child;
  }
  heap[at] = word;
}

}  // namespace

TreeView TreePlan::view() const {
  return {.first_item = first_item.data(),
          .items = items.data(),
          .pages = pages.data(),
          .rows = rows.data(),
          .merges = merges.data(),
          .num_rows = static_cast<int32_t>(rows.size()),
          .num_steps = num_steps,
          .partials_per_head = partials_per_head};
}

int64_t attention_ps(const TreePlan& plan, const ItemCosts& costs, int step, int window, int chunk) {
  int64_t busiest = 0;
  for (size_t cta = 0; cta + 1 < plan.first_item.size(); ++cta) {
    int64_t load = 0;
    for (int32_t i = plan.first_item[cta]; i < plan.first_item[cta + 1]; ++i)
      load += seen_ps(costs, plan.items[i], step, window, chunk);
    busiest = std::max(busiest, load);
  }
  return busiest;
}

TreePlanner::TreePlanner(const TreeShape& shape, const TreeCosts& costs, const SliceLimits& limits)
    : shape_(shape), limits_(limits), item_costs_(shape, costs) {
  expect(shape.num_ctas <= kMaxCtas, "CTAs", "at most 4096", shape.num_ctas);
  expect(shape.num_kv_heads >= 0, "KV heads", "at least 0", shape.num_kv_heads);
  expect(shape.max_item_rows >= 1, "rows of an item", "at least 1", shape.max_item_rows);
  expect(limits.min_tokens >= 1 && limits.min_tokens % kKvPageTokens == 0, "tokens of a slice",
         "a multiple of the page", limits.min_tokens);
  expect(limits.max_slices >= 1, "slices of a node", "at least 1", limits.max_slices);
}

void TreePlanner::plan(const TreeSnapshot& tree, int num_steps, TreePlan& plan) {
  num_steps_ = settle_steps(tree, num_steps);
  measure(tree);
  if (limits_.rule == SliceRule::kFixed) {
    slice_by_length(tree);
  } else {
    slice_by_time(tree);
  }
  if (shape_.ends_rows && limits_.rule != SliceRule::kFixed)
    end_rows(tree);  // else bits might depend on others
  plan.pages.assign(tree.pages.begin(), tree.pages.end());
  plan.num_steps = num_steps_;
  plan.partials_per_head = partials_per_head_;
  plan.planned = planned_;
  write_items(plan);
  write_rows(tree, plan);
}

int TreePlanner::settle_steps(const TreeSnapshot& tree, int num_steps) const {
  expect(num_steps >= 1, "steps", "at least 1", num_steps);
  for (const SnapshotNode& node : tree.nodes) {
    if (node.num_new == 0) continue;
    const int reserved = node.num_pages * kKvPageTokens - node.num_tokens;
    expect(reserved >= node.num_new, "tokens reserved at a branch", "one for each new token", reserved);
    if (node.num_new > 1) {
      num_steps = 1;
      continue;
    }
    num_steps = std::min(num_steps, reserved);
    if (limits_.rule == SliceRule::kFixed && shape_.resident_tokens == 0) {
      const int longest = fixed_slice_tokens(node.num_tokens + 1) * limits_.max_slices;
      num_steps = std::min(num_steps, longest - node.num_tokens);
    }
  }
  return num_steps;
}

// ---- Costs

void TreePlanner::measure(const TreeSnapshot& tree) {
  costs_.clear();
  for (size_t i = 0; i < tree.nodes.size(); ++i) {
    const SnapshotNode& node = tree.nodes[i];
    NodeCost& cost = costs_.emplace_back();
    if (node.parent >= 0)
      cost.first_position = costs_[node.parent].first_position + tree.nodes[node.parent].num_tokens;
    const int rows = node.end_row - node.first_row;
    if (rows == 0) continue;
    cost.num_tokens = node.num_tokens + (node.num_new == 1 ? num_steps_ : node.num_new);
    cost.slice_ps = rows * item_costs_.row();
    cost.max_slice_tokens = std::numeric_limits<int>::max();
    int widest = 0;
    int first_seen = std::numeric_limits<int>::max();  // page
    for (int row = node.first_row, end = 0; row < node.end_row; row = end) {
      const Block block = block_of(tree, static_cast<int>(i), row);
      end = block.end_row;
      first_seen = std::min(first_seen, first_page(tree, static_cast<int>(i), block));
      widest = std::max(widest, end - row);
      cost.slice_ps += item_costs_.item(end - row);
      cost.token_ps += item_costs_.token(end - row);
      cost.max_slice_tokens = std::min(cost.max_slice_tokens, max_item_tokens(row, end));
    }
    cost.widest_slice_ps = item_costs_.without_tokens(widest);
    cost.widest_token_ps = item_costs_.token(widest);
    cost.first_seen = first_seen * kKvPageTokens;
    cost.num_seen = std::max(0, cost.num_tokens - cost.first_seen);
  }
}

/// The rows of a node that an item has together, from `row` on.
TreePlanner::Block TreePlanner::block_of(const TreeSnapshot& tree, int node, int row) const {
  const SnapshotNode& at = tree.nodes[node];
  Block block{.first_row = row,
              .end_row = item_end(row, at.end_row),
              .least_query = costs_[node].first_position + at.num_tokens};
  // Under kFixed all rows below the node count alike: which of them there are is others'.
  if (shape_.reaches.empty() || limits_.rule == SliceRule::kFixed) return block;
  const auto first = tree.rows.begin();
  block.least_query =
      std::min_element(first + block.first_row, first + block.end_row,
                       [](const SnapshotRow& a, const SnapshotRow& b) { return a.position < b.position; })
          ->position;
  return block;
}

/// The first page of a node on which one of these rows sees a token in layers of a reach while the plan holds: as steps go on,
/// rows see no earlier keys. Of a node with rows of its own at most the last page: new tokens of a draft, which are not in the
/// order of their positions, are not looked at.
int TreePlanner::first_page(const TreeSnapshot& tree, int node, const Block& block,
                            const LayerReach& reach) const {
  const SnapshotNode& at = tree.nodes[node];
  const int first_key = first_seen(block.least_query, reach.window, reach.chunk);
  const int unseen = std::max(0, first_key - costs_[node].first_position);
  if (unseen < at.num_tokens) return unseen / kKvPageTokens;
  return at.num_new > 0 ? at.num_tokens / kKvPageTokens : ceil_divide(at.num_tokens, kKvPageTokens);
}

/// The same of all layers.
int TreePlanner::first_page(const TreeSnapshot& tree, int node, const Block& block) const {
  if (shape_.reaches.empty()) return 0;
  int first = std::numeric_limits<int>::max();
  for (const LayerReach& reach : shape_.reaches)
    first = std::min(first, first_page(tree, node, block, reach));
  return first;
}

/// Of an item, a mean over the layers.
int64_t TreePlanner::cost_ps(const TreeItem& item) const {
  const int step = num_steps_ / 2;
  if (shape_.reaches.empty()) return item_costs_.of(item, step);
  int64_t sum = 0;
  int64_t num_layers = 0;
  for (const LayerReach& reach : shape_.reaches) {
    sum += reach.num_layers * seen_ps(item_costs_, item, step, reach.window, reach.chunk);
    num_layers += reach.num_layers;
  }
  return sum / num_layers;
}

/// What the busiest CTA takes of what was dealt, a mean over the layers: in those of each reach it may be another one.
int64_t TreePlanner::mean_makespan() {
  int64_t sum = 0;
  int64_t num_layers = 0;
  for (const LayerReach& reach : shape_.reaches) {
    cta_loads_.assign(shape_.num_ctas, 0);
    size_t next = 0;
    for (const int32_t index : order_) {
      const int64_t cost =
          seen_ps(item_costs_, works_[index].item, num_steps_ / 2, reach.window, reach.chunk);
      for (int head = 0; head < shape_.num_kv_heads; ++head) cta_loads_[dealt_[next++]] += cost;
    }
    sum += reach.num_layers * *std::max_element(cta_loads_.begin(), cta_loads_.end());
    num_layers += reach.num_layers;
  }
  return sum / num_layers;
}

/// Of an item of rows `row` to `end` - 1.
int TreePlanner::max_item_tokens(int row, int end) const {
  const int tiles = ceil_divide(end * shape_.heads_per_kv_head, shape_.tile_queries) -
                    row * shape_.heads_per_kv_head / shape_.tile_queries;
  const bool stays = shape_.resident_tokens > 0 && tiles > shape_.streamed_query_tiles;
  return stays ? shape_.resident_tokens : std::numeric_limits<int>::max();
}

/// Behind the rows of an item that begins with `row`: it ends where a tile of queries does, if it can.
int TreePlanner::item_end(int row, int end_row) const {
  int end = row + shape_.max_item_rows;
  if (shape_.max_item_tiles > 0) {
    const int tiles = row * shape_.heads_per_kv_head / shape_.tile_queries + shape_.max_item_tiles;
    end = std::max(end, tiles * shape_.tile_queries / shape_.heads_per_kv_head);
  }
  return std::min(end, end_row);
}

// ---- Slices

int TreePlanner::fixed_slice_tokens(int num_tokens) const {
  int tokens = limits_.min_tokens;
  while (static_cast<int64_t>(tokens) * limits_.max_slices < num_tokens) tokens *= 2;
  return tokens;
}

/// The most tokens of a slice whose items take `limit_ps` at most, but at least min_tokens; then no longer
/// than the same number of slices needs.
int TreePlanner::slice_tokens(const NodeCost& node, int64_t limit_ps) const {
  const int64_t fit = std::max<int64_t>(0, limit_ps - node.widest_slice_ps) / node.widest_token_ps;
  const int most = round_up(node.num_seen, kKvPageTokens);
  const int tokens = static_cast<int>(std::min<int64_t>(fit, most)) / kKvPageTokens * kKvPageTokens;
  const int longest = std::min(std::max(tokens, limits_.min_tokens), node.max_slice_tokens);
  const int num_slices = ceil_divide(node.num_seen, longest);
  return round_up(ceil_divide(node.num_seen, num_slices), kKvPageTokens);
}

/// All work, cut by `limit_ps`.
int64_t TreePlanner::total_ps(int64_t limit_ps) const {
  int64_t total = 0;
  for (const NodeCost& node : costs_) {
    if (node.num_seen == 0 || node.slice_ps == 0) continue;
    const int num_slices = ceil_divide(node.num_seen, slice_tokens(node, limit_ps));
    total += num_slices * node.slice_ps + node.num_seen * node.token_ps;
  }
  return total * shape_.num_kv_heads;
}

/// The least time in which all work, cut by it, fits. More time means fewer slices and so less work: a
/// bisection.
int64_t TreePlanner::least_limit() const {
  int64_t low = 0;
  for (const NodeCost& node : costs_) {
    low = std::max(low,
                   node.widest_slice_ps + std::min(node.num_seen, limits_.min_tokens) * node.widest_token_ps);
  }
  const auto per_cta = [&](int64_t limit_ps) {
    return (total_ps(limit_ps) + shape_.num_ctas - 1) / shape_.num_ctas;
  };
  int64_t high = std::max(low, per_cta(low));  // fits: longer slices are not more work
  low = std::max(low, per_cta(high));
  while (high - low > high / kSearchSteps) {
    const int64_t middle = low + (high - low) / 2;
    (per_cta(middle) <= middle ? high : low) = middle;
  }
  return high;
}

void TreePlanner::slice_by_length(const TreeSnapshot& tree) {
  for (NodeCost& node : costs_) {
    // The same for every number of rows.
    const int most = shape_.resident_tokens > 0 ? shape_.resident_tokens : std::numeric_limits<int>::max();
    node.slice_tokens = std::min(fixed_slice_tokens(node.num_tokens), most);
  }
  cut(tree);
  deal();
}

/// An item for all tokens of its rows, if that is nearly as even: nothing is merged then.
bool TreePlanner::slice_whole(const TreeSnapshot& tree) {
  const auto is_seen = [](const NodeCost& node) { return node.num_seen > 0; };
  if (!shape_.ends_rows || std::count_if(costs_.begin(), costs_.end(), is_seen) != 1) return false;
  for (NodeCost& node : costs_) node.slice_tokens = round_up(std::max(node.num_seen, 1), kKvPageTokens);
  cut(tree);
  deal();
  int64_t total = 0;
  for (const Work& work : works_) total += work.cost_ps * shape_.num_kv_heads;
  const double mean = static_cast<double>(total) / shape_.num_ctas;
  return static_cast<double>(planned_.makespan_ps) <= kWholeEnough * mean;
}

/// Rows of which an item has all tokens have nothing to merge.
void TreePlanner::end_rows(const TreeSnapshot& tree) {
  num_slices_.assign(tree.rows.size(), 0);
  for (const NodeSlices& of_node : node_slices_) {
    for (int32_t s = of_node.first; s < of_node.end; ++s) {
      for (int row = slices_[s].first_row; row < slices_[s].end_row; ++row) ++num_slices_[row];
    }
  }
  const auto is_whole = [&](int first_row, int end_row) {
    return std::all_of(num_slices_.begin() + first_row, num_slices_.begin() + end_row,
                       [](int32_t slices) { return slices == 1; });
  };
  bool merges = false;
  for (Slice& slice : slices_) {
    if (is_whole(slice.first_row, slice.end_row)) {
      slice.first_partial = -1;
    } else {
      merges = true;
    }
  }
  for (Work& work : works_) {
    if (is_whole(work.item.first_row, work.item.end_row)) work.item.first_partial = -1;
  }
  if (!merges) partials_per_head_ = 0;
}

/// In a line, or a line for each reach of layers, unless slices of one length a node are done sooner.
void TreePlanner::slice_by_time(const TreeSnapshot& tree) {
  if (slice_whole(tree)) return;
  const int most_lines = std::max(1, static_cast<int>(shape_.reaches.size()));
  int64_t best = std::numeric_limits<int64_t>::max();
  int best_lines = 0;
  for (int num_lines = 1; num_lines <= most_lines; num_lines += std::max(1, most_lines - 1)) {
    const int64_t mean = slice_in_line(tree, num_lines);
    if (mean == 0) break;
    if (planned_.makespan_ps >= best) continue;
    best = planned_.makespan_ps;
    best_lines = num_lines;
    if (static_cast<double>(best) <= kGoodEnough * static_cast<double>(mean)) return;
  }
  slice_evenly(tree);
  if (best <= planned_.makespan_ps) slice_in_line(tree, best_lines);
}

/// Slices of one length a node. The limit takes the CTAs for one large one. Items nearly as long as it may leave CTAs
/// without work at the end, so somewhat shorter and longer slices are tried too, until a deal comes close to the limit.
void TreePlanner::slice_evenly(const TreeSnapshot& tree) {
  const int64_t limit = least_limit();
  TreeTime best{.makespan_ps = std::numeric_limits<int64_t>::max()};
  int best_eighths = 0;
  for (const int eighths : kLimitEighths) {
    const bool changed = choose_slices(limit * eighths / 8);
    if (best_eighths != 0 && !changed) continue;
    cut(tree);
    deal();
    if (planned_.makespan_ps < best.makespan_ps) {
      best = planned_;
      best_eighths = eighths;
    }
    if (static_cast<double>(best.makespan_ps) <= kGoodEnough * static_cast<double>(limit)) break;
  }
  if (choose_slices(limit * best_eighths / 8)) {
    cut(tree);
    deal();
  }
}

/// Sets slice_tokens of all nodes; are they other than before?
bool TreePlanner::choose_slices(int64_t limit_ps) {
  bool changed = false;
  for (NodeCost& node : costs_) {
    const int before = node.slice_tokens;
    node.slice_tokens = node.num_seen == 0 ? kKvPageTokens : slice_tokens(node, limit_ps);
    changed = changed || node.slice_tokens != before;
  }
  return changed;
}

void TreePlanner::cut(const TreeSnapshot& tree) {
  works_.clear();
  slices_.clear();
  node_slices_.clear();
  partials_per_head_ = 0;
  for (size_t i = 0; i < tree.nodes.size(); ++i) {
    const auto first = static_cast<int32_t>(slices_.size());
    if (tree.nodes[i].first_row < tree.nodes[i].end_row) cut_node(tree, static_cast<int>(i));
    node_slices_.push_back({first, static_cast<int32_t>(slices_.size())});
  }
}

void TreePlanner::cut_node(const TreeSnapshot& tree, int index) {
  const SnapshotNode& node = tree.nodes[index];
  const NodeCost& cost = costs_[index];
  const bool is_fixed = limits_.rule == SliceRule::kFixed;
  const int end = node.num_tokens + (node.num_new == 1 ? num_steps_ : node.num_new);
  for (int first = is_fixed ? 0 : cost.first_seen; first < end; first += cost.slice_tokens) {
    const int slice_end = std::min(end, first + cost.slice_tokens);
    for (int row = node.first_row, end_row = 0; row < node.end_row; row = end_row) {
      const Block block = block_of(tree, index, row);
      end_row = block.end_row;
      const int seen = first_page(tree, index, block) * kKvPageTokens;
      if (slice_end > seen) {
        add_slice(node, cost.first_position, is_fixed ? first : std::max(first, seen), slice_end, block);
      } else if (is_fixed) {
        slices_.push_back({.first_row = row, .end_row = end_row, .first_step = kNoStep});
      }
    }
  }
}

/// Adds tokens `first` to `end` - 1 of a node, which begins at `first_position`, for a block of its rows, and the item.
void TreePlanner::add_slice(const SnapshotNode& node, int first_position, int first, int end,
                            const Block& block) {
  const bool grows = node.num_new == 1;
  TreeItem item{.first_page = node.first_page + first / kKvPageTokens,
                .tokens = std::min(node.num_tokens, end) - first,
                .capacity = end - first,
                .first_row = block.first_row,
                .end_row = block.end_row,
                .first_partial = partials_per_head_,
                .undivided = limits_.rule == SliceRule::kFixed ? 1 : 0,
                .first_position = first_position + first,
                .least_query = block.least_query};
  if (grows && is_appended_to(item)) {
    item.first_new = node.first_row;
    item.end_new = node.end_row;
  } else if (!grows && node.num_tokens < end) {
    item.first_new = node.first_row + std::max(0, first - node.num_tokens);
    item.end_new = node.first_row + end - node.num_tokens;
    if (item.tokens <= 0)
      item.first_row = std::max(block.first_row, item.first_new);  // rows before see nothing of it
    if (item.first_row >= block.end_row) return;
    item.tokens = std::max(0, item.tokens);
    item.capacity = item.tokens + item.end_new - item.first_new;
    item.end_new = std::min(item.end_new, block.end_row);  // a row sees none of the rows behind it
  }
  slices_.push_back({.first_row = item.first_row,
                     .end_row = block.end_row,
                     .first_partial = partials_per_head_,
                     .first_step = std::max(0, -item.tokens)});
  works_.push_back({.item = item, .cost_ps = cost_ps(item)});
  partials_per_head_ += block.end_row - item.first_row;
}

// ---- Deal

/// Longest first, each to the least loaded CTA; ties: the earlier item, the lower KV head, the lower CTA.
void TreePlanner::deal() {
  order_.resize(works_.size());
  std::iota(order_.begin(), order_.end(), 0);
  std::sort(order_.begin(), order_.end(), [&](int32_t a, int32_t b) {
    return works_[a].cost_ps != works_[b].cost_ps ? works_[a].cost_ps > works_[b].cost_ps : a < b;
  });
  loads_.resize(shape_.num_ctas);
  std::iota(loads_.begin(), loads_.end(), 0);
  dealt_.resize(works_.size() * shape_.num_kv_heads);
  int64_t total = 0;
  size_t next = 0;
  for (const int32_t index : order_) {
    const int64_t cost = works_[index].cost_ps;
    total += cost * shape_.num_kv_heads;
    for (int head = 0; head < shape_.num_kv_heads; ++head) {
      dealt_[next++] = static_cast<int32_t>(loads_[0] % kMaxCtas);
      add_to_least(loads_, static_cast<uint64_t>(cost) << kCtaBits);
    }
  }
  const int64_t longest = order_.empty() ? 0 : works_[order_[0]].cost_ps;
  planned_.makespan_ps =
      shape_.reaches.size() > 1
          ? mean_makespan()
          : static_cast<int64_t>(*std::max_element(loads_.begin(), loads_.end()) >> kCtaBits);
  planned_.bound_ps = std::max((total + shape_.num_ctas - 1) / shape_.num_ctas, longest);
}

/// Sorts the items by CTA; of one CTA those that are appended to come last.
void TreePlanner::write_items(TreePlan& plan) {
  cursors_.assign(2 * shape_.num_ctas + 1, 0);
  const auto bin = [&](const TreeItem& item, int32_t cta) {
    return 2 * cta + (is_appended_to(item) ? 1 : 0);
  };
  size_t next = 0;
  for (const int32_t index : order_) {
    for (int head = 0; head < shape_.num_kv_heads; ++head)
      ++cursors_[bin(works_[index].item, dealt_[next++]) + 1];
  }
  std::partial_sum(cursors_.begin(), cursors_.end(), cursors_.begin());
  plan.first_item.resize(shape_.num_ctas + 1);
  for (int cta = 0; cta <= shape_.num_ctas; ++cta) plan.first_item[cta] = cursors_[2 * cta];
  plan.items.resize(next);
  next = 0;
  for (const int32_t index : order_) {
    TreeItem item = works_[index].item;
    for (item.kv_head = 0; item.kv_head < shape_.num_kv_heads; ++item.kv_head) {
      plan.items[cursors_[bin(item, dealt_[next++])]++] = item;
      if (item.first_partial >= 0) item.first_partial += partials_per_head_;
    }
  }
}

void TreePlanner::write_rows(const TreeSnapshot& tree, TreePlan& plan) {
  plan.rows.clear();
  plan.merges.clear();
  int32_t node = -1;
  for (const SnapshotRow& row : tree.rows) {
    if (row.node != node) {
      node = row.node;
      path_.clear();
      for (int32_t at = node; at >= 0; at = tree.nodes[at].parent) path_.push_back(at);
    }
    const auto index = static_cast<int32_t>(plan.rows.size());
    const auto first_merge = static_cast<int32_t>(plan.merges.size());
    for (size_t i = path_.size(); i-- > 0;) {
      const NodeSlices& slices = node_slices_[path_[i]];
      for (int32_t s = slices.first; s < slices.end; ++s) {
        if (index < slices_[s].first_row || index >= slices_[s].end_row) continue;
        if (slices_[s].first_partial < 0) continue;  // an item ends the row
        plan.merges.push_back(
            {slices_[s].first_partial + index - slices_[s].first_row, slices_[s].first_step});
      }
    }
    plan.rows.push_back({.position = row.position,
                         .slot = tree.nodes[node].num_tokens + row.draft,
                         .first_page = tree.nodes[node].first_page,
                         .seen_end = row.seen_end,
                         .first_merge = first_merge,
                         .end_merge = static_cast<int32_t>(plan.merges.size()),
                         .branch = row.branch,
                         .draft = row.draft});
  }
}

}  // namespace soliton
