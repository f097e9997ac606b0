// Where choices of few rows are wanted, lm_head is multiplied by their bands: the same choices as where all are. Of any engine, in
// the emulation or on a card.
#pragma once

#include <gtest/gtest.h>

#include <numeric>
#include <set>
#include <span>
#include <vector>

#include "layout/rows_policy.h"
#include "runtime/engine/engine.h"

namespace soliton {

/// Feeds `tokens`, as many as one step takes, as one draft each time: greedily, and where the kernel draws, drawing some. At least
/// 206, so that all bands of a block have rows.
inline void expect_bands_choose_alike(Engine& engine, const std::vector<int32_t>& tokens) {
  const int rows = static_cast<int>(tokens.size());
  ASSERT_GT(rows, 205);
  const bool draws = row_blocks(engine.library().descriptor(engine.kernel_for_prompt(rows)).plan->rows) == 1;
  std::vector<int32_t> chain(tokens.size());
  std::iota(chain.begin(), chain.end(), -1);
  const auto chosen = [&](uint32_t bands, std::span<const RowSampling> sampling) {
    engine.clear_tree();
    engine.tree().draft(engine.tree().open(), chain);
    return engine.decode_tree({.tokens = tokens, .sampling = sampling, .wanted_bands = bands}).chosen;
  };
  std::vector<RowSampling> sampling(tokens.size());
  for (int row = 0; row < rows; ++row) {
    if (row % 3 > 0) sampling[row] = {.inverse_temperature = 0.5f, .seed = 7u + row, .top_k = row % 2 * 5};
  }
  for (const bool drawn : {false, true}) {
    if (drawn && !draws) continue;
    const std::span<const RowSampling> own = drawn ? sampling : std::span<const RowSampling>();
    const std::vector<int32_t> all = chosen(row_bands(0, rows), own);
    ASSERT_EQ(all.size(), tokens.size());
    ASSERT_GT(std::set<int32_t>(all.begin(), all.end()).size(), 2u);
    const uint32_t wanted[] = {row_bands(3, 200), row_bands(rows - 5, rows),
                               row_bands(0, 31) | row_bands(rows - 1, rows),
                               row_bands(70, 71) | row_bands(150, 200)};
    for (size_t i = 0; i < std::size(wanted); ++i) {
      if (draws && i % 2 != (drawn ? 1 : 0)) continue;  // half of them greedily, half drawn
      const uint32_t bands = wanted[i];
      const std::vector<int32_t> few = chosen(bands, own);
      ASSERT_EQ(few.size(), all.size());
      for (int row = 0; row < rows; ++row) {
        if ((bands >> row / kBandRows & 1) == 0) continue;
        EXPECT_EQ(few[row], all[row]) << row << " of " << bands;
      }
    }
  }
}

}  // namespace soliton
