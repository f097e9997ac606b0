#include "models/kv_pages.h"

#include <algorithm>

#include "layout/model_shape.h"
#include "models/model_tables.h"

namespace soliton {

int64_t pages_of_tokens(int64_t num_tokens) {
  return (num_tokens + kKvPageTokens - 1) / kKvPageTokens;
}

// Page k may take the place of page j once the last token of j is before what the first query of the step that begins k sees:
// 64 j + 63 < 64 k - (slack - 1) - window + 1.
int window_reach(const ModelFacts& facts, int slack) {
  const int window = longest_window(facts);
  return window == 0 ? 0 : (window + slack + kKvPageTokens - 3) / kKvPageTokens + 1;
}

PoolPages pages_of_sequence(const ModelFacts& facts, int64_t num_tokens, int slack) {
  const int64_t all = pages_of_tokens(num_tokens);
  return {all, std::min<int64_t>(all, window_reach(facts, slack))};
}

PoolPages pages_of_many(const ModelFacts& facts, int64_t num_tokens) {
  constexpr int64_t kShare = 4;
  const int64_t all = pages_of_tokens(num_tokens);
  const int64_t reach = window_reach(facts);
  return {all, reach == 0 ? 0 : std::min(all, all / kShare + 2 * reach)};
}

int64_t pool_bytes(const ModelFacts& facts, const KvShape& kv, const PoolPages& pages) {
  const int windows = num_window_layers(facts);
  const int64_t others = kv.of_layers(kv.num_layers - windows).page_offset(pages.all, 0, 0);
  return windows == 0 ? others : others + kv.of_layers(windows).page_offset(pages.windows + 1, 0, 0);
}

int64_t context_bytes(const ModelFacts& facts, const PoolPages& pages) {
  return pool_bytes(facts, kv_shape(facts), pages) + pages.all * kKvPageTokens * rotary_token_bytes(facts);
}

int64_t window_bytes(const ModelFacts& facts) {
  const int reach = window_reach(facts);
  if (reach == 0) return 0;
  return kv_shape(facts).of_layers(num_window_layers(facts)).page_offset(reach + 1, 0, 0);
}

int64_t cached_bytes_read(const ModelFacts& facts, const KvShape& kv, int64_t position) {
  int64_t tokens = 0;  // of all layers together; a token's own key is in no page yet
  for (int layer = 0; layer < facts.num_layers; ++layer)
    tokens += position - first_seen(static_cast<int>(position), window_of_layer(facts, layer));
  return tokens * kv.of_layers(1).token_bytes();
}

}  // namespace soliton
