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
  float up;                              // InputScale::up of the digits
  const unsigned char* zeros = nullptr;  // as much as x has of a page, for E2M1
};

/// Of rows lane / 4 and lane / 4 + 8, in each lane of a quad those of some columns.
struct QuadSums {
  float value[2] = {};

  SOLITON_DEVICE float2 rows() const {
    float2 sum = make_float2(value[0], value[1]);
    for (int mask = 1; mask < 4; mask *= 2) {
      sum = make_float2(sum.x + shuffle_xor(sum.x, mask), sum.y + shuffle_xor(sum.y, mask));
    }
    return sum;
  }
};

/// Each format has:
///   Sums                                          what a lane adds up of a tile; rows(): of rows lane / 4 and lane / 4 + 8
///   column<kWarps, kColumns>(begin, warp, group)  of 4 neighbouring columns of the warp's the first, in a page from `begin` on
///   store<kWarps, kColumns>(x, group, within, v)  puts down such a group, the page's `within` and x's `group`; if x becomes
///                                                 digits, it is also told their scale and whether the group is there, and
///                                                 returns its part of input_sums, which put_sums() adds up
///   multiply<kWarps, kColumns>(GemvPage, sums)    adds products of a page; of bf16 instead
///   multiply_block(sums, weights, x, lane)        those of 32 columns; and for several rows
///   load(weights, lane)                           has them as bf16
template <WeightFormat kFormat>
struct Gemv;

}  // namespace soliton
