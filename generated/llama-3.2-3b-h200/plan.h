// Generated from models/llama-3.2-3b.yaml for h200. Do not edit; run: soliton-gen models/llama-3.2-3b.yaml --gpu h200 --rows 1,8,16,32,64
#pragma once

#include "layout/library.h"
#include "layout/phase.h"

namespace soliton::generated {

// Activation vectors in the workspace.
constexpr Vector kQkvVector{.offset = 0, .elements = 5120, .signatures = 128};
constexpr Vector kHeadsVector{.offset = 20992, .elements = 3072, .signatures = 128};
constexpr Vector kPostAttentionVector{.offset = 33792, .elements = 3072, .signatures = 0};
constexpr Vector kFfnVector{.offset = 46080, .elements = 8192, .signatures = 0};
constexpr Vector kHiddenVector{.offset = 78848, .elements = 3072, .signatures = 0};
constexpr Vector kCandidatesVector{.offset = 91136, .elements = 258, .signatures = 0};

// Phase 1 of 5: qkv. Waits for hidden (candidates in layer 0); completes qkv; clears ffn.
constexpr MatrixPhase kQkv{
  .index = 0,
  .weights = 0,
  .layer_stride = 201326592,
  .columns = 3072,
  .padded = 3072,
  .rows = 5120,
  .num_tiles = 320,
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
  .weights = 31457280,
  .layer_stride = 201326592,
  .columns = 3072,
  .padded = 3072,
  .rows = 3072,
  .num_tiles = 192,
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
  .weights = 50331648,
  .layer_stride = 201326592,
  .columns = 3072,
  .padded = 3072,
  .rows = 16384,
  .num_tiles = 1024,
  .first_cta = 64,
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
  .weights = 150994944,
  .layer_stride = 201326592,
  .columns = 8192,
  .padded = 8192,
  .rows = 3072,
  .num_tiles = 192,
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
  .weights = 5637144576,
  .layer_stride = 0,
  .columns = 3072,
  .padded = 3072,
  .rows = 128256,
  .num_tiles = 8016,
  .first_cta = 64,
  .input = InputKind::kNormed,
  .input_vector = kHiddenVector,
  .first_norm = 56,
  .norm_stride = 0,
  .output = OutputKind::kLogits,
};

struct Plan {
  static constexpr int kNumLayers = 28;
  static constexpr int kNumHeads = 24;
  static constexpr int kNumKvHeads = 8;
  static constexpr int kHeadDim = 128;
  static constexpr KvShape kKv{kNumLayers, kNumKvHeads, kHeadDim, 1};
  static constexpr int kQkvRows = 5120;
  static constexpr int kHidden = 3072;
  static constexpr bool kQkvBias = false;
  static constexpr bool kHeadNorm = false;
  static constexpr float kNormEpsilon = 9.999999747378752e-06f;
  // 1 / sqrt(head_dim), for exponentials in base 2
  static constexpr float kScoreScale = 0.127517431974411f;

  static constexpr int kNumCtas = 128;
  static constexpr int kThreads = 224;
  static constexpr int kRingSlots = 12;
  static constexpr int kSlotBytes = 16384;
  static constexpr WeightFormat kIntegers{WeightType::kBf16, 0, false};
  static constexpr uint32_t kWindow = 3;  // pages in flight
  static constexpr int kPrefetchPages = 16;
  static constexpr int kPrefetchNs = 701;
  static constexpr int kConsumerWarps = 4;
  static constexpr bool kOrdered = false;
  static constexpr int kTileSlots = 4;
  static constexpr SyncMode kSync = SyncMode::kSelfValidating;
  static constexpr int kNumBlocks = 8;
  static constexpr int kMinPagesPerSplit = 2;
  static constexpr int kFirstResidualPhase = 2;

  static constexpr int kNumWidths = 2;
  static constexpr Width kWidths[] = {
    {.columns = 3072, .padded = 3072, .normed = true},
    {.columns = 8192, .padded = 8192, .normed = false},
  };

  static constexpr int kChunkColumns = 3072;
  static constexpr int kXBytes = 12288;
  static constexpr int kResidualTiles = 2;
  static constexpr int kAttentionUnits = 1;
  static constexpr int kPartialWords = 520;
  static constexpr int kSharedBytes = 216808;

  static constexpr Vector kCandidates = kCandidatesVector;
  static constexpr Vector kPartials{.offset = 92416, .elements = 66560};
  static constexpr int64_t kCounterOffset = 358656;
};

constexpr Descriptor kDescriptor{
  .model = "llama-3.2-3b",
  .gpu = "h200",
  .facts =
    {
      .hidden = 3072,
      .ffn = 8192,
      .num_layers = 28,
      .num_heads = 24,
      .num_kv_heads = 8,
      .head_dim = 128,
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
  .facts_hash = 0xb1d4982c2f22c22dull,
  .page_layout = 1,
  .compute_capability = 90,
  .num_ctas = 128,
  .threads_per_cta = 224,
  .shared_bytes = 216808,
  .tree_costs = {.item_us = 1.5, .mma_us = 0.003, .read_bytes_per_s = 4600000000000.0, .exchange_bytes_per_s = 4600000000000.0},
  .rows = 1,
  .weight_bytes = 6425149440,
  .needed_weight_bytes = 6425149440,
  .max_query_tiles = 0,
  .resident_tokens = 0,
  .workspace_byte = 255,
  .workspace_bytes = 359936,
  .counter_offset = 358656,
  .counter_bytes = 1280,
  .matrices =
    {
      {.name = "qkv", .offset = 0, .layer_stride = 201326592, .rows = 5120, .columns = 3072, .padded_columns = 3072, .format = {WeightType::kBf16, 0, false}, .num_tiles = 320, .row_order = RowOrder::kRotary},
      {.name = "o", .offset = 31457280, .layer_stride = 201326592, .rows = 3072, .columns = 3072, .padded_columns = 3072, .format = {WeightType::kBf16, 0, false}, .num_tiles = 192, .row_order = RowOrder::kPlain},
      {.name = "gate_up", .offset = 50331648, .layer_stride = 201326592, .rows = 16384, .columns = 3072, .padded_columns = 3072, .format = {WeightType::kBf16, 0, false}, .num_tiles = 1024, .row_order = RowOrder::kGateUp},
      {.name = "down", .offset = 150994944, .layer_stride = 201326592, .rows = 3072, .columns = 8192, .padded_columns = 8192, .format = {WeightType::kBf16, 0, false}, .num_tiles = 192, .row_order = RowOrder::kPlain},
      {.name = "lm_head", .offset = 5637144576, .layer_stride = 0, .rows = 128256, .columns = 3072, .padded_columns = 3072, .format = {WeightType::kBf16, 0, false}, .num_tiles = 8016, .row_order = RowOrder::kPlain},
    },
};

}  // namespace soliton::generated
