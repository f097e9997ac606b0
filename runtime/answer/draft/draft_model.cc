#include "runtime/answer/draft/draft_model.h"

#include <algorithm>

#include "runtime/engine/common_tokens.h"

namespace soliton {
namespace {

// A model that is not much smaller than the large one may be meant to draft all the same; one that costs next to nothing
// still takes rows of the step that checks it.
constexpr double kLeastThreshold = 0.1;
constexpr double kMostThreshold = 0.5;

// What is known of the rate of acceptance is forgotten by and by; at first it is taken to be good.
constexpr double kKept = 0.8;  // of what was known, after a step
constexpr double kFirstTried = 5;
constexpr double kFirstRate = 0.8;

constexpr int kLeastPlain = 16;
constexpr int kMostPlain = 256;

}  // namespace

// ---- DraftLength

DraftLength::DraftLength(double cost)
    : threshold_(std::clamp(cost, kLeastThreshold, kMostThreshold)),
      accepted_(kFirstTried * kFirstRate),
      tried_(kFirstTried),
      num_plain_(kLeastPlain / 2) {}

int DraftLength::next(int max_drafts) {
  int length = 0;
  for (double reached = rate(); length < max_drafts && reached > threshold_; reached *= rate()) ++length;
  if (length > 0) {
    num_plain_ = kLeastPlain / 2;
    tries_again_ = false;
    return length;
  }
  tries_again_ = !tries_again_;
  if (!tries_again_) return 1;
  num_plain_ = std::min(2 * num_plain_, kMostPlain);
  return 0;
}

/// All that were accepted count as tried, and the one behind them.
void DraftLength::note(int num_drafted, int num_accepted) {
  accepted_ = kKept * accepted_ + num_accepted;
  tried_ = kKept * tried_ + std::min(num_accepted + 1, num_drafted);
}

// ---- DraftModel

DraftModel::DraftModel(std::unique_ptr<Engine> engine, int context, int vocabulary, double cost)
    : engine_(std::move(engine)),
      most_tokens_(static_cast<size_t>(context)),
      vocabulary_(vocabulary),
      length_(cost) {}

bool DraftModel::knows(std::span<const int32_t> tokens) const {
  const int vocabulary = engine_->library().model().facts.vocabulary;
  return std::all_of(tokens.begin(), tokens.end(), [&](int32_t token) { return token < vocabulary; });
}

void DraftModel::begin(std::span<const int32_t> context, const Sampling& sampling) {
  context_.assign(context.begin(), context.end());
  knows_context_ = knows(context);
  sampling_ = sampling;
  drafted_.clear();
}

void DraftModel::append(std::span<const int32_t> tokens) {
  context_.insert(context_.end(), tokens.begin(), tokens.end());
  knows_context_ = knows_context_ && knows(tokens);
  if (drafted_.empty()) return;
  length_.note(static_cast<int>(drafted_.size()), num_common_tokens(drafted_, tokens));
  drafted_.clear();
}

/// Whether the context is one for the draft model.
bool DraftModel::can_draft(int max_drafts) const {
  return knows_context_ && context_.size() + static_cast<size_t>(max_drafts) <= most_tokens_;
}

bool DraftModel::feed(int max_tokens) {
  if (!can_draft(0)) return true;
  const std::span<const int32_t> context = std::span(context_).first(context_.size() - 1);
  const int num_cached = engine_->usable_position(num_common_tokens(cached_, context));
  const int num_missing = static_cast<int>(context.size()) - num_cached;
  if (num_missing <= max_tokens) return true;
  try {
    engine_->set_position(num_cached);
    engine_->feed(engine_->main_branch(), context.subspan(num_cached, max_tokens));
  } catch (...) {
    forget();
    throw;
  }
  cached_.assign(context.begin(), context.begin() + num_cached + max_tokens);
  return num_missing - max_tokens <= max_tokens;
}

void DraftModel::forget() {
  cached_.clear();
  drafted_.clear();
  engine_->reset_tree();
}

Drafter::Proposal DraftModel::propose(int max_drafts) {
  Proposal proposal{.draft = {.tokens = {context_.back()}, .parents = {-1}}};
  if (max_drafts == 0) return proposal;
  if (!can_draft(max_drafts)) {
    proposal.num_plain = kMostPlain;
    return proposal;
  }
  const int num_drafts = length_.next(max_drafts);
  if (num_drafts == 0) {
    proposal.num_plain = length_.num_plain();
    return proposal;
  }
  drafted_ = decode(num_drafts);
  for (const int32_t token : drafted_) {
    proposal.draft.parents.push_back(static_cast<int32_t>(proposal.draft.tokens.size()) - 1);
    proposal.draft.tokens.push_back(token);
  }
  return proposal;
}

/// What the draft model says behind the context: at most so many tokens, up to the first that the large one does not know.
std::vector<int32_t> DraftModel::decode(int num_tokens) {
  const std::span<const int32_t> context = context_;
  const int num_cached =
      engine_->usable_position(num_common_tokens(cached_, context.first(context.size() - 1)));
  try {
    engine_->set_position(num_cached);
    std::vector<int32_t> tokens =
        engine_
            ->decode(
                {.tokens = context.subspan(num_cached),
                 .max_tokens = num_tokens,
                 .sampling = sampling_.is_greedy() ? std::nullopt : std::optional(row_sampling(sampling_)),
                 .past = context.first(num_cached)})
            .tokens;
    cached_ = context_;
    cached_.insert(cached_.end(), tokens.begin(), tokens.end() - 1);  // the last one has not been fed
    const auto unknown =
        std::find_if(tokens.begin(), tokens.end(), [&](int32_t token) { return token >= vocabulary_; });
    tokens.erase(unknown, tokens.end());
    return tokens;
  } catch (...) {
    forget();
    throw;
  }
}

}  // namespace soliton
