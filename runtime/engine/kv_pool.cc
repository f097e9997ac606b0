#include "runtime/engine/kv_pool.h"

namespace soliton {

int64_t KvPool::bytes(const KernelLibrary& library, int num_pages) {
  return library.card_kv().page_offset(num_pages, 0, 0);
}

KvPool::KvPool(const KernelLibrary& library, int num_pages)
    : memory_(library.functions(), static_cast<size_t>(bytes(library, num_pages))) {
  // Whole pages are copied and their unused tokens masked; a NaN there would still reach the sums.
  library.check(library.functions().fill(address(), 0, num_bytes()), "clear the KV cache");
}

}  // namespace soliton
