// How many pages the KV cache of a model has, and how many bytes these take.
#include "models/kv_pages.h"

#include <gtest/gtest.h>

#include "models/model_config.h"
#include "models/model_tables.h"

namespace soliton {
namespace {

constexpr int kLayers = 32;

/// Llama-3.1-8B with a window of so many keys in its first layers: its KV heads are those of Mistral 7B.
ModelFacts with_windows(int32_t window, int num_layers) {
  ModelFacts facts =
      load_model_config(std::filesystem::path(SOLITON_SOURCE_DIR) / "models" / "llama-3.1-8b.yaml").facts;
  for (int layer = 0; layer < num_layers; ++layer) facts.layer_window[layer] = window;
  return facts;
}

/// Of a page of so many layers: 8 heads of 128 dims, of which keys and values are f16.
constexpr int64_t page_bytes(int num_layers) {
  return int64_t{64} * num_layers * 8 * 128 * 2 * 2;
}

TEST(KvPages, WithoutWindowsAllPagesAreOfAllLayers) {
  const ModelFacts facts = with_windows(0, 0);
  EXPECT_EQ(window_reach(facts), 0);
  const PoolPages pages = pages_of_sequence(facts, 131072);
  EXPECT_EQ(pages.all, 2048);
  EXPECT_EQ(pages.windows, 0);
  EXPECT_EQ(pool_bytes(facts, kv_shape(facts), pages), 2048 * page_bytes(kLayers));
  EXPECT_EQ(window_bytes(facts), 0);
  EXPECT_EQ(pages_of_many(facts, 131072).windows, 0);
}

// By counting: from the first page that holds a key that some query of a step sees to the first behind it that may take its
// place, wherever the step begins.
TEST(KvPages, AWindowReachesAsManyPagesAsQueriesSee) {
  for (const int window : {1, 2, 40, 63, 64, 65, 128, 4096}) {
    for (const int slack : {1, 2, 8, 64, 1024}) {
      int reach = 0;
      for (int begun = 200; begun < 202; ++begun) {  // the page
        // The step that begins it has its last token there at first.
        const int least_query = begun * kKvPageTokens - (slack - 1);
        int page = begun - 1;
        while (page * kKvPageTokens + kKvPageTokens - 1 >= least_query - window + 1) --page;
        reach = std::max(reach, begun - page);
      }
      EXPECT_EQ(window_reach(with_windows(window, 1), slack), reach) << window << ", " << slack;
    }
  }
}

// A model with windows of 4096 at 131072 tokens: for these layers as much as for 8192.
TEST(KvPages, LayersWithAWindowTakeAsMuchAtAnyContext) {
  const ModelFacts facts = with_windows(4096, 26);
  EXPECT_EQ(window_reach(facts), 81);
  const auto bytes = [&](int64_t tokens) {
    return pool_bytes(facts, kv_shape(facts), pages_of_sequence(facts, tokens));
  };
  EXPECT_EQ(bytes(8192), 128 * page_bytes(kLayers - 26) + 82 * page_bytes(26));
  EXPECT_EQ(bytes(131072), 2048 * page_bytes(kLayers - 26) + 82 * page_bytes(26));
  EXPECT_EQ(bytes(4096), 64 * page_bytes(kLayers) + page_bytes(26))
      << "no more than all, and the page for none";
  EXPECT_EQ(window_bytes(facts), 82 * page_bytes(26));
  EXPECT_EQ(context_token_bytes(facts), page_bytes(kLayers - 26) / 64 + 128 * 4);
  const PoolPages many = pages_of_many(facts, 1 << 20);
  EXPECT_EQ(many.all, 1 << 14);
  EXPECT_EQ(many.windows, (1 << 12) + 2 * 81);
}

TEST(KvPages, ATokenReadsWhatItsWindowsReach) {
  const ModelFacts facts = with_windows(4096, 26);
  const int64_t layer = page_bytes(1) / 64;
  EXPECT_EQ(cached_bytes_read(facts, kv_shape(facts), 0), 0);
  EXPECT_EQ(cached_bytes_read(facts, kv_shape(facts), 4095), kLayers * layer * 4095);
  EXPECT_EQ(cached_bytes_read(facts, kv_shape(facts), 131071), layer * (6 * 131071 + 26 * 4095));
}

}  // namespace
}  // namespace soliton
