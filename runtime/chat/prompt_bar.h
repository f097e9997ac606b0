// What is shown on stderr, if that is a terminal, while a long prompt is read.
#pragma once

#include <chrono>
#include <optional>
#include <string>

#include "runtime/program/status_line.h"

namespace soliton {

/// "Prompt [=====>     ]  45% 1843/4096 tokens 25012 t/s 0:01 left" of at most `columns` bytes: num_read of all tokens are
/// read, of which num_cached took no time.
std::string prompt_line(size_t num_read, size_t num_tokens, size_t num_cached, double seconds, int columns);

/// A bar with tokens/s, from when the prompt has taken longer than a moment until it is cleared.
class PromptBar {
 public:
  explicit PromptBar(int fd = 2) : line_(fd) {}

  /// `num_read` of a prompt's tokens are in the cache. The first call says how many were there already.
  void show(size_t num_read, size_t num_tokens);
  /// The prompt is read, or given up: before anything else is written.
  void clear() { line_.clear(); }

 private:
  using Clock = std::chrono::steady_clock;

  StatusLine line_;
  std::optional<size_t> num_cached_;
  Clock::time_point began_ = {};
};

}  // namespace soliton
