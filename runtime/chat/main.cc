// soliton-chat: completes a prompt. The answer goes to stdout as it is decoded, statistics to stderr.
#include <fmt/format.h>

#include <chrono>
#include <csignal>
#include <cstdio>
#include <nlohmann/json.hpp>

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
  int device = 0;
  bool json = false;
  bool ignore_stop = false;
};

constexpr int kDefaultContext = 4096;

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
  double prompt_s = 0;
  double generation_s = 0;

  double prompt_rate() const { return prompt_s > 0 ? static_cast<double>(prompt_tokens) / prompt_s : 0; }
  /// The first token belongs to the prompt.
  double generation_rate() const {
    return generation_s > 0 ? static_cast<double>(generated - 1) / generation_s : 0;
  }
};

void print_json(const std::string& text, const DecodeResult& result, const Timing& timing) {
  const nlohmann::json json{{"content", text},
                            {"tokens", result.tokens},
                            {"prompt_n", timing.prompt_tokens},
                            {"prompt_ms", timing.prompt_s * 1e3},
                            {"predicted_n", timing.generated},
                            {"predicted_ms", timing.generation_s * 1e3},
                            {"predicted_per_second", timing.generation_rate()}};
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

int complete(const Options& options) {
  const HfConfig config = HfConfig::open(options.model);
  const Tokenizer tokenizer = Tokenizer::open(options.model);
  const std::vector<int> prompt = read_prompt(tokenizer, options.prompt);
  const int context = choose_context(options, config.facts, prompt.size());
  const TensorSource source = TensorSource::open(options.model);
  const std::filesystem::path kernel = options.kernel.empty()
                                           ? find_kernel(kernels_folder(), config.facts, options.device)
                                           : std::filesystem::path(options.kernel);
  KernelLibrary library = KernelLibrary::open(kernel);
  check_facts(library.descriptor(), config.facts,
              (std::filesystem::path(options.model) / "config.json").string());
  Engine engine(std::move(library), {.context = context, .device = options.device});
  Progress progress("Weights", weight_load_bytes(engine.library().descriptor()));
  engine.load(source, &progress);
  progress.finish();

  const std::vector<int> stop = options.ignore_stop ? std::vector<int>{} : config.eos_ids;
  StreamDecoder stream(tokenizer);
  std::string text;
  const auto started = std::chrono::steady_clock::now();
  std::chrono::steady_clock::time_point first_token{};
  const DecodeResult result = engine.decode(
      {.tokens = prompt, .max_tokens = options.num_tokens, .stop_tokens = stop}, [&](int32_t token) {
        if (first_token == std::chrono::steady_clock::time_point{})
          first_token = std::chrono::steady_clock::now();
        if (std::find(stop.begin(), stop.end(), token) == stop.end()) {
          const std::string piece = stream.push(token);
          text += piece;
          if (!options.json) {
            std::fwrite(piece.data(), 1, piece.size(), stdout);
            std::fflush(stdout);
          }
        }
        return interrupted == 0;
      });
  Timing timing{.prompt_tokens = prompt.size(), .generated = result.tokens.size()};
  timing.prompt_s = std::chrono::duration<double>(first_token - started).count();
  timing.generation_s = generation_seconds(result.times_ns);
  const std::string rest = stream.finish();
  text += rest;
  if (options.json) {
    print_json(text, result, timing);
  } else {
    fmt::print("{}\n", rest);
  }
  flush_stdout();
  fmt::print(stderr, "[ Prompt: {:.1f} t/s | Generation: {:.1f} t/s ]\n", timing.prompt_rate(),
             timing.generation_rate());
  return 0;
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
  app.add_option("--device", options.device, "GPU index")->check(at_least(0));
  app.add_flag("--json", options.json, "one JSON object on stdout instead of text");
  app.add_flag("--ignore-eos", options.ignore_stop, "go on after the end-of-text token");
  if (!parse_command_line(app, argc, argv)) return 0;
  std::signal(SIGINT, [](int) { interrupted = 1; });
  return complete(options);
}

}  // namespace
}  // namespace soliton

int main(int argc, char** argv) {
  return soliton::run_program("soliton-chat", soliton::run, argc, argv);
}
