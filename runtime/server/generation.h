// What the scheduler is asked for, and whom it tells of the tokens.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "runtime/answer/host_choice.h"
#include "runtime/engine/chosen_token.h"
#include "runtime/engine/sampling.h"
#include "runtime/server/answer_mask.h"

namespace soliton {

/// Why a sample ended.
enum class SampleEnd {
  kStopToken,  // its last token is one
  kEnough,     // on_token wanted no more
  kLength,     // it has max_tokens
  kCancelled,
  kShutdown,  // the scheduler ends
  kFailed,    // the kernel or the device did
  kAmbiguous  // its grammar is too much so, or cannot be made ready
};

struct SampleSummary {
  SampleEnd end = SampleEnd::kLength;
  int num_cached = 0;        // tokens of the prompt that had been fed before, in its scope
  std::string failure = {};  // why, of kFailed and kAmbiguous
};

/// A token, and how likely it was.
struct RankedToken {
  int32_t id = 0;
  float logprob = 0;
};

struct GeneratedToken : ChosenToken {
  std::vector<RankedToken> best = {};  // the most likely ones, if they are wanted
};

/// Says where the grammar of one answer begins to hold. Called by the scheduler's thread.
class GrammarGate {
 public:
  enum class State {
    kClosed,  // not yet
    kOpen,    // behind this token; the gate is not asked again
    kNever    // the same, and none holds
  };

  virtual ~GrammarGate() = default;
  virtual State push(int32_t token) = 0;
  /// Once it is open: what of the grammar stands already, in the bytes of its vocabulary. Once.
  virtual std::string begun() = 0;
};

/// Tokens behind one prompt. The functions are called on the scheduler's thread, which waits for them.
struct Generation {
  std::vector<int32_t> prompt;            // at least one token
  int num_samples = 1;                    // sample i draws with the sampling's seed + i, modulo 2^32
  int max_tokens = 1;                     // of each; 0: the prompt is fed, and nothing follows
  std::vector<int32_t> stop_tokens = {};  // a sample ends with one of these
  Sampling sampling = {};                 // no drafts
  int num_best = 0;  // GeneratedToken::best, with Sampling::logprobs: a launch is one token then
  /// What an answer may be, if not null; launches are of one token then. Several generations may have the same.
  std::shared_ptr<RequestGrammar> grammar = {};
  /// Where answers begin without the grammar, a gate for each. What then follows no grammar, though it has begun as one does,
  /// or one that is too ambiguous, goes on without.
  std::function<std::unique_ptr<GrammarGate>()> make_gate = {};
  /// Where there is no grammar: a bit for each token that an answer may have, as TreeRequest has it, at least one; null or
  /// empty: any. Launches are of one token then.
  std::shared_ptr<const std::vector<uint32_t>> allowed = {};
  /// What is done to the logits of an answer, on the host; null: nothing. Launches are of one token then.
  std::shared_ptr<const LogitAdjustment> adjustment = {};
  std::string client = {};       // those of one wait for one another, those of several take turns
  std::string cache_scope = {};  // those of one share what has been fed: see PrefixCache
  /// Called for the first sample with each token of the prompt but the first, as likely as it was, and num_best others in its
  /// place; before on_token. What is cached of the prompt is fed again for that.
  std::function<void(const GeneratedToken&)> on_prompt_token = {};
  /// Called for the first sample: tokens of the prompt that have been fed so far, with those that were cached.
  std::function<void(int num_fed, int num_cached)> on_fed = {};
  std::function<bool(int sample, const GeneratedToken&)> on_token = {};  // ends the sample by returning false
  std::function<void(int sample, const SampleSummary&)> on_end = {};     // once for each sample
};

/// A Generation that is waiting or under way. Any thread may cancel it.
class Ticket {
 public:
  bool is_cancelled() const { return cancelled_.load(std::memory_order_relaxed); }

 private:
  friend class Scheduler;
  std::atomic<bool> cancelled_ = false;
};

}  // namespace soliton
