// Which tokens are drafted for those that decode, and which of them are kept: see scheduler.h. A step that checks drafts has
// no more rows than those for which a step takes little longer; samples that are decoded together share them.
#include <algorithm>

#include "runtime/server/scheduler.h"

namespace soliton {
namespace {

using Counter = Metrics::Counter;

constexpr int kLoneLaunchTokens = 256;      // a launch that ends for whoever comes may be long
constexpr int kRowsOfDrafts = 32;           // of a step with drafts
constexpr int kFedBetweenSteps = 256;       // tokens of a text that the draft model has not read,
constexpr size_t kReadBetweenSteps = 2048;  // or in which nothing can be looked up yet,
constexpr int kStepsBetween = 4;            // and steps of the sample meanwhile
constexpr size_t kMostLookedUp = 16384;     // the last tokens of a prompt, 4 MB of memory at most

}  // namespace

/// The tokens that a penalty counts for a row of the draft: those of the text, and on the way to the row those drafted, with
/// its own.
std::vector<int32_t> Scheduler::Sequence::tokens_up_to(int32_t draft_row) const {
  std::vector<int32_t> drafted;
  for (int32_t row = draft_row; row > 0; row = draft.parents[row]) drafted.push_back(draft.tokens[row]);
  std::vector<int32_t> all = tokens;
  all.insert(all.end(), drafted.rbegin(), drafted.rend());
  return all;
}

/// Drafts for those that decode what is worth it. Returns how many steps may follow, without drafts, before it is asked
/// again.
int Scheduler::draft() {
  const int num_samples = num_decoding();
  int num_steps =
      num_samples == 1 ? std::max(options_.launch_tokens, kLoneLaunchTokens) : options_.launch_tokens;
  if (options_.num_drafts == 0 || num_samples == 0 || (draft_model_ && num_samples > 1)) return num_steps;
  const int most_rows = std::min(engine_.max_rows(), kRowsOfDrafts) / num_samples;
  for (const SequencePointer& sequence : running_) {
    // Logits would come to the host for the rows of drafts too.
    if (sequence->decodes() && sequence->wants_logits()) return num_steps;
  }
  for (const SequencePointer& sequence : running_) {
    if (!sequence->decodes() || !sequence->allowed.empty()) continue;
    // No more than could be kept: the step itself chooses one more.
    const int num_left = sequence->generation().max_tokens - sequence->num_generated;
    const int max_drafts = std::min({options_.num_drafts, most_rows - 1, num_left - 1});
    if (max_drafts < 1) continue;
    const auto num_tokens = static_cast<int64_t>(sequence->tokens.size());
    if (num_tokens >= sequence->plain_until) {
      sequence->plain_until = num_tokens + (draft_model_ ? draft_by_model(*sequence, max_drafts)
                                                         : draft_from_text(*sequence, max_drafts));
    }
    num_steps = std::min(num_steps, static_cast<int>(sequence->plain_until - num_tokens));
  }
  return num_steps;
}

/// Texts that do not repeat themselves have no drafts: a step of several rows costs more than one of a single row.
int Scheduler::draft_from_text(Sequence& sequence, int max_drafts) {
  const std::span<const int32_t> tokens = sequence.tokens;
  size_t& known = sequence.num_looked_up;
  if (known == 0 && tokens.size() > kMostLookedUp) known = tokens.size() - kMostLookedUp;
  const size_t count = std::min(kReadBetweenSteps, tokens.size() - known);
  sequence.lookup.append(tokens.subspan(known, count));
  known += count;
  if (known < tokens.size()) return kStepsBetween;
  if (sequence.lookup.propose(1).tokens.size() == 1) return 1;  // nothing has occurred before
  const int num_drafts = sequence.draft_length.next(max_drafts);
  if (num_drafts == 0) return sequence.draft_length.num_plain();
  sequence.draft = sequence.lookup.propose(num_drafts);
  return 1;
}

int Scheduler::draft_by_model(Sequence& sequence, int max_drafts) {
  const std::span<const int32_t> tokens = sequence.tokens;
  if (drafted_for_ == sequence.arrival) {
    draft_model_->append(tokens.subspan(num_told_of_it_));
  } else {
    // How soon it drafts is not to tell one client what another has sent.
    if (drafted_in_scope_ != sequence.generation().cache_scope) draft_model_->forget();
    Sampling sampling = sequence.generation().sampling;
    sampling.seed += static_cast<uint32_t>(sequence.sample);
    draft_model_->begin(tokens, sampling);
    drafted_for_ = sequence.arrival;
    drafted_in_scope_ = sequence.generation().cache_scope;
  }
  num_told_of_it_ = tokens.size();
  if (!draft_model_->feed(kFedBetweenSteps)) return kStepsBetween;
  Drafter::Proposal proposal = draft_model_->propose(max_drafts);
  if (proposal.draft.tokens.size() > 1) sequence.draft = std::move(proposal.draft);
  return proposal.num_plain;
}

void Scheduler::drop_drafts() {
  for (const SequencePointer& sequence : running_) sequence->draft = {};
}

/// Behind a step, which has taken what it chose behind the last token of each text: takes what it chose behind drafted ones, as
/// long as these are what it chose itself.
void Scheduler::take_drafts(const TreeResult& result) {
  for (Sequence* const sequence : rows_) {
    if (sequence == nullptr || sequence->draft.tokens.empty()) continue;
    const size_t num_rows = sequence->draft.tokens.size();
    const AcceptedDraft accepted =
        accept_choices(sequence->draft, std::span(result.chosen).subspan(sequence->first_row, num_rows));
    size_t num_kept = 1;
    while (num_kept < accepted.path.size() && !sequence->end && !sequence->num_kept) {
      const size_t row = sequence->first_row + static_cast<size_t>(accepted.path[num_kept++]);
      GeneratedToken token{{result.chosen[row]}};
      if (sequence->generation().sampling.logprobs) token.logprob = result.logprobs[row];
      take(*sequence, std::move(token));
    }
    engine_.tree().accept(*sequence->branch, std::span(accepted.path).first(num_kept));
    sequence->draft_length.note(static_cast<int>(num_rows) - 1, static_cast<int>(num_kept) - 1);
    metrics_.add(Counter::kDraftedTokens, num_rows - 1);
    metrics_.add(Counter::kAcceptedTokens, num_kept - 1);
    sequence->draft = {};
  }
}

}  // namespace soliton
