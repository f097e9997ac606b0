#include "runtime/server/service.h"

#include <algorithm>
#include <functional>

#include "models/strict_json.h"
#include "runtime/server/host_name.h"
#include "runtime/server/page/page.h"

namespace soliton {
namespace {

constexpr std::string_view kBearer = "bearer ";  // in whatever case

/// How long it takes says nothing of where they differ.
bool equal_in_constant_time(std::string_view given, std::string_view secret) {
  unsigned difference = given.size() == secret.size() ? 0 : 1;
  for (size_t i = 0; i < given.size(); ++i) {
    difference |=
        static_cast<unsigned char>(given[i]) ^ static_cast<unsigned char>(secret[i % secret.size()]);
  }
  return difference == 0;
}

/// What went wrong below, as clients are told it.
ApiError api_error(const Error& error) {
  switch (error.code()) {
    case ExitCode::kOutOfMemory:
      return ApiError(400, error.what(), {}, "context_length_exceeded");
    case ExitCode::kUsage:
    case ExitCode::kMismatch:
    case ExitCode::kBadFile:
      return ApiError(400, error.what());
    case ExitCode::kDevice:
      return ApiError(503, error.what(), {}, "unavailable");
    default:
      return ApiError(500, error.what());
  }
}

using Refuse = HttpResponse (*)(const ApiError&);

HttpResponse refuse_as_openai(const ApiError& error) {
  return error.response();
}

HttpResponse too_busy(Refuse refuse, const std::string& reason, int retry_after_s) {
  HttpResponse response = refuse(ApiError(429, reason, {}, "queue_full"));
  response.headers.push_back({"Retry-After", std::to_string(retry_after_s)});
  return response;
}

HttpReply answer_or_refuse(Refuse refuse, const std::function<HttpReply()>& answer) {
  try {
    return answer();
  } catch (const ApiError& error) {
    return refuse(error);
  } catch (const Busy& error) {
    return too_busy(refuse, error.what(), error.retry_after_s());
  } catch (const Error& error) {
    return refuse(api_error(error));
  } catch (const std::exception& error) {
    return refuse(ApiError(500, error.what()));
  }
}

/// To an answer that is there; those that come later have them already.
void add_headers(HttpReply& reply, const std::vector<std::pair<std::string, std::string>>& headers) {
  if (reply.pending == nullptr)
    reply.response.headers.insert(reply.response.headers.end(), headers.begin(), headers.end());
}

/// Whether a text begins so, but for the case of its letters.
bool begins_with(std::string_view text, std::string_view beginning) {
  const auto lower = [](char c) { return 'A' <= c && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; };
  return text.size() >= beginning.size() &&
         std::ranges::equal(text.substr(0, beginning.size()), beginning, {}, lower);
}

}  // namespace

/// A file of the page, which asks for the key itself. What it may load and run stands in page.html.
HttpResponse page_response(const PageFile& file) {
  return {.content_type = std::string(file.content_type),
          .body = std::string(file.text),
          .headers = {{"Cache-Control", "no-cache"},
                      {"Content-Security-Policy", "frame-ancestors 'none'"},
                      {"Referrer-Policy", "no-referrer"},
                      {"X-Content-Type-Options", "nosniff"}}};
}

Service::Service(const ServedText& text, Scheduler& scheduler, Metrics& metrics, ServiceOptions options)
    : text_(text),
      scheduler_(scheduler),
      metrics_(metrics),
      options_(std::move(options)),
      syntax_(find_chat_syntax(text.prompter, text.tokenizer, text.vocabulary)),
      vocabulary_(std::make_shared<LazyVocabulary>(
          [&tokenizer = text.tokenizer, size = text.vocabulary, markers = syntax_.marks.tokens()] {
            return std::make_shared<constrain::Vocabulary>(tokenizer, size, markers);
          })),
      pool_(options_.pool) {}

HttpResponse Service::refuse(int status, const std::string& reason) {
  return ApiError(status, reason).response();
}

HttpReply Service::answer(HttpRequest request) {
  const HttpHeaders headers = allowed_origin(request);
  request.path = routed_path(request.path);
  const std::string_view method = request.method == "HEAD" ? "GET" : std::string_view(request.method);
  const Route* const found = find_route(method, request.path);
  HttpReply reply = answer_or_refuse(found == nullptr ? refuse_as_openai : found->refuse,
                                     [&] { return route(request, found, headers); });
  add_headers(reply, headers);
  if (found != nullptr) reply.route = found->path;
  return reply;
}

/// By a route, or none.
HttpReply Service::route(HttpRequest& request, const Route* route, const HttpHeaders& headers) {
  check_host(request);
  if (request.method == "OPTIONS") return preflight(request);
  check_origin(request);
  const std::string_view method = request.method == "HEAD" ? "GET" : std::string_view(request.method);
  const PageFile* const file = method == "GET" ? find_page_file(request.path) : nullptr;
  if (file != nullptr) return page_response(*file);
  if (route == nullptr || route->needs_key) check_key(request);
  if (route == nullptr)
    throw ApiError(404, fmt::format("path: expected one that there is, got {}", in_quotes(request.path)));
  if (route->method == method && route->answer != nullptr) return route->answer(*this, request);
  if (route->method == method) return read_later(*route, std::move(request), headers);
  const std::string methods = methods_of(*route);
  HttpResponse response = route->refuse(
      ApiError(405, fmt::format("method: expected {}, got {}", methods, in_quotes(request.method))));
  response.headers.push_back({"Allow", methods});
  return response;
}

/// By a thread of the pool, which nobody else waits for.
HttpReply Service::read_later(const Route& route, HttpRequest request, const HttpHeaders& headers) {
  const auto reply = std::make_shared<PendingReply>();
  const std::string client = request.peer;
  const auto kept = std::make_shared<const HttpRequest>(std::move(request));
  const bool has_room = pool_.submit(client, reply, [this, &route, kept, headers, reply] {
    HttpReply made =
        answer_or_refuse(route.refuse, [&] { return route.answer_later(*this, *kept, headers); });
    add_headers(made, headers);
    if (made.pending != nullptr) {
      reply->hand_over(std::move(made.pending));
    } else {
      note(*kept, made.response.status);
      reply->finish(std::move(made.response));
    }
  });
  if (!has_room) return too_busy(route.refuse, "too many requests wait to be read; try again in 1 s", 1);
  return reply;
}

/// For the log, for want of whose memory no answer fails.
void Service::note(const HttpRequest& request, int status) const noexcept {
  if (!options_.log) return;
  try {
    options_.log({.id = {}, .client = request.peer, .path = request.path, .status = status});
  } catch (...) {
  }
}

// ---- Who may ask

/// Empty where the request names no origin, or one that is not allowed.
HttpHeaders Service::allowed_origin(const HttpRequest& request) const {
  if (request.origin.empty()) return {};
  const auto allows = [&](const std::string& origin) { return origin == "*" || origin == request.origin; };
  if (std::none_of(options_.origins.begin(), options_.origins.end(), allows)) return {};
  return {{"Access-Control-Allow-Origin", request.origin}, {"Vary", "Origin"}};
}

void Service::check_host(const HttpRequest& request) const {
  if (is_allowed_host(request.host, options_.hosts)) return;
  throw ApiError(403, "Host: expected an address, localhost or a name that --allowed-host allows, got " +
                          in_quotes(request.host));
}

/// A page of another origin may ask without reading the answer, unless it is refused.
void Service::check_origin(const HttpRequest& request) const {
  const bool is_own =
      request.origin == "http://" + request.host || request.origin == "https://" + request.host;
  if (request.origin.empty() || is_own || !allowed_origin(request).empty()) return;
  throw ApiError(403, "origin: expected one that --cors-origin allows, got " + in_quotes(request.origin));
}

HttpResponse Service::preflight(const HttpRequest& request) const {
  HttpResponse response{.status = 204, .content_type = {}};
  if (allowed_origin(request).empty()) return response;
  response.headers = {
      {"Access-Control-Allow-Methods", "GET, POST, DELETE"},
      {"Access-Control-Allow-Headers",
       request.request_headers.empty() ? "Content-Type, Authorization" : request.request_headers},
      {"Access-Control-Max-Age", "600"}};
  return response;
}

void Service::check_key(const HttpRequest& request) const {
  if (options_.api_key.empty()) return;
  std::string_view given = request.api_key;  // as Anthropic's clients send it
  if (begins_with(request.authorization, kBearer))
    given = std::string_view(request.authorization).substr(kBearer.size());
  given.remove_prefix(std::min(given.find_first_not_of(' '), given.size()));
  if (equal_in_constant_time(given, options_.api_key)) return;
  throw ApiError(401, "Authorization: expected Bearer and the key of this server, got another one or none",
                 {}, "invalid_api_key");
}

// ---- Completions

void Service::check_reads_text(const std::string& param) const {
  if (text_.reads_text) return;
  throw ApiError(
      400, param + ": expected a prompt that is a list of tokens, as random weights read no text, got text",
      param);
}

void Service::check_token(const std::string& param, int32_t token) const {
  if (token >= 0 && token < text_.vocabulary) return;
  throw ApiError(400,
                 fmt::format("{}: expected tokens from 0 to {}, got {}", param, text_.vocabulary - 1, token),
                 param);
}

std::vector<int32_t> Service::prompt_of(const std::string& text, bool adds_special,
                                        bool parses_special) const {
  check_reads_text("prompt");
  std::vector<int32_t> tokens;
  if (adds_special) tokens.assign(text_.tokenizer.prefix_ids().begin(), text_.tokenizer.prefix_ids().end());
  const std::vector<int> own = text_.tokenizer.encode(text, parses_special);
  tokens.insert(tokens.end(), own.begin(), own.end());
  return tokens;
}

CompletionSetup Service::setup(ApiRequest request) const {
  CompletionSetup setup{.request = std::move(request),
                        .prompts = {},
                        .stop_tokens = text_.stop_tokens,
                        .context = scheduler_.context(),
                        .syntax = syntax_};
  for (const int32_t token : setup.request.stop_tokens) check_token("stop_token_ids", token);
  if (setup.request.is_chat) {
    set_up_chat(setup);
    return setup;
  }
  for (const auto& prompt : setup.request.prompts) {
    const auto* text = std::get_if<std::string>(&prompt);
    setup.prompts.push_back(text != nullptr ? prompt_of(*text, true)
                                            : std::get<std::vector<int32_t>>(prompt));
    if (setup.prompts.back().empty())
      throw ApiError(400, "prompt: expected at least one token, got none", "prompt");
    for (const int32_t token : setup.prompts.back()) check_token("prompt", token);
    if (setup.request.echoes) {
      setup.prompt_texts.push_back(
          text != nullptr ? *text : text_.tokenizer.decode(std::get<std::vector<int32_t>>(prompt), true));
    }
  }
  return setup;
}

/// What an answer would have of the logprobs of prompts is as much as a body may have.
void Service::check_scored(const CompletionSetup& setup) {
  constexpr size_t kMost = 1'000'000;
  if (!setup.request.echoes || !setup.request.logprobs) return;
  size_t num_logprobs = 0;
  for (const std::vector<int32_t>& prompt : setup.prompts)
    num_logprobs += prompt.size() * static_cast<size_t>(setup.request.num_told) *
                    static_cast<size_t>(1 + setup.request.num_top_logprobs);
  if (num_logprobs > kMost)
    throw ApiError(
        400,
        fmt::format("logprobs: expected at most {} of the prompts together, got {}", kMost, num_logprobs),
        "logprobs");
}

/// What logit_bias leaves; null if that is all.
std::shared_ptr<const std::vector<uint32_t>> Service::allowed_tokens(const ApiRequest& request) const {
  if (request.forbidden.empty() && request.only.empty()) return {};
  constexpr int kBits = 32;
  const auto vocabulary = static_cast<size_t>(text_.vocabulary);
  std::vector<uint32_t> mask((vocabulary + kBits - 1) / kBits, request.only.empty() ? ~0u : 0u);
  const auto set = [&](int32_t token, bool is_allowed) {
    check_token("logit_bias", token);
    uint32_t& word = mask[static_cast<size_t>(token / kBits)];
    const uint32_t bit = 1u << token % kBits;
    word = is_allowed ? word | bit : word & ~bit;
  };
  for (const int32_t token : request.only) set(token, true);
  for (const int32_t token : request.forbidden) set(token, false);
  if (vocabulary % kBits != 0) mask.back() &= (1u << vocabulary % kBits) - 1;
  if (std::ranges::all_of(mask, [](uint32_t word) { return word == 0; }))
    throw ApiError(400, "logit_bias: expected some token to be left, got none", "logit_bias");
  return std::make_shared<const std::vector<uint32_t>>(std::move(mask));
}

/// Null if there is none.
std::shared_ptr<const LogitAdjustment> Service::adjustment_of(const ApiRequest& request) const {
  if (request.adjustment.is_none()) return {};
  for (const auto& [token, bias] : request.adjustment.biases) check_token("logit_bias", token);
  return std::make_shared<const LogitAdjustment>(request.adjustment);
}

/// Who shares what has been fed: those who know the key, else those of an address, unless all do; and of these, those
/// of a salt.
std::string Service::cache_scope(const HttpRequest& request, const std::string& salt) const {
  std::string scope;
  if (!options_.shares_cache) scope = options_.api_key.empty() ? "address " + request.peer : "key";
  return salt.empty() ? scope : scope + "\nsalt " + salt;
}

HttpReply Service::complete(ApiRequest request, const HttpRequest& http, const HttpHeaders& headers,
                            const MakeFormat& make_format) {
  if (ends_) throw ApiError(503, "the server has been told to end", {}, "shutdown");
  CompletionSetup made = setup(std::move(request));
  made.client = http.peer;
  made.cache_scope = cache_scope(http, made.request.cache_salt);
  made.headers = headers;
  made.allowed = allowed_tokens(made.request);
  made.adjustment = adjustment_of(made.request);
  if (options_.log) {
    made.on_answered = [log = options_.log, path = http.path](RequestRecord record) {
      record.path = path;
      log(record);
    };
  }
  add_grammar(made);
  check_scored(made);
  const size_t num_prompts = made.prompts.size();
  auto format = make_format(made.request);
  const auto completion = std::make_shared<Completion>(text_.tokenizer, std::move(made), std::move(format));
  std::vector<std::shared_ptr<Ticket>> tickets;
  const auto cancel = [this](const std::vector<std::shared_ptr<Ticket>>& submitted) {
    for (const std::shared_ptr<Ticket>& ticket : submitted) scheduler_.cancel(ticket);
  };
  try {
    for (size_t i = 0; i < num_prompts; ++i) tickets.push_back(scheduler_.submit(completion->generation(i)));
  } catch (...) {
    cancel(tickets);
    throw;
  }
  completion->reply()->on_abandon([cancel, tickets] { cancel(tickets); });
  return completion->reply();
}

HttpResponse Service::health() const {
  if (const std::optional<Error> failure = scheduler_.failure()) return api_error(*failure).response();
  if (ends_) return ApiError(503, "the server has been told to end", {}, "shutdown").response();
  return {.body = one_line({{"status", "ok"}})};
}

HttpResponse Service::metrics() const {
  return {.content_type = "text/plain; version=0.0.4", .body = metrics_.text()};
}

}  // namespace soliton
