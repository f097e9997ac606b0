// The matrix work of a worker: its columns and rows of every tile. Pages of integers are multiplied in integer_pages.cuh.
#pragma once

#include "formats/formats.cuh"
#include "rows/input_stream.cuh"
#include "rows/integer_step.cuh"
#include "rows/page_stream.cuh"

namespace soliton::rows {

template <const KernelPlan& kPlan>
class Multiplier {
 protected:
  static constexpr RowsShape kRowsShape = kShape<kPlan>;
  static constexpr int kTiles = kRowsShape.tiles_together;
  static constexpr int kPerSlot = kRowsShape.tiles_per_slot;
  static constexpr int kSlots = kTiles / kPerSlot;
  static constexpr int kRowGroups =
      kBlockRows<kPlan> / 8 / (kWorkers / kColumnWarps<kPlan>);  // the n of the mma
  static constexpr int kTilesTogether = 2;                       // of integers
  /// Chains of dependent mma for each sum: few rows have few sums, and a chain is slow.
  static constexpr int kChains = kTiles * kRowGroups < 2 ? 2 : 1;

 public:
  /// value[t][n][c][0] and [1] belong to row lane / 4 of tile t and rows 8 n + lane % 4 * 2 and the next of this
  /// worker's rows of activations, [2] and [3] to row lane / 4 + 8.
  struct Sums {
    float value[kTilesAtOnce<kPlan>][kRowGroups][kChains][4];
  };

  SOLITON_DEVICE Multiplier(Context<kPlan>& context, int worker)
      : context_(context), worker_(worker), input_(context) {}

  /// Multiplies the next `tiles` tiles, kTilesAtOnce at most, by all of the input.
  SOLITON_DEVICE void multiply(PageStream<kPlan>& stream, const MatrixPhase& phase, int tiles, Sums& sums) {
    if constexpr (kPlan.model.integers.has_scales()) {
      if (phase.format.has_scales()) {
        const AllRows rows(*this);
        return with_integers<kPlan>(phase.format.type, [&]<WeightFormat kFormat>() {
          multiply_pages<kFormat, false>(stream, phase.padded, kRowsShape.chunk_columns(), tiles, sums, rows);
        });
      }
    }
    with_blocks<kPlan>(phase.format.type, [&]<WeightFormat kFormat>() {
      SOLITON_NO_UNROLL
      for (int column = 0; column < phase.padded; column += kRowsShape.chunk_columns()) {
        const unsigned char* input = input_.wait();
        SOLITON_UNROLL
        for (int tile = 0; tile < kTilesAtOnce<kPlan>; tile += kTiles) {
          if (tile >= tiles) break;
          multiply_tiles<kFormat>(stream, input, phase.padded - column, sums, {tile, tiles - tile});
        }
        input_.release();
      }
    });
  }

  /// Waits until the tiles handed over so far, one at least, have been taken. Pairs with the arrivals of those
  /// that finish them.
  SOLITON_DEVICE void wait_taken() const {
    context_.wait(context_.barrier(BarrierId::kTilesEmpty), parity_ ^ 1, WaitKind::kTilesEmpty, 0);
  }

  /// Puts down this worker's part of `count` tiles, from `tile` on, for those that finish them. Pairs with their
  /// waits.
  SOLITON_DEVICE void hand_over(const Sums& sums, int tile, int count) {
    begin_hand_over();
    SOLITON_UNROLL
    for (int t = 0; t < kHandedTiles<kPlan>; ++t) {
      if (t >= count) break;
      float* parts = context_.tile_parts(t, column_warp());
      SOLITON_UNROLL
      for (int n = 0; n < kRowGroups; ++n) {
        SOLITON_UNROLL
        for (int r = 0; r < 4; ++r) {
          float sum = sums.value[tile + t][n][0][r];
          SOLITON_UNROLL
          for (int chain = 1; chain < kChains; ++chain) sum += sums.value[tile + t][n][chain][r];
          const int row = first_row() + n * 8 + context_.lane % 4 * 2 + r % 2;
          store_shared(parts + row * kTileStride + context_.lane / 4 + r / 2 * 8, sum);
        }
      }
    }
    end_hand_over();
  }

 protected:
  SOLITON_DEVICE void begin_hand_over() {
    // True at once for the first use: the parity is that of the phase before the barrier's first.
    context_.wait(context_.barrier(BarrierId::kTilesEmpty), parity_ ^ 1, WaitKind::kTilesEmpty, 0);
    parity_ ^= 1;
  }
  SOLITON_DEVICE void end_hand_over() { warp_release(&context_.barrier(BarrierId::kTilesFull)); }

  /// What integers are multiplied with: all rows of the input.
  struct AllRows {
    int offset;

    SOLITON_DEVICE explicit AllRows(const Multiplier& owner)
        : offset((owner.first_row() + owner.context_.lane / 4) * kColumnBlock * 2 +
                 owner.context_.lane % 4 * 16) {}
    SOLITON_DEVICE static bool is_there(int /*n*/) { return true; }
    SOLITON_DEVICE uint4 load(const unsigned char* input, int block, int part, int n) const {
      const unsigned char* of_group =
          input + ((block * kRowsShape.parts + part) * kBlockRows<kPlan> + n * 8) * (kColumnBlock * 2);
      return load_shared(reinterpret_cast<const uint4*>(of_group + offset));
    }
  };

  // integer_pages.cuh.
  template <WeightFormat kFormat, bool kDivided, class Operand>
  SOLITON_DEVICE void multiply_pages(PageStream<kPlan>& stream, int padded, int chunk, int tiles, Sums& sums,
                                     const Operand& operand);
  template <WeightFormat kFormat, int kTogether, class Operand>
  SOLITON_DEVICE void multiply_step(const IntegerStep<kFormat>& step,
                                    const unsigned char* const (&pages)[kTogether],
                                    const unsigned char* input, int first_block, int tile, Sums& sums,
                                    const Operand& operand) const;

  SOLITON_DEVICE int column_warp() const { return worker_ % kColumnWarps<kPlan>; }
  SOLITON_DEVICE int first_row() const { return worker_ / kColumnWarps<kPlan> * kRowGroups * 8; }

  struct TilesLeft {
    int first;
    int count;
  };

  /// Adds the products of this worker's columns of the next tiles_together tiles. `rest`: columns from the slots' first
  /// on. A tile that is not there is multiplied along, and nobody looks at it.
  template <WeightFormat kFormat>
  SOLITON_DEVICE void multiply_tiles(PageStream<kPlan>& stream, const unsigned char* input, int rest,
                                     Sums& sums, const TilesLeft& tiles) {
    int slots[kSlots];
    SOLITON_UNROLL
    for (int i = 0; i < kSlots; ++i)
      slots[i] = i == 0 || i * kPerSlot < tiles.count ? stream.wait() : slots[0];
    const auto multiply = [&](int block) {
      const unsigned char* weights[kSlots];
      SOLITON_UNROLL
      for (int i = 0; i < kSlots; ++i) weights[i] = stream.bytes(slots[i]) + block * kFormat.block_bytes();
      multiply_block<kFormat>(weights, input + block * kColumnBlock * kRowsShape.column_bytes(), sums,
                              tiles.first);
    };
    const int columns = rest < kRowsShape.chunk_columns() ? rest : kRowsShape.chunk_columns();
    const MmaBatch batch;
    SOLITON_NO_UNROLL
    for (int block = column_warp(); block < columns / kColumnBlock; block += kColumnWarps<kPlan>)
      multiply(block);
    SOLITON_UNROLL
    for (int i = 0; i < kSlots; ++i) {
      if (i == 0 || i * kPerSlot < tiles.count) stream.release(slots[i]);
    }
  }

  /// 32 columns.
  template <WeightFormat kFormat>
  SOLITON_DEVICE void multiply_block(const unsigned char* const (&weights)[kSlots],
                                     const unsigned char* input, Sums& sums, int tile) const {
    BlockOperands operands[kTiles];
    SOLITON_UNROLL
    for (int t = 0; t < kTiles; ++t) {
      const unsigned char* own = weights[t / kPerSlot] + t % kPerSlot * (kPageBytes / kPerSlot);
      operands[t] = Gemv<kFormat>::load(own, context_.lane);
    }
    const unsigned char* own = own_input(input);
    SOLITON_UNROLL
    for (int part = 0; part < kRowsShape.parts; ++part) {
      SOLITON_UNROLL
      for (int n = 0; n < kRowGroups; ++n) {
        const uint4 x = load_input(own, part, n);
        SOLITON_UNROLL
        for (int t = 0; t < kTiles; ++t) {
          mma_bf16(sums.value[tile + t][n][2 * part % kChains], operands[t].first, make_uint2(x.x, x.y));
          mma_bf16(sums.value[tile + t][n][(2 * part + 1) % kChains], operands[t].second,
                   make_uint2(x.z, x.w));
        }
      }
    }
  }

  /// Of a block of 32 columns of the input what this lane loads first.
  SOLITON_DEVICE const unsigned char* own_input(const unsigned char* block) const {
    return block + (first_row() + context_.lane / 4) * kColumnBlock * 2 + context_.lane % 4 * 16;
  }
  SOLITON_DEVICE uint4 load_input(const unsigned char* own, int part, int n) const {
    return load_shared(
        reinterpret_cast<const uint4*>(own + (part * kBlockRows<kPlan> + n * 8) * kColumnBlock * 2));
  }

  Context<kPlan>& context_;
  int worker_;
  InputStream<kPlan> input_;
  uint32_t parity_ = 0;  // of the tiles that are handed over next
};

}  // namespace soliton::rows
