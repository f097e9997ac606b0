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
  static constexpr int kGroups = kPlan.rows / 8;      // of rows, which are columns of a product
  static constexpr int kOperands = kGroups * kParts;  // of either a group's parts or the groups' one
  static_assert(kUnits == kWorkers && kSteps % kSetSteps == 0 && (kGroups == 1 || kParts == 1));
  using Sums = float[kGroups][4];

 public:
  SOLITON_DEVICE UnitMultiplier(const Context<kPlan>& context, int worker)
      : context_(context),
        worker_(worker),
        own_input_(context.region(RegionId::kInput) + worker * kUnitBytes + context.lane * kLaneBytes) {}

  /// Multiplies the next `tiles` tiles by all of the input, and puts this worker's part where those find it that finish them.
  /// `begin` waits for the input, `behind` comes when the first of it is on its way.
  template <class Begin, class Behind>
  SOLITON_DEVICE void multiply(PageStream<kPlan>& stream, const MatrixPhase& phase, int tiles,
                               const Begin& begin, const Behind& behind) const {
    int columns = page_columns(kFormat, phase.padded);
    const UnitInput first = input_of(phase, 0, columns);
    begin();
    SOLITON_UNROLL
    for (int k = 0; k < kSteps; ++k) bring(first, k);
    behind();
    SOLITON_NO_UNROLL
    for (int column = 0; column < phase.padded;) {
      const int end = column + columns;
      const int next_columns = end < phase.padded ? page_columns(kFormat, phase.padded - end) : 0;
      const UnitInput next = input_of(phase, end, next_columns);
      SOLITON_NO_UNROLL
      for (int tile = 0; tile < tiles; ++tile) {
        const int slot = stream.wait();
        Sums sums = {};
        multiply_page(stream.bytes(slot), columns, sums, next, tile == tiles - 1);
        stream.release(slot);
        put(tile, sums, column > 0);
      }
      column = end;
      columns = next_columns;
    }
  }

 private:
  /// What this worker's unit meets of a page that begins with column `begin`, for this lane: of row g the columns 8 j .. + 7 of every
  /// block.
  struct UnitInput {
    const unsigned char* first;
    int steps;          // of the unit
    int block_bytes;    // from one block of columns to the next,
    int operand_bytes;  // and from one operand to the next
  };
  SOLITON_DEVICE UnitInput input_of(const MatrixPhase& phase, int begin, int columns) const {
    const int steps = columns / kFormat.least_columns();
    const int block = begin / kColumnBlock + worker_ * kStrips * steps;
    const unsigned char* vector = context_.template workspace<unsigned char>(phase.input_vector.offset);
    if constexpr (kReadsRows) {  // as experts want them
      if (context_.is_gathered(phase.input_vector)) {
        const int64_t own = context_.gathered_offset(0, context_.lane / 4, block * kColumnBlock);
        const int64_t next =
            kGroups > 1 ? context_.gathered_offset(0, 8, 0) : context_.gathered_offset(1, 0, 0);
        return {vector + own + context_.lane % 4 * kLaneBytes, steps, kColumnBlock * 2,
                static_cast<int>(next)};
      }
    }
    return {vector + static_cast<int64_t>(block) * kBlockBytes + context_.lane * kLaneBytes, steps,
            kBlockBytes, kOperandBytes};
  }
  /// Brings what its `k`-th step meets: a set of copies, of none if it has fewer steps, so that every page is as many sets.
  SOLITON_DEVICE void bring(const UnitInput& input, int k) const {
    if (k < input.steps) {
      SOLITON_UNROLL
      for (int i = 0; i < kStrips * kOperands; ++i) {
        const int strip = i / kOperands;
        const int operand = i % kOperands;
        copy_vector_piece(
            place(k, strip, operand),
            input.first + (strip * input.steps + k) * input.block_bytes + operand * input.operand_bytes);
      }
    }
    commit_copies();
  }
  SOLITON_DEVICE unsigned char* place(int k, int strip, int operand) const {
    return own_input_ + ((k * kStrips + strip) * kOperands + operand) * kOperandBytes;
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
  SOLITON_DEVICE void multiply_page(const unsigned char* page, int columns, Sums& sums, const UnitInput& next,
                                    bool is_last) const {
    const int steps = columns / kFormat.least_columns();
    [&]<int... kSets>(std::integer_sequence<int, kSets...>) {
      (multiply_set<kSets * kSetSteps>(page, columns, steps, sums, next, is_last), ...);
    }
    (std::make_integer_sequence<int, kSteps / kSetSteps>());
  }
  template <int kFirst>
  SOLITON_DEVICE void multiply_set(const unsigned char* page, int columns, int steps, Sums& sums,
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
    float products[kStrips][kOperands][4] = {};
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
      SOLITON_UNROLL
      for (int group = 0; group < kGroups; ++group) {
        float product = products[i / 4][group * kParts][i % 4];
        SOLITON_UNROLL
        for (int part = 1; part < kParts; ++part) product += products[i / 4][group * kParts + part][i % 4];
        sums[group][i % 4] += scales[i / 4].scale[i % 4 / 2] * product;
      }
    }
  }
  template <int kStep>
  SOLITON_DEVICE void multiply_step(const unsigned char* step, const RowScales (&scales)[kStrips],
                                    float (&products)[kStrips][kOperands][4], const UnitInput& next,
                                    bool is_last) const {
    wait<kStep>(is_last);
    const auto words = StepWords<kFormat>::load(step, context_.lane);
    SOLITON_UNROLL
    for (int strip = 0; strip < kStrips; ++strip) {
      const uint4 first = words.to_bf16(strip, 0, scales[strip].zero);
      const uint4 second = words.to_bf16(strip, 1, scales[strip].zero);
      SOLITON_UNROLL
      for (int i = 0; i < kOperands; ++i) {
        const uint4 x = load_shared(reinterpret_cast<const uint4*>(place(kStep, strip, i)));
        mma_bf16(products[strip][i], first, make_uint2(x.x, x.y));
        mma_bf16(products[strip][i], second, make_uint2(x.z, x.w));
      }
    }
    if (is_last) bring(next, kStep);
  }

  /// Puts down sums of a tile as hand_over() has them; or adds them, this lane's own.
  SOLITON_DEVICE void put(int tile, const Sums& sums, bool adds) const {
    const int lane = context_.lane;
    float* const parts = context_.tile_parts(tile, worker_) + lane % 4 * 2 * kTileStride + lane / 4;
    SOLITON_UNROLL
    for (int i = 0; i < kGroups * 4; ++i) {
      float* const place = parts + (i / 4 * 8 + i % 2) * kTileStride + i % 4 / 2 * 8;
      const float sum = sums[i / 4][i % 4];
      store_shared(place, adds ? load_shared(place) + sum : sum);
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
  static constexpr int kOperandBytes = 8 * kColumnBlock * 2;
  static constexpr int kBlockBytes = kOperands * kOperandBytes;
  static constexpr int kUnitBytes = kSteps * kStrips * kBlockBytes;
  static_assert(kOperandBytes == kWarpLanes * kLaneBytes && kWorkers * kUnitBytes <= kPlan.input_bytes());

  const Context<kPlan>& context_;
  int worker_;
  unsigned char* own_input_;
};

}  // namespace soliton::rows
