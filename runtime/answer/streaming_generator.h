// Endless text: of what has been fed the cache keeps the first few tokens and the latest, at the positions that they have in the
// cache. After "Efficient Streaming Language Models with Attention Sinks".
#pragma once

#include <memory>
#include <vector>

#include "runtime/answer/generator.h"

namespace soliton {

/// What the cache keeps.
struct StreamingWindow {
  int sinks = 0;   // the first tokens,
  int window = 0;  // and at least so many of the latest, at least one

  /// Tokens that are forgotten at a time, once the cache is full.
  int step() const;
  /// Tokens that the cache is to hold.
  int context() const { return sinks + window + step(); }
};

/// Generates in an engine's main branch, however long the text becomes. What it was asked before must be what a prompt begins
/// with, or all of the prompt is fed anew. Without a grammar, and without drafts.
class StreamingGenerator : public Generator {
 public:
  /// `engine`: with a context of window.context(), and an empty tree. Throws Error (kMismatch) for models whose keys cannot
  /// be moved.
  StreamingGenerator(std::unique_ptr<Engine> engine, const StreamingWindow& window);

  Generated generate(const GenerateRequest& request, const OnToken& on_token) override;
  int context() const override { return kNoEnd; }
  void check(const Sampling& /*sampling*/) const override {}

  const Engine& engine() const { return *engine_; }

 private:
  size_t keep_common(std::span<const int32_t> prompt);
  void make_room();
  int room() const { return window_.context() - engine_->position(); }
  bool feed(const GenerateRequest& request);
  void decode(const GenerateRequest& request, const OnToken& on_token, Generated& generated);
  std::vector<int32_t> in_cache() const;
  void reset();

  std::unique_ptr<Engine> engine_;
  StreamingWindow window_;
  std::vector<int32_t> fed_;  // since the beginning,
  size_t num_forgotten_ = 0;  // of which so many behind the sinks are no more in the cache
};

}  // namespace soliton
