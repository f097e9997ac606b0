// Integers, and E4M3, that become bf16 on their way to the registers, where warpgroups multiply: less their zeros, exactly, and then
// products are scaled; or times their scales, where registers hold no products beside the sums.
#pragma once

#include "rows/integer_steps.cuh"
#include "rows/warpgroup_tiles.cuh"

namespace soliton::rows {

template <const KernelPlan& kPlan>
class IntegerMultiplier : public WarpgroupTiles<kPlan> {
  using Base = WarpgroupTiles<kPlan>;

 public:
  using Base::Base, Base::kRowsShape;

 protected:
  using Base::context_, Base::input_, Base::kMmaBytes;
  using Base::warpgroup, Base::issue, Base::end_chunk;
  template <int kMmas>
  using Weights = typename Base::template Weights<kMmas>;

  /// A slot has the tiles of all groups, and of their columns all chunks that it meets. Products of a set are summed, and
  /// then scaled: while a batch of them is made, the integers of the next become bf16.
  template <WeightFormat kFormat, int kGroups>
  SOLITON_DEVICE void add_integers(PageStream<kPlan>& stream, const MatrixPhase& phase,
                                   const TileBlock& block, int count,
                                   float (&sums)[kGroups][Base::kMmaRows / 2]) {
    if constexpr (kRowsShape.slot_chunks > 1) {
      add_scaled_chunks<kFormat>(stream, phase, block, sums);
    } else if constexpr (kRowsShape.scales_first) {
      add_scaled<kFormat>(stream, phase, block, count, sums);
    } else {
      SOLITON_NO_UNROLL
      for (int left = block.num_chunks; left > 0; --left) {
        const int slot = stream.wait_turn(warpgroup());
        const int steps = steps_of_unit<kFormat>(phase, left);
        constexpr int kChunks = IntegerSteps<kPlan, kFormat>::kChunks;
        const CoreMatrices input[kChunks] = {CoreMatrices(input_.wait()), CoreMatrices(input_.wait_second())};
        SOLITON_UNROLL
        for (int group = 0; group < kGroups; ++group) {
          const int tile = this->template tile_of<kGroups>(group, count);
          if constexpr (kFormat.block > 0) {
            add_block<kFormat>(sums[group], stream.bytes(slot), tile, steps, input);
          } else {
            add_slot<kFormat>(sums[group], stream.bytes(slot), tile, steps, input);
          }
        }
        stream.release_turn(slot);
        for (int chunk = 0; chunk < kChunks; ++chunk) input_.release();
      }
    }
  }

 private:
  template <WeightFormat kFormat>
  SOLITON_DEVICE void add_slot(float (&sums)[Base::kMmaRows / 2], const unsigned char* slot, int tile,
                               int steps,
                               const CoreMatrices (&input)[IntegerSteps<kPlan, kFormat>::kChunks]) const {
    using Steps = IntegerSteps<kPlan, kFormat>;
    static_assert(!kFormat.has_minima);
    constexpr int kSetSteps = Steps::kSetSteps;
    constexpr int kBatchSteps = kSetSteps < 2 ? kSetSteps : 2;
    constexpr int kBatches = Steps::kSteps / kBatchSteps;  // of a strip
    constexpr int kSetBatches = kSetSteps / kBatchSteps;
    // Do both strips of a unit share a scale? Then they are one set. Measured, 8 rows of the 8B in fp8: 2755 -> 2701.
    constexpr bool kJoins = kPlan.has_full_pages() && kFormat.block == 0 &&
                            kFormat.group % (kFormat.page_columns() / kUnits) == 0;
    constexpr int kBatchStrips = kJoins ? kStrips : 1;
    typename Steps::Step loaded[Steps::kSteps];
    SOLITON_UNROLL
    for (int i = 0; i < Steps::kSteps; ++i) loaded[i] = Steps::load(slot, tile, i, steps, context_.lane);
    const bool pairs = steps > 1;
    constexpr int kPlaces = kRowsShape.product_sets;
    float products[kPlaces][Base::kMmaRows / 2];
    RowScales scales[kPlaces];
    typename Steps::Strip batches[2][kBatchStrips][kBatchSteps];
    const auto take = [&](int set) {
      SOLITON_UNROLL
      for (int i = 0; i < Base::kMmaRows / 2; ++i)
        sums[i] += scales[set % kPlaces].scale[i / 2 % 2] * products[set % kPlaces][i];
    };
    SOLITON_UNROLL
    for (int i = 0; i < kStrips / kBatchStrips * kBatches; ++i) {
      const int first_strip = i / kBatches;
      const int first = i % kBatches * kBatchSteps;
      const int set = i / kSetBatches;
      const bool begins = i % kSetBatches == 0;
      float(&own)[Base::kMmaRows / 2] = products[set % kPlaces];
      const RowScales scale = row_scales<kFormat>(loaded[first].scales[first_strip]);
      if (i > 1) warpgroup_wait_but_last();
      SOLITON_UNROLL
      for (int s = 0; s < kBatchStrips; ++s) {
        SOLITON_UNROLL
        for (int k = 0; k < kBatchSteps; ++k) {
          const auto& words = loaded[first + k].words;
          batches[i % 2][s][k] = {{Steps::operand(words, first_strip + s, 0, scale.zero),
                                   Steps::operand(words, first_strip + s, 1, scale.zero)}};
        }
      }
      if (kPlaces == 1 && begins && i > 0) {
        warpgroup_wait(own);
        take(set - 1);
      }
      if (begins) scales[set % kPlaces] = scale;
      warpgroup_fence();
      SOLITON_UNROLL
      for (int s = 0; s < kBatchStrips; ++s) {
        const int strip = first_strip + s;
        SOLITON_UNROLL
        for (int k = 0; k < kBatchSteps; ++k) {
          const int step = first + k;
          const CoreMatrices from = input[step / Steps::kChunkSteps].behind(
              Steps::place_of(step % Steps::kChunkSteps, strip, pairs));
          SOLITON_UNROLL
          for (int half = 0; half < 2; ++half) {
            if (begins && s == 0 && k == 0 && half == 0) {
              warpgroup_multiply<false>(own, batches[i % 2][s][k].mmas[half], from);
            } else {
              warpgroup_multiply(own, batches[i % 2][s][k].mmas[half], from.behind(half * kMmaBytes));
            }
          }
        }
      }
      warpgroup_commit();
      if (kPlaces > 1 && begins && i > 0) {
        warpgroup_wait<false>(products[(set - 1) % kPlaces]);
        take(set - 1);
      }
    }
    constexpr int kLast = kStrips / kBatchStrips * kBatches / kSetBatches - 1;
    warpgroup_wait(products[kLast % kPlaces]);
    take(kLast);
  }

  /// Of a block of columns, whose groups count with integers. Weights times these are differences of two bf16, exactly; products of
  /// the block are summed, and then scaled. While a strip is multiplied, the next is made.
  template <WeightFormat kFormat>
  SOLITON_DEVICE void add_block(float (&sums)[Base::kMmaRows / 2], const unsigned char* slot, int tile,
                                int steps,
                                const CoreMatrices (&input)[IntegerSteps<kPlan, kFormat>::kChunks]) const {
    using Steps = IntegerSteps<kPlan, kFormat>;
    static_assert(Steps::Slot::kColumns == kFormat.block);
    constexpr int kHalves = kStepColumns / kMmaColumns;
    typename Steps::Step loaded[Steps::kSteps];
    SOLITON_UNROLL
    for (int i = 0; i < Steps::kSteps; ++i) loaded[i] = Steps::load(slot, tile, i, steps, context_.lane);
    const BlockScales<kFormat> block(slot + Steps::Slot::scales_of(tile), 0, context_.lane, 0);
    const bool pairs = steps > 1;
    typename Steps::Parts parts[2][kHalves];
    uint4 minimum[2];
    float products[Base::kMmaRows / 2];
    float minima[Base::kMmaRows / 2];
    SOLITON_UNROLL
    for (int i = 0; i < kStrips * Steps::kSteps; ++i) {
      const int step = i / kStrips;
      const int strip = i % kStrips;
      const FactorPairs factors = factor_pairs<kFormat>(loaded[step].scales[strip]);
      if (i > 1) warpgroup_wait_but_last();
      SOLITON_UNROLL
      for (int half = 0; half < kHalves; ++half)
        parts[i % 2][half] = Steps::parts(loaded[step].words, strip, half, factors);
      minimum[i % 2] =
          make_uint4(factors.minimum[0], factors.minimum[1], factors.minimum[0], factors.minimum[1]);
      const CoreMatrices from =
          input[step / Steps::kChunkSteps].behind(Steps::place_of(step % Steps::kChunkSteps, strip, pairs));
      warpgroup_fence();
      SOLITON_UNROLL
      for (int half = 0; half < kHalves; ++half) {
        const CoreMatrices columns = from.behind(half * kMmaBytes);
        if (i == 0 && half == 0) {
          warpgroup_multiply<false>(products, parts[0][0].low, columns);
          if constexpr (kFormat.has_minima) warpgroup_multiply<false>(minima, minimum[0], columns);
        } else {
          warpgroup_multiply(products, parts[i % 2][half].low, columns);
          if constexpr (kFormat.has_minima) warpgroup_multiply(minima, minimum[i % 2], columns);
        }
        warpgroup_subtract(products, parts[i % 2][half].minus_high, columns);
      }
      warpgroup_commit();
    }
    warpgroup_wait(products);
    if constexpr (kFormat.has_minima) warpgroup_wait(minima);
    SOLITON_UNROLL
    for (int i = 0; i < Base::kMmaRows / 2; ++i) {
      const int half = i / 2 % 2;
      sums[i] += block.scale(half) * (kFormat.unit() / Steps::kPartsUnit) * products[i];
      if constexpr (kFormat.has_minima) sums[i] -= block.minimum(half) * minima[i];
    }
  }

  /// While a strip is multiplied, the next is made, and what the one behind it is made of is loaded.
  template <WeightFormat kFormat, int kGroups>
  SOLITON_DEVICE void add_scaled(PageStream<kPlan>& stream, const MatrixPhase& phase, const TileBlock& block,
                                 int count, float (&sums)[kGroups][Base::kMmaRows / 2]) {
    using Steps = IntegerSteps<kPlan, kFormat>;
    constexpr int kChunkSteps = Steps::kChunkSteps;
    typename Steps::Strip strips[kStrips];
    int left = block.num_chunks;  // slots
    int slot = stream.wait_turn(warpgroup());
    int steps = steps_of_unit<kFormat>(phase, left);
    const auto load = [&](int group, int index) {
      return Steps::load(stream.bytes(slot), this->template tile_of<kGroups>(group, count), index, steps,
                         context_.lane);
    };
    typename Steps::Step step = load(0, 0);
    strips[0] = Steps::scaled_strip(step, 0);
    SOLITON_NO_UNROLL
    for (; left > 0; --left) {
      SOLITON_NO_UNROLL
      for (int first = 0; first < Steps::kSteps; first += kChunkSteps) {
        const bool ends_slot = first + kChunkSteps == Steps::kSteps;
        const CoreMatrices input(input_.wait());
        const bool pairs = steps > 1;
        SOLITON_UNROLL
        for (int group = 0; group < kGroups; ++group) {
          SOLITON_UNROLL
          for (int k = 0; k < kChunkSteps; ++k) {
            issue(sums[group], strips[0], input.behind(Steps::place_of(k, 0, pairs)));
            warpgroup_wait_but_last();
            strips[1] = Steps::scaled_strip(step, 1);
            issue(sums[group], strips[1], input.behind(Steps::place_of(k, 1, pairs)));
            if (k < kChunkSteps - 1) {
              step = load(group, first + k + 1);
              if (ends_slot && group == kGroups - 1) stream.release_turn(slot);
            } else if (group < kGroups - 1) {
              step = load(group + 1, first);
            } else if (!ends_slot) {
              step = load(0, first + kChunkSteps);
            } else if (left > 1) {
              slot = stream.wait_turn(warpgroup());
              steps = steps_of_unit<kFormat>(phase, left - 1);
              step = load(0, 0);
            }
            warpgroup_wait_but_last();
            strips[0] = Steps::scaled_strip(step, 0);
          }
        }
        end_chunk(sums);
      }
    }
  }

  /// The same of one group of tiles, where a chunk has one step of both strips: it is released when the next one's products are
  /// on their way.
  template <WeightFormat kFormat>
  SOLITON_DEVICE void add_scaled_chunks(PageStream<kPlan>& stream, const MatrixPhase& phase,
                                        const TileBlock& block, float (&sums)[1][Base::kMmaRows / 2]) {
    using Steps = IntegerSteps<kPlan, kFormat>;
    static_assert(Steps::kChunkSteps == 1 && Base::kMostGroups == 1);
    typename Steps::Strip strips[kStrips];
    bool is_first = true;
    SOLITON_NO_UNROLL
    for (int left = block.num_chunks; left > 0; --left) {
      const int slot = stream.wait_turn(warpgroup());
      const int steps = steps_of_unit<kFormat>(phase, left);
      const bool pairs = steps > 1;
      SOLITON_UNROLL
      for (int k = 0; k < Steps::kSteps; ++k) {
        const unsigned char* bytes = stream.bytes(slot);
        strips[0] = Steps::load_strip(bytes, this->tile_of_group(), k, 0, steps, context_.lane);
        const CoreMatrices input(is_first ? input_.wait() : input_.wait_second());
        issue(sums[0], strips[0], input.behind(Steps::place_of(0, 0, pairs)));
        warpgroup_wait_but_last();  // for what the chunk before is the operand of
        if (!is_first) input_.release();
        is_first = false;
        strips[1] = Steps::load_strip(bytes, this->tile_of_group(), k, 1, steps, context_.lane);
        if (k == Steps::kSteps - 1) stream.release_turn(slot);
        issue(sums[0], strips[1], input.behind(Steps::place_of(0, 1, pairs)));
        warpgroup_wait_but_last();
      }
    }
    end_chunk(sums);
  }

  /// In the page that a slot is of, behind which `left` - 1 others of this CTA's block follow. There are no registers to keep
  /// the block in: it is found anew.
  template <WeightFormat kFormat>
  SOLITON_DEVICE int steps_of_unit(const MatrixPhase& phase, int left) const {
    int columns = kFormat.page_columns();
    if constexpr (!kPlan.has_full_pages()) {
      context_.cta = opaque(context_.cta);
      const TileBlock block = context_.block(phase);
      const int column =
          block.first_column + block.chunk(block.num_chunks - left) * WeightSlot<kPlan, kFormat>::kColumns;
      columns = page_of(kFormat, phase.padded, column).columns;
    }
    return columns / kFormat.least_columns();
  }
};

}  // namespace soliton::rows
