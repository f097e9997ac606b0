// Many requests on one engine: each sample is a branch of one forest, and all of them are decoded together, a row each.
// One thread owns the engine. Between two launches it lets those who wait join and the finished leave:
//
//   submit() -> queue -> feeding: the prompt, from what the cache has of it -> decoding -> ended, kept in the cache
//                  ^------------------- sent back when pages run out ---------------'
//
// A launch decodes several tokens of every row, and ends early, behind the step that it is at, when something else is to
// be done: a row has ended, somebody has come for whom there is a row, or has gone. While prompts are fed, steps hold
// chunks of them beside the rows that decode, or alternate with theirs where rows are few. The step that ends a prompt
// chooses the first token behind it too. Where pages run out, the
// latest that came is sent back to the head of the queue; its tokens are fed again later, and it goes on as it would
// have. What a launch chose last is told while the next one runs, which waits for nothing but what it needs. Who follows
// a grammar has a row when the tokens that may be next have been found, by other threads; until then the others go on.
// Where a grammar begins to hold within a launch, what that chose behind is forgotten. Where tokens are drafted, a step has
// rows for these too, and keeps those that the model itself would have chosen.
//
//   scheduler.cc          threads, queue, who joins, leaves and is sent back
//   scheduler_drafts.cc   which tokens are drafted, and which of them are kept
//   scheduler_masks.cc    which tokens may be next
//   scheduler_prompts.cc  what is fed of which prompt, and how likely its tokens are
//   scheduler_step.cc     what a launch feeds and decodes
#pragma once

#include <chrono>
#include <condition_variable>
#include <deque>
#include <limits>
#include <map>
#include <mutex>
#include <optional>
#include <thread>

#include "models/error.h"
#include "runtime/answer/draft/draft_model.h"
#include "runtime/answer/draft/prompt_lookup.h"
#include "runtime/answer/feed_prompt.h"
#include "runtime/answer/forest/prefix_cache.h"
#include "runtime/engine/engine.h"
#include "runtime/server/fair_queue.h"
#include "runtime/server/generation.h"
#include "runtime/server/metrics.h"
#include "runtime/server/step_pace.h"

namespace soliton {

/// The queue is full.
class Busy : public Error {
 public:
  Busy(size_t num_waiting, int retry_after_s);
  /// When there may be a place, by how long others have taken.
  int retry_after_s() const { return retry_after_s_; }

 private:
  int retry_after_s_;
};

struct SchedulerOptions {
  int context = 0;   // tokens of a sample at most, prompt and answer but for its last token; the engine's
  int max_rows = 0;  // decoded together; 0: as many as the library has kernels for
  int max_waiting = 512;   // samples
  int launch_tokens = 32;  // of each row in one launch, at most
  int num_drafts = 0;      // for a sample in one step, at most; 0: none
  /// Between two tokens of a sample while prompts of others are fed, as far as steps can be so short; 0: any.
  std::chrono::milliseconds max_gap{0};
};

class Scheduler {
 public:
  /// The engine's tree is the scheduler's from now on. Its pool must hold a context and a page. With num_drafts tokens are
  /// drafted by `draft_model`, for a sample that is decoded alone, or without one from what each text has already.
  Scheduler(Engine& engine, const SchedulerOptions& options, Metrics& metrics,
            std::unique_ptr<DraftModel> draft_model = nullptr);
  Scheduler(const Scheduler&) = delete;
  Scheduler& operator=(const Scheduler&) = delete;
  ~Scheduler() { stop(); }

  /// Begins to work in a thread of its own. Tests call run_once() instead.
  void start();
  /// Ends all samples (kShutdown) and the thread.
  void stop();

  /// Any thread. Throws Busy; Error: kOutOfMemory if prompt and tokens do not fit the context, kUsage for an empty
  /// prompt, kMismatch for tokens that are none, kDevice once the scheduler has failed.
  std::shared_ptr<Ticket> submit(Generation generation);
  /// Any thread. What has not ended yet ends (kCancelled).
  void cancel(const std::shared_ptr<Ticket>& ticket);
  /// Why nothing can be decoded any more; nothing as long as something can.
  std::optional<Error> failure() const;
  /// Any thread. Whether nothing is waiting or under way.
  bool is_idle() const;

  /// One launch or round of them. Returns false if there is nothing to do.
  bool run_once();

  int max_rows() const { return max_rows_; }
  int context() const { return options_.context; }
  /// By which steps are planned: for tests, which have no card. Not while the scheduler's own thread works.
  StepPace& step_pace() { return step_pace_; }

 private:
  using Clock = std::chrono::steady_clock;

  /// Of a token drafted from the text over one that the model chooses. Looking up costs nothing, but a step of several rows
  /// takes a sixth longer than one of a single row, and of 4-bit layers two thirds.
  static constexpr double kLookupCost = 0.3;

  /// A Generation with those who wait for it.
  struct Job {
    Generation generation;
    std::shared_ptr<Ticket> ticket = std::make_shared<Ticket>();
    Clock::time_point submitted = Clock::now();
  };

  /// Of a mask that is being found; guarded by mutex_.
  struct MaskNews {
    bool has_come = false;
    bool is_missed = false;  // by a step that is at work
  };

  /// One sample.
  struct Sequence {
    std::shared_ptr<Job> job;
    int sample = 0;
    std::vector<int32_t> tokens =
        {};  // prompt and answer so far; the last one is never fed before it is decoded
    int num_generated = 0;
    std::optional<Branch> branch = {};  // nothing: not begun, or sent back
    int num_fed = 0;
    size_t num_scored = 1;  // tokens of the prompt that on_prompt_token has been told of, and the first
    std::optional<int> num_cached = {};  // of the prompt, when it was begun first
    uint64_t arrival = 0;                // the order in which they joined
    std::optional<SampleEnd> end = {};
    std::string failure = {};                  // see SampleSummary
    std::unique_ptr<GrammarGate> gate = {};    // as long as it is closed
    bool goes_free = false;                    // its gate has found no grammar
    std::optional<size_t> num_kept = {};       // of tokens, where a gate has opened within a launch
    std::shared_ptr<AnswerMask> mask = {};     // where a grammar holds
    std::shared_ptr<MaskNews> mask_news = {};  // as long as it is being found
    Clock::time_point mask_wanted = {};        // since then
    std::span<const uint32_t> allowed = {};    // tokens that may be next, once they are known
    std::vector<GeneratedToken> untold = {};   // the latest
    std::map<int32_t, int> counts = {};        // of the answer's tokens, where its logits are adjusted
    TokenDraft draft = {};                     // for the next step; without tokens: none
    size_t first_row = 0;                      // of the draft in that step
    int64_t plain_until = 0;                   // there are so many tokens nothing is drafted
    PromptLookup lookup = {};                  // where drafts come from the text
    size_t num_looked_up = 0;                  // tokens up to the last that it knows
    DraftLength draft_length = DraftLength(kLookupCost);
    Clock::time_point began = Clock::now();
    Clock::time_point last_token = {};

    const Generation& generation() const { return job->generation; }
    int num_to_feed() const { return static_cast<int>(tokens.size()) - 1 - num_fed; }
    bool is_fed() const { return branch && num_to_feed() == 0; }
    bool decodes() const { return is_fed() && mask_news == nullptr && generation().max_tokens > 0; }
    bool chooses_at_its_end() const;
    /// Whether its tokens are the best logits' and nothing else is wanted of them: so steps of more rows than draw may end it.
    bool is_plain() const;
    /// Whether a step's logits come to the host for its sake.
    bool wants_logits() const { return generation().num_best > 0 || generation().adjustment != nullptr; }
    bool scores() const {
      return sample == 0 && generation().on_prompt_token && num_scored < generation().prompt.size();
    }
    RowSampling draw() const;
    std::vector<int32_t> tokens_up_to(int32_t draft_row) const;
  };
  using SequencePointer = std::unique_ptr<Sequence>;

  /// Tokens of a prompt that are fed in one step.
  struct Chunk {
    Sequence* sequence = nullptr;
    int num_tokens = 0;
    bool ends = false;  // with the last token of the text: the step chooses what follows
  };

  /// A row of a step that is fed a token of a prompt whose next one is to be told as likely as it was.
  struct ScoredRow {
    Sequence* sequence = nullptr;
    size_t next = 0;  // which token of the prompt that is
    size_t row = 0;
  };

  /// What a step is given: a row's token, and where some row needs it, how each is drawn.
  struct StepInput {
    std::map<Branch, Chunk> by_branch;  // without tokens: of a sequence that decodes, or has no rows
    bool chooses = false;               // in some row
    bool scores = false;
    bool draws = false;
    bool penalises = false;
    bool forbids = false;
    bool wants_logits = false;
    bool wants_logprobs = false;
    uint32_t wanted_bands = 0;  // of rows whose choices are
    std::vector<int32_t> stop_tokens;
    std::vector<int32_t> tokens;  // [rows], as the next three, or empty
    std::vector<RowSampling> sampling;
    std::vector<std::vector<int32_t>> past;
    std::vector<std::span<const uint32_t>> allowed;
    std::vector<ScoredRow> scored;
  };

  // scheduler.cc
  void work();
  void admit();
  bool fits(const Sequence& sequence) const;
  bool fit_windows(const Sequence& sequence) const;
  void drop_cancelled();
  void finish_ended();
  void tell(Sequence& sequence);
  void tell_all();
  void leave(Sequence& sequence);
  void tell_end(const Sequence& sequence, SampleEnd end, const std::string& failure = {});
  bool send_back_latest();
  void end_all(SampleEnd end, const std::string& failure);
  void fail(const Error& error);
  int retry_after_s() const;
  void check(const Generation& generation) const;

  // scheduler_drafts.cc
  int draft();
  int draft_from_text(Sequence& sequence, int max_drafts);
  int draft_by_model(Sequence& sequence, int max_drafts);
  void drop_drafts();
  void take_drafts(const TreeResult& result);

  // scheduler_masks.cc
  void find_allowed();
  void want_mask(Sequence& sequence, std::optional<int32_t> token);
  void pass_gate(Sequence& sequence, int32_t token);
  void cut_back(Sequence& sequence);
  void wait_for_masks();
  void take_mask(Sequence& sequence);

  // scheduler_prompts.cc
  int rows_of_step() const;
  int rows_of_prompts() const;
  int rows_within_gap() const;
  std::vector<Chunk> next_chunks();
  Sequence* next_to_feed(std::span<const Chunk> but);
  bool waits_for_prefix(const Sequence& sequence) const;
  void begin(Sequence& sequence);
  void feed(Sequence& sequence, int num_tokens);
  void calibrate();
  void note_time(int rows, std::span<const Chunk> chunks, double seconds);
  void feed_and_decode(std::span<const Chunk> chunks, bool decodes);
  void score(const TreeResult& result, std::span<const ScoredRow> rows);
  void tell_fed(const Sequence& sequence) const;
  void end_fed();

  // scheduler_step.cc
  void work_on_rows();
  void decode(int max_steps);
  int reserve_steps(int max_steps);
  StepInput lay_out(std::span<const Chunk> chunks, int num_steps);
  void add_row(const SnapshotRow& row, StepInput& input);
  void step(std::span<const Chunk> chunks, int num_steps);
  bool take(std::span<const int32_t> chosen);
  std::vector<GeneratedToken> tokens_of_rows(std::span<const int32_t> chosen);
  GeneratedToken token_of_row(size_t row, int32_t chosen) const;
  void take(Sequence& sequence, GeneratedToken token);
  void note(const TreeResult& result, std::span<const Chunk> chunks);
  bool has_ended() const;
  bool decodes_beside_prompts() const;
  bool takes_part(const Sequence& sequence) const;
  int num_decoding() const;

  /// Those that arrived from the first on, to before the end.
  struct Arrivals {
    uint64_t first = 0;
    uint64_t end = 0;
  };
  static constexpr Arrivals kAllArrivals = {0, std::numeric_limits<uint64_t>::max()};

  Engine& engine_;
  SchedulerOptions options_;
  Metrics& metrics_;
  int max_rows_;
  PrefixCache cache_;
  std::unique_ptr<DraftModel> draft_model_;
  uint64_t drafted_for_ = 0;              // the arrival of the sample whose text the draft model has,
  size_t num_told_of_it_ = 0;             // how many tokens of that,
  std::string drafted_in_scope_ = {};     // and its cache_scope
  std::vector<SequencePointer> running_;  // in the order in which they joined
  std::vector<Sequence*> rows_;           // of the step at work; null: of a prompt's chunk, or drafted
  int steps_left_ = 0;                    // of the launch at work
  uint64_t num_taken_ = 0;                // tokens, of the same
  std::vector<float> logits_;  // of that step, [rows][vocabulary], where some row wants its best tokens
  uint64_t num_arrived_ = 0;
  uint64_t num_rounds_ = 0;
  int64_t num_evicted_ = 0;         // told to metrics_
  Clock::duration step_time_ = {};  // of the last launch
  FeedPace feed_pace_;              // of a prompt for which nobody waits
  StepPace step_pace_;              // of those beside others
  double decoding_s_ = 0;           // that the last step took which fed no prompt
  Arrivals part_ = kAllArrivals;    // who takes part in the steps of those that decode

  std::atomic<bool> interrupted_ = false;  // a launch ends soon: somebody has come or gone
  std::atomic<bool> has_free_rows_ = true;
  std::atomic<bool> has_failed_ = false;  // so that whoever asks need not wait for the mutex
  mutable std::mutex mutex_;
  std::condition_variable came_;
  FairQueue<SequencePointer> queue_;  // guarded by mutex_, as all below
  bool has_news_ = false;
  bool stopping_ = false;
  size_t num_unended_ = 0;  // samples
  std::optional<Error> failure_;
  double seconds_per_sample_ = 1;  // a running mean
  std::thread thread_;
  GrammarWorkers workers_;  // which call what is above
};

}  // namespace soliton
