// Attention of one layer in float64, with every variant that kernels have, and how far a kernel may be from it.
//
// With u = 2^-24, a product of query and key over D dims is a sum of exact products of f16 in float, in any order: its error is
// at most (D + 8) u S, where S is the sum of the products' magnitudes; and what is off in query or key by e adds |e| times the
// other. To scale, to cap (whose slope is 1 at most) and to bias a score adds a few u of it. exp2 of a score is off by that, and
// by 2^-21 of its own. So each weight p has a relative error E, and an output o = sum(p v) / sum(p) is off by at most
//
//   sum(p E |v|) + |o| sum(p E)     what weights are off by, in numerator and denominator,
//   (W + P + 2 (n + 32) u) sum(p |v|)   W: weights become f16, of one part or two; P: partial results are stored; n + 32
//                                   additions and changes of the maximum (which numerator and denominator share),
//   2^-25 n max|v|                  weights below 2^-14 are subnormal in f16 (of a cache of bytes they are multiplied with
//                                   values' powers of two first, 2^-8 or so: 2^-22),
//   R |o|                           R: outputs are stored,
//
// with p normalised. Nothing of this is tuned; a key outside of a mask, or a variant that is left out, shows as some tenths.
#pragma once

#include <vector>

#include "layout/model_facts.h"

namespace soliton {

/// A number as a kernel has it, and how far that may be from what the kernel works with.
struct Bounded {
  double value = 0;
  double error = 0;
};
using BoundedVector = std::vector<Bounded>;

/// By how much what a kernel stores is off, relative to itself.
struct AttentionPrecision {
  double weights = 0;
  double partials = 0;
  double outputs = 0;
};

constexpr double kUnit = 0x1p-24;
constexpr double kTwoParts = 0x1p-21;  // of f16, or of a float that has a tag
constexpr double kOnePart = 0x1p-11;   // of f16

/// The vector of a head, [head_dim], as attention reads it.
struct HeadView {
  const double* values;
  const double* errors;
};

/// Keys and values of a query's path by position: 0 to its own.
struct SeenTokens {
  std::vector<HeadView> keys;
  std::vector<HeadView> values;
};

/// A variant beside those of the facts: what is added to the score of a key at a position, of the query at another; minus
/// infinity where the key is not seen.
using OwnScore = double (*)(int query, int key);

/// The output [head_dim] of query head `head`. `sink`: its score without a value; NaN: none.
BoundedVector attend(const ModelFacts& facts, int layer, const AttentionPrecision& precision,
                     const BoundedVector& query, int head, int position, double sink,
                     const SeenTokens& tokens, OwnScore own = nullptr);

}  // namespace soliton
