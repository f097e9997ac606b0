// The choice of tokens by those who finish the tiles of logits, and what it means for the step that follows.
#pragma once

#include "ops/final_logit.cuh"
#include "ops/sampling.cuh"
#include "rows/finisher.cuh"
#include "rows/output_biases.cuh"

namespace soliton::rows {

template <const KernelPlan& kPlan>
class Choice : public Finisher<kPlan> {
  using Base = Finisher<kPlan>;

 public:
  using Base::Base;

 protected:
  using Base::context_, Base::worker_, Base::scale_;
  using Base::is_live, Base::team, Base::quarter, Base::row, Base::logits_row, Base::best, Base::set_best;
  using Base::kQuarters;
  using typename Base::Sums;

  /// The token of a row in this step; `stop`: is it, or is something else, a reason to end?
  SOLITON_DEVICE int find_token(bool& stop) const {
    if (context_.step == 0) return is_live() ? load_constant(context_.params.input_tokens + row()) : 0;
    if (context_.params.skips_choice != 0) return 0;
    const uint64_t* candidates = context_.template workspace<uint64_t>(kPlan.candidates().offset);
    stop = stop || load_global(candidates + kPlan.rows * kPlan.block_ctas()) != 0;
    const bool is_wanted = context_.row_block() == context_.logits_block();
    const int token = is_wanted ? choose(candidates + place_of_candidates(row())) : 0;
    if (is_live()) {
      stop = stop || (is_wanted && is_last_token(context_.params, token));
      if (context_.tells_of_rows() && team() == 0 && quarter() == 0) {
        const SamplingView& sampling = context_.params.sampling;
        if (sampling.logprobs != nullptr)
          record_logprob<kPlan>(context_.params, row(), token, (context_.step - 1) * kPlan.rows + row());
        store_system(context_.params.records + (context_.step - 1) * kPlan.rows + row(),
                     static_cast<uint64_t>(time_ns()) << 32 | static_cast<uint32_t>(token));
      }
    }
    return token;
  }

  SOLITON_DEVICE void candidate(const MatrixPhase& phase, int tile, const Sums& v) {
    const LaunchParams& params = context_.params;
    const int row = logits_row();
    if (row >= params.tree.num_rows) return;
    float4 bias = make_float4(0, 0, 0, 0);
    if constexpr (kPlan.model.logit_biases)
      bias = OutputBiases<kPlan>(context_, 0).of_logits(tile, quarter());
    const float biases[] = {bias.x, bias.y, bias.z, bias.w};
    const float logits[] = {v.low.x, v.low.y, v.high.x, v.high.y};
    SOLITON_UNROLL
    for (int i = 0; i < 4; ++i) {
      const int token = tile * kTileRows + quarter() * 2 + i / 2 * 8 + i % 2;
      float sum = logits[i] * scale_;
      if constexpr (kPlan.model.logit_biases) sum += biases[i];
      const float logit = final_logit<kPlan>(sum);
      if (params.sampling.rows != nullptr) keep_any_logit(params.sampling, row, token, logit);
      if (token >= phase.rows) continue;
      if (params.logits != nullptr) {
        const int64_t line = static_cast<int64_t>(context_.step) * kPlan.rows + row;
        store_global(params.logits + line * phase.rows + token, logit);
      }
      const uint64_t proposed = propose(logit, logit, token);
      if (proposed > best()) set_best(proposed);
    }
  }

  /// Publishes the best candidates of this CTA, but for rows that are drawn for: see Worker::draw().
  SOLITON_DEVICE void end_choice() const {
    if (context_.params.skips_choice != 0) return;
    uint64_t* candidates = context_.template workspace<uint64_t>(kPlan.candidates().offset);
    const uint64_t most = best_of_quarters(best());
    const int row = logits_row();
    const bool draws = row < context_.params.tree.num_rows && context_.params.sampling.rows != nullptr;
    if (quarter() == 0 && !draws)
      context_.publish(candidates + place_of_candidates(row) + context_.logits_cta(), most);
    if (context_.is_first_cta() && worker_ == 0 && context_.lane == 0) {
      context_.publish(candidates + kPlan.rows * kPlan.block_ctas(),
                       static_cast<uint64_t>(load_system(context_.params.stop_request) != 0));
    }
  }

  /// Where those of a row begin, of each CTA that finds its logits one.
  SOLITON_DEVICE int place_of_candidates(int row) const {
    const int first = context_.shares_logits() ? context_.logits_block() * kBlockRows<kPlan> : 0;
    return (row - first) * context_.logits_ctas();
  }

  static SOLITON_DEVICE uint64_t best_of_quarters(uint64_t best) {
    for (int mask = 1; mask < kQuarters; mask *= 2) {
      const uint64_t other = shuffle_xor(best, mask);
      best = other > best ? other : best;
    }
    return best;
  }

  /// The best of all CTAs' candidates for a row; all lanes that share the row return it.
  SOLITON_DEVICE int choose(const uint64_t* candidates) const {
    uint64_t best = kNoCandidate;
    SOLITON_UNROLL_BY(8)
    for (int i = quarter(); i < context_.logits_ctas(); i += kQuarters) {
      const uint64_t candidate = load_global(candidates + i);
      best = candidate > best ? candidate : best;
    }
    best = best_of_quarters(best);
    return best == kNoCandidate ? 0 : candidate_token(best);  // none: of a row that is not there
  }
};

}  // namespace soliton::rows
