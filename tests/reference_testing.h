// What the tests of the reference share.
#pragma once

#include <algorithm>
#include <cmath>
#include <span>
#include <vector>

#include "tests/reference_model.h"

namespace soliton {

inline std::vector<std::vector<float>> run(ReferenceModel model, std::span<const int> tokens) {
  std::vector<std::vector<float>> logits;
  for (const int token : tokens) logits.push_back(model.step(token, model.length()));
  return logits;
}

inline double max_difference(std::span<const float> a, std::span<const float> b) {
  double result = a.size() == b.size() ? 0.0 : INFINITY;
  for (size_t i = 0; i < std::min(a.size(), b.size()); ++i) {
    // Not std::max: a NaN has to show.
    if (!(std::abs(a[i] - b[i]) <= result)) result = std::abs(a[i] - b[i]);
  }
  return result;
}

}  // namespace soliton
