// SOLITON_WIDE_VECTORS: has a host function compiled a second time, for the wider vectors that most but not all processors
// of this kind have; which one runs is found out when the program starts. AVX2 alone has no fused multiply-add, so that
// both round alike. Elsewhere, as on aarch64, there is one kind of vectors; so there is under the thread sanitizer, which
// begins only after that.
#pragma once

#if defined(__x86_64__) && !defined(__SANITIZE_THREAD__)
#define SOLITON_WIDE_VECTORS __attribute__((target_clones("avx2", "default")))
#else
#define SOLITON_WIDE_VECTORS
#endif
