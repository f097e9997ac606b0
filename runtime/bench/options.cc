#include "runtime/bench/options.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "models/error.h"
#include "models/weight_rounding.h"
#include "runtime/answer/sampling_flags.h"
#include "runtime/bench/tune/tune.h"
#include "runtime/hub/hub_flags.h"
#include "runtime/program/command_line.h"

namespace soliton {
namespace {

int largest(const std::vector<int>& list) {
  return *std::max_element(list.begin(), list.end());
}

/// Flags of which it matters whether they were given.
struct GivenFlags {
  CLI::Option* prompts = nullptr;
  CLI::Option* tokens = nullptr;
  CLI::Option* depths = nullptr;
  CLI::Option* repeats = nullptr;
  std::string word;   // without a flag
  std::string trees;  // as typed
};

/// What is measured, and where it is written.
void declare_tests(CLI::App& app, BenchOptions& options, GivenFlags& given) {
  begin_group(app, "Tests");
  given.prompts = app.add_option("-p,--n-prompt", options.prompts, "prompt tokens, a list; 0: no prompt")
                      ->check(at_least(0));
  given.tokens =
      app.add_option("-n,--n-gen", options.tokens, "tokens to generate, a list")->check(at_least(0));
  given.depths = app.add_option("-d,--n-depth", options.depths, "tokens in the cache before, a list")
                     ->check(at_least(0));
  for (CLI::Option* list : {given.prompts, given.tokens, given.depths}) list->delimiter(',');
  given.prompts->default_str(fmt::format("{}", fmt::join(options.prompts, ",")));
  given.tokens->default_str(fmt::format("{}", fmt::join(options.tokens, ",")));
  given.depths->default_str(fmt::format("{}", fmt::join(options.depths, ",")));
  given.repeats = app.add_option("-r,--repetitions", options.repeats, "repeats of each test")
                      ->check(at_least(1))
                      ->capture_default_str();
  const auto device =
      app.add_option("--device", options.device, "GPU index")->check(at_least(0))->capture_default_str();
  app.add_option("--cards", options.cards, "GPU indices of a kernel that spans several cards, a list")
      ->excludes(device)
      ->delimiter(',')
      ->check(at_least(0));
  app.add_option("--seed", options.seed, "of random weights, prompts and cache")
      ->check(at_least<uint64_t>(0))
      ->capture_default_str();
  begin_group(app, "Output");
  app.add_option("-o,--output", options.format, "md or json; with --edge svg too")
      ->check(one_of({"md", "json", "svg"}))
      ->capture_default_str();
  app.add_option("--json-file", options.output, "also writes the JSON to this file")->check(not_empty());
  add_sampling_flags(app, options.sampling,
                     "1, where another of these flags asks for generation to be timed with sampling too");
}

void declare_flags(CLI::App& app, BenchOptions& options, GivenFlags& given) {
  begin_group(app, "Model");
  const auto positional = app.add_option("MODEL", given.word, "the same as --model")->check(not_empty());
  const auto model = app.add_option("-m,--model", options.model,
                                    "Hugging Face folder or GGUF file, or the name of a model there, which "
                                    "is downloaded unless the cache has "
                                    "it")
                         ->check(not_empty());
  add_hub_flags(app, options.hub);
  app.add_option("--weights", options.weights, kRoundedWeightsHelp)
      ->check(one_of({kRoundedWeights[0], kRoundedWeights[1]}));
  app.add_flag("--random-weights", options.random_weights, "weights from a seed instead of a folder")
      ->excludes(app.get_option("--weights"))
      ->excludes(model)
      ->excludes(positional);
  const auto kernel =
      app.add_option("-k,--kernel", options.kernel,
                     "kernel library; else one that fits the model is found, or made and kept")
          ->check(not_empty());
  declare_tests(app, options, given);
  begin_group(app, "Further tests");
  const auto timeline =
      app.add_option("--timeline", options.timeline,
                     "writes where the time of one token goes, or of the last step of "
                     "a prompt (-p), or of a step over a tree (--tree), for Perfetto, or as a picture "
                     "where FILE ends with .svg; needs a kernel of "
                     "build/kernels/timeline")
          ->check(not_empty());
  const auto tree =
      app.add_option("--tree", given.trees,
                     "also measures steps over trees of branches, a list of: " + tree_spec_grammar())
          ->check(not_empty());
  const auto calibrate =
      app.add_flag("--calibrate", options.calibrate,
                   "first measures what attention over trees costs on this card, and keeps "
                   "it: all programs then plan this kernel's steps by it");
  const auto draft =
      app.add_option("--draft-kernel", options.draft_kernel,
                     "also measures decoding with a draft model: its kernel library, for random "
                     "weights; -p tokens of a prompt, -n to generate")
          ->check(not_empty());
  app.add_option("--draft-seed", options.draft_seed,
                 "of its weights, that of --seed for those of the large model; else one more")
      ->needs(draft)
      ->check(at_least<uint64_t>(0));
  app.add_option("--draft-max", options.max_drafts, "tokens that it drafts a step at most")
      ->capture_default_str()
      ->needs(draft)
      ->check(at_least(1));
  begin_group(app, "Report of a card");
  const auto edge =
      app.add_flag("--edge", options.edge,
                   "what people report of a card: time to the first token, per token, energy, memory, "
                   "clocks; -p, -d, -n and -r in place of its own tests");
  app.add_option("--svg-file", options.svg, "with --edge: also writes its figures as a page to this file")
      ->needs(edge)
      ->check(not_empty());
  begin_group(app, "Search of a plan");
  const auto tune = app.add_option("--tune", options.tune,
                                   "searches the planner's knobs for this model's YAML, with random weights, "
                                   "and writes the best beside it, to tuned/")
                        ->check(not_empty());
  for (const auto other : {model, positional}) draft->excludes(other);
  for (const auto other : {timeline, tree, calibrate, draft, tune}) edge->excludes(other);
  for (const auto other : {model, positional, kernel, given.prompts, timeline, tree, calibrate, draft})
    tune->excludes(other);
  app.add_option("--gpu", options.gpu, "with --tune: as for soliton-gen")->needs(tune)->check(not_empty());
  app.add_option("--knobs", options.knobs, "with --tune: only these knobs, a list; else all")
      ->needs(tune)
      ->delimiter(',')
      ->check(one_of(knob_names()));
}

void settle_tune(BenchOptions& options, const GivenFlags& given) {
  if (given.depths->count() == 0) options.depths = {128, 6144};
  if (given.tokens->count() == 0) options.tokens = {64};
  if (given.repeats->count() == 0) options.repeats = 3;
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

void settle_edge(BenchOptions& options, const GivenFlags& given) {
  if (given.prompts->count() == 0) options.prompts.clear();
  if (given.depths->count() == 0) options.depths.clear();
  if (given.tokens->count() == 0) options.tokens.clear();
  if (given.repeats->count() == 0) options.repeats = 0;
  if (options.sampling.any())
    throw Error(ExitCode::kUsage, "--edge: expected greedy decoding, got flags of sampling");
  if (options.tokens.size() > 1 || (!options.tokens.empty() && options.tokens.front() < 2)) {
    throw Error(ExitCode::kUsage,
                fmt::format("--n-gen: expected one number of at least 2 with --edge, got {}",
                            fmt::join(options.tokens, ",")));
  }
  if (!options.prompts.empty() && *std::min_element(options.prompts.begin(), options.prompts.end()) == 0) {
    throw Error(ExitCode::kUsage, fmt::format("--n-prompt: expected at least 1 token with --edge, got {}",
                                              fmt::join(options.prompts, ",")));
  }
}

/// What is not said with --tune.
void check_model(const BenchOptions& options) {
  if (options.model.empty() && !options.random_weights) {
    throw Error(ExitCode::kUsage, "--model: expected a folder, or --random-weights, got neither");
  }
  if (options.model.empty() && options.kernel.empty()) {
    throw Error(ExitCode::kUsage, "--kernel: expected a value, got nothing");
  }
  if (!options.edge && largest(options.prompts) == 0 && largest(options.tokens) == 0) {
    throw Error(ExitCode::kUsage, "--n-gen: expected tokens to measure, here or with --n-prompt, got 0");
  }
}

}  // namespace

std::string command_line(int argc, char** argv) {
  std::string command = "soliton-bench";
  for (int i = 1; i < argc; ++i) command += fmt::format(" {}", argv[i]);
  return command;
}

std::optional<BenchOptions> parse_bench_options(int argc, char** argv) {
  CLI::App app{"Measures decoding: time per token beside the read bandwidth of the same run.",
               "soliton-bench"};
  BenchOptions options;
  GivenFlags given;
  declare_flags(app, options, given);
  if (!parse_command_line(app, argc, argv,
                          {.usage = "MODEL [FLAGS], or: -k KERNEL --random-weights [FLAGS]"})) {
    return std::nullopt;
  }
  if (!options.model.empty() && !given.word.empty()) throw unexpected_words(given.word, {});
  if (options.model.empty()) options.model = given.word;
  if (!given.trees.empty()) options.trees = parse_tree_spec(given.trees);
  if (options.format == "svg" && !options.edge) {
    throw Error(ExitCode::kUsage, "--output: expected md or json without --edge, got svg");
  }
  if (!options.tune.empty()) {
    settle_tune(options, given);
    return options;
  }
  if (options.edge) settle_edge(options, given);
  check_model(options);
  return options;
}

}  // namespace soliton
