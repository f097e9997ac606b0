// Generated from models/tiny-stories-gptq.yaml for cpu. Do not edit; run: soliton-gen models/tiny-stories-gptq.yaml --gpu cpu --rows 1,8
#pragma once

#include "layout/library.h"
#include "layout/phase.h"

namespace soliton::generated {

// Activation vectors in the workspace.
constexpr Vector kQkvVector{.offset = 0, .elements = 512, .signatures = 4};
constexpr Vector kHeadsVector{.offset = 2304, .elements = 256, .signatures = 4};
constexpr Vector kPostAttentionVector{.offset = 3584, .elements = 256, .signatures = 0};
constexpr Vector kFfnVector{.offset = 4608, .elements = 768, .signatures = 0};
constexpr Vector kHiddenVector{.offset = 7680, .elements = 256, .signatures = 0};
constexpr Vector kCandidatesVector{.offset = 8704, .elements = 10, .signatures = 0};

// Phase 1 of 5: qkv. Waits for hidden (candidates in layer 0); completes qkv; clears ffn.
constexpr MatrixPhase kQkv{
  .index = 0,
  .weights = 0,
  .layer_stride = 811008,
  .columns = 256,
  .padded = 512,
  .format = {WeightType::kInt4, 32, false},
  .rows = 512,
  .num_tiles = 32,
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
  .weights = 147456,
  .layer_stride = 811008,
  .columns = 256,
  .padded = 512,
  .format = {WeightType::kInt4, 32, false},
  .rows = 256,
  .num_tiles = 16,
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
  .weights = 221184,
  .layer_stride = 811008,
  .columns = 256,
  .padded = 512,
  .format = {WeightType::kInt4, 32, false},
  .rows = 1536,
  .num_tiles = 96,
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
  .weights = 663552,
  .layer_stride = 811008,
  .columns = 768,
  .padded = 1024,
  .format = {WeightType::kInt4, 32, false},
  .rows = 256,
  .num_tiles = 16,
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
  .weights = 4866048,
  .layer_stride = 0,
  .columns = 256,
  .padded = 256,
  .rows = 2048,
  .num_tiles = 128,
  .first_cta = 0,
  .input = InputKind::kNormed,
  .input_vector = kHiddenVector,
  .first_norm = 12,
  .norm_stride = 0,
  .output = OutputKind::kLogits,
};

struct Plan {
  static constexpr int kNumLayers = 6;
  static constexpr int kNumHeads = 4;
  static constexpr int kNumKvHeads = 2;
  static constexpr int kHeadDim = 64;
  static constexpr KvShape kKv{kNumLayers, kNumKvHeads, kHeadDim, 1};
  static constexpr int kQkvRows = 512;
  static constexpr int kHidden = 256;
  static constexpr bool kQkvBias = false;
  static constexpr bool kHeadNorm = false;
  static constexpr float kNormEpsilon = 9.999999747378752e-06f;
  // 1 / sqrt(head_dim), for exponentials in base 2
  static constexpr float kScoreScale = 0.1803368777036667f;

  static constexpr int kNumCtas = 4;
  static constexpr int kThreads = 352;
  static constexpr int kRingSlots = 11;
  static constexpr int kSlotBytes = 18432;
  static constexpr WeightFormat kIntegers{WeightType::kInt4, 32, false};
  static constexpr uint32_t kWindow = 3;  // pages in flight
  static constexpr int kPrefetchPages = 16;
  static constexpr int kPrefetchNs = 100825;
  static constexpr int kConsumerWarps = 8;
  static constexpr bool kOrdered = false;
  static constexpr int kTileSlots = 4;
  static constexpr SyncMode kSync = SyncMode::kSelfValidating;
  static constexpr int kNumBlocks = 2;
  static constexpr int kMinPagesPerSplit = 2;
  static constexpr int kFirstResidualPhase = 2;

  static constexpr int kNumWidths = 3;
  static constexpr Width kWidths[] = {
    {.columns = 256, .padded = 256, .normed = true},
    {.columns = 256, .padded = 512, .normed = true, .format = {WeightType::kInt4, 32, false}},
    {.columns = 768, .padded = 1024, .normed = false, .format = {WeightType::kInt4, 32, false}},
  };

  static constexpr int kChunkColumns = 2048;
  static constexpr int kXBytes = 8704;
  static constexpr int kResidualTiles = 4;
  static constexpr int kAttentionUnits = 1;
  static constexpr int kPartialWords = 264;
  static constexpr int kSharedBytes = 217592;

  static constexpr Vector kCandidates = kCandidatesVector;
  static constexpr Vector kPartials{.offset = 8960, .elements = 1056};
  static constexpr int64_t kCounterOffset = 13312;
};

constexpr Descriptor kDescriptor{
  .model = "tiny-stories-gptq",
  .gpu = "cpu",
  .facts =
    {
      .hidden = 256,
      .ffn = 768,
      .num_layers = 6,
      .num_heads = 4,
      .num_kv_heads = 2,
      .head_dim = 64,
      .vocabulary = 2048,
      .tied_lm_head = 1,
      .qkv_bias = 0,
      .head_norm = 0,
      .kv_bits = 16,
      .max_context = 2048,
      .rope_kind = RopeKind::kLlama3,
      .rope_original_context = 256,
      .rope_truncate = 1,
      .weight_bits = 4,
      .weight_group = 32,
      .weight_zeros = 0,
      .weight_order = 0,
      .lm_head_bits = 16,
      .norm_epsilon = 1e-05,
      .rope_theta = 10000.0,
      .rope_factor = 8.0,
      .rope_low_freq_factor = 1.0,
      .rope_high_freq_factor = 4.0,
      .rope_beta_fast = 32.0,
      .rope_beta_slow = 1.0,
      .rope_attention_factor = 1.0,
    },
  .facts_hash = 0xa193a320e9ff57f2ull,
  .page_layout = 1,
  .compute_capability = 0,
  .num_ctas = 4,
  .threads_per_cta = 352,
  .shared_bytes = 217592,
  .tree_costs = {.item_us = 1.5, .mma_us = 0.003, .read_bytes_per_s = 1000000000.0, .exchange_bytes_per_s = 1000000000.0},
  .rows = 1,
  .weight_bytes = 5914624,
  .needed_weight_bytes = 3702784,
  .max_query_tiles = 0,
  .resident_tokens = 0,
  .workspace_byte = 255,
  .workspace_bytes = 13824,
  .counter_offset = 13312,
  .counter_bytes = 512,
  .matrices =
    {
      {.name = "qkv", .offset = 0, .layer_stride = 811008, .rows = 512, .columns = 256, .padded_columns = 512, .format = {WeightType::kInt4, 32, false}, .num_tiles = 32, .row_order = RowOrder::kRotary},
      {.name = "o", .offset = 147456, .layer_stride = 811008, .rows = 256, .columns = 256, .padded_columns = 512, .format = {WeightType::kInt4, 32, false}, .num_tiles = 16, .row_order = RowOrder::kPlain},
      {.name = "gate_up", .offset = 221184, .layer_stride = 811008, .rows = 1536, .columns = 256, .padded_columns = 512, .format = {WeightType::kInt4, 32, false}, .num_tiles = 96, .row_order = RowOrder::kGateUp},
      {.name = "down", .offset = 663552, .layer_stride = 811008, .rows = 256, .columns = 768, .padded_columns = 1024, .format = {WeightType::kInt4, 32, false}, .num_tiles = 16, .row_order = RowOrder::kPlain},
      {.name = "lm_head", .offset = 4866048, .layer_stride = 0, .rows = 2048, .columns = 256, .padded_columns = 256, .format = {WeightType::kBf16, 0, false}, .num_tiles = 128, .row_order = RowOrder::kPlain},
    },
};

}  // namespace soliton::generated
