// Act-order: the groups of a matrix of integers take its columns in an order of their own, and its pages hold them in
// that order. Whoever writes an activation puts it where the phase that reads it has its column, so that nobody
// has to look for it. The tables say where: position of each element of the vectors that q, k and v read (in
// layer num_layers: the lm_head), that o reads, that gate and up read. What down reads needs none: gate and up
// rows are packed in its order.
#pragma once

#include <cstdint>

#include "layout/target.h"

namespace soliton {

enum class OrderTable : int { kHidden, kHeads, kPostAttention };

/// First word of a table of layer `layer`, 0 .. num_layers; of the last one there is kHidden only.
SOLITON_HOST_DEVICE constexpr int64_t order_offset(int hidden, int heads, int layer, OrderTable table) {
  const int64_t of_layer = static_cast<int64_t>(layer) * (2 * hidden + heads);
  return of_layer + (table == OrderTable::kHidden  ? 0
                     : table == OrderTable::kHeads ? hidden
                                                   : hidden + heads);
}

/// The same of what norm `norm` scales: 2 l is that of q, k and v of layer l (behind the last layer, of the lm_head),
/// 2 l + 1 that of gate and up.
SOLITON_HOST_DEVICE constexpr int64_t normed_order_offset(int hidden, int heads, int norm) {
  return order_offset(hidden, heads, norm / 2,
                      norm % 2 == 0 ? OrderTable::kHidden : OrderTable::kPostAttention);
}

}  // namespace soliton
