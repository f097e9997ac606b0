// Generated from models/llama-3.2-1b.yaml for h100. Do not edit; run: soliton-gen models/llama-3.2-1b.yaml --gpu h100 --rows 1,8,16,32,64
#pragma once

#include "layout/library.h"
#include "layout/phase.h"

namespace soliton::generated {

// Activation vectors in the workspace.
constexpr Vector kQkvVector{.offset = 0, .elements = 3072, .signatures = 128};
constexpr Vector kHeadsVector{.offset = 12800, .elements = 2048, .signatures = 128};
constexpr Vector kPostAttentionVector{.offset = 21504, .elements = 2048, .signatures = 0};
constexpr Vector kFfnVector{.offset = 29696, .elements = 8192, .signatures = 0};
constexpr Vector kHiddenVector{.offset = 62464, .elements = 2048, .signatures = 0};
constexpr Vector kCandidatesVector{.offset = 70656, .elements = 258, .signatures = 0};

// Phase 1 of 5: qkv. Waits for hidden (candidates in layer 0); completes qkv; clears ffn.
constexpr MatrixPhase kQkv{
  .index = 0,
  .weights = 0,
  .layer_stride = 121634816,
  .columns = 2048,
  .padded = 2048,
  .rows = 3072,
  .num_tiles = 192,
  .first_cta = 0,
  .input = InputKind::kHidden,
  .input_vector = kHiddenVector,
  .first_norm = 0,
  .norm_stride = 2,
  .output = OutputKind::kRotary,
  .output_vector = kQkvVector,
  .clears = kFfnVector,
};

// Phase 2 of 5: attention. Waits for qkv; completes heads; clears hidden.
constexpr AttentionPhase kAttention{
  .index = 1,
  .input_vector = kQkvVector,
  .output_vector = kHeadsVector,
  .clears = kHiddenVector,
};

// Phase 3 of 5: o. Waits for heads; completes post_attention; clears qkv.
constexpr MatrixPhase kO{
  .index = 2,
  .weights = 12582912,
  .layer_stride = 121634816,
  .columns = 2048,
  .padded = 2048,
  .rows = 2048,
  .num_tiles = 128,
  .first_cta = 0,
  .input = InputKind::kVector,
  .input_vector = kHeadsVector,
  .output = OutputKind::kResidual,
  .output_vector = kPostAttentionVector,
  .clears = kQkvVector,
};

// Phase 4 of 5: gate_up. Waits for post_attention; completes ffn; clears heads.
constexpr MatrixPhase kGateUp{
  .index = 3,
  .weights = 20971520,
  .layer_stride = 121634816,
  .columns = 2048,
  .padded = 2048,
  .rows = 16384,
  .num_tiles = 1024,
  .first_cta = 0,
  .input = InputKind::kNormed,
  .input_vector = kPostAttentionVector,
  .first_norm = 1,
  .norm_stride = 2,
  .output = OutputKind::kSwiglu,
  .output_vector = kFfnVector,
  .clears = kHeadsVector,
};

// Phase 5 of 5: down. Waits for ffn; completes hidden; clears post_attention.
constexpr MatrixPhase kDown{
  .index = 4,
  .weights = 88080384,
  .layer_stride = 121634816,
  .columns = 8192,
  .padded = 8192,
  .rows = 2048,
  .num_tiles = 128,
  .first_cta = 0,
  .input = InputKind::kVector,
  .input_vector = kFfnVector,
  .output = OutputKind::kResidual,
  .output_vector = kHiddenVector,
  .clears = kPostAttentionVector,
};

// Last phase: lm_head. Waits for hidden; completes candidates.
constexpr MatrixPhase kLmHead{
  .index = 5,
  .weights = 1946157056,
  .layer_stride = 0,
  .columns = 2048,
  .padded = 2048,
  .rows = 128256,
  .num_tiles = 8016,
  .first_cta = 0,
  .input = InputKind::kNormed,
  .input_vector = kHiddenVector,
  .first_norm = 32,
  .norm_stride = 0,
  .output = OutputKind::kLogits,
};

struct Plan {
  static constexpr int kNumLayers = 16;
  static constexpr int kNumHeads = 32;
  static constexpr int kNumKvHeads = 8;
  static constexpr int kHeadDim = 64;
  static constexpr KvShape kKv{kNumLayers, kNumKvHeads, kHeadDim, 1};
  static constexpr int kQkvRows = 3072;
  static constexpr int kHidden = 2048;
  static constexpr bool kQkvBias = false;
  static constexpr bool kHeadNorm = false;
  static constexpr float kNormEpsilon = 9.999999747378752e-06f;
  // 1 / sqrt(head_dim), for exponentials in base 2
  static constexpr float kScoreScale = 0.1803368777036667f;

  static constexpr int kNumCtas = 128;
  static constexpr int kThreads = 224;
  static constexpr int kRingSlots = 13;
  static constexpr int kSlotBytes = 16384;
  static constexpr WeightFormat kIntegers{WeightType::kBf16, 0, false};
  static constexpr uint32_t kWindow = 3;  // pages in flight
  static constexpr int kPrefetchPages = 16;
  static constexpr int kPrefetchNs = 1008;
  static constexpr int kConsumerWarps = 4;
  static constexpr bool kOrdered = false;
  static constexpr int kTileSlots = 4;
  static constexpr SyncMode kSync = SyncMode::kSelfValidating;
  static constexpr int kNumBlocks = 8;
  static constexpr int kMinPagesPerSplit = 2;
  static constexpr int kFirstResidualPhase = 2;

  static constexpr int kNumWidths = 2;
  static constexpr Width kWidths[] = {
    {.columns = 2048, .padded = 2048, .normed = true},
    {.columns = 8192, .padded = 8192, .normed = false},
  };

  static constexpr int kChunkColumns = 2048;
  static constexpr int kXBytes = 8192;
  static constexpr int kResidualTiles = 1;
  static constexpr int kAttentionUnits = 1;
  static constexpr int kPartialWords = 264;
  static constexpr int kSharedBytes = 225976;

  static constexpr Vector kCandidates = kCandidatesVector;
  static constexpr Vector kPartials{.offset = 71936, .elements = 33792};
  static constexpr int64_t kCounterOffset = 207104;
};

constexpr Descriptor kDescriptor{
  .model = "llama-3.2-1b",
  .gpu = "h100",
  .facts =
    {
      .hidden = 2048,
      .ffn = 8192,
      .num_layers = 16,
      .num_heads = 32,
      .num_kv_heads = 8,
      .head_dim = 64,
      .vocabulary = 128256,
      .tied_lm_head = 1,
      .qkv_bias = 0,
      .head_norm = 0,
      .kv_bits = 16,
      .max_context = 131072,
      .rope_kind = RopeKind::kLlama3,
      .rope_original_context = 8192,
      .rope_truncate = 1,
      .weight_bits = 16,
      .weight_group = 0,
      .weight_zeros = 0,
      .weight_order = 0,
      .lm_head_bits = 16,
      .norm_epsilon = 1e-05,
      .rope_theta = 500000.0,
      .rope_factor = 32.0,
      .rope_low_freq_factor = 1.0,
      .rope_high_freq_factor = 4.0,
      .rope_beta_fast = 32.0,
      .rope_beta_slow = 1.0,
      .rope_attention_factor = 1.0,
    },
  .facts_hash = 0xe04d3073d6be4e35ull,
  .page_layout = 1,
  .compute_capability = 90,
  .num_ctas = 128,
  .threads_per_cta = 224,
  .shared_bytes = 225976,
  .tree_costs = {.item_us = 1.5, .mma_us = 0.003, .read_bytes_per_s = 3200000000000.0, .exchange_bytes_per_s = 3200000000000.0},
  .rows = 1,
  .weight_bytes = 2471493632,
  .needed_weight_bytes = 2471493632,
  .max_query_tiles = 0,
  .resident_tokens = 0,
  .workspace_byte = 255,
  .workspace_bytes = 208384,
  .counter_offset = 207104,
  .counter_bytes = 1280,
  .matrices =
    {
      {.name = "qkv", .offset = 0, .layer_stride = 121634816, .rows = 3072, .columns = 2048, .padded_columns = 2048, .format = {WeightType::kBf16, 0, false}, .num_tiles = 192, .row_order = RowOrder::kRotary},
      {.name = "o", .offset = 12582912, .layer_stride = 121634816, .rows = 2048, .columns = 2048, .padded_columns = 2048, .format = {WeightType::kBf16, 0, false}, .num_tiles = 128, .row_order = RowOrder::kPlain},
      {.name = "gate_up", .offset = 20971520, .layer_stride = 121634816, .rows = 16384, .columns = 2048, .padded_columns = 2048, .format = {WeightType::kBf16, 0, false}, .num_tiles = 1024, .row_order = RowOrder::kGateUp},
      {.name = "down", .offset = 88080384, .layer_stride = 121634816, .rows = 2048, .columns = 8192, .padded_columns = 8192, .format = {WeightType::kBf16, 0, false}, .num_tiles = 128, .row_order = RowOrder::kPlain},
      {.name = "lm_head", .offset = 1946157056, .layer_stride = 0, .rows = 128256, .columns = 2048, .padded_columns = 2048, .format = {WeightType::kBf16, 0, false}, .num_tiles = 8016, .row_order = RowOrder::kPlain},
    },
};

}  // namespace soliton::generated
