// soliton-bench: how fast a kernel decodes, per token, beside the read bandwidth measured in the same run.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>
#include <nlohmann/json.hpp>
#include <optional>

#include "layout/page.h"
#include "models/error.h"
#include "models/hf_config.h"
#include "models/model_config.h"
#include "models/model_tables.h"
#include "runtime/bench/measure.h"
#include "runtime/bench/output.h"
#include "runtime/bench/timeline.h"
#include "runtime/bench/tree.h"
#include "runtime/command_line.h"
#include "runtime/engine.h"
#include "runtime/find_model.h"
#include "runtime/progress.h"
#include "runtime/sampling_flags.h"
#include "runtime/tools/make/make_kernel.h"
#include "runtime/tools/make/places.h"
#include "runtime/tools/tune/tune.h"

namespace soliton {
namespace {

constexpr Sampling kTimedSampling{.temperature = 1};  // but for what flags say

struct Options {
  std::string model;
  std::string kernel;
  bool random_weights = false;
  std::vector<int> prompts = {0};
  std::vector<int> tokens = {128};
  std::vector<int> depths = {0};
  int repeats = 5;
  int device = 0;
  uint64_t seed = 1;
  SamplingFlags sampling;
  std::string format = "md";
  std::string output;
  std::string timeline;
  std::vector<TreeSpec> trees;
  std::string tune;  // the model's YAML; empty: one kernel is measured
  std::string gpu;
  std::vector<std::string> knobs;
};

int largest(const std::vector<int>& list) {
  return *std::max_element(list.begin(), list.end());
}

class Bench {
 public:
  Bench(Engine& engine, const Options& options) : engine_(engine), options_(options) {}

  std::vector<Row> run() {
    ceiling_ = engine_.measure_bandwidth(kBandwidthRepeats);
    std::vector<Row> rows;
    for (const int prompt : options_.prompts) {
      if (prompt > 0) rows.push_back(prompt_row(prompt));
    }
    for (const int depth : options_.depths) {
      for (const int tokens : options_.tokens) {
        if (tokens == 0) continue;
        GenerationTest test{
            .tokens = tokens, .depth = depth, .repeats = options_.repeats, .seed = options_.seed};
        rows.push_back(measure_generation(engine_, test, ceiling_));
        if (!options_.sampling.any()) continue;
        test.sampling = options_.sampling.over(kTimedSampling);
        rows.push_back(measure_generation(engine_, test, ceiling_));
      }
    }
    return rows;
  }

  std::vector<TreeMeasurement> run_trees() {
    std::vector<TreeMeasurement> rows;
    for (const TreeSpec& spec : options_.trees) {
      if (num_rows(spec) > engine_.max_rows()) {
        fmt::print(stderr, "{}: left out: {} rows, the kernels take {}\n", spec.name, num_rows(spec),
                   engine_.max_rows());
        continue;
      }
      rows.push_back(measure_tree(
          engine_, spec,
          {.num_steps = options_.tokens.front(), .repeats = options_.repeats, .seed = options_.seed},
          ceiling_));
    }
    return rows;
  }

  double ceiling() const { return ceiling_; }

  /// Of the token in the middle of a run at the first depth.
  Timeline timeline() {
    const int depth = options_.depths.front();
    const int step = std::max(1, options_.tokens.front() / 2);
    engine_.set_position(depth);
    const std::vector<int32_t> prompt = random_prompt(1, vocabulary(), options_.seed);
    DecodeResult result = engine_.decode({.tokens = prompt, .max_tokens = step + 2, .timeline_step = step});
    return {engine_.library().descriptor(), depth + step, std::move(result.timeline)};
  }

 private:
  int vocabulary() const { return engine_.library().model().facts.vocabulary; }

  /// A prompt is fed row by row; its time runs from the launch, as the host sees it, to its last token's
  /// output.
  Row prompt_row(int count) {
    Row row{.test = fmt::format("pp{}", count)};
    row.bytes = engine_.needed_bytes(count / 2);
    const std::vector<int32_t> prompt = random_prompt(count, vocabulary(), options_.seed);
    std::vector<std::vector<double>> repeats;
    for (int i = 0; i <= options_.repeats; ++i) {
      engine_.set_position(0);
      const auto begin = std::chrono::steady_clock::now();
      engine_.decode({.tokens = prompt, .max_tokens = 1});
      const double us =
          std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - begin).count();
      if (i > 0) repeats.push_back(std::vector<double>(count, us / count));
    }
    summarise(repeats, ceiling_, row);
    return row;
  }

  Engine& engine_;
  const Options& options_;
  double ceiling_ = 0;
};

std::string markdown(const Engine& engine, double ceiling, const std::vector<Row>& rows) {
  const DeviceInfo& device = engine.library().device();
  std::string text = fmt::format("{} on {}, kernel for {}", engine.library().model().name, device.name,
                                 engine.library().card().name);
  if (device.driver_version > 0) text += fmt::format(", driver {}", device.driver_version);
  if (device.sm_clock_khz > 0) text += fmt::format(", SM {} MHz", device.sm_clock_khz / 1000);
  if (device.memory_clock_khz > 0) text += fmt::format(", memory {} MHz", device.memory_clock_khz / 1000);
  text += "\n";
  text += ceiling > 0 ? fmt::format("S (read bandwidth, same run): {:.3f} TB/s\n\n", ceiling * 1e-12)
                      : std::string("S: none, the kernel is emulated\n\n");
  text += "| test | t/s | p50 us | p90 us | p99 us | max us | GB a token | TB/s | of S |\n";
  text += "| --- | --- | --- | --- | --- | --- | --- | --- | --- |\n";
  for (const Row& row : rows) {
    text += fmt::format(
        "| {} | {:.2f} ± {:.2f} | {:.1f} | {:.1f} | {:.1f} | {:.1f} | {:.3f} | {:.3f} | {} |\n", row.test,
        row.rate, row.deviation, row.p50_us, row.p90_us, row.p99_us, row.max_us, row.bytes * 1e-9,
        row.bandwidth * 1e-12, ceiling > 0 ? fmt::format("{:.1f}%", row.of_ceiling * 100) : "-");
  }
  return text;
}

nlohmann::ordered_json tree_json(const TreeMeasurement& row) {
  return {{"test", row.test},
          {"rows", row.rows},
          {"kernel_rows", row.kernel_rows},
          {"unique_tokens", row.unique_tokens},
          {"path_tokens", row.path_tokens},
          {"longest_path", row.longest_path},
          {"step_us_p50", row.step_us},
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

std::string as_json(const Engine& engine, const Options& options, double ceiling,
                    const std::vector<Row>& rows, const std::vector<TreeMeasurement>& trees,
                    const std::string& command) {
  const DeviceInfo& device = engine.library().device();
  nlohmann::ordered_json json{{"command", command},
                              {"model", engine.library().model().name},
                              {"kernel_gpu", engine.library().card().name},
                              {"num_ctas", engine.library().descriptor().num_ctas},
                              {"weights", options.random_weights ? "random" : options.model},
                              {"device", device.name},
                              {"driver", device.driver_version},
                              {"sm_clock_khz", device.sm_clock_khz},
                              {"memory_clock_khz", device.memory_clock_khz},
                              {"read_bandwidth_bytes_per_s", ceiling},
                              {"repeats", options.repeats},
                              {"rows", nlohmann::ordered_json::array()}};
  if (options.sampling.any()) json["sampling"] = sampling_json(options.sampling.over(kTimedSampling));
  for (const Row& row : rows) {
    json["rows"].push_back({{"test", row.test},
                            {"tokens_per_s", row.rate},
                            {"tokens_per_s_deviation", row.deviation},
                            {"token_us_p50", row.p50_us},
                            {"token_us_p90", row.p90_us},
                            {"token_us_p99", row.p99_us},
                            {"token_us_max", row.max_us},
                            {"token_bytes", row.bytes},
                            {"bytes_per_s", row.bandwidth},
                            {"of_read_bandwidth", row.of_ceiling}});
  }
  for (const TreeMeasurement& tree : trees) json["trees"].push_back(tree_json(tree));
  return json.dump(2) + "\n";
}

void check_tune(const Options& options) {
  if (options.gpu.empty()) throw Error(ExitCode::kUsage, "--gpu: expected a value, got nothing");
  if (options.sampling.any()) {
    throw Error(ExitCode::kUsage, "--tune: expected greedy decoding, got flags of sampling");
  }
  if (options.tokens.size() != 1 || options.tokens.front() == 0) {
    throw Error(ExitCode::kUsage,
                fmt::format("--n-gen: expected one number of at least 1 with --tune, got {}",
                            fmt::join(options.tokens, ",")));
  }
}

/// Nothing after --help.
std::optional<Options> parse(int argc, char** argv) {
  CLI::App app{"Measures decoding: time per token beside the read bandwidth of the same run.",
               "soliton-bench"};
  Options options;
  std::string word;
  const auto positional = app.add_option("MODEL", word, "the same as --model")->check(not_empty());
  const auto model =
      app.add_option("-m,--model", options.model, "Hugging Face folder, or the name of a model in its cache")
          ->check(not_empty());
  app.add_flag("--random-weights", options.random_weights, "weights from a seed instead of a folder")
      ->excludes(model)
      ->excludes(positional);
  const auto kernel =
      app.add_option("-k,--kernel", options.kernel,
                     "kernel library; else one that fits the model is found, or made and kept")
          ->check(not_empty());
  const auto prompts = app.add_option("-p,--n-prompt", options.prompts, "prompt tokens, a list")
                           ->delimiter(',')
                           ->check(at_least(0));
  const auto tokens = app.add_option("-n,--n-gen", options.tokens, "tokens to generate, a list")
                          ->delimiter(',')
                          ->check(at_least(0));
  const auto depths = app.add_option("-d,--n-depth", options.depths, "tokens in the cache before, a list")
                          ->delimiter(',')
                          ->check(at_least(0));
  const auto repeats =
      app.add_option("-r,--repetitions", options.repeats, "repeats of each test")->check(at_least(1));
  app.add_option("--device", options.device, "GPU index")->check(at_least(0));
  app.add_option("--seed", options.seed, "of random weights, prompts and cache")
      ->check(at_least<uint64_t>(0));
  app.add_option("-o,--output", options.format, "md or json")->check(one_of({"md", "json"}));
  app.add_option("--json-file", options.output, "also writes the JSON to this file")->check(not_empty());
  add_sampling_flags(app, options.sampling,
                     "1, where another of these flags asks for generation to be timed with sampling too");
  const auto timeline = app.add_option("--timeline", options.timeline,
                                       "writes where the time of one token goes, for Perfetto; needs a "
                                       "kernel of build/kernels/timeline")
                            ->check(not_empty());
  std::string trees;
  const auto tree =
      app.add_option("--tree", trees,
                     "also measures steps over trees of branches, a list of: " + tree_spec_grammar())
          ->check(not_empty());
  const auto tune = app.add_option("--tune", options.tune,
                                   "searches the planner's knobs for this model's YAML, with random weights, "
                                   "and writes the best beside it, to tuned/")
                        ->check(not_empty());
  for (const auto other : {model, positional, kernel, prompts, timeline, tree}) tune->excludes(other);
  app.add_option("--gpu", options.gpu, "with --tune: as for soliton-gen")->needs(tune)->check(not_empty());
  app.add_option("--knobs", options.knobs, "with --tune: only these knobs, a list")
      ->needs(tune)
      ->delimiter(',')
      ->check(one_of(knob_names()));
  if (!parse_command_line(app, argc, argv,
                          {.usage = "MODEL [FLAGS], or: -k KERNEL --random-weights [FLAGS]"})) {
    return std::nullopt;
  }
  if (!options.model.empty() && !word.empty()) throw unexpected_words(word, {});
  if (options.model.empty()) options.model = word;
  if (!trees.empty()) options.trees = parse_tree_spec(trees);
  if (!options.tune.empty()) {
    if (depths->count() == 0) options.depths = {128, 6144};
    if (tokens->count() == 0) options.tokens = {64};
    if (repeats->count() == 0) options.repeats = 3;
    check_tune(options);
    return options;
  }
  if (options.model.empty() && !options.random_weights) {
    throw Error(ExitCode::kUsage, "--model: expected a folder, or --random-weights, got neither");
  }
  if (options.model.empty() && options.kernel.empty()) {
    throw Error(ExitCode::kUsage, "--kernel: expected a value, got nothing");
  }
  if (largest(options.prompts) == 0 && largest(options.tokens) == 0) {
    throw Error(ExitCode::kUsage, "--n-gen: expected tokens to measure, here or with --n-prompt, got 0");
  }
  return options;
}

/// Tokens that the KV cache has to hold for every row. Throws Error (kOutOfMemory) if the model cannot.
int needed_context(const Options& options, const ModelFacts& facts) {
  const int64_t tokens = largest(options.tokens);
  const int64_t depth = largest(options.depths);
  int64_t generation = tokens + depth + 1;
  for (const TreeSpec& spec : options.trees)
    generation = std::max<int64_t>(generation, longest_path(spec) + 2 * tokens + 2);
  if (largest(options.prompts) > facts.max_context) {
    throw Error(ExitCode::kOutOfMemory,
                fmt::format("--n-prompt: expected at most the model's {} tokens, got {}", facts.max_context,
                            largest(options.prompts)));
  }
  if (generation > facts.max_context) {
    throw Error(ExitCode::kOutOfMemory,
                fmt::format("--n-depth and --n-gen: expected less than the model's {} tokens, got {} and {}",
                            facts.max_context, depth, tokens));
  }
  return static_cast<int>(std::max<int64_t>(generation, largest(options.prompts)));
}

/// Tokens that the KV pages have to hold for every tree, and for the same rows without sharing as far as
/// memory goes.
int64_t needed_pool(const Options& options, KernelLibrary& library) {
  if (options.trees.empty()) return 0;
  library.select_device(options.device);
  const ModelDescriptor& model = library.model();
  constexpr double kMost = 0.9;  // of the memory that the weights leave
  const double free_bytes = static_cast<double>(library.device().free_bytes);
  const double weight_bytes = static_cast<double>(model.weight_bytes + model_tables(model.facts).bytes());
  const double page_bytes = static_cast<double>(KvPool::bytes(model.facts, 1));
  const int64_t most =
      free_bytes == 0
          ? 1 << 16
          : static_cast<int64_t>((free_bytes - weight_bytes) * kMost / page_bytes) * kKvPageTokens;
  int64_t tokens = 0;
  for (const TreeSpec& spec : options.trees) {
    const int64_t apart = pool_tokens(unshared(spec), options.tokens.front());
    tokens = std::max({tokens, pool_tokens(spec, options.tokens.front()), apart <= most ? apart : 0});
  }
  return tokens;
}

/// A kernel for the model on this machine, which may have to be made.
std::filesystem::path kernel_for(const std::filesystem::path& folder, const HfConfig& config, int device) {
  return find_or_make_kernel({.facts = config.facts,
                              .name = model_name_of(folder),
                              .source = (folder / "config.json").string(),
                              .kernels = shipped_kernels_folder(),
                              .device = device});
}

std::string command_line(int argc, char** argv) {
  std::string command = "soliton-bench";
  for (int i = 1; i < argc; ++i) command += fmt::format(" {}", argv[i]);
  return command;
}

int run(int argc, char** argv) {
  const std::optional<Options> parsed = parse(argc, argv);
  if (!parsed) return 0;
  const Options& options = *parsed;
  if (!options.tune.empty()) {
    tune({.model = options.tune,
          .gpu = options.gpu,
          .knobs = options.knobs,
          .depths = options.depths,
          .tokens = options.tokens.front(),
          .repeats = options.repeats,
          .device = options.device,
          .seed = options.seed,
          .json = options.format == "json",
          .json_file = options.output,
          .command = command_line(argc, argv)});
    return 0;
  }
  if (!options.output.empty()) check_writable(options.output);
  if (!options.timeline.empty()) check_writable(options.timeline);
  std::optional<HfConfig> config;
  std::filesystem::path folder;
  std::optional<TensorSource> source;
  ModelTensors tensors;
  if (!options.model.empty()) {
    folder = find_model(options.model);
    config = HfConfig::open(folder);
    // Before a kernel is made that no weights fit.
    source = TensorSource::open(folder);
    tensors = find_tensors(*source, config->quantization_or_null(), config->facts);
  }
  KernelLibrary library =
      KernelLibrary::open(options.kernel.empty() ? kernel_for(folder, *config, options.device)
                                                 : std::filesystem::path(options.kernel));
  if (config) check_facts(library.model(), config->stated);
  const int context = needed_context(options, library.model().facts);
  const int64_t pool_tokens = needed_pool(options, library);
  Engine engine(std::move(library),
                {.context = context, .pool_tokens = pool_tokens, .device = options.device});
  if (options.random_weights) {
    engine.load_random(options.seed);
  } else {
    Progress progress("Weights", weight_load_bytes(engine.library().model()));
    engine.load(tensors, &progress);
    progress.finish();
  }
  engine.randomise_cache(options.seed);
  Bench bench(engine, options);
  const std::vector<Row> rows = bench.run();
  const std::vector<TreeMeasurement> trees = bench.run_trees();
  const std::string json = as_json(engine, options, bench.ceiling(), rows, trees, command_line(argc, argv));
  fmt::print("{}", options.format == "json" ? json : markdown(engine, bench.ceiling(), rows));
  if (!trees.empty() && options.format == "md") fmt::print("\n{}", tree_table(trees));
  if (!options.timeline.empty()) {
    const Timeline timeline = bench.timeline();
    write_file(options.timeline, timeline.trace());
    if (options.format == "md") fmt::print("\n{}", timeline.table());
  }
  flush_stdout();
  if (!options.output.empty()) write_file(options.output, json);
  return 0;
}

}  // namespace
}  // namespace soliton

int main(int argc, char** argv) {
  return soliton::run_program("soliton-bench", soliton::run, argc, argv);
}
