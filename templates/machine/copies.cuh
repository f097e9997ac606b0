// Copies of a warp into shared memory, which arrive on barriers: in bulk by one lane, or by all lanes, 16 bytes each.
#pragma once

#include "layout/kernel_plan.h"
#include "primitives/primitives.h"

namespace soliton {

/// Sets of copies, each for one barrier that one arrival completes: begin(), pages or vectors, end(). Bulk copies
/// complete it by themselves. Of lanes' copies the warp has to notice that they have landed: announce() and limit() wait
/// for that, and whoever is going to wait for somebody else announces before. All functions are collectives of the lanes
/// that copy.
template <const KernelPlan& kPlan, int kMostPending>
class Copies {
  static_assert(kMostPending == 1 || kMostPending == 2);

 public:
  static constexpr bool kBulk = kPlan.copies == CopyKind::kBulk;

  SOLITON_DEVICE explicit Copies(int lane) : lane_(lane) {}

  /// Is it so for any lane? Orders what they have seen.
  static SOLITON_DEVICE bool any(bool condition) {
    if constexpr (kBulk) return condition;
    return warp_any(condition);
  }

  static SOLITON_DEVICE uint32_t of_first_lane(uint32_t value) {
    if constexpr (kBulk) return value;
    return shuffle(value, 0);
  }

  /// `bytes`: of all copies of the set.
  SOLITON_DEVICE void begin(Barrier* barrier, int bytes) const {
    if constexpr (kBulk) barrier_arrive_expect(barrier, bytes);
  }
  /// Weights and pages of the cache: read once a token.
  SOLITON_DEVICE void page(unsigned char* shared, const char* global, int bytes, Barrier* barrier) const {
    if constexpr (kBulk) {
      copy_page(shared, global, bytes, barrier);
    } else {
      copy_pieces(shared, global, bytes, [](void* to, const void* from) { copy_page_piece(to, from); });
    }
  }
  /// Activations: read by all CTAs.
  SOLITON_DEVICE void vector(unsigned char* shared, const unsigned char* global, int bytes,
                             Barrier* barrier) const {
    if constexpr (kBulk) {
      copy_vector(shared, global, bytes, barrier);
    } else {
      copy_pieces(shared, global, bytes, [](void* to, const void* from) { copy_vector_piece(to, from); });
    }
  }
  SOLITON_DEVICE void end(Barrier* barrier) {
    if constexpr (!kBulk) {
      limit(kMostPending - 1);
      commit_copies();
      (num_pending_ == 0 ? oldest_ : younger_) = barrier;
      ++num_pending_;
    }
  }

  /// Waits until at most `most` sets are pending.
  SOLITON_DEVICE void limit(int most) {
    if constexpr (!kBulk) {
      while (num_pending_ > most) announce_oldest();
    }
  }
  /// Waits until all have landed.
  SOLITON_DEVICE void announce() { limit(0); }
  /// The same, unless a lane sees that it can go on.
  SOLITON_DEVICE void announce_unless(bool goes_on) {
    if constexpr (!kBulk) {
      if (!any(goes_on)) announce();
    }
  }

  SOLITON_DEVICE void prefetch_page(const char* global, int bytes) const {
    if constexpr (kBulk) {
      soliton::prefetch_page(global, bytes);
    } else {
      for (int at = lane_ * kLineBytes; at < bytes; at += kWarpLanes * kLineBytes) prefetch_line(global + at);
    }
  }
  SOLITON_DEVICE void prefetch_vector(const void* global, int bytes) const {
    if constexpr (kBulk) {
      soliton::prefetch_vector(global, bytes);
    } else {
      prefetch_page(static_cast<const char*>(global), bytes);
    }
  }

 private:
  static constexpr int kPieceBytes = 16;
  static constexpr int kRowBytes = kWarpLanes * kPieceBytes;
  static constexpr int kRows =
      8;  // of the lanes' pieces that are copied at once, at addresses known to the compiler
  static constexpr int kLineBytes = 128;

  template <class Copy>
  SOLITON_DEVICE void copy_pieces(unsigned char* shared, const void* global, int bytes,
                                  const Copy& copy) const {
    unsigned char* to = shared + lane_ * kPieceBytes;
    const char* from = static_cast<const char*>(global) + lane_ * kPieceBytes;
    SOLITON_NO_UNROLL
    for (; bytes >= kRows * kRowBytes; bytes -= kRows * kRowBytes) {
      SOLITON_UNROLL
      for (int i = 0; i < kRows; ++i) copy(to + i * kRowBytes, from + i * kRowBytes);
      to += kRows * kRowBytes;
      from += kRows * kRowBytes;
    }
    SOLITON_NO_UNROLL
    for (int at = lane_ * kPieceBytes; at < bytes; at += kRowBytes) {
      copy(to, from);
      to += kRowBytes;
      from += kRowBytes;
    }
  }

  SOLITON_DEVICE void announce_oldest() {
    if (kMostPending > 1 && num_pending_ > 1) {
      wait_copies<1>();
    } else {
      wait_copies<0>();
    }
    warp_arrive(oldest_);
    oldest_ = younger_;
    --num_pending_;
  }

  int lane_;
  int num_pending_ = 0;
  Barrier* oldest_ = nullptr;  // of the pending sets; an array would not stay in registers
  Barrier* younger_ = nullptr;
};

}  // namespace soliton
