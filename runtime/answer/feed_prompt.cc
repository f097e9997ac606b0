#include "runtime/answer/feed_prompt.h"

#include <algorithm>
#include <chrono>

namespace soliton {

void FeedPace::took(int num_tokens, double seconds) {
  if (num_tokens == 0) return;
  if (rows_ > 1) {
    if (num_tokens > rows_ && seconds > kMostSeconds) prompt_rows_ = rows_;
    return;
  }
  const double each = seconds / num_tokens;
  const int longest = std::min(kMost, kGrowth * num_tokens);
  num_steps_ = each * longest <= kSeconds ? longest : std::max(1, static_cast<int>(kSeconds / each));
}

size_t feed_prompt(Engine& engine, Branch branch, std::span<const int32_t> tokens, const FeedWatch& watch) {
  using Clock = std::chrono::steady_clock;
  FeedPace pace(engine.max_rows(), engine.max_prompt_rows());
  size_t num_fed = 0;
  while (num_fed < tokens.size() && (!watch.goes_on || watch.goes_on())) {
    const size_t count = std::min(static_cast<size_t>(pace.num_tokens()), tokens.size() - num_fed);
    const Clock::time_point began = Clock::now();
    engine.feed(branch, tokens.subspan(num_fed, count));
    pace.took(static_cast<int>(count), std::chrono::duration<double>(Clock::now() - began).count());
    num_fed += count;
    if (watch.on_fed) watch.on_fed(num_fed);
  }
  return num_fed;
}

}  // namespace soliton
