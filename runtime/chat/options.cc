#include "runtime/chat/options.h"

#include <algorithm>
#include <array>
#include <utility>

#include "models/weight_rounding.h"
#include "runtime/answer/draft_flags.h"
#include "runtime/answer/sampling_flags.h"
#include "runtime/hub/hub_flags.h"

namespace soliton {
namespace {

constexpr int kAsManyAsFit = -1;  // of --predict, as in llama.cpp
constexpr double kMaxLengthPenalty = 10;

const UsageHints kHints = {.usage =
                               "MODEL [-p PROMPT] [FLAGS], of which MODEL is a Hugging Face folder, a GGUF "
                               "file or a name such as org/name",
                           .flag_of_words = "-p"};

/// Flags of one dash and several letters, which CLI11 would read as -n with the value "p", and their names.
struct ShortName {
  std::string_view written;
  const char* meant;
};
constexpr std::array kShortNames = {ShortName{"-np", "--parallel"}, ShortName{"-sys", "--system-prompt"},
                                    ShortName{"-no-cnv", "--raw"}};

/// The arguments with long names for kShortNames; values stay what they are.
std::vector<char*> with_long_names(const CLI::App& app, int argc, char** argv) {
  static std::vector<std::string> names;  // what the arguments point to
  names.assign(argv, argv + argc);
  for (size_t i = 1; i < names.size(); ++i) {
    const auto found = std::find_if(kShortNames.begin(), kShortNames.end(),
                                    [&](const ShortName& name) { return name.written == names[i]; });
    if (found != kShortNames.end()) names[i] = found->meant;
    const bool is_flag = names[i].starts_with('-');
    const CLI::Option* option = is_flag ? app.get_option_no_throw(names[i]) : nullptr;
    if (option != nullptr && option->get_expected_min() > 0) ++i;  // its value
  }
  std::vector<char*> arguments;
  for (std::string& name : names) arguments.push_back(name.data());
  return arguments;
}

void add_model_options(CLI::App& app, Options& options, std::string& folder) {
  begin_group(app, "Model");
  app.add_option("MODEL", folder, "the same as --model")->check(not_empty());
  app.add_option(
         "-m,--model", options.model,
         "Hugging Face folder with config.json, tokenizer.json and safetensors, or a GGUF file, or the name "
         "of a model there, as Qwen/Qwen2.5-7B-Instruct, which is downloaded unless the cache has it")
      ->check(not_empty());
  add_hub_flags(app, options.hub);
  app.add_option("--weights", options.weights, kRoundedWeightsHelp)
      ->check(one_of({kRoundedWeights[0], kRoundedWeights[1]}));
  app.add_option("-k,--kernel", options.kernel,
                 "kernel library; else a fitting one is found, or made and kept")
      ->check(not_empty());
  CLI::Option* context =
      app.add_option(
             "-c,--ctx-size", options.context,
             fmt::format(
                 "tokens that the KV cache holds; else as many as the model takes and the card's free memory "
                 "holds, at most {} (without a card {})",
                 Options::kDefaultContext, Options::kEmulatedContext))
          ->check(at_least(1));
  CLI::Option* window =
      app.add_option(
             "--window", options.window,
             "for text without end: the cache keeps so many of the latest tokens, and the first few, and the "
             "model sees no others")
          ->check(at_least(1))
          ->excludes(context);
  app.add_option("--sinks", options.sinks, "with --window, how many of the first tokens")
      ->check(at_least(0))
      ->capture_default_str()
      ->needs(window);
  app.add_option(
         "--kv-bits", options.kv_bits,
         "of a key or value in the cache: 16; 8, half the bytes and less exact; or 32, which is exact "
         "but twice as many bytes; else the kernel's, or 16")
      ->check(one_of({"8", "16", "32"}));
  const auto device =
      app.add_option("--device", options.device, "GPU index")->check(at_least(0))->capture_default_str();
  app.add_option("--cards", options.cards, "GPU indices, a list: cards of one kind that share the model")
      ->excludes(device)
      ->delimiter(',')
      ->check(at_least(0));
  begin_group(app, "Checks in place of answers");
  app.add_flag("--verify", options.verify,
               "only compares the kernel with a plain forward pass on this machine's CPU");
  app.add_option("--verify-without", options.verify_without,
                 "the same, with zeros for this tensor in the kernel alone: has to end as NOT verified")
      ->check(not_empty());
  app.add_flag("--doctor", options.doctor,
               "only says what this machine has to make and run kernels with, and whether MODEL would run");
}

void add_prompt_options(CLI::App& app, Options& options) {
  begin_group(app, "Prompt");
  CLI::Option* prompt = app.add_option("-p,--prompt", options.prompt,
                                       "to be answered once; without it and a terminal, all of stdin is");
  app.add_option("-f,--file", options.prompt_file, "the same, from a file")
      ->check(not_empty())
      ->excludes(prompt);
  app.add_option("--messages", options.messages_file,
                 "JSON file of a conversation, as /save writes it, to be gone on with; - for stdin")
      ->check(not_empty());
  CLI::Option* document =
      app.add_option("--document", options.document_file, "text that --questions are on; it is read once")
          ->check(not_empty());
  CLI::Option* questions =
      app.add_option("--questions", options.questions_file,
                     "file of questions on the document, a line each, which are answered together")
          ->check(not_empty())
          ->needs(document);
  document->needs(questions);
  app.add_option("--system-prompt", options.system, "-sys: what the model is told first");
  app.add_option("--chat-template", options.template_file, "file of a template in place of the model's")
      ->check(not_empty());
  app.add_flag("--raw", options.raw, "-no-cnv: completes text and uses no chat template");
}

/// The tokens to generate, of which kAsManyAsFit is no number yet.
CLI::Validator token_count() {
  return CLI::Validator(
      [](const std::string& text) {
        if (text == std::to_string(kAsManyAsFit)) return std::string();
        const std::string complaint = complaint_of_integer(text, 1);
        return complaint.empty() ? complaint
                                 : fmt::format("{} ({}: as many as fit)", complaint, kAsManyAsFit);
      },
      "");
}

void add_answer_options(CLI::App& app, Options& options) {
  begin_group(app, "Answer");
  app.add_option(
         "-n,--predict", options.num_tokens,
         "tokens to generate at most, -1: as many as the context takes, with --window without end; else 256, "
         "or with a chat template as many")
      ->check(token_count());
  app.add_option("--stop", options.stops, "text that ends the answer and is not shown; any number of times")
      ->check(not_empty())
      ->allow_extra_args(false)
      ->take_all();
  CLI::Option* schema = app.add_option("--json-schema", options.schema_file,
                                       "file of a JSON schema, which the answer then fits")
                            ->check(not_empty());
  app.add_option("--grammar", options.grammar_file,
                 "file of a grammar in llama.cpp's notation (GBNF), of which the answer then is")
      ->check(not_empty())
      ->excludes(schema);
  app.add_option("--parallel", options.num_samples, "-np: samples of the prompt, decoded together")
      ->check(at_least(1))
      ->capture_default_str();
  CLI::Option* beams = app.add_option("--beams", options.num_beams,
                                      "searches for the answer of the best score with so many beams, as "
                                      "num_beams in transformers; 1: does "
                                      "not")
                           ->check(at_least(1))
                           ->capture_default_str();
  app.add_option("--length-penalty", options.length_penalty,
                 "a beam's score is its sum of logprobs over its length to this power")
      ->check(number_from(-kMaxLengthPenalty, kMaxLengthPenalty))
      ->capture_default_str()
      ->needs(beams);
  CLI::Option* json = app.add_flag("--json", options.json, "one JSON object on stdout instead of text");
  app.add_flag("--jsonl", options.jsonl, "one JSON object a token, as they come, and one of all at the end")
      ->excludes(json);
  app.add_flag("--ignore-eos", options.ignore_stop, "go on after the end-of-text token");
  add_sampling_flags(
      app, options.sampling_flags,
      "else as generation_config.json says, or 0, the best token, or 0.8 with several samples");
  app.add_option("--seed", options.seed, "of the first sample; sample i draws with seed + i")
      ->check(at_least<uint32_t>(0))
      ->capture_default_str();
  add_draft_flags(app, options);
}

/// A flag, and whether it was given.
using Given = std::pair<bool, const char*>;

void refuse(const char* flag, std::initializer_list<Given> others) {
  for (const auto& [is_given, other] : others) {
    if (is_given) throw Error(ExitCode::kUsage, fmt::format("{}: expected no {}, got both", flag, other));
  }
}

Given drafts(const Options& options) {
  return {options.num_drafts > 0, options.draft.empty() ? "--lookup" : "--draft"};
}

/// What an answer of a grammar excludes.
void check_grammar_flags(const Options& options) {
  if (options.schema_file.empty() && options.grammar_file.empty()) return;
  refuse(options.schema_file.empty() ? "--grammar" : "--json-schema",
         {{options.num_samples > 1, "--parallel"}, drafts(options), {options.ignore_stop, "--ignore-eos"}});
}

/// What a search with beams excludes.
void check_beam_flags(const Options& options) {
  if (options.num_beams == 1) return;
  const SamplingFlags& sampling = options.sampling_flags;
  refuse("--beams", {{options.num_samples > 1, "--parallel"},
                     drafts(options),
                     {!options.schema_file.empty(), "--json-schema"},
                     {!options.grammar_file.empty(), "--grammar"},
                     {!options.stops.empty(), "--stop"},
                     {options.jsonl, "--jsonl"},
                     {sampling.logprobs, "--logprobs"},
                     {sampling.temperature.value_or(0) > 0, "--temp"},
                     {sampling.repeat_penalty.value_or(1) != 1, "--repeat-penalty"}});
}

/// What text without end excludes.
void check_window_flags(const Options& options) {
  if (options.window == 0) return;
  refuse("--window", {{options.num_samples > 1, "--parallel"},
                      {options.num_beams > 1, "--beams"},
                      drafts(options),
                      {!options.schema_file.empty(), "--json-schema"},
                      {!options.grammar_file.empty(), "--grammar"},
                      {!options.questions_file.empty(), "--questions"}});
}

/// What questions on a document exclude.
void check_question_flags(const Options& options) {
  if (options.questions_file.empty()) return;
  refuse("--questions", {{options.prompt.has_value(), "--prompt"},
                         {!options.prompt_file.empty(), "--file"},
                         {!options.messages_file.empty(), "--messages"},
                         {options.num_samples > 1, "--parallel"},
                         {options.num_beams > 1, "--beams"},
                         drafts(options),
                         {!options.schema_file.empty(), "--json-schema"},
                         {!options.grammar_file.empty(), "--grammar"}});
}

/// Flags that exclude each other.
void check_flags(const Options& options) {
  if (options.num_drafts > 0 && options.num_samples > 1) {
    throw Error(ExitCode::kUsage, fmt::format("{}: expected one answer, got --parallel {}",
                                              drafts(options).second, options.num_samples));
  }
  check_grammar_flags(options);
  check_beam_flags(options);
  check_window_flags(options);
  check_question_flags(options);
  if (options.verify && (options.prompt || !options.prompt_file.empty() || !options.messages_file.empty() ||
                         !options.questions_file.empty())) {
    throw Error(ExitCode::kUsage,
                fmt::format("{}: expected no prompt, as it has its own, got one",
                            options.verify_without.empty() ? "--verify" : "--verify-without"));
  }
  if (options.raw && !options.template_file.empty()) {
    throw Error(ExitCode::kUsage, "--chat-template: expected no --raw, got both");
  }
  if (options.raw && !options.messages_file.empty()) {
    throw Error(ExitCode::kUsage, "--messages: expected no --raw, got both");
  }
  if (options.raw && options.system) {
    throw Error(ExitCode::kUsage, "--system-prompt: expected no --raw, got both");
  }
}

}  // namespace

std::optional<Options> parse_options(int argc, char** argv) {
  CLI::App app{"Chats at a terminal, or answers one prompt, with a whole-model kernel.", "soliton-chat"};
  Options options;
  std::string folder;
  add_model_options(app, options, folder);
  add_prompt_options(app, options);
  add_answer_options(app, options);
  std::vector<char*> arguments = with_long_names(app, argc, argv);
  if (!parse_command_line(app, argc, arguments.data(), kHints)) return std::nullopt;
  if (!options.model.empty() && !folder.empty()) throw unexpected_words(folder, kHints);
  if (options.model.empty()) options.model = folder;
  if (!options.verify_without.empty()) options.verify = true;
  options.fills_context = options.num_tokens == kAsManyAsFit;
  if (options.fills_context) options.num_tokens.reset();
  set_default_drafts(options);
  if (options.doctor) return options;
  if (options.model.empty()) throw Error(ExitCode::kUsage, "--model: expected a value, got nothing");
  check_flags(options);
  return options;
}

}  // namespace soliton
