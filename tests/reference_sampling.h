// The choice of a token as layout/sampling.h defines it, in plain loops over doubles.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <set>
#include <span>
#include <vector>

#include "layout/sampling.h"

namespace soliton {

struct ReferenceChoice {
  int token = 0;
  double lead = INFINITY;  // of the token's score over the next one's
  bool is_clear = true;    // no rounding can change which tokens stay
};

/// Logits after the penalty, in floats as logits are.
inline std::vector<float> penalised(std::span<const float> logits, const RowSampling& sampling,
                                    const std::set<int32_t>& seen) {
  std::vector<float> changed(logits.begin(), logits.end());
  for (const int32_t token : seen) {
    float& logit = changed[static_cast<size_t>(token)];
    logit = logit > 0 ? logit / sampling.penalty : logit * sampling.penalty;
  }
  return changed;
}

/// How far each token is below the best: (best - logit) / T.
inline std::vector<double> distances(std::span<const float> logits, double inverse_temperature) {
  double best = -INFINITY;
  for (const float logit : logits) best = std::isnan(logit) ? best : std::max(best, double{logit});
  std::vector<double> all;
  for (const float logit : logits)
    all.push_back(double{logit} == best ? 0 : (best - double{logit}) * inverse_temperature);
  return all;
}

/// The distance up to which tokens stay; `is_clear` becomes false if others than the kernel's could.
inline double reference_limit(std::span<const float> logits, const RowSampling& sampling, bool& is_clear) {
  constexpr double kNear = 1e-5;  // of a distance, or of the whole probability
  std::vector<double> sorted;
  for (const double distance : distances(logits, sampling.inverse_temperature))
    if (!std::isnan(distance)) sorted.push_back(distance);
  std::sort(sorted.begin(), sorted.end());
  if (sorted.empty()) return INFINITY;
  const size_t num_tokens = sorted.size();
  size_t kept = num_tokens;  // the limit is that of the last of them
  const auto check_border = [&] {
    const double last = sorted[kept - 1];
    for (const double distance : sorted)
      is_clear =
          is_clear && (distance == last || std::abs(distance - last) > kNear || last > kMaxKeyDistance);
  };
  if (sampling.top_k > 0 && static_cast<size_t>(sampling.top_k) < num_tokens) {
    kept = static_cast<size_t>(sampling.top_k);
    check_border();
    while (kept < num_tokens && sorted[kept] == sorted[kept - 1]) ++kept;
  }
  if (sampling.top_p < 1) {
    double total = 0;
    for (size_t i = 0; i < kept; ++i) total += std::exp(-sorted[i]);
    double sum = 0;
    size_t taken = 0;
    while (taken < kept && (taken == 0 || sum < sampling.top_p * total)) {
      sum += std::exp(-sorted[taken++]);
      is_clear = is_clear && std::abs(sum - sampling.top_p * total) > kNear * total;
    }
    kept = taken;
    check_border();
  }
  const double limit = kept == num_tokens ? INFINITY : sorted[kept - 1];
  for (const double distance : sorted)
    is_clear = is_clear && !(std::abs(distance - double{sampling.max_distance}) < kNear);
  return std::min(limit, double{sampling.max_distance});
}

/// Of a row whose token stands at `position`; `seen` are the tokens that are penalised.
inline ReferenceChoice reference_choice(std::span<const float> logits, const RowSampling& sampling,
                                        int position, const std::set<int32_t>& seen = {}) {
  const std::vector<float> changed = penalised(logits, sampling, seen);
  ReferenceChoice choice;
  double limit = INFINITY;
  if (sampling.inverse_temperature != 0) limit = reference_limit(changed, sampling, choice.is_clear);
  const std::vector<double> away = distances(changed, sampling.inverse_temperature);
  double scores[2] = {-INFINITY, -INFINITY};  // the best two
  bool found = false;
  for (int token = 0; token < std::ssize(changed); ++token) {
    const float logit = changed[static_cast<size_t>(token)];
    if (std::isnan(logit) || away[static_cast<size_t>(token)] > limit) continue;
    double score = logit;
    if (sampling.inverse_temperature != 0) {
      const double u = sampling_uniform(sampling.seed, position, token);
      score = score * sampling.inverse_temperature - std::log(-std::log1p(-u));
    }
    if (!found || score > scores[0]) {
      scores[1] = std::exchange(scores[0], score);
      choice.token = token;
      found = true;
    } else {
      scores[1] = std::max(scores[1], score);
    }
  }
  choice.lead = scores[0] - scores[1];
  return choice;
}

/// Probabilities of the tokens.
inline std::vector<double> reference_probabilities(std::span<const float> logits, const RowSampling& sampling,
                                                   const std::set<int32_t>& seen = {}) {
  const std::vector<float> changed = penalised(logits, sampling, seen);
  bool is_clear = true;
  const double limit = reference_limit(changed, sampling, is_clear);
  std::vector<double> shares;
  double sum = 0;
  for (const double distance : distances(changed, sampling.inverse_temperature)) {
    shares.push_back(distance <= limit ? std::exp(-distance) : 0);
    sum += shares.back();
  }
  for (double& share : shares) share /= sum;
  return shares;
}

/// log softmax(logits) of a token.
inline double reference_logprob(std::span<const float> logits, int token) {
  double sum = 0;
  const std::vector<double> away = distances(logits, 1);
  for (const double distance : away) sum += std::isnan(distance) ? 0 : std::exp(-distance);
  return -away[static_cast<size_t>(token)] - std::log(sum);
}

}  // namespace soliton
