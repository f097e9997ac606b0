// Where a worker stands in the stream of chunks of activations. All workers meet every chunk.
#pragma once

#include <type_traits>

#include "machine/ring.cuh"
#include "rows/context.cuh"

namespace soliton::rows {

template <const KernelPlan& kPlan>
class InputStream {
 public:
  SOLITON_DEVICE explicit InputStream(Context<kPlan>& context) : context_(context) {}

  /// Waits for the next chunk. Pairs with the copy's completion.
  SOLITON_DEVICE const unsigned char* wait() const { return wait_for(chunk_.slot(), chunk_.parity()); }
  /// For the one behind it, which there is room for: those before it have been waited for.
  SOLITON_DEVICE const unsigned char* wait_second() const {
    static_assert(kPlan.warpgroups && kPlan.input_buffers > 1, "both chunks are there at once");
    return wait_for(chunk_.slot(1), chunk_.parity(1));
  }
  /// Pairs with the input loader's wait for input_empty.
  SOLITON_DEVICE void release() {
    warp_release(&context_.barrier(BarrierId::kInputEmpty, chunk_.slot()));
    chunk_.advance();
  }

 private:
  SOLITON_DEVICE const unsigned char* wait_for(int slot, uint32_t parity) const {
    context_.wait(context_.barrier(BarrierId::kInputFull, slot), parity, WaitKind::kInputFull, slot);
    warp_sync();
    return context_.region(RegionId::kInput) + slot * kShape<kPlan>.chunk_bytes();
  }

  Context<kPlan>& context_;
  std::conditional_t<kPlan.warpgroups, PackedRingPosition<kPlan.input_buffers>,
                     RingPosition<kPlan.input_buffers>>
      chunk_;
};

}  // namespace soliton::rows
