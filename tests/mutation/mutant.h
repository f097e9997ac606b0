// What a mutated copy of the templates asks: which mutant is switched on. Included before all else, by the command line.
#pragma once

#include <type_traits>

#include "mutant_count.h"

extern "C" {
__attribute__((visibility("default"), used)) inline int soliton_mutant_id = -1;
__attribute__((visibility("default"),
               used)) inline unsigned char soliton_mutant_reached[SOLITON_NUM_MUTANTS] = {};
}

/// Is this the mutant? Notes that its place has been reached. What the compiler evaluates is as it was.
constexpr bool soliton_mutant(int id) {
  if (std::is_constant_evaluated()) return false;
  soliton_mutant_reached[id] = 1;
  return soliton_mutant_id == id;
}

#define SOLITON_UNLESS(id)  \
  if (soliton_mutant(id)) { \
  } else

// Operators stand between their operands: a < b becomes a < Relation{} < b, of the same precedence, which compares both
// when it has both.
namespace soliton_mutants {

enum Operator { kLess, kLessEqual, kGreater, kGreaterEqual, kEqual, kUnequal };

template <Operator kOperator, class A, class B>
constexpr bool compare(const A& a, const B& b) {
  if constexpr (kOperator == kLess) {
    return a < b;
  } else if constexpr (kOperator == kLessEqual) {
    return a <= b;
  } else if constexpr (kOperator == kGreater) {
    return a > b;
  } else if constexpr (kOperator == kGreaterEqual) {
    return a >= b;
  } else if constexpr (kOperator == kEqual) {
    return a == b;
  } else {
    return a != b;
  }
}

template <int kId, Operator kIs, Operator kBecomes>
struct Relation {};
template <class A, int kId, Operator kIs, Operator kBecomes>
struct Compared {
  A a;
};
template <class A, int kId, Operator kIs, Operator kBecomes>
constexpr Compared<A, kId, kIs, kBecomes> operator<(A a, Relation<kId, kIs, kBecomes>) {
  return {a};
}
template <class A, int kId, Operator kIs, Operator kBecomes>
constexpr Compared<A, kId, kIs, kBecomes> operator==(A a, Relation<kId, kIs, kBecomes>) {
  return {a};
}
template <class A, int kId, Operator kIs, Operator kBecomes, class B>
constexpr bool operator<(Compared<A, kId, kIs, kBecomes> left, B b) {
  return soliton_mutant(kId) ? compare<kBecomes>(left.a, b) : compare<kIs>(left.a, b);
}
template <class A, int kId, Operator kIs, Operator kBecomes, class B>
constexpr bool operator==(Compared<A, kId, kIs, kBecomes> left, B b) {
  return soliton_mutant(kId) ? compare<kBecomes>(left.a, b) : compare<kIs>(left.a, b);
}

template <int kId>
struct Plus {};
template <int kId>
struct Minus {};
template <int kId>
struct Rest {};
template <class A, class Operation>
struct Left {
  A a;
};
template <class A, int kId>
constexpr Left<A, Plus<kId>> operator+(A a, Plus<kId>) {
  return {a};
}
template <class A, int kId>
constexpr Left<A, Minus<kId>> operator+(A a, Minus<kId>) {
  return {a};
}
template <class A, int kId>
constexpr Left<A, Rest<kId>> operator*(A a, Rest<kId>) {
  return {a};
}
template <class A, int kId, class B>
constexpr auto operator+(Left<A, Plus<kId>> left, B b) {
  using Sum = decltype(left.a + b);
  if constexpr (requires { static_cast<Sum>(left.a - b); }) {
    if (soliton_mutant(kId)) return static_cast<Sum>(left.a - b);
  }
  return left.a + b;
}
template <class A, int kId, class B>
constexpr auto operator+(Left<A, Minus<kId>> left, B b) {
  using Difference = decltype(left.a - b);
  if constexpr (requires { static_cast<Difference>(left.a + b); }) {
    if (soliton_mutant(kId)) return static_cast<Difference>(left.a + b);
  }
  return left.a - b;
}
template <class A, int kId, class B>
constexpr auto operator*(Left<A, Rest<kId>> left, B b) {
  return soliton_mutant(kId) ? left.a / b : left.a % b;
}

}  // namespace soliton_mutants
