#include "runtime/chat/parallel.h"

#include <algorithm>

#include "layout/page.h"
#include "models/error.h"

namespace soliton {
namespace {

bool contains(std::span<const int32_t> tokens, int32_t token) {
  return std::find(tokens.begin(), tokens.end(), token) != tokens.end();
}

/// The samples that go on, in the order of their rows.
struct LiveSamples {
  std::vector<int> index;         // [row]: in ParallelResult::samples
  std::vector<Branch> branches;   // [row]
  std::vector<int32_t> next;      // [row]: token to be fed
  std::vector<RowSampling> draw;  // [row]

  size_t size() const { return index.size(); }
  /// Tokens of each row so far.
  std::vector<std::vector<int32_t>> past(const ParallelRequest& request, const ParallelResult& result) const {
    std::vector<std::vector<int32_t>> rows;
    for (const int sample : index) {
      std::vector<int32_t>& tokens = rows.emplace_back(request.prompt.begin(), request.prompt.end());
      const std::vector<int32_t>& answer = result.samples[sample].tokens;
      tokens.insert(tokens.end(), answer.begin(), answer.end());
    }
    return rows;
  }
  void erase(size_t row) {
    const auto at = static_cast<ptrdiff_t>(row);
    index.erase(index.begin() + at);
    branches.erase(branches.begin() + at);
    next.erase(next.begin() + at);
    draw.erase(draw.begin() + at);
  }
};

LiveSamples fork_samples(KvTree& tree, Branch prompt, const ParallelRequest& request) {
  LiveSamples live;
  live.branches = tree.fork(prompt, request.num_samples + 1);
  tree.draft(live.branches.back(), {});
  live.branches.pop_back();
  for (int i = 0; i < request.num_samples; ++i) {
    live.index.push_back(i);
    live.next.push_back(request.prompt.back());
    live.draw.push_back(row_sampling(request.sampling, request.sampling.seed + static_cast<uint32_t>(i)));
  }
  return live;
}

}  // namespace

size_t ParallelResult::num_tokens() const {
  size_t sum = 0;
  for (const Sample& sample : samples) sum += sample.tokens.size();
  return sum;
}

ParallelResult decode_parallel(Engine& engine, const ParallelRequest& request,
                               const std::function<bool(int, const ChosenToken&)>& on_token) {
  if (request.prompt.empty()) throw Error(ExitCode::kUsage, "prompt: expected at least one token, got none");
  const int min_rows = std::max(request.min_rows, request.num_samples);
  engine.kernel_for_rows(min_rows);  // throws
  const std::span<const int32_t> fed = request.prompt.first(request.prompt.size() - 1);
  const size_t num_fed = feed_prompt(engine, engine.main_branch(), fed, request.prompt_watch);
  ParallelResult result;
  for (int i = 0; i < request.num_samples; ++i)
    result.samples.push_back({.seed = request.sampling.seed + static_cast<uint32_t>(i)});
  if (num_fed < fed.size()) {
    engine.reset_tree();
    return result;
  }
  LiveSamples live = fork_samples(engine.tree(), engine.main_branch(), request);
  const bool greedy = request.sampling.is_greedy();
  bool wanted = true;
  const auto take = [&](std::span<const int32_t> chosen) {
    if (!wanted) return false;
    for (size_t row = 0; row < live.size(); ++row) {
      Sample& sample = result.samples[live.index[row]];
      sample.tokens.push_back(chosen[row]);
      sample.hit_stop_token = contains(request.stop_tokens, chosen[row]);
      live.next[row] = chosen[row];
      ChosenToken token{chosen[row]};
      if (request.sampling.logprobs) token.logprob = engine.step_logprobs()[row];
      if (on_token && !on_token(live.index[row], token)) wanted = false;
    }
    return wanted;
  };
  for (int left = request.max_tokens; left > 0 && wanted && live.size() > 0;) {
    const std::vector<int32_t> tokens = live.next;  // take() changes it while the launch runs
    const std::vector<std::vector<int32_t>> past = request.sampling.repeat_penalty == 1
                                                       ? std::vector<std::vector<int32_t>>()
                                                       : live.past(request, result);
    const TreeResult part =
        engine.decode_tree({.tokens = tokens,
                            .num_steps = left,
                            .stop_tokens = request.stop_tokens,
                            .sampling = greedy ? std::span<const RowSampling>() : live.draw,
                            .past = past,
                            .want_logprobs = request.sampling.logprobs,
                            .rule = SliceRule::kFixed,
                            .min_rows = min_rows},
                           take);
    left -= part.num_steps;
    result.times_ns.insert(result.times_ns.end(), part.times_ns.begin(), part.times_ns.end());
    for (size_t row = live.size(); row-- > 0;) {
      if (!result.samples[live.index[row]].hit_stop_token) continue;
      engine.tree().prune(live.branches[row]);
      live.erase(row);
    }
  }
  engine.reset_tree();
  return result;
}

int64_t parallel_pool_tokens(size_t prompt_tokens, int num_samples, int max_tokens) {
  const int shared = static_cast<int>(prompt_tokens) - 1;
  return round_up(shared, kKvPageTokens) + int64_t{num_samples} * round_up(max_tokens, kKvPageTokens);
}

}  // namespace soliton
