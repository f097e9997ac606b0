// The same for models with mixtures of experts. Tiles of gate and up are of one expert each: activations of its rows, whom
// all CTAs have in shared memory, are gathered, and sums are those of its pairs. Down's experts come one after the other:
// activations are those of their pairs, and sums those of rows, to which an expert adds nothing that the row has not
// chosen.
#pragma once

#include "rows/experts.cuh"
#include "rows/multiplier.cuh"

namespace soliton::rows {

template <const KernelPlan& kPlan>
class ExpertMultiplier : public Multiplier<kPlan> {
  using Base = Multiplier<kPlan>;
  using Base::context_, Base::input_, Base::column_warp, Base::first_row;
  using Base::kRowsShape, Base::kRowGroups, Base::kChains, Base::kTilesTogether;

 public:
  using typename Base::Sums;
  using Base::Base;

  /// Multiplies the next tiles, kTilesAtOnce at most, by all of the input.
  SOLITON_DEVICE void multiply(PageStream<kPlan>& stream, const MatrixPhase& phase, const TileRun& run,
                               Sums& sums) {
    const ExpertPhase& experts = kExpertTable<kPlan>.phases[phase.number];
    if (experts.axis == ExpertAxis::kNone) return Base::multiply(stream, phase, run.count, sums);
    if (experts.axis == ExpertAxis::kColumns) return multiply_columns(stream, phase, run.count, sums);
    ChosenRows rows[kTilesAtOnce<kPlan>];
    SOLITON_UNROLL
    for (int tile = 0; tile < kTilesAtOnce<kPlan>; ++tile) {
      const int number = run.first + (tile < run.count ? tile : 0) * run.stride;
      rows[tile] = ChosenRows(*this, number / experts.tiles);
    }
    multiply_slots<false>(stream, phase, phase.padded, kRowsShape.chunk_columns(), run.count, sums,
                          [&](int tile) { return rows[tile]; });
  }

 private:
  /// Of each group of 8 columns of the product what this lane has of the operand.
  struct ChosenRows {
    int offsets[kRowGroups];  // of the pair's row
    int pairs = 0;

    ChosenRows() = default;
    SOLITON_DEVICE ChosenRows(const ExpertMultiplier& owner, int number) {
      const ExpertSlot<kPlan> slot(owner.context_, number);
      const int first = slot.first_pair();
      pairs = slot.pairs() - owner.first_row();
      SOLITON_UNROLL
      for (int n = 0; n < kRowGroups; ++n) {
        const int own = n * 8 + owner.context_.lane / 4;
        // Sums of a pair that is not there nobody looks at.
        const int pair = owner.first_row() + (own < pairs ? own : 0);
        offsets[n] = (pairs > 0 ? slot.row_of(first + pair) : 0) * (kColumnBlock * 2) + owner.quad_offset();
      }
    }
    SOLITON_DEVICE bool is_there(int n) const { return n * 8 < pairs; }
    SOLITON_DEVICE uint4 load(const unsigned char* input, int block, int part, int n) const {
      const unsigned char* of_part = input + (block * kRowsShape.parts + part) * kPlan.rows * (kColumnBlock * 2);
      return load_shared(reinterpret_cast<const uint4*>(of_part + offsets[n]));
    }
  };

  /// The same where columns of the product are rows, and the operand is an expert's pairs.
  struct OwnPairs {
    int offsets[kRowGroups];  // of the row's pair; -1: it has not chosen the expert
    int pairs;
    uint32_t groups = 0;  // in which some row has, a bit each

    SOLITON_DEVICE OwnPairs(const ExpertMultiplier& owner, int number) {
      const ExpertSlot<kPlan> slot(owner.context_, number);
      pairs = slot.pairs();
      SOLITON_UNROLL
      for (int n = 0; n < kRowGroups; ++n) {
        const int first = owner.first_row() + n * 8;
        const int row = first + owner.context_.lane / 4;
        offsets[n] = slot.has(row) ? slot.rank(row) * (kColumnBlock * 2) + owner.quad_offset() : -1;
        groups |= (slot.mask(first / 32) >> first % 32 & 0xff) != 0 ? 1u << n : 0;
      }
    }
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
      multiply_slots<true>(stream, phase, kPlan.model.mixture.ffn, pair_chunk_columns<kPlan>(pairs.pairs), tiles,
                           sums, [&](int) { return pairs; });
    }
  }

  /// Slots of `columns` columns of some tiles, of which a chunk of the input has `chunk`. `operand(tile)`: what its weights
  /// are multiplied with.
  template <bool kDivided, class OperandOf>
  SOLITON_DEVICE void multiply_slots(PageStream<kPlan>& stream, const MatrixPhase& phase, int columns,
                                     int chunk, int tiles, Sums& sums, const OperandOf& operand) {
    if constexpr (kPlan.model.integers.has_scales()) {
      if (phase.format.has_scales())
        return this->template multiply_pages<kDivided>(stream, columns, chunk, tiles, sums, operand);
    }
    constexpr int kSlotColumns = kRowsShape.chunk_columns();
    SOLITON_NO_UNROLL
    for (int column = 0; column < columns; column += chunk) {
      const unsigned char* input = input_.wait();
      const int count = columns - column < chunk ? columns - column : chunk;
      SOLITON_NO_UNROLL
      for (int begin = 0; begin < count; begin += kSlotColumns) {
        const int rest = count - begin < kSlotColumns ? count - begin : kSlotColumns;
        multiply_tiles(stream, input, {begin / kColumnBlock, rest / kColumnBlock}, tiles, sums, operand);
      }
      input_.release();
    }
  }

  /// Blocks of 32 columns that a slot has, of a chunk of the input.
  struct Blocks {
    int first;
    int count;
  };

  template <class OperandOf>
  SOLITON_DEVICE void multiply_tiles(PageStream<kPlan>& stream, const unsigned char* input, const Blocks& blocks,
                                     int tiles, Sums& sums, const OperandOf& operand) {
    constexpr int kPerSlot = kRowsShape.tiles_per_slot;
    SOLITON_UNROLL
    for (int tile = 0; tile < kTilesAtOnce<kPlan>; tile += kPerSlot) {
      if (tile >= tiles) break;
      const int slot = stream.wait();
      SOLITON_UNROLL
      for (int t = 0; t < kPerSlot; ++t) {
        if (tile + t >= tiles) break;
        multiply_tile(stream.bytes(slot) + t * (kPageBytes / kPerSlot), input, blocks, operand(tile + t),
                      sums.value[tile + t]);
      }
      stream.release(slot);
    }
  }

  template <class Operand>
  SOLITON_DEVICE void multiply_tile(const unsigned char* weights, const unsigned char* input,
                                    const Blocks& blocks, const Operand& operand,
                                    float (&sums)[kRowGroups][kChains][4]) const {
    SOLITON_NO_UNROLL
    for (int block = column_warp(); block < blocks.count; block += kColumnWarps<kPlan>) {
      const uint4* fragments = reinterpret_cast<const uint4*>(weights + block * 2 * kFragmentBytes) + context_.lane;
      const uint4 first = load_shared(fragments);
      const uint4 second = load_shared(fragments + kWarpLanes);
      SOLITON_UNROLL
      for (int part = 0; part < kRowsShape.parts; ++part) {
        SOLITON_UNROLL
        for (int n = 0; n < kRowGroups; ++n) {
          if (!operand.is_there(n)) continue;
          const uint4 x = operand.load(input, blocks.first + block, part, n);
          mma_bf16(sums[n][2 * part % kChains], first, make_uint2(x.x, x.y));
          mma_bf16(sums[n][(2 * part + 1) % kChains], second, make_uint2(x.z, x.w));
        }
      }
    }
  }
};

}  // namespace soliton::rows
