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
  SOLITON_DEVICE const unsigned char* wait() const {
    context_.wait(context_.barrier(BarrierId::kInputFull, chunk_.slot()), chunk_.parity(),
                  WaitKind::kInputFull, chunk_.slot());
    warp_sync();
    return context_.region(RegionId::kInput) + chunk_.slot() * kShape<kPlan>.chunk_bytes();
  }
  /// Pairs with the input loader's wait for input_empty.
  SOLITON_DEVICE void release() {
    warp_arrive(&context_.barrier(BarrierId::kInputEmpty, chunk_.slot()));
    chunk_.advance();
  }

 private:
  Context<kPlan>& context_;
  std::conditional_t<kPlan.warpgroups, PackedRingPosition<kPlan.input_buffers>,
                     RingPosition<kPlan.input_buffers>>
      chunk_;
};

}  // namespace soliton::rows
