// Generated from models/qwen2.5-1.5b.yaml for h200. Do not edit; run: soliton-gen models/qwen2.5-1.5b.yaml --gpu h200 --rows 1,8,64
#pragma once

#include "layout/library.h"
#include "layout/phase.h"

namespace soliton::generated {

// Activation vectors in the workspace.
constexpr Vector kQkvVector{.offset = 0, .elements = 2048, .signatures = 128};
constexpr Vector kHeadsVector{.offset = 8704, .elements = 1536, .signatures = 128};
constexpr Vector kPostAttentionVector{.offset = 15360, .elements = 1536, .signatures = 128};
constexpr Vector kFfnVector{.offset = 22016, .elements = 8960, .signatures = 0};
constexpr Vector kHiddenVector{.offset = 57856, .elements = 1536, .signatures = 128};
constexpr Vector kCandidatesVector{.offset = 64512, .elements = 258, .signatures = 0};

// Phase 1 of 5: qkv. Waits for hidden (candidates in layer 0); completes qkv; clears ffn.
constexpr MatrixPhase kQkv{
  .index = 0,
  .weights = 0,
  .layer_stride = 93585408,
  .columns = 1536,
  .padded = 1536,
  .rows = 2048,
  .num_tiles = 128,
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
  .weights = 6291456,
  .layer_stride = 93585408,
  .columns = 1536,
  .padded = 1536,
  .rows = 1536,
  .num_tiles = 96,
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
  .weights = 11010048,
  .layer_stride = 93585408,
  .columns = 1536,
  .padded = 1536,
  .rows = 17920,
  .num_tiles = 1120,
  .first_cta = 96,
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
  .weights = 66060288,
  .layer_stride = 93585408,
  .columns = 8960,
  .padded = 8960,
  .rows = 1536,
  .num_tiles = 96,
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
  .weights = 2620391424,
  .layer_stride = 0,
  .columns = 1536,
  .padded = 1536,
  .rows = 151936,
  .num_tiles = 9496,
  .first_cta = 96,
  .input = InputKind::kNormed,
  .input_vector = kHiddenVector,
  .first_norm = 56,
  .norm_stride = 0,
  .output = OutputKind::kLogits,
};

struct Plan {
  static constexpr int kNumLayers = 28;
  static constexpr int kNumHeads = 12;
  static constexpr int kNumKvHeads = 2;
  static constexpr int kHeadDim = 128;
  static constexpr KvShape kKv{kNumLayers, kNumKvHeads, kHeadDim, 1};
  static constexpr int kQkvRows = 2048;
  static constexpr int kHidden = 1536;
  static constexpr bool kQkvBias = true;
  static constexpr bool kHeadNorm = false;
  static constexpr float kNormEpsilon = 9.999999974752427e-07f;
  // 1 / sqrt(head_dim), for exponentials in base 2
  static constexpr float kScoreScale = 0.127517431974411f;

  static constexpr int kNumCtas = 128;
  static constexpr int kThreads = 224;
  static constexpr int kRingSlots = 13;
  static constexpr int kSlotBytes = 16384;
  static constexpr WeightFormat kIntegers{WeightType::kBf16, 0, false};
  static constexpr uint32_t kWindow = 3;  // pages in flight
  static constexpr int kPrefetchPages = 16;
  static constexpr int kPrefetchNs = 701;
  static constexpr int kConsumerWarps = 4;
  static constexpr bool kOrdered = false;
  static constexpr int kTileSlots = 4;
  static constexpr SyncMode kSync = SyncMode::kSelfValidating;
  static constexpr int kNumBlocks = 4;
  static constexpr int kMinPagesPerSplit = 2;
  static constexpr int kFirstResidualPhase = 2;

  static constexpr int kNumWidths = 2;
  static constexpr Width kWidths[] = {
    {.columns = 1536, .padded = 1536, .normed = true},
    {.columns = 8960, .padded = 8960, .normed = false},
  };

  static constexpr int kChunkColumns = 1536;
  static constexpr int kXBytes = 8320;
  static constexpr int kResidualTiles = 1;
  static constexpr int kAttentionUnits = 1;
  static constexpr int kPartialWords = 520;
  static constexpr int kSharedBytes = 229176;

  static constexpr Vector kCandidates = kCandidatesVector;
  static constexpr Vector kPartials{.offset = 65792, .elements = 66560};
  static constexpr int64_t kCounterOffset = 332032;
};

constexpr Descriptor kDescriptor{
  .model = "qwen2.5-1.5b",
  .gpu = "h200",
  .facts =
    {
      .hidden = 1536,
      .ffn = 8960,
      .num_layers = 28,
      .num_heads = 12,
      .num_kv_heads = 2,
      .head_dim = 128,
      .vocabulary = 151936,
      .tied_lm_head = 1,
      .qkv_bias = 1,
      .head_norm = 0,
      .kv_bits = 16,
      .max_context = 131072,
      .rope_kind = RopeKind::kDefault,
      .rope_original_context = 0,
      .rope_truncate = 1,
      .weight_bits = 16,
      .weight_group = 0,
      .weight_zeros = 0,
      .weight_order = 0,
      .lm_head_bits = 16,
      .norm_epsilon = 1e-06,
      .rope_theta = 1000000.0,
      .rope_factor = 1.0,
      .rope_low_freq_factor = 1.0,
      .rope_high_freq_factor = 1.0,
      .rope_beta_fast = 32.0,
      .rope_beta_slow = 1.0,
      .rope_attention_factor = 1.0,
    },
  .facts_hash = 0xcafebf975cd778aeull,
  .page_layout = 1,
  .compute_capability = 90,
  .num_ctas = 128,
  .threads_per_cta = 224,
  .shared_bytes = 229176,
  .tree_costs = {.item_us = 1.5, .mma_us = 0.003, .read_bytes_per_s = 4600000000000.0, .exchange_bytes_per_s = 4600000000000.0},
  .rows = 1,
  .weight_bytes = 3087138816,
  .needed_weight_bytes = 3087138816,
  .max_query_tiles = 0,
  .resident_tokens = 0,
  .workspace_byte = 255,
  .workspace_bytes = 332800,
  .counter_offset = 332032,
  .counter_bytes = 768,
  .matrices =
    {
      {.name = "qkv", .offset = 0, .layer_stride = 93585408, .rows = 2048, .columns = 1536, .padded_columns = 1536, .format = {WeightType::kBf16, 0, false}, .num_tiles = 128, .row_order = RowOrder::kRotary},
      {.name = "o", .offset = 6291456, .layer_stride = 93585408, .rows = 1536, .columns = 1536, .padded_columns = 1536, .format = {WeightType::kBf16, 0, false}, .num_tiles = 96, .row_order = RowOrder::kPlain},
      {.name = "gate_up", .offset = 11010048, .layer_stride = 93585408, .rows = 17920, .columns = 1536, .padded_columns = 1536, .format = {WeightType::kBf16, 0, false}, .num_tiles = 1120, .row_order = RowOrder::kGateUp},
      {.name = "down", .offset = 66060288, .layer_stride = 93585408, .rows = 1536, .columns = 8960, .padded_columns = 8960, .format = {WeightType::kBf16, 0, false}, .num_tiles = 96, .row_order = RowOrder::kPlain},
      {.name = "lm_head", .offset = 2620391424, .layer_stride = 0, .rows = 151936, .columns = 1536, .padded_columns = 1536, .format = {WeightType::kBf16, 0, false}, .num_tiles = 9496, .row_order = RowOrder::kPlain},
    },
};

}  // namespace soliton::generated
