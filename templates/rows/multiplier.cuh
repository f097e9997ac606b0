// The matrix work of a worker: its columns and rows of every tile.
#pragma once

#include "formats/formats.cuh"
#include "rows/input_stream.cuh"
#include "rows/page_stream.cuh"

namespace soliton::rows {

/// The step of a page of integers that a worker has of one chunk of columns.
template <WeightFormat kFormat>
struct IntegerStep {
  int columns;  // of the page
  int steps;    // of a unit
  int unit;
  int step;
  int offset;  // of its words in the page
  int chunk;   // first column

  /// `steps`: of a unit, whose columns the page may have fewer units of than kUnits.
  SOLITON_DEVICE IntegerStep(int columns, int steps, int chunk, int column_warp)
      : columns(columns), steps(steps), chunk(chunk) {
    const int index = chunk / (kStrips * kStepColumns) + column_warp;
    unit = steps == 4 ? index / 4 : steps == 2 ? index / 2 : index;
    step = index - unit * steps;
    offset = index * kStepBytes;
  }
  /// Has the page so many units?
  SOLITON_DEVICE bool is_there() const { return offset < columns / (kStrips * kStepColumns) * kStepBytes; }
  /// The first of a strip's 32 columns.
  SOLITON_DEVICE int column(int strip) const {
    return ((unit * kStrips + strip) * steps + step) * kStepColumns;
  }
  /// Its block of columns in the chunk.
  SOLITON_DEVICE int block(int strip) const { return (column(strip) - chunk) / kColumnBlock; }

 private:
  static constexpr int kStepBytes = kFormat.step_bytes();
};

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
    // True at once for the first use: the parity is that of the phase before the barrier's first.
    context_.wait(context_.barrier(BarrierId::kTilesEmpty), parity_ ^ 1, WaitKind::kTilesEmpty, 0);
    parity_ ^= 1;
    SOLITON_UNROLL
    for (int t = 0; t < kRowsShape.handed_tiles; ++t) {
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
    warp_arrive(&context_.barrier(BarrierId::kTilesFull));
  }

 protected:
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

  /// The same with pages of integers, of all `padded` columns: a page of every tile stays in the ring while the chunks of the
  /// input that it meets go by, of `chunk` columns. kDivided: are these columns of
  /// an expert beside those of others?
  template <WeightFormat kFormat, bool kDivided, class Operand>
  SOLITON_DEVICE void multiply_pages(PageStream<kPlan>& stream, int padded, int chunk, int tiles, Sums& sums,
                                     const Operand& operand) {
    constexpr int kFull = kFormat.page_columns();
    constexpr int kChunkSteps = kRowsShape.chunk_columns() / (kStrips * kStepColumns);
    // Minima of half a step take the registers of another tile.
    constexpr int kTogether = kFormat.has_minima && kFormat.group < kStepColumns ? 1 : kTilesTogether;
    static_assert(kChunkSteps == kColumnWarps<kPlan>, "every worker has one step of a unit of each chunk");
    const unsigned char* input = nullptr;
    int input_begin = 0;  // of the chunk, and its end
    int input_end = 0;
    int columns = 0;  // of the page
    SOLITON_NO_UNROLL
    for (int begin = 0; begin < padded; begin += columns) {
      const int rest = padded - begin;
      columns = kDivided ? (rest < kFull ? rest : kFull) : page_columns(kFormat, rest);
      const int steps = (kDivided ? kFull : columns) / kMinIntegerColumns;
      // What is computed of it for pages of one format is not kept for those of the other: registers.
      if constexpr (kPlan.model.further.has_scales()) context_.lane = opaque(context_.lane);
      int slots[kTilesAtOnce<kPlan>];
      SOLITON_UNROLL
      for (int tile = 0; tile < kTilesAtOnce<kPlan>; ++tile)
        slots[tile] = tile < tiles ? stream.wait() : slots[0];
      SOLITON_NO_UNROLL
      for (int column = 0; column < columns; column += kRowsShape.chunk_columns()) {
        const IntegerStep<kFormat> step(columns, steps, column, column_warp());
        if (!kMixes<kPlan> || begin + column == input_end) {
          input = input_.wait();
          input_begin = begin + column;
          input_end = padded - input_begin < chunk ? padded : input_begin + chunk;
        }
        const int first_block = kMixes<kPlan> ? (begin + column - input_begin) / kColumnBlock : 0;
        if (kDivided && tiles == 1) {  // as of down most CTAs have: nothing is multiplied in vain
          const unsigned char* const page[] = {stream.bytes(slots[0])};
          if (step.is_there()) multiply_step(step, page, input, first_block, 0, sums, operand);
        } else {
          SOLITON_UNROLL
          for (int tile = 0; tile < kTilesAtOnce<kPlan>; tile += kTogether) {
            if (tile >= tiles || (kDivided && !step.is_there())) break;
            const unsigned char* pages[kTogether];
            SOLITON_UNROLL
            for (int t = 0; t < kTogether; ++t) pages[t] = stream.bytes(slots[tile + t]);
            multiply_step(step, pages, input, first_block, tile, sums, operand);
          }
        }
        if (!kMixes<kPlan> || begin + column + kRowsShape.chunk_columns() >= input_end) input_.release();
      }
      SOLITON_UNROLL
      for (int tile = 0; tile < kTilesAtOnce<kPlan>; ++tile) {
        if (tile < tiles) stream.release(slots[tile]);
      }
    }
  }

  /// Both strips of a step of a few tiles, from `tile` on: chains of mma that do not depend on one another.
  template <WeightFormat kFormat, int kTogether, class Operand>
  SOLITON_DEVICE void multiply_step(const IntegerStep<kFormat>& step,
                                    const unsigned char* const (&pages)[kTogether],
                                    const unsigned char* input, int first_block, int tile, Sums& sums,
                                    const Operand& operand) const {
    constexpr int kParts = kRowsShape.parts;
    constexpr int kHalves =
        kFormat.group < kStepColumns ? kStepColumns / kFormat.group : 1;  // groups of a step
    // Sums of the input take the registers of another group of rows.
    constexpr int kGroupsTogether = kFormat.has_minima ? 1 : kRowGroups;
    StepWords<kFormat> words[kTogether];
    // Of all strips and halves before their products; where each is put together of two parts, one after the other: registers.
    constexpr bool kAhead = kFormat.block == 0;
    RowScales scales[kTogether][kAhead ? kStrips : 1][kAhead ? kHalves : 1];
    const auto load_scales = [&](int t, int strip, int half) {
      const int column = step.column(strip);
      return BlockScales<kFormat>(pages[t], step.columns, context_.lane, column)
          .of(column / kFormat.group + half);
    };
    SOLITON_UNROLL
    for (int t = 0; t < kTogether; ++t) {
      words[t] = StepWords<kFormat>::load(pages[t] + step.offset, context_.lane);
      if constexpr (kAhead) {
        SOLITON_UNROLL
        for (int i = 0; i < kStrips * kHalves; ++i)
          scales[t][i / kHalves][i % kHalves] = load_scales(t, i / kHalves, i % kHalves);
      } else {
        scales[t][0][0] = {{}, {kFormat.symmetric_zero(), kFormat.symmetric_zero()}, {}};
      }
    }
    SOLITON_UNROLL
    for (int i = 0; i < kStrips * kHalves; ++i) {
      const int strip = i / kHalves;
      const int half = i % kHalves;
      // Quads 0 and 1 have the first half of a step's columns.
      const bool is_own = kHalves == 1 || context_.lane % 4 / 2 == half;
      const auto scales_of = [&](int t) -> RowScales& {
        return scales[t][kAhead ? strip : 0][kAhead ? half : 0];
      };
      uint4 weights[kTogether][2];
      SOLITON_UNROLL
      for (int t = 0; t < kTogether; ++t) {
        SOLITON_UNROLL
        for (int k = 0; k < 2; ++k) weights[t][k] = words[t].to_bf16(strip, k, scales_of(t).zero);
      }
      SOLITON_UNROLL
      for (int begin = 0; begin < kRowGroups; begin += kGroupsTogether) {
        float products[kTogether][kGroupsTogether][kParts][4] = {};
        float inputs[kGroupsTogether][4] = {};  // the sum of each row of the input: [0] and [1]
        SOLITON_UNROLL
        for (int t = 0; t < kTogether; ++t) {
          SOLITON_UNROLL
          for (int n = 0; n < kGroupsTogether; ++n) {
            if (!operand.is_there(begin + n)) continue;
            SOLITON_UNROLL
            for (int part = 0; part < kParts; ++part) {
              uint4 x = operand.load(input, first_block + step.block(strip), part, begin + n);
              if constexpr (kHalves > 1) x = is_own ? x : make_uint4(0, 0, 0, 0);
              mma_bf16(products[t][n][part], weights[t][0], make_uint2(x.x, x.y));
              mma_bf16(products[t][n][part], weights[t][1], make_uint2(x.z, x.w));
              if constexpr (kFormat.has_minima) {
                constexpr uint32_t kOnes = 0x3f803f80u;
                if (t > 0) continue;
                mma_bf16(inputs[n], make_uint4(kOnes, kOnes, kOnes, kOnes), make_uint2(x.x, x.y));
                mma_bf16(inputs[n], make_uint4(kOnes, kOnes, kOnes, kOnes), make_uint2(x.z, x.w));
              }
            }
          }
        }
        SOLITON_UNROLL
        for (int t = 0; t < kTogether; ++t) {
          if constexpr (!kAhead) {
            if (begin == 0) scales_of(t) = load_scales(t, strip, half);
          }
          const RowScales& own = scales_of(t);
          SOLITON_UNROLL
          for (int n = 0; n < kGroupsTogether; ++n) {
            float(&sum)[4] = sums.value[tile + t][begin + n][0];
            SOLITON_UNROLL
            for (int r = 0; r < 4; ++r) {
              float product = products[t][n][0][r];
              SOLITON_UNROLL
              for (int part = 1; part < kParts; ++part) product += products[t][n][part][r];
              if constexpr (kFormat.has_minima) {
                constexpr float kBias = static_cast<float>(kFormat.bias() * kFormat.unit());
                sum[r] += own.scale[r / 2] * (product + kBias * inputs[n][r % 2]);
                sum[r] -= own.minimum[r / 2] * inputs[n][r % 2];
              } else {
                sum[r] += own.scale[r / 2] * product;
              }
            }
          }
        }
      }
    }
  }

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
