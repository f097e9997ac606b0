// What the input loader brings of a mixture's activations: rows and pairs that experts want, and groups of their lines.
#pragma once

#include "rows/input_loader.cuh"

namespace soliton::rows {

/// Of some rows so many columns, as gathered_row_bytes() has them. `row_of(i)`: the i-th of them.
template <const KernelPlan& kPlan>
template <class RowOf>
SOLITON_DEVICE void InputLoader<kPlan>::push_rows(const unsigned char* input, int num_rows, int first_column,
                                                  int columns, const RowOf& row_of) {
  constexpr int kParts = kRowsShape.parts;
  const int most = gathered_columns<kPlan>(num_rows);
  const int chunk = columns < most ? columns : most;
  SOLITON_NO_UNROLL
  for (int column = 0; column < columns; column += chunk) {
    const int bytes = 2 * (columns - column < chunk ? columns - column : chunk);
    fill_chunk(num_rows * kParts * bytes, [&](unsigned char* to, Barrier* full) {
      SOLITON_NO_UNROLL
      for (int i = 0; i < num_rows; ++i) {
        const int row = row_of(i);
        SOLITON_UNROLL
        for (int part = 0; part < kParts; ++part) {
          copies_.vector(to, input + context_.gathered_offset(part, row, first_column + column), bytes, full);
          to += gathered_row_bytes(chunk);
        }
      }
    });
  }
}

/// What experts have put out, of each its pairs.
template <const KernelPlan& kPlan>
SOLITON_DEVICE void InputLoader<kPlan>::push_pairs(const unsigned char* input) {
  constexpr int kFfn = kPlan.model.mixture.ffn;
  const int slots = context_.expert_slots();
  SOLITON_NO_UNROLL
  for (int i = 0; i < slots; ++i) {
    const ExpertSlot<kPlan> slot(context_, i);
    const int pairs = slot.pairs();
    const int chunk = gathered_columns<kPlan>(pairs);
    const unsigned char* own = input + expert_input_offset<kPlan>(slot.first_pair(), pairs, 0, 0, 0);
    SOLITON_NO_UNROLL
    for (int column = 0; column < kFfn; column += chunk) {
      const int rest = kFfn - column;
      const int bytes = pairs * kRowsShape.parts * 2 * (rest < chunk ? rest : chunk);
      push(own, bytes);
      own += bytes;
    }
  }
}

/// Of experts: of each piece's group all columns of its lines.
template <const KernelPlan& kPlan>
SOLITON_DEVICE void InputLoader<kPlan>::push_groups(const MatrixInstance& at, const unsigned char* input) {
  const ExpertPhase& experts = kExpertTable<kPlan>.phases[at.phase.number];
  const int columns = columns_of_groups<kPlan>(experts);
  copies_.announce();
  context_.wait_experts(at.layer);
  SOLITON_NO_UNROLL
  for (GroupPieces<kPlan> pieces(context_, experts); !pieces.at_end(); pieces.next()) {
    const ExpertGroup group = (*pieces).group;
    const int width = group_width(group.pairs);
    const int piece_bytes = width * kGroupColumns * 2;
    const int chunk_bytes = pieces_of_chunk<kPlan>(width) * piece_bytes;
    const unsigned char* from = input + GroupedRows::group_offset(columns, group.first_line);
    int left = columns / kGroupColumns * piece_bytes;
    SOLITON_NO_UNROLL
    for (; left > 0; left -= chunk_bytes, from += chunk_bytes)
      push(from, left < chunk_bytes ? left : chunk_bytes);
  }
}

}  // namespace soliton::rows
