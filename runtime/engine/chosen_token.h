// A token as those who decode hand it on.
#pragma once

#include <cstdint>
#include <optional>

namespace soliton {

struct ChosenToken {
  int32_t id = 0;
  std::optional<float> logprob = {};  // if Sampling asks for it
};

}  // namespace soliton
