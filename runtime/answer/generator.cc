#include "runtime/answer/generator.h"

#include <algorithm>

#include "models/error.h"
#include "runtime/answer/feed_prompt.h"
#include "runtime/answer/speculate.h"
#include "runtime/engine/common_tokens.h"

namespace soliton {
EngineGenerator::EngineGenerator(std::unique_ptr<Engine> engine, int context,
                                 std::shared_ptr<TokenGrammar> grammar, std::unique_ptr<Drafter> draft_model)
    : engine_(std::move(engine)),
      context_(context),
      grammar_(std::move(grammar)),
      drafts_flag_(draft_model ? "--draft-max" : "--lookup"),
      drafter_(draft_model ? std::move(draft_model) : std::make_unique<LookupDrafter>()) {}

std::string drafts_remark(const Generated& generated) {
  if (generated.num_steps == 0) return {};
  return fmt::format(" | Drafts: {:.2f} tokens accepted/step, {} steps",
                     static_cast<double>(generated.tokens.size()) / static_cast<double>(generated.num_steps),
                     generated.num_steps);
}

void check_rows(const char* flag, int num_drafts, const KernelLibrary& library) {
  const int rows = library.max_rows();
  if (num_drafts == 0 || num_drafts < rows) return;
  throw Error(ExitCode::kUsage, fmt::format("{}: expected {}, got {}: {} takes {} row{} a step", flag,
                                            rows > 1 ? fmt::format("at most {}", rows - 1)
                                                     : "a kernel library for several rows",
                                            num_drafts, library.path(), rows, rows > 1 ? "s" : ""));
}

void EngineGenerator::check(const Sampling& sampling) const {
  check_rows(drafts_flag_, sampling.num_drafts, engine_->library());
  if (grammar_ && sampling.num_drafts > 0) {
    throw Error(ExitCode::kUsage, fmt::format("{}: expected answers without a grammar, got {}", drafts_flag_,
                                              sampling.num_drafts));
  }
}

Generated EngineGenerator::generate(const GenerateRequest& request, const OnToken& on_token) {
  if (request.prompt.empty()) throw Error(ExitCode::kUsage, "prompt: expected at least one token, got none");
  // Never the whole prompt: its last token must be fed to go on.
  const int num_cached =
      engine_->usable_position(num_common_tokens(cached_, request.prompt.first(request.prompt.size() - 1)));
  cached_.resize(static_cast<size_t>(num_cached));
  engine_->set_position(num_cached);
  const auto decode = grammar_                          ? &EngineGenerator::decode_by_grammar
                      : request.sampling.num_drafts > 0 ? &EngineGenerator::decode_drafts
                                                        : &EngineGenerator::decode_plainly;
  try {
    Generated generated;
    if (feed(request)) {
      GenerateRequest rest = request;
      rest.prompt = request.prompt.subspan(cached_.size());
      generated = (this->*decode)(rest, on_token);
      cached_.assign(request.prompt.begin(), request.prompt.end());
      cached_.insert(cached_.end(), generated.tokens.begin(), generated.tokens.end());
      cached_.resize(static_cast<size_t>(engine_->position()));  // the last token has not been fed
    }
    generated.num_cached = static_cast<size_t>(num_cached);
    return generated;
  } catch (...) {
    cached_.clear();
    engine_->reset_tree();
    throw;
  }
}

/// Feeds what is not cached of the prompt but its last step, of one token at least; false if it was given up.
bool EngineGenerator::feed(const GenerateRequest& request) {
  const std::span<const int32_t> left = request.prompt.subspan(cached_.size());
  const std::span<const int32_t> fed = left.first(left.size() - engine_->last_chunk_of(left.size()));
  const size_t num_cached = cached_.size();
  const auto tell = [&](size_t num_fed) {
    if (request.on_fed) request.on_fed(num_cached + num_fed);
  };
  tell(0);
  const size_t num_fed =
      feed_prompt(*engine_, engine_->main_branch(), fed, {.goes_on = request.goes_on, .on_fed = tell});
  cached_.insert(cached_.end(), fed.begin(), fed.begin() + static_cast<ptrdiff_t>(num_fed));
  return num_fed == fed.size() && (!request.goes_on || request.goes_on());
}

/// Greedy without a penalty is the kernels' own way to choose.
Generated EngineGenerator::decode_plainly(const GenerateRequest& request, const OnToken& on_token) {
  const Sampling& sampling = request.sampling;
  DecodeResult result = engine_->decode(
      {.tokens = request.prompt,
       .max_tokens = request.max_tokens,
       .stop_tokens = request.stop_tokens,
       .sampling = sampling.is_greedy() ? std::nullopt : std::optional(row_sampling(sampling)),
       .past = cached_,
       .want_logprobs = sampling.logprobs},
      [&](int32_t token) {
        const std::span<const float> logprobs = engine_->step_logprobs();
        return on_token({token, sampling.logprobs ? std::optional(logprobs[0]) : std::nullopt});
      });
  return {.tokens = std::move(result.tokens),
          .hit_stop_token = result.hit_stop_token,
          .times_ns = std::move(result.times_ns)};
}

/// The mask of a token is known when the one before is: launches of one.
Generated EngineGenerator::decode_by_grammar(const GenerateRequest& request, const OnToken& on_token) {
  Generated generated;
  grammar_->cancel_when([&] { return request.goes_on && !request.goes_on(); });
  try {
    follow_grammar(request, on_token, generated);
  } catch (const constrain::Cancelled&) {
  }
  grammar_->cancel_when({});
  return generated;
}

void EngineGenerator::follow_grammar(const GenerateRequest& request, const OnToken& on_token,
                                     Generated& generated) {
  TokenConstraint constraint(grammar_, request.stop_tokens);
  const Sampling& sampling = request.sampling;
  std::vector<int32_t> past = cached_;
  std::vector<int32_t> fed(request.prompt.begin(), request.prompt.end());
  bool wanted = true;
  while (wanted && !generated.hit_stop_token && std::ssize(generated.tokens) < request.max_tokens) {
    if (constraint.ended() && request.stop_tokens.empty()) break;  // nothing may follow, not even an end
    DecodeResult result = engine_->decode({.tokens = fed,
                                           .max_tokens = 1,
                                           .stop_tokens = request.stop_tokens,
                                           .sampling = row_sampling(sampling),
                                           .past = past,
                                           .allowed = constraint.allowed(),
                                           .want_logprobs = sampling.logprobs});
    const int32_t token = result.tokens[0];
    if (!constraint.accept(token))
      throw Error(ExitCode::kInternal,
                  fmt::format("grammar: expected a token that is allowed, got {}", token));
    generated.tokens.push_back(token);
    generated.times_ns.push_back(result.times_ns[0]);
    generated.hit_stop_token = result.hit_stop_token;
    past.insert(past.end(), fed.begin(), fed.end());
    fed.assign(1, token);
    wanted = on_token({token, sampling.logprobs ? std::optional(result.logprobs[0]) : std::nullopt});
  }
}

Generated EngineGenerator::decode_drafts(const GenerateRequest& request, const OnToken& on_token) {
  SpeculationResult result = decode_speculatively(*engine_, *drafter_,
                                                  {.prompt = request.prompt,
                                                   .max_tokens = request.max_tokens,
                                                   .stop_tokens = request.stop_tokens,
                                                   .sampling = request.sampling,
                                                   .cached = cached_,
                                                   .goes_on = request.goes_on},
                                                  on_token);
  if (result.step_tokens.empty()) return {};
  return {.tokens = std::move(result.tokens),
          .hit_stop_token = result.hit_stop_token,
          .first_step = static_cast<size_t>(result.step_tokens[0]),
          .num_steps = result.step_tokens.size(),
          .times_ns = std::move(result.times_ns)};
}

}  // namespace soliton
