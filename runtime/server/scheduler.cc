#include "runtime/server/scheduler.h"

#include <sys/prctl.h>

#include <algorithm>
#include <cmath>

#include "layout/page.h"
#include "models/printing.h"
#include "runtime/server/seconds.h"

namespace soliton {
namespace {

using Counter = Metrics::Counter;
using Gauge = Metrics::Gauge;

/// Of those kernels that can feed a prompt beside another row, in ascending order.
std::vector<int> kernel_rows(const KernelLibrary& library) {
  std::vector<int> rows;
  for (int kernel = 0; kernel < library.num_kernels(); ++kernel) {
    const int takes = library.descriptor(kernel).rows;
    if (takes > 1 && takes <= library.max_rows()) rows.push_back(takes);
  }
  if (rows.empty()) rows.push_back(1);
  std::sort(rows.begin(), rows.end());
  return rows;
}

}  // namespace

Busy::Busy(size_t num_waiting, int retry_after_s)
    : Error(ExitCode::kOutOfMemory,
            fmt::format("too many requests: {} samples are waiting; try again in {} s", num_waiting,
                        retry_after_s)),
      retry_after_s_(retry_after_s) {}

RowSampling Scheduler::Sequence::draw() const {
  const Sampling& sampling = generation().sampling;
  return row_sampling(sampling, sampling.seed + static_cast<uint32_t>(sample));
}

Scheduler::Scheduler(Engine& engine, const SchedulerOptions& options, Metrics& metrics,
                     std::unique_ptr<DraftModel> draft_model)
    : engine_(engine),
      options_(options),
      metrics_(metrics),
      max_rows_(options.max_rows == 0 ? engine.max_rows() : options.max_rows),
      cache_(engine.tree()),
      draft_model_(std::move(draft_model)),
      feed_pace_(engine.max_rows(), engine.max_prompt_rows()),
      step_pace_(kernel_rows(engine.library())) {
  for (const int rows : {max_rows_, options_.num_drafts + 1}) {
    if (rows > engine.max_rows()) engine.kernel_for_rows(rows);  // throws
  }
  engine.clear_tree();
  if (engine.tree().num_pages() < ceil_divide(options.context, kKvPageTokens) + 1) {
    throw Error(ExitCode::kInternal, fmt::format("KV pool: expected {} tokens and a page, got {} pages",
                                                 options.context, engine.tree().num_pages()));
  }
  metrics_.set(Gauge::kPages, engine.tree().num_pages());
  if (options_.max_gap.count() > 0) calibrate();
}

// ---- From other threads

void Scheduler::check(const Generation& generation) const {
  const int vocabulary = engine_.library().model().facts.vocabulary;
  if (generation.prompt.empty()) {
    throw Error(ExitCode::kUsage, "prompt: expected at least one token, got none");
  }
  for (const int32_t token : generation.prompt) {
    if (token >= 0 && token < vocabulary) continue;
    throw Error(ExitCode::kMismatch,
                fmt::format("prompt: expected tokens from 0 to {}, got {}", vocabulary - 1, token));
  }
  const int64_t needed = static_cast<int64_t>(generation.prompt.size()) + generation.max_tokens - 1;
  if (needed > options_.context) {
    throw Error(ExitCode::kOutOfMemory,
                fmt::format("context: expected at most {} tokens, got {} of the prompt and {} to generate",
                            options_.context, generation.prompt.size(), generation.max_tokens));
  }
}

std::shared_ptr<Ticket> Scheduler::submit(Generation generation) {
  check(generation);
  const auto job = std::make_shared<Job>(Job{.generation = std::move(generation)});
  const std::lock_guard lock(mutex_);
  if (failure_) throw *failure_;
  if (stopping_) throw Error(ExitCode::kDevice, "the server is about to end");
  if (std::ssize(queue_) >= options_.max_waiting) {
    metrics_.add(Counter::kRefused);
    throw Busy(queue_.size(), retry_after_s());
  }
  num_unended_ += static_cast<size_t>(job->generation.num_samples);
  for (int i = 0; i < job->generation.num_samples; ++i) {
    auto sequence =
        std::make_unique<Sequence>(Sequence{.job = job, .sample = i, .tokens = job->generation.prompt});
    if (job->generation.make_gate) sequence->gate = job->generation.make_gate();
    queue_.push(job->generation.client, std::move(sequence));
  }
  metrics_.set(Gauge::kWaiting, static_cast<double>(queue_.size()));
  has_news_ = true;
  if (has_free_rows_) interrupted_ = true;
  came_.notify_one();
  return job->ticket;
}

void Scheduler::cancel(const std::shared_ptr<Ticket>& ticket) {
  const std::lock_guard lock(mutex_);
  ticket->cancelled_ = true;
  has_news_ = true;
  interrupted_ = true;
  came_.notify_one();
}

std::optional<Error> Scheduler::failure() const {
  if (!has_failed_) return std::nullopt;
  const std::lock_guard lock(mutex_);
  return failure_;
}

bool Scheduler::is_idle() const {
  const std::lock_guard lock(mutex_);
  return num_unended_ == 0;
}

/// When a place in the queue may be free, if samples go on taking as long as they did.
int Scheduler::retry_after_s() const {
  constexpr double kMostS = 120;
  const double rounds = static_cast<double>(queue_.size()) / max_rows_ / 2;
  return static_cast<int>(std::clamp(std::ceil(rounds * seconds_per_sample_), 1.0, kMostS));
}

void Scheduler::start() {
  thread_ = std::thread(&Scheduler::work, this);
}

void Scheduler::stop() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
    interrupted_ = true;
    came_.notify_one();
  }
  if (thread_.joinable()) thread_.join();
  workers_.stop();
  end_all(SampleEnd::kShutdown, {});
}

// ---- The thread

void Scheduler::work() {
  constexpr unsigned long kSlackNs = 1000;  // else a pause between two looks at a launch takes 50 us longer
  ::prctl(PR_SET_TIMERSLACK, kSlackNs);
  try {
    if (draft_model_) draft_model_->enter_thread();
    engine_.enter_thread();
    for (;;) {
      const bool has_worked = run_once();
      std::unique_lock lock(mutex_);
      if (!has_worked) came_.wait(lock, [this] { return has_news_ || stopping_; });
      if (stopping_) return;
    }
  } catch (const std::exception& error) {
    fail(as_error(error));
  }
}

void Scheduler::fail(const Error& error) {
  {
    const std::lock_guard lock(mutex_);
    failure_ = error;
    has_failed_ = true;
  }
  end_all(SampleEnd::kFailed, error.what());
}

bool Scheduler::run_once() {
  {
    // Whoever has something for this thread says so before it is interrupted: what came before this is seen below.
    const std::lock_guard lock(mutex_);
    interrupted_ = false;
    has_news_ = false;
    if (stopping_) return false;
  }
  drop_cancelled();
  admit();
  find_allowed();
  metrics_.set(Gauge::kRunning, static_cast<double>(running_.size()));
  metrics_.set(Gauge::kFreePages, engine_.tree().num_free_pages());
  metrics_.set(Gauge::kKeptBranches, cache_.num_kept());
  metrics_.add(Counter::kEvicted, static_cast<uint64_t>(cache_.num_evicted() - num_evicted_));
  num_evicted_ = cache_.num_evicted();
  if (running_.empty()) {
    // All that were let in may have ended without a step, such as those whose grammar takes nothing: the next ones come.
    const std::lock_guard lock(mutex_);
    return !queue_.empty();
  }
  ++num_rounds_;
  work_on_rows();
  end_fed();
  finish_ended();
  return true;
}

// ---- Who joins and leaves

/// Lets those in whose turn it is, as long as there are rows and pages for them.
void Scheduler::admit() {
  while (std::ssize(running_) < max_rows_) {
    const std::lock_guard lock(mutex_);
    if (queue_.empty() || !fits(*queue_.front())) break;
    SequencePointer sequence = queue_.pop();
    if (sequence->arrival == 0) sequence->arrival = ++num_arrived_;
    running_.push_back(std::move(sequence));
    metrics_.set(Gauge::kWaiting, static_cast<double>(queue_.size()));
  }
  has_free_rows_ = std::ssize(running_) < max_rows_;
}

/// Whether there are pages for what the sequence has to be fed, beside what the others use and have to be fed.
bool Scheduler::fits(const Sequence& sequence) const {
  if (running_.empty()) return true;
  const auto pages_to_begin = [&](const Sequence& begun) {
    const int num_cached =
        begun.scores() ? 0 : cache_.match_in_use(begun.tokens, begun.generation().cache_scope);
    return ceil_divide(static_cast<int>(begun.tokens.size()) + 1, kKvPageTokens) - num_cached / kKvPageTokens;
  };
  int64_t needed = cache_.num_pages_in_use() + pages_to_begin(sequence) + 1;
  for (const SequencePointer& other : running_) {
    ++needed;  // to go on
    if (other->branch) {
      needed += ceil_divide(other->num_to_feed(), kKvPageTokens);
    } else if (other->job != sequence.job || other->sample == 0) {  // samples of one prompt share it
      needed += pages_to_begin(*other);
    }
  }
  return needed <= engine_.tree().num_pages() && fit_windows(sequence);
}

/// The same of layers with a window, as if none shared any: those of a window, and two that it begins and ends in.
bool Scheduler::fit_windows(const Sequence& sequence) const {
  const KvWindows& windows = engine_.tree().windows();
  if (windows.window == 0) return true;
  const int most = windows.window / kKvPageTokens + 2;
  const auto pages_of = [&](const Sequence& of) {
    return std::min(ceil_divide(static_cast<int>(of.tokens.size()) + 1, kKvPageTokens) + 1, most);
  };
  int64_t needed = pages_of(sequence);
  for (const SequencePointer& other : running_) needed += pages_of(*other);
  return needed <= windows.num_pages;
}

void Scheduler::drop_cancelled() {
  std::vector<SequencePointer> dropped;
  {
    const std::lock_guard lock(mutex_);
    dropped =
        queue_.take_if([](const SequencePointer& waiting) { return waiting->job->ticket->is_cancelled(); });
    metrics_.set(Gauge::kWaiting, static_cast<double>(queue_.size()));
  }
  for (const SequencePointer& sequence : dropped) tell_end(*sequence, SampleEnd::kCancelled);
  for (const SequencePointer& sequence : running_) {
    if (sequence->job->ticket->is_cancelled()) sequence->end = SampleEnd::kCancelled;
  }
  finish_ended();
}

/// Lets those go that have ended; what they were fed stays in the cache.
void Scheduler::finish_ended() {
  for (const SequencePointer& sequence : running_) {
    if (!sequence->end) continue;
    tell(*sequence);
    leave(*sequence);
    const double took_s = seconds_between(sequence->began, Clock::now());
    {
      constexpr double kNewShare = 0.1;
      const std::lock_guard lock(mutex_);
      seconds_per_sample_ += kNewShare * (took_s - seconds_per_sample_);
    }
    tell_end(*sequence, *sequence->end, sequence->failure);
  }
  std::erase_if(running_, [](const SequencePointer& sequence) { return sequence->end.has_value(); });
}

/// Tells what has been chosen. Who wants no more ends with the token of which it was told, whatever came behind it.
void Scheduler::tell(Sequence& sequence) {
  const std::vector<GeneratedToken> untold = std::exchange(sequence.untold, {});
  const Generation& generation = sequence.generation();
  if (!generation.on_token || sequence.end == SampleEnd::kCancelled) return;
  for (const GeneratedToken& token : untold) {
    if (generation.on_token(sequence.sample, token)) continue;
    const bool ends_so = &token == &untold.back() && sequence.end && sequence.end != SampleEnd::kLength;
    if (!ends_so) sequence.end = SampleEnd::kEnough;
    return;
  }
}

void Scheduler::tell_all() {
  for (const SequencePointer& sequence : running_) tell(*sequence);
}

void Scheduler::leave(Sequence& sequence) {
  if (sequence.branch) cache_.release(*sequence.branch);
  sequence.branch.reset();
  sequence.num_fed = 0;
}

void Scheduler::tell_end(const Sequence& sequence, SampleEnd end, const std::string& failure) {
  if (sequence.mask) sequence.mask->give_up();
  if (end == SampleEnd::kCancelled) metrics_.add(Counter::kCancelled);
  metrics_.observe(Metrics::Distribution::kRequestS, seconds_between(sequence.job->submitted, Clock::now()));
  if (sequence.generation().on_end) {
    sequence.generation().on_end(
        sequence.sample, {.end = end, .num_cached = sequence.num_cached.value_or(0), .failure = failure});
  }
  const std::lock_guard lock(mutex_);
  --num_unended_;
}

/// Of those that have pages, the one that came last gives them up and waits again, unless it is the only one.
bool Scheduler::send_back_latest() {
  auto latest = running_.end();
  int num_begun = 0;
  for (auto it = running_.begin(); it != running_.end(); ++it) {
    if (!(*it)->branch) continue;
    ++num_begun;
    if (latest == running_.end() || (*it)->arrival > (*latest)->arrival) latest = it;
  }
  if (num_begun < 2) return false;
  tell(**latest);
  leave(**latest);
  if ((*latest)->end) return true;  // it wants no more: it leaves with those that have ended
  metrics_.add(Counter::kSentBack);
  const std::lock_guard lock(mutex_);
  queue_.push_front(std::move(*latest));
  running_.erase(latest);
  return true;
}

void Scheduler::end_all(SampleEnd end, const std::string& failure) {
  std::vector<SequencePointer> ended = std::move(running_);
  running_.clear();
  {
    const std::lock_guard lock(mutex_);
    std::vector<SequencePointer> waiting = queue_.take_if([](const SequencePointer&) { return true; });
    std::move(waiting.begin(), waiting.end(), std::back_inserter(ended));
    metrics_.set(Gauge::kWaiting, 0);
  }
  metrics_.set(Gauge::kRunning, 0);
  for (const SequencePointer& sequence : ended) {
    tell(*sequence);
    tell_end(*sequence, end, failure);
  }
}

}  // namespace soliton
