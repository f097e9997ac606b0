// What a router's logits become before the highest are chosen. Their names are those of models/*.yaml.
#pragma once

#include <cstdint>
#include <iterator>
#include <string_view>

namespace soliton {

enum class RouterScores : int32_t {
  kSoftmax = 0,  // over all experts
  kSigmoid = 1,  // of each
};

/// By enumerator.
constexpr const char* kRouterScoresNames[] = {"softmax", "sigmoid"};

/// The enumerator of a name; -1: none.
constexpr int32_t find_router_scores(std::string_view name) {
  for (int32_t i = 0; i < static_cast<int32_t>(std::size(kRouterScoresNames)); ++i) {
    if (name == kRouterScoresNames[i]) return i;
  }
  return -1;
}

/// Added to what chosen sigmoids are divided by, as in transformers: they may all be 0.
constexpr float kLeastScores = 1e-20f;

}  // namespace soliton
