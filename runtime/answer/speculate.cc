#include "runtime/answer/speculate.h"

#include <algorithm>

#include "models/error.h"

namespace soliton {
namespace {

using OnToken = std::function<bool(const ChosenToken&)>;

constexpr int kDraftChunk = 256;  // tokens that the drafter reads between two looks at whether it is to go on

class Speculation {
 public:
  Speculation(Engine& engine, Drafter& drafter, const SpeculationRequest& request, const OnToken& on_token)
      : engine_(engine),
        drafter_(drafter),
        request_(request),
        on_token_(on_token),
        most_rows_(request.sampling.num_drafts + 1) {}

  SpeculationResult run() {
    text_.assign(request_.cached.begin(), request_.cached.end());
    text_.insert(text_.end(), request_.prompt.begin(), request_.prompt.end());
    drafter_.begin(text_, request_.sampling);
    while (!drafter_.feed(kDraftChunk)) {
      if (request_.goes_on && !request_.goes_on()) return {};
    }
    while (goes_on_ && num_left() > 0) {
      // No more than could be kept: the step itself chooses one more.
      const Drafter::Proposal proposal =
          drafter_.propose(std::min(request_.sampling.num_drafts, num_left() - 1));
      const size_t num_before = result_.tokens.size();
      if (proposal.draft.tokens.size() > 1) {
        check(proposal.draft);
      } else {
        decode_plainly(std::min(proposal.num_plain, num_left()));
      }
      drafter_.append(std::span(result_.tokens).subspan(num_before));
    }
    return std::move(result_);
  }

 private:
  int num_left() const { return request_.max_tokens - static_cast<int>(result_.tokens.size()); }

  /// A token of the answer; goes_on_ says whether there is to be another one.
  void take(int32_t token, std::span<const float> logprobs, size_t row) {
    result_.tokens.push_back(token);
    text_.push_back(token);
    const auto stops = request_.stop_tokens;
    result_.hit_stop_token = std::find(stops.begin(), stops.end(), token) != stops.end();
    ChosenToken chosen{token};
    if (request_.sampling.logprobs) chosen.logprob = logprobs[row];
    goes_on_ = (!on_token_ || on_token_(chosen)) && !result_.hit_stop_token;
  }

  void decode_plainly(int num_steps) {
    const std::vector<int32_t> last = {text_.back()};
    const std::vector<RowSampling> sampling = sampling_of(1);
    const std::vector<std::vector<int32_t>> past(request_.sampling.repeat_penalty == 1 ? 0 : 1, text_);
    const TreeResult result = engine_.decode_tree({.tokens = last,
                                                   .num_steps = num_steps,
                                                   .stop_tokens = request_.stop_tokens,
                                                   .sampling = sampling,
                                                   .past = past,
                                                   .want_logprobs = request_.sampling.logprobs,
                                                   .rule = SliceRule::kFixed,
                                                   .min_rows = num_steps > 1 ? 1 : most_rows_,
                                                   .lone_row_alone = num_steps > 1},
                                                  [&](std::span<const int32_t> chosen) {
                                                    take(chosen[0], engine_.step_logprobs(), 0);
                                                    return goes_on_;
                                                  });
    result_.step_tokens.insert(result_.step_tokens.end(), result.times_ns.size(), 1);
    result_.times_ns.insert(result_.times_ns.end(), result.times_ns.begin(), result.times_ns.end());
  }

  void check(const TokenDraft& draft) {
    const Branch branch = engine_.main_branch();
    engine_.tree().draft(branch, draft.parents);
    const TreeResult step = engine_.decode_tree({.tokens = draft.tokens,
                                                 .sampling = sampling_of(draft.tokens.size()),
                                                 .past = past_of(draft),
                                                 .want_logprobs = request_.sampling.logprobs,
                                                 .rule = SliceRule::kFixed,
                                                 .min_rows = most_rows_});
    const AcceptedDraft accepted = accept_choices(draft, step.chosen);
    size_t num_kept = 0;
    while (goes_on_ && num_kept < accepted.path.size()) {
      const auto row = static_cast<size_t>(accepted.path[num_kept++]);
      take(step.chosen[row], step.logprobs, row);
    }
    // The last token kept was chosen by the path's row before it, and is fed by the next step.
    engine_.tree().accept(branch, std::span(accepted.path).first(num_kept));
    result_.step_tokens.push_back(static_cast<int>(num_kept));
    result_.times_ns.push_back(step.times_ns.back());
  }

  /// Greedy without a penalty is the kernels' own way to choose.
  std::vector<RowSampling> sampling_of(size_t rows) const {
    if (request_.sampling.is_greedy()) return {};
    return std::vector<RowSampling>(rows, row_sampling(request_.sampling));
  }

  /// [rows]: the tokens up to each row's own, if a penalty counts them.
  std::vector<std::vector<int32_t>> past_of(const TokenDraft& draft) const {
    std::vector<std::vector<int32_t>> past;
    if (request_.sampling.repeat_penalty == 1) return past;
    past.push_back(text_);
    for (size_t row = 1; row < draft.tokens.size(); ++row) {
      past.push_back(past[static_cast<size_t>(draft.parents[row])]);
      past.back().push_back(draft.tokens[row]);
    }
    return past;
  }

  Engine& engine_;
  Drafter& drafter_;
  const SpeculationRequest& request_;
  const OnToken& on_token_;
  int most_rows_;
  bool goes_on_ = true;
  std::vector<int32_t> text_;  // what is cached, the prompt, and the answer so far
  SpeculationResult result_;
};

}  // namespace

double SpeculationResult::tokens_per_step() const {
  return step_tokens.empty() ? 0
                             : static_cast<double>(tokens.size()) / static_cast<double>(step_tokens.size());
}

SpeculationResult decode_speculatively(Engine& engine, Drafter& drafter, const SpeculationRequest& request,
                                       const std::function<bool(const ChosenToken&)>& on_token) {
  if (request.prompt.empty()) throw Error(ExitCode::kUsage, "prompt: expected at least one token, got none");
  engine.kernel_for_rows(request.sampling.num_drafts + 1);  // throws
  engine.feed(engine.main_branch(), request.prompt.first(request.prompt.size() - 1));
  return Speculation(engine, drafter, request, on_token).run();
}

}  // namespace soliton
