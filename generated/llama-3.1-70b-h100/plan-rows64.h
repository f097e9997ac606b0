// Generated from models/llama-3.1-70b.yaml for h100. Do not edit; run: soliton-gen models/llama-3.1-70b.yaml --gpu h100 --rows 1,8,16,32,64
#pragma once

#include "layout/library.h"
#include "layout/phase.h"

namespace soliton::generated::rows64 {

struct Plan {
  static constexpr int kNumLayers = 80;
  static constexpr int kNumHeads = 64;
  static constexpr int kNumKvHeads = 8;
  static constexpr int kHeadDim = 128;
  static constexpr KvShape kKv{kNumLayers, kNumKvHeads, kHeadDim, 1};
  static constexpr int kQkvRows = 10240;
  static constexpr int kHidden = 8192;
  static constexpr bool kQkvBias = false;
  static constexpr bool kHeadNorm = false;
  static constexpr float kNormEpsilon = 9.999999747378752e-06f;
  // 1 / sqrt(head_dim), for exponentials in base 2
  static constexpr float kScoreScale = 0.127517431974411f;

  static constexpr int kRows = 64;
  static constexpr int kNumCtas = 128;
  static constexpr int kThreads = 352;
  static constexpr int kRingSlots = 4;
  static constexpr int kSlotBytes = 16384;
  static constexpr WeightFormat kIntegers{WeightType::kBf16, 0, false};
  static constexpr uint32_t kWindow = 4;  // pages in flight
  static constexpr int kPrefetchPages = 0;
  static constexpr int kPrefetchNs = 1008;
  static constexpr int kInputBuffers = 3;
  static constexpr int kMaxQueryTiles = 16;

  static constexpr int kInputBytes = 98304;
  static constexpr int kTileBytes = 40960;
  static constexpr int kResidualTiles = 4;
  static constexpr int kSharedBytes = 222920;

  // In the workspace.
  static constexpr Vector kQkvVector{.offset = 0, .elements = 327680, .signatures = 0};
  static constexpr Vector kHeadsVector{.offset = 1310720, .elements = 262144, .signatures = 0};
  static constexpr Vector kPostAttentionVector{.offset = 2359296, .elements = 262144, .signatures = 0};
  static constexpr Vector kFfnVector{.offset = 3407872, .elements = 917504, .signatures = 0};
  static constexpr Vector kHiddenVector{.offset = 7077888, .elements = 262144, .signatures = 0};
  static constexpr Vector kCandidatesVector{.offset = 8126464, .elements = 16386, .signatures = 0};
  static constexpr Vector kSquaresVector{.offset = 8192256, .elements = 8192, .signatures = 0};
  static constexpr int64_t kCounterOffset = 8225024;
};

// Phase 1 of 6: qkv. Waits for hidden; completes qkv.
constexpr MatrixPhase kQkv{
  .index = 0,
  .weights = 0,
  .layer_stride = 1711276032,
  .columns = 8192,
  .padded = 8192,
  .rows = 10240,
  .num_tiles = 640,
  .first_cta = 0,
  .input = InputKind::kNormed,
  .input_vector = Plan::kHiddenVector,
  .output = OutputKind::kRotary,
  .output_vector = Plan::kQkvVector,
};

// Phase 4 of 6: o. Waits for heads; completes post_attention.
constexpr MatrixPhase kO{
  .index = 3,
  .weights = 167772160,
  .layer_stride = 1711276032,
  .columns = 8192,
  .padded = 8192,
  .rows = 8192,
  .num_tiles = 512,
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
  .weights = 301989888,
  .layer_stride = 1711276032,
  .columns = 8192,
  .padded = 8192,
  .rows = 57344,
  .num_tiles = 3584,
  .first_cta = 0,
  .input = InputKind::kNormed,
  .input_vector = Plan::kPostAttentionVector,
  .output = OutputKind::kSwiglu,
  .output_vector = Plan::kFfnVector,
};

// Phase 6 of 6: down. Waits for ffn; completes hidden.
constexpr MatrixPhase kDown{
  .index = 5,
  .weights = 1241513984,
  .layer_stride = 1711276032,
  .columns = 28672,
  .padded = 28672,
  .rows = 8192,
  .num_tiles = 512,
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
  .weights = 136902082560,
  .layer_stride = 0,
  .columns = 8192,
  .padded = 8192,
  .rows = 128256,
  .num_tiles = 8016,
  .first_cta = 0,
  .input = InputKind::kNormed,
  .input_vector = Plan::kHiddenVector,
  .output = OutputKind::kLogits,
};

constexpr Descriptor kDescriptor{
  .model = "llama-3.1-70b",
  .gpu = "h100",
  .facts =
    {
      .hidden = 8192,
      .ffn = 28672,
      .num_layers = 80,
      .num_heads = 64,
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
      .weight_bits = 16,
      .weight_group = 0,
      .weight_zeros = 0,
      .weight_order = 0,
      .lm_head_bits = 16,
      .norm_epsilon = 1e-05,
      .rope_theta = 500000.0,
      .rope_factor = 8.0,
      .rope_low_freq_factor = 1.0,
      .rope_high_freq_factor = 4.0,
      .rope_beta_fast = 32.0,
      .rope_beta_slow = 1.0,
      .rope_attention_factor = 1.0,
    },
  .facts_hash = 0x8732fec88575bdfcull,
  .page_layout = 1,
  .compute_capability = 90,
  .num_ctas = 128,
  .threads_per_cta = 352,
  .shared_bytes = 222920,
  .tree_costs = {.item_us = 1.5, .mma_us = 0.003, .read_bytes_per_s = 3200000000000.0, .exchange_bytes_per_s = 3200000000000.0},
  .rows = 64,
  .weight_bytes = 139003428864,
  .needed_weight_bytes = 139003428864,
  .max_query_tiles = 16,
  .resident_tokens = 128,
  .workspace_byte = 0,
  .workspace_bytes = 8225280,
  .counter_offset = 8225024,
  .counter_bytes = 256,
  .matrices =
    {
      {.name = "qkv", .offset = 0, .layer_stride = 1711276032, .rows = 10240, .columns = 8192, .padded_columns = 8192, .format = {WeightType::kBf16, 0, false}, .num_tiles = 640, .row_order = RowOrder::kRotary},
      {.name = "o", .offset = 167772160, .layer_stride = 1711276032, .rows = 8192, .columns = 8192, .padded_columns = 8192, .format = {WeightType::kBf16, 0, false}, .num_tiles = 512, .row_order = RowOrder::kPlain},
      {.name = "gate_up", .offset = 301989888, .layer_stride = 1711276032, .rows = 57344, .columns = 8192, .padded_columns = 8192, .format = {WeightType::kBf16, 0, false}, .num_tiles = 3584, .row_order = RowOrder::kGateUp},
      {.name = "down", .offset = 1241513984, .layer_stride = 1711276032, .rows = 8192, .columns = 28672, .padded_columns = 28672, .format = {WeightType::kBf16, 0, false}, .num_tiles = 512, .row_order = RowOrder::kPlain},
      {.name = "lm_head", .offset = 136902082560, .layer_stride = 0, .rows = 128256, .columns = 8192, .padded_columns = 8192, .format = {WeightType::kBf16, 0, false}, .num_tiles = 8016, .row_order = RowOrder::kPlain},
    },
};

}  // namespace soliton::generated::rows64
