// The same for models with mixtures of experts. Tiles of gate and up that are multiplied together are of one expert:
// activations of its rows are gathered, and sums are those of its pairs. Down's experts come one after the other:
// activations are those of their pairs, and sums those of rows, to which an expert adds nothing that the row has not
// chosen.
#pragma once

#include "rows/experts.cuh"
#include "rows/multiplier.cuh"
#include "rows/unit_multiplier.cuh"

namespace soliton::rows {

template <const KernelPlan& kPlan>
class ExpertMultiplier : public Multiplier<kPlan> {
  using Base = Multiplier<kPlan>;
  using Base::context_, Base::worker_, Base::input_, Base::column_warp, Base::first_row;
  using Base::kRowsShape, Base::kRowGroups, Base::kChains, Base::kTilesTogether;

 public:
  using Base::Base;
  using typename Base::Sums;

  /// Multiplies the next `tiles` tiles of a phase whose units workers take, and hands them over. See UnitMultiplier::multiply().
  template <class Begin, class Behind>
  SOLITON_DEVICE void multiply_units(PageStream<kPlan>& stream, const MatrixPhase& phase, int tiles,
                                     const Begin& begin, const Behind& behind) {
    this->begin_hand_over();
    with_integers<kPlan>(phase.format.type, [&]<WeightFormat kFormat>() {
      if constexpr (suits_pairs(kPlan.rows, kFormat, 0))
        UnitMultiplier<kPlan, kFormat>(this->context_, this->worker_)
            .multiply(stream, phase, tiles, begin, behind);
    });
    this->end_hand_over();
  }

  /// Multiplies the next `tiles` tiles, from number `tile` on, by all of the input.
  SOLITON_DEVICE void multiply(PageStream<kPlan>& stream, const MatrixPhase& phase, int tile, int tiles,
                               Sums& sums) {
    const ExpertPhase& experts = kExpertTable<kPlan>.phases[phase.number];
    if constexpr (!kPairs<kPlan>) {
      if (experts.axis == ExpertAxis::kColumns) return multiply_columns(stream, phase, tiles, sums);
    }
    if (!context_.is_gathered(phase.input_vector)) return Base::multiply(stream, phase, tiles, sums);
    if (!kPairs<kPlan> && experts.axis == ExpertAxis::kRows) {
      const int pairs = ExpertSlot<kPlan>(context_, tile / experts.tiles).pairs();
      return multiply_gathered<1>(stream, phase, pairs, shares_pairs<kPlan>(phase, pairs),
                                  expert_slot_columns<kPlan>(phase.format.type, pairs), tiles, sums);
    }
    multiply_gathered<kRowsShape.tiles_per_slot>(stream, phase, context_.params.tree.num_rows, false,
                                                 kRowsShape.chunk_columns(), tiles, sums);
  }

 private:
  /// Operands of rows that were gathered, which are the columns of the product.
  struct GatheredRows {
    int row;        // of the first group of 8 that this lane has
    int count;      // rows that are there, from this worker's first on
    int row_bytes;  // of a part
    int quad_offset;
    int first_block;  // of this worker's columns,
    int stride;       // and to the next

    SOLITON_DEVICE GatheredRows(const ExpertMultiplier& owner, int num_rows, bool shares, int columns)
        : row(owner.context_.lane / 4),
          count(shares ? num_rows : num_rows - owner.first_row()),
          row_bytes(gathered_row_bytes(columns)),
          quad_offset((shares ? 0 : owner.first_row()) * kRowsShape.parts * row_bytes + owner.quad_offset()),
          first_block(shares ? owner.worker_ : owner.column_warp()),
          stride(shares ? kWorkers : kColumnWarps<kPlan>) {}
    SOLITON_DEVICE bool is_empty() const { return count <= 0; }
    SOLITON_DEVICE bool is_there(int n) const { return n * 8 < count; }
    /// Of a row that is not there those of another: sums are numbers.
    SOLITON_DEVICE uint4 load(const unsigned char* input, int block, int part, int n) const {
      const int own = n * 8 + row < count ? n * 8 + row : 0;
      const unsigned char* of_row = input + (own * kRowsShape.parts + part) * row_bytes;
      return load_shared(reinterpret_cast<const uint4*>(of_row + block * (kColumnBlock * 2) + quad_offset));
    }
  };

  /// kPerSlot: tiles of a slot, of `columns` columns each. `shares`: do all workers multiply the same rows?
  template <int kPerSlot>
  SOLITON_DEVICE void multiply_gathered(PageStream<kPlan>& stream, const MatrixPhase& phase, int num_rows,
                                        bool shares, int columns, int tiles, Sums& sums) {
    const int most = gathered_columns<kPlan>(num_rows);
    const GatheredRows rows(*this, num_rows, shares, phase.padded < most ? phase.padded : most);
    multiply_slots<false, kPerSlot>(stream, phase, {phase.padded, most, columns}, tiles, sums, rows);
  }

  /// The same where columns of the product are rows, and the operand is an expert's pairs.
  struct OwnPairs {
    int offsets[kRowGroups];  // of the row's pair; -1: it has not chosen the expert
    int pairs;
    uint32_t groups = 0;  // in which some row has, a bit each
    int first_block;
    static constexpr int stride = kColumnWarps<kPlan>;

    SOLITON_DEVICE OwnPairs(const ExpertMultiplier& owner, int number) {
      const ExpertSlot<kPlan> slot(owner.context_, number);
      pairs = slot.pairs();
      first_block = owner.column_warp();
      SOLITON_UNROLL
      for (int n = 0; n < kRowGroups; ++n) {
        const int first = owner.first_row() + n * 8;
        const int row = first + owner.context_.lane / 4;
        offsets[n] = slot.has(row) ? slot.rank(row) * (kColumnBlock * 2) + owner.quad_offset() : -1;
        groups |= (slot.mask(first / 32) >> first % 32 & 0xff) != 0 ? 1u << n : 0;
      }
    }
    SOLITON_DEVICE bool is_empty() const { return groups == 0; }
    SOLITON_DEVICE bool is_there(int n) const { return (groups >> n & 1) != 0; }
    SOLITON_DEVICE uint4 load(const unsigned char* input, int block, int part, int n) const {
      const unsigned char* of_part = input + (block * kRowsShape.parts + part) * pairs * (kColumnBlock * 2);
      return offsets[n] < 0 ? make_uint4(0, 0, 0, 0)
                            : load_shared(reinterpret_cast<const uint4*>(of_part + offsets[n]));
    }
  };

  SOLITON_DEVICE int quad_offset() const { return context_.lane % 4 * 16; }

  SOLITON_DEVICE void multiply_columns(PageStream<kPlan>& stream, const MatrixPhase& phase, int tiles,
                                       Sums& sums) {
    const int slots = context_.expert_slots();
    SOLITON_NO_UNROLL
    for (int slot = 0; slot < slots; ++slot) {
      const OwnPairs pairs(*this, slot);
      const int most = gathered_columns<kPlan>(pairs.pairs);
      multiply_slots<true, 1>(
          stream, phase,
          {kPlan.model.mixture.ffn, most, expert_slot_columns<kPlan>(phase.format.type, pairs.pairs)}, tiles,
          sums, pairs);
    }
  }

  struct Columns {
    int all;
    int of_chunk;  // of the input
    int of_slot;
  };

  /// All slots of some tiles, kPerSlot side by side.
  template <bool kDivided, int kPerSlot, class Operand>
  SOLITON_DEVICE void multiply_slots(PageStream<kPlan>& stream, const MatrixPhase& phase,
                                     const Columns& columns, int tiles, Sums& sums, const Operand& operand) {
    if constexpr (kPlan.model.integers.has_scales()) {
      if (phase.format.has_scales())
        return with_integers<kPlan>(phase.format.type, [&]<WeightFormat kFormat>() {
          this->template multiply_pages<kFormat, kDivided>(stream, columns.all, columns.of_chunk, tiles, sums,
                                                           operand);
        });
    }
    with_blocks<kPlan>(phase.format.type, [&]<WeightFormat kFormat>() {
      multiply_chunks<kFormat, kPerSlot>(stream, columns, tiles, sums, operand);
    });
  }

  template <WeightFormat kFormat, int kPerSlot, class Operand>
  SOLITON_DEVICE void multiply_chunks(PageStream<kPlan>& stream, const Columns& columns, int tiles,
                                      Sums& sums, const Operand& operand) {
    SOLITON_NO_UNROLL
    for (int column = 0; column < columns.all; column += columns.of_chunk) {
      const unsigned char* input = input_.wait();
      const int count = columns.all - column < columns.of_chunk ? columns.all - column : columns.of_chunk;
      SOLITON_NO_UNROLL
      for (int begin = 0; begin < count; begin += columns.of_slot) {
        const int rest = count - begin < columns.of_slot ? count - begin : columns.of_slot;
        multiply_tiles<kFormat, kPerSlot>(stream, input, {begin / kColumnBlock, rest / kColumnBlock}, tiles,
                                          sums, operand);
      }
      input_.release();
    }
  }

  /// Blocks of 32 columns that a slot has, of a chunk of the input.
  struct Blocks {
    int first;
    int count;
  };

  template <WeightFormat kFormat, int kPerSlot, class Operand>
  SOLITON_DEVICE void multiply_tiles(PageStream<kPlan>& stream, const unsigned char* input,
                                     const Blocks& blocks, int tiles, Sums& sums, const Operand& operand) {
    SOLITON_UNROLL
    for (int tile = 0; tile < kTilesAtOnce<kPlan>; tile += kPerSlot) {
      if (tile >= tiles) break;
      const int slot = stream.wait();
      SOLITON_UNROLL
      for (int t = 0; t < kPerSlot; ++t) {
        if (tile + t >= tiles) break;
        multiply_tile<kFormat>(stream.bytes(slot) + t * (kPageBytes / kPerSlot), input, blocks, operand,
                               sums.value[tile + t]);
      }
      stream.release(slot);
    }
  }

  template <WeightFormat kFormat, class Operand>
  SOLITON_DEVICE void multiply_tile(const unsigned char* weights, const unsigned char* input,
                                    const Blocks& blocks, const Operand& operand,
                                    float (&sums)[kRowGroups][kChains][4]) const {
    if (operand.is_empty()) return;
    const MmaBatch batch;
    SOLITON_NO_UNROLL
    for (int block = operand.first_block; block < blocks.count; block += operand.stride) {
      const BlockOperands weight =
          Gemv<kFormat>::load(weights + block * kFormat.block_bytes(), context_.lane);
      SOLITON_UNROLL
      for (int part = 0; part < kRowsShape.parts; ++part) {
        SOLITON_UNROLL
        for (int n = 0; n < kRowGroups; ++n) {
          if (!operand.is_there(n)) continue;
          const uint4 x = operand.load(input, blocks.first + block, part, n);
          mma_bf16(sums[n][2 * part % kChains], weight.first, make_uint2(x.x, x.y));
          mma_bf16(sums[n][(2 * part + 1) % kChains], weight.second, make_uint2(x.z, x.w));
        }
      }
    }
  }
};

}  // namespace soliton::rows
