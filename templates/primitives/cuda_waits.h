// The primitives' time, bounded waits and barriers on an NVIDIA GPU, a part of cuda.h.
#pragma once

namespace soliton {

SOLITON_DEVICE uint64_t device_time_ns() {
  uint64_t ns;
  asm volatile("mov.u64 %0, %globaltimer;" : "=l"(ns));
  return ns;
}
SOLITON_DEVICE uint32_t time_ns() {
  return static_cast<uint32_t>(device_time_ns());
}

SOLITON_DEVICE void sleep_ns(uint32_t ns) {
  __nanosleep(ns);
}

/// The warp's entry in shared memory, for watch_waits().
struct WaitBound {
  WarpStatus* status;
};

SOLITON_DEVICE WaitBound make_wait_bound(WarpStatus* statuses) {
  return {statuses + thread_index() / 32};
}

// watch_waits() reads statuses while others write them, and only compares: a race that a build for racecheck
// leaves out. To its watch no warp ever moves, so that there the time limit bounds the whole launch.
#if defined(SOLITON_RACECHECK)
constexpr bool kWritesStatus = false;
#else
constexpr bool kWritesStatus = true;
#endif

/// Says in which phase this warp is.
SOLITON_DEVICE void set_status(const WaitBound& bound, int step, int phase) {
  if (!kWritesStatus) return;
  *reinterpret_cast<uint2*>(&bound.status->step) =
      make_uint2(static_cast<uint32_t>(step), static_cast<uint32_t>(phase));
}

/// Says for what this warp waits.
SOLITON_DEVICE void set_status(const WaitBound& bound, const WaitSite& site) {
  if (!kWritesStatus) return;
  *reinterpret_cast<uint4*>(bound.status) =
      make_uint4(static_cast<uint32_t>(site.kind), site.index, site.expected, site.seen);
}

constexpr uint32_t kPollPauseNs = 100;  // polls of all CTAs must not crowd out what they wait for

/// One polling loop.
class Spin {
 public:
  SOLITON_DEVICE explicit Spin(const WaitBound& bound) : bound_(bound) {}
  SOLITON_DEVICE void pause(const WaitSite& site) {
    go_on(site);
    __nanosleep(kPollPauseNs);
  }
  /// Without a pause: for one lane of a CTA.
  SOLITON_DEVICE void go_on(const WaitSite& site) { set_status(bound_, site); }

 private:
  const WaitBound bound_;
};

// mbarriers.

struct alignas(8) Barrier {
  uint64_t state;
};

SOLITON_DEVICE void barrier_init(Barrier* barrier, int arrivals) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(shared_address(barrier)), "r"(arrivals)
               : "memory");
}
SOLITON_DEVICE void barrier_init_fence() {
#if defined(SOLITON_SM_90)
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
#endif
}
SOLITON_DEVICE void barrier_arrive(Barrier* barrier, int times = 1) {
  if (times == 1) {
    asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(shared_address(barrier)) : "memory");
  } else {
    asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0], %1;" ::"r"(shared_address(barrier)), "r"(times)
                 : "memory");
  }
}
// compute-sanitizer's racecheck sees a barrier order the accesses of the threads that arrive on it, not those
// of lanes that a warp's arrival stands for: in a build for it, every lane arrives.
#if defined(SOLITON_RACECHECK)
SOLITON_DEVICE void barrier_init_warps(Barrier* barrier, int warps) {
  barrier_init(barrier, warps * 32);
}
SOLITON_DEVICE void warp_arrive(Barrier* barrier, int times = 1) {
  warp_sync();
  barrier_arrive(barrier, times);
}
template <class BarrierOf>
SOLITON_DEVICE void warp_release_each(const BarrierOf& barrier_of, int count) {
  for (int i = 0; i < count; ++i) warp_arrive(&barrier_of(i));
}
#else
SOLITON_DEVICE void barrier_init_warps(Barrier* barrier, int warps) {
  barrier_init(barrier, warps);
}
SOLITON_DEVICE void warp_arrive(Barrier* barrier, int times = 1) {
  warp_sync();
  if (thread_index() % 32 == 0) barrier_arrive(barrier, times);
}
template <class BarrierOf>
SOLITON_DEVICE void warp_release_each(const BarrierOf& barrier_of, int count) {
  warp_sync();
  const int lane = static_cast<int>(static_cast<unsigned>(thread_index()) % 32);
  if (lane < count) barrier_arrive(&barrier_of(lane));
}
#endif
SOLITON_DEVICE void warp_release(Barrier* barrier, int times = 1) {
  warp_arrive(barrier, times);
}
SOLITON_DEVICE void barrier_arrive_expect(Barrier* barrier, int bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(shared_address(barrier)),
               "r"(bytes)
               : "memory");
}
/// Never suspends the thread.
SOLITON_DEVICE bool barrier_peek(Barrier* barrier, uint32_t parity) {
  uint32_t done;
  asm volatile(
      "{\n.reg .pred p;\n"
      "mbarrier.test_wait.parity.shared::cta.b64 p, [%1], %2;\n"
      "selp.u32 %0, 1, 0, p;\n}"
      : "=r"(done)
      : "r"(shared_address(barrier)), "r"(parity)
      : "memory");
  return done != 0;
}
#if defined(SOLITON_SM_90)
SOLITON_DEVICE bool barrier_test(Barrier* barrier, uint32_t parity) {
  uint32_t done;
  asm volatile(
      "{\n.reg .pred p;\n"
      "mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2;\n"
      "selp.u32 %0, 1, 0, p;\n}"
      : "=r"(done)
      : "r"(shared_address(barrier)), "r"(parity)
      : "memory");
  return done != 0;
}
/// Suspends the thread until the barrier's phase completes, or for `limit_ns` at most.
SOLITON_DEVICE bool barrier_sleep(Barrier* barrier, uint32_t parity, uint32_t limit_ns) {
  uint32_t done;
  asm volatile(
      "{\n.reg .pred p;\n"
      "mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2, %3;\n"
      "selp.u32 %0, 1, 0, p;\n}"
      : "=r"(done)
      : "r"(shared_address(barrier)), "r"(parity), "r"(limit_ns)
      : "memory");
  return done != 0;
}
#else
SOLITON_DEVICE bool barrier_test(Barrier* barrier, uint32_t parity) {
  return barrier_peek(barrier, parity);
}
SOLITON_DEVICE bool barrier_sleep(Barrier* barrier, uint32_t parity, uint32_t limit_ns) {
  constexpr uint32_t kNapNs = 10'000;
  for (uint32_t slept = 0; slept < limit_ns; slept += kNapNs) {
    if (barrier_peek(barrier, parity)) return true;
    __nanosleep(kNapNs);
  }
  return false;
}
#endif

SOLITON_DEVICE void wait_barrier(Barrier* barrier, uint32_t parity, const WaitSite& site,
                                 const WaitBound& bound) {
  if (barrier_test(barrier, parity)) return;
  set_status(bound, site);
  while (!barrier_test(barrier, parity)) {
  }
}

constexpr uint32_t kLookNs = 50;  // between looks at the barrier
// One lane looks less often, and seldom whether the launch has stopped: what its scheduler's other warps issue meanwhile is
// worth 0.3% of a token where these unpack codes.
constexpr uint32_t kLaneLookNs = 100;
constexpr int kLooksAStop = 16;

template <class Idle>
SOLITON_DEVICE bool wait_barrier_unless(Barrier* barrier, uint32_t parity, Barrier* stop,
                                        const WaitSite& site, const WaitBound& bound, const Idle& idle) {
  if (barrier_peek(barrier, parity)) return true;
  set_status(bound, site);
  // By looks: a try_wait sleeps for longer than any limit it is given.
  for (int look = 1; !barrier_peek(barrier, parity); ++look) {
    if (look % kLooksAStop == 0 && barrier_peek(stop, 0)) return false;
    idle();
    __nanosleep(kLaneLookNs);
  }
  return true;
}

template <class Idle>
SOLITON_DEVICE bool warp_wait_barrier_unless(Barrier* barrier, uint32_t parity, Barrier* stop,
                                             const WaitSite& site, const WaitBound& bound, const Idle& idle) {
  if (warp_any(barrier_peek(barrier, parity))) return true;
  set_status(bound, site);
  for (int look = 0;; ++look) {
    idle(look);
    if (warp_any(barrier_peek(barrier, parity))) return true;
    if (warp_any(barrier_peek(stop, 0))) return false;
    __nanosleep(kLookNs);
  }
}

/// Bounds all waits of the CTA, by one lane of a warp of its own: until `ended` completes its first phase it
/// looks at where the first `num_warps` warps stand. If none of them has moved for params.timeout_ns, it
/// reports the one that has waited longest and ends the kernel, whose other CTAs see the trap. `claim` is 0
/// at launch.
SOLITON_DEVICE void watch_waits(WarpStatus* statuses, int num_warps, Barrier* ended,
                                const LaunchParams& params, uint32_t* claim) {
  constexpr uint32_t kWatchNs = 100'000;
  uint32_t before = 0;
  uint64_t since = device_time_ns();
  while (!barrier_sleep(ended, 0, kWatchNs)) {
    uint32_t now = 0;
    for (int i = 0; i < num_warps; ++i) {
      const volatile WarpStatus& at = statuses[i];
      now = now * 31 + at.index;
      now = now * 31 + static_cast<uint32_t>(at.kind);
      now = now * 31 + at.step;
      now = now * 31 + at.phase;
    }
    const uint64_t time = device_time_ns();
    if (now != before) {
      before = now;
      since = time;
    }
    if (time - since <= params.timeout_ns) continue;
    if (atomicExch(claim, 1u) == 0) {
      int stuck = 0;  // the warp furthest behind
      for (int i = 1; i < num_warps; ++i) {
        const volatile WarpStatus& at = statuses[i];
        const volatile WarpStatus& last = statuses[stuck];
        if (at.step < last.step || (at.step == last.step && at.phase < last.phase)) stuck = i;
      }
      const WarpStatus at = statuses[stuck];
      params.stall->cta = blockIdx.x;
      params.stall->thread = stuck * 32;
      params.stall->site = {at.kind, at.step, at.phase, at.index, at.expected, at.seen};
      __threadfence_system();
      *reinterpret_cast<volatile uint32_t*>(&params.stall->valid) = 1;
      __threadfence_system();
      __trap();
    }
    for (;;) __nanosleep(1000);  // until the reporting CTA ends the kernel
  }
}

}  // namespace soliton
