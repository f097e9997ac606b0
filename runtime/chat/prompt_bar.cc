#include "runtime/chat/prompt_bar.h"

#include <fmt/format.h>

#include <algorithm>

namespace soliton {

std::string prompt_line(size_t num_read, size_t num_tokens, size_t num_cached, double seconds, int columns) {
  const size_t num_new = num_read - std::min(num_cached, num_read);
  const size_t num_left = num_tokens - std::min(num_read, num_tokens);
  const double rate = seconds > 0 ? static_cast<double>(num_new) / seconds : 0;
  const double share =
      num_tokens == 0 ? 1.0 : static_cast<double>(num_read) / static_cast<double>(num_tokens);
  return bar_line("Prompt", share,
                  fmt::format("{}/{} tokens {:.0f} t/s{}", num_read, num_tokens, rate,
                              remaining_time(num_new, num_left, seconds)),
                  columns);
}

void PromptBar::show(size_t num_read, size_t num_tokens) {
  constexpr std::chrono::milliseconds kMoment{300};
  const Clock::time_point now = Clock::now();
  if (!num_cached_) {
    num_cached_ = num_read;
    began_ = now;
  }
  if (now - began_ < kMoment || !line_.is_due()) return;
  const double seconds = std::chrono::duration<double>(now - began_).count();
  line_.draw(prompt_line(num_read, num_tokens, *num_cached_, seconds, line_.columns()));
}

}  // namespace soliton
