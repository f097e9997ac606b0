#include "runtime/answer/forest/prefix_cache.h"

#include <functional>

#include "layout/page.h"
#include "models/error.h"

namespace soliton {
namespace {

constexpr Branch kNoBranch = -1;
constexpr int kMaxCandidates = 32;  // that are compared, of all with the same hash

/// Tokens that the hash number `index` of a branch covers: a few, so that short prompts are found too, or whole pages.
constexpr size_t end_of_hash(size_t index) {
  return index == 0 ? PrefixCache::kLeastTokens : index * kKvPageTokens;
}
constexpr size_t begin_of_hash(size_t index) {
  return index == 0 ? 0 : end_of_hash(index - 1);
}

/// Before the first token. The empty scope's is 0.
uint64_t hash_scope(std::string_view scope) {
  return scope.empty() ? 0 : std::hash<std::string_view>()(scope);
}

/// Of the tokens so far and those up to the end of a further hash.
uint64_t hash_further(uint64_t hash, std::span<const int32_t> tokens, size_t index) {
  constexpr uint64_t kMultiplier = 0x9e3779b97f4a7c15u;
  const size_t begin = begin_of_hash(index);
  for (const int32_t token : tokens.subspan(begin, end_of_hash(index) - begin)) {
    hash = (hash ^ static_cast<uint32_t>(token)) * kMultiplier;
    hash ^= hash >> 29;
  }
  return hash;
}

}  // namespace

/// Of two that have as many tokens, the one that can be taken over as it is.
bool PrefixCache::is_better(const Match& match, const Match& than) const {
  if (match.num_tokens != than.num_tokens) return match.num_tokens > than.num_tokens;
  const Entry& entry = entries_.at(match.branch);
  return !entry.in_use && std::ssize(entry.tokens) == match.num_tokens;
}

PrefixCache::Match PrefixCache::find(std::span<const int32_t> tokens, std::string_view scope) const {
  if (tokens.empty()) return {};
  const std::span<const int32_t> wanted = tokens.first(tokens.size() - 1);
  auto deepest = hashes_.end();
  uint64_t hash = hash_scope(scope);
  for (size_t i = 0; end_of_hash(i) <= wanted.size(); ++i) {
    hash = hash_further(hash, wanted, i);
    const auto found = hashes_.lower_bound({hash, kNoBranch});
    if (found == hashes_.end() || found->first != hash) break;
    deepest = found;
  }
  Match best;
  if (deepest == hashes_.end()) return best;
  const uint64_t wanted_hash = deepest->first;
  for (int i = 0; i < kMaxCandidates && deepest != hashes_.end() && deepest->first == wanted_hash;
       ++i, ++deepest) {
    const Entry& entry = entries_.at(deepest->second);
    if (entry.scope != scope) continue;
    const Match match{deepest->second,
                      tree_.usable_tokens(deepest->second, num_common_tokens(wanted, entry.tokens))};
    if (match.num_tokens >= kLeastTokens && is_better(match, best)) best = match;
  }
  return best;
}

int PrefixCache::match_in_use(std::span<const int32_t> tokens, std::string_view scope) const {
  const Match match = find(tokens, scope);
  return match.branch != kNoBranch && entries_.at(match.branch).in_use ? match.num_tokens : 0;
}

/// Ends branches until has_room(), but for one.
template <class HasRoom>
bool PrefixCache::make_room_beside(Branch kept, const HasRoom& has_room) {
  while (!has_room()) {
    auto oldest = kept_.begin();
    if (oldest != kept_.end() && oldest->second == kept) ++oldest;
    if (oldest == kept_.end()) return false;
    evict(oldest->second);
  }
  return true;
}

PrefixCache::Start PrefixCache::start(std::span<const int32_t> tokens, std::string_view scope) {
  if (tokens.empty()) throw Error(ExitCode::kInternal, "prefix cache: expected at least one token, got none");
  const Match match = find(tokens, scope);
  if (match.branch == kNoBranch) return {begin(scope), 0};
  Entry& entry = entries_.at(match.branch);
  use(match.branch);
  if (!entry.in_use && std::ssize(entry.tokens) == match.num_tokens) {
    kept_.erase({entry.used_at, match.branch});
    entry.in_use = true;
    return {match.branch, match.num_tokens};
  }
  // Without a page for the copy, what would be copied is fed instead.
  int num_tokens = match.num_tokens;
  const auto has_room = [&] { return tree_.can_branch_off(match.branch, num_tokens); };
  while (!make_room_beside(match.branch, has_room)) {
    const int before = num_tokens % kKvPageTokens == 0 ? num_tokens - 1 : num_tokens;
    num_tokens = tree_.usable_tokens(match.branch, before / kKvPageTokens * kKvPageTokens);
  }
  return {num_tokens > 0 ? add(match.branch, num_tokens) : begin(scope), num_tokens};
}

/// An entry without tokens.
Branch PrefixCache::begin(std::string_view scope) {
  const Branch branch = tree_.open();
  entries_.insert_or_assign(branch, Entry{.scope = std::string(scope)});
  return branch;
}

Branch PrefixCache::branch_off(Branch from) {
  const auto num_tokens = static_cast<int>(std::ssize(entries_.at(from).tokens));
  make_room_beside(from, [&] { return tree_.can_branch_off(from, num_tokens); });
  return add(from, num_tokens);
}

/// An entry that begins with the first tokens of another one.
Branch PrefixCache::add(Branch from, int num_tokens) {
  const Branch branch = tree_.branch_off(from, num_tokens);
  const std::vector<int32_t> all = entries_.at(from).tokens;
  entries_.insert_or_assign(branch, Entry{.scope = entries_.at(from).scope});
  append(branch, std::span(all).first(static_cast<size_t>(num_tokens)));
  return branch;
}

void PrefixCache::append(Branch branch, std::span<const int32_t> tokens) {
  Entry& entry = entries_.at(branch);
  entry.tokens.insert(entry.tokens.end(), tokens.begin(), tokens.end());
  const std::span<const int32_t> all = entry.tokens;
  for (size_t i = entry.hashes.size(); end_of_hash(i) <= all.size(); ++i) {
    const uint64_t before = entry.hashes.empty() ? hash_scope(entry.scope) : entry.hashes.back();
    entry.hashes.push_back(hash_further(before, all, i));
    hashes_.insert({entry.hashes.back(), branch});
  }
}

void PrefixCache::release(Branch branch) {
  Entry& entry = entries_.at(branch);
  // What a step had begun with and not ended is in the tree alone.
  if (tree_.num_tokens(branch) != std::ssize(entry.tokens)) {
    throw Error(ExitCode::kInternal, fmt::format("prefix cache: expected {} tokens in branch {}, got {}",
                                                 entry.tokens.size(), branch, tree_.num_tokens(branch)));
  }
  entry.in_use = false;
  use(branch);
  if (entry.hashes.empty()) return discard(branch);  // nobody would find it
  tree_.truncate(branch, tree_.num_tokens(branch));  // gives back what is reserved
  tree_.draft(branch, {});
}

void PrefixCache::discard(Branch branch) {
  evict(branch);
  --num_evicted_;
}

/// Notes that a branch is wanted now.
void PrefixCache::use(Branch branch) {
  Entry& entry = entries_.at(branch);
  if (!entry.in_use) kept_.erase({entry.used_at, branch});
  entry.used_at = ++clock_;
  if (!entry.in_use) kept_.insert({entry.used_at, branch});
}

void PrefixCache::evict(Branch branch) {
  const Entry& entry = entries_.at(branch);
  for (const uint64_t hash : entry.hashes) hashes_.erase({hash, branch});
  kept_.erase({entry.used_at, branch});
  entries_.erase(branch);
  tree_.prune(branch);
  ++num_evicted_;
}

bool PrefixCache::make_room(const PageNeed& need) {
  return make_room_beside(kNoBranch, [&] { return tree_.has_room(need); });
}

int PrefixCache::num_pages_in_use() const {
  std::vector<Branch> branches;
  for (const auto& [branch, entry] : entries_) {
    if (entry.in_use) branches.push_back(branch);
  }
  return tree_.num_pages_of(branches);
}

}  // namespace soliton
