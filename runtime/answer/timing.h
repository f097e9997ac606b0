// How long an answer took.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <span>

namespace soliton {

/// Device times are modulo 2^32 ns: only neighbours can be compared.
inline double generation_seconds(std::span<const uint32_t> times_ns) {
  double seconds = 0;
  for (size_t i = 1; i < times_ns.size(); ++i)
    seconds += static_cast<double>(times_ns[i] - times_ns[i - 1]) * 1e-9;
  return seconds;
}

struct Timing {
  size_t prompt_tokens = 0;
  size_t cached_tokens = 0;  // of these, not fed again
  size_t generated = 0;
  size_t first_step = 0;  // of these, tokens of the first step, which belongs to the prompt
  double prompt_s = 0;
  double generation_s = 0;

  double prompt_rate() const {
    return prompt_s > 0 ? static_cast<double>(prompt_tokens - cached_tokens) / prompt_s : 0;
  }
  double generation_rate() const {
    return generation_s > 0 ? static_cast<double>(generated - first_step) / generation_s : 0;
  }
};

/// From now to the first token.
class PromptClock {
 public:
  void stop() {
    if (!stopped_) stopped_ = std::chrono::steady_clock::now();
  }
  double seconds() const {
    return std::chrono::duration<double>(stopped_.value_or(started_) - started_).count();
  }

 private:
  std::chrono::steady_clock::time_point started_ = std::chrono::steady_clock::now();
  std::optional<std::chrono::steady_clock::time_point> stopped_;
};

}  // namespace soliton
