// What a launch feeds and decodes: see scheduler.h.
#include <algorithm>
#include <array>
#include <atomic>
#include <latch>
#include <numeric>

#include "runtime/server/ranked_tokens.h"
#include "runtime/server/scheduler.h"

namespace soliton {
namespace {

using Counter = Metrics::Counter;
using Distribution = Metrics::Distribution;

constexpr int kLeastPart = 8;           // for prompts, beside those that decode: an eighth of the rows
constexpr int kStepsBetweenChunks = 4;  // of those that decode, where there are too few rows for both
constexpr int kStepsOfPart = 4;  // of some of those that decode, while the others wait as long as they may
constexpr std::array<int32_t, 1> kPlainDraft = {-1};

bool contains(std::span<const int32_t> tokens, int32_t token) {
  return std::find(tokens.begin(), tokens.end(), token) != tokens.end();
}

}  // namespace

/// One round: chunks of prompts if some are to be fed, and steps of those that decode.
void Scheduler::work_on_rows() {
  const std::vector<Chunk> chunks = next_chunks();
  drop_drafts();
  if (chunks.empty()) {
    decode(draft());
  } else if (num_decoding() == 0 && chunks.size() == 1 && !chunks[0].ends && !chunks[0].sequence->scores()) {
    feed(*chunks[0].sequence, engine_.max_rows() > 1 ? chunks[0].num_tokens : feed_pace_.num_tokens());
  } else if (decodes_beside_prompts()) {
    feed_and_decode(chunks, num_decoding() > 0);
  } else {
    feed_and_decode(chunks, false);
    decode(kStepsBetweenChunks);
  }
}

int Scheduler::num_decoding() const {
  return static_cast<int>(std::count_if(running_.begin(), running_.end(),
                                        [&](const auto& sequence) { return takes_part(*sequence); }));
}

/// Whether those that decode leave rows for prompts. Else these have steps by themselves, for which the others wait.
bool Scheduler::decodes_beside_prompts() const {
  return engine_.max_rows() - num_decoding() >= std::max(1, engine_.max_rows() / kLeastPart);
}

// ---- Steps

/// At most so many steps of all that decode: of all together, or of one part of them after the other where that takes less time.
void Scheduler::decode(int max_steps) {
  std::vector<uint64_t> arrivals;
  bool is_drafted = false;
  for (const SequencePointer& sequence : running_) {
    if (!sequence->decodes()) continue;
    arrivals.push_back(sequence->arrival);
    is_drafted = is_drafted || !sequence->draft.tokens.empty();
  }
  std::sort(arrivals.begin(), arrivals.end());  // who was sent back has joined anew
  const size_t parts =
      is_drafted ? 1 : static_cast<size_t>(step_pace_.num_parts(static_cast<int>(arrivals.size())));
  for (size_t part = 0; part < parts; ++part) {
    if (parts > 1) {
      max_steps = std::min(max_steps, options_.max_gap.count() > 0 ? 1 : kStepsOfPart);
      const size_t end = arrivals.size() * (part + 1) / parts;
      part_ = {arrivals[arrivals.size() * part / parts],
               end < arrivals.size() ? arrivals[end] : kAllArrivals.end};
    }
    const int num_steps = reserve_steps(max_steps);
    if (num_steps > 0) step({}, num_steps);
  }
  part_ = kAllArrivals;
}

/// Whether it decodes, and in the steps at hand.
bool Scheduler::takes_part(const Sequence& sequence) const {
  return sequence.decodes() && sequence.arrival >= part_.first && sequence.arrival < part_.end;
}

/// How many steps there is room for, of all that decode; 0 if there are none.
int Scheduler::reserve_steps(int max_steps) {
  for (;;) {
    if (num_decoding() == 0) return 0;
    int num_steps = max_steps;
    for (const SequencePointer& sequence : running_) {
      if (!takes_part(*sequence)) continue;
      num_steps = std::min(num_steps, sequence->generation().max_tokens - sequence->num_generated);
      if (sequence->wants_logits()) num_steps = 1;  // they come after a launch
      if (!sequence->allowed.empty() || !sequence->draft.tokens.empty()) num_steps = 1;
    }
    for (const int steps : {num_steps, 1}) {
      PageNeed needed;
      for (const SequencePointer& sequence : running_) {
        const int num_tokens = std::max(steps, static_cast<int>(sequence->draft.tokens.size()));
        if (takes_part(*sequence)) needed += engine_.tree().missing(*sequence->branch, num_tokens);
      }
      if (cache_.make_room(needed)) return steps;
      drop_drafts();
    }
    if (!send_back_latest())
      throw Error(ExitCode::kInternal, "KV pool: expected room for one sequence, got none");
  }
}

/// Gives each branch the rows that it has in a step, and notes what the step has to know of those that choose in it.
Scheduler::StepInput Scheduler::lay_out(std::span<const Chunk> chunks, int num_steps) {
  StepInput input;
  const auto note = [&input](const Sequence& sequence) {
    const Generation& generation = sequence.generation();
    input.draws = input.draws || !generation.sampling.is_greedy();
    input.wants_logprobs = input.wants_logprobs || generation.sampling.logprobs;
    input.penalises = input.penalises || generation.sampling.repeat_penalty != 1;
    input.wants_logits = input.wants_logits || sequence.wants_logits();
    input.forbids = input.forbids || !sequence.allowed.empty();
    for (const int32_t token : generation.stop_tokens) {
      if (!contains(input.stop_tokens, token)) input.stop_tokens.push_back(token);
    }
  };
  for (const SequencePointer& sequence : running_) {
    if (!sequence->branch) continue;
    input.by_branch[*sequence->branch] = {.sequence = sequence.get()};
    if (!takes_part(*sequence) || num_steps == 0) {
      engine_.tree().draft(*sequence->branch, {});
      continue;
    }
    const TokenDraft& draft = sequence->draft;
    engine_.tree().draft(*sequence->branch, draft.tokens.empty() ? kPlainDraft : std::span(draft.parents));
    input.chooses = true;
    note(*sequence);
  }
  for (const Chunk& chunk : chunks) {
    input.by_branch.at(*chunk.sequence->branch) = chunk;
    input.scores = input.scores || chunk.sequence->scores();
    input.chooses = input.chooses || chunk.ends;
    if (chunk.ends) note(*chunk.sequence);
    std::vector<int32_t> chain(static_cast<size_t>(chunk.num_tokens));
    std::iota(chain.begin(), chain.end(), -1);
    engine_.tree().draft(*chunk.sequence->branch, chain);
  }
  input.wants_logits = input.wants_logits || input.scores;
  input.wants_logprobs = input.wants_logprobs || input.scores;
  return input;
}

/// Adds a row to what a step is given, and to rows_.
void Scheduler::add_row(const SnapshotRow& row, StepInput& input) {
  const Chunk& chunk = input.by_branch.at(row.branch);
  Sequence* const sequence = chunk.sequence;
  const bool is_of_chunk = chunk.num_tokens > 0;
  const bool is_drafted = !is_of_chunk && row.draft > 0;
  const bool is_last = is_of_chunk ? chunk.ends && row.draft == chunk.num_tokens - 1 : !is_drafted;
  const auto position = static_cast<size_t>(sequence->num_fed + (is_of_chunk ? row.draft : 0));
  if (is_of_chunk && sequence->scores()) input.scored.push_back({sequence, position + 1, rows_.size()});
  if (!is_of_chunk && !is_drafted) sequence->first_row = rows_.size();
  const bool chooses = !is_of_chunk || is_last;
  const int own_row = static_cast<int>(rows_.size());
  if (chooses) input.wanted_bands |= row_bands(own_row, own_row + 1);
  rows_.push_back(is_last ? sequence : nullptr);
  input.tokens.push_back(is_drafted ? sequence->draft.tokens[row.draft] : sequence->tokens[position]);
  if (input.draws) input.sampling.push_back(chooses ? sequence->draw() : RowSampling{});
  if (input.forbids) input.allowed.push_back(chooses ? sequence->allowed : std::span<const uint32_t>());
  if (input.penalises) {
    const int32_t drafted = is_of_chunk ? 0 : row.draft;
    input.past.push_back(chooses ? sequence->tokens_up_to(drafted) : std::vector<int32_t>());
  }
}

/// One launch, for which there are pages: a row for each that decodes, unless there are to be no steps of theirs, and rows
/// for the chunks.
void Scheduler::step(std::span<const Chunk> chunks, int num_steps) {
  StepInput input = lay_out(chunks, num_steps);
  rows_.clear();
  for (const SnapshotRow& row : engine_.rows()) add_row(row, input);
  steps_left_ = std::max(1, num_steps);
  const Clock::time_point began = Clock::now();
  TreeResult result = engine_.decode_tree(
      {.tokens = input.tokens,
       .num_steps = std::max(1, num_steps),
       .stop_tokens = input.stop_tokens,
       .sampling = input.sampling,
       .past = input.past,
       .allowed = input.allowed,
       .want_logits = input.wants_logits,
       .want_logprobs = input.wants_logprobs,
       .skips_choice = !input.chooses && !input.scores,
       .wanted_bands = input.wanted_bands,
       .lone_row_alone = true,
       .interrupt = &interrupted_,
       .on_launch =
           [&] {
             tell_all();
             if (has_ended()) interrupted_ = true;
           }},
      [&](std::span<const int32_t> chosen) { return input.wants_logits || take(chosen); });
  step_time_ = (Clock::now() - began) / std::max(1, result.num_steps);
  note_time(engine_.library().descriptor(result.kernel).rows, chunks,
            std::chrono::duration<double>(step_time_).count());
  logits_ = std::move(result.logits);
  if (input.wants_logits) take(result.chosen);
  take_drafts(result);
  score(result, input.scored);
  note(result, chunks);
  for (Sequence* const sequence : rows_) {
    if (sequence != nullptr && sequence->num_kept) cut_back(*sequence);
  }
}

/// Whether some sample has nothing more to come, or not without a mask.
bool Scheduler::has_ended() const {
  return std::any_of(running_.begin(), running_.end(), [](const SequencePointer& sequence) {
    return sequence->end.has_value() || sequence->num_kept.has_value();
  });
}

/// Notes what a step has fed.
void Scheduler::note(const TreeResult& result, std::span<const Chunk> chunks) {
  const auto append = [&](Sequence& sequence, int num_tokens) {
    cache_.append(*sequence.branch, std::span(sequence.tokens).subspan(sequence.num_fed, num_tokens));
    sequence.num_fed += num_tokens;
  };
  bool decodes = false;
  for (Sequence* const sequence : rows_) {
    if (sequence == nullptr) continue;
    append(*sequence, sequence->num_to_feed());  // all but the last token that was chosen
    decodes = true;
  }
  for (const Chunk& chunk : chunks) {
    std::vector<int32_t> path(static_cast<size_t>(chunk.num_tokens));
    std::iota(path.begin(), path.end(), 0);
    const Branch branch = *chunk.sequence->branch;
    if (chunk.num_tokens > 1) engine_.tree().accept(branch, path);  // one new token has been taken already
    if (!chunk.ends) append(*chunk.sequence, chunk.num_tokens);     // else it has a row that chose
    tell_fed(*chunk.sequence);
  }
  metrics_.add(Counter::kLaunches);
  if (!decodes) return;
  metrics_.add(Counter::kSteps, static_cast<uint64_t>(result.num_steps));
  metrics_.add(Counter::kGeneratedTokens, std::exchange(num_taken_, 0));
  for (int i = 0; i < result.num_steps; ++i)
    metrics_.observe(Distribution::kRowsPerStep, static_cast<double>(rows_.size()));
}

/// What a row has chosen; or the host for it, of adjusted logits, and how likely that was without.
GeneratedToken Scheduler::token_of_row(size_t row, int32_t chosen) const {
  const Sequence& sequence = *rows_[row];
  const Generation& generation = sequence.generation();
  GeneratedToken token{{chosen}};
  if (generation.sampling.logprobs) token.logprob = engine_.step_logprobs()[row];
  if (!sequence.wants_logits()) return token;
  const size_t vocabulary = logits_.size() / rows_.size();
  const std::span<const float> logits = std::span(logits_).subspan(row * vocabulary, vocabulary);
  const ChosenToken known = token;
  if (generation.adjustment != nullptr) {
    token.id = choose_on_host({.logits = logits,
                               .sampling = sequence.draw(),
                               .position = static_cast<int>(sequence.tokens.size()) - 1,
                               .seen = sequence.tokens,
                               .allowed = sequence.allowed},
                              *generation.adjustment, sequence.counts);
    if (known.logprob) token.logprob = logits[static_cast<size_t>(token.id)] - normaliser_of(logits, known);
  }
  if (generation.num_best > 0) token.best = best_tokens(logits, generation.num_best, known, sequence.allowed);
  return token;
}

/// Of all rows that decode. Those for which the host chooses, which takes milliseconds, are shared with the workers: whoever is
/// free takes the next one, and a worker that comes too late finds none.
std::vector<GeneratedToken> Scheduler::tokens_of_rows(std::span<const int32_t> chosen) {
  std::vector<GeneratedToken> tokens(rows_.size());
  std::vector<size_t> adjusted;
  for (size_t row = 0; row < rows_.size(); ++row) {
    if (rows_[row] == nullptr) continue;
    if (rows_[row]->generation().adjustment != nullptr) {
      adjusted.push_back(row);
    } else {
      tokens[row] = token_of_row(row, chosen[row]);
    }
  }
  struct Shared {
    explicit Shared(size_t num_rows) : num_rows(num_rows), left(static_cast<ptrdiff_t>(num_rows)) {}
    const size_t num_rows;
    std::atomic<size_t> next = 0;
    std::latch left;
  };
  const auto shared = std::make_shared<Shared>(adjusted.size());
  std::vector<std::exception_ptr> failures(adjusted.size());
  const auto take_rows = [this, shared, &tokens, &failures, &adjusted, chosen] {
    for (size_t i; (i = shared->next++) < shared->num_rows; shared->left.count_down()) {
      try {
        tokens[adjusted[i]] = token_of_row(adjusted[i], chosen[adjusted[i]]);
      } catch (...) {
        failures[i] = std::current_exception();
      }
    }
  };
  try {
    for (size_t i = 1; i < adjusted.size(); ++i)
      workers_.run(std::make_shared<GrammarWorkers::Line>(),
                   [take_rows](GrammarWorkers::Turn&) { take_rows(); });
  } catch (const std::bad_alloc&) {  // this thread does it by itself
  }
  take_rows();
  shared->left.wait();
  for (const std::exception_ptr& failure : failures) {
    if (failure) std::rethrow_exception(failure);
  }
  return tokens;
}

/// A step's choices, while the launch goes on: false ends it. Those of the last step are told when the next launch has
/// begun, as it would wait for that.
bool Scheduler::take(std::span<const int32_t> chosen) {
  std::vector<GeneratedToken> tokens = tokens_of_rows(chosen);
  for (size_t row = 0; row < rows_.size(); ++row) {
    if (rows_[row] != nullptr) take(*rows_[row], std::move(tokens[row]));
  }
  if (--steps_left_ > 0 && !interrupted_.load(std::memory_order_relaxed)) tell_all();
  return !has_ended();
}

/// A token of a sample that has ended is one that the launch chose meanwhile: nobody is told.
void Scheduler::take(Sequence& sequence, GeneratedToken token) {
  const int32_t id = token.id;
  sequence.tokens.push_back(id);
  if (!sequence.end && sequence.job->ticket->is_cancelled()) sequence.end = SampleEnd::kCancelled;
  if (sequence.end || sequence.num_kept) return;
  const Generation& generation = sequence.generation();
  const Clock::time_point now = Clock::now();
  const bool is_first = sequence.num_generated == 0;
  metrics_.observe(
      is_first ? Distribution::kFirstTokenS : Distribution::kTokenS,
      std::chrono::duration<double>(now - (is_first ? sequence.job->submitted : sequence.last_token))
          .count());
  sequence.last_token = now;
  ++sequence.num_generated;
  if (generation.adjustment != nullptr) ++sequence.counts[id];
  ++num_taken_;
  sequence.untold.push_back(std::move(token));
  if (contains(generation.stop_tokens, id)) {
    sequence.end = SampleEnd::kStopToken;
  } else if (sequence.mask) {
    want_mask(sequence, id);  // which says too whether it is whole
  } else if (sequence.num_generated == generation.max_tokens) {
    sequence.end = SampleEnd::kLength;
  } else if (sequence.gate) {
    pass_gate(sequence, id);
  }
}

}  // namespace soliton
