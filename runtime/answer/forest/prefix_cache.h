// Which tokens the KV pages hold: a radix tree over the branches of a KvTree. A branch in use belongs to a sequence that
// is fed or decoded; one that is not keeps what it holds until its pages are wanted, the least recently used first. A
// new sequence begins with as many tokens as some branch has in common with it, be it in use or not: whole pages are
// shared, the rest of the last one is copied. Branches are found by hashes of their first tokens, a few and then 1, 2, 3, ...
// pages, and compared token by token: a hash that two have in common costs time and never a wrong answer. Of layers with a
// window a branch may have no more than what its last token reaches: then a sequence begins with as many tokens as can be gone on
// from (KvTree::usable_tokens()), and the rest is fed anew. Each branch is of
// a scope, the empty one unless told, and nobody finds what another scope has, not even by the time that it takes.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "runtime/engine/common_tokens.h"
#include "runtime/engine/tree/kv_tree.h"

namespace soliton {

class PrefixCache {
 public:
  /// That a sequence has in common with another one at least: to copy fewer saves nothing worth a page that is kept.
  static constexpr int kLeastTokens = 16;

  /// Of a tree without branches, all of whose branches are made here. It must outlive the cache.
  explicit PrefixCache(KvTree& tree) : tree_(tree) {}

  /// How many first tokens start() would find cached. Never all: the last one has to be fed to go on. Fewer than
  /// kLeastTokens are none.
  int match(std::span<const int32_t> tokens, std::string_view scope = {}) const {
    return find(tokens, scope).num_tokens;
  }
  /// The same, if it would be shared with a branch in use.
  int match_in_use(std::span<const int32_t> tokens, std::string_view scope = {}) const;

  struct Start {
    Branch branch = 0;
    int num_cached = 0;  // tokens that it holds
  };
  /// A branch in use that begins with what is cached of the tokens, of which there is at least one.
  Start start(std::span<const int32_t> tokens, std::string_view scope = {});
  /// A branch in use that begins with all that another one in use holds, of the same scope. Throws Error (kOutOfMemory) if there is no page
  /// for what is copied.
  Branch branch_off(Branch from);
  /// Notes that a branch has been fed these tokens.
  void append(Branch branch, std::span<const int32_t> tokens);
  /// The branch is not used any more: it waits, without a row, for those who begin with its tokens.
  void release(Branch branch);

  /// A branch in use ends, and nothing of it is kept.
  void discard(Branch branch);

  /// Frees pages, the least recently used first, until so many are free. Returns false if what is in use leaves fewer.
  bool make_room(const PageNeed& need);
  /// Pages of branches in use.
  int num_pages_in_use() const;
  /// Branches that are kept for those to come.
  int num_kept() const { return static_cast<int>(kept_.size()); }
  /// Branches that make_room() has ended so far.
  int64_t num_evicted() const { return num_evicted_; }

 private:
  struct Entry {
    std::string scope;
    std::vector<int32_t> tokens = {};
    std::vector<uint64_t> hashes =
        {};  // of the scope and its first kLeastTokens, and 1, 2, 3, ... whole pages
    bool in_use = true;
    uint64_t used_at = 0;
  };
  struct Match {
    Branch branch = -1;
    int num_tokens = 0;
  };

  Match find(std::span<const int32_t> tokens, std::string_view scope) const;
  bool is_better(const Match& match, const Match& than) const;
  template <class HasRoom>
  bool make_room_beside(Branch kept, const HasRoom& has_room);
  Branch begin(std::string_view scope);
  Branch add(Branch from, int num_tokens);
  void use(Branch branch);
  void evict(Branch branch);

  KvTree& tree_;
  std::map<Branch, Entry> entries_;
  std::set<std::pair<uint64_t, Branch>> hashes_;  // of first tokens, and who has them
  std::set<std::pair<uint64_t, Branch>> kept_;    // when used last, and which
  uint64_t clock_ = 0;
  int64_t num_evicted_ = 0;
};

}  // namespace soliton
