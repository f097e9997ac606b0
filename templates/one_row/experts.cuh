// Layers that are mixtures of experts: how the kernel of one row finds the pages of those that the step's token goes
// through. The stream keeps its static shape, of as many experts as a token is multiplied with; where they begin is data. Those
// that all tokens share come first: their pages are on their way while the others are being chosen.
//
// Every CTA's epilogue chooses them alike, out of the router's logits, keeps their weights and tells its producers their
// numbers. Consumers know nothing of it.
#pragma once

#include "one_row/context.cuh"
#include "one_row/input.cuh"
#include "one_row/page_cursor.cuh"
#include "ops/expert_table.cuh"
#include "ops/experts.cuh"

namespace soliton::one_row {

/// The logits of the step's token, waited for. Collective of a warp.
template <const KernelPlan& kPlan>
SOLITON_DEVICE auto read_routes(const Context<kPlan>& context, const Vector& routes, uint32_t use) {
  using Slices = RouterSlices<kPlan>;
  using Logits = RouterLogits<kPlan.model.mixture.logits()>;
  wait_for_grid(context);
  const uint32_t tag = tag_of(use);
  const int first = Logits::first_expert(context.lane);
  const float* words = context.vector(routes, use) + first;
  PolledLoads<float4, Logits::kLoads * Slices::kCount, kPlan> loads;
  const auto address = [&](int load) {
    return reinterpret_cast<const float4*>(words + load / Logits::kLoads * Slices::kWords) +
           load % Logits::kLoads;
  };
  loads.issue(address, [&](int load) { return first + 4 * (load % Logits::kLoads) < Slices::kWords; });
  wait_for_words(context, WaitKind::kVector, tag, [&] { return loads.retry(address, tag); });
  Logits logits;
  SOLITON_UNROLL
  for (int load = 0; load < Logits::kLoads; ++load) {
    float4 sum = without_tag(loads.value[load]);
    SOLITON_UNROLL
    for (int slice = 1; slice < Slices::kCount; ++slice) {
      const float4 v = without_tag(loads.value[slice * Logits::kLoads + load]);
      sum = make_float4(sum.x + v.x, sum.y + v.y, sum.z + v.z, sum.w + v.w);
    }
    logits.value[load] = sum;
  }
  return logits;
}

/// Walks a run of pages where some are of experts: a page may be put together of what several have.
template <const KernelPlan& kPlan>
class ExpertPageCursor : public PageCursor<kPlan> {
  using Base = PageCursor<kPlan>;

 public:
  ExpertPageCursor() = default;
  /// `experts`: their numbers in shared memory, known by the time that a page is looked at.
  SOLITON_DEVICE ExpertPageCursor(const char* matrix, const MatrixPhase& phase, const TileRun& run,
                                  const int32_t* experts)
      : Base(matrix, phase.format.type, phase.padded, run),
        matrix_(matrix),
        phase_(&kExpertTable<kPlan>.phases[phase.number]),
        experts_(experts) {
    find_number();
  }

  template <class Producer>
  SOLITON_DEVICE void push(const Producer& producer) const {
    producer.expect(this->bytes());
    for_each_piece([&](int offset, const char* source, int bytes) { producer.copy(offset, source, bytes); });
  }
  template <class Copies>
  SOLITON_DEVICE void prefetch(const Copies& copies) const {
    for_each_piece([&](int, const char* source, int bytes) { copies.prefetch_page(source, bytes); });
  }
  SOLITON_DEVICE void advance() {
    Base::advance();
    find_number();
  }

 private:
  static constexpr Mixture kMixture = kPlan.model.mixture;
  /// Do the columns of all that a token is multiplied with fill their last page? If not, those of the first are read again.
  template <WeightFormat kFormat>
  static constexpr bool kFills =
      !kFormat.has_scales() || kMixture.used() * kMixture.ffn % kFormat.page_columns() == 0;

  /// Tiles of one expert follow those of the one before.
  SOLITON_DEVICE void find_number() {
    if (phase_->axis != ExpertAxis::kRows) return;
    while (this->tile() - matrix_ >= (number_ + 1) * phase_->expert_bytes) ++number_;
  }

  /// Shared experts are the last in memory, and known without being chosen.
  SOLITON_DEVICE int64_t begin_of(int number) const {
    const int expert = number < kMixture.shared ? kMixture.experts + number : load_shared(experts_ + number);
    return expert * phase_->expert_bytes;
  }

  /// Calls body(offset in the page, source, bytes).
  template <class Body>
  SOLITON_DEVICE void for_each_piece(const Body& body) const {
    if (phase_->axis == ExpertAxis::kNone) return body(0, this->address(), this->bytes());
    if (phase_->axis == ExpertAxis::kRows)
      return body(0, this->address() + begin_of(number_) - number_ * phase_->expert_bytes, this->bytes());
    with_format<kPlan>(this->type(), [&]<WeightFormat kFormat>() { for_each_expert<kFormat>(body); });
  }

  /// The same of columns of experts: a run of each, and their scales behind all of a page, or of an expert.
  template <WeightFormat kFormat, class Body>
  SOLITON_DEVICE void for_each_expert(const Body& body) const {
    // In one expert's matrix. Divisions by constants are cheap.
    const int64_t done_bytes = this->tile() - matrix_;
    const int64_t tile = kFills<kFormat> ? done_bytes / kMixture.used()
                                         : done_bytes / phase_->tile_bytes * phase_->stored_tile_bytes;
    const int columns = this->columns();
    int number = this->column() / kMixture.ffn;
    int within = this->column() % kMixture.ffn;
    SOLITON_NO_UNROLL
    for (int done = 0; done < columns;) {
      const int left = kMixture.ffn - within;
      const int count = left < columns - done ? left : columns - done;
      const char* expert = matrix_ + begin_of(number) + tile;
      body(kFormat.value_bytes(done), expert + kFormat.value_bytes(within), kFormat.value_bytes(count));
      if constexpr (kFormat.has_scales()) {
        body(kFormat.value_bytes(columns) + kFormat.scale_bytes(done),
             expert + kFormat.value_bytes(kMixture.ffn) + kFormat.scale_bytes(within),
             kFormat.scale_bytes(count));
      }
      done += count;
      within = 0;
      if (++number == kMixture.used()) number = 0;  // anything finite: x is zero there
    }
  }

  const char* matrix_ = nullptr;
  const ExpertPhase* phase_ = nullptr;
  const int32_t* experts_ = nullptr;
  int number_ = 0;  // of the expert whose rows come next
};

}  // namespace soliton::one_row
