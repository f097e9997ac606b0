#include "runtime/bench/edge.h"

#include <fmt/format.h>
#include <sys/resource.h>

#include <algorithm>

#include "layout/page.h"
#include "models/error.h"
#include "models/model_tables.h"
#include "runtime/engine/kv_pool.h"

namespace soliton {
namespace {

constexpr double kEnergySeconds = 4;  // the cards' counters move some ten times a second

/// Keeps the numbers that fit; of the others `why` says why they do not.
template <class Fits, class Why>
void keep_fitting(std::vector<int>& numbers, std::vector<std::string>& left_out, const Fits& fits,
                  const Why& why) {
  for (const int number : numbers) {
    if (!fits(number)) left_out.push_back(why(number));
  }
  std::erase_if(numbers, [&](int number) { return !fits(number); });
}

EdgePrompt measure_edge_prompt(Engine& engine, const EdgeTest& test, int count) {
  const std::vector<int32_t> prompt =
      random_prompt(count, engine.library().model().facts.vocabulary, test.seed);
  time_prompt_us(engine, prompt);  // warms up
  std::vector<double> ms;
  for (int i = 0; i < test.repeats; ++i) ms.push_back(time_prompt_us(engine, prompt) * 1e-3);
  std::sort(ms.begin(), ms.end());
  return {.tokens = count, .first_token_ms = ms[ms.size() / 2], .worst_ms = ms.back()};
}

/// Decodes for kEnergySeconds: the times of tokens are taken by then, and a short run would tell little.
void measure_energy(Engine& engine, const EdgeTest& test, Sensors& sensors, EdgeContext& context) {
  const GenerationTest run{.tokens = test.tokens, .depth = context.tokens, .repeats = 1, .seed = test.seed};
  sensors.begin_energy();
  do {
    context.energy_tokens += generate_once(engine, run);
    context.energy = sensors.energy();
  } while (context.energy && context.energy->seconds < kEnergySeconds);
}

int64_t host_peak_bytes() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return int64_t{usage.ru_maxrss} * 1024;
}

}  // namespace

EdgeTest usual_edge_test(EdgeTest asked, const ModelFacts& facts, bool emulated) {
  if (asked.prompts.empty()) asked.prompts = emulated ? std::vector{4, 16} : std::vector{32, 512, 2048};
  if (asked.contexts.empty()) asked.contexts = emulated ? std::vector{8, 32} : std::vector{128, 2048};
  if (asked.tokens == 0) asked.tokens = emulated ? 2 : 128;
  if (asked.repeats == 0) asked.repeats = emulated ? 1 : 5;
  const auto has_room = [&](int64_t tokens) { return tokens <= facts.max_context; };
  keep_fitting(
      asked.prompts, asked.left_out, [&](int prompt) { return has_room(prompt); },
      [&](int prompt) {
        return fmt::format("a prompt of {} tokens: the model takes {}", prompt, facts.max_context);
      });
  keep_fitting(
      asked.contexts, asked.left_out,
      [&](int context) { return has_room(int64_t{context} + asked.tokens + 1); },
      [&](int context) {
        return fmt::format("{} tokens at context {}: the model takes {} in all", asked.tokens, context,
                           facts.max_context);
      });
  if (asked.prompts.empty() && asked.contexts.empty()) {
    throw Error(
        ExitCode::kOutOfMemory,
        fmt::format("--edge: expected a test that fits the model, left out {}", asked.left_out.front()));
  }
  return asked;
}

int edge_context(const EdgeTest& test) {
  int tokens = 1;
  for (const int prompt : test.prompts) tokens = std::max(tokens, prompt);
  for (const int context : test.contexts) tokens = std::max(tokens, context + test.tokens + 1);
  return tokens;
}

std::optional<double> EdgeContext::tokens_per_joule() const {
  if (!energy || energy->joules <= 0) return std::nullopt;
  return static_cast<double>(energy_tokens) / energy->joules;
}

void measure_edge(Engine& engine, EdgeReport& report, TestProgress& progress) {
  const EdgeTest& test = report.test;
  std::optional<Sensors> sensors;
  if (report.is_emulated()) {
    report.no_sensors = "the kernel is emulated";
  } else {
    try {
      sensors.emplace(Nvml(report.device_index));
    } catch (const Error& absent) {
      report.no_sensors = absent.what();
    }
  }
  for (const int prompt : test.prompts) {
    progress.begin(fmt::format("a prompt of {} tokens", prompt));
    report.prompts.push_back(measure_edge_prompt(engine, test, prompt));
  }
  engine.randomise_cache(test.seed);
  for (const int tokens : test.contexts) {
    EdgeContext& context = report.contexts.emplace_back(EdgeContext{.tokens = tokens});
    const GenerationTest run{
        .tokens = test.tokens, .depth = context.tokens, .repeats = test.repeats, .seed = test.seed};
    progress.begin(fmt::format("{} tokens at context {}", test.tokens, tokens));
    context.row = measure_generation(engine, run, report.bandwidth.best(),
                                     [&](int done) { progress.repeat(done, test.repeats); });
    if (sensors) measure_energy(engine, test, *sensors, context);
  }
  progress.clear();
  if (sensors) report.sensors = sensors->summary();
  const ModelDescriptor& model = engine.library().model();
  report.memory.weights = model.weight_bytes + model_tables(model.facts).bytes();
  report.memory.cache = engine.cache_bytes();
  report.memory.host_peak = host_peak_bytes();
}

}  // namespace soliton
