// What a number may be, as readers check it and errors say it.
#pragma once

#include <cstdint>
#include <span>
#include <string>

namespace soliton {

/// Integers from `min` to `max`, both included, that `multiple_of` divides.
struct IntegerRange {
  int min = 0;
  int max = 0;
  int multiple_of = 1;

  bool contains(int64_t value) const;
  /// "an integer from 1 to 8", "a multiple of 64 from 64 to 65536".
  std::string describe() const;
};

/// A few integers, kept elsewhere.
struct IntegerChoice {
  std::span<const int> choices;

  bool contains(int64_t value) const;
  /// "one of 8, 16, 32".
  std::string describe() const;
};

/// Finite numbers from `min` to `max`; the bounds themselves belong to it unless `open`.
struct NumberRange {
  double min = 0;
  double max = 0;
  bool open = false;

  bool contains(double value) const;
  /// "a number from 1 to 8", "a number above 0 and below 0.1".
  std::string describe() const;
};

}  // namespace soliton
