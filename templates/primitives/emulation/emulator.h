// The CPU that kernels run on when there is no GPU: every thread of every CTA is a fiber, all fibers share
// one OS thread, and a seeded scheduler picks who runs. This header is what host.h, host_library.h and tests
// see of it. Same kernel, options and input: same schedule, same result, same report. One launch at a time in
// a process.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "layout/launch.h"

namespace soliton {

/// When the bytes of copies arrive, and of stores to other cards.
enum class CopyPolicy : int32_t {
  kEager,   // when they are issued
  kLate,    // when no fiber can go on without it: copies one at a time
  kRandom,  // at any time, in any order
};

/// An error put into the machine on purpose, to show that the checks find it.
enum class FaultKind : int32_t {
  kNone,
  kSkipWait,             // wait_barrier returns at once for waits of kind `wait`
  kDropDeviceFence,      // fence_device does nothing
  kDropAsyncFence,       // fence_async_global does nothing
  kWeakenSystemFence,    // fence_system orders for this card alone
  kWeakenSystemRelease,  // add_release_system releases to this card alone
  kWeakenSystemAccess,   // loads and stores of system scope are of this card's
  kNoCopyWait,           // wait_copies returns at once
  kDropRelease,          // add_release orders nothing
  kDropProductFence,     // warpgroup_fence does nothing
  kDropProductCommit,    // warpgroup_commit does nothing
  kNoProductWait,        // warpgroup_wait returns at once
  kDropHints,            // store_hint of anything but 0 does nothing: no error, as nothing may depend on it
  kKeepMemory,           // Library::fill does nothing: a launch finds what the one before has left
  kKeepZeros,            // Library::fill of a part of what was filled with zeros last does nothing
  kBarrierCount,  // in every CTA, barrier_init number `ordinal` expects `delta` arrivals more than asked for
  kSpoilWord,  // in every CTA, who arrives there adds `delta` to the word at byte `place` of shared memory before
};

struct Fault {
  FaultKind kind = FaultKind::kNone;
  WaitKind wait = WaitKind::kNone;
  int32_t ordinal = 0;
  int32_t delta = 0;
  int32_t place = 0;
};

/// Read when a launch starts.
struct EmulationOptions {
  uint64_t seed = 1;  // initially SOLITON_EMULATION_SEED of the environment, if that is set
  CopyPolicy copies = CopyPolicy::kEager;
  bool check = false;             // bounds, alignment and races; slow
  bool delays_warps = false;      // one of every CTA, drawn from the seed, seldom goes on while others can
  int32_t delayed_cta = -1;       // if it is not -1: only one of this CTA, counted over all cards
  uint32_t goes_on_one_in = 256;  // of the turns of such a warp
  bool delays_stores = false;     // relaxed ones land as `copies` says, in any order but for fences
  int32_t preempt_percent = 10;   // of all primitives hand over to another fiber first; only with check
  int32_t stack_bytes = 32768;    // of each fiber
  Fault fault;
};

/// Counts of the launch that ended last.
struct EmulationStats {
  uint64_t switches = 0;     // from fiber to fiber
  uint64_t collectives = 0;  // of whole warps
  uint64_t copies = 0;
  uint64_t remote_stores = 0;  // to other cards, additions included
  uint64_t polls = 0;          // Spin::pause
};

/// What one barrier of the launch that ended last has seen.
struct BarrierCount {
  int cta = 0;
  int64_t offset = 0;     // of the Barrier in the CTA's shared memory
  int expected = 0;       // arrivals that complete a phase
  uint64_t phases = 0;    // completed
  uint64_t arrivals = 0;  // of all phases, the one that has not completed included
  uint64_t warps = 0;     // bit w: warp w of the CTA has arrived, in any phase
};

/// What the device says of itself when it is opened, so that the host's side of it can be tested.
struct EmulatedDevice {
  bool has_time_limit = false;
  bool unified_memory = true;
  int64_t free_bytes = 0;     // 0: what the machine has
  int odd_card = -1;          // one that is of another kind
  int unreachable_card = -1;  // one whose memory no other card can use
  int failing_card = -1;      // one whose launches fail once they have begun
};

struct EmulationControl {
  EmulationControl();
  EmulationOptions options;
  EmulatedDevice device;
  EmulationStats stats;
  std::vector<BarrierCount> barriers;     // by CTA, then by offset
  std::vector<LaunchParams> card_params;  // of that launch, on each card
  std::vector<int32_t> launched_steps;    // LaunchParams::num_steps of every launch that was started
  uint64_t uploaded_bytes = 0;
};

/// Lies in the shared memory of a CTA, where mbarrier state would be; names the emulator's own record.
struct Barrier {
  uint64_t handle;
};

namespace emulation {

using Kernel = void (*)(LaunchParams);

struct LaunchShape {
  int num_ctas = 1;          // of a card
  int threads_per_cta = 32;  // a multiple of 32
  int shared_bytes = 0;
};

/// What one card is given of a launch; nothing: it does not launch, as if it had died.
using CardLaunch = std::optional<LaunchParams>;

/// Runs a launch on several cards to its end on the calling OS thread. Returns what went wrong, the first line being a
/// summary; empty if nothing did. A deadlock also fills *stall of the card, if there is one.
std::string run_cards(Kernel kernel, const std::vector<CardLaunch>& cards, const LaunchShape& shape,
                      EmulationControl& control);
inline std::string run(Kernel kernel, const LaunchParams& params, const LaunchShape& shape,
                       EmulationControl& control) {
  return run_cards(kernel, {params}, shape, control);
}

/// Memory that checked kernels may touch, 256-byte aligned, of a card or, with -1, the host's; null when there is no
/// more. Thread-safe.
void* allocate(size_t bytes, int card = 0);
void release(void* memory);

// What follows is for host.h: the slow side of the primitives, called by the fiber that runs.

enum class Access : uint8_t {
  kLoad,
  kStore,
  kConstantLoad,
  kRelaxedLoad,
  kRelaxedStore,
  kAcquireLoad,
  kReleaseAdd,
  kRelaxedAdd,
  kSystemLoad,
  kSystemStore,
  kBarrier,  // The barrier's initialisation must be ordered before.
  kCopyRead,
  kCopyWrite,
  kProductRead,  // of an operand in shared memory, by a warpgroup's product
  kSystemRelaxedLoad,
  kSystemRelaxedStore,
  kSystemAcquireLoad,
  kSystemReleaseAdd,
  kSystemFencedAdd,
  kSystemRelaxedAdd,
};
constexpr bool is_wide(Access access) {
  return access >= Access::kSystemRelaxedLoad;
}
constexpr bool is_relaxed_store(Access access) {
  return access == Access::kRelaxedStore || access == Access::kSystemRelaxedStore;
}
constexpr bool is_release_add(Access access) {
  return access == Access::kReleaseAdd || access == Access::kSystemReleaseAdd ||
         access == Access::kSystemFencedAdd;
}
constexpr bool is_add(Access access) {
  return is_release_add(access) || access == Access::kRelaxedAdd || access == Access::kSystemRelaxedAdd;
}
constexpr bool is_atomic(Access access) {
  return access == Access::kRelaxedLoad || access == Access::kAcquireLoad || is_relaxed_store(access) ||
         is_add(access) || is_wide(access);
}
enum class Space : uint8_t { kShared, kGlobal };

struct RunningThread {
  int thread = 0;    // within its CTA
  int cta = 0;       // over all cards
  int num_ctas = 0;  // of a card
  int card = 0;
  unsigned char* shared = nullptr;
};

extern RunningThread* running;
extern bool checking;
extern bool delaying;        // as EmulationOptions::delays_stores asks
extern uint64_t num_stores;  // Counts whatever may end somebody's polling.

/// Called before the access itself, only when checking.
void check_access(Access access, Space space, const void* address, size_t bytes);

/// Accesses of system scope. A store, or an addition, to another card's memory lands later.
void load_wide(Access access, const void* address, void* value, size_t bytes);
void store_wide(Access access, void* address, const void* value, size_t bytes);
void land_stores_before();

/// One warp-wide operation: operands[lane] is what each lane handed over, results go back through the same
/// pointers.
using Operation = void (*)(void* const* operands);
void collective(Operation operation, const char* name, void* operand);
void transpose(void* const* operands);  // of uint32_t

struct MmaOperand {
  void* c;  // [4], floats or integers
  uint32_t a[4];
  uint32_t b[2];
};
void multiply_accumulate(void* const* operands);      // of MmaOperand, bf16
void multiply_accumulate_f16(void* const* operands);  // f16
void multiply_accumulate_u8(void* const* operands);   // bytes, a unsigned
void multiply_accumulate_s8(void* const* operands);   // bytes, a signed

/// Within a batch, which makes its products when it ends, or is full: where to put the operand of the next one. Else null.
MmaOperand* put_off(Operation operation, const char* name);
void begin_batch();
void end_batch();
void synchronise_cta();

void fence_device();
void fence_system();
void fence_async_global();
void fence_async_shared();

void init_barrier(Barrier* barrier, int arrivals);
void fence_barrier_init();
void arrive(Barrier* barrier, int bytes);
/// So many arrivals, once all lanes of the warp have called it.
void release_by_warp(Barrier* barrier, int times);
bool test_barrier(Barrier* barrier, uint32_t parity);
void wait_barrier(Barrier* barrier, uint32_t parity, const WaitSite& site);
bool skips_wait(WaitKind kind);  // as FaultKind::kSkipWait asks
bool drops_hints();              // as FaultKind::kDropHints asks
void copy_page(void* shared, const void* global, int bytes, Barrier* barrier);
void copy_piece(void* shared, const void* global);
void commit_copies();
void wait_copies(int sets);

enum class ProductOf { kBf16, kF16, kBytes, kSignedBytes };

/// A product that a thread's warp makes of its a and all of b, see warpgroup_multiply().
struct Product {
  void* c;  // [rows / 2], floats or integers
  int rows;
  uint32_t a[4];
  const void* kept = nullptr;  // where the thread has a, if it has to stay there until the product is made
  const void* b;
  int next_k;  // bytes from a core matrix of b to that of the next 8 k
  int next_rows;
  ProductOf of;
  bool adds = true;  // to what was in c
};
void issue_product(const Product& product);
void fence_products();
void commit_products();
void wait_products(int sets_left);
void multiply_product(void* const* operands);  // of Product

void pause(const WaitSite& site);
[[noreturn]] void fail_demand(const char* what);  // Ends the launch.
void note_host_load();  // Who polls host memory waits for the host, which is no deadlock.

}  // namespace emulation
}  // namespace soliton
