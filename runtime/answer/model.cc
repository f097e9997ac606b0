#include "runtime/answer/model.h"

#include <algorithm>
#include <filesystem>

#include "layout/page.h"
#include "models/error.h"
#include "models/gguf.h"
#include "models/kv_pages.h"
#include "models/model_config.h"
#include "models/weight_rounding.h"
#include "runtime/answer/emulation.h"
#include "runtime/answer/generator.h"
#include "runtime/answer/open_draft.h"
#include "runtime/answer/streaming_generator.h"
#include "runtime/compile/places.h"
#include "runtime/device/cuda_driver.h"
#include "runtime/make/make_kernel.h"
#include "runtime/make/measured_costs.h"
#include "runtime/make/model_memory.h"
#include "runtime/program/progress.h"

namespace soliton {
namespace {

namespace fs = std::filesystem;

// What is left free where nobody says how long the context is to be: for padding, workspaces, and other programs.
constexpr int64_t kSpareBytes = 512 << 20;
constexpr int64_t kSpareShare = 50;  // and a fiftieth

void say(const Options& options, const std::string& line) {
  if (options.say) {
    options.say(line);
  } else {
    print_progress_line(line);
  }
}

std::string config_path(const Options& options) {
  return config_file(options.model).string();
}

/// The one that --kernel names, else one for the model on this machine, which may have to be made.
fs::path kernel_of(const Options& options, ModelFacts facts) {
  if (!options.kernel.empty()) return options.kernel;
  if (options.kv_bits) facts.kv_bits = *options.kv_bits;
  return find_or_make_kernel({.facts = facts,
                              .name = model_name_of(options.model),
                              .source = config_path(options),
                              .kernels = shipped_kernels_folder(),
                              .device = options.device,
                              .cards = options.cards},
                             [&](const std::string& line) { say(options, line); });
}

/// The card, or what several are together. Nothing without one.
std::optional<DeviceInfo> ask_card(const Options& options, const ModelFacts& facts) {
  if (options.cards.empty()) return ask_driver(options.device).device;
  std::optional<DeviceInfo> least;
  for (const int index : options.cards) {
    const std::optional<DeviceInfo> card = ask_driver(index).device;
    if (!card) return std::nullopt;
    if (!least || card->free_bytes < least->free_bytes) least = card;
  }
  least->free_bytes = free_bytes_of_cards(facts, least->free_bytes, static_cast<int>(options.cards.size()));
  return least;
}

/// What the kernel is given: the folder's tensors, but for the one that --verify-without takes away.
TensorSource open_weights(const Options& options) {
  TensorSource source = TensorSource::open(options.model);
  const std::string& absent = options.verify_without;
  if (absent.empty()) return source;
  if (source.find(absent) == nullptr) {
    throw Error(ExitCode::kUsage, fmt::format("--verify-without: expected a tensor of {}, got {}",
                                              options.model, in_quotes(absent)));
  }
  source.zero(absent);
  return source;
}

/// Does the library keep keys and values as the flags ask for, and has it a kernel for as many rows a step?
void check_flags(const Options& options, const KernelLibrary& library) {
  const int kv_bits = library.model().facts.kv_bits;
  if (options.kv_bits && *options.kv_bits != kv_bits) {
    throw Error(ExitCode::kMismatch, fmt::format("--kv-bits: expected {}, as {} has, got {}", kv_bits,
                                                 library.path(), *options.kv_bits));
  }
  const int rows = library.max_rows();
  for (const auto& [flag, wanted] :
       {std::pair("--parallel", options.num_samples), std::pair("--beams", options.num_beams)}) {
    if (wanted <= rows) continue;
    throw Error(ExitCode::kUsage, fmt::format("{}: expected at most {}, got {}: {} takes {} row{} a step",
                                              flag, rows, wanted, library.path(), rows, rows > 1 ? "s" : ""));
  }
  check_rows(options.drafts_flag(), options.num_drafts, library);
}

/// Says what works but surprises.
void warn(const Options& options, const HfConfig& config, const Tokenizer& tokenizer) {
  const fs::path folder = options.model;
  if (config.eos_ids.empty() && !options.ignore_stop) {
    say(options, fmt::format("{}: eos_token_id: expected one, {}got none: answers end at --predict",
                             config_file(folder).string(),
                             is_gguf(folder) ? "" : "here or in generation_config.json, "));
  }
  if (tokenizer.vocabulary_size() > config.facts.vocabulary) {
    say(options,
        fmt::format("{}: expected at most {} tokens, as config.json has, got {}: prompts with the others are "
                    "refused",
                    tokenizer_file(folder).string(), config.facts.vocabulary, tokenizer.vocabulary_size()));
  }
}

/// Whether a kernel that is named is the emulation's.
bool is_emulation(const std::string& kernel) {
  return !kernel.empty() && KernelLibrary::open(kernel).model().compute_capability == 0;
}

HfConfig open_config(const Options& options) {
  HfConfig config = HfConfig::open(options.model);
  round_weights(options.weights, config);
  return config;
}

}  // namespace

Sampling Options::sampling(const Sampling& defaults) const {
  Sampling chosen = sampling_flags.over(num_beams > 1 ? Sampling{} : defaults);
  chosen.seed = seed;
  chosen.num_drafts = num_drafts;
  if (!sampling_flags.temperature && chosen.temperature == 0 && num_samples > 1)
    chosen.temperature = kDefaultSampleTemperature;
  return chosen;
}

TextSide::TextSide(const Options& options)
    : config(open_config(options)),
      tokenizer(Tokenizer::open(options.model)),
      prompter(Prompter::open(tokenizer, options.model, options.template_file, options.raw)),
      style{.stop_tokens = options.ignore_stop ? std::vector<int>{} : config.eos_ids,
            .stops = options.stops,
            .skips_special = prompter.has_template()},
      sampling(options.sampling(default_sampling(config.generation))) {
  if (options.system && !prompter.has_template()) {
    throw Error(ExitCode::kUsage,
                fmt::format("--system-prompt: expected a model with a chat template, got {} (--chat-template "
                            "takes one)",
                            options.model));
  }
  warn(options, config, tokenizer);
}

/// What the cache holds of text without end.
int streaming_context(const Options& options, int limit) {
  const StreamingWindow window{std::min(options.sinks, limit), std::min(options.window, limit)};
  if (window.context() <= limit) return window.context();
  throw Error(
      ExitCode::kOutOfMemory,
      fmt::format(
          "--window: expected at most the model's {} tokens with {} sinks and {} tokens of room, got {}",
          limit, options.sinks, window.step(), options.window));
}

int choose_context(const Options& options, const HfConfig& config, const std::optional<DeviceInfo>& card) {
  const int limit = config.facts.max_context;
  ModelFacts kept = config.facts;
  kept.kv_bits = options.kv_bits.value_or(config.facts.kv_bits);
  if (options.window > 0) return streaming_context(options, limit);
  if (options.context > limit) {
    throw Error(
        ExitCode::kOutOfMemory,
        fmt::format("--ctx-size: expected at most the model's {} tokens, got {}", limit, options.context));
  }
  // A kernel that is named may be the emulation's, and the engine says what it lacks.
  if (card && options.kernel.empty()) {
    const bool is_flag = options.context > 0 && fitting_context(kept, card->free_bytes) > 0;
    check_memory(is_flag ? "--ctx-size" : config_path(options), kept, options.context, card->free_bytes);
  }
  if (options.context > 0) return options.context;
  if (!card) return std::min(Options::kEmulatedContext, limit);
  const int64_t spare = kSpareBytes + card->free_bytes / kSpareShare;
  const int most = fitting_context(kept, card->free_bytes - spare);
  return std::min({Options::kDefaultContext, limit, std::max(most, kKvPageTokens)});
}

int choose_context(const Options& options, const HfConfig& config) {
  std::optional<DeviceInfo> card = ask_card(options, config.facts);
  if (card && !options.draft.empty()) {
    // What the draft model's cache takes depends on how long the context is beside its weights.
    DeviceInfo beside_weights = *card;
    beside_weights.free_bytes -= draft_device_bytes(options, 0);
    card->free_bytes -= draft_device_bytes(options, choose_context(options, config, beside_weights));
  }
  return choose_context(options, config, card);
}

int64_t choose_pool_tokens(const Options& options, const HfConfig& config, int context, int64_t wanted,
                           const std::optional<DeviceInfo>& card) {
  constexpr int64_t kEmulatedContexts = 4;
  const int64_t least = round_up(context, kKvPageTokens) + kKvPageTokens;
  const bool is_emulated = !card || is_emulation(options.kernel);
  if (is_emulated) return std::max(least, wanted > 0 ? wanted : kEmulatedContexts * context);
  ModelFacts kept = config.facts;
  kept.kv_bits = options.kv_bits.value_or(config.facts.kv_bits);
  const int64_t spare = kSpareBytes + card->free_bytes / kSpareShare;
  const int64_t drafting = options.draft.empty() ? 0 : draft_device_bytes(options, context);
  const int64_t room = fitting_tokens(kept, card->free_bytes - spare - drafting);
  if (wanted > room) {
    throw Error(ExitCode::kOutOfMemory,
                fmt::format("--cache-tokens: expected at most {} tokens, as the card's free "
                            "memory holds beside the weights, got {}",
                            room, wanted));
  }
  return std::max(least, wanted > 0 ? wanted : room);
}

int64_t choose_pool_tokens(const Options& options, const HfConfig& config, int context, int64_t wanted) {
  return choose_pool_tokens(options, config, context, wanted, ask_card(options, config.facts));
}

int64_t choose_window_tokens(const ModelFacts& facts, int64_t pool_tokens) {
  return pages_of_many(facts, pool_tokens).windows * kKvPageTokens;
}

int choose_num_tokens(const Options& options, const TextSide& text, size_t prompt_tokens, int context) {
  if (options.window > 0) {
    const bool is_endless = options.fills_context || text.prompter.has_template();
    return options.num_tokens.value_or(is_endless ? Generator::kNoEnd : Options::kDefaultTokens);
  }
  const auto model_limit = static_cast<size_t>(text.config.facts.max_context);
  const auto cache_limit = static_cast<size_t>(context);
  const bool is_one = options.num_samples == 1 && options.num_beams == 1 && options.questions_file.empty();
  const bool takes_all = options.fills_context || (text.prompter.has_template() && is_one);
  if (!options.num_tokens && takes_all && prompt_tokens <= cache_limit) {
    return static_cast<int>(cache_limit - prompt_tokens) + 1;  // the last is not fed
  }
  const int num_tokens = options.num_tokens.value_or(takes_all ? 1 : Options::kDefaultTokens);
  const size_t needed = prompt_tokens + static_cast<size_t>(num_tokens) - 1;
  if (needed > model_limit) {
    throw Error(ExitCode::kOutOfMemory,
                fmt::format("{} and --predict: expected at most the model's {} tokens, got {} and {}",
                            options.document_file.empty() ? "--prompt" : "--document", model_limit,
                            prompt_tokens, num_tokens));
  }
  if (needed > cache_limit) {
    throw Error(
        ExitCode::kOutOfMemory,
        fmt::format("--ctx-size: expected at least {} ({} tokens of the prompt, {} to generate), got {}",
                    needed, prompt_tokens, num_tokens, context));
  }
  return num_tokens;
}

std::string describe_context(const Options& options, int context, int model_context, bool emulated) {
  if (options.window > 0) {
    return fmt::format("without end: the first {} tokens and the latest {} to {}", options.sinks,
                       options.window, context - options.sinks);
  }
  if (context == model_context) return fmt::format("{} tokens, all that the model takes", context);
  const bool lacks_memory = !emulated && context < Options::kDefaultContext;
  return fmt::format("{} of the model's {} tokens{}", context, model_context,
                     options.context > 0 ? ""
                     : lacks_memory      ? ", as the card's free memory holds"
                                         : ", see -c");
}

void plan_by_kept_costs(Engine& engine) {
  std::filesystem::path cache;
  try {
    cache = kernel_cache_folder();
  } catch (const Error&) {
    return;  // without a place for them none were kept
  }
  std::vector<std::optional<KernelCosts>> costs = read_measured_costs(engine.library(), cache);
  if (!costs.empty()) engine.plan_by(std::move(costs));
}

/// What is said of layers that keep less than the others.
std::string describe_windows(const Engine& engine) {
  const KvWindows& windows = engine.tree().windows();
  if (windows.window == 0 || windows.num_pages == engine.tree().num_pages()) return {};
  const ModelFacts& facts = engine.library().model().facts;
  return fmt::format("; {} of {} layers keep {} tokens of windows of {}", num_window_layers(facts),
                     facts.num_layers, windows.num_pages * kKvPageTokens, windows.window);
}

std::unique_ptr<Engine> open_engine(const Options& options, const HfConfig& config, int context,
                                    int64_t pool_tokens, int64_t window_tokens) {
  const TensorSource source = open_weights(options);
  // Before a kernel is made that no weights fit.
  const ModelTensors tensors =
      find_tensors(source, config.quantization_or_null(), config.facts, config.checkpoint);
  KernelLibrary library = KernelLibrary::open(kernel_of(options, config.facts));
  check_facts(library.model(), config.stated);
  check_flags(options, library);
  auto engine = std::make_unique<Engine>(
      std::move(library), EngineOptions{.context = context,
                                        .pool_tokens = pool_tokens,
                                        .window_tokens = options.window > 0 ? context : window_tokens,
                                        .device = options.device,
                                        .cards = options.cards});
  plan_by_kept_costs(*engine);
  const bool emulated = engine->library().model().compute_capability == 0;
  if (!options.verify) {
    say(options,
        fmt::format("Context: {}{}", describe_context(options, context, config.facts.max_context, emulated),
                    describe_windows(*engine)));
  }
  std::optional<Progress> progress;
  if (!options.say) progress.emplace("Weights", weight_load_bytes(engine->library()));
  engine->load(tensors, progress ? &*progress : nullptr);
  if (progress) progress->finish();
  for (const std::string& remark : tensors.remarks) say(options, remark);
  if (emulated && !options.verify) {
    const double step_s = take_fastest_kernel(*engine, seconds_of_step);
    say(options, describe_emulation(step_s, has_card()));
  }
  return engine;
}

}  // namespace soliton
