#include "runtime/engine/kv_pool.h"

namespace soliton {

KvShape window_layers(const KernelLibrary& library) {
  return library.card_kv().of_layers(num_window_layers(library.model().facts));
}

KvShape full_layers(const KernelLibrary& library) {
  const KvShape all = library.card_kv();
  return all.of_layers(all.num_layers - window_layers(library).num_layers);
}

int64_t KvPool::bytes(const KernelLibrary& library, const PoolPages& pages) {
  return pool_bytes(library.model().facts, library.card_kv(), pages);
}

KvPool::KvPool(const KernelLibrary& library, const PoolPages& pages)
    : memory_(library.functions(), static_cast<size_t>(bytes(library, pages))),
      windows_offset_(static_cast<size_t>(full_layers(library).page_offset(pages.all, 0, 0))) {
  // Whole pages are copied and their unused tokens masked; a NaN there would still reach the sums.
  library.check(library.functions().fill(address(), 0, num_bytes()), "clear the KV cache");
}

}  // namespace soliton
