// How a consumer warp has its slice of a phase's input: it waits for the vector, adds what a block gave where the residual stream
// is its CTA's, norms it, and puts it into shared memory as it is multiplied.
#pragma once

#include <type_traits>

#include "one_row/block_norm.cuh"
#include "one_row/consumer.cuh"
#include "ops/norm_weights.cuh"

namespace soliton::one_row {

/// Fused by hand: left to itself nvcc fuses one or the other of two products that are added, as the code around them
/// has it, and a norm that is read at several places would differ in its last bit.
SOLITON_DEVICE float sum_of_squares(const float4& v) {
  return fmaf(v.w, v.w, fmaf(v.z, v.z, fmaf(v.x, v.x, v.y * v.y)));
}

/// In place of BlockNorm where no norm follows blocks.
struct NoBlockNorm {
  SOLITON_DEVICE NoBlockNorm(const float* /*output*/, int /*lane*/) {}
};

/// Four neighbouring elements of a token's embedding, as the residual stream begins with them.
template <const KernelPlan& kPlan>
SOLITON_DEVICE float4 embedded_values(uint2 bits) {
  const float4 v = unpack_bf16(bits);
  constexpr float kScale = kPlan.model.embedding_scale;
  if constexpr (kScale == 1) return v;
  return make_float4(v.x * kScale, v.y * kScale, v.z * kScale, v.w * kScale);
}

/// The mean of all of a token's embedding. Every warp works it out alike.
template <const KernelPlan& kPlan>
SOLITON_DEVICE float Consumer<kPlan>::embedding_mean(const uint16_t* row) const {
  float sum = 0.0f;
  for (int column = context_.lane * 4; column < kPlan.model.hidden; column += 4 * kWarpLanes) {
    const float4 v = embedded_values<kPlan>(load_constant(reinterpret_cast<const uint2*>(row + column)));
    sum += (v.x + v.y) + (v.z + v.w);
  }
  for (int mask = kWarpLanes / 2; mask > 0; mask /= 2) sum += shuffle_xor(sum, mask);
  return sum / kPlan.model.hidden;
}

/// The producer keeps fewer pages in flight meanwhile: they delay what this waits for.
template <const KernelPlan& kPlan>
template <class... Retries>
SOLITON_DEVICE void Consumer<kPlan>::wait_for_input(uint32_t tag, const Retries&... retries) {
  const bool says = kPlan.waiting_window < kPlan.window && warp_ == 0 && context_.lane == 0;
  if (says) context_.say_waiting(page_);
  wait_for_words(context_, WaitKind::kVector, tag, retries...);
  if (says) context_.say_working();
}

/// Brings a chunk of this warp's slice of x into shared memory and returns its sum of squares if it is
/// normed. With kAhead its loads have been issued before.
template <const KernelPlan& kPlan>
template <Width kWidth, bool kAhead>
SOLITON_DEVICE float Consumer<kPlan>::load_input(const MatrixPhase& phase, int layer, int chunk,
                                                 typename InputLoads<kPlan, kWidth>::Values* ahead) {
  using Slice = InputSlice<kPlan, kWidth>;
  static_assert(Slice::kChunks == 1 || !kWidth.normed, "one chunk knows one sum of squares");
  wait_for_grid(context_);
  const bool streams = kWidth.normed && phase.input != InputKind::kVector;
  const bool normed = kWidth.normed && norms_input<kPlan>(phase);
  const bool embedded = kWidth.normed && phase.input == InputKind::kHidden && layer == 0;
  const uint32_t use = context_.input_use(phase, layer);
  const uint32_t tag = tag_of(use);
  const float* vector = context_.vector(phase.input_vector, use);
  const uint16_t* norm =
      context_.params.norms + static_cast<int64_t>(norm_row<kPlan>(phase, layer)) * kWidth.columns;
  // Where norms follow blocks, or these lose their means, the stream is what this CTA holds, and what is read is added to it.
  constexpr bool kAdds = kWidth.normed && holds_blocks(kPlan.model.norms);
  constexpr bool kNormsBlocks = kAdds && norms_after(kPlan.model.norms);
  std::conditional_t<kAdds, BlockNorm<kPlan>, NoBlockNorm> block(vector, context_.lane);
  float block_scale = 0.0f;  // or its mean
  Signatures<kPlan> signatures(context_, phase.input_vector, use);
  // Once a phase.
  const bool asks = warp_ == 0 && chunk == 0 && !embedded;
  if (asks) signatures.issue();
  // Whatever needs no word of the input is done while that is on its way: from the last word on all of the CTA waits.
  if (chunk == 0 && phase.appends && units_ > 0) {
    // During attention this warp's part lay where x goes now. Pairs with the consumers' arrivals once it is merged.
    context_.wait(context_.barrier(BarrierId::kAttentionEmpty), (units_ - 1) & 1, WaitKind::kAttentionEmpty,
                  units_);
  }
  float squares = 0.0f;
  SOLITON_NO_UNROLL
  for (int batch = 0; batch < Slice::kBatches; ++batch) {
    const InputLoads<kPlan, kWidth> at{warp_, known_lane(), chunk, batch, vector};
    uint2 weights[Slice::kBatchLoads];
    SOLITON_UNROLL
    for (int i = 0; i < Slice::kBatchLoads; ++i) {
      weights[i] = unit_norm_weights<kPlan>();
      if (normed && at.present(i) && !at.padding(i))
        weights[i] = load_constant(reinterpret_cast<const uint2*>(norm + at.column(i)));
    }
    uint2 block_weights[kNormsBlocks ? Slice::kBatchLoads : 1] = {};
    if constexpr (kNormsBlocks) {
      if (streams && !embedded) {
        SOLITON_UNROLL
        for (int i = 0; i < Slice::kBatchLoads; ++i) {
          if (at.present(i) && !at.padding(i))
            block_weights[i] =
                load_constant(reinterpret_cast<const uint2*>(norm - kWidth.columns + at.column(i)));
        }
      }
    }
    typename InputLoads<kPlan, kWidth>::Values fresh;
    auto& loads = kAhead ? *ahead : fresh;
    if (embedded) {
      const int token = load_shared(&context_.decision(warp_).token);
      const uint16_t* row = context_.params.embedding + static_cast<int64_t>(token) * kWidth.columns;
      SOLITON_UNROLL
      for (int i = 0; i < Slice::kBatchLoads; ++i) {
        if (at.present(i) && !at.padding(i))
          loads.value[i] =
              embedded_values<kPlan>(load_constant(reinterpret_cast<const uint2*>(row + at.column(i))));
      }
      if constexpr (kAdds && !kNormsBlocks) {
        if (batch == 0) block_scale = embedding_mean(row);
      }
    } else {
      if constexpr (!kAhead) at.issue(loads);
      if constexpr (kAdds) {
        if (batch == 0) block.issue(streams);
        wait_for_input(
            tag, [&] { return at.retry(loads, tag); }, [&] { return block.retry(tag); },
            [&] { return signatures.retry(tag); });
        if (batch == 0) block_scale = kNormsBlocks ? block.scale() : block.mean();
      } else {
        wait_for_input(
            tag, [&] { return at.retry(loads, tag); }, [&] { return signatures.retry(tag); });
      }
    }
    SOLITON_UNROLL
    for (int i = 0; i < Slice::kBatchLoads; ++i) {
      float4& v = loads.value[i];
      v = at.padding(i) ? make_float4(0, 0, 0, 0) : without_tag(v);
      if constexpr (kAdds) {
        if (streams && at.present(i) && !at.padding(i)) {
          float4* own = reinterpret_cast<float4*>(context_.stream() + at.column(i));
          if constexpr (kNormsBlocks) {
            if (!embedded)
              v = add_block(load_shared(own), v, norm_weights<kPlan>(block_weights[i]), block_scale);
            store_shared(own, v);
          } else {
            const float4 before = embedded ? make_float4(0, 0, 0, 0) : load_shared(own);
            v = add_centred(before, v, block_scale);
            store_shared(own, v);
            // What attention gives is added all the same: the next layer's input has it.
            if (is_parallel(kPlan.model.norms) && phase.output == OutputKind::kSwiglu) v = before;
          }
        }
      }
    }
    if constexpr (kWidth.normed) {  // of what is not, too: no branch
      SOLITON_UNROLL
      for (int i = 0; i < Slice::kBatchLoads; ++i) {
        float4& v = loads.value[i];
        squares += sum_of_squares(v);
        const float4 w = norm_weights<kPlan>(weights[i]);
        v = make_float4(v.x * w.x, v.y * w.y, v.z * w.z, v.w * w.w);
      }
    }
    float down = 1.0f;
    if constexpr (kWidth.format.takes_digits()) {
      const auto scale = InputScale::of_warp<DigitNumbers<3>::kExponent>(loads.value);
      input_up_ = scale.up;
      down = scale.down;
    }
    if constexpr (kAhead) warp_sync();  // before x changes, all lanes have read it
    if constexpr (kWidth.format.takes_digits()) {
      typename Slice::Format::InputSum sums[Slice::kBatchLoads];
      SOLITON_UNROLL
      for (int i = 0; i < Slice::kBatchLoads; ++i)
        sums[i] = Slice::store_digits(x(), chunk, at.group(i), loads.value[i], down, at.fits(i));
      Slice::Format::template put_sums<Slice::sum_is_whole()>(input_sums(), sums, at.lane,
                                                              [&](int i) { return at.fits(i); });
    } else {
      SOLITON_UNROLL
      for (int i = 0; i < Slice::kBatchLoads; ++i) {
        if (at.fits(i)) Slice::store(x(), chunk, at.group(i), loads.value[i]);
      }
    }
  }
  return squares;
}

}  // namespace soliton::one_row
