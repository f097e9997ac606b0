// Which tokens may be next, for those who follow a grammar: asked of the workers, and waited for as long as that costs the
// others little. See scheduler.h.
#include <algorithm>

#include "runtime/server/scheduler.h"

namespace soliton {
namespace {

// A step does not wait longer than this for masks, and at most half of what it takes itself.
constexpr std::chrono::microseconds kLeastPatience{100};
constexpr std::chrono::microseconds kMostPatience{1000};
constexpr std::chrono::milliseconds kIdleWait{20};  // where there is nothing but masks to wait for

}  // namespace

/// For those who follow a grammar, or must not say everything, the tokens that may be next.
void Scheduler::find_allowed() {
  for (const SequencePointer& sequence : running_) {
    const Generation& generation = sequence->generation();
    if (generation.grammar == nullptr) {
      if (generation.allowed) sequence->allowed = *generation.allowed;
    } else if (sequence->mask == nullptr && sequence->gate == nullptr && !sequence->goes_free) {
      sequence->mask =
          std::make_shared<AnswerMask>(generation.grammar, generation.stop_tokens,
                                       [ticket = sequence->job->ticket] { return ticket->is_cancelled(); });
      want_mask(*sequence, {});
    }
  }
  wait_for_masks();
  finish_ended();
}

/// Goes on behind a token, if there is one.
void Scheduler::want_mask(Sequence& sequence, std::optional<int32_t> token) {
  sequence.allowed = {};
  sequence.mask_wanted = Clock::now();
  sequence.mask_news = std::make_shared<MaskNews>();
  sequence.mask->find(workers_, token, [this, news = sequence.mask_news] {
    const std::lock_guard lock(mutex_);
    news->has_come = true;
    if (news->is_missed) interrupted_ = true;
    came_.notify_one();
  });
}

/// Looks at a token that was chosen without a mask. Behind one that opens the gate the grammar holds.
void Scheduler::pass_gate(Sequence& sequence, int32_t token) {
  const GrammarGate::State state = sequence.gate->push(token);
  if (state == GrammarGate::State::kClosed) return;
  if (state == GrammarGate::State::kOpen) {
    const Generation& generation = sequence.generation();
    sequence.mask = std::make_shared<AnswerMask>(
        generation.grammar, generation.stop_tokens,
        [ticket = sequence.job->ticket] { return ticket->is_cancelled(); }, sequence.gate->begun());
    sequence.num_kept = sequence.tokens.size();
    want_mask(sequence, {});
  } else {
    sequence.goes_free = true;
  }
  sequence.gate = nullptr;
}

/// Behind a launch: what it chose behind an open gate goes, and what has been fed of it. The branch stays in the cache, where
/// the sequence finds what it goes on with.
void Scheduler::cut_back(Sequence& sequence) {
  const size_t num_kept = *std::exchange(sequence.num_kept, std::nullopt);
  if (num_kept == sequence.tokens.size()) return;
  leave(sequence);
  sequence.tokens.resize(num_kept);
}

/// A mask is there as a rule in less than a step takes. Who has none when the others' patience is over is left out of the
/// step, and joins when it has come.
void Scheduler::wait_for_masks() {
  const auto patience =
      std::clamp<Clock::duration>(step_time_ / 2, kLeastPatience, Clock::duration(kMostPatience));
  bool has_work = false;
  std::vector<Sequence*> waiting;
  Clock::time_point limit = {};
  for (const SequencePointer& sequence : running_) {
    const bool waits = sequence->mask_news != nullptr;
    has_work = has_work || !sequence->is_fed() || !waits;
    if (!waits) continue;
    waiting.push_back(sequence.get());
    if (sequence->is_fed()) limit = std::max(limit, sequence->mask_wanted + patience);
  }
  if (waiting.empty()) return;
  const auto has_come = [](const Sequence* sequence) { return sequence->mask_news->has_come; };
  const auto is_in_time = [&](const Sequence* sequence) {
    return has_come(sequence) || !sequence->is_fed() || sequence->mask_wanted + patience < Clock::now();
  };
  std::unique_lock lock(mutex_);
  const auto goes_on = [&] { return has_news_ || stopping_; };
  came_.wait_until(lock, limit,
                   [&] { return goes_on() || std::all_of(waiting.begin(), waiting.end(), is_in_time); });
  if (!has_work) {
    came_.wait_for(lock, kIdleWait,
                   [&] { return goes_on() || std::any_of(waiting.begin(), waiting.end(), has_come); });
  }
  std::erase_if(waiting, [&](Sequence* sequence) {
    sequence->mask_news->is_missed = sequence->is_fed();
    return !has_come(sequence);
  });
  lock.unlock();
  for (Sequence* const sequence : waiting) take_mask(*sequence);
}

/// What has been found of the tokens behind the last one.
void Scheduler::take_mask(Sequence& sequence) {
  sequence.mask_news = nullptr;
  if (sequence.end) return;
  const AnswerMask& mask = *sequence.mask;
  if (sequence.generation().make_gate && (mask.failure() || mask.is_other_text())) {
    sequence.mask = nullptr;
    sequence.goes_free = true;
    if (sequence.num_generated == sequence.generation().max_tokens) sequence.end = SampleEnd::kLength;
  } else if (mask.failure()) {
    sequence.end = SampleEnd::kAmbiguous;
    sequence.failure = mask.failure()->what();
  } else if (mask.is_whole()) {
    sequence.end = SampleEnd::kEnough;
  } else if (sequence.num_generated == sequence.generation().max_tokens) {
    sequence.end = SampleEnd::kLength;
  } else if (mask.allowed().empty()) {
    sequence.end = SampleEnd::kCancelled;  // that is why nothing was found
  } else {
    sequence.allowed = mask.allowed();
  }
}

}  // namespace soliton
