#include "runtime/chat/speculate.h"

#include <algorithm>

#include "models/error.h"
#include "runtime/lookup/prompt_lookup.h"

namespace soliton {
namespace {

/// The tokens that a step has settled: those drafted on the path, but for row 0, and the one chosen behind
/// them.
std::vector<int32_t> settled_tokens(const TokenDraft& draft, const AcceptedDraft& accepted) {
  std::vector<int32_t> tokens;
  for (const int32_t row : std::span(accepted.path).subspan(1)) tokens.push_back(draft.tokens[row]);
  tokens.push_back(accepted.next_token);
  return tokens;
}

}  // namespace

double SpeculationResult::tokens_per_step() const {
  return step_tokens.empty() ? 0
                             : static_cast<double>(tokens.size()) / static_cast<double>(step_tokens.size());
}

SpeculationResult decode_speculatively(Engine& engine, const SpeculationRequest& request,
                                       const std::function<bool(int32_t)>& on_token) {
  if (request.prompt.empty()) throw Error(ExitCode::kUsage, "prompt: expected at least one token, got none");
  const int most_rows = request.max_drafts + 1;
  engine.kernel_for_rows(most_rows);  // throws
  const Branch branch = engine.main_branch();
  engine.feed(branch, request.prompt.first(request.prompt.size() - 1));

  PromptLookup lookup;
  lookup.append(request.cached);
  lookup.append(request.prompt);
  SpeculationResult result;
  bool goes_on = true;
  while (goes_on && std::ssize(result.tokens) < request.max_tokens) {
    // No more than could be kept: the step itself chooses one more.
    const int left = request.max_tokens - static_cast<int>(result.tokens.size());
    const TokenDraft draft = lookup.propose(std::min(request.max_drafts, left - 1));
    const bool is_plain = draft.tokens.size() == 1;
    if (!is_plain) engine.tree().draft(branch, draft.parents);
    const TreeResult step =
        engine.decode_tree({.tokens = draft.tokens, .rule = SliceRule::kFixed, .min_rows = most_rows});
    const AcceptedDraft accepted = accept_greedy(draft, step.chosen);
    const std::vector<int32_t> settled = settled_tokens(draft, accepted);
    size_t num_kept = 0;
    while (goes_on && num_kept < settled.size()) {
      const int32_t token = settled[num_kept++];
      result.tokens.push_back(token);
      result.hit_stop_token = std::find(request.stop_tokens.begin(), request.stop_tokens.end(), token) !=
                              request.stop_tokens.end();
      goes_on = (!on_token || on_token(token)) && !result.hit_stop_token;
    }
    // The last token kept was chosen by the path's row before it, and is fed by the next step. A plain step
    // has appended its one row itself.
    if (!is_plain) engine.tree().accept(branch, std::span(accepted.path).first(num_kept));
    lookup.append(std::span(settled).first(num_kept));
    result.step_tokens.push_back(static_cast<int>(num_kept));
    result.times_ns.push_back(step.times_ns.back());
  }
  return result;
}

}  // namespace soliton
