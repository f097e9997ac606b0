#include "runtime/server/ranked_tokens.h"

#include <algorithm>

#include "runtime/text/constrain/vocabulary.h"

namespace soliton {

float normaliser_of(std::span<const float> logits, const ChosenToken& known) {
  return logits[static_cast<size_t>(known.id)] - known.logprob.value_or(0);
}

std::vector<RankedToken> best_tokens(std::span<const float> logits, int count, const ChosenToken& known,
                                     std::span<const uint32_t> allowed) {
  const float normaliser = normaliser_of(logits, known);
  // Of the best so far the worst is the first: most tokens cost one comparison.
  const auto is_better = [&](int32_t a, int32_t b) {
    return logits[a] != logits[b] ? logits[a] > logits[b] : a < b;
  };
  std::vector<int32_t> ids;
  for (int32_t id = 0; id < std::ssize(logits); ++id) {
    if (!allowed.empty() && !constrain::is_in(allowed, id)) continue;
    if (std::ssize(ids) == count) {
      if (!is_better(id, ids.front())) continue;
      std::ranges::pop_heap(ids, is_better);
      ids.pop_back();
    }
    ids.push_back(id);
    std::ranges::push_heap(ids, is_better);
  }
  std::ranges::sort_heap(ids, is_better);
  std::vector<RankedToken> best;
  for (const int32_t id : ids) best.push_back({id, logits[static_cast<size_t>(id)] - normaliser});
  return best;
}

}  // namespace soliton
