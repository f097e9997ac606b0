// What is fed of which prompt: see scheduler.h.
#include <algorithm>
#include <numeric>

#include "layout/page.h"
#include "runtime/server/ranked_tokens.h"
#include "runtime/server/scheduler.h"
#include "runtime/server/seconds.h"

namespace soliton {
namespace {

using Counter = Metrics::Counter;

constexpr int kRowsBeside = 32;  // of a step that feeds prompts beside few that decode
constexpr int kManyRows = 128;   // of a step that warpgroups multiply
constexpr int kScoredRows = 32;  // of a step, of a prompt that is scored: their logits come to the host

}  // namespace

/// Rows of a step that feeds prompts. Beside those that decode they are those for which a token of a prompt holds the others
/// up least: 32 rather than 64, which take a third longer; or all that warpgroups multiply at once.
int Scheduler::rows_of_step() const {
  const int decoding = num_decoding();
  if (decoding == 0 && options_.max_gap.count() == 0) return rows_of_prompts();
  const int most = options_.max_gap.count() > 0 ? rows_within_gap() : engine_.max_rows();
  if (decoding == 0 || !decodes_beside_prompts() || engine_.max_rows() >= kManyRows) return most;
  const int wanted = std::min(engine_.max_rows(), std::max(kRowsBeside, 4 * decoding));
  return std::min(most, engine_.library().descriptor(engine_.kernel_for_rows(wanted)).rows);
}

/// Where nobody decodes: of the largest kernel that what is to be fed fills. Those of more than max_rows() draw nothing: they end
/// no prompt whose next token is drawn.
int Scheduler::rows_of_prompts() const {
  const Sequence* last = nullptr;
  size_t num_tokens = 0;
  size_t num_sequences = 0;
  bool is_plain = true;
  for (const SequencePointer& sequence : running_) {
    if (sequence->is_fed() || waits_for_prefix(*sequence)) continue;
    last = sequence.get();
    num_tokens += static_cast<size_t>(sequence->num_to_feed()) + 1;
    is_plain = is_plain && sequence->is_plain();
    ++num_sequences;
  }
  const int most = engine_.max_rows();
  if (num_sequences == 0) return most;
  if (is_plain) return std::max(most, static_cast<int>(engine_.chunk_of(num_tokens)));
  const int num_before = last->num_to_feed() + 1 - most;  // the step that draws
  if (num_sequences > 1 || !last->branch || last->scores() || num_before <= most) return most;
  return std::max(most, static_cast<int>(engine_.chunk_of(static_cast<size_t>(num_before))));
}

/// Rows of a step after which nobody has waited longer for a token than max_gap allows; but one for a prompt in any case.
int Scheduler::rows_within_gap() const {
  int depth = 0;
  bool somebody_waits = false;
  for (const SequencePointer& sequence : running_) {
    if (sequence->branch && !sequence->is_fed()) depth = std::max(depth, sequence->num_fed);
    somebody_waits = somebody_waits || (sequence->is_fed() && sequence->generation().max_tokens > 0);
  }
  if (!somebody_waits) return engine_.max_rows();
  const bool is_shared = decodes_beside_prompts();  // else a step follows for those that decode
  const double seconds = std::chrono::duration<double>(options_.max_gap).count();
  const int rows = step_pace_.max_rows(depth, is_shared ? seconds : seconds - decoding_s_, Clock::now());
  return std::max(rows, is_shared ? num_decoding() + 1 : 1);
}

/// Times a step of each kernel, the second, as the first brings code to the card.
void Scheduler::calibrate() {
  KvTree& tree = engine_.tree();
  for (const int rows : step_pace_.kernel_rows()) {
    if (rows == 1 || rows > options_.context) continue;
    for (int i = 0; i < 2; ++i) {
      const Branch branch = tree.open();
      std::vector<int32_t> chain(static_cast<size_t>(rows));
      std::iota(chain.begin(), chain.end(), -1);
      tree.draft(branch, chain);
      const std::vector<int32_t> tokens(static_cast<size_t>(rows));
      const Clock::time_point began = Clock::now();
      engine_.decode_tree({.tokens = tokens});
      step_pace_.calibrate(rows, seconds_between(began, Clock::now()));
      tree.prune(branch);
    }
  }
}

/// Of a step by the kernel with so many rows. Those that take prompts alone say nothing of the steps that others wait for.
void Scheduler::note_time(int rows, std::span<const Chunk> chunks, double seconds) {
  if (rows > engine_.max_rows()) return;
  int depth = 0;
  for (const Chunk& chunk : chunks) depth = std::max(depth, chunk.sequence->num_fed);
  if (rows > 1) step_pace_.took(rows, depth, seconds, Clock::now());
  if (chunks.empty()) decoding_s_ = seconds;
}

/// What the next step feeds: of as many prompts as it has rows for.
std::vector<Scheduler::Chunk> Scheduler::next_chunks() {
  std::vector<Chunk> chunks;
  int num_fed = 0;
  for (;;) {
    const int room = rows_of_step() - num_fed - (decodes_beside_prompts() ? num_decoding() : 0);
    Sequence* const sequence = room > 0 ? next_to_feed(chunks) : nullptr;
    if (sequence == nullptr) return chunks;
    if (!sequence->branch) {
      begin(*sequence);
      continue;  // if all of it is cached it takes a row and decodes; else steps may have to be shorter behind so much
    }
    const int num_left = sequence->num_to_feed();
    const int most = sequence->scores() ? std::min(room, kScoredRows) : room;
    const bool ends = num_left < most && sequence->chooses_at_its_end();
    chunks.push_back({sequence, ends ? num_left + 1 : std::min(most, num_left), ends});
    num_fed += chunks.back().num_tokens;
  }
}

bool Scheduler::Sequence::is_plain() const {
  const Sampling& sampling = generation().sampling;
  return sampling.is_greedy() && sampling.repeat_penalty == 1 && !sampling.logprobs &&
         !generation().grammar && !wants_logits() && !scores();
}

/// Whether the step that is fed the last token of its text can choose the next one: all that the choice depends on is known,
/// and no logits come to the host, which would be those of all the step's rows.
bool Scheduler::Sequence::chooses_at_its_end() const {
  const bool awaits_mask = generation().grammar && !mask && !gate && !goes_free;
  return generation().max_tokens > 0 && mask_news == nullptr && !awaits_mask && !wants_logits() && !scores();
}

/// In turn the one that came first, so that a long prompt comes to its end, and the one with the fewest tokens left, so
/// that a short one does not wait for it. Null if all have been fed `but` for these.
Scheduler::Sequence* Scheduler::next_to_feed(std::span<const Chunk> but) {
  Sequence* next = nullptr;
  const bool takes_shortest = num_rounds_ % 2 == 1;
  for (const SequencePointer& sequence : running_) {
    if (sequence->is_fed() || waits_for_prefix(*sequence)) continue;
    const bool is_fed = std::any_of(but.begin(), but.end(),
                                    [&](const Chunk& chunk) { return chunk.sequence == sequence.get(); });
    if (is_fed) continue;
    const bool is_next = next == nullptr || (takes_shortest ? sequence->num_to_feed() < next->num_to_feed()
                                                            : sequence->arrival < next->arrival);
    if (is_next) next = sequence.get();
  }
  return next;
}

/// Whether more of its tokens than are cached are about to be fed for another one.
bool Scheduler::waits_for_prefix(const Sequence& sequence) const {
  if (sequence.branch || sequence.scores()) return false;
  const std::string& scope = sequence.generation().cache_scope;
  int num_coming = 0;
  for (const SequencePointer& other : running_) {
    if (!other->branch || other->num_to_feed() == 0 || other->generation().cache_scope != scope) continue;
    num_coming = std::max(num_coming, num_common_tokens(sequence.tokens, other->tokens));
  }
  return num_coming >= cache_.match(sequence.tokens, scope) + kKvPageTokens;
}

/// Gives a sequence its branch, with what is cached of its tokens; of those that are to be told of, with what has been told.
void Scheduler::begin(Sequence& sequence) {
  const std::span<const int32_t> tokens = sequence.tokens;
  const PrefixCache::Start start = cache_.start(
      sequence.scores() ? tokens.first(sequence.num_scored) : tokens, sequence.generation().cache_scope);
  sequence.branch = start.branch;
  sequence.num_fed = start.num_cached;
  if (sequence.num_cached) return;  // sent back before
  sequence.num_cached = start.num_cached;
  sequence.began = Clock::now();
  metrics_.add(Counter::kPromptTokens, sequence.tokens.size());
  metrics_.add(Counter::kCachedTokens, static_cast<uint64_t>(start.num_cached));
  tell_fed(sequence);
}

/// Feeds tokens of one prompt by themselves, at most so many. Pages may be missing so much that the sequence is sent back.
void Scheduler::feed(Sequence& sequence, int num_tokens) {
  tell_all();
  num_tokens = std::min(num_tokens, sequence.num_to_feed());
  while (!cache_.make_room(engine_.tree().missing(*sequence.branch, num_tokens))) {
    if (!send_back_latest())
      throw Error(ExitCode::kInternal, "KV pool: expected room for one sequence, got none");
    if (!sequence.branch) return;
  }
  const std::span<const int32_t> chunk = std::span(sequence.tokens).subspan(sequence.num_fed, num_tokens);
  const Clock::time_point began = Clock::now();
  engine_.feed(*sequence.branch, chunk);
  const double seconds = seconds_between(began, Clock::now());
  feed_pace_.took(num_tokens, seconds);
  if (num_tokens > 1 && engine_.max_rows() > 1) {  // else not the time of one step
    const Chunk step{&sequence, num_tokens};
    const int kernel = engine_.kernel_for_prompt(num_tokens);
    note_time(engine_.library().descriptor(kernel).rows, std::span(&step, 1), seconds);
  }
  cache_.append(*sequence.branch, chunk);
  sequence.num_fed += num_tokens;
  metrics_.add(Counter::kLaunches);
  tell_fed(sequence);
}

/// One step that feeds prompts, with a row for each that decodes if `decodes`. Where there are pages for less, it feeds the
/// first one alone; where not even for that, the latest that came is sent back, and the next round tries again.
void Scheduler::feed_and_decode(std::span<const Chunk> chunks, bool decodes) {
  for (const size_t num_chunks : {chunks.size(), size_t{1}}) {
    PageNeed needed;
    for (const Chunk& chunk : chunks.first(num_chunks))
      needed += engine_.tree().missing(*chunk.sequence->branch, chunk.num_tokens);
    for (const SequencePointer& sequence : running_) {
      if (decodes && sequence->decodes()) needed += engine_.tree().missing(*sequence->branch, 1);
    }
    if (cache_.make_room(needed)) return step(chunks.first(num_chunks), decodes ? 1 : 0);
  }
  if (!send_back_latest())
    throw Error(ExitCode::kInternal, "KV pool: expected room for one sequence, got none");
}

// ---- What is told of prompts

/// Tells of the tokens behind those that a step was fed.
void Scheduler::score(const TreeResult& result, std::span<const ScoredRow> rows) {
  for (const auto& [sequence, next, row] : rows) {
    if (next < sequence->num_scored) continue;  // told before it was sent back
    const Generation& generation = sequence->generation();
    const size_t vocabulary = logits_.size() / rows_.size();
    const std::span<const float> logits = std::span(logits_).subspan(row * vocabulary, vocabulary);
    const ChosenToken best{result.chosen[row], result.logprobs[row]};
    GeneratedToken token{{generation.prompt[next]}};
    token.logprob = logits[static_cast<size_t>(token.id)] - normaliser_of(logits, best);
    if (generation.num_best > 0) token.best = best_tokens(logits, generation.num_best, best, {});
    sequence->num_scored = next + 1;
    if (!sequence->job->ticket->is_cancelled()) generation.on_prompt_token(token);
  }
}

void Scheduler::tell_fed(const Sequence& sequence) const {
  const Generation& generation = sequence.generation();
  const bool has_told_tokens = std::ssize(sequence.untold) < sequence.num_generated;
  if (sequence.sample > 0 || !generation.on_fed || has_told_tokens) return;
  if (!sequence.job->ticket->is_cancelled())
    generation.on_fed(sequence.num_fed, sequence.num_cached.value_or(0));
}

/// Ends those that want no more than that.
void Scheduler::end_fed() {
  for (const SequencePointer& sequence : running_) {
    if (sequence->generation().max_tokens == 0 && sequence->is_fed() && !sequence->end)
      sequence->end = SampleEnd::kLength;
  }
}

}  // namespace soliton
