// The producer's half of the ring: a warp that keeps it filled with pages of the CTA's stream, and brings the next ones
// into L2 while it is full. What the stream is, its two users know (one_row/producer.cuh, rows/producer.cuh).
//
// The producer warp has as many lanes as it takes to copy a page. One of them waits and counts what has landed.
#pragma once

#include "machine/context.cuh"
#include "machine/ring.cuh"
#include "machine/timeline.cuh"

namespace soliton {

/// For waits with nothing to do meanwhile.
SOLITON_DEVICE void nothing() {}

/// Kernel: Context, BarrierId, RegionId. Cursor: a place in a stream of weight pages, with at_end(), advance(),
/// push(producer) and prefetch().
template <const KernelPlan& kPlan, class Kernel, class Cursor>
class RingProducer {
 public:
  using Context = typename Kernel::Context;
  using BarrierId = typename Kernel::BarrierId;
  using RegionId = typename Kernel::RegionId;

  SOLITON_DEVICE explicit RingProducer(Context& context) : context_(context) {}

  SOLITON_DEVICE bool stopped() const { return stopped_; }

  /// Waits for the copies in flight: shared memory must outlive them.
  SOLITON_DEVICE void drain() {
    if (!context_.leads()) return;
    while (landed_ < issued_) wait_landed();
  }

  /// Copies the pages of `page` and behind it. While the ring is full, memory would be idle: L2 takes some of the next
  /// pages, of `next()` too, slowly enough for the vectors that everyone waits for to get through.
  template <class Next>
  SOLITON_DEVICE void stream(Cursor page, int window, const Next& next) {
    in_next_ = false;
    SOLITON_NO_UNROLL
    for (; !page.at_end() && !stopped_; page.advance()) {
      if (begin_page(window, [&] { prefetch(page, next); })) {
        page.push(*this);
        end_page();
      }
      if (num_ahead_ > 0) --num_ahead_;
    }
  }

  /// Copies one piece that fills a slot, with at most `window` slots in flight. False once the launch has stopped.
  SOLITON_DEVICE bool push(const char* source, int bytes, int window) {
    if (!begin_page(window, nothing)) return false;
    expect(bytes);
    copy(0, source, bytes);
    end_page();
    return true;
  }

  /// Bytes of all copies into the slot, before the first.
  SOLITON_DEVICE void expect(int bytes) const {
    if (context_.leads()) barrier_arrive_expect(full(), bytes);
  }
  SOLITON_DEVICE void copy(int offset, const char* source, int bytes) const {
    copy_page(context_.region(RegionId::kPages) + next_.slot() * kPlan.slot_bytes + offset, source, bytes,
              full());
  }

  /// Waits until the KV of the steps before is complete and visible to this CTA; false once the launch has stopped.
  /// Pairs with the arrival on step_read.
  SOLITON_DEVICE bool wait_step_read() {
    if (context_.step == 0) return !stopped_;
    if (context_.leads() && !stopped_) {
      wait_unless_stopped(context_.barrier(BarrierId::kStepRead), (context_.step - 1) & 1,
                          WaitKind::kPhaseGate, 0, nothing);
      fence_async();
    }
    return agree();
  }

 protected:
  Context& context_;
  WaitClock slot_waits_;
  WaitClock window_waits_;
  uint32_t issued_ = 0;  // pages since the launch began

 private:
  /// Waits until fewer than `window` pages are in flight and the next slot is free. Collective; false once the launch
  /// has stopped.
  template <class Idle>
  SOLITON_DEVICE bool begin_page(int window, const Idle& idle) {
    if (context_.leads() && !stopped_) {
      if (static_cast<int>(issued_ - landed_) >= window) {
        window_waits_.begin();
        while (static_cast<int>(issued_ - landed_) >= window) wait_landed();
        window_waits_.end();
      }
      if (issued_ >= kPlan.ring_slots) {
        // Pairs with the consumers' arrival when they release the page. Every use of a slot is waited for, so the
        // parity is never more than one phase behind.
        slot_waits_.begin();
        wait_unless_stopped(context_.barrier(BarrierId::kPageEmpty, next_.slot()), next_.parity_before(),
                            WaitKind::kPageEmpty, issued_, idle);
        slot_waits_.end();
      }
    }
    return agree();
  }
  SOLITON_DEVICE void end_page() {
    ++issued_;
    next_.advance();
  }
  /// What the waiting lane has found out, for all lanes.
  SOLITON_DEVICE bool agree() {
    stopped_ = copy_any(stopped_);
    return !stopped_;
  }

  SOLITON_DEVICE Barrier* full() const { return &context_.barrier(BarrierId::kPageFull, next_.slot()); }

  SOLITON_DEVICE void wait_landed() {
    context_.wait(context_.barrier(BarrierId::kPageFull, oldest_.slot()), oldest_.parity(),
                  WaitKind::kPageFull, landed_);
    ++landed_;
    oldest_.advance();
  }

  /// Consumers that stop release nothing any more: whoever waits for them must look for that too.
  template <class Idle>
  SOLITON_DEVICE void wait_unless_stopped(Barrier& barrier, uint32_t parity, WaitKind kind, uint32_t index,
                                          const Idle& idle) {
    stopped_ = !wait_barrier_unless(&barrier, parity, &context_.barrier(BarrierId::kStopped),
                                    context_.site(kind, index, parity, parity ^ 1), context_.bound(), idle);
  }

  /// Brings one more page into L2, if it is time.
  template <class Next>
  SOLITON_DEVICE void prefetch(const Cursor& page, const Next& next) {
    if (num_ahead_ == kPlan.prefetch_pages || !is_time()) return;
    if (num_ahead_ == 0) ahead_ = page;
    if (ahead_.at_end() && !in_next_) {
      ahead_ = next();
      in_next_ = true;
    }
    if (ahead_.at_end()) return;
    ahead_.prefetch();
    ahead_.advance();
    ++num_ahead_;
  }
  SOLITON_DEVICE bool is_time() {
    const uint32_t now = time_ns();
    if (now - last_prefetch_ < context_.params.prefetch_ns) return false;
    last_prefetch_ = now;
    return true;
  }

  RingPosition<kPlan.ring_slots> next_;    // of the page that is issued next
  RingPosition<kPlan.ring_slots> oldest_;  // of the oldest page in flight
  uint32_t landed_ = 0;                    // pages that are known to have landed
  bool stopped_ = false;
  Cursor ahead_;          // what comes into L2 next,
  int num_ahead_ = 0;     // this many pages ahead of the ring
  bool in_next_ = false;  // ahead_ has come to the next phase
  uint32_t last_prefetch_ = 0;
};

}  // namespace soliton
