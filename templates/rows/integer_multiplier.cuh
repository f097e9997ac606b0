// Integers, and E4M3, that become bf16 on their way to the registers, where warpgroups multiply: less their zeros, exactly, and then
// products are scaled; or times their scales, where registers hold no products beside the sums.
#pragma once

#include "formats/integer_scales.cuh"
#include "formats/integer_words.cuh"
#include "rows/integer_slot.cuh"
#include "rows/warpgroup_tiles.cuh"

namespace soliton::rows {

template <const KernelPlan& kPlan>
class IntegerMultiplier : public WarpgroupTiles<kPlan> {
  using Base = WarpgroupTiles<kPlan>;

 public:
  using Base::Base, Base::kRowsShape;

 protected:
  using Base::context_, Base::input_, Base::kMmaBytes;
  using Base::warpgroup, Base::own_groups, Base::pass, Base::issue, Base::end_chunk, Base::put_all;
  template <int kMmas>
  using Weights = typename Base::template Weights<kMmas>;

  /// See WarpgroupMultiplier::multiply().
  template <class Put>
  SOLITON_DEVICE void multiply_integers(PageStream<kPlan>& stream, const MatrixPhase& phase,
                                        const TileBlock& block, int count, const Put& put) {
    const int own = own_groups(count);
    if (Base::kMostGroups == 2 && own == 2) {
      multiply_integer_groups<Base::kMostGroups>(stream, phase, block, count, put);
    } else if (own >= 1) {
      multiply_integer_groups<1>(stream, phase, block, count, put);
    } else {
      for (int i = 0; i < block.num_chunks; ++i) {
        pass(stream, 1);
        for (int chunk = 0; chunk < kSlotChunks; ++chunk) {
          input_.wait();
          input_.release();
        }
      }
    }
  }

 private:
  static constexpr WeightFormat kFormat = kPlan.model.integers;
  static constexpr int kIntegerColumns = kRowsShape.slot_columns(kPlan.model.integers);
  static constexpr int kSlotChunks = kIntegerColumns / kRowsShape.chunk_columns();
  static constexpr int kSlotSteps = kIntegerColumns / (kStrips * kStepColumns);
  static constexpr int kChunkSteps = kRowsShape.chunk_columns() / (kStrips * kStepColumns);

  /// Of 4 bits as they stand: ptxas then keeps them in place.
  static constexpr bool kNibbles = kFormat.bits() == 4;
  using Words = std::conditional_t<kNibbles, uint4, StepWords<kFormat>>;
  static SOLITON_DEVICE uint32_t nibbles(const uint4& words, int strip, int half) {
    return strip == 0 ? (half == 0 ? words.x : words.y) : (half == 0 ? words.z : words.w);
  }
  static SOLITON_DEVICE uint4 operand(const Words& words, int strip, int half, const int32_t (&zeros)[2]) {
    if constexpr (kNibbles) {
      return spread_to_bf16(nibbles(words, strip, half), zeros);
    } else {
      return words.to_bf16(strip, half, zeros);
    }
  }
  static SOLITON_DEVICE uint4 scaled_operand(const Words& words, int strip, int half,
                                             const int32_t (&zeros)[2], const uint32_t (&scales)[2]) {
    if constexpr (kNibbles) {
      return scale_to_bf16(nibbles(words, strip, half), zeros, scales);
    } else {
      return words.to_scaled_bf16(strip, half, zeros, scales);
    }
  }

  /// What a lane has of both strips of a step: words and scales as they stand, and what it multiplies by of one.
  struct Step {
    Words words;
    ScaleWords<kFormat> scales[kStrips];
  };
  using Strip = Weights<kStepColumns / kMmaColumns>;

  /// A slot has the tiles of all groups, and of their columns all chunks that it meets. Products of a set are summed, and
  /// then scaled: while a batch of them is made, the integers of the next become bf16.
  template <int kGroups, class Put>
  SOLITON_DEVICE void multiply_integer_groups(PageStream<kPlan>& stream, const MatrixPhase& phase,
                                              const TileBlock& block, int count, const Put& put) {
    if constexpr (kRowsShape.slot_chunks > 1) {
      return multiply_scaled_chunks(stream, phase, block, count, put);
    } else if constexpr (kRowsShape.scales_first) {
      return multiply_scaled<kGroups>(stream, phase, block, count, put);
    } else {
      float sums[kGroups][kBlockRows<kPlan> / 2] = {};
      SOLITON_NO_UNROLL
      for (int left = block.num_chunks; left > 0; --left) {
        const int slot = stream.wait_turn(warpgroup());
        const int steps = steps_of_unit(phase, left);
        const CoreMatrices input[kSlotChunks] = {CoreMatrices(input_.wait()),
                                                 CoreMatrices(input_.wait_second())};
        SOLITON_UNROLL
        for (int group = 0; group < kGroups; ++group)
          add_slot(sums[group], stream.bytes(slot), this->template tile_of<kGroups>(group, count), steps,
                   input);
        stream.release_turn(slot);
        for (int chunk = 0; chunk < kSlotChunks; ++chunk) input_.release();
      }
      put_all(sums, count, put);
    }
  }

  static constexpr int kSetSteps = kPlan.set_steps();
  static constexpr int kBatchSteps = kSetSteps < 2 ? kSetSteps : 2;
  static constexpr int kBatches = kSlotSteps / kBatchSteps;  // of a strip
  static constexpr int kSetBatches = kSetSteps / kBatchSteps;

  SOLITON_DEVICE void add_slot(float (&sums)[kBlockRows<kPlan> / 2], const unsigned char* slot, int tile,
                               int steps, const CoreMatrices (&input)[kSlotChunks]) const {
    Step loaded[kSlotSteps];
    SOLITON_UNROLL
    for (int i = 0; i < kSlotSteps; ++i) loaded[i] = load_step(slot, tile, i, steps);
    const bool pairs = steps > 1;
    constexpr int kPlaces = kRowsShape.product_sets;
    float products[kPlaces][kBlockRows<kPlan> / 2];
    RowScales scales[kPlaces];
    Strip batches[2][kBatchSteps];
    const auto take = [&](int set) {
      SOLITON_UNROLL
      for (int i = 0; i < kBlockRows<kPlan> / 2; ++i)
        sums[i] += scales[set % kPlaces].scale[i / 2 % 2] * products[set % kPlaces][i];
    };
    SOLITON_UNROLL
    for (int i = 0; i < kStrips * kBatches; ++i) {
      const int strip = i / kBatches;
      const int first = i % kBatches * kBatchSteps;
      const int set = i / kSetBatches;
      const bool begins = i % kSetBatches == 0;
      float(&own)[kBlockRows<kPlan> / 2] = products[set % kPlaces];
      const RowScales scale = row_scales<kFormat>(loaded[first].scales[strip]);
      if (i > 1) warpgroup_wait_but_last();
      SOLITON_UNROLL
      for (int k = 0; k < kBatchSteps; ++k) {
        const Words& words = loaded[first + k].words;
        batches[i % 2][k] = {{operand(words, strip, 0, scale.zero), operand(words, strip, 1, scale.zero)}};
      }
      if (kPlaces == 1 && begins && i > 0) {
        warpgroup_wait(own);
        take(set - 1);
      }
      if (begins) scales[set % kPlaces] = scale;
      warpgroup_fence();
      SOLITON_UNROLL
      for (int k = 0; k < kBatchSteps; ++k) {
        const int step = first + k;
        const CoreMatrices from =
            input[step / kChunkSteps].behind(place_of(step % kChunkSteps, strip, pairs));
        SOLITON_UNROLL
        for (int half = 0; half < 2; ++half) {
          if (begins && k == 0 && half == 0) {
            warpgroup_multiply<false>(own, batches[i % 2][k].mmas[half], from);
          } else {
            warpgroup_multiply(own, batches[i % 2][k].mmas[half], from.behind(half * kMmaBytes));
          }
        }
      }
      warpgroup_commit();
      if (kPlaces > 1 && begins && i > 0) {
        warpgroup_wait<false>(products[(set - 1) % kPlaces]);
        take(set - 1);
      }
    }
    constexpr int kLast = kStrips * kBatches / kSetBatches - 1;
    warpgroup_wait(products[kLast % kPlaces]);
    take(kLast);
  }

  /// While a strip is multiplied, the next is made, and what the one behind it is made of is loaded.
  template <int kGroups, class Put>
  SOLITON_DEVICE void multiply_scaled(PageStream<kPlan>& stream, const MatrixPhase& phase,
                                      const TileBlock& block, int count, const Put& put) {
    float sums[kGroups][kBlockRows<kPlan> / 2] = {};
    Strip strips[kStrips];
    int left = block.num_chunks;  // slots
    int slot = stream.wait_turn(warpgroup());
    int steps = steps_of_unit(phase, left);
    const auto load = [&](int group, int index) {
      return load_step(stream.bytes(slot), this->template tile_of<kGroups>(group, count), index, steps);
    };
    Step step = load(0, 0);
    strips[0] = strip_of(step, 0);
    SOLITON_NO_UNROLL
    for (; left > 0; --left) {
      SOLITON_NO_UNROLL
      for (int first = 0; first < kSlotSteps; first += kChunkSteps) {
        const bool ends_slot = first + kChunkSteps == kSlotSteps;
        const CoreMatrices input(input_.wait());
        const bool pairs = steps > 1;
        SOLITON_UNROLL
        for (int group = 0; group < kGroups; ++group) {
          SOLITON_UNROLL
          for (int k = 0; k < kChunkSteps; ++k) {
            issue(sums[group], strips[0], input.behind(place_of(k, 0, pairs)));
            warpgroup_wait_but_last();
            strips[1] = strip_of(step, 1);
            issue(sums[group], strips[1], input.behind(place_of(k, 1, pairs)));
            if (k < kChunkSteps - 1) {
              step = load(group, first + k + 1);
              if (ends_slot && group == kGroups - 1) stream.release_turn(slot);
            } else if (group < kGroups - 1) {
              step = load(group + 1, first);
            } else if (!ends_slot) {
              step = load(0, first + kChunkSteps);
            } else if (left > 1) {
              slot = stream.wait_turn(warpgroup());
              steps = steps_of_unit(phase, left - 1);
              step = load(0, 0);
            }
            warpgroup_wait_but_last();
            strips[0] = strip_of(step, 0);
          }
        }
        end_chunk(sums);
      }
    }
    put_all(sums, count, put);
  }

  /// The same of one group of tiles, where a chunk has one step of both strips: it is released when the next one's products are
  /// on their way.
  template <class Put>
  SOLITON_DEVICE void multiply_scaled_chunks(PageStream<kPlan>& stream, const MatrixPhase& phase,
                                             const TileBlock& block, int count, const Put& put) {
    static_assert(kChunkSteps == 1 && Base::kMostGroups == 1);
    float sums[1][kBlockRows<kPlan> / 2] = {};
    Strip strips[kStrips];
    bool is_first = true;
    SOLITON_NO_UNROLL
    for (int left = block.num_chunks; left > 0; --left) {
      const int slot = stream.wait_turn(warpgroup());
      const int steps = steps_of_unit(phase, left);
      const bool pairs = steps > 1;
      SOLITON_UNROLL
      for (int k = 0; k < kSlotSteps; ++k) {
        const Step step = load_step(stream.bytes(slot), this->tile_of_group(), k, steps);
        if (k == kSlotSteps - 1) stream.release_turn(slot);
        strips[0] = strip_of(step, 0);
        const CoreMatrices input(is_first ? input_.wait() : input_.wait_second());
        issue(sums[0], strips[0], input.behind(place_of(0, 0, pairs)));
        warpgroup_wait_but_last();  // for what the chunk before is the operand of
        if (!is_first) input_.release();
        is_first = false;
        strips[1] = strip_of(step, 1);
        issue(sums[0], strips[1], input.behind(place_of(0, 1, pairs)));
        warpgroup_wait_but_last();
      }
    }
    end_chunk(sums);
    put_all(sums, count, put);
  }

  /// In the page that a slot is of, behind which `left` - 1 others of this CTA's block follow. There are no registers to keep
  /// the block in: it is found anew.
  SOLITON_DEVICE int steps_of_unit(const MatrixPhase& phase, int left) const {
    int columns = kFormat.page_columns();
    if constexpr (!kPlan.has_full_pages()) {
      context_.cta = opaque(context_.cta);
      const TileBlock block = context_.block(phase);
      const int column = block.first_column + block.chunk(block.num_chunks - left) * kIntegerColumns;
      columns = page_of(kPlan.model.integers, phase.padded, column).columns;
    }
    return columns / kFormat.least_columns();
  }

  /// Step `index` of a slot's columns, of a page whose units have `steps` steps.
  SOLITON_DEVICE Step load_step(const unsigned char* slot, int tile, int index, int steps) const {
    using Slot = IntegerSlot<kPlan>;
    const unsigned char* words = slot + tile * Slot::kWordBytes + index * kFormat.step_bytes();
    Step step = {};
    if constexpr (kNibbles) {
      step.words = load_shared(reinterpret_cast<const uint4*>(words) + context_.lane);
    } else {
      step.words = Words::load(words, context_.lane);
    }
    SOLITON_UNROLL
    for (int strip = 0; strip < kStrips; ++strip) {
      step.scales[strip] =
          load_scale_words<kFormat>(slot + Slot::scales_of(tile) +
                                    Slot::scale_offset(group_of(index, strip, steps), context_.lane / 4));
    }
    return step;
  }
  /// Of a slot's groups.
  static SOLITON_DEVICE int group_of(int index, int strip, int steps) {
    constexpr int kGroupSteps = kFormat.group / kStepColumns;
    if constexpr (kPlan.has_full_pages() && kChunksOfUnit<kPlan> == kSlotChunks)
      return index % kSlotSteps / kGroupSteps + strip * kSlotSteps / kGroupSteps;
    const int first = (index & -steps) + index;  // units before it have two strips of as many steps
    return (first + strip * steps) / kGroupSteps;
  }
  static SOLITON_DEVICE Strip strip_of(const Step& step, int strip) {
    const RowScales own = row_scales<kFormat>(step.scales[strip]);
    using Formed = StepWords<kFormat>;
    const uint32_t scales[2] = {Formed::scale_pair(own.scale[0]), Formed::scale_pair(own.scale[1])};
    return {{scaled_operand(step.words, strip, 0, own.zero, scales),
             scaled_operand(step.words, strip, 1, own.zero, scales)}};
  }
  /// Where its columns lie in a chunk of the input: the first strips of all steps come before the second ones, but for
  /// pages whose units have one step.
  static SOLITON_DEVICE int place_of(int step, int strip, bool pairs) {
    return (pairs ? step + strip * kChunkSteps : step * kStrips + strip) * kColumnBlock * kBlockRows<kPlan> *
           2;
  }
};

}  // namespace soliton::rows
