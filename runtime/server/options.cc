#include "runtime/server/options.h"

#include <cstdlib>
#include <limits>

#include "layout/page.h"
#include "models/weight_rounding.h"
#include "runtime/answer/draft_flags.h"
#include "runtime/answer/sampling_flags.h"
#include "runtime/hub/hub_flags.h"

namespace soliton {
namespace {

constexpr int kDefaultPort = 8080;
constexpr int64_t kMaxPort = 65535;
constexpr int64_t kMostBodyBytes = int64_t{1} << 32;
constexpr int64_t kMostCacheTokens = int64_t{std::numeric_limits<int32_t>::max()} * kKvPageTokens;

const UsageHints kServerHints = {.usage =
                                     "MODEL [FLAGS], of which MODEL is a Hugging Face folder, a GGUF file or "
                                     "a name such as org/name, or: -k KERNEL "
                                     "--random-weights [FLAGS]"};

CLI::Validator integer_from(int64_t min, int64_t max) {
  return CLI::Validator(
      [min, max](const std::string& text) {
        const std::string complaint = complaint_of_integer(text, min);
        const bool is_in_range = complaint.empty() && std::stoll(text) <= max;
        return is_in_range
                   ? std::string()
                   : fmt::format("expected an integer from {} to {}, got {}", min, max, in_quotes(text));
      },
      "");
}

void add_model_flags(CLI::App& app, ServerOptions& options) {
  begin_group(app, "Model");
  const auto model = app.add_option("MODEL", options.model.model,
                                    "Hugging Face folder or GGUF file, or the name of a model there, which "
                                    "is downloaded unless the cache has "
                                    "it")
                         ->check(not_empty());
  add_hub_flags(app, options.model.hub);
  app.add_option("--weights", options.model.weights, kRoundedWeightsHelp)
      ->check(one_of({kRoundedWeights[0], kRoundedWeights[1]}));
  app.add_option("-k,--kernel", options.model.kernel,
                 "kernel library; else a fitting one is found, or made and kept")
      ->check(not_empty());
  app.add_option(
         "-c,--ctx-size", options.model.context,
         fmt::format("tokens of one answer and its prompt at most; else as many as the model takes and the "
                     "card's free memory holds, at most {} (without a card {})",
                     Options::kDefaultContext, Options::kEmulatedContext))
      ->check(at_least(1));
  app.add_option(
         "--cache-tokens", options.cache_tokens,
         "tokens that the KV pages hold, of all requests together, a context and a page (64) at least; else "
         "as many as the card's free memory holds, and in emulation those of four contexts")
      ->check(integer_from(1, kMostCacheTokens));
  const auto kv_bits = app.add_option("--kv-bits", options.model.kv_bits,
                                      "of a key or value in the cache: 8, 16 or 32; else the kernel's, or 16")
                           ->check(one_of({"8", "16", "32"}));
  const auto device = app.add_option("--device", options.model.device, "GPU index")
                          ->check(at_least(0))
                          ->capture_default_str();
  app.add_option("--cards", options.model.cards,
                 "GPU indices, a list: cards of one kind that share the model")
      ->excludes(device)
      ->delimiter(',')
      ->check(at_least(0));
  const auto chat_template = app.add_option("--chat-template", options.model.template_file,
                                            "file of a template in place of the model's")
                                 ->check(not_empty());
  const auto random = app.add_flag("--random-weights", options.random_weights,
                                   "a kernel and no model, for measuring: prompts are lists of tokens, and "
                                   "answers the numbers of theirs");
  app.add_option("--alias", options.service.model, "what answers call the model; else its folder's name")
      ->check(not_empty());
  add_draft_flags(app, options.model);
  const auto rounded = app.get_option("--weights");
  for (const auto other : {model, rounded, kv_bits, chat_template, app.get_option("--draft")})
    random->excludes(other);
}

void add_answer_flags(CLI::App& app, ServerOptions& options) {
  begin_group(app, "Answers");
  app.add_option_function<std::string>(
         "--reasoning-format",
         [&](const std::string& name) {
           options.service.reasoning = name == "none" ? ReasoningFormat::kInText : ReasoningFormat::kApart;
         },
         "where answers have a model's reasoning if a request does not say: deepseek, in reasoning_content, "
         "or none, in the content as the "
         "model writes it; auto is deepseek")
      ->check(one_of({"auto", "deepseek", "none"}))
      ->default_str("auto");
  add_sampling_flags(
      app, options.model.sampling_flags,
      "where a request does not say; else as generation_config.json says, or 0, the best token");
}

void add_http_flags(CLI::App& app, ServerOptions& options) {
  begin_group(app, "Clients");
  app.add_option("--host", options.http.host, "address to listen at; 127.0.0.1: from this machine alone")
      ->check(not_empty())
      ->capture_default_str();
  app.add_option("--port", options.http.port, "port to listen at; 0: any that is free")
      ->check(integer_from(0, kMaxPort))
      ->capture_default_str();
  app.add_option("--api-key", options.service.api_key,
                 "that clients must send; better in SOLITON_API_KEY, as others see the flags of programs")
      ->check(not_empty());
  app.add_option("--cors-origin", options.service.origins,
                 "origin of web pages that may ask, or *; any number of times")
      ->check(not_empty())
      ->allow_extra_args(false)
      ->take_all();
  app.add_option(
         "--allowed-host", options.service.hosts,
         "name by which clients may ask, or *; any number of times. Addresses, localhost, --host and the "
         "name of this machine always are")
      ->check(not_empty())
      ->allow_extra_args(false)
      ->take_all();
  app.add_option("--max-body", options.http.limits.body_bytes, "bytes of a request's body at most")
      ->check(integer_from(1, kMostBodyBytes))
      ->capture_default_str();
  app.add_option("--max-connections", options.http.limits.connections,
                 "at once; who comes then takes the place of one that is slow, or is refused (503)")
      ->check(at_least(1))
      ->capture_default_str();
  app.add_option_function<std::string>(
         "--log-format",
         [&](const std::string& name) {
           options.log = name == "none"   ? LogFormat::kNone
                         : name == "json" ? LogFormat::kJson
                                          : LogFormat::kText;
         },
         "of the line for each request, to stderr: text, json or none. Texts of clients are never in it")
      ->check(one_of({"text", "json", "none"}))
      ->default_str("text");
  app.add_option_function<int>(
         "--grace", [&](int seconds) { options.grace = std::chrono::seconds(seconds); },
         "seconds that answers under way have when the server is told to end")
      ->check(at_least(0))
      ->default_str(fmt::format("{}", options.grace.count()));
}

void add_scheduler_flags(CLI::App& app, ServerOptions& options) {
  begin_group(app, "Requests together");
  app.add_option("--parallel", options.scheduler.max_rows,
                 "samples that are decoded together at most; else as many as there is a kernel for")
      ->check(at_least(1));
  app.add_option("--queue", options.scheduler.max_waiting,
                 "samples that may wait; further requests are refused (429)")
      ->check(at_least(1))
      ->capture_default_str();
  app.add_flag(
      "--shared-cache", options.service.shares_cache,
      "what has been fed of a prompt is cached for all clients, not only for those of its key, or its "
      "address where there is no key: the time that prompts take tells what others have sent");
  app.add_option("--launch-tokens", options.scheduler.launch_tokens,
                 "tokens of each of several rows in one launch of the kernel at most")
      ->check(at_least(1))
      ->capture_default_str();
  app.add_option_function<int>(
         "--max-gap", [&](int ms) { options.scheduler.max_gap = std::chrono::milliseconds(ms); },
         "ms between two tokens of an answer at most while prompts of others are read: in shorter steps, and "
         "so "
         "later; 0: steps are as long as reads most prompts")
      ->check(at_least(0))
      ->default_str("0");
}

}  // namespace

std::optional<ServerOptions> parse_server_options(int argc, char** argv) {
  CLI::App app{"Serves OpenAI's API: many requests, decoded together by a whole-model kernel.",
               "soliton-server"};
  ServerOptions options;
  options.http.port = kDefaultPort;
  add_model_flags(app, options);
  add_http_flags(app, options);
  add_scheduler_flags(app, options);
  add_answer_flags(app, options);
  if (!parse_command_line(app, argc, argv, kServerHints)) return std::nullopt;
  set_default_drafts(options.model);
  options.scheduler.num_drafts = options.model.num_drafts;
  if (options.random_weights && options.model.kernel.empty())
    throw Error(ExitCode::kUsage, "--kernel: expected a value with --random-weights, got nothing");
  if (options.model.model.empty() && !options.random_weights)
    throw Error(ExitCode::kUsage, "MODEL: expected a value, got nothing");
  if (options.service.api_key.empty()) {
    if (const char* key = std::getenv("SOLITON_API_KEY")) options.service.api_key = key;
  }
  return options;
}

}  // namespace soliton
