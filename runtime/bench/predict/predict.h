// What the cost model of the planner says of a model's tokens on a card.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "layout/library.h"
#include "layout/model_facts.h"

namespace soliton {

struct TokenPrediction {
  std::string gpu;                    // the spec: a shipped one, or that of a card without one
  std::vector<double> token_us = {};  // [contexts]
};

/// Times of a token behind so many cached ones, by the plan for one row that the planner chooses for the device. Throws
/// Error: kMismatch if no spec is for the device, or nothing can be planned; kNotFound without the specs.
TokenPrediction predict_tokens(const ModelFacts& facts, const DeviceInfo& device,
                               std::span<const int> contexts);

}  // namespace soliton
