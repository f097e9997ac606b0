// JSON as rules of a grammar: values of every kind, and numbers between bounds.
//
// White space is where json.dumps puts it, and bounded: behind { [ , and : and before } and ] stands nothing, a space, or a
// line break and an indent. Numbers have at most 15 digits before and behind the point and an exponent of two.
#pragma once

#include <cstdint>
#include <optional>

#include "runtime/text/constrain/grammar.h"

namespace soliton::constrain {

inline constexpr int64_t kMaxJsonInteger = 999'999'999'999'999;

/// Adds each rule to a grammar when it is asked for first.
class JsonRules {
 public:
  /// Must outlive it.
  explicit JsonRules(Grammar& grammar) : grammar_(grammar) {}

  Expression space();
  Expression value();
  Expression object();  // of any members
  Expression array();   // of any values
  Expression string();
  /// Of `min` to `max` characters; negative: no bound.
  Expression string(int min, int max);
  /// A string whose content, of `min` to `max` characters (negative: no bound) that count, is `content`. Where there are
  /// bounds, the content has to have a character more wherever it has fewer than `min`.
  Expression string(Expression content, int min, int max);
  Expression number();
  Expression integer();
  Expression boolean() const;

  /// A character inside a string's quotes, in any way to write it.
  static Expression character();
  /// Characters that need no escape.
  static CodeSet plain_characters();

 private:
  Expression once(std::optional<int>& index, const char* name, Expression (JsonRules::*make)());
  Expression make_space();
  Expression make_value();
  Expression make_object();
  Expression make_array();
  int rest_of_string();
  Expression make_string();
  Expression make_rest_of_string();
  Expression make_number();
  Expression make_integer();

  Grammar& grammar_;
  std::optional<int> space_, value_, object_, array_, string_, rest_of_string_, number_, integer_;
};

/// `{`, members or values with commas between them, `}`; `filled` is what stands inside, and nothing may if `may_be_empty`.
Expression in_brackets(JsonRules& rules, const char* open, Expression filled, bool may_be_empty,
                       const char* close);

/// A bound and whether a number may be it.
struct Bound {
  int64_t value;  // of at most kMaxJsonInteger
  bool is_open = false;
};

/// Whole numbers from `low`, at least 0, to `high`; nothing if that is less.
Expression magnitudes_between(int64_t low, int64_t high);
/// Whole numbers from `low` to `high`, both included, within kMaxJsonInteger.
Expression integers_between(int64_t low, int64_t high);
/// Numbers with or without a fraction.
Expression numbers_between(Bound low, Bound high);

}  // namespace soliton::constrain
