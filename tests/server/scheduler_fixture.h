// A scheduler on an emulated kernel, whose rounds the test runs itself.
#pragma once

#include <deque>

#include "kernel/kernel_fixture.h"
#include "runtime/server/scheduler.h"

namespace soliton {

using Tokens = std::vector<int32_t>;

/// A text in which the same tokens come over and over.
inline Tokens refrain(int length) {
  constexpr int kPeriod = 7;
  Tokens tokens;
  for (int i = 0; i < length; ++i) tokens.push_back(3 + i % kPeriod);
  return tokens;
}

/// What has come of one sample.
struct Heard {
  Tokens tokens;
  std::vector<float> logprobs;
  std::optional<SampleSummary> end;
};

class SchedulerUnderTest {
 public:
  SchedulerUnderTest(Engine& engine, SchedulerOptions options,
                     std::unique_ptr<DraftModel> draft_model = nullptr)
      : scheduler_(engine, options, metrics_, std::move(draft_model)) {}

  Scheduler& scheduler() { return scheduler_; }
  const Metrics& metrics() const { return metrics_; }

  /// Index of the first sample in heard().
  size_t ask(Generation generation) {
    const size_t first = heard_.size();
    const auto on_token = generation.on_token;
    heard_.resize(first + static_cast<size_t>(generation.num_samples));
    generation.on_token = [this, first, on_token](int sample, const GeneratedToken& token) {
      Heard& heard = heard_[first + static_cast<size_t>(sample)];
      EXPECT_FALSE(heard.end);
      heard.tokens.push_back(token.id);
      if (token.logprob) heard.logprobs.push_back(*token.logprob);
      return !on_token || on_token(sample, token);
    };
    generation.on_end = [this, first](int sample, const SampleSummary& summary) {
      Heard& heard = heard_[first + static_cast<size_t>(sample)];
      EXPECT_FALSE(heard.end);
      heard.end = summary;
    };
    tickets_.push_back(scheduler_.submit(std::move(generation)));
    return first;
  }
  const Heard& heard(size_t index) const { return heard_.at(index); }
  const std::shared_ptr<Ticket>& last_ticket() const { return tickets_.back(); }

  void run(int rounds) {
    for (int i = 0; i < rounds; ++i) scheduler_.run_once();
  }
  void run_to_end() {
    while (scheduler_.run_once()) {
    }
  }

  /// The answer of a request that nobody is beside.
  Heard alone(const Generation& generation) {
    const size_t index = ask(generation);
    run_to_end();
    return heard(index);
  }

 private:
  Metrics metrics_;
  std::deque<Heard> heard_;
  std::vector<std::shared_ptr<Ticket>> tickets_;
  Scheduler scheduler_;  // tells of what it ends with
};

// Of one row and of eight: there activations have 16 bits, and tokens seldom depend on the kernel.
inline constexpr const char* kSchedulerKernel = "micro-2-all";
inline constexpr int kSchedulerContext = 320;
inline constexpr int64_t kManyPages = 60 * kKvPageTokens;

class SchedulerTest : public testing::Test {
 protected:
  explicit SchedulerTest(int64_t pool_tokens = kManyPages, const char* kernel = kSchedulerKernel)
      : kernel_(kernel, kSchedulerContext, pool_tokens) {}

  Engine& engine() { return kernel_.engine(); }
  Tokens prompt(int length) const { return kernel_.prompt(length); }
  SchedulerUnderTest with(SchedulerOptions options) {
    options.context = kSchedulerContext;
    if (options.max_rows == 0) options.max_rows = 8;
    return SchedulerUnderTest(engine(), options);
  }
  /// What the kernel of one row says by itself.
  Tokens greedy(const Tokens& prompt, int max_tokens) {
    engine().reset_tree();
    return engine().decode({.tokens = prompt, .max_tokens = max_tokens}).tokens;
  }

  KernelUnderTest kernel_;
};

}  // namespace soliton
