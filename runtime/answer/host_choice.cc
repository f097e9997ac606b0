#include "runtime/answer/host_choice.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>

#include "runtime/text/constrain/vocabulary.h"

namespace soliton {
namespace {

struct Candidate {
  int32_t token = 0;
  float logit = 0;
};

bool is_worse(const Candidate& a, const Candidate& b) {
  return a.logit != b.logit ? a.logit < b.logit : a.token > b.token;
}

void penalise(const HostChoice& choice, std::span<float> logits) {
  if (choice.sampling.penalty == 1) return;
  for (const int32_t token : std::set<int32_t>(choice.seen.begin(), choice.seen.end())) {
    float& logit = logits[static_cast<size_t>(token)];
    logit = logit > 0 ? logit / choice.sampling.penalty : logit * choice.sampling.penalty;
  }
}

/// The best tokens, as many as top-k, top-p and min-p leave. A heap gives one after another, of which few are wanted.
std::vector<Candidate> truncate(std::vector<Candidate> heap, const RowSampling& sampling) {
  std::ranges::make_heap(heap, is_worse);
  const float best = heap.front().logit;
  const auto distance = [&](const Candidate& each) {
    return each.logit == best ? 0 : (best - each.logit) * sampling.inverse_temperature;
  };
  std::vector<Candidate> sorted;
  const auto pop = [&] {
    std::ranges::pop_heap(heap, is_worse);
    sorted.push_back(heap.back());
    heap.pop_back();
  };
  // As good as the last one that stays is good enough.
  const auto is_tied = [&] { return !heap.empty() && heap.front().logit == sorted.back().logit; };
  const bool has_limit = sampling.top_k > 0 && static_cast<size_t>(sampling.top_k) < heap.size();
  if (has_limit) {
    while (sorted.size() < static_cast<size_t>(sampling.top_k) || is_tied()) pop();
    heap = std::move(sorted);
    sorted.clear();
    std::ranges::make_heap(heap, is_worse);
  }
  if (sampling.top_p < 1) {
    double total = 0;
    for (const Candidate& each : heap) total += std::exp(-static_cast<double>(distance(each)));
    double sum = 0;
    while (!heap.empty() &&
           (sorted.empty() || sum < static_cast<double>(sampling.top_p) * total || is_tied())) {
      pop();
      sum += std::exp(-static_cast<double>(distance(sorted.back())));
    }
    heap = std::move(sorted);
  }
  std::erase_if(heap, [&](const Candidate& each) { return distance(each) > sampling.max_distance; });
  return heap;
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
  for (int32_t token = 0; token < std::ssize(logits); ++token) {
    if (std::isnan(logits[static_cast<size_t>(token)])) continue;
    if (!choice.allowed.empty() && !constrain::is_in(choice.allowed, token)) continue;
    candidates.push_back({token, logits[static_cast<size_t>(token)]});
  }
  if (candidates.empty()) return 0;
  if (sampling.inverse_temperature == 0) return std::ranges::max_element(candidates, is_worse)->token;
  if (sampling.truncates()) candidates = truncate(std::move(candidates), sampling);
  double best_score = -std::numeric_limits<double>::infinity();
  int32_t chosen = candidates.front().token;
  for (const Candidate& each : candidates) {
    const double uniform = static_cast<double>(sampling_uniform(sampling.seed, choice.position, each.token));
    const double score = static_cast<double>(each.logit) * static_cast<double>(sampling.inverse_temperature) -
                         std::log(-std::log1p(-uniform));
    if (score > best_score) {
      best_score = score;
      chosen = each.token;
    }
  }
  return chosen;
}

}  // namespace soliton
