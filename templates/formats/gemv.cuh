// What a format of weights tells the kernel of one row: how a consumer warp keeps its slice of x, and how it multiplies by it.
#pragma once

#include "layout/weight_format.h"
#include "primitives/primitives.h"

namespace soliton {

constexpr int kXColumnBytes = 4;  // of a column of x in shared memory, in any format

/// A warp's columns of a page, and what it multiplies them by.
struct GemvPage {
  const unsigned char* x;  // of the page's columns
  const unsigned char* page;
  const int32_t* input_sums;  // of digits [unit][step][4]: what the lanes of a quad have as the sum of x
  int warp;
  int lane;
  float up;  // InputScale::up of the digits
};

/// Each format has:
///   Sums                                          what a lane adds up of a tile; rows(): of rows lane / 4 and lane / 4 + 8
///   column<kWarps, kColumns>(begin, warp, group)  of 4 neighbouring columns of the warp's the first, in a page from `begin` on
///   store<kWarps, kColumns>(x, group, within, v, down)  puts down such a group, the page's `within` and x's `group`; if x becomes
///                                                 digits, it is also told whether the group is there, and returns its part of
///                                                 input_sums, which put_sum() adds up
///   multiply<kWarps, kColumns>(GemvPage, sums)    adds products, if it has scales; else
///   multiply_block(sums, block, weights, x, lane) those of 32 columns; and for several rows
///   load(weights, lane)                           has them as bf16
template <WeightFormat kFormat>
struct Gemv;

}  // namespace soliton
