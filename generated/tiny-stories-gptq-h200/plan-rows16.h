// Generated from models/tiny-stories-gptq.yaml for h200. Do not edit; run: soliton-gen models/tiny-stories-gptq.yaml --gpu h200 --rows 1,8,16,32
#pragma once

#include "layout/library.h"
#include "layout/phase.h"

namespace soliton::generated::rows16 {

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

  static constexpr int kRows = 16;
  static constexpr int kNumCtas = 128;
  static constexpr int kThreads = 352;
  static constexpr int kRingSlots = 9;
  static constexpr int kSlotBytes = 18432;
  static constexpr WeightFormat kIntegers{WeightType::kInt4, 32, false};
  static constexpr uint32_t kWindow = 3;  // pages in flight
  static constexpr int kPrefetchPages = 16;
  static constexpr int kPrefetchNs = 701;
  static constexpr int kInputBuffers = 2;
  static constexpr int kMaxQueryTiles = 2;

  static constexpr int kInputBytes = 32768;
  static constexpr int kTileBytes = 20480;
  static constexpr int kResidualTiles = 1;
  static constexpr int kSharedBytes = 221384;

  // In the workspace.
  static constexpr Vector kQkvVector{.offset = 0, .elements = 4096, .signatures = 0};
  static constexpr Vector kHeadsVector{.offset = 16384, .elements = 4096, .signatures = 0};
  static constexpr Vector kPostAttentionVector{.offset = 32768, .elements = 4096, .signatures = 0};
  static constexpr Vector kFfnVector{.offset = 49152, .elements = 8192, .signatures = 0};
  static constexpr Vector kHiddenVector{.offset = 81920, .elements = 4096, .signatures = 0};
  static constexpr Vector kCandidatesVector{.offset = 98304, .elements = 4098, .signatures = 0};
  static constexpr Vector kSquaresVector{.offset = 114944, .elements = 4096, .signatures = 0};
  static constexpr int64_t kCounterOffset = 131328;
};

// Phase 1 of 6: qkv. Waits for hidden; completes qkv.
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
  .input = InputKind::kNormed,
  .input_vector = Plan::kHiddenVector,
  .output = OutputKind::kRotary,
  .output_vector = Plan::kQkvVector,
};

// Phase 4 of 6: o. Waits for heads; completes post_attention.
constexpr MatrixPhase kO{
  .index = 3,
  .weights = 147456,
  .layer_stride = 811008,
  .columns = 256,
  .padded = 512,
  .format = {WeightType::kInt4, 32, false},
  .rows = 256,
  .num_tiles = 16,
  .first_cta = 0,
  .input = InputKind::kVector,
  .input_vector = Plan::kHeadsVector,
  .first_norm = 1,
  .norm_stride = 2,
  .output = OutputKind::kResidual,
  .output_vector = Plan::kPostAttentionVector,
};

// Phase 5 of 6: gate_up. Waits for post_attention; completes ffn.
constexpr MatrixPhase kGateUp{
  .index = 4,
  .weights = 221184,
  .layer_stride = 811008,
  .columns = 256,
  .padded = 512,
  .format = {WeightType::kInt4, 32, false},
  .rows = 1536,
  .num_tiles = 96,
  .first_cta = 16,
  .input = InputKind::kNormed,
  .input_vector = Plan::kPostAttentionVector,
  .output = OutputKind::kSwiglu,
  .output_vector = Plan::kFfnVector,
};

// Phase 6 of 6: down. Waits for ffn; completes hidden.
constexpr MatrixPhase kDown{
  .index = 5,
  .weights = 663552,
  .layer_stride = 811008,
  .columns = 768,
  .padded = 1024,
  .format = {WeightType::kInt4, 32, false},
  .rows = 256,
  .num_tiles = 16,
  .first_cta = 0,
  .input = InputKind::kVector,
  .input_vector = Plan::kFfnVector,
  .first_norm = 2,
  .norm_stride = 2,
  .output = OutputKind::kResidual,
  .output_vector = Plan::kHiddenVector,
};

// Last phase: lm_head. Waits for hidden; completes candidates.
constexpr MatrixPhase kLmHead{
  .index = 6,
  .weights = 4866048,
  .layer_stride = 0,
  .columns = 256,
  .padded = 256,
  .rows = 2048,
  .num_tiles = 128,
  .first_cta = 16,
  .input = InputKind::kNormed,
  .input_vector = Plan::kHiddenVector,
  .output = OutputKind::kLogits,
};

constexpr Descriptor kDescriptor{
  .model = "tiny-stories-gptq",
  .gpu = "h200",
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
  .compute_capability = 90,
  .num_ctas = 128,
  .threads_per_cta = 352,
  .shared_bytes = 221384,
  .tree_costs = {.item_us = 1.5, .mma_us = 0.003, .read_bytes_per_s = 4600000000000.0, .exchange_bytes_per_s = 4600000000000.0},
  .rows = 16,
  .weight_bytes = 5914624,
  .needed_weight_bytes = 3702784,
  .max_query_tiles = 2,
  .resident_tokens = 256,
  .workspace_byte = 0,
  .workspace_bytes = 131584,
  .counter_offset = 131328,
  .counter_bytes = 256,
  .matrices =
    {
      {.name = "qkv", .offset = 0, .layer_stride = 811008, .rows = 512, .columns = 256, .padded_columns = 512, .format = {WeightType::kInt4, 32, false}, .num_tiles = 32, .row_order = RowOrder::kRotary},
      {.name = "o", .offset = 147456, .layer_stride = 811008, .rows = 256, .columns = 256, .padded_columns = 512, .format = {WeightType::kInt4, 32, false}, .num_tiles = 16, .row_order = RowOrder::kPlain},
      {.name = "gate_up", .offset = 221184, .layer_stride = 811008, .rows = 1536, .columns = 256, .padded_columns = 512, .format = {WeightType::kInt4, 32, false}, .num_tiles = 96, .row_order = RowOrder::kGateUp},
      {.name = "down", .offset = 663552, .layer_stride = 811008, .rows = 256, .columns = 768, .padded_columns = 1024, .format = {WeightType::kInt4, 32, false}, .num_tiles = 16, .row_order = RowOrder::kPlain},
      {.name = "lm_head", .offset = 4866048, .layer_stride = 0, .rows = 2048, .columns = 256, .padded_columns = 256, .format = {WeightType::kBf16, 0, false}, .num_tiles = 128, .row_order = RowOrder::kPlain},
    },
};

}  // namespace soliton::generated::rows16
