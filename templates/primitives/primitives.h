// The operations of the machine that kernels are written against. Two implementations: cuda.h (PTX, sm_80 and up)
// and host.h (fibers on a CPU, with a race detector). Everything a kernel reads or writes outside its
// registers goes through these functions, so that the emulation sees it.
//
// Memory model that kernels may rely on, which host.h checks and cuda.h provides:
//  - A load that has returned is performed: accesses that follow it in the thread, or in threads it then releases
//    through a Barrier, come after it. (Loads are never satisfied from older state than one already observed.)
//  - Stores to global memory become visible to other CTAs in any order, unless fence_device() stands between them.
//    So what a thread (or a thread that released it through a Barrier) stored before its fence is ordered before
//    what it stores after the fence, for whoever observes the latter with load_relaxed().
//  - load_relaxed and store_relaxed of one address never race, nor do additions. Any other pair of accesses to
//    one address, of which one is a write, must be ordered by the rules above, a Barrier, a warp collective or program order.
//  - Several cards: a store to another card's memory arrives there at any time, and in any order, but for what
//    fence_system(), or the release of add_release_system(), comes between; so does what is told to another card of
//    stores to one's own. Accesses of different cards to one address race unless both are of system scope.
//  - copy_page reads global memory through the asynchronous proxy: what it reads must have been stored before a
//    fence_device() of the storing thread, and observed by this CTA before fence_async_global(). Copies of pieces read like
//    loads of their lane; what they write is there for it after wait_copies(), and for others after what it then does.
//
// Contract (T is any trivially copyable type of 2, 4, 8 or 16 bytes, naturally aligned):
//
//   int thread_index(), cta_index(), num_ctas();      thread within the CTA; lane = thread_index() % 32
//   unsigned char* shared_memory();                   dynamic shared memory of this CTA, 1024-byte aligned
//   int opaque(int value);                             the same value, opaque to the optimiser
//   void demand(bool holds, const char* what);        where it does not hold, the emulation ends the launch and says what was
//                                                     demanded; a card does not look
//   void cta_sync();                                  all threads of the CTA; set-up only
//
//   Warp collectives (all 32 lanes take part; each also orders the lanes' accesses):
//   void warp_sync();
//   bool elect_lane();                                true in the first lane alone, as the compiler knows
//   T shuffle(T value, int lane); T shuffle_xor(T value, int mask); T shuffle_down(T value, int delta);
//   bool warp_any(bool condition);
//   uint32_t warp_max(uint32_t value);
//   int32_t warp_sum(int32_t value);
//   int lowest_lane(bool condition);                  for which it is true; it is for some
//   void mma_bf16(float (&c)[4], uint4 a, uint2 b);   c += a b; m16n8k16, bf16 operands, fp32 accumulators
//   void mma_f16(float (&c)[4], uint4 a, uint2 b);    the same with f16 operands
//   void mma_u8_s8(int32_t (&c)[4], uint4 a, uint2 b);   c += a b; m16n8k32, a unsigned, b signed bytes
//   void mma_s8_s8(int32_t (&c)[4], uint4 a, uint2 b);   the same of signed bytes
//   MmaBatch batch; ... batch.end();                  in between, or while one lives, nobody looks at the sums of these, which
//                                                     outlive it: the emulation makes them all at its end
//   uint32_t transpose_8x8(uint32_t value);           movmatrix.sync.aligned.m8n8.trans.b16
//   uint4 load_matrices<kNextRows, kNextColumns>(const unsigned char* first, int lane);   ldmatrix.sync.aligned.m8n8.x4:
//                                                     four core matrices in shared memory, of 8 rows of 16 bytes: the
//                                                     first, those of the next 8 rows and of the next 16 bytes, so many
//                                                     bytes further, and that of both, as A operand of an mma
//
//   Warpgroups, of four warps (threads 128 i to 128 i + 127), all of which take part; compute capability 9.0 alone:
//   void warpgroup_multiply<kAdds = true>(float (&c)[rows / 2], uint4 a, CoreMatrices b);
//                                                     c += a b, or c = a b, asynchronously, bf16 operands; each
//                                                     warp as by mma_bf16 for all rows: c[4 n + i] is c[i] of rows
//                                                     8 n to 8 n + 7. b, in shared memory: k 0 to 7 of every row,
//                                                     16 bytes each, then k 8 to 15
//   void warpgroup_subtract(float (&c)[8], uint4 a, CoreMatrices b);   c -= a b, of 16 rows
//   void warpgroup_multiply_some<kRows>(float (&c)[32], uint4 a, CoreMatrices b);   64 rows of kRows that b has
//   void warpgroup_multiply_f16<kNextK, kNextRows>(c, a, b);   the same with f16 operands: b's core matrices of the next
//                                                     8 k, and of the next 8 rows, lie so many bytes further
//   void warpgroup_multiply_bytes<kSigned, kAdds>(int32_t (&c)[rows / 2], uint4 a, CoreMatrices b);
//                                                     the same of bytes, as by mma_s8_s8, or with a unsigned as by
//                                                     mma_u8_s8; b: k 0 to 15 of every row, then k 16 to 31
//   void warpgroup_fence();                           before the first of a set: its sums and a are as they were stored;
//   void warpgroup_fence(c, uint4 (&a)[n]);           with those of integers, as the compiler has to know
//   void warpgroup_commit();                          the products since the call before are a set
//   void warpgroup_wait<kAll = true>(c);              until all sets are done, or all but the last, with sums c. Before
//                                                     that nobody looks at their sums, nor writes where b is
//   void warpgroup_wait_but_last();                   the same of all sets but the last
//   CoreMatrices(const void* b), .behind(bytes)       operand b, the same in all lanes of a warp, and one behind it
//   void take_registers<n>(); give_registers<n>();    a warpgroup's share for the rest of the launch
//
//   Shared memory:    T load_shared(const T*); void store_shared(T*, T);
//                     uint32_t load_hint(const uint32_t*); void store_hint(uint32_t*, uint32_t);   no result may depend on it
//                     void add_shared(uint32_t*, uint32_t);                  these three are atomic, and order nothing
//   Global memory:    T load_constant(const T*);      never written during the launch
//                     T load_global(const T*);        ordinary load, L2 (not L1)
//                     void store_global(T*, T);       ordinary store
//                     T load_relaxed(const T*); void store_relaxed(T*, T);   atomic by word, gpu scope
//                     uint32_t load_acquire(const uint32_t*); void add_release(uint32_t*, uint32_t);
//                     void add_relaxed(uint64_t*, uint64_t);                 atomic, orders nothing
//                     T load_system(const T*); void store_system(T*, T);     host memory
//                     load_relaxed_system, store_relaxed_system, load_acquire_system, add_release_system,
//                     add_relaxed_system                                     the same of several cards: system scope
//                     void add_fenced_system(uint32_t*, uint32_t);           releases what this thread's last
//                                                                            fence_system() has ordered
//   void fence_device();                              orders this thread's earlier stores before its later ones
//   void fence_system();                              the same for whoever observes the latter from another card, and
//                                                     for stores to host memory
//   void fence_async_global();                        orders observed stores before later copy_page
//   void fence_async_shared();                        orders this thread's stores to shared memory before products of whoever
//                                                     observes them, and its accesses there before later copy_page.
//                                                     Neither waits for copies on their way, as a fence of both would
//
//   struct Barrier;                                   8 bytes in shared memory: an mbarrier
//   void barrier_init(Barrier*, int arrivals); void barrier_init_fence();
//   void barrier_init_warps(Barrier*, int warps);     for a Barrier on which warps arrive
//   void barrier_arrive(Barrier*, int times = 1);
//   void warp_arrive(Barrier*, int times = 1);        collective: one lane's arrivals, after all lanes' accesses
//   void warp_release(Barrier*, int times = 1);       the same, but lanes that are ahead of others need not wait for them
//   void warp_release_each(barrier_of, int count);    the same of the Barriers barrier_of(0) to barrier_of(count - 1), at most 32
//   void barrier_arrive_expect(Barrier*, int bytes);  arrives, and adds bytes to the transaction count
//   bool barrier_test(Barrier*, uint32_t parity);     has the phase of that parity completed? May suspend.
//   bool barrier_peek(Barrier*, uint32_t parity);     the same, never suspends
//   void copy_page(void* shared, const void* global, int bytes, Barrier*);   by one lane; bytes % 16 == 0; completes
//                                                     on the Barrier, on which one has arrived with the bytes
//   void copy_vector(void* shared, const void* global, int bytes, Barrier*); the same, for what all CTAs read
//   void prefetch_page(const void* global, int bytes);                       into L2; a hint: for what is read once,
//   void prefetch_vector(const void* global, int bytes);                     and for what all CTAs read
//   void copy_page_piece(void* shared, const void* global);                  16 bytes by this lane, asynchronously
//   void copy_vector_piece(void* shared, const void* global);
//   void commit_copies();                             the pieces up to here, since the call before, are a set
//   void wait_copies<kSets>();                        until this lane's sets but the last kSets have landed
//   void prefetch_line(const void* global);           128 bytes into L2; a hint
//
//   struct WaitBound { ... };                         made once per thread: make_wait_bound(WarpStatus* of the CTA)
//   void set_status(const WaitBound&, int step, int phase);   which phase the warp is in, for whoever reports its wait
//   void wait_barrier(Barrier*, uint32_t parity, const WaitSite&, const WaitBound&);
//   bool wait_barrier_unless(Barrier*, uint32_t parity, Barrier* stop, const WaitSite&, const WaitBound&, idle);
//                                                     false once the first phase of `stop` has completed instead;
//                                                     calls idle() between its looks
//   bool warp_wait_barrier_unless(...);               the same by all lanes of a warp; calls idle(number of looks before)
//   class Spin { explicit Spin(const WaitBound&); void pause(const WaitSite&); };   one per polling loop
//   void watch_waits(WarpStatus*, int num_warps, Barrier* ended, const LaunchParams&, uint32_t* claim);
//                                                     by one lane of the CTA: bounds all waits of its warps
//
//   float larger_of(float, float);                    of a NaN and a number the number
//   float larger_or_nan(float, float);                the NaN
//   float exp2_fast(float), log2_fast(float), rsqrt_fast(float), exp_fast(float);
//   float divide_fast(float, float); uint32_t time_ns();
//   void sleep_ns(uint32_t ns);                       for about as long, at most 1 ms
//   uint32_t pack_bf16(float low, float high);        round to nearest even
//   float bf16_to_float(uint16_t); uint16_t float_to_bf16(float);
//   uint32_t subtract_bf16(uint32_t a, uint32_t b);   of two bf16 each, a - b, rounded to nearest even
//   uint32_t multiply_bf16(uint32_t a, uint32_t b);   the same of a * b
//   uint32_t fma_bf16(uint32_t a, uint32_t b, uint32_t c);   the same of a * b + c
//   uint32_t pack_f16(float low, float high);         the same; beyond the range: the largest finite value
//   uint32_t multiply_f16(uint32_t a, uint32_t b);    of two f16 each
//   float f16_to_float(uint16_t); uint16_t float_to_f16(float);
//   uint32_t and_or(uint32_t a, uint32_t mask, uint32_t bits);   (a & mask) | bits, by one instruction
//   uint32_t choose_bytes(uint32_t low, uint32_t high, uint32_t choice);   byte i of the result is byte number
//                                                     choice >> 4 i & 7 of the 8 bytes of low and high
//   uint32_t float_bits(float); float float_from_bits(uint32_t);
//   int count_bits(uint32_t);                         that are 1
//
// A polling loop reads: Spin spin(bound); while (!condition()) spin.pause(site); A wait returns when it is
// satisfied. Waits only say what they wait for, in shared memory; one watching lane a CTA writes the
// StallReport and ends the kernel once nothing has moved for too long. In the emulation a wait hands over to
// another fiber, and a launch in which every fiber waits ends with the list of who waits for what.
#pragma once

#if defined(__CUDACC__)
#include "primitives/cuda.h"
#include "primitives/cuda_warpgroups.h"
#else
#include "primitives/host.h"
#include "primitives/host_warpgroups.h"
#endif
