#include "runtime/kv_cache.h"

#include "layout/page.h"
#include "runtime/error.h"

namespace soliton {

int64_t KvCache::pool_bytes(const ModelFacts& facts, int context) {
  return kv_page_offset(ceil_divide(context, kKvPageTokens), 0, 0, facts.num_layers, facts.num_kv_heads,
                        facts.head_dim);
}

KvCache::KvCache(const KernelLibrary& library, int context)
    : library_(library),
      context_(context),
      pool_(library.functions(), static_cast<size_t>(pool_bytes(library.descriptor().facts, context))),
      table_(library.functions(), ceil_divide(context, kKvPageTokens) * sizeof(int32_t)) {
  // Whole pages are copied and their unused tokens masked; a NaN there would still reach the sums.
  library.check(library.functions().fill(pool_.as<void>(), 0, pool_.bytes()), "clear the KV cache");
  library.check(library.functions().fill(table_.as<void>(), 0, table_.bytes()), "clear the page table");
  for (int page = ceil_divide(context, kKvPageTokens) - 1; page >= 0; --page) free_.push_back(page);
}

void KvCache::reserve(int num_tokens) {
  if (num_tokens > context_) {
    throw Error(ExitCode::kOutOfMemory,
                fmt::format("context: expected at most {} tokens (see -c), got {}", context_, num_tokens));
  }
  const size_t needed = static_cast<size_t>(ceil_divide(num_tokens, kKvPageTokens));
  if (needed <= pages_.size()) return;
  while (pages_.size() < needed) {
    pages_.push_back(free_.back());
    free_.pop_back();
  }
  library_.check(
      library_.functions().upload(table_.as<void>(), pages_.data(), pages_.size() * sizeof(int32_t)),
      "upload the page table");
}

void KvCache::truncate(int num_tokens) {
  const size_t kept = static_cast<size_t>(ceil_divide(num_tokens, kKvPageTokens));
  while (pages_.size() > kept) {
    free_.push_back(pages_.back());
    pages_.pop_back();
  }
}

}  // namespace soliton
