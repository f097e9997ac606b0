// The matrix work of a worker where weights are integers that single warps multiply: they become bf16, and the sums of a group of
// columns are scaled.
#pragma once

#include "formats/integer_scales.cuh"
#include "formats/integer_words.cuh"
#include "rows/multiplier.cuh"

namespace soliton::rows {

/// Multiplies tiles of all `padded` columns: a page of every tile stays in the ring while the chunks of the
/// input that it meets go by, of `chunk` columns. kDivided: are these columns of
/// an expert beside those of others?
template <const KernelPlan& kPlan>
template <WeightFormat kFormat, bool kDivided, class Operand>
SOLITON_DEVICE void Multiplier<kPlan>::multiply_pages(PageStream<kPlan>& stream, int padded, int chunk,
                                                      int tiles, Sums& sums, const Operand& operand) {
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
    slots[0] = stream.wait();  // one tile is always there
    SOLITON_UNROLL
    for (int tile = 1; tile < kTilesAtOnce<kPlan>; ++tile)
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
      if (kMixes<kPlan> && tiles == 1) {  // as of o and down most CTAs have: nothing is multiplied in vain
        const unsigned char* const page[] = {stream.bytes(slots[0])};
        if (!kDivided || step.is_there()) multiply_step(step, page, input, first_block, 0, sums, operand);
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
template <const KernelPlan& kPlan>
template <WeightFormat kFormat, int kTogether, class Operand>
SOLITON_DEVICE void Multiplier<kPlan>::multiply_step(const IntegerStep<kFormat>& step,
                                                     const unsigned char* const (&pages)[kTogether],
                                                     const unsigned char* input, int first_block, int tile,
                                                     Sums& sums, const Operand& operand) const {
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
      MmaBatch batch;
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
      batch.end();
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

}  // namespace soliton::rows
