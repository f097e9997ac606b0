// soliton-chat: completes a prompt, once or several times. The answer goes to stdout as it is decoded,
// several answers when all have ended; statistics go to stderr.
#include <fmt/format.h>

#include <chrono>
#include <csignal>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <optional>

#include "runtime/chat/parallel.h"
#include "runtime/chat/speculate.h"
#include "runtime/command_line.h"
#include "runtime/engine.h"
#include "runtime/error.h"
#include "runtime/hf_config.h"
#include "runtime/progress.h"
#include "runtime/tokenizer.h"

namespace soliton {
namespace {

volatile std::sig_atomic_t interrupted = 0;

struct Options {
  std::string model;
  std::string prompt;
  std::string kernel;
  int num_tokens = 256;
  int context = 0;  // 0: as long as the model allows, at most kDefaultContext
  int num_samples = 1;
  std::optional<double> temperature;
  uint32_t seed = 0;
  int num_drafts = 0;  // a step; 0: no speculation
  int device = 0;
  bool json = false;
  bool ignore_stop = false;

  /// Samples without temperature would all be the same.
  double chosen_temperature() const {
    return temperature.value_or(num_samples > 1 ? kDefaultSampleTemperature : 0.0);
  }

  static constexpr double kDefaultSampleTemperature = 0.8;
};

constexpr int kDefaultContext = 4096;
constexpr double kMaxTemperature = 100;

std::filesystem::path kernels_folder() {
  const char* chosen = std::getenv("SOLITON_KERNELS");
  if (chosen != nullptr) return chosen;
  return std::filesystem::read_symlink("/proc/self/exe").parent_path() / "kernels";
}

/// Device times are modulo 2^32 ns: only neighbours can be compared.
double generation_seconds(const std::vector<uint32_t>& times_ns) {
  double seconds = 0;
  for (size_t i = 1; i < times_ns.size(); ++i)
    seconds += static_cast<double>(times_ns[i] - times_ns[i - 1]) * 1e-9;
  return seconds;
}

struct Timing {
  size_t prompt_tokens = 0;
  size_t generated = 0;
  size_t first_step = 0;  // of these, tokens of the first step, which belongs to the prompt
  double prompt_s = 0;
  double generation_s = 0;

  double prompt_rate() const { return prompt_s > 0 ? static_cast<double>(prompt_tokens) / prompt_s : 0; }
  double generation_rate() const {
    return generation_s > 0 ? static_cast<double>(generated - first_step) / generation_s : 0;
  }
};

/// What all ways to decode are given.
struct Task {
  const Options& options;
  const Tokenizer& tokenizer;
  std::vector<int32_t> prompt;
  std::vector<int32_t> stop_tokens;

  bool is_stop(int32_t token) const {
    return std::find(stop_tokens.begin(), stop_tokens.end(), token) != stop_tokens.end();
  }
};

/// From now to the first token.
class PromptClock {
 public:
  void stop() {
    if (!stopped_) stopped_ = std::chrono::steady_clock::now();
  }
  double seconds() const {
    return std::chrono::duration<double>(stopped_.value_or(started_) - started_).count();
  }

 private:
  std::chrono::steady_clock::time_point started_ = std::chrono::steady_clock::now();
  std::optional<std::chrono::steady_clock::time_point> stopped_;
};

/// One answer on its way to stdout.
class Answer {
 public:
  explicit Answer(const Task& task) : task_(task), stream_(task.tokenizer) {}

  void push(int32_t token) {
    if (!task_.is_stop(token)) write(stream_.push(token));
  }
  void finish() { write(stream_.finish() + (task_.options.json ? "" : "\n")); }
  const std::string& text() const { return text_; }

 private:
  void write(const std::string& piece) {
    text_ += piece;
    if (task_.options.json) return;
    std::fwrite(piece.data(), 1, piece.size(), stdout);
    std::fflush(stdout);
  }

  const Task& task_;
  StreamDecoder stream_;
  std::string text_;
};

/// What has been decoded: for the statistics, and as JSON without them.
struct Completion {
  Timing timing;
  nlohmann::json json;
  std::string remark = {};  // at the end of the statistics
};

Completion complete_greedily(Engine& engine, const Task& task) {
  Answer answer(task);
  PromptClock clock;
  const DecodeResult result = engine.decode(
      {.tokens = task.prompt, .max_tokens = task.options.num_tokens, .stop_tokens = task.stop_tokens},
      [&](int32_t token) {
        clock.stop();
        answer.push(token);
        return interrupted == 0;
      });
  answer.finish();
  return {.timing = {.prompt_tokens = task.prompt.size(),
                     .generated = result.tokens.size(),
                     .first_step = 1,
                     .prompt_s = clock.seconds(),
                     .generation_s = generation_seconds(result.times_ns)},
          .json = {{"content", answer.text()}, {"tokens", result.tokens}}};
}

Completion complete_speculatively(Engine& engine, const Task& task) {
  Answer answer(task);
  PromptClock clock;
  const SpeculationResult result = decode_speculatively(engine,
                                                        {.prompt = task.prompt,
                                                         .max_tokens = task.options.num_tokens,
                                                         .stop_tokens = task.stop_tokens,
                                                         .max_drafts = task.options.num_drafts},
                                                        [&](int32_t token) {
                                                          clock.stop();
                                                          answer.push(token);
                                                          return interrupted == 0;
                                                        });
  answer.finish();
  const size_t num_steps = result.step_tokens.size();
  return {.timing = {.prompt_tokens = task.prompt.size(),
                     .generated = result.tokens.size(),
                     .first_step = static_cast<size_t>(result.step_tokens[0]),
                     .prompt_s = clock.seconds(),
                     .generation_s = generation_seconds(result.times_ns)},
          .json = {{"content", answer.text()}, {"tokens", result.tokens}, {"steps", num_steps}},
          .remark = fmt::format(" | Lookup: {:.2f} tokens accepted/step, {} steps", result.tokens_per_step(),
                                num_steps)};
}

/// The samples as JSON, and each to stdout under a line of its own if text is wanted.
nlohmann::json list_samples(const std::vector<Sample>& samples, const Task& task) {
  nlohmann::json list = nlohmann::json::array();
  for (size_t i = 0; i < samples.size(); ++i) {
    const Sample& sample = samples[i];
    const size_t num_shown = sample.tokens.size() - (sample.hit_stop_token ? 1 : 0);
    const std::string text = task.tokenizer.decode(std::span(sample.tokens).first(num_shown));
    if (!task.options.json) fmt::print("--- sample {} (seed {})\n{}\n", i, sample.seed, text);
    list.push_back({{"content", text}, {"tokens", sample.tokens}, {"seed", sample.seed}});
  }
  return list;
}

/// A single sample streams like any other answer; several are listed at the end.
Completion complete_samples(Engine& engine, const Task& task) {
  const Options& options = task.options;
  const bool is_single = options.num_samples == 1;
  Answer answer(task);
  PromptClock clock;
  const ParallelResult result =
      decode_parallel(engine,
                      {.prompt = task.prompt,
                       .num_samples = options.num_samples,
                       .max_tokens = options.num_tokens,
                       .temperature = static_cast<float>(options.chosen_temperature()),
                       .seed = options.seed,
                       .stop_tokens = task.stop_tokens},
                      [&](int, int32_t token) {
                        clock.stop();
                        if (is_single) answer.push(token);
                        return interrupted == 0;
                      });
  Completion completion{.timing = {.prompt_tokens = task.prompt.size(),
                                   .generated = result.num_tokens(),
                                   .first_step = result.samples.size(),
                                   .prompt_s = clock.seconds(),
                                   .generation_s = generation_seconds(result.times_ns)},
                        .json = {}};
  if (is_single) {
    answer.finish();
    completion.json = {{"content", answer.text()}, {"tokens", result.samples[0].tokens}};
  } else {
    completion.json = {{"samples", list_samples(result.samples, task)}};
    completion.remark = fmt::format(" | {} samples", result.samples.size());
  }
  return completion;
}

void print_json(nlohmann::json json, const Timing& timing) {
  json.update({{"prompt_n", timing.prompt_tokens},
               {"prompt_ms", timing.prompt_s * 1e3},
               {"predicted_n", timing.generated},
               {"predicted_ms", timing.generation_s * 1e3},
               {"predicted_per_second", timing.generation_rate()}});
  fmt::print("{}\n", json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace));
}

std::vector<int> read_prompt(const Tokenizer& tokenizer, const std::string& text) {
  std::vector<int> prompt(tokenizer.prefix_ids().begin(), tokenizer.prefix_ids().end());
  const std::vector<int> text_ids = tokenizer.encode(text);
  prompt.insert(prompt.end(), text_ids.begin(), text_ids.end());
  if (prompt.empty()) throw Error(ExitCode::kUsage, "--prompt: expected at least one token, got none");
  return prompt;
}

/// Tokens that the KV cache is to hold. Throws Error (kOutOfMemory) if the request does not fit into them.
int choose_context(const Options& options, const ModelFacts& facts, size_t prompt_tokens) {
  const int limit = facts.max_context;
  if (options.context > limit) {
    throw Error(
        ExitCode::kOutOfMemory,
        fmt::format("--ctx-size: expected at most the model's {} tokens, got {}", limit, options.context));
  }
  const int context = options.context > 0 ? options.context : std::min(kDefaultContext, limit);
  const size_t needed = prompt_tokens + static_cast<size_t>(options.num_tokens) - 1;  // the last is not fed
  if (needed > static_cast<size_t>(limit)) {
    throw Error(ExitCode::kOutOfMemory,
                fmt::format("--prompt and --predict: expected at most the model's {} tokens, got {} and {}",
                            limit, prompt_tokens, options.num_tokens));
  }
  if (needed > static_cast<size_t>(context)) {
    throw Error(
        ExitCode::kOutOfMemory,
        fmt::format("--ctx-size: expected at least {} ({} tokens of the prompt, {} to generate), got {}",
                    needed, prompt_tokens, options.num_tokens, context));
  }
  return context;
}

/// Flags that exclude each other.
void check_flags(const Options& options) {
  if (options.num_drafts == 0) return;
  const std::string expected = "--lookup: expected greedy decoding of one answer, got ";
  if (options.num_samples > 1) {
    throw Error(ExitCode::kUsage, fmt::format("{}--parallel {}", expected, options.num_samples));
  }
  if (options.chosen_temperature() > 0) {
    throw Error(ExitCode::kUsage, fmt::format("{}--temp {}", expected, options.chosen_temperature()));
  }
}

/// Has the library a kernel for as many rows a step as the flags ask for?
void check_rows(const Options& options, const KernelLibrary& library) {
  const int rows = library.max_rows();
  const std::string takes =
      fmt::format("{} takes {} row{} a step", library.path(), rows, rows > 1 ? "s" : "");
  if (options.num_samples > rows) {
    throw Error(ExitCode::kUsage,
                fmt::format("--parallel: expected at most {}, got {}: {}", rows, options.num_samples, takes));
  }
  if (options.num_drafts + 1 > rows) {
    throw Error(ExitCode::kUsage, fmt::format("--lookup: expected {}, got {}: {}",
                                              rows > 1 ? fmt::format("at most {}", rows - 1)
                                                       : "a kernel library for several rows",
                                              options.num_drafts, takes));
  }
  if (options.chosen_temperature() > 0 && rows == 1) {
    throw Error(ExitCode::kUsage,
                fmt::format("--temp: expected a kernel library for several rows, got {}: {}",
                            options.chosen_temperature(), takes));
  }
}

int complete(const Options& options) {
  check_flags(options);
  const HfConfig config = HfConfig::open(options.model);
  const Tokenizer tokenizer = Tokenizer::open(options.model);
  const Task task{.options = options,
                  .tokenizer = tokenizer,
                  .prompt = read_prompt(tokenizer, options.prompt),
                  .stop_tokens = options.ignore_stop ? std::vector<int>{} : config.eos_ids};
  const int context = choose_context(options, config.facts, task.prompt.size());
  const TensorSource source = TensorSource::open(options.model);
  const std::filesystem::path kernel = options.kernel.empty()
                                           ? find_kernel(kernels_folder(), config.facts, options.device)
                                           : std::filesystem::path(options.kernel);
  KernelLibrary library = KernelLibrary::open(kernel);
  check_facts(library.descriptor(), config.facts,
              (std::filesystem::path(options.model) / "config.json").string());
  check_rows(options, library);
  const bool draws = options.num_samples > 1 || options.chosen_temperature() > 0;
  const int64_t pool_tokens =
      draws ? parallel_pool_tokens(task.prompt.size(), options.num_samples, options.num_tokens) : 0;
  Engine engine(std::move(library),
                {.context = context, .pool_tokens = pool_tokens, .device = options.device});
  Progress progress("Weights", weight_load_bytes(engine.library().descriptor()));
  engine.load(source, &progress, config.quantization_or_null());
  progress.finish();

  const auto complete_task = draws                    ? complete_samples
                             : options.num_drafts > 0 ? complete_speculatively
                                                      : complete_greedily;
  const Completion completion = complete_task(engine, task);
  if (options.json) print_json(completion.json, completion.timing);
  flush_stdout();
  fmt::print(stderr, "[ Prompt: {:.1f} t/s | Generation: {:.1f} t/s{} ]\n", completion.timing.prompt_rate(),
             completion.timing.generation_rate(), completion.remark);
  return 0;
}

/// The arguments with --parallel for -np, which CLI11 would read as -n with the value "p".
std::vector<char*> with_long_names(const CLI::App& app, int argc, char** argv) {
  static char parallel[] = "--parallel";
  std::vector<char*> arguments(argv, argv + argc);
  for (size_t i = 1; i < arguments.size(); ++i) {
    if (std::string_view(arguments[i]) == "-np") arguments[i] = parallel;
    const CLI::Option* option = app.get_option_no_throw(arguments[i]);
    if (option != nullptr && option->get_expected_min() > 0) ++i;  // its value
  }
  return arguments;
}

int run(int argc, char** argv) {
  CLI::App app{"Completes a prompt with a whole-model kernel.", "soliton-chat"};
  Options options;
  app.add_option("-m,--model", options.model, "Hugging Face folder: config.json, tokenizer.json, safetensors")
      ->required()
      ->check(not_empty());
  app.add_option("-p,--prompt", options.prompt, "text to complete")->required();
  app.add_option("-n,--predict", options.num_tokens, "tokens to generate at most")->check(at_least(1));
  app.add_option("-c,--ctx-size", options.context, "tokens that the KV cache holds")->check(at_least(1));
  app.add_option("-k,--kernel", options.kernel, "kernel library; else the fitting one beside this program")
      ->check(not_empty());
  app.add_option("--parallel", options.num_samples, "-np: samples of the prompt, decoded together")
      ->check(at_least(1));
  app.add_option("--temp", options.temperature,
                 "temperature; 0, the best token, by default, or 0.8 with several samples")
      ->check(number_from(0, kMaxTemperature));
  app.add_option("--seed", options.seed, "of the first sample; sample i draws with seed + i")
      ->check(at_least<uint32_t>(0));
  app.add_option(
         "--lookup", options.num_drafts,
         "tokens to draft a step at most, from what followed earlier in the text; same answer, sooner")
      ->check(at_least(1));
  app.add_option("--device", options.device, "GPU index")->check(at_least(0));
  app.add_flag("--json", options.json, "one JSON object on stdout instead of text");
  app.add_flag("--ignore-eos", options.ignore_stop, "go on after the end-of-text token");
  std::vector<char*> arguments = with_long_names(app, argc, argv);
  if (!parse_command_line(app, argc, arguments.data())) return 0;
  std::signal(SIGINT, [](int) { interrupted = 1; });
  return complete(options);
}

}  // namespace
}  // namespace soliton

int main(int argc, char** argv) {
  return soliton::run_program("soliton-chat", soliton::run, argc, argv);
}
