// Dense layers of integers of 4 bits where experts are multiplied pair by pair (layout/expert_pairs.h). A CTA has few tiles of such
// a layer, and what takes time is instructions, and warps that wait for one another. So each worker has one unit of every page, all
// of whose steps have the same scales. Nobody else wants that unit's columns of the activations: the worker brings them out of L2
// into shared memory itself, every lane what it multiplies with; those of the next page while the last tile meets those of this one.
#pragma once

#include <utility>

#include "formats/integer_scales.cuh"
#include "formats/integer_words.cuh"
#include "rows/integer_step.cuh"
#include "rows/page_stream.cuh"

namespace soliton::rows {

template <const KernelPlan& kPlan, WeightFormat kFormat>
class UnitMultiplier {
  static constexpr int kParts = kShape<kPlan>.parts;
  static constexpr int kSetSteps = kPlan.set_steps();  // that share a scale
  static constexpr int kSteps =                        // of a unit, at most
      unit_columns(kPlan.matrices, kPlan.num_matrices) / kFormat.least_columns();
  static_assert(kPlan.rows == 8 && kUnits == kWorkers && kSteps % kSetSteps == 0);

 public:
  SOLITON_DEVICE UnitMultiplier(const Context<kPlan>& context, int worker)
      : context_(context),
        worker_(worker),
        own_input_(context.region(RegionId::kInput) + worker * kUnitBytes + context.lane * kLaneBytes) {}

  /// Multiplies the next `tiles` tiles by all of the input, and puts this worker's part where those find it that finish them.
  SOLITON_DEVICE void multiply(PageStream<kPlan>& stream, const MatrixPhase& phase, int tiles) const {
    int columns = page_columns(kFormat, phase.padded);
    SOLITON_UNROLL
    for (int k = 0; k < kSteps; ++k) bring(input_of(phase, 0, columns), k);
    SOLITON_NO_UNROLL
    for (int begin = 0; begin < phase.padded;) {
      const int end = begin + columns;
      const int next_columns = end < phase.padded ? page_columns(kFormat, phase.padded - end) : 0;
      const UnitInput next = input_of(phase, end, next_columns);
      SOLITON_NO_UNROLL
      for (int tile = 0; tile < tiles; ++tile) {
        const int slot = stream.wait();
        float sums[4] = {};
        multiply_page(stream.bytes(slot), columns, sums, next, tile == tiles - 1);
        stream.release(slot);
        put(tile, sums, begin > 0);
      }
      begin = end;
      columns = next_columns;
    }
  }

 private:
  /// What this worker's unit meets of a page that begins with column `begin`, for this lane: of row g the columns 8 j .. + 7 of every
  /// block.
  struct UnitInput {
    const unsigned char* first;
    int steps;        // of the unit
    int block_bytes;  // from one block of columns to the next,
    int part_bytes;   // and from one part to the next
  };
  SOLITON_DEVICE UnitInput input_of(const MatrixPhase& phase, int begin, int columns) const {
    const int steps = columns / kFormat.least_columns();
    const int block = begin / kColumnBlock + worker_ * kStrips * steps;
    const unsigned char* vector = context_.template workspace<unsigned char>(phase.input_vector.offset);
    if constexpr (kReadsRows) {  // as experts want them
      if (context_.is_gathered(phase.input_vector)) {
        const int64_t own = context_.gathered_offset(0, context_.lane / 4, block * kColumnBlock);
        return {vector + own + context_.lane % 4 * kLaneBytes, steps, kColumnBlock * 2,
                static_cast<int>(context_.gathered_offset(1, 0, 0))};
      }
    }
    return {vector + static_cast<int64_t>(block) * kBlockBytes + context_.lane * kLaneBytes, steps,
            kBlockBytes, kPartBytes};
  }
  /// Brings what its `k`-th step meets: a set of copies, of none if it has fewer steps, so that every page is as many sets.
  SOLITON_DEVICE void bring(const UnitInput& input, int k) const {
    if (k < input.steps) {
      SOLITON_UNROLL
      for (int i = 0; i < kStrips * kParts; ++i) {
        const int strip = i / kParts;
        const int part = i % kParts;
        copy_vector_piece(place(k, strip, part), input.first + (strip * input.steps + k) * input.block_bytes +
                                                     part * input.part_bytes);
      }
    }
    commit_copies();
  }
  SOLITON_DEVICE unsigned char* place(int k, int strip, int part) const {
    return own_input_ + ((k * kStrips + strip) * kParts + part) * kPartBytes;
  }
  /// Waits until it is there, with sets of later steps on their way; while a page's last tile is multiplied, also those of the
  /// next page's steps before.
  template <int kStep>
  SOLITON_DEVICE static void wait(bool is_last) {
    if (is_last) {
      wait_copies<kSteps - 1>();
    } else {
      wait_copies<kSteps - 1 - kStep>();
    }
  }

  /// Adds the products of a page to `sums`; brings the unit's input of the next one if this is the `last` tile that meets this.
  SOLITON_DEVICE void multiply_page(const unsigned char* page, int columns, float (&sums)[4],
                                    const UnitInput& next, bool is_last) const {
    const int steps = columns / kFormat.least_columns();
    [&]<int... kSets>(std::integer_sequence<int, kSets...>) {
      (multiply_set<kSets * kSetSteps>(page, columns, steps, sums, next, is_last), ...);
    }
    (std::make_integer_sequence<int, kSteps / kSetSteps>());
  }
  template <int kFirst>
  SOLITON_DEVICE void multiply_set(const unsigned char* page, int columns, int steps, float (&sums)[4],
                                   const UnitInput& next, bool is_last) const {
    if (kFirst > 0 && kFirst >= steps) {
      SOLITON_UNROLL
      for (int k = 0; k < kSetSteps; ++k) {
        if (is_last) bring(next, kFirst + k);
      }
      return;
    }
    const IntegerStep<kFormat> set(columns, steps, 0, worker_ * steps + kFirst);
    RowScales scales[kStrips];
    SOLITON_UNROLL
    for (int strip = 0; strip < kStrips; ++strip) {
      const int column = set.column(strip);
      scales[strip] = BlockScales<kFormat>(page, columns, context_.lane, column).of(column / kFormat.group);
    }
    float products[kStrips][kParts][4] = {};
    MmaBatch batch;
    [&]<int... k>(std::integer_sequence<int, k...>) {
      (multiply_step<kFirst + k>(page + set.offset + k * kFormat.step_bytes(), scales, products, next,
                                 is_last),
       ...);
    }
    (std::make_integer_sequence<int, kSetSteps>());
    batch.end();
    SOLITON_UNROLL
    for (int i = 0; i < kStrips * 4; ++i) {
      float product = products[i / 4][0][i % 4];
      SOLITON_UNROLL
      for (int part = 1; part < kParts; ++part) product += products[i / 4][part][i % 4];
      sums[i % 4] += scales[i / 4].scale[i % 4 / 2] * product;
    }
  }
  template <int kStep>
  SOLITON_DEVICE void multiply_step(const unsigned char* step, const RowScales (&scales)[kStrips],
                                    float (&products)[kStrips][kParts][4], const UnitInput& next,
                                    bool is_last) const {
    wait<kStep>(is_last);
    const auto words = StepWords<kFormat>::load(step, context_.lane);
    SOLITON_UNROLL
    for (int strip = 0; strip < kStrips; ++strip) {
      const uint4 first = words.to_bf16(strip, 0, scales[strip].zero);
      const uint4 second = words.to_bf16(strip, 1, scales[strip].zero);
      SOLITON_UNROLL
      for (int part = 0; part < kParts; ++part) {
        const uint4 x = load_shared(reinterpret_cast<const uint4*>(place(kStep, strip, part)));
        mma_bf16(products[strip][part], first, make_uint2(x.x, x.y));
        mma_bf16(products[strip][part], second, make_uint2(x.z, x.w));
      }
    }
    if (is_last) bring(next, kStep);
  }

  /// Puts down sums of a tile as hand_over() has them; or adds them, this lane's own.
  SOLITON_DEVICE void put(int tile, const float (&sums)[4], bool adds) const {
    const int lane = context_.lane;
    float* const parts = context_.tile_parts(tile, worker_) + lane % 4 * 2 * kTileStride + lane / 4;
    SOLITON_UNROLL
    for (int i = 0; i < 4; ++i) {
      float* const place = parts + i % 2 * kTileStride + i / 2 * 8;
      store_shared(place, adds ? load_shared(place) + sums[i] : sums[i]);
    }
  }

  /// Do dense layers read what lies row by row for the experts of others?
  static constexpr bool kReadsRows = [] {
    for (int i = 0; i < kPlan.num_phases; ++i) {
      const Phase& phase = kPlan.phases[i];
      if (phase.kind != PhaseKind::kMatrix ||
          kPlan.vector(phase.reads).offset != mixture_input<kPlan>().offset)
        continue;
      const PackedMatrix& matrix = kPlan.matrices[phase.matrix];
      if (matrix.format.has_scales() && matrix.experts.axis == ExpertAxis::kNone) return true;
    }
    return false;
  }();
  static constexpr int kLaneBytes = 16;
  static constexpr int kPartBytes = kPlan.rows * kColumnBlock * 2;
  static constexpr int kBlockBytes = kParts * kPartBytes;
  static constexpr int kUnitBytes = kSteps * kStrips * kBlockBytes;
  static_assert(kPartBytes == kWarpLanes * kLaneBytes && kWorkers * kUnitBytes <= kPlan.input_bytes());

  const Context<kPlan>& context_;
  int worker_;
  unsigned char* own_input_;
};

}  // namespace soliton::rows
