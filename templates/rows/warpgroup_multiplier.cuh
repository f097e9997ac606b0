// The matrix work where warpgroups multiply: weights in bf16 as they are; E2M1 becomes bf16 in registers; integers do too
// (integer_multiplier.cuh), or with few rows are multiplied as they are (digit_multiplier.cuh).
#pragma once

#include "rows/digit_multiplier.cuh"
#include "rows/integer_multiplier.cuh"

namespace soliton::rows {

template <const KernelPlan& kPlan>
class WarpgroupMultiplier : public IntegerMultiplier<kPlan> {
  using Base = IntegerMultiplier<kPlan>;
  using Base::kMostGroups, Base::kMmaRows, Base::kMmaBytes;
  using Base::own_groups, Base::pass, Base::issue, Base::end_chunk, Base::put_all;
  template <int kMmas>
  using Weights = typename Base::template Weights<kMmas>;

 public:
  using Base::Base, Base::kRowsShape;

  /// Before the first tiles of a phase whose input becomes digits. Collective of all workers, which meet. `begin` waits for the
  /// input, `before` comes before they meet.
  template <class Begin, class Before>
  SOLITON_DEVICE void bring_digits(const MatrixPhase& phase, const TileBlock& block, uint32_t& met,
                                   const Begin& begin, const Before& before) const {
    with_digits(phase, [&]<WeightFormat kFormat>() {
      DigitMultiplier<kPlan, kFormat>(context_, worker_).bring(phase, block, met, begin, before);
    });
  }

  /// Tiles of a block.
  struct Tiles {
    int first;
    int count;
  };
  /// Multiplies the next tiles of a block, tiles_at_once() at most, by its columns, and puts down their sums with
  /// `put(tile, sums)`.
  template <class Put>
  SOLITON_DEVICE void multiply(PageStream<kPlan>& stream, const MatrixPhase& phase, const TileBlock& block,
                               const Tiles& tiles, uint32_t& met, const Put& put) {
    const int count = tiles.count;
    if (takes_digits<kPlan>(phase)) {
      return with_digits(phase, [&]<WeightFormat kFormat>() {
        DigitMultiplier<kPlan, kFormat>(context_, worker_)
            .multiply(stream, phase, block, tiles.first, count, met, put);
      });
    }
    const int own = own_groups(count);
    if constexpr (multiplies_bands(kPlan)) {
      if (own >= 1 && !context_.bands_of(phase).are_all)
        return multiply_bands(stream, context_.bands_of(phase), block.num_chunks, count, put);
    }
    if (kMostGroups == 2 && own == 2) {
      multiply_own<kMostGroups>(stream, phase, block, count, put);
    } else if (own >= 1) {
      multiply_own<1>(stream, phase, block, count, put);
    } else {
      pass_block(stream, phase, block.num_chunks, count);
    }
  }

 protected:
  using Base::context_, Base::worker_, Base::input_, Base::warpgroup, Base::tile_of_group;
  static constexpr int kSteps = kRowsShape.slot_columns({}) / kMmaColumns;
  static constexpr int kSets = 2;  // that a slot's products are made in: by registers
  static constexpr int kSetMmas = kSteps / kSets;
  static constexpr int kBlockMmas = kColumnBlock / kMmaColumns;
  static_assert(kRowsShape.tiles_per_slot == kGroupTiles, "a slot is a group's chunk of columns");

  SOLITON_DEVICE const unsigned char* weights_of(int slot, int tile) const {
    return context_.region(RegionId::kPages) + slot * kPlan.slot_bytes + tile * (kPageBytes / kGroupTiles);
  }
  SOLITON_DEVICE void load(Weights<kSetMmas>& weights, int slot, int set, int tile) const {
    const uint4* fragments = reinterpret_cast<const uint4*>(weights_of(slot, tile)) + context_.lane;
    SOLITON_UNROLL
    for (int k = 0; k < kSetMmas; ++k)
      weights.mmas[k] = load_shared(fragments + (set * kSetMmas + k) * kWarpLanes);
  }
  /// Of codes in E2M1, neighbouring blocks of columns of a tile.
  template <WeightFormat kFormat, int kMmas>
  SOLITON_DEVICE void load_codes(Weights<kMmas>& weights, const unsigned char* tile, int block) const {
    SOLITON_UNROLL
    for (int i = 0; i < kMmas / kBlockMmas; ++i) {
      const unsigned char* own = tile + (block + i) * kFormat.block_bytes();
      const BlockOperands operands = Gemv<kFormat>::load(own, context_.lane);
      weights.mmas[kBlockMmas * i] = operands.first;
      weights.mmas[kBlockMmas * i + 1] = operands.second;
    }
  }

 private:
  /// Calls body<format>() for the format of a phase whose input becomes digits.
  template <class Body>
  static SOLITON_DEVICE void with_digits(const MatrixPhase& phase, const Body& body) {
    if constexpr (kRowsShape.digits > 0) {
      with_integers<kPlan>(phase.format.type, [&]<WeightFormat kFormat>() {
        if constexpr (kShape<kPlan>.takes_digits(kFormat)) body.template operator()<kFormat>();
      });
    }
  }

  template <int kGroups>
  using Sums = float[kGroups][kMmaRows / 2];

  /// All formats add to the same registers, and what becomes of sums is there once.
  template <int kGroups, class Put>
  SOLITON_DEVICE void multiply_own(PageStream<kPlan>& stream, const MatrixPhase& phase,
                                   const TileBlock& block, int count, const Put& put) {
    Sums<kGroups> sums = {};
    with_format<kPlan>(phase.format.type, [&]<WeightFormat kFormat>() {
      if constexpr (!kFormat.has_scales()) {
        this->template add_blocks<kFormat, kGroups>(stream, block.num_chunks, count, sums);
      } else if constexpr (!kShape<kPlan>.takes_digits(kFormat)) {
        this->template add_integers<kFormat, kGroups>(stream, phase, block, count, sums);
      }
    });
    put_all(sums, phase.format.type, count, put);
  }
  /// The same of bf16, by two bands of the rows.
  template <class Put>
  SOLITON_DEVICE void multiply_bands(PageStream<kPlan>& stream, const Bands& bands, int chunks, int count,
                                     const Put& put) {
    context_.lane = opaque(context_.lane);
    BandSums sums[2] = {};
    add_chunks(stream, chunks, count, sums, [&](const Weights<kSetMmas>& weights, CoreMatrices input) {
      this->issue_bands(sums, weights, input, bands);
    });
    context_.lane = opaque(context_.lane);
    context_.cta = opaque(context_.cta);
    SOLITON_UNROLL
    for (BandSums& own : sums) this->scale_sums(own, WeightType::kBf16);
    const int own = warpgroup() * kGroupTiles + this->tile_of_group();
    if (own < count) put(own, sums);
  }
  /// The slots of a warpgroup that has none of the tiles.
  SOLITON_DEVICE void pass_block(PageStream<kPlan>& stream, const MatrixPhase& phase, int chunks, int count) {
    const int slots = phase.format.type == WeightType::kBf16 ? slots_of_chunk(count) : 1;
    const int inputs = slot_columns<kPlan>(phase) / kRowsShape.chunk_columns();
    for (int chunk = 0; chunk < chunks; ++chunk) {
      pass(stream, slots);
      for (int i = 0; i < inputs; ++i) {
        input_.wait();
        input_.release();
      }
    }
  }
  /// Of each warpgroup; some are empty.
  static SOLITON_DEVICE int slots_of_chunk(int count) {
    return ceil_divide(count, kWarpgroups * kGroupTiles);
  }

  template <WeightFormat kFormat, int kGroups>
  SOLITON_DEVICE void add_blocks(PageStream<kPlan>& stream, int chunks, int count, Sums<kGroups>& sums) {
    const int empty_slots = slots_of_chunk(count) - kGroups;
    if constexpr (kFormat.type == WeightType::kE2m1) {
      add_codes<kFormat>(stream, chunks, count, sums);
    } else if constexpr (kRowsShape.slot_chunks > 1) {
      add_chunks(stream, chunks, count, sums, [&](const Weights<kSetMmas>& weights, CoreMatrices input) {
        this->issue(sums[0], weights, input);
      });
    } else {
      add_slots(stream, chunks, empty_slots, count, sums);
    }
  }

  /// While one set of products is made, the weights of the next are loaded.
  template <int kGroups>
  SOLITON_DEVICE void add_slots(PageStream<kPlan>& stream, int chunks, int empty_slots, int count,
                                float (&sums)[kGroups][kMmaRows / 2]) {
    Weights<kSetMmas> weights[2];
    SOLITON_NO_UNROLL
    for (; chunks > 0; --chunks) {
      const CoreMatrices input(input_.wait());
      SOLITON_UNROLL
      for (int i = 0; i < kGroups; ++i) {
        const int slot = stream.wait_turn(warpgroup());
        SOLITON_UNROLL
        for (int set = 0; set < kSets; ++set) {
          load(weights[set % 2], slot, set, this->template tile_of<kGroups>(i, count) % kGroupTiles);
          if (set == kSets - 1) stream.release_turn(slot);
          issue(sums[i], weights[set % 2], input.behind(set * kSetMmas * kMmaBytes));
          if (i < kGroups - 1 || set < kSets - 1) warpgroup_wait_but_last();
        }
      }
      if (kGroups == 1) pass(stream, empty_slots);
      end_chunk(sums);
    }
  }

  /// One group, of slots that have a chunk of the activations for each set. A chunk is released when the next one's products
  /// are on their way: no wait is in between. issue(weights, input) begins these.
  template <class AllSums, class Issue>
  SOLITON_DEVICE void add_chunks(PageStream<kPlan>& stream, int slots, int count, AllSums& sums,
                                 const Issue& issue) {
    static_assert(kRowsShape.slot_chunks == 1 || (kRowsShape.slot_chunks == kSets && kMostGroups == 1));
    Weights<kSetMmas> weights[2] = {};
    const bool is_there = warpgroup() * kGroupTiles + this->tile_of_group() < count;
    bool is_first = true;
    SOLITON_NO_UNROLL
    for (; slots > 0; --slots) {
      const int slot = stream.wait_turn(warpgroup());
      SOLITON_UNROLL
      for (int set = 0; set < kSets; ++set) {
        if (is_there)
          load(weights[set], slot, set, this->tile_of_group());  // else products with 0, for less power
        if (set == kSets - 1) stream.release_turn(slot);
        issue(weights[set], CoreMatrices(is_first ? input_.wait() : input_.wait_second()));
        warpgroup_wait_but_last();
        if (!is_first) input_.release();
        is_first = false;
      }
    }
    end_chunk(sums);
  }

  /// Codes in E2M1: while a block of columns, or two, is multiplied, the next becomes bf16. Registers have no room for more of them.
  template <WeightFormat kFormat, int kGroups>
  SOLITON_DEVICE void add_codes(PageStream<kPlan>& stream, int slots, int count,
                                float (&sums)[kGroups][kMmaRows / 2]) {
    using Slot = WeightSlot<kPlan, kFormat>;
    constexpr int kChunkBlocks = kRowsShape.chunk_columns() / kColumnBlock;
    constexpr int kChunks = Slot::kColumns / kRowsShape.chunk_columns();  // of a slot
    constexpr int kTogether = kRowsShape.code_blocks;
    constexpr int kBatches = kGroups * kChunkBlocks / kTogether;  // of a chunk
    static_assert(kChunkBlocks % kTogether == 0 && kBatches % 2 == 0, "batches take turns in chunks alike");
    // What is computed of it is not kept beside what attention needs: registers.
    context_.lane = opaque(context_.lane);
    Weights<kTogether * kBlockMmas> weights[2];
    SOLITON_NO_UNROLL
    for (; slots > 0; --slots) {
      const int slot = stream.wait_turn(warpgroup());
      SOLITON_UNROLL
      for (int chunk = 0; chunk < kChunks; ++chunk) {
        const CoreMatrices input(input_.wait());
        SOLITON_UNROLL
        for (int batch = 0; batch < kBatches; ++batch) {
          const int group = batch / (kBatches / kGroups);
          const int block = batch % (kBatches / kGroups) * kTogether;
          load_codes<kFormat>(
              weights[batch % 2],
              stream.bytes(slot) + this->template tile_of<kGroups>(group, count) * Slot::kWordBytes,
              chunk * kChunkBlocks + block);
          if (batch == kBatches - 1 && chunk == kChunks - 1) stream.release_turn(slot);
          issue(sums[group], weights[batch % 2], input.behind(block * kBlockMmas * kMmaBytes));
          if (batch < kBatches - 1) warpgroup_wait_but_last();
        }
        end_chunk(sums);
      }
    }
  }
};

}  // namespace soliton::rows
