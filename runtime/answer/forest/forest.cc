#include "runtime/answer/forest/forest.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <map>
#include <numeric>

#include "layout/page.h"
#include "models/error.h"

namespace soliton {
namespace {

constexpr int kLaunchTokens = 256;  // of a row: room is made for no more at a time
constexpr std::array<int32_t, 1> kOneToken = {-1};

}  // namespace

Forest::Forest(Engine& engine, int context)
    : engine_(engine),
      context_(context),
      cache_(engine.tree()),
      pace_(engine.max_rows(), engine.max_prompt_rows()) {
  engine.clear_tree();
}

int64_t Forest::cache_tokens() const {
  return int64_t{engine_.tree().num_pages()} * kKvPageTokens;
}

// ---- What can go wrong

/// What the device is asked for. Whatever else than a request that cannot be fails leaves nobody knows what behind:
/// from then on everything does.
template <class Act>
auto Forest::on_device(const Act& act) {
  if (failure_) throw *failure_;
  try {
    return act();
  } catch (const Error& error) {
    const bool is_refusal = error.code() == ExitCode::kOutOfMemory || error.code() == ExitCode::kMismatch ||
                            error.code() == ExitCode::kUsage;
    if (!is_refusal) failure_ = error;
    throw;
  } catch (const std::exception& error) {
    failure_ = Error(ExitCode::kInternal, error.what());
    throw;
  }
}

void Forest::check_tokens(std::span<const int32_t> tokens) const {
  const int vocabulary = engine_.library().model().facts.vocabulary;
  for (const int32_t token : tokens) {
    if (token >= 0 && token < vocabulary) continue;
    throw Error(ExitCode::kMismatch,
                fmt::format("tokens: expected ids from 0 to {}, got {}", vocabulary - 1, token));
  }
}

/// Can so many tokens be fed, and more behind them?
void Forest::check(const ForestText& text, size_t num_further) const {
  if (failure_) throw *failure_;
  if (text.tokens.empty()) throw Error(ExitCode::kUsage, "tokens: expected at least one, got none");
  const size_t needed = text.tokens.size() + num_further;
  if (needed > static_cast<size_t>(context_)) {
    throw Error(ExitCode::kOutOfMemory,
                fmt::format("context: expected at most {} tokens of a text, got {}", context_, needed));
  }
}

void Forest::make_room(const PageNeed& need) {
  if (cache_.make_room(need)) return;
  throw Error(
      ExitCode::kOutOfMemory,
      fmt::format("cache_tokens: expected room for {} tokens beside the {} of branches in use, got {} in all",
                  std::max(need.pages, need.window_pages) * kKvPageTokens,
                  cache_.num_pages_in_use() * kKvPageTokens, cache_tokens()));
}

// ---- Texts

/// Gives back what was reserved; no row.
void Forest::rest(ForestText& text) {
  KvTree& tree = engine_.tree();
  tree.truncate(*text.branch, text.num_fed);
  tree.draft(*text.branch, {});
}

int Forest::feed(ForestText& text, const std::function<bool()>& goes_on) {
  check(text, 0);
  int num_cached = text.num_fed;
  if (!text.branch) {
    const PrefixCache::Start start = cache_.start(text.tokens);
    text.branch = start.branch;
    num_cached = text.num_fed = start.num_cached;
    rest(text);
  }
  check_tokens(std::span(text.tokens).subspan(static_cast<size_t>(text.num_fed)));
  while (text.num_to_feed() > 0 && (!goes_on || goes_on())) {
    const int count = std::min(pace_.num_tokens(), text.num_to_feed());
    make_room(engine_.tree().missing(*text.branch, count));
    const auto chunk = std::span<const int32_t>(text.tokens).subspan(text.num_fed, count);
    const auto began = std::chrono::steady_clock::now();
    on_device([&] { engine_.feed(*text.branch, chunk); });
    pace_.took(count, std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count());
    cache_.append(*text.branch, chunk);
    text.num_fed += count;
    rest(text);
  }
  return num_cached;
}

ForestText Forest::fork(ForestText& text, const std::function<bool()>& goes_on) {
  feed(text, goes_on);
  ForestText forked{
      .tokens = text.tokens, .branch = cache_.branch_off(*text.branch), .num_fed = text.num_fed};
  rest(forked);
  return forked;
}

void Forest::release(ForestText& text) noexcept {
  try {
    if (text.branch && !failure_) cache_.release(*text.branch);
  } catch (const std::exception& error) {
    failure_ = Error(ExitCode::kInternal, error.what());
  }
  text.branch.reset();
  text.num_fed = 0;
}

// ---- Decoding

void Forest::decode(const ForestRequest& request) {
  for (const ForestRow& row : request.rows) {
    check(*row.text, static_cast<size_t>(row.max_tokens) - 1);
    check_tokens(std::span(row.text->tokens).subspan(static_cast<size_t>(row.text->num_fed)));
  }
  const auto most = static_cast<size_t>(engine_.max_rows());
  for (size_t first = 0; first < request.rows.size(); first += most) {
    decode_together(request, request.rows.subspan(first, std::min(most, request.rows.size() - first)));
  }
}

void Forest::decode_together(const ForestRequest& request, std::span<ForestRow> rows) {
  const auto goes_on = [&] { return !request.goes_on || request.goes_on(); };
  for (ForestRow& row : rows) {
    feed(*row.text, request.goes_on);
    if (row.constraint && request.goes_on)
      row.constraint->cancel_when([&request] { return !request.goes_on(); });
  }
  while (goes_on()) {
    std::vector<ForestRow*> live;
    for (ForestRow& row : rows) {
      if (!row.has_ended) live.push_back(&row);
    }
    if (live.empty()) return;
    try {
      launch(request, live);
    } catch (const constrain::Cancelled&) {  // while tokens that may follow were found
      return;
    }
  }
}

/// Makes room for as many steps as a launch is to have, and returns how many.
int Forest::reserve_steps(std::span<ForestRow*> rows) {
  const auto pages = [&](int num_steps) {
    PageNeed needed;
    for (const ForestRow* row : rows) needed += engine_.tree().missing(*row->text->branch, num_steps);
    return needed;
  };
  int num_steps = kLaunchTokens;
  for (const ForestRow* row : rows) num_steps = row->constraint ? 1 : std::min(num_steps, row->max_tokens);
  while (num_steps > 1 && !cache_.make_room(pages(num_steps))) num_steps /= 2;
  make_room(pages(num_steps));
  return num_steps;
}

/// One launch, which ends early where a row does.
void Forest::launch(const ForestRequest& request, std::span<ForestRow*> rows) {
  for (ForestRow* row : rows) {
    if (row->constraint) row->allowed = row->constraint->allowed();  // or throws, before anything changes
  }
  const int num_steps = reserve_steps(rows);
  std::map<Branch, ForestRow*> by_branch;
  for (ForestRow* row : rows) {
    by_branch[*row->text->branch] = row;
    engine_.tree().draft(*row->text->branch, kOneToken);
  }
  std::vector<ForestRow*> order;
  std::vector<int32_t> inputs;
  std::vector<RowSampling> draws;
  std::vector<std::vector<int32_t>> past;
  std::vector<std::span<const uint32_t>> allowed;
  for (const SnapshotRow& row : engine_.rows()) {
    order.push_back(by_branch.at(row.branch));
    inputs.push_back(order.back()->text->tokens.back());
    if (!request.sampling.is_greedy()) draws.push_back(row_sampling(request.sampling, order.back()->seed));
    if (request.sampling.repeat_penalty != 1) past.push_back(order.back()->text->tokens);
    if (order.back()->constraint) allowed.push_back(order.back()->allowed);
  }
  const auto step = [&] {
    return engine_.decode_tree({.tokens = inputs,
                                .num_steps = num_steps,
                                .stop_tokens = request.stop_tokens,
                                .sampling = draws,
                                .past = past,
                                .allowed = allowed,
                                .want_logprobs = request.sampling.logprobs,
                                .lone_row_alone = true},
                               [&](std::span<const int32_t> chosen) {
                                 bool wanted = true;
                                 for (size_t i = 0; i < order.size(); ++i) {
                                   ChosenToken token{chosen[i]};
                                   if (request.sampling.logprobs) token.logprob = engine_.step_logprobs()[i];
                                   wanted = take(*order[i], token) && wanted;
                                 }
                                 return wanted && (!request.goes_on || request.goes_on());
                               });
  };
  int num_done = 0;
  try {
    num_done = on_device(step).num_steps;
  } catch (...) {
    if (!failure_) std::for_each(rows.begin(), rows.end(), [&](ForestRow* row) { rest(*row->text); });
    throw;
  }
  for (ForestRow* row : order) {
    ForestText& text = *row->text;
    cache_.append(*text.branch, std::span<const int32_t>(text.tokens).subspan(text.num_fed, num_done));
    text.num_fed += num_done;
    rest(text);
  }
  for (ForestRow* row : order) follow_grammar(*row, !request.stop_tokens.empty());
}

/// Behind a launch of one token.
void Forest::follow_grammar(ForestRow& row, bool has_end_tokens) const {
  if (!row.constraint || row.has_ended) return;
  const int32_t token = row.text->tokens.back();
  if (!row.constraint->accept(token))
    throw Error(ExitCode::kInternal, fmt::format("grammar: expected a token that is allowed, got {}", token));
  row.is_whole = !has_end_tokens && row.constraint->ended();
  row.has_ended = row.is_whole;
}

bool Forest::take(ForestRow& row, const ChosenToken& token) const {
  row.text->tokens.push_back(token.id);
  const bool wanted = row.on_token(token);
  row.has_ended = --row.max_tokens == 0 || !wanted;
  return !row.has_ended;
}

// ---- Scoring

std::vector<float> Forest::score(ForestText& text, std::span<const int32_t> tokens,
                                 const std::function<bool()>& goes_on) {
  check(text, tokens.size() - 1);
  check_tokens(tokens);
  feed(text, goes_on);
  if (text.num_to_feed() > 0) return {};
  if (engine_.tree().windows().window == 0) return score_behind(text, tokens, goes_on);
  // Behind many tokens, windows may not reach the text's end any more: they go behind a copy of it.
  ForestText copy = fork(text, goes_on);
  try {
    std::vector<float> logprobs = score_behind(copy, tokens, goes_on);
    cache_.discard(*copy.branch);
    return logprobs;
  } catch (...) {
    if (!failure_) cache_.discard(*copy.branch);
    throw;
  }
}

/// Of a text that has been fed.
std::vector<float> Forest::score_behind(ForestText& text, std::span<const int32_t> tokens,
                                        const std::function<bool()>& goes_on) {
  std::vector<int32_t> inputs = {text.tokens.back()};
  inputs.insert(inputs.end(), tokens.begin(), tokens.end() - 1);
  std::vector<float> logprobs;
  const auto forget = [&] {
    if (engine_.tree().windows().window == 0) rest(text);
  };
  try {
    for (size_t done = 0; done < tokens.size() && (!goes_on || goes_on()); done = logprobs.size()) {
      const size_t count = std::min(tokens.size() - done, static_cast<size_t>(engine_.max_rows()));
      score_chunk(text, std::span(inputs).subspan(done, count), tokens.subspan(done, count), logprobs);
    }
  } catch (...) {
    if (!failure_) forget();
    throw;
  }
  forget();
  return logprobs;
}

/// Feeds tokens behind the text and the chunks before, in one step; the text forgets them by rest(), or goes.
void Forest::score_chunk(ForestText& text, std::span<const int32_t> inputs, std::span<const int32_t> wanted,
                         std::vector<float>& logprobs) {
  const Branch branch = *text.branch;
  const int count = static_cast<int>(inputs.size());
  make_room(engine_.tree().missing(branch, count));
  std::vector<int32_t> chain(inputs.size());
  std::iota(chain.begin(), chain.end(), -1);
  engine_.tree().draft(branch, chain);
  const TreeResult result = on_device(
      [&] { return engine_.decode_tree({.tokens = inputs, .want_logits = true, .lone_row_alone = true}); });
  const size_t vocabulary = result.logits.size() / inputs.size();
  for (size_t i = 0; i < inputs.size(); ++i) {
    const auto logits = std::span<const float>(result.logits).subspan(i * vocabulary, vocabulary);
    logprobs.push_back(logits[static_cast<size_t>(wanted[i])] - log_sum_exp(logits));
  }
  std::iota(chain.begin(), chain.end(), 0);
  if (count > 1) engine_.tree().accept(branch, chain);  // one new token has been taken already
}

}  // namespace soliton
