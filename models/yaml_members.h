// Keys of models/*.yaml that become facts.
#pragma once

#include <string_view>

#include "models/check.h"
#include "models/strict_yaml.h"

namespace soliton {

/// The value of a key becomes the fact; whether it may be that, check() says.
inline void read_fact(const StrictYaml& yaml, std::string_view key, int32_t ModelFacts::*fact,
                      StatedFacts& stated) {
  const int64_t value = yaml.any_integer(key, describe_limit(fact));
  stated.state(fact, value, yaml.place(key));
}
inline void read_fact(const StrictYaml& yaml, std::string_view key, double ModelFacts::*fact,
                      StatedFacts& stated) {
  const double value = yaml.any_number(key, describe_limit(fact));
  stated.state(fact, value, yaml.place(key));
}
inline void read_flag(const StrictYaml& yaml, std::string_view key, int32_t ModelFacts::*fact,
                      StatedFacts& stated) {
  stated.facts.*fact = yaml.boolean(key) ? 1 : 0;
}

template <class Type>
void read_fact_if_there(const StrictYaml& yaml, std::string_view key, Type ModelFacts::*fact,
                        StatedFacts& stated) {
  if (yaml.has(key)) read_fact(yaml, key, fact, stated);
}
inline void read_flag_if_there(const StrictYaml& yaml, std::string_view key, int32_t ModelFacts::*fact,
                               StatedFacts& stated) {
  if (yaml.has(key)) read_flag(yaml, key, fact, stated);
}

}  // namespace soliton
