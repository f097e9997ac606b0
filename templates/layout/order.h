// Act-order: the groups of a matrix of integers take its columns in an order of their own, and its pages hold them in
// that order. Whoever writes an activation puts it where the phase that reads it has its column, so that nobody
// has to look for it. The tables say where: the position of each element of what each norm scales, which the matrix behind
// it reads, and of what attention puts out. What is read behind an activation function needs none: the rows that make it
// are packed in its reader's order.
#pragma once

#include <cstdint>

#include "layout/target.h"

namespace soliton {

/// LaunchParams::positions: [num_norms][hidden], then [num_layers][heads], where `heads` are all query heads' dims.
struct OrderTables {
  int64_t num_norms = 0;
  int64_t hidden = 0;
  int64_t heads = 0;

  SOLITON_HOST_DEVICE constexpr int64_t of_norm(int64_t norm) const { return norm * hidden; }
  SOLITON_HOST_DEVICE constexpr int64_t of_attention(int64_t layer) const {
    return num_norms * hidden + layer * heads;
  }
};

}  // namespace soliton
