// Beam search as transformers' generate() does it with num_beams, and early_stopping at False: of all continuations
// of the beams by a token those with the largest sum of logprobs go on, until none of them can be expected to become
// better than the worst of the beams that have ended.
//
// The score of a beam that has ended is the sum of its logprobs over (its number of tokens) ^ length_penalty.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "runtime/engine/engine.h"

namespace soliton {

struct BeamRequest {
  std::span<const int32_t> prompt = {};  // at least one token
  int num_beams = 1;
  int max_tokens = 0;  // of each beam, at least one
  double length_penalty = 1;
  std::span<const int32_t> stop_tokens = {};        // a beam ends with one of these
  std::function<void(size_t num_fed)> on_fed = {};  // told while the prompt is fed
};

struct Beam {
  std::vector<int32_t> tokens = {};
  float score = 0;  // the sum of logprobs, and of one that has ended as said above
};

/// The beams, and what becomes of them; knows no engine.
class BeamSearch {
 public:
  /// Begins with one empty beam.
  explicit BeamSearch(const BeamRequest& request);

  /// Those that go on, the best first; none if the search has ended.
  std::span<const Beam> running() const { return running_; }
  /// Takes a step: `logits` is [running][vocabulary]. Returns which of the running beams each of the new ones goes on
  /// from.
  std::vector<size_t> advance(std::span<const float> logits);
  /// The best first: at most num_beams that have ended, or if none has, those that run.
  std::vector<Beam> best() const;

 private:
  struct Candidate {
    size_t beam = 0;
    int32_t token = 0;
    float sum = 0;
  };

  std::vector<Candidate> best_candidates(std::span<const float> logits) const;
  bool ends(const Candidate& candidate) const;
  float score_of(float sum, size_t num_tokens) const;
  void finish(Beam beam);

  BeamRequest request_;
  std::vector<Beam> running_;
  std::vector<Beam> finished_;  // the best first
};

struct BeamResult {
  std::vector<Beam> beams;         // the best first
  std::vector<uint32_t> times_ns;  // [steps]: device time at which they were taken, modulo 2^32
  bool was_interrupted = false;
};

/// Searches behind what main_branch() holds, the only branch, and leaves the engine an empty tree. All beams are rows of
/// one step. `goes_on` ends the search before a step, also one that feeds the prompt, by returning false. Throws Error:
/// kMismatch, before anything is changed, if no kernel takes a row for each beam; else as Engine::decode_tree().
BeamResult decode_beams(Engine& engine, const BeamRequest& request,
                        const std::function<bool()>& goes_on = {});

/// EngineOptions::pool_tokens that such a request needs in an empty tree.
int64_t beam_pool_tokens(size_t prompt_tokens, int num_beams, int max_tokens);

}  // namespace soliton
