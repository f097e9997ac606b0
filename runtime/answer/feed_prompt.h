// Prompts are fed in pieces, between which they can be given up: whoever wants that waits for one piece, not for the prompt.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>

#include "runtime/engine/engine.h"

namespace soliton {

/// How long the pieces are. With a kernel of several rows each is a step of the largest for prompts, some 30 ms for an 8B on a
/// large card; once one has lasted too long, of the largest for any rows. A kernel of one row takes a token a step, any number in
/// a launch.
class FeedPace {
 public:
  /// What a launch of one row is planned for: half of the 50 ms that Ctrl-C may take, as a step may be longer than those before.
  static constexpr double kSeconds = 0.025;
  static constexpr double kMostSeconds = 0.045;  // of a step

  /// Rows of the largest kernel for any, and of the largest for prompts.
  FeedPace(int rows, int prompt_rows) : rows_(rows), prompt_rows_(prompt_rows) {}

  /// Tokens of the next piece.
  int num_tokens() const { return rows_ > 1 ? prompt_rows_ : num_steps_; }
  /// A piece has lasted so long.
  void took(int num_tokens, double seconds);

 private:
  static constexpr int kFirst = 4;
  static constexpr int kMost = 256;
  static constexpr int kGrowth = 8;  // so that one launch that seemed quick does no harm

  int rows_;
  int prompt_rows_;
  int num_steps_ = kFirst;
};

/// Who follows a prompt that is being fed.
struct FeedWatch {
  std::function<bool()> goes_on = {};               // asked before each piece: false gives the rest up
  std::function<void(size_t num_fed)> on_fed = {};  // told after each piece, of all so far
};

/// Feeds tokens to a branch, as Engine::feed() in one call would. Returns how many were fed: all unless the rest was given up.
/// Throws what Engine::feed() does.
size_t feed_prompt(Engine& engine, Branch branch, std::span<const int32_t> tokens, const FeedWatch& watch);

}  // namespace soliton
