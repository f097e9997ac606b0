// Device memory for KV pages: 64 tokens each, K and V of all layers and KV heads, see KvShape.
#pragma once

#include "runtime/device/kernel_library.h"

namespace soliton {

class KvPool {
 public:
  /// Of `num_pages` pages, on the card that this thread has entered. Throws Error (kOutOfMemory).
  KvPool(const KernelLibrary& library, int num_pages);

  /// On one card.
  static int64_t bytes(const KernelLibrary& library, int num_pages);

  void* address() const { return memory_.as<void>(); }
  size_t num_bytes() const { return memory_.bytes(); }

 private:
  DeviceMemory memory_;
};

}  // namespace soliton
