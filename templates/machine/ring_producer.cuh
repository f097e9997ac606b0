// The producers' half of the ring: they keep it filled with pages of the CTA's stream, and bring the next ones into L2
// while it is full. What the stream is, its two users know (one_row/producer.cuh, rows/producer.cuh).
//
// Bulk copies are one lane's, of one producer. Where lanes copy, several warps walk the same stream and take its pages in
// turn; none waits for another. All functions are collectives of the lanes that copy.
#pragma once

#include "machine/context.cuh"
#include "machine/copies.cuh"
#include "machine/ring.cuh"
#include "machine/timeline.cuh"

namespace soliton {

/// For waits with nothing to do meanwhile.
SOLITON_DEVICE void nothing() {}

/// Pages that may be in flight.
struct PageWindow {
  int pages;
  int of_waiting;  // while the consumers wait for other CTAs: what is in flight delays that

  SOLITON_DEVICE PageWindow(int pages) : PageWindow(pages, pages) {}
  SOLITON_DEVICE PageWindow(int pages, int of_waiting) : pages(pages), of_waiting(of_waiting) {}
};

/// Kernel: Context, BarrierId, RegionId. Cursor: a place in a stream of weight pages, with at_end(), advance(),
/// push(producer) and prefetch(copies).
template <const KernelPlan& kPlan, class Kernel, class Cursor>
class RingProducer {
 public:
  using Context = typename Kernel::Context;
  using BarrierId = typename Kernel::BarrierId;
  using RegionId = typename Kernel::RegionId;

  /// `warp`: which of the producers.
  SOLITON_DEVICE RingProducer(Context& context, int warp)
      : context_(context), copies_(context.lane), warp_(warp), turns_(warp) {}

  SOLITON_DEVICE bool stopped() const { return stopped_ != 0; }

  /// Waits for the copies in flight: shared memory must outlive them.
  SOLITON_DEVICE void drain() {
    if constexpr (PageCopies::kBulk) {
      if (!kWindowLimits && issued_ > kPlan.ring_slots) {
        landed_ = issued_ - kPlan.ring_slots;
        oldest_ = next_.round_before();
      }
      while (landed_ < issued_) wait_landed();
    } else {
      copies_.announce();
    }
  }

  /// Copies the pages of `page` and behind it, for which one lane has half a microsecond a page: what a page is, its cursor works
  /// out while the one before is on its way. While the ring is full, memory would be idle: L2 takes some of the next pages, of
  /// `next()` too, slowly enough for the vectors that everyone waits for to get through.
  template <class Next>
  SOLITON_DEVICE void stream(Cursor page, PageWindow window, const Next& next) {
    in_next_ = false;
    SOLITON_NO_UNROLL
    for (; !page.at_end() && stopped_ == 0; page.advance()) {
      hold_page();
      add_page(
          window, [&] { prefetch(page, next); }, [&] { page.push(*this); });
      if (num_ahead_ > 0) --num_ahead_;
    }
  }

  /// Copies one piece to a slot. False once the launch has stopped.
  SOLITON_DEVICE bool push(const char* source, int bytes, PageWindow window) {
    add_page(window, nothing, [&] {
      expect(bytes);
      if (bytes > 0) copy(0, source, bytes);
    });
    return stopped_ == 0;
  }

  /// Bytes of all copies into the slot, before the first.
  SOLITON_DEVICE void expect(int bytes) const { copies_.begin(full(), bytes); }
  SOLITON_DEVICE void copy(int offset, const char* source, int bytes) const {
    copies_.page(context_.region(RegionId::kPages) + next_.slot() * kPlan.slot_bytes + offset, source, bytes,
                 full());
  }

  /// Waits until the KV of the steps before is complete and visible to this CTA; false once the launch has stopped.
  /// Pairs with the arrival on step_read.
  SOLITON_DEVICE bool wait_step_read() {
    if (context_.step > 0 && stopped_ == 0) {
      wait_unless_stopped(context_.barrier(BarrierId::kStepRead), (context_.step - 1) & 1,
                          WaitKind::kStepRead, 0, nothing);
      if constexpr (PageCopies::kBulk) fence_async_global();
    }
    return stopped_ == 0;
  }

 protected:
  static constexpr int kProducers = kPlan.producer_warps;
  static constexpr int kPatience = 6;  // looks at a slot before memory counts as idle: most waits are short
  /// Sets of copies that one producer has in flight.
  static constexpr int kMostPending = kPlan.window > kProducers || kPlan.kv_window > kProducers ? 2 : 1;
  using PageCopies = Copies<kPlan, kMostPending>;
  /// Are fewer pages in flight at most than the ring has slots?
  static constexpr bool kWindowLimits = kPlan.window < kPlan.ring_slots || kPlan.kv_window < kPlan.ring_slots;
  static_assert(!PageCopies::kBulk || kProducers == 1, "bulk copies are one lane's");
  /// Does a producer ask for a slot before it waits for the window? Not where single warps multiply: with all that came together
  /// with this 8 rows of Qwen3-30B-A3B in 4 bits took 1 to 2% longer.
  static constexpr bool kLooksAhead = PageCopies::kBulk && (kPlan.rows == 1 || kPlan.warpgroups);

  /// For what one producer does for all.
  SOLITON_DEVICE bool is_first() const { return kProducers == 1 || warp_ == 0; }

  /// Consumers that stop release nothing any more: whoever waits for them must look for that too.
  template <class Idle>
  SOLITON_DEVICE void wait_unless_stopped(Barrier& barrier, uint32_t parity, WaitKind kind, uint32_t index,
                                          const Idle& idle) {
    Barrier* const stop = &context_.barrier(BarrierId::kStopped);
    const WaitSite site = context_.site(kind, index, parity, parity ^ 1);
    if constexpr (PageCopies::kBulk) {
      if (!wait_barrier_unless(&barrier, parity, stop, site, context_.bound(), idle)) stopped_ = 1;
    } else {
      const auto announce_and_idle = [&](int look) {
        if (look == 0) copies_.announce();
        if (look >= kPatience) idle();
      };
      if (!warp_wait_barrier_unless(&barrier, parity, stop, site, context_.bound(), announce_and_idle))
        stopped_ = 1;
    }
  }

  /// Before the pages of a phase, of which some are held back, see RowsPolicy::early_slots; before some of them; and behind them, as
  /// what follows is held back too.
  SOLITON_DEVICE void begin_pages() {
    if constexpr (kPlan.shape().early_slots > 0) held_ = issued_ + kPlan.shape().early_slots;
  }
  SOLITON_DEVICE void hold_page() {
    if constexpr (kPlan.shape().early_slots > 0) {
      if (issued_ == held_) context_.await_fence();
    }
  }
  SOLITON_DEVICE void end_pages() {
    if constexpr (kPlan.shape().early_slots > 0) {
      if (issued_ <= held_) context_.await_fence();
    }
  }

  Context& context_;
  PageCopies copies_;
  WaitClock slot_waits_;
  WaitClock window_waits_;
  uint32_t issued_ = 0;  // pages since the launch began, by all producers,
  uint32_t held_ = 0;    // and the number of the one that is held back

  /// Fills the next slot, if it is this producer's turn and the launch has not stopped.
  template <class Idle, class Fill>
  SOLITON_DEVICE void add_page(PageWindow window, const Idle& idle, const Fill& fill) {
    if (stopped_ != 0) return;
    if (kProducers == 1 || turns_ == 0) {
      turns_ = kProducers;
      if (!begin_page(window, idle)) return;
      fill();
      copies_.end(full());
    }
    --turns_;
    ++issued_;
    next_.advance();
  }

 private:
  /// Waits until the window and the next slot have room for a page. Collective; false once the launch has stopped.
  template <class Idle>
  SOLITON_DEVICE bool begin_page(PageWindow window, const Idle& idle) {
    bool is_free = issued_ < kPlan.ring_slots;
    if constexpr (kLooksAhead) {  // the answer is on its way while the window is waited for
      if (!is_free)
        is_free = barrier_peek(&context_.barrier(BarrierId::kPageEmpty, next_.slot()), next_.parity_before());
    }
    wait_window(window);
    if (is_free) return true;
    // Pairs with the consumers' arrival when they release the page. The parity is never more than one phase behind:
    // consumers release pages in order, and this producer has waited for one of the last kProducers slots before.
    static_assert(kProducers <= kPlan.ring_slots);
    slot_waits_.begin();
    wait_unless_stopped(context_.barrier(BarrierId::kPageEmpty, next_.slot()), next_.parity_before(),
                        WaitKind::kPageEmpty, issued_, idle);
    slot_waits_.end();
    return stopped_ == 0;
  }
  SOLITON_DEVICE void wait_window(PageWindow window) {
    if constexpr (PageCopies::kBulk && !kWindowLimits) {
      return;  // who waits for a slot that is free waits for enough
    } else if constexpr (!PageCopies::kBulk) {
      window_waits_.begin();
      copies_.limit(ceil_divide(window.pages, kProducers) - 1);
      window_waits_.end();
    } else {
      int most = most_in_flight(window);
      if (in_flight() < most) return;
      window_waits_.begin();
      do {
        most = most_in_flight(window);  // on its way meanwhile
        wait_landed();
      } while (in_flight() >= most);
      window_waits_.end();
    }
  }
  SOLITON_DEVICE int in_flight() const { return static_cast<int>(issued_ - landed_); }
  SOLITON_DEVICE int most_in_flight(PageWindow window) const {
    const bool waits = window.of_waiting < window.pages && context_.consumers_wait(next_);
    return waits ? window.of_waiting : window.pages;
  }
  SOLITON_DEVICE Barrier* full() const { return &context_.barrier(BarrierId::kPageFull, next_.slot()); }

  SOLITON_DEVICE void wait_landed() {
    context_.wait(context_.barrier(BarrierId::kPageFull, oldest_.slot()), oldest_.parity(),
                  WaitKind::kPageFull, landed_);
    ++landed_;
    oldest_.advance();
  }

  /// Brings one more page into L2, if it is time: of this producer's, one in kProducers.
  template <class Next>
  SOLITON_DEVICE void prefetch(const Cursor& page, const Next& next) {
    if (num_ahead_ >= kPlan.prefetch_pages || !is_time()) return;
    if (num_ahead_ == 0) ahead_ = page;
    for (int i = 0; i < kProducers; ++i) {
      if (ahead_.at_end() && !in_next_) {
        ahead_ = next();
        in_next_ = true;
      }
      if (ahead_.at_end()) return;
      if (i == 0) ahead_.prefetch(copies_);
      ahead_.advance();
      ++num_ahead_;
    }
  }
  SOLITON_DEVICE bool is_time() {
    const uint32_t now = PageCopies::of_first_lane(time_ns());
    if (now - last_prefetch_ < kProducers * context_.params.prefetch_ns) return false;
    last_prefetch_ = now;
    return true;
  }

  int warp_;                               // among the producers
  int turns_;                              // until it is this producer's turn
  RingPosition<kPlan.ring_slots> next_;    // of the page that is issued next
  RingPosition<kPlan.ring_slots> oldest_;  // of the oldest page in flight
  uint32_t landed_ = 0;                    // pages that are known to have landed
  uint32_t stopped_ = 0;                   // a register that is tested as it is
  Cursor ahead_;                           // what comes into L2 next,
  int num_ahead_ = 0;                      // this many pages ahead of the ring
  bool in_next_ = false;                   // ahead_ has come to the next phase
  uint32_t last_prefetch_ = 0;
};

}  // namespace soliton
