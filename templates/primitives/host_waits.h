// The primitives' barriers, copies and waits on the host, a part of host.h.
#pragma once

namespace soliton {

inline void barrier_init(Barrier* barrier, int arrivals) {
  emulation::init_barrier(barrier, arrivals);
}
inline void barrier_init_fence() {
  emulation::fence_barrier_init();
}
inline void barrier_arrive(Barrier* barrier, int times = 1) {
  for (; times > 0; --times) emulation::arrive(barrier, 0);
}
inline void barrier_init_warps(Barrier* barrier, int warps) {
  barrier_init(barrier, warps);
}
inline void warp_arrive(Barrier* barrier, int times = 1) {
  warp_sync();
  if (thread_index() % 32 == 0) barrier_arrive(barrier, times);
}
/// Checked launches meet here too: after that one lane's clocks are those of all.
inline void warp_release(Barrier* barrier, int times = 1) {
  if (emulation::checking) return warp_arrive(barrier, times);
  emulation::release_by_warp(barrier, times);
}
template <class BarrierOf>
inline void warp_release_each(const BarrierOf& barrier_of, int count) {
  for (int i = 0; i < count; ++i) warp_release(&barrier_of(i));
}
inline void barrier_arrive_expect(Barrier* barrier, int bytes) {
  emulation::arrive(barrier, bytes);
}
inline bool barrier_test(Barrier* barrier, uint32_t parity) {
  return emulation::test_barrier(barrier, parity);
}

inline bool barrier_peek(Barrier* barrier, uint32_t parity) {
  return emulation::test_barrier(barrier, parity);
}

inline void copy_page(void* shared, const void* global, int bytes, Barrier* barrier) {
  emulation::copy_page(shared, global, bytes, barrier);
}

inline void copy_vector(void* shared, const void* global, int bytes, Barrier* barrier) {
  emulation::copy_page(shared, global, bytes, barrier);
}

/// The emulator itself sees when a launch is stuck; it only sees to it that everyone writes to the right
/// place.
struct WaitBound {
  WarpStatus* status = nullptr;
};
inline WaitBound make_wait_bound(WarpStatus* statuses) {
  return {statuses == nullptr ? nullptr : statuses + thread_index() / 32};
}
inline void set_status(const WaitBound& bound, int step, int phase) {
  if (thread_index() % 32 != 0 || bound.status == nullptr) return;
  store_shared(&bound.status->step, static_cast<uint32_t>(step));
  store_shared(&bound.status->phase, static_cast<uint32_t>(phase));
}
inline void watch_waits(WarpStatus*, int /*num_warps*/, Barrier*, const LaunchParams&, uint32_t* /*claim*/) {}

inline void wait_barrier(Barrier* barrier, uint32_t parity, const WaitSite& site, const WaitBound&) {
  emulation::wait_barrier(barrier, parity, site);
}

class Spin {
 public:
  explicit Spin(const WaitBound&) {}
  void pause(const WaitSite& site) { emulation::pause(site); }
  void go_on(const WaitSite& site) { pause(site); }
};

template <class Idle>
bool wait_barrier_unless(Barrier* barrier, uint32_t parity, Barrier* stop, const WaitSite& site,
                         const WaitBound& bound, const Idle& idle) {
  if (emulation::skips_wait(site.kind)) return true;
  Spin spin(bound);
  while (!barrier_test(barrier, parity)) {
    if (barrier_test(stop, 0)) return false;
    idle();
    spin.pause(site);
  }
  return true;
}

template <class Idle>
bool warp_wait_barrier_unless(Barrier* barrier, uint32_t parity, Barrier* stop, const WaitSite& site,
                              const WaitBound& bound, const Idle& idle) {
  if (emulation::skips_wait(site.kind)) return true;
  Spin spin(bound);
  for (int look = 0; !warp_any(barrier_test(barrier, parity)); ++look) {
    idle(look);
    if (warp_any(barrier_test(barrier, parity))) break;
    if (warp_any(barrier_test(stop, 0))) return false;
    spin.pause(site);
  }
  return true;
}

inline void prefetch_page(const void* /*global*/, int /*bytes*/) {}
inline void prefetch_vector(const void* /*global*/, int /*bytes*/) {}
inline void prefetch_line(const void* /*global*/) {}

inline void copy_page_piece(void* shared, const void* global) {
  emulation::copy_piece(shared, global);
}
inline void copy_vector_piece(void* shared, const void* global) {
  emulation::copy_piece(shared, global);
}
inline void commit_copies() {
  emulation::commit_copies();
}
template <int kSets>
inline void wait_copies() {
  emulation::wait_copies(kSets);
}

}  // namespace soliton
