#include "runtime/answer/host_choice.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <set>

#include "runtime/text/constrain/vocabulary.h"

namespace soliton {
namespace {

constexpr double kLog2E = 1.4426950408889634;
constexpr float kLeastUniform = 0.5f / 4294967296.0f;  // that sampling_uniform() gives

struct Candidate {
  int32_t token = 0;
  float logit = 0;
};

bool is_better(const Candidate& a, const Candidate& b) {
  return a.logit != b.logit ? a.logit > b.logit : a.token < b.token;
}

void penalise(const HostChoice& choice, std::span<float> logits) {
  if (choice.sampling.penalty == 1) return;
  for (const int32_t token : std::set<int32_t>(choice.seen.begin(), choice.seen.end())) {
    float& logit = logits[static_cast<size_t>(token)];
    logit = logit > 0 ? logit / choice.sampling.penalty : logit * choice.sampling.penalty;
  }
}

/// The least logit of the fewest best candidates whose masses add up to `wanted`, in linear time: halves of those among which
/// it may be are put in order, and one of them is left.
float least_logit_of_mass(std::vector<Candidate>& candidates, double wanted,
                          const std::function<double(const Candidate&)>& mass) {
  auto begin = candidates.begin();
  auto end = candidates.end();
  while (end - begin > 1) {
    const auto middle = begin + (end - begin) / 2;
    std::nth_element(begin, middle, end, is_better);
    double better = 0;
    for (auto each = begin; each != middle; ++each) better += mass(*each);
    if (better >= wanted) {
      end = middle;
    } else {
      wanted -= better;
      begin = middle;
    }
  }
  return begin->logit;
}

/// The best tokens, as many as top-k, top-p and min-p leave. As good as the last one that stays is good enough.
std::vector<Candidate> truncate(std::vector<Candidate> candidates, const RowSampling& sampling) {
  const float best = std::ranges::min_element(candidates, is_better)->logit;
  const auto distance = [&](const Candidate& each) {
    return each.logit == best ? 0 : (best - each.logit) * sampling.inverse_temperature;
  };
  const auto cut = [&](float least) {
    std::erase_if(candidates, [&](const Candidate& each) { return each.logit < least; });
  };
  if (sampling.top_k > 0 && static_cast<size_t>(sampling.top_k) < candidates.size()) {
    const auto last = candidates.begin() + sampling.top_k - 1;
    std::nth_element(candidates.begin(), last, candidates.end(), is_better);
    cut(last->logit);
  }
  if (sampling.top_p < 1) {
    const auto mass = [&](const Candidate& each) { return std::exp(-static_cast<double>(distance(each))); };
    double total = 0;
    for (const Candidate& each : candidates) total += mass(each);
    cut(least_logit_of_mass(candidates, static_cast<double>(sampling.top_p) * total, mass));
  }
  std::erase_if(candidates, [&](const Candidate& each) { return distance(each) > sampling.max_distance; });
  return candidates;
}

/// By the Gumbel-max trick. Noise is below -ln(uniform): where that cannot make a token the best, which is so of most, no
/// logarithm is taken.
int32_t draw(std::span<const Candidate> candidates, const RowSampling& sampling, int position) {
  const auto inverse_temperature = static_cast<double>(sampling.inverse_temperature);
  double best_score = -std::numeric_limits<double>::infinity();
  double least_logit = best_score;  // from which on noise suffices
  int32_t chosen = candidates.front().token;
  const auto most_noise = -std::log(static_cast<double>(kLeastUniform));
  for (const auto& [token, logit] : candidates) {
    if (static_cast<double>(logit) < least_logit) continue;
    const double uniform = static_cast<double>(sampling_uniform(sampling.seed, position, token));
    const double scaled = static_cast<double>(logit) * inverse_temperature;
    const double lack = best_score - scaled;
    // 2^-floor(lack / ln 2) is at least e^-lack.
    if (lack > 0 && uniform > std::ldexp(1.0, -static_cast<int>(lack * kLog2E))) continue;
    const double score = scaled - std::log(-std::log1p(-uniform));
    if (score <= best_score) continue;
    best_score = score;
    chosen = token;
    least_logit = (best_score - most_noise) / inverse_temperature;
  }
  return chosen;
}

}  // namespace

void adjust(const LogitAdjustment& adjustment, const std::map<int32_t, int>& answer,
            std::span<float> logits) {
  for (const auto& [token, bias] : adjustment.biases) logits[static_cast<size_t>(token)] += bias;
  if (adjustment.frequency_penalty == 0 && adjustment.presence_penalty == 0) return;
  for (const auto& [token, count] : answer)
    logits[static_cast<size_t>(token)] -=
        static_cast<float>(count) * adjustment.frequency_penalty + adjustment.presence_penalty;
}

int32_t choose_on_host(const HostChoice& choice, const LogitAdjustment& adjustment,
                       const std::map<int32_t, int>& answer) {
  const RowSampling& sampling = choice.sampling;
  std::vector<float> logits(choice.logits.begin(), choice.logits.end());
  penalise(choice, logits);
  adjust(adjustment, answer, logits);
  std::vector<Candidate> candidates;
  candidates.reserve(logits.size());
  for (int32_t token = 0; token < std::ssize(logits); ++token) {
    if (std::isnan(logits[static_cast<size_t>(token)])) continue;
    if (!choice.allowed.empty() && !constrain::is_in(choice.allowed, token)) continue;
    candidates.push_back({token, logits[static_cast<size_t>(token)]});
  }
  if (candidates.empty()) return 0;
  if (sampling.inverse_temperature == 0) return std::ranges::min_element(candidates, is_better)->token;
  if (sampling.truncates()) candidates = truncate(std::move(candidates), sampling);
  return draw(candidates, sampling, choice.position);
}

}  // namespace soliton
