// A model whose weights are a chain of tokens: each is followed by one other for certain, whatever was before. With
// a token that is a whole call of a function, models call by themselves, as no grammar makes them.
#pragma once

#include <map>
#include <string>

#include "server/service_fixture.h"

namespace soliton {

/// What follows each token; </s> follows those that are not there.
using TokenChain = std::map<std::string, std::string>;

/// Weights whose layers add nothing to the embedding, which is one 1 of `hidden`: at least as many as there are tokens.
inline ReferenceWeights chain_weights(const ModelFacts& facts, const nlohmann::json& vocabulary,
                                      const TokenChain& chain) {
  const auto hidden = static_cast<size_t>(facts.hidden);
  ReferenceWeights weights = random_weights(facts, kWeightSeed);
  std::ranges::fill(weights.embedding, 0);
  std::ranges::fill(weights.lm_head, 0);
  std::ranges::fill(weights.final_norm, to_bf16_bits(1));
  for (ReferenceLayer& layer : weights.layers) {
    std::ranges::fill(layer.o, 0);
    std::ranges::fill(layer.down, 0);
  }
  for (const auto& [token, id] : vocabulary.items()) {
    const auto column = id.get<size_t>();
    const auto next = chain.find(token);
    const auto row = vocabulary.at(next == chain.end() ? "</s>" : next->second).get<size_t>();
    constexpr float kWeight = 4;  // a logit of 32, where all others are 0
    weights.embedding[column * hidden + column] = to_bf16_bits(1);
    weights.lm_head[row * hidden + column] = to_bf16_bits(kWeight);
  }
  return weights;
}

}  // namespace soliton
