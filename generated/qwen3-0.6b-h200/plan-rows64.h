// Generated from models/qwen3-0.6b.yaml for h200. Do not edit; run: soliton-gen models/qwen3-0.6b.yaml --gpu h200 --rows 1,8,64
#pragma once

#include "layout/library.h"
#include "layout/phase.h"

namespace soliton::generated::rows64 {

struct Plan {
  static constexpr int kNumLayers = 28;
  static constexpr int kNumHeads = 16;
  static constexpr int kNumKvHeads = 8;
  static constexpr int kHeadDim = 128;
  static constexpr KvShape kKv{kNumLayers, kNumKvHeads, kHeadDim, 1};
  static constexpr int kQkvRows = 4096;
  static constexpr int kHidden = 1024;
  static constexpr bool kQkvBias = false;
  static constexpr bool kHeadNorm = true;
  static constexpr float kNormEpsilon = 9.999999974752427e-07f;
  // 1 / sqrt(head_dim), for exponentials in base 2
  static constexpr float kScoreScale = 0.127517431974411f;

  static constexpr int kRows = 64;
  static constexpr int kNumCtas = 128;
  static constexpr int kThreads = 352;
  static constexpr int kRingSlots = 5;
  static constexpr int kSlotBytes = 16384;
  static constexpr WeightFormat kIntegers{WeightType::kBf16, 0, false};
  static constexpr uint32_t kWindow = 4;  // pages in flight
  static constexpr int kPrefetchPages = 0;
  static constexpr int kPrefetchNs = 701;
  static constexpr int kInputBuffers = 3;
  static constexpr int kMaxQueryTiles = 8;

  static constexpr int kInputBytes = 98304;
  static constexpr int kTileBytes = 40960;
  static constexpr int kResidualTiles = 1;
  static constexpr int kSharedBytes = 227032;

  // In the workspace.
  static constexpr Vector kQkvVector{.offset = 0, .elements = 131072, .signatures = 0};
  static constexpr Vector kHeadsVector{.offset = 524288, .elements = 65536, .signatures = 0};
  static constexpr Vector kPostAttentionVector{.offset = 786432, .elements = 32768, .signatures = 0};
  static constexpr Vector kFfnVector{.offset = 917504, .elements = 98304, .signatures = 0};
  static constexpr Vector kHiddenVector{.offset = 1310720, .elements = 32768, .signatures = 0};
  static constexpr Vector kCandidatesVector{.offset = 1441792, .elements = 16386, .signatures = 0};
  static constexpr Vector kSquaresVector{.offset = 1507584, .elements = 8192, .signatures = 0};
  static constexpr Vector kUnnormedVector{.offset = 1540352, .elements = 196608, .signatures = 0};
  static constexpr int64_t kCounterOffset = 2326784;
};

// Phase 1 of 7: qkv. Waits for hidden; completes unnormed.
constexpr MatrixPhase kQkv{
  .index = 0,
  .weights = 0,
  .layer_stride = 31457280,
  .columns = 1024,
  .padded = 1024,
  .rows = 4096,
  .num_tiles = 256,
  .first_cta = 0,
  .input = InputKind::kNormed,
  .input_vector = Plan::kHiddenVector,
  .output = OutputKind::kRotary,
  .output_vector = Plan::kUnnormedVector,
};

// Phase 5 of 7: o. Waits for heads; completes post_attention.
constexpr MatrixPhase kO{
  .index = 4,
  .weights = 8388608,
  .layer_stride = 31457280,
  .columns = 2048,
  .padded = 2048,
  .rows = 1024,
  .num_tiles = 64,
  .first_cta = 0,
  .input = InputKind::kVector,
  .input_vector = Plan::kHeadsVector,
  .first_norm = 1,
  .norm_stride = 2,
  .output = OutputKind::kResidual,
  .output_vector = Plan::kPostAttentionVector,
};

// Phase 6 of 7: gate_up. Waits for post_attention; completes ffn.
constexpr MatrixPhase kGateUp{
  .index = 5,
  .weights = 12582912,
  .layer_stride = 31457280,
  .columns = 1024,
  .padded = 1024,
  .rows = 6144,
  .num_tiles = 384,
  .first_cta = 64,
  .input = InputKind::kNormed,
  .input_vector = Plan::kPostAttentionVector,
  .output = OutputKind::kSwiglu,
  .output_vector = Plan::kFfnVector,
};

// Phase 7 of 7: down. Waits for ffn; completes hidden.
constexpr MatrixPhase kDown{
  .index = 6,
  .weights = 25165824,
  .layer_stride = 31457280,
  .columns = 3072,
  .padded = 3072,
  .rows = 1024,
  .num_tiles = 64,
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
  .index = 7,
  .weights = 880803840,
  .layer_stride = 0,
  .columns = 1024,
  .padded = 1024,
  .rows = 151936,
  .num_tiles = 9496,
  .first_cta = 64,
  .input = InputKind::kNormed,
  .input_vector = Plan::kHiddenVector,
  .output = OutputKind::kLogits,
};

constexpr Descriptor kDescriptor{
  .model = "qwen3-0.6b",
  .gpu = "h200",
  .facts =
    {
      .hidden = 1024,
      .ffn = 3072,
      .num_layers = 28,
      .num_heads = 16,
      .num_kv_heads = 8,
      .head_dim = 128,
      .vocabulary = 151936,
      .tied_lm_head = 1,
      .qkv_bias = 0,
      .head_norm = 1,
      .kv_bits = 16,
      .max_context = 40960,
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
  .facts_hash = 0xa58efa386a71d141ull,
  .page_layout = 1,
  .compute_capability = 90,
  .num_ctas = 128,
  .threads_per_cta = 352,
  .shared_bytes = 227032,
  .tree_costs = {.item_us = 1.5, .mma_us = 0.003, .read_bytes_per_s = 4600000000000.0, .exchange_bytes_per_s = 4600000000000.0},
  .rows = 64,
  .weight_bytes = 1191968768,
  .needed_weight_bytes = 1191968768,
  .max_query_tiles = 8,
  .resident_tokens = 128,
  .workspace_byte = 0,
  .workspace_bytes = 2327040,
  .counter_offset = 2326784,
  .counter_bytes = 256,
  .matrices =
    {
      {.name = "qkv", .offset = 0, .layer_stride = 31457280, .rows = 4096, .columns = 1024, .padded_columns = 1024, .format = {WeightType::kBf16, 0, false}, .num_tiles = 256, .row_order = RowOrder::kRotary},
      {.name = "o", .offset = 8388608, .layer_stride = 31457280, .rows = 1024, .columns = 2048, .padded_columns = 2048, .format = {WeightType::kBf16, 0, false}, .num_tiles = 64, .row_order = RowOrder::kPlain},
      {.name = "gate_up", .offset = 12582912, .layer_stride = 31457280, .rows = 6144, .columns = 1024, .padded_columns = 1024, .format = {WeightType::kBf16, 0, false}, .num_tiles = 384, .row_order = RowOrder::kGateUp},
      {.name = "down", .offset = 25165824, .layer_stride = 31457280, .rows = 1024, .columns = 3072, .padded_columns = 3072, .format = {WeightType::kBf16, 0, false}, .num_tiles = 64, .row_order = RowOrder::kPlain},
      {.name = "lm_head", .offset = 880803840, .layer_stride = 0, .rows = 151936, .columns = 1024, .padded_columns = 1024, .format = {WeightType::kBf16, 0, false}, .num_tiles = 9496, .row_order = RowOrder::kPlain},
    },
};

}  // namespace soliton::generated::rows64
