#include "runtime/answer/beam_search.h"

#include <algorithm>
#include <cmath>

#include "layout/page.h"
#include "models/error.h"
#include "runtime/answer/feed_prompt.h"
#include "runtime/engine/sampling.h"

namespace soliton {
// ---- The search

BeamSearch::BeamSearch(const BeamRequest& request) : request_(request), running_(1) {}

float BeamSearch::score_of(float sum, size_t num_tokens) const {
  return sum / static_cast<float>(std::pow(static_cast<double>(num_tokens), request_.length_penalty));
}

bool BeamSearch::ends(const Candidate& candidate) const {
  const auto stops = request_.stop_tokens;
  return std::find(stops.begin(), stops.end(), candidate.token) != stops.end() ||
         std::ssize(running_[candidate.beam].tokens) + 1 == request_.max_tokens;
}

/// So many that there are num_beams which go on, even if every beam offers each token that ends it.
std::vector<BeamSearch::Candidate> BeamSearch::best_candidates(std::span<const float> logits) const {
  const size_t vocabulary = logits.size() / running_.size();
  const auto num_wanted =
      static_cast<size_t>(request_.num_beams) * std::max(size_t{2}, request_.stop_tokens.size() + 1);
  const auto better = [](const Candidate& left, const Candidate& right) {
    if (left.sum != right.sum) return left.sum > right.sum;
    return left.beam != right.beam ? left.beam < right.beam : left.token < right.token;
  };
  std::vector<Candidate> best;  // a heap, of which the worst is the first
  for (size_t beam = 0; beam < running_.size(); ++beam) {
    const std::span<const float> row = logits.subspan(beam * vocabulary, vocabulary);
    const float log_sum = log_sum_exp(row);
    for (size_t token = 0; token < vocabulary; ++token) {
      const Candidate candidate{.beam = beam,
                                .token = static_cast<int32_t>(token),
                                .sum = running_[beam].score + (row[token] - log_sum)};
      if (best.size() == num_wanted) {
        if (!better(candidate, best.front())) continue;
        std::pop_heap(best.begin(), best.end(), better);
        best.pop_back();
      }
      best.push_back(candidate);
      std::push_heap(best.begin(), best.end(), better);
    }
  }
  std::sort_heap(best.begin(), best.end(), better);
  return best;
}

/// Keeps the num_beams best.
void BeamSearch::finish(Beam beam) {
  const auto place = std::find_if(finished_.begin(), finished_.end(),
                                  [&](const Beam& other) { return other.score < beam.score; });
  finished_.insert(place, std::move(beam));
  if (std::ssize(finished_) > request_.num_beams) finished_.pop_back();
}

std::vector<size_t> BeamSearch::advance(std::span<const float> logits) {
  const std::vector<Candidate> candidates = best_candidates(logits);
  const size_t num_tokens = running_[0].tokens.size() + 1;
  const auto num_beams = static_cast<size_t>(request_.num_beams);
  std::vector<Beam> running;
  std::vector<size_t> origins;
  for (size_t rank = 0; rank < candidates.size(); ++rank) {
    const Candidate& candidate = candidates[rank];
    const bool is_end = ends(candidate);
    // What ends behind the num_beams best is not worth keeping.
    if (is_end ? rank >= num_beams : running.size() == num_beams) continue;
    Beam beam{.tokens = running_[candidate.beam].tokens, .score = candidate.sum};
    beam.tokens.push_back(candidate.token);
    if (is_end) {
      beam.score = score_of(candidate.sum, num_tokens);
      finish(std::move(beam));
    } else {
      running.push_back(std::move(beam));
      origins.push_back(candidate.beam);
    }
  }
  const bool is_full = finished_.size() == num_beams;
  if (is_full && !running.empty() && score_of(running[0].score, num_tokens) <= finished_.back().score) {
    running.clear();
    origins.clear();
  }
  running_ = std::move(running);
  return origins;
}

std::vector<Beam> BeamSearch::best() const {
  return finished_.empty() ? running_ : finished_;
}

// ---- On an engine

namespace {

/// The branches of the running beams: each goes on from that of the beam it comes from.
std::vector<Branch> branches_of(KvTree& tree, const std::vector<Branch>& before,
                                const std::vector<size_t>& origins) {
  std::vector<std::vector<Branch>> children;
  for (size_t beam = 0; beam < before.size(); ++beam) {
    const auto count = static_cast<int>(std::count(origins.begin(), origins.end(), beam));
    children.push_back(count > 1 ? tree.fork(before[beam], count) : std::vector<Branch>{before[beam]});
    if (count == 0) tree.prune(before[beam]);
  }
  std::vector<Branch> branches;
  for (const size_t origin : origins) {
    branches.push_back(children[origin].back());
    children[origin].pop_back();
  }
  return branches;
}

/// The rows of a step are in the order of the tree: which beam each is of.
std::vector<size_t> beams_of_rows(const Engine& engine, const std::vector<Branch>& branches) {
  std::vector<size_t> beams;
  for (const SnapshotRow& row : engine.rows()) {
    const auto found = std::find(branches.begin(), branches.end(), row.branch);
    beams.push_back(static_cast<size_t>(found - branches.begin()));
  }
  return beams;
}

}  // namespace

BeamResult decode_beams(Engine& engine, const BeamRequest& request, const std::function<bool()>& goes_on) {
  if (request.prompt.empty()) throw Error(ExitCode::kUsage, "prompt: expected at least one token, got none");
  engine.kernel_for_rows(request.num_beams);  // throws
  const std::span<const int32_t> fed = request.prompt.first(request.prompt.size() - 1);
  BeamSearch search(request);
  BeamResult result;
  const size_t num_fed =
      feed_prompt(engine, engine.main_branch(), fed, {.goes_on = goes_on, .on_fed = request.on_fed});
  if (num_fed < fed.size()) {
    engine.reset_tree();
    result.beams = search.best();
    result.was_interrupted = true;
    return result;
  }
  std::vector<Branch> branches = {engine.main_branch()};
  std::vector<float> logits;
  while (!search.running().empty()) {
    if (goes_on && !goes_on()) {
      result.was_interrupted = true;
      break;
    }
    const std::vector<size_t> beams = beams_of_rows(engine, branches);
    std::vector<int32_t> inputs;
    for (const size_t beam : beams) {
      const std::vector<int32_t>& tokens = search.running()[beam].tokens;
      inputs.push_back(tokens.empty() ? request.prompt.back() : tokens.back());
    }
    const TreeResult step = engine.decode_tree(
        {.tokens = inputs, .want_logits = true, .rule = SliceRule::kFixed, .min_rows = request.num_beams});
    const size_t vocabulary = step.logits.size() / beams.size();
    logits.resize(step.logits.size());
    for (size_t row = 0; row < beams.size(); ++row) {
      std::copy_n(step.logits.begin() + static_cast<ptrdiff_t>(row * vocabulary), vocabulary,
                  logits.begin() + static_cast<ptrdiff_t>(beams[row] * vocabulary));
    }
    result.times_ns.push_back(step.times_ns.back());
    branches = branches_of(engine.tree(), branches, search.advance(logits));
  }
  engine.reset_tree();
  result.beams = search.best();
  return result;
}

int64_t beam_pool_tokens(size_t prompt_tokens, int num_beams, int max_tokens) {
  // Every fork begins nodes with a page of their own; there are fewer forks than beams.
  const int64_t of_beam = round_up(max_tokens, kKvPageTokens) + 2 * kKvPageTokens;
  return round_up(static_cast<int>(prompt_tokens), kKvPageTokens) + num_beams * of_beam;
}

}  // namespace soliton
