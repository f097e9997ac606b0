#include "runtime/bench/drafts.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "runtime/answer/draft/draft_model.h"
#include "runtime/answer/speculate.h"
#include "runtime/answer/timing.h"
#include "runtime/bench/measure.h"
#include "runtime/engine/common_tokens.h"

namespace soliton {
namespace {

constexpr int kWarmTokens = 16;

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

int prompt_tokens(const BenchOptions& options) {
  return std::max(1, options.prompts.front());
}

/// Drafts nothing: the kernel for several rows then chooses tokens one by one.
class NoDrafts : public Drafter {
 public:
  void begin(std::span<const int32_t> context, const Sampling& /*sampling*/) override { append(context); }
  void append(std::span<const int32_t> tokens) override { last_ = tokens.empty() ? last_ : tokens.back(); }
  Proposal propose(int /*max_drafts*/) override { return {.draft = {.tokens = {last_}, .parents = {-1}}}; }

 private:
  int32_t last_ = 0;
};

/// Tokens a second behind those of the first step.
double rate_of(size_t num_tokens, size_t of_first_step, std::span<const uint32_t> times_ns) {
  return static_cast<double>(num_tokens - of_first_step) / generation_seconds(times_ns);
}

}  // namespace

int draft_context(const BenchOptions& options) {
  if (options.draft_kernel.empty()) return 0;
  // Up to the last token as many may be drafted as anywhere.
  return prompt_tokens(options) + std::max(options.tokens.front(), kWarmTokens) + options.max_drafts;
}

DraftMeasurement measure_drafts(Engine& engine, const BenchOptions& options) {
  auto drafting =
      std::make_unique<Engine>(KernelLibrary::open(options.draft_kernel),
                               EngineOptions{.context = draft_context(options), .device = options.device});
  const uint64_t seed = options.draft_seed.value_or(options.seed + 1);
  drafting->load_random(seed);
  DraftMeasurement drafts{.draft_model = drafting->library().model().name,
                          .draft_seed = seed,
                          .max_drafts = options.max_drafts,
                          .prompt_tokens = prompt_tokens(options),
                          .tokens = options.tokens.front()};
  const int vocabulary = engine.library().model().facts.vocabulary;
  const int draft_vocabulary = drafting->library().model().facts.vocabulary;
  const std::vector<int32_t> prompt =
      random_prompt(drafts.prompt_tokens, std::min(vocabulary, draft_vocabulary), options.seed);
  for (Engine* warmed : {&engine, drafting.get()}) {
    warmed->reset_tree();
    warmed->decode({.tokens = prompt, .max_tokens = kWarmTokens});
    warmed->reset_tree();
  }
  const double cost =
      static_cast<double>(drafting->needed_bytes(0)) / static_cast<double>(engine.needed_bytes(0));
  DraftModel drafter(std::move(drafting), draft_context(options), vocabulary, cost);
  const SpeculationRequest request{
      .prompt = prompt, .max_tokens = drafts.tokens, .sampling = {.num_drafts = drafts.max_drafts}};
  NoDrafts no_drafts;
  const std::vector<int32_t> one_by_one = decode_speculatively(engine, no_drafts, request).tokens;
  engine.reset_tree();
  for (int i = 0; i < options.repeats; ++i) {
    const DecodeResult plain = engine.decode({.tokens = prompt, .max_tokens = drafts.tokens});
    drafts.plain_rates.push_back(rate_of(plain.tokens.size(), 1, plain.times_ns));
    engine.reset_tree();
    const SpeculationResult drafted = decode_speculatively(engine, drafter, request);
    drafts.rates.push_back(
        rate_of(drafted.tokens.size(), static_cast<size_t>(drafted.step_tokens[0]), drafted.times_ns));
    drafts.tokens_per_step.push_back(drafted.tokens_per_step());
    drafts.equal_plain = num_common_tokens(plain.tokens, drafted.tokens);
    drafts.equal_one_by_one = num_common_tokens(one_by_one, drafted.tokens);
    engine.reset_tree();
  }
  return drafts;
}

std::string draft_table(const DraftMeasurement& drafts) {
  std::string text =
      "| draft model | seed | t/s plain | t/s with drafts | of plain | tokens a step | equal to one by one "
      "|\n";
  text += "| --- | --- | --- | --- | --- | --- | --- |\n";
  const double plain = median(drafts.plain_rates);
  const double rate = median(drafts.rates);
  return text + fmt::format("| {} | {} | {:.1f} | {:.1f} | {:.2f} | {:.2f} | {} of {} |\n",
                            drafts.draft_model, drafts.draft_seed, plain, rate, rate / plain,
                            median(drafts.tokens_per_step), drafts.equal_one_by_one, drafts.tokens);
}

nlohmann::ordered_json as_json(const DraftMeasurement& drafts) {
  return {{"draft_model", drafts.draft_model},
          {"draft_weights", fmt::format("random, seed {}", drafts.draft_seed)},
          {"max_drafts", drafts.max_drafts},
          {"prompt_tokens", drafts.prompt_tokens},
          {"tokens", drafts.tokens},
          {"plain_tokens_per_s", drafts.plain_rates},
          {"tokens_per_s", drafts.rates},
          {"of_plain", median(drafts.rates) / median(drafts.plain_rates)},
          {"tokens_per_step", drafts.tokens_per_step},
          {"equal_plain", drafts.equal_plain},
          {"equal_one_by_one", drafts.equal_one_by_one}};
}

}  // namespace soliton
