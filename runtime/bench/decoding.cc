#include "runtime/bench/decoding.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <nlohmann/json.hpp>

#include "layout/page.h"
#include "models/error.h"
#include "models/model_tables.h"
#include "models/printing.h"
#include "runtime/bench/calibrate.h"
#include "runtime/bench/prompt_work.h"
#include "runtime/engine/kv_pool.h"

namespace soliton {
namespace {

constexpr Sampling kTimedSampling{.temperature = 1};  // but for what flags say

int most(const std::vector<int>& list) {
  return *std::max_element(list.begin(), list.end());
}

/// A prompt's time runs from the launch, as the host sees it, to its last token's output.
PromptRow measure_prompt(Engine& engine, const BenchOptions& options, int count, TestProgress& progress) {
  PromptRow row{.test = fmt::format("pp{}", count),
                .flops = prompt_flops(engine.library().model().facts, count)};
  progress.begin(row.test);
  const std::vector<int32_t> prompt =
      random_prompt(count, engine.library().model().facts.vocabulary, options.seed);
  time_prompt_us(engine, prompt);  // warms up
  std::vector<double> ms;
  std::vector<double> rates;
  for (int i = 0; i < options.repeats; ++i) {
    progress.repeat(i, options.repeats);
    ms.push_back(time_prompt_us(engine, prompt) * 1e-3);
    rates.push_back(count / (ms.back() * 1e-3));
  }
  std::sort(ms.begin(), ms.end());
  const Rates summary = summarise_rates(rates);
  row.rate = summary.mean;
  row.deviation = summary.deviation;
  row.p50_ms = ms[(ms.size() - 1) / 2];
  row.max_ms = ms.back();
  return row;
}

std::vector<PromptRow> measure_prompts(Engine& engine, const BenchOptions& options, TestProgress& progress) {
  std::vector<PromptRow> rows;
  for (const int prompt : options.prompts) {
    if (prompt > 0) rows.push_back(measure_prompt(engine, options, prompt, progress));
  }
  return rows;
}

int64_t pool_tokens_of(Engine& engine) {
  return int64_t{engine.tree().num_pages()} * kKvPageTokens;
}

/// Tests of generation, with sampling beside greedily where that is asked for.
std::vector<GenerationTest> generation_tests(const BenchOptions& options) {
  std::vector<GenerationTest> tests;
  for (const int depth : options.depths) {
    for (const int tokens : options.tokens) {
      if (tokens == 0) continue;
      tests.push_back({.tokens = tokens, .depth = depth, .repeats = options.repeats, .seed = options.seed});
      if (!options.sampling.any()) continue;
      tests.push_back(tests.back());
      tests.back().sampling = options.sampling.over(kTimedSampling);
    }
  }
  return tests;
}

std::vector<Row> measure_rows(Engine& engine, const BenchOptions& options, double ceiling,
                              TestProgress& progress) {
  std::vector<Row> rows;
  for (const GenerationTest& test : generation_tests(options)) {
    progress.begin(name_of(test));
    rows.push_back(
        measure_generation(engine, test, ceiling, [&](int done) { progress.repeat(done, test.repeats); }));
  }
  return rows;
}

TreeTest tree_test(const BenchOptions& options) {
  return {.num_steps = options.tokens.front(), .repeats = options.repeats, .seed = options.seed};
}

std::vector<TreeMeasurement> measure_trees(Engine& engine, const BenchOptions& options, double ceiling,
                                           TestProgress& progress) {
  std::vector<TreeMeasurement> rows;
  for (const TreeSpec& spec : options.trees) {
    progress.begin(spec.name);
    if (num_rows(spec) > engine.max_rows()) {
      progress.clear();
      say("{}: left out: {} rows, the kernels take {}", spec.name, num_rows(spec), engine.max_rows());
      continue;
    }
    rows.push_back(measure_tree(engine, spec, tree_test(options), ceiling));
  }
  return rows;
}

nlohmann::ordered_json tree_json(const TreeMeasurement& row) {
  return {{"test", row.test},
          {"rows", row.rows},
          {"kernel_rows", row.kernel_rows},
          {"unique_tokens", row.unique_tokens},
          {"path_tokens", row.path_tokens},
          {"longest_path", row.longest_path},
          {"step_us_p50", row.step_us},
          {"predicted_us", row.predicted_us},
          {"floor_us", row.floor_us},
          {"without_cache_us_p50", row.without_cache_us},
          {"attention_of_read_bandwidth", row.attention_of_ceiling},
          {"page_reads_over_unique", row.page_reads},
          {"unshared_us_p50", row.unshared_us},
          {"one_row_us_p50", row.one_row_us}};
}

nlohmann::ordered_json sampling_json(const Sampling& sampling) {
  return {{"temperature", sampling.temperature},
          {"top_k", sampling.top_k},
          {"top_p", sampling.top_p},
          {"min_p", sampling.min_p},
          {"repeat_penalty", sampling.repeat_penalty},
          {"logprobs", sampling.logprobs}};
}

std::string prompt_table(const std::vector<PromptRow>& rows) {
  constexpr double kTera = 1e12;
  std::string text = "| prompt | t/s | p50 ms | max ms | TFLOP/s |\n| --- | --- | --- | --- | --- |\n";
  for (const PromptRow& row : rows) {
    text += fmt::format("| {} | {:.2f} ± {:.2f} | {:.2f} | {:.2f} | {:.4g} |\n", row.test, row.rate,
                        row.deviation, row.p50_ms, row.max_ms, row.flops_rate() / kTera);
  }
  return text;
}

std::string generation_table(const std::vector<Row>& rows, double ceiling) {
  std::string text = "| test | t/s | p50 us | p90 us | p99 us | max us | GB a token | TB/s | of S |\n";
  text += "| --- | --- | --- | --- | --- | --- | --- | --- | --- |\n";
  for (const Row& row : rows) {
    text += fmt::format(
        "| {} | {:.2f} ± {:.2f} | {:.1f} | {:.1f} | {:.1f} | {:.1f} | {:.3f} | {:.3f} | {} |\n", row.test,
        row.rate, row.deviation, row.p50_us, row.p90_us, row.p99_us, row.max_us, row.bytes * 1e-9,
        row.bandwidth * 1e-12, ceiling > 0 ? fmt::format("{:.1f}%", row.of_ceiling * 100) : "-");
  }
  return text;
}

}  // namespace

int needed_context(const BenchOptions& options, const ModelFacts& facts) {
  constexpr int kTimelineTokens = 2;  // at least, of which it is of one
  const int64_t tokens = std::max(most(options.tokens), options.timeline.empty() ? 0 : kTimelineTokens);
  const int64_t depth = most(options.depths);
  const int64_t prompt = most(options.prompts);
  int64_t generation = std::max<int64_t>(tokens + depth + 1, draft_context(options));
  if (options.calibrate)
    generation = std::max<int64_t>(generation, std::min(facts.max_context - 1, kCalibrationContext));
  for (const TreeSpec& spec : options.trees)
    generation = std::max<int64_t>(generation, longest_path(spec) + 2 * tokens + 2);
  if (prompt > facts.max_context) {
    throw Error(
        ExitCode::kOutOfMemory,
        fmt::format("--n-prompt: expected at most the model's {} tokens, got {}", facts.max_context, prompt));
  }
  if (generation > facts.max_context) {
    throw Error(ExitCode::kOutOfMemory,
                fmt::format("--n-depth and --n-gen: expected less than the model's {} tokens, got {} and {}",
                            facts.max_context, depth, tokens));
  }
  return static_cast<int>(std::max(generation, prompt));
}

int64_t needed_pool(const BenchOptions& options, const KernelLibrary& library) {
  if (options.trees.empty() && !options.calibrate) return 0;
  const ModelDescriptor& model = library.model();
  constexpr double kMost = 0.9;  // of the memory that the weights leave
  const double free_bytes = static_cast<double>(library.device().free_bytes);
  const double weight_bytes = static_cast<double>(model.weight_bytes + model_tables(model.facts).bytes());
  const double page_bytes = static_cast<double>(library.card_kv().page_offset(1, 0, 0));
  const int64_t limit =
      free_bytes == 0
          ? 1 << 16
          : static_cast<int64_t>((free_bytes - weight_bytes) * kMost / page_bytes) * kKvPageTokens;
  int64_t tokens = options.calibrate ? std::min(limit, kCalibrationTokens) : 0;
  for (const TreeSpec& spec : options.trees) {
    const int64_t apart = pool_tokens(unshared(spec), options.tokens.front());
    tokens = std::max({tokens, pool_tokens(spec, options.tokens.front()), apart <= limit ? apart : 0});
  }
  return tokens;
}

int count_tests(const BenchOptions& options, Engine& engine) {
  const auto num_prompts =
      std::count_if(options.prompts.begin(), options.prompts.end(), [](int prompt) { return prompt > 0; });
  const size_t others = generation_tests(options).size() + options.trees.size();
  const int calibrated =
      options.calibrate ? num_calibration_tests(engine.library(), engine.context(), pool_tokens_of(engine))
                        : 0;
  return calibrated + static_cast<int>(num_prompts) + static_cast<int>(others) +
         (options.draft_kernel.empty() ? 0 : 1);
}

DecodingResults measure_decoding(Engine& engine, const BenchOptions& options, const ReadBandwidth& bandwidth,
                                 TestProgress& progress) {
  DecodingResults results{.bandwidth = bandwidth};
  if (options.calibrate)
    results.calibration = calibrate(engine, pool_tokens_of(engine), options.repeats, options.seed, progress);
  results.prompts = measure_prompts(engine, options, progress);
  results.rows = measure_rows(engine, options, bandwidth.best(), progress);
  results.trees = measure_trees(engine, options, bandwidth.best(), progress);
  if (!options.draft_kernel.empty()) {
    progress.begin("drafts");
    results.drafts = measure_drafts(engine, options);
  }
  progress.clear();
  return results;
}

Timeline record_timeline(Engine& engine, const BenchOptions& options) {
  const auto tree = std::find_if(options.trees.begin(), options.trees.end(),
                                 [&](const TreeSpec& spec) { return num_rows(spec) <= engine.max_rows(); });
  if (tree != options.trees.end()) return record_timeline(engine, *tree, tree_test(options));
  const int prompt_tokens = options.prompts.front();
  if (prompt_tokens > 1 && engine.max_rows() > 1) {
    const int rows = std::min(prompt_tokens, engine.max_prompt_rows());
    const std::vector<int32_t> tokens =
        random_prompt(prompt_tokens, engine.library().model().facts.vocabulary, options.seed);
    std::vector<PhaseRecord> records;
    for (int i = 0; i < 2; ++i) {  // the first brings what the second measures to the card's caches
      engine.set_position(prompt_tokens - rows);
      records = engine.record_step(std::span(tokens).last(rows));
    }
    return {engine.library().descriptor(engine.kernel_for_prompt(rows)), prompt_tokens - rows,
            std::move(records)};
  }
  const Descriptor& descriptor = engine.library().descriptor();
  const int depth = options.depths.front();
  const int step = std::max(1, options.tokens.front() / 2);
  engine.set_position(depth);
  const std::vector<int32_t> prompt =
      random_prompt(1, engine.library().model().facts.vocabulary, options.seed);
  DecodeResult result = engine.decode({.tokens = prompt, .max_tokens = step + 2, .timeline_step = step});
  return {descriptor, depth + step, std::move(result.timeline)};
}

std::string markdown(const Engine& engine, const DecodingResults& results) {
  const DeviceInfo& device = engine.library().device();
  const int cards = engine.library().num_cards();
  std::string text =
      fmt::format("{} on {}{}, kernel for {}", engine.library().model().name,
                  cards > 1 ? fmt::format("{} x ", cards) : "", device.name, engine.library().card().name);
  if (device.driver_version > 0) text += fmt::format(", driver {}", device.driver_version);
  if (device.sm_clock_khz > 0) text += fmt::format(", SM {} MHz", device.sm_clock_khz / 1000);
  if (device.memory_clock_khz > 0) text += fmt::format(", memory {} MHz", device.memory_clock_khz / 1000);
  const double ceiling = results.bandwidth.best();
  text += fmt::format("\nS (read bandwidth, same run): {}\n", describe(results.bandwidth));
  if (!results.calibration.empty()) text += "\n" + calibration_table(results.calibration);
  if (!results.prompts.empty()) text += "\n" + prompt_table(results.prompts);
  if (!results.rows.empty()) text += "\n" + generation_table(results.rows, ceiling);
  if (!results.trees.empty()) text += "\n" + tree_table(results.trees);
  if (results.drafts) text += "\n" + draft_table(*results.drafts);
  return text;
}

std::string as_json(const Engine& engine, const BenchOptions& options, const DecodingResults& results,
                    const std::string& command) {
  const DeviceInfo& device = engine.library().device();
  nlohmann::ordered_json json{{"command", command},
                              {"model", engine.library().model().name},
                              {"kernel_gpu", engine.library().card().name},
                              {"num_ctas", engine.library().descriptor().num_ctas},
                              {"num_cards", engine.library().num_cards()},
                              {"weights", options.random_weights ? "random" : options.model},
                              {"device", device.name},
                              {"driver", device.driver_version},
                              {"sm_clock_khz", device.sm_clock_khz},
                              {"memory_clock_khz", device.memory_clock_khz},
                              {"read_bandwidth_bytes_per_s", results.bandwidth.best()},
                              {"read_bandwidth", as_json(results.bandwidth)},
                              {"cache_bytes", engine.cache_bytes()},
                              {"window_cache_bytes", engine.window_cache_bytes()},
                              {"repeats", options.repeats},
                              {"rows", nlohmann::ordered_json::array()}};
  if (!results.calibration.empty()) json["calibration"] = as_json(results.calibration);
  if (options.sampling.any()) json["sampling"] = sampling_json(options.sampling.over(kTimedSampling));
  for (const PromptRow& row : results.prompts) json["rows"].push_back(as_json(row));
  for (const Row& row : results.rows) json["rows"].push_back(as_json(row));
  for (const TreeMeasurement& tree : results.trees) json["trees"].push_back(tree_json(tree));
  if (results.drafts) json["drafts"] = as_json(*results.drafts);
  return json.dump(2) + "\n";
}

}  // namespace soliton
