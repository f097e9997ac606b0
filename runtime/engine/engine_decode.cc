// The requests of an engine: what is checked before anything changes, which kernels do the work, and in how
// many launches.
#include <algorithm>
#include <numeric>

#include "layout/rows_policy.h"
#include "models/error.h"
#include "runtime/engine/engine.h"

namespace soliton {
namespace {

bool contains(std::span<const int32_t> tokens, int32_t token) {
  return std::find(tokens.begin(), tokens.end(), token) != tokens.end();
}

/// Whether tokens are drawn, or their probabilities wanted: more than the best logit must be found then.
bool draws(const DecodeRequest& request) {
  return request.sampling.has_value() || request.want_logprobs || !request.allowed.empty();
}

}  // namespace

std::vector<SnapshotRow> Engine::rows() const {
  TreeSnapshot snapshot;
  tree_.snapshot(snapshot);
  return snapshot.rows;
}

int Engine::kernel_for_rows(int rows) const {
  if (rows <= max_rows()) return kernel_for_prompt(rows);
  throw file_error(ExitCode::kMismatch, library_.path(),
                   "expected a kernel for {} rows a step, got one for {}", rows, max_rows());
}

int Engine::kernel_for_prompt(int rows) const {
  for (int kernel = 0; kernel < library_.num_kernels(); ++kernel) {
    const int takes = library_.descriptor(kernel).rows;
    if (takes > 1 && takes >= rows) return kernel;
  }
  throw file_error(ExitCode::kMismatch, library_.path(),
                   "expected a kernel for {} rows a step, got one for {}", rows, max_prompt_rows());
}

// ---- Checks

void Engine::check_tokens(std::span<const int32_t> tokens) const {
  if (!cards_[0].weights) throw Error(ExitCode::kInternal, "decode: expected weights to be loaded");
  const int vocabulary = library_.model().facts.vocabulary;
  for (const int32_t token : tokens) {
    if (token < 0 || token >= vocabulary) {
      throw Error(ExitCode::kMismatch,
                  fmt::format("prompt: expected tokens from 0 to {}, got {}", vocabulary - 1, token));
    }
  }
}

void Engine::check_decode(const DecodeRequest& request) const {
  if (request.tokens.empty()) throw Error(ExitCode::kUsage, "prompt: expected at least one token, got none");
  if (request.max_tokens < 1) {
    throw Error(ExitCode::kUsage, fmt::format("-n: expected at least 1 token, got {}", request.max_tokens));
  }
  check_tokens(request.tokens);
  check_tokens(request.past);
  if (!request.allowed.empty() && request.max_tokens > 1) {
    throw Error(ExitCode::kInternal,
                fmt::format("decode: expected 1 token where a mask says which, got {}", request.max_tokens));
  }
}

/// Throws what decode_tree() throws of a request that does not fit the rows of snapshot_.
void Engine::check_tree(const TreeRequest& request) const {
  check_tokens(request.tokens);
  const size_t rows = snapshot_.rows.size();
  if (rows == 0 || request.tokens.size() != rows) {
    throw Error(ExitCode::kInternal, fmt::format("decode: expected a token for each of {} rows, got {}", rows,
                                                 request.tokens.size()));
  }
  if (!request.sampling.empty() && request.sampling.size() != rows) {
    throw Error(ExitCode::kInternal, fmt::format("decode: expected sampling for each of {} rows, got {}",
                                                 rows, request.sampling.size()));
  }
  if (!request.past.empty() && request.past.size() != rows) {
    throw Error(ExitCode::kInternal, fmt::format("decode: expected past tokens for each of {} rows, got {}",
                                                 rows, request.past.size()));
  }
  if (!request.allowed.empty() && request.allowed.size() != rows) {
    throw Error(ExitCode::kInternal,
                fmt::format("decode: expected allowed tokens for each of {} rows, got {}", rows,
                            request.allowed.size()));
  }
  const bool one_step = request.skips_choice || !request.allowed.empty() ||
                        std::any_of(snapshot_.nodes.begin(), snapshot_.nodes.end(),
                                    [](const SnapshotNode& node) { return node.num_new > 1; });
  if (request.num_steps < 1 || (one_step && request.num_steps > 1)) {
    throw Error(ExitCode::kInternal, fmt::format("decode: steps: expected {}1, got {}",
                                                 one_step ? "" : "at least ", request.num_steps));
  }
  for (const SnapshotRow& row : snapshot_.rows) {
    if (row.position + request.num_steps <= context_) continue;
    throw Error(ExitCode::kOutOfMemory,
                fmt::format("context: expected at most {} tokens (see -c), got {} in branch {}", context_,
                            row.position + request.num_steps, row.branch));
  }
}

// ---- Feeding

void Engine::feed(Branch branch, std::span<const int32_t> tokens) {
  check_tokens(tokens);
  if (max_rows() == 1) tree_.page_table(branch);  // throws if it has none
  reserve(branch, static_cast<int>(tokens.size()));
  feed_all(branch, tokens, 0);
}

/// Feeds tokens that have been checked and fit.
void Engine::feed_all(Branch branch, std::span<const int32_t> tokens, uint32_t delay_seed) {
  const bool has_one_row = library_.descriptor().rows == 1;
  const bool fits_one_row = has_one_row && tree_.has_page_table(branch);
  while (!tokens.empty()) {
    const bool one_by_one = fits_one_row && (one_by_one_ || tokens.size() == 1);
    if (one_by_one || max_rows() == 1) {
      tree_.append(branch, 0);  // Its draft, if it has one, ends here.
      tree_.reserve(branch, static_cast<int>(tokens.size()));
      run({.only = branch, .request = {.tokens = tokens, .skips_choice = true, .delay_seed = delay_seed}});
      return;
    }
    const size_t rows = one_by_one_ ? 1 : chunk_of(tokens.size());
    feed_chunk(branch, {.tokens = tokens.first(rows), .skips_choice = true, .delay_seed = delay_seed});
    tokens = tokens.subspan(rows);
  }
}

/// A kernel of blocks of rows takes as long for some of them as for all: it is worth it if it is nearly full.
size_t Engine::chunk_of(size_t num_tokens) const {
  for (int kernel = library_.num_kernels() - 1; kernel >= 0; --kernel) {
    const auto rows = static_cast<size_t>(library_.descriptor(kernel).rows);
    if (row_blocks(static_cast<int>(rows)) == 1 || 4 * num_tokens >= 3 * rows)
      return std::min(num_tokens, rows);
  }
  return 1;
}

size_t Engine::last_chunk_of(size_t num_tokens) const {
  size_t last = num_tokens;
  while (chunk_of(last) < last) last -= chunk_of(last);
  return last;
}

/// Feeds the tokens of a request, each behind the one before, in one step of the kernel of the least rows that
/// suffice.
TreeResult Engine::feed_chunk(Branch branch, const TreeRequest& request) {
  const int rows = static_cast<int>(request.tokens.size());
  std::vector<int32_t> chain(rows);
  std::iota(chain.begin(), chain.end(), -1);
  tree_.draft(branch, chain);
  TreeResult result = run({.kernel = kernel_for_prompt(rows), .only = branch, .request = request});
  if (rows > 1) {  // A branch with one new token has taken it already.
    std::iota(chain.begin(), chain.end(), 0);
    tree_.accept(branch, chain);
  }
  return result;
}

std::vector<PhaseRecord> Engine::record_step(std::span<const int32_t> tokens) {
  check_tokens(tokens);
  reserve(main_, static_cast<int>(tokens.size()));
  return feed_chunk(main_, {.tokens = tokens, .skips_choice = true, .timeline_step = 0}).timeline;
}

// ---- Decoding in one branch

/// Whether the tokens of a request are fed in chunks of several.
bool Engine::takes_chunks(const DecodeRequest& request) const {
  const bool one_by_one = one_by_one_ && library_.descriptor().rows == 1;
  return max_rows() > 1 && request.timeline_step < 0 && !one_by_one;
}

DecodeResult Engine::decode(const DecodeRequest& request, const std::function<bool(int32_t)>& on_token) {
  check_decode(request);
  // For all launches, before the first one changes anything.
  reserve(main_, static_cast<int>(request.tokens.size()) + request.max_tokens - 1);
  DecodeResult result;
  if (!takes_chunks(request)) {
    generate(request, request.tokens, on_token, result);
    return result;
  }
  // The chunk that ends the prompt can choose the first token, but cannot draw it.
  const size_t num_last = draws(request) || one_by_one_ ? 1 : last_chunk_of(request.tokens.size());
  const size_t num_fed = request.tokens.size() - num_last;
  feed_all(main_, request.tokens.first(num_fed), request.delay_seed);
  if (num_last == 1) {
    generate(request, request.tokens.last(1), on_token, result);
    return result;
  }
  const TreeResult last = feed_chunk(
      main_, {.tokens = request.tokens.last(num_last),
              .want_logits = request.want_logits,
              .wanted_bands = row_bands(static_cast<int>(num_last) - 1, static_cast<int>(num_last)),
              .delay_seed = request.delay_seed});
  result.tokens = {last.chosen.back()};
  result.times_ns = last.times_ns;
  if (request.want_logits)
    result.logits.assign(last.logits.end() - library_.model().facts.vocabulary, last.logits.end());
  result.hit_stop_token = contains(request.stop_tokens, last.chosen.back());
  const bool wanted = !on_token || on_token(last.chosen.back());
  if (wanted && !result.hit_stop_token && request.max_tokens > 1)
    generate(request, std::span(last.chosen).last(1), on_token, result);
  return result;
}

/// Feeds `tokens`, the last ones of the request or the one chosen behind them, and adds what follows to the
/// result, up to the request's number of tokens.
void Engine::generate(const DecodeRequest& request, std::span<const int32_t> tokens,
                      const std::function<bool(int32_t)>& on_token, DecodeResult& result) {
  std::vector<RowSampling> sampling;
  std::vector<int32_t> past;
  if (draws(request)) {
    sampling.push_back(request.sampling.value_or(RowSampling{}));
    past.assign(request.past.begin(), request.past.end());
    past.insert(past.end(), request.tokens.begin(), request.tokens.end());
  }
  const int num_steps = request.max_tokens - static_cast<int>(result.tokens.size());
  tree_.append(main_, 0);  // Its draft, if it has one, ends here.
  // Whatever was reserved for it has been given back since.
  tree_.reserve(main_, static_cast<int>(tokens.size()) + num_steps - 1);
  const bool is_one_row =
      tokens.size() > 1 || request.timeline_step >= 0;  // only the first kernel does these
  TreeResult rest =
      run({.kernel = is_one_row ? 0 : generating_kernel_,
           .only = main_,
           .request = {.tokens = tokens,
                       .num_steps = num_steps,
                       .stop_tokens = request.stop_tokens,
                       .sampling = sampling,
                       .past = {&past, sampling.size()},
                       .allowed = {&request.allowed, request.allowed.empty() ? size_t{0} : size_t{1}},
                       .want_logits = request.want_logits,
                       .want_logprobs = request.want_logprobs,
                       .timeline_step = request.timeline_step,
                       .delay_seed = request.delay_seed}},
          [&](std::span<const int32_t> chosen) { return !on_token || on_token(chosen[0]); });
  result.tokens.insert(result.tokens.end(), rest.chosen.begin(), rest.chosen.end());
  result.times_ns.insert(result.times_ns.end(), rest.times_ns.begin(), rest.times_ns.end());
  result.logits.insert(result.logits.end(), rest.logits.begin(), rest.logits.end());
  result.logprobs = rest.logprobs;
  result.hit_stop_token = contains(request.stop_tokens, result.tokens.back());
  result.timeline = std::move(rest.timeline);
}

// ---- Decoding in all branches

TreeResult Engine::decode_tree(const TreeRequest& request, const OnStep& on_step) {
  tree_.snapshot(snapshot_);
  check_tree(request);
  const int num_rows = static_cast<int>(snapshot_.rows.size());
  const bool is_lone = request.lone_row_alone && num_rows == 1 && request.min_rows <= 1 &&
                       tree_.has_page_table(snapshot_.rows[0].branch);
  const int rows = std::max(request.min_rows, num_rows);
  const bool is_plain =
      request.num_steps == 1 && request.sampling.empty() && request.allowed.empty() && !request.want_logprobs;
  const int kernel = is_lone    ? generating_kernel_
                     : is_plain ? kernel_for_prompt(rows)
                                : kernel_for_rows(rows);
  tree_.reserve(request.num_steps);
  return run({.kernel = kernel, .request = request}, on_step);
}

}  // namespace soliton
