#include "models/ranges.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

namespace soliton {

bool IntegerRange::contains(int64_t value) const {
  return value >= min && value <= max && value % multiple_of == 0;
}

std::string IntegerRange::describe() const {
  return multiple_of == 1 ? fmt::format("an integer from {} to {}", min, max)
                          : fmt::format("a multiple of {} from {} to {}", multiple_of, min, max);
}

bool IntegerChoice::contains(int64_t value) const {
  return std::find(choices.begin(), choices.end(), value) != choices.end();
}

std::string IntegerChoice::describe() const {
  return fmt::format("one of {}", fmt::join(choices, ", "));
}

bool NumberRange::contains(double value) const {
  return open ? value > min && value < max : value >= min && value <= max;
}

std::string NumberRange::describe() const {
  return open ? fmt::format("a number above {} and below {}", min, max)
              : fmt::format("a number from {} to {}", min, max);
}

}  // namespace soliton
