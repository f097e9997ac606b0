// The paged KV cache: a pool of pages of 64 tokens, each holding K and V of all layers and KV heads, and the
// table that maps positions to pages.
#pragma once

#include <cstdint>
#include <vector>

#include "runtime/kernel_library.h"

namespace soliton {

class KvCache {
 public:
  /// A pool for `context` tokens. Throws Error (kOutOfMemory).
  KvCache(const KernelLibrary& library, int context);

  /// Bytes of a pool for `context` tokens of a model.
  static int64_t pool_bytes(const ModelFacts& facts, int context);

  /// Makes sure that positions [0, num_tokens) have pages. Throws Error (kOutOfMemory), changing nothing, if
  /// the pool is too small.
  void reserve(int num_tokens);
  /// Gives back the pages of positions from num_tokens on.
  void truncate(int num_tokens);

  int context() const { return context_; }  // tokens
  void* pool() const { return pool_.as<void>(); }
  size_t pool_bytes() const { return pool_.bytes(); }
  const int32_t* device_table() const { return table_.as<int32_t>(); }

 private:
  const KernelLibrary& library_;
  int context_;
  DeviceMemory pool_;
  DeviceMemory table_;
  std::vector<int32_t> pages_;  // logical -> physical
  std::vector<int32_t> free_;   // physical pages, the next one last
};

}  // namespace soliton
