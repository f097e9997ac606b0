#include "runtime/answer/streaming_generator.h"

#include <algorithm>
#include <utility>

#include "models/error.h"
#include "runtime/answer/feed_prompt.h"
#include "runtime/engine/common_tokens.h"
#include "runtime/engine/shift_keys.h"

namespace soliton {

int StreamingWindow::step() const {
  constexpr int kShare = 4;  // of the window: keys are turned that often on their way through it
  return round_up(ceil_divide(window, kShare), kKvPageTokens);
}

StreamingGenerator::StreamingGenerator(std::unique_ptr<Engine> engine, const StreamingWindow& window)
    : engine_(std::move(engine)), window_(window) {
  KeyShift::check(engine_->library().model().facts, "--window");
}

Generated StreamingGenerator::generate(const GenerateRequest& request, const OnToken& on_token) {
  if (request.prompt.empty()) throw Error(ExitCode::kUsage, "prompt: expected at least one token, got none");
  try {
    const size_t num_cached = keep_common(request.prompt);
    Generated generated;
    if (feed(request)) decode(request, on_token, generated);
    generated.num_cached = num_cached;
    return generated;
  } catch (...) {
    reset();
    throw;
  }
}

void StreamingGenerator::reset() {
  fed_.clear();
  num_forgotten_ = 0;
  engine_->reset_tree();
}

/// Returns how many tokens of the prompt need not be fed. Never all: its last token must be fed to go on.
size_t StreamingGenerator::keep_common(std::span<const int32_t> prompt) {
  const auto common = static_cast<size_t>(num_common_tokens(fed_, prompt.first(prompt.size() - 1)));
  const size_t first_there = num_forgotten_ == 0 ? 0 : static_cast<size_t>(window_.sinks) + num_forgotten_;
  if (common < first_there) {
    reset();
    return 0;
  }
  fed_.resize(common);
  engine_->set_position(static_cast<int>(common - num_forgotten_));
  return common;
}

/// Forgets the oldest tokens but the sinks if the cache is full.
void StreamingGenerator::make_room() {
  if (room() > 0) return;
  engine_->forget(window_.sinks, window_.step());
  num_forgotten_ += static_cast<size_t>(window_.step());
}

/// Feeds what is not cached of the prompt but its last token; false if it was given up.
bool StreamingGenerator::feed(const GenerateRequest& request) {
  const size_t end = request.prompt.size() - 1;
  if (request.on_fed) request.on_fed(fed_.size());
  while (fed_.size() < end) {
    make_room();
    const std::span<const int32_t> next =
        request.prompt.subspan(fed_.size(), std::min(end - fed_.size(), static_cast<size_t>(room())));
    const size_t before = fed_.size();
    const auto tell = [&](size_t num_fed) {
      if (request.on_fed) request.on_fed(before + num_fed);
    };
    const size_t num_fed =
        feed_prompt(*engine_, engine_->main_branch(), next, {.goes_on = request.goes_on, .on_fed = tell});
    fed_.insert(fed_.end(), next.begin(), next.begin() + static_cast<std::ptrdiff_t>(num_fed));
    if (num_fed < next.size()) return false;
  }
  return !request.goes_on || request.goes_on();
}

std::vector<int32_t> StreamingGenerator::in_cache() const {
  const auto sinks = static_cast<std::ptrdiff_t>(std::min(fed_.size(), static_cast<size_t>(window_.sinks)));
  std::vector<int32_t> tokens(fed_.begin(), fed_.begin() + sinks);
  const auto forgotten = static_cast<std::ptrdiff_t>(num_forgotten_);
  tokens.insert(tokens.end(), fed_.begin() + sinks + forgotten, fed_.end());
  return tokens;
}

/// In launches that each end where the cache is full.
void StreamingGenerator::decode(const GenerateRequest& request, const OnToken& on_token,
                                Generated& generated) {
  const Sampling& sampling = request.sampling;
  int32_t last = request.prompt.back();
  bool wanted = true;
  while (wanted && !generated.hit_stop_token && std::ssize(generated.tokens) < request.max_tokens) {
    make_room();
    // Positions come again: what is drawn there is not to.
    Sampling drawn = sampling;
    drawn.seed += static_cast<uint32_t>(num_forgotten_ / static_cast<size_t>(window_.step()));
    DecodeResult result = engine_->decode(
        {.tokens = {&last, 1},
         .max_tokens = std::min(request.max_tokens - static_cast<int>(generated.tokens.size()), room()),
         .stop_tokens = request.stop_tokens,
         .sampling = sampling.is_greedy() ? std::nullopt : std::optional(row_sampling(drawn)),
         .past = in_cache(),
         .want_logprobs = sampling.logprobs},
        [&](int32_t token) {
          const std::span<const float> logprobs = engine_->step_logprobs();
          return wanted = on_token({token, sampling.logprobs ? std::optional(logprobs[0]) : std::nullopt});
        });
    // The last token has not been fed.
    fed_.push_back(last);
    fed_.insert(fed_.end(), result.tokens.begin(), result.tokens.end() - 1);
    last = result.tokens.back();
    generated.tokens.insert(generated.tokens.end(), result.tokens.begin(), result.tokens.end());
    generated.times_ns.insert(generated.times_ns.end(), result.times_ns.begin(), result.times_ns.end());
    generated.hit_stop_token = result.hit_stop_token;
  }
}

}  // namespace soliton
