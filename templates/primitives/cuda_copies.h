// The primitives' copies to shared memory and to L2 on an NVIDIA GPU, a part of cuda.h.
#pragma once

#include "primitives/cuda_waits.h"

namespace soliton {

/// Weights and KV pages are read once a token: they should leave L2 first.
SOLITON_DEVICE void copy_page(void* shared, const void* global, int bytes, Barrier* barrier) {
  constexpr uint64_t policy =
      0x12f0000000000000;  // what createpolicy.fractional.L2::evict_first gives for all
  asm volatile(
      "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.L2::cache_hint [%0], [%1], %2, "
      "[%3], %4;" ::"r"(shared_address(shared)),
      "l"(global), "r"(bytes), "r"(shared_address(barrier)), "l"(policy)
      : "memory");
}

/// Activations are read by all CTAs, out of L2.
SOLITON_DEVICE void copy_vector(void* shared, const void* global, int bytes, Barrier* barrier) {
  asm volatile(
      "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(
          shared_address(shared)),
      "l"(global), "r"(bytes), "r"(shared_address(barrier))
      : "memory");
}

SOLITON_DEVICE void prefetch_page(const void* global, int bytes) {
  uint64_t policy;
  asm volatile("createpolicy.fractional.L2::evict_first.b64 %0, 1.0;" : "=l"(policy));
  asm volatile("cp.async.bulk.prefetch.L2.global.L2::cache_hint [%0], %1, %2;" ::"l"(global), "r"(bytes),
               "l"(policy)
               : "memory");
}
SOLITON_DEVICE void prefetch_line(const void* global) {
  asm volatile("prefetch.global.L2 [%0];" ::"l"(global) : "memory");
}
SOLITON_DEVICE void prefetch_vector(const void* global, int bytes) {
#if defined(SOLITON_SM_90)
  asm volatile("cp.async.bulk.prefetch.L2.global [%0], %1;" ::"l"(global), "r"(bytes) : "memory");
#else
  constexpr int kLineBytes = 128;
  for (int at = 0; at < bytes; at += kLineBytes) prefetch_line(static_cast<const char*>(global) + at);
#endif
}

// Copies of 16 bytes by one lane, past L1.

SOLITON_DEVICE void copy_page_piece(void* shared, const void* global) {
  uint64_t policy;
  asm("createpolicy.fractional.L2::evict_first.b64 %0, 1.0;" : "=l"(policy));
  asm volatile("cp.async.cg.shared.global.L2::cache_hint [%0], [%1], 16, %2;" ::"r"(shared_address(shared)),
               "l"(global), "l"(policy)
               : "memory");
}
SOLITON_DEVICE void copy_vector_piece(void* shared, const void* global) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(shared_address(shared)), "l"(global)
               : "memory");
}
SOLITON_DEVICE void commit_copies() {
  asm volatile("cp.async.commit_group;" ::: "memory");
}
template <int kSets>
SOLITON_DEVICE void wait_copies() {
  asm volatile("cp.async.wait_group %0;" ::"n"(kSets) : "memory");
}

}  // namespace soliton
