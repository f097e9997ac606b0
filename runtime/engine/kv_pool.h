// Device memory for KV pages: 64 tokens each, K and V of all KV heads and of the layers without a window; and behind these
// the pages of layers with one, see KvShape.
#pragma once

#include "models/kv_pages.h"
#include "runtime/device/kernel_library.h"

namespace soliton {

class KvPool {
 public:
  /// On the card that this thread has entered. Throws Error (kOutOfMemory).
  KvPool(const KernelLibrary& library, const PoolPages& pages);

  /// On one card.
  static int64_t bytes(const KernelLibrary& library, const PoolPages& pages);

  void* address() const { return memory_.as<void>(); }
  /// Of the pages of layers with a window.
  void* windows() const { return memory_.as<std::byte>() + windows_offset_; }
  size_t num_bytes() const { return memory_.bytes(); }

 private:
  DeviceMemory memory_;
  size_t windows_offset_;
};

/// Of the layers of a card's cache that have no window, and of those that have one.
KvShape full_layers(const KernelLibrary& library);
KvShape window_layers(const KernelLibrary& library);

}  // namespace soliton
