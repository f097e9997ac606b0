// What a launch feeds and decodes: see scheduler.h.
#include <algorithm>
#include <array>
#include <numeric>

#include "layout/page.h"
#include "runtime/server/scheduler.h"

namespace soliton {
namespace {

using Counter = Metrics::Counter;
using Distribution = Metrics::Distribution;

constexpr int kAloneChunk = 256;        // tokens of a prompt between two looks at who else wants something
constexpr int kStepsBetweenChunks = 4;  // of those that decode, where there are too few rows for both
constexpr int kLoneLaunchTokens = 256;  // a launch that ends for whoever comes may be long
constexpr std::array<int32_t, 1> kPlainDraft = {-1};

bool contains(std::span<const int32_t> tokens, int32_t token) {
  return std::find(tokens.begin(), tokens.end(), token) != tokens.end();
}

/// The most likely tokens of a row, of which one is known; of those that are allowed, if not all are.
std::vector<RankedToken> best_tokens(std::span<const float> logits, int count, const ChosenToken& known,
                                     std::span<const uint32_t> allowed) {
  const float normaliser = logits[static_cast<size_t>(known.id)] - known.logprob.value_or(0);
  std::vector<int32_t> ids(logits.size());
  std::iota(ids.begin(), ids.end(), 0);
  if (!allowed.empty()) std::erase_if(ids, [&](int32_t id) { return !constrain::is_in(allowed, id); });
  const auto end = ids.begin() + std::min<ptrdiff_t>(count, std::ssize(ids));
  std::partial_sort(ids.begin(), end, ids.end(), [&](int32_t a, int32_t b) {
    return logits[a] != logits[b] ? logits[a] > logits[b] : a < b;
  });
  std::vector<RankedToken> best;
  for (auto id = ids.begin(); id != end; ++id) best.push_back({*id, logits[*id] - normaliser});
  return best;
}

}  // namespace

/// One round: a chunk of a prompt if one is to be fed, and steps of those that decode.
void Scheduler::work_on_rows() {
  Sequence* const fed = next_to_feed();
  if (fed != nullptr && !fed->branch) begin(*fed);
  if (fed == nullptr || fed->num_to_feed() == 0) {
    decode(options_.launch_tokens);
    return;
  }
  const int num_rows = num_decoding();
  if (num_rows == 0) {
    feed(*fed, kAloneChunk);
  } else if (num_rows <= max_rows_ / 2) {
    feed_and_decode(*fed, max_rows_ - num_rows);
  } else {
    feed(*fed, engine_.max_rows());
    decode(kStepsBetweenChunks);
  }
}

int Scheduler::num_decoding() const {
  return static_cast<int>(std::count_if(running_.begin(), running_.end(),
                                        [](const auto& sequence) { return sequence->decodes(); }));
}

// ---- Prompts

/// In turn the one that came first, so that a long prompt comes to its end, and the one with the fewest tokens left, so
/// that a short one does not wait for it. Null if all have been fed.
Scheduler::Sequence* Scheduler::next_to_feed() {
  Sequence* next = nullptr;
  const bool takes_shortest = num_rounds_ % 2 == 1;
  for (const SequencePointer& sequence : running_) {
    if (sequence->decodes() || waits_for_prefix(*sequence)) continue;
    const bool is_next = next == nullptr || (takes_shortest ? sequence->num_to_feed() < next->num_to_feed()
                                                            : sequence->arrival < next->arrival);
    if (is_next) next = sequence.get();
  }
  return next;
}

/// Whether more of its tokens than are cached are about to be fed for another one.
bool Scheduler::waits_for_prefix(const Sequence& sequence) const {
  if (sequence.branch) return false;
  int num_coming = 0;
  for (const SequencePointer& other : running_) {
    if (!other->branch || other->num_to_feed() == 0) continue;
    num_coming = std::max(num_coming, num_common_tokens(sequence.tokens, other->tokens));
  }
  return num_coming >= cache_.match(sequence.tokens) + kKvPageTokens;
}

/// Gives a sequence its branch, with what is cached of its tokens.
void Scheduler::begin(Sequence& sequence) {
  const PrefixCache::Start start = cache_.start(sequence.tokens);
  sequence.branch = start.branch;
  sequence.num_fed = start.num_cached;
  if (sequence.num_cached) return;  // sent back before
  sequence.num_cached = start.num_cached;
  sequence.began = Clock::now();
  metrics_.add(Counter::kPromptTokens, sequence.tokens.size());
  metrics_.add(Counter::kCachedTokens, static_cast<uint64_t>(start.num_cached));
}

/// Feeds tokens of one prompt by themselves, at most so many. Pages may be missing so much that the sequence is sent back.
void Scheduler::feed(Sequence& sequence, int num_tokens) {
  num_tokens = std::min(num_tokens, sequence.num_to_feed());
  while (!cache_.make_room(engine_.tree().missing_pages(*sequence.branch, num_tokens))) {
    if (!send_back_latest())
      throw Error(ExitCode::kInternal, "KV pool: expected room for one sequence, got none");
    if (!sequence.branch) return;
  }
  const std::span<const int32_t> chunk = std::span(sequence.tokens).subspan(sequence.num_fed, num_tokens);
  engine_.feed(*sequence.branch, chunk);
  cache_.append(*sequence.branch, chunk);
  sequence.num_fed += num_tokens;
  metrics_.add(Counter::kLaunches);
}

/// A step of all that decode, whose other rows feed a prompt.
void Scheduler::feed_and_decode(Sequence& fed, int num_tokens) {
  num_tokens = std::min(num_tokens, fed.num_to_feed());
  for (;;) {
    int needed = engine_.tree().missing_pages(*fed.branch, num_tokens);
    for (const SequencePointer& sequence : running_) {
      if (sequence->decodes()) needed += engine_.tree().missing_pages(*sequence->branch, 1);
    }
    if (cache_.make_room(needed)) break;
    if (!send_back_latest())
      throw Error(ExitCode::kInternal, "KV pool: expected room for one sequence, got none");
    if (!fed.branch) return;
  }
  step(&fed, num_tokens, 1);
}

// ---- Steps

/// At most so many steps of all that decode.
void Scheduler::decode(int max_steps) {
  const int num_steps = reserve_steps(max_steps);
  if (num_steps > 0) step(nullptr, 0, num_steps);
}

/// How many steps there is room for, of all that decode; 0 if there are none.
int Scheduler::reserve_steps(int max_steps) {
  for (;;) {
    const int num_rows = num_decoding();
    if (num_rows == 0) return 0;
    int num_steps = num_rows == 1 ? std::max(max_steps, kLoneLaunchTokens) : max_steps;
    for (const SequencePointer& sequence : running_) {
      if (!sequence->decodes()) continue;
      num_steps = std::min(num_steps, sequence->generation().max_tokens - sequence->num_generated);
      if (sequence->generation().num_best > 0) num_steps = 1;  // logits come after a launch
      if (sequence->generation().grammar != nullptr) num_steps = 1;
    }
    for (const int steps : {num_steps, 1}) {
      int needed = 0;
      for (const SequencePointer& sequence : running_) {
        if (sequence->decodes()) needed += engine_.tree().missing_pages(*sequence->branch, steps);
      }
      if (cache_.make_room(needed)) return steps;
    }
    if (!send_back_latest())
      throw Error(ExitCode::kInternal, "KV pool: expected room for one sequence, got none");
  }
}

/// One launch, for which there are pages: a row for each that decodes, and rows for a chunk of `fed`, if it is not null.
void Scheduler::step(Sequence* fed, int num_chunk, int num_steps) {
  std::map<Branch, Sequence*> by_branch;
  bool draws = false;
  bool wants_logprobs = false;
  bool penalises = false;
  bool wants_logits = false;
  bool has_grammar = false;
  std::vector<int32_t> stop_tokens;
  for (const SequencePointer& sequence : running_) {
    if (!sequence->branch) continue;
    by_branch[*sequence->branch] = sequence.get();
    if (!sequence->decodes()) {
      engine_.tree().draft(*sequence->branch, {});
      continue;
    }
    engine_.tree().draft(*sequence->branch, kPlainDraft);
    const Generation& generation = sequence->generation();
    draws = draws || !generation.sampling.is_greedy();
    wants_logprobs = wants_logprobs || generation.sampling.logprobs;
    penalises = penalises || generation.sampling.repeat_penalty != 1;
    wants_logits = wants_logits || generation.num_best > 0;
    has_grammar = has_grammar || generation.grammar != nullptr;
    for (const int32_t token : generation.stop_tokens) {
      if (!contains(stop_tokens, token)) stop_tokens.push_back(token);
    }
  }
  std::vector<int32_t> chain(static_cast<size_t>(num_chunk));
  std::iota(chain.begin(), chain.end(), -1);
  if (fed != nullptr) engine_.tree().draft(*fed->branch, chain);

  rows_.clear();
  std::vector<int32_t> inputs;
  std::vector<RowSampling> sampling;
  std::vector<std::vector<int32_t>> past;
  std::vector<std::span<const uint32_t>> allowed;
  for (const SnapshotRow& row : engine_.rows()) {
    Sequence* const sequence = by_branch.at(row.branch);
    const bool decodes = sequence != fed;
    rows_.push_back(decodes ? sequence : nullptr);
    inputs.push_back(sequence->tokens[static_cast<size_t>(sequence->num_fed + (decodes ? 0 : row.draft))]);
    if (draws) sampling.push_back(decodes ? sequence->draw() : RowSampling{});
    if (has_grammar) allowed.push_back(decodes ? sequence->allowed : std::span<const uint32_t>());
    if (penalises) past.push_back(decodes ? sequence->tokens : std::vector<int32_t>());
  }
  TreeResult result =
      engine_.decode_tree({.tokens = inputs,
                           .num_steps = num_steps,
                           .stop_tokens = stop_tokens,
                           .sampling = sampling,
                           .past = past,
                           .allowed = allowed,
                           .want_logits = wants_logits,
                           .want_logprobs = wants_logprobs,
                           .lone_row_alone = true},
                          [&](std::span<const int32_t> chosen) { return wants_logits || take(chosen); });
  logits_ = std::move(result.logits);
  if (wants_logits) take(result.chosen);
  note(result, fed, num_chunk);
}

/// Notes what a step has fed.
void Scheduler::note(const TreeResult& result, Sequence* fed, int num_chunk) {
  const auto append = [&](Sequence& sequence, int num_tokens) {
    cache_.append(*sequence.branch, std::span(sequence.tokens).subspan(sequence.num_fed, num_tokens));
    sequence.num_fed += num_tokens;
  };
  int num_decoded = 0;
  for (Sequence* const sequence : rows_) {
    if (sequence == nullptr) continue;
    append(*sequence, result.num_steps);
    ++num_decoded;
  }
  if (fed != nullptr) {
    std::vector<int32_t> path(static_cast<size_t>(num_chunk));
    std::iota(path.begin(), path.end(), 0);
    if (num_chunk > 1) engine_.tree().accept(*fed->branch, path);  // one new token has been taken already
    append(*fed, num_chunk);
  }
  metrics_.add(Counter::kLaunches);
  metrics_.add(Counter::kSteps, static_cast<uint64_t>(result.num_steps));
  metrics_.add(Counter::kGeneratedTokens, static_cast<uint64_t>(result.num_steps * num_decoded));
  for (int i = 0; i < result.num_steps; ++i)
    metrics_.observe(Distribution::kRowsPerStep, static_cast<double>(rows_.size()));
}

/// A step's choices, while the launch goes on: false ends it.
bool Scheduler::take(std::span<const int32_t> chosen) {
  bool goes_on = true;
  const std::span<const float> logprobs = engine_.step_logprobs();
  for (size_t row = 0; row < rows_.size(); ++row) {
    if (rows_[row] == nullptr) continue;
    Sequence& sequence = *rows_[row];
    GeneratedToken token{{chosen[row]}};
    if (sequence.generation().sampling.logprobs) token.logprob = logprobs[row];
    if (const int num_best = sequence.generation().num_best; num_best > 0) {
      const size_t vocabulary = logits_.size() / rows_.size();
      token.best = best_tokens(std::span(logits_).subspan(row * vocabulary, vocabulary), num_best, token,
                               sequence.allowed);
    }
    take(sequence, token);
    goes_on = goes_on && !sequence.end;
  }
  return goes_on && !interrupted_.load(std::memory_order_relaxed);
}

void Scheduler::take(Sequence& sequence, const GeneratedToken& token) {
  const Generation& generation = sequence.generation();
  const Clock::time_point now = Clock::now();
  const bool is_first = sequence.num_generated == 0;
  metrics_.observe(
      is_first ? Distribution::kFirstTokenS : Distribution::kTokenS,
      std::chrono::duration<double>(now - (is_first ? sequence.job->submitted : sequence.last_token))
          .count());
  sequence.last_token = now;
  sequence.tokens.push_back(token.id);
  ++sequence.num_generated;
  const bool wants_more = !generation.on_token || generation.on_token(sequence.sample, token);
  if (sequence.constraint) follow_grammar(sequence, token.id);
  if (contains(generation.stop_tokens, token.id)) {
    sequence.end = SampleEnd::kStopToken;
  } else if (!wants_more) {
    sequence.end = SampleEnd::kEnough;
  } else if (!sequence.end && sequence.num_generated == generation.max_tokens) {
    sequence.end = SampleEnd::kLength;
  }
}

/// Ends a sample behind whose token nothing may follow.
void Scheduler::follow_grammar(Sequence& sequence, int32_t token) {
  sequence.allowed = {};
  try {
    if (!sequence.constraint->accept(token))
      throw Error(ExitCode::kInternal,
                  fmt::format("grammar: expected a token that is allowed, got {}", token));
    if (sequence.constraint->ended()) sequence.end = SampleEnd::kEnough;
  } catch (const Error& error) {
    sequence.end = SampleEnd::kAmbiguous;
    sequence.failure = error.what();
  }
}

}  // namespace soliton
