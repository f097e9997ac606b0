// The pages of layers with a window: which are still needed, which may stand for later ones, and which go when room is wanted.
// A window page stands for several pages of a node while the later of them are reserved and not yet begun: until then the
// first of them is still there.
#include <algorithm>
#include <limits>
#include <tuple>

#include "layout/page.h"
#include "models/error.h"
#include "runtime/engine/tree/kv_tree.h"

namespace soliton {

/// For each page that a node would have from its last window page on: the page whose place it may take, or kNone where it takes
/// a free one. Places are taken in order.
std::vector<int32_t> KvTree::predecessors(const Node& node, size_t num_pages) const {
  const size_t first = node.window_pages.size();
  std::vector<int32_t> found(num_pages > first ? num_pages - first : 0, kNone);
  if (found.empty() || !gives_up()) return found;
  std::vector<int32_t> holding;  // pages whose window page stands for no later one, in order
  std::vector<bool> is_later(static_cast<size_t>(windows_.num_pages));
  for (size_t i = first; i-- > 0;) {
    const int32_t page = node.window_pages[i];
    if (page == kNone || is_later[page]) continue;
    is_later[page] = true;
    holding.push_back(static_cast<int32_t>(i));
  }
  std::reverse(holding.begin(), holding.end());
  size_t next = 0;
  for (size_t i = 0; i < found.size(); ++i) {
    const auto index = static_cast<int32_t>(first + i);
    if (next < holding.size() && holding[next] <= index - windows_.reach) found[i] = holding[next++];
    holding.push_back(index);
  }
  return found;
}

/// Window pages that could go. With `also`, what a branch that ended there would need is needed too.
std::vector<KvTree::Unneeded> KvTree::unneeded(std::optional<TokenEnd> also) const {
  constexpr int kNobody = std::numeric_limits<int>::max();
  std::vector<int> first(nodes_.size());            // positions at which nodes begin,
  std::vector<int> needed(nodes_.size(), kNobody);  // and from which on branches need them
  std::vector<int32_t> order = {kRoot};
  for (size_t i = 0; i < order.size(); ++i) {
    const Node& node = nodes_[order[i]];
    const int end = first[order[i]] + node.num_tokens;
    if (node.branch != kNone) needed[order[i]] = end - windows_.window + 1;
    for (int32_t child = node.first_child; child != kNone; child = nodes_[child].next) {
      first[child] = end;
      order.push_back(child);
    }
  }
  const auto need = [&](int32_t node, int position) { needed[node] = std::min(needed[node], position); };
  for (size_t i = order.size(); i-- > 1;) need(nodes_[order[i]].parent, needed[order[i]]);
  if (also) {
    const int position = first[also->node] + also->num_tokens - windows_.window + 1;
    for (int32_t at = also->node; at != kNone; at = nodes_[at].parent) need(at, position);
  }
  std::vector<Unneeded> found;
  for (const int32_t index : order) {
    const Node& node = nodes_[index];
    const auto begun = static_cast<size_t>(ceil_divide(node.num_tokens, kKvPageTokens));
    for (size_t i = 0; i < std::min(begun, node.window_pages.size()); ++i) {
      const int end = std::min((static_cast<int>(i) + 1) * kKvPageTokens, node.num_tokens);
      const int32_t page = node.window_pages[i];
      if (first[index] + end > needed[index]) break;
      if (page == kNone || holders_[page] > 1) continue;
      const int distance = node.num_tokens - end;
      const bool before_fork = node.branch == kNone && distance < windows_.window;
      found.push_back({.before_fork = before_fork,
                       .num_branches = before_fork ? node.num_branches : 0,
                       .distance = distance,
                       .node = index,
                       .index = static_cast<int32_t>(i)});
    }
  }
  return found;
}

/// Of pages with a window also those of its own that it takes over and that could go now.
PageNeed KvTree::missing(Branch branch, int num_tokens) const {
  const Node& node = node_of(branch);
  PageNeed need{.pages = missing_pages(node, num_tokens)};
  if (windows_.window == 0) return need;
  const auto own = static_cast<int32_t>(node.window_pages.size());
  for (const int32_t before : predecessors(node, node.pages.size() + static_cast<size_t>(need.pages))) {
    const bool is_unneeded =
        before < own && (before + 1) * kKvPageTokens <= node.num_tokens - windows_.window + 1;
    if (before == kNone || is_unneeded) ++need.window_pages;
  }
  return need;
}

bool KvTree::has_room(const PageNeed& need) const {
  if (need.pages > num_free_pages()) return false;
  const int further = need.window_pages - static_cast<int>(free_window_pages_.size());
  return further <= 0 || further <= std::ssize(unneeded());
}

bool KvTree::can_branch_off(Branch branch, int num_tokens) const {
  if (usable_tokens(branch, num_tokens) != num_tokens) return false;
  const TokenEnd end = find(branch, num_tokens);
  const bool is_whole = nodes_[end.node].branch == kNone && end.num_tokens == nodes_[end.node].num_tokens;
  if (is_whole || end.num_tokens % kKvPageTokens == 0) return true;
  return num_free_pages() > 0 &&
         (windows_.window == 0 || !free_window_pages_.empty() || !unneeded(end).empty());
}

int KvTree::usable_tokens(Branch branch, int num_tokens) const {
  int32_t at = index_of(branch);
  int first = first_position(at);
  int usable = std::min(num_tokens, first + nodes_[at].num_tokens);
  while (windows_.window > 0) {
    const Node& node = nodes_[at];
    for (int page = ceil_divide(node.num_tokens, kKvPageTokens); page-- > 0;) {
      if (node.window_pages[static_cast<size_t>(page)] != kNone) continue;
      const int begin = first + page * kKvPageTokens;
      const int end = first + std::min((page + 1) * kKvPageTokens, node.num_tokens);
      // The first key that a token at `usable` sees is at usable - window + 1.
      if (begin < usable && usable - windows_.window + 1 < end) usable = begin;
    }
    at = node.parent;
    if (at == kNone || at == kRoot) break;
    first -= nodes_[at].num_tokens;
  }
  return usable;
}

/// Makes sure that there are window pages for leaves that grow by so many tokens. Throws if there are too few.
void KvTree::expect_windows(std::span<const std::pair<int32_t, int>> growing, std::optional<TokenEnd> also) {
  if (windows_.window == 0) return;
  int missing = -static_cast<int>(free_window_pages_.size());
  std::vector<bool> is_taken(static_cast<size_t>(windows_.num_pages));  // by a later page of the same node
  for (const auto& [index, num_tokens] : growing) {
    const Node& node = nodes_[index];
    const auto own = static_cast<int32_t>(node.window_pages.size());
    const auto num_pages = node.pages.size() + static_cast<size_t>(missing_pages(node, num_tokens));
    for (const int32_t before : predecessors(node, num_pages)) {
      missing += before == kNone ? 1 : 0;
      if (before != kNone && before < own) is_taken[node.window_pages[before]] = true;
    }
  }
  if (missing <= 0) return;
  std::vector<Unneeded> found = unneeded(also);
  std::erase_if(found, [&](const Unneeded& at) { return is_taken[nodes_[at.node].window_pages[at.index]]; });
  give_up_unneeded(missing, std::move(found));
}

/// Frees so many of these window pages.
void KvTree::give_up_unneeded(int count, std::vector<Unneeded> found) {
  if (count > std::ssize(found)) {
    throw Error(ExitCode::kOutOfMemory,
                fmt::format("KV pool of {} pages of windows: expected at most {} further ones, got {}",
                            windows_.num_pages, free_window_pages_.size() + found.size(),
                            free_window_pages_.size() + static_cast<size_t>(count)));
  }
  const auto goes_first = [](const Unneeded& a, const Unneeded& b) {
    const auto key = [](const Unneeded& at) {
      return std::tuple(at.before_fork, at.num_branches, at.before_fork ? at.node : 0, -at.distance, at.node);
    };
    return key(a) < key(b);
  };
  std::partial_sort(found.begin(), found.begin() + count, found.end(), goes_first);
  for (int i = 0; i < count; ++i) {
    int32_t& page = nodes_[found[i].node].window_pages[found[i].index];
    release_window_page(page);
    page = kNone;
  }
}

/// Gives each page of a leaf a window page; there are enough.
void KvTree::grow_windows(Node& node) {
  if (windows_.window == 0) return;
  for (const int32_t before : predecessors(node, node.pages.size())) {
    int32_t page = kNone;
    if (before == kNone) {
      page = free_window_pages_.back();
      free_window_pages_.pop_back();
    } else {
      page = node.window_pages[before];
    }
    ++holders_[page];
    node.window_pages.push_back(page);
  }
}

/// Gives back the window pages behind a node's first tokens.
void KvTree::trim_windows(Node& node, int num_tokens) {
  while (std::ssize(node.window_pages) > ceil_divide(num_tokens, kKvPageTokens)) {
    const int32_t page = node.window_pages.back();
    if (page != kNone) release_window_page(page);
    node.window_pages.pop_back();
  }
}

/// Pages of a node whose place another one has taken among those of its first `num_tokens` slots, which have been written or
/// will be: they are gone.
void KvTree::give_up_written(Node& node, int num_tokens) {
  if (!gives_up()) return;
  std::vector<bool> is_later(static_cast<size_t>(windows_.num_pages));
  const auto begun = static_cast<size_t>(ceil_divide(num_tokens, kKvPageTokens));
  for (size_t i = std::min(begun, node.window_pages.size()); i-- > 0;) {
    int32_t& page = node.window_pages[i];
    if (page == kNone || holders_[page] == 1) continue;
    if (!is_later[page]) {
      is_later[page] = true;
      continue;
    }
    release_window_page(page);
    page = kNone;
  }
}

void KvTree::note_written(Branch branch, int num_tokens) {
  Node& node = node_of(branch);
  give_up_written(node, node.num_tokens + num_tokens);
}

/// By one of those that it stands for.
void KvTree::release_window_page(int32_t page) {
  if (--holders_[page] == 0) free_window_pages_.push_back(page);
}

}  // namespace soliton
