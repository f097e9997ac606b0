// Generated from models/llama-3.1-8b-gptq-lm-head.yaml for h200. Do not edit; run: soliton-gen models/llama-3.1-8b-gptq-lm-head.yaml --gpu h200 --rows 1,8,16,32
#pragma once

#include "layout/library.h"
#include "layout/phase.h"

namespace soliton::generated::rows32 {

struct Plan {
  static constexpr int kNumLayers = 32;
  static constexpr int kNumHeads = 32;
  static constexpr int kNumKvHeads = 8;
  static constexpr int kHeadDim = 128;
  static constexpr KvShape kKv{kNumLayers, kNumKvHeads, kHeadDim, 1};
  static constexpr int kQkvRows = 6144;
  static constexpr int kHidden = 4096;
  static constexpr bool kQkvBias = false;
  static constexpr bool kHeadNorm = false;
  static constexpr float kNormEpsilon = 9.999999747378752e-06f;
  // 1 / sqrt(head_dim), for exponentials in base 2
  static constexpr float kScoreScale = 0.127517431974411f;

  static constexpr int kRows = 32;
  static constexpr int kNumCtas = 128;
  static constexpr int kThreads = 352;
  static constexpr int kRingSlots = 8;
  static constexpr int kSlotBytes = 16896;
  static constexpr WeightFormat kIntegers{WeightType::kInt4, 128, false};
  static constexpr uint32_t kWindow = 4;  // pages in flight
  static constexpr int kPrefetchPages = 0;
  static constexpr int kPrefetchNs = 701;
  static constexpr int kInputBuffers = 3;
  static constexpr int kMaxQueryTiles = 8;

  static constexpr int kInputBytes = 49152;
  static constexpr int kTileBytes = 34816;
  static constexpr int kResidualTiles = 2;
  static constexpr int kSharedBytes = 224648;

  // In the workspace.
  static constexpr Vector kQkvVector{.offset = 0, .elements = 98304, .signatures = 0};
  static constexpr Vector kHeadsVector{.offset = 393216, .elements = 65536, .signatures = 0};
  static constexpr Vector kPostAttentionVector{.offset = 655360, .elements = 65536, .signatures = 0};
  static constexpr Vector kFfnVector{.offset = 917504, .elements = 229376, .signatures = 0};
  static constexpr Vector kHiddenVector{.offset = 1835008, .elements = 65536, .signatures = 0};
  static constexpr Vector kCandidatesVector{.offset = 2097152, .elements = 8194, .signatures = 0};
  static constexpr Vector kSquaresVector{.offset = 2130176, .elements = 8192, .signatures = 0};
  static constexpr int64_t kCounterOffset = 2162944;
};

// Phase 1 of 6: qkv. Waits for hidden; completes qkv.
constexpr MatrixPhase kQkv{
  .index = 0,
  .weights = 0,
  .layer_stride = 112459776,
  .columns = 4096,
  .padded = 4096,
  .format = {WeightType::kInt4, 128, false},
  .rows = 6144,
  .num_tiles = 384,
  .first_cta = 0,
  .input = InputKind::kNormed,
  .input_vector = Plan::kHiddenVector,
  .output = OutputKind::kRotary,
  .output_vector = Plan::kQkvVector,
};

// Phase 4 of 6: o. Waits for heads; completes post_attention.
constexpr MatrixPhase kO{
  .index = 3,
  .weights = 12976128,
  .layer_stride = 112459776,
  .columns = 4096,
  .padded = 4096,
  .format = {WeightType::kInt4, 128, false},
  .rows = 4096,
  .num_tiles = 256,
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
  .weights = 21626880,
  .layer_stride = 112459776,
  .columns = 4096,
  .padded = 4096,
  .format = {WeightType::kInt4, 128, false},
  .rows = 28672,
  .num_tiles = 1792,
  .first_cta = 0,
  .input = InputKind::kNormed,
  .input_vector = Plan::kPostAttentionVector,
  .output = OutputKind::kSwiglu,
  .output_vector = Plan::kFfnVector,
};

// Phase 6 of 6: down. Waits for ffn; completes hidden.
constexpr MatrixPhase kDown{
  .index = 5,
  .weights = 82182144,
  .layer_stride = 112459776,
  .columns = 14336,
  .padded = 14336,
  .format = {WeightType::kInt4, 128, false},
  .rows = 4096,
  .num_tiles = 256,
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
  .weights = 3598712832,
  .layer_stride = 0,
  .columns = 4096,
  .padded = 4096,
  .format = {WeightType::kInt4, 128, false},
  .rows = 128256,
  .num_tiles = 8016,
  .first_cta = 0,
  .input = InputKind::kNormed,
  .input_vector = Plan::kHiddenVector,
  .output = OutputKind::kLogits,
};

constexpr Descriptor kDescriptor{
  .model = "llama-3.1-8b-gptq-lm-head",
  .gpu = "h200",
  .facts =
    {
      .hidden = 4096,
      .ffn = 14336,
      .num_layers = 32,
      .num_heads = 32,
      .num_kv_heads = 8,
      .head_dim = 128,
      .vocabulary = 128256,
      .tied_lm_head = 0,
      .qkv_bias = 0,
      .head_norm = 0,
      .kv_bits = 16,
      .max_context = 131072,
      .rope_kind = RopeKind::kLlama3,
      .rope_original_context = 8192,
      .rope_truncate = 1,
      .weight_bits = 4,
      .weight_group = 128,
      .weight_zeros = 0,
      .weight_order = 0,
      .lm_head_bits = 4,
      .norm_epsilon = 1e-05,
      .rope_theta = 500000.0,
      .rope_factor = 8.0,
      .rope_low_freq_factor = 1.0,
      .rope_high_freq_factor = 4.0,
      .rope_beta_fast = 32.0,
      .rope_beta_slow = 1.0,
      .rope_attention_factor = 1.0,
    },
  .facts_hash = 0x7c9491848e3d7af4ull,
  .page_layout = 1,
  .compute_capability = 90,
  .num_ctas = 128,
  .threads_per_cta = 352,
  .shared_bytes = 224648,
  .tree_costs = {.item_us = 1.5, .mma_us = 0.003, .read_bytes_per_s = 4600000000000.0, .exchange_bytes_per_s = 4600000000000.0},
  .rows = 32,
  .weight_bytes = 3869589504,
  .needed_weight_bytes = 3869589504,
  .max_query_tiles = 8,
  .resident_tokens = 256,
  .workspace_byte = 0,
  .workspace_bytes = 2163200,
  .counter_offset = 2162944,
  .counter_bytes = 256,
  .matrices =
    {
      {.name = "qkv", .offset = 0, .layer_stride = 112459776, .rows = 6144, .columns = 4096, .padded_columns = 4096, .format = {WeightType::kInt4, 128, false}, .num_tiles = 384, .row_order = RowOrder::kRotary},
      {.name = "o", .offset = 12976128, .layer_stride = 112459776, .rows = 4096, .columns = 4096, .padded_columns = 4096, .format = {WeightType::kInt4, 128, false}, .num_tiles = 256, .row_order = RowOrder::kPlain},
      {.name = "gate_up", .offset = 21626880, .layer_stride = 112459776, .rows = 28672, .columns = 4096, .padded_columns = 4096, .format = {WeightType::kInt4, 128, false}, .num_tiles = 1792, .row_order = RowOrder::kGateUp},
      {.name = "down", .offset = 82182144, .layer_stride = 112459776, .rows = 4096, .columns = 14336, .padded_columns = 14336, .format = {WeightType::kInt4, 128, false}, .num_tiles = 256, .row_order = RowOrder::kPlain},
      {.name = "lm_head", .offset = 3598712832, .layer_stride = 0, .rows = 128256, .columns = 4096, .padded_columns = 4096, .format = {WeightType::kInt4, 128, false}, .num_tiles = 8016, .row_order = RowOrder::kPlain},
    },
};

}  // namespace soliton::generated::rows32
