// Generated from models/qwen2.5-1.5b.yaml for h200. Do not edit; run: soliton-gen models/qwen2.5-1.5b.yaml --gpu h200 --rows 1,8,64
#pragma once

#include "layout/library.h"
#include "layout/phase.h"

namespace soliton::generated::rows8 {

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

  static constexpr int kRows = 8;
  static constexpr int kNumCtas = 128;
  static constexpr int kThreads = 352;
  static constexpr int kRingSlots = 9;
  static constexpr int kSlotBytes = 16384;
  static constexpr WeightFormat kIntegers{WeightType::kBf16, 0, false};
  static constexpr uint32_t kWindow = 3;  // pages in flight
  static constexpr int kPrefetchPages = 16;
  static constexpr int kPrefetchNs = 701;
  static constexpr int kInputBuffers = 2;
  static constexpr int kMaxQueryTiles = 3;

  static constexpr int kInputBytes = 32768;
  static constexpr int kTileBytes = 34816;
  static constexpr int kResidualTiles = 1;
  static constexpr int kSharedBytes = 216680;

  // In the workspace.
  static constexpr Vector kQkvVector{.offset = 0, .elements = 16384, .signatures = 0};
  static constexpr Vector kHeadsVector{.offset = 65536, .elements = 12288, .signatures = 0};
  static constexpr Vector kPostAttentionVector{.offset = 114688, .elements = 12288, .signatures = 0};
  static constexpr Vector kFfnVector{.offset = 163840, .elements = 71680, .signatures = 0};
  static constexpr Vector kHiddenVector{.offset = 450560, .elements = 12288, .signatures = 0};
  static constexpr Vector kCandidatesVector{.offset = 499712, .elements = 2050, .signatures = 0};
  static constexpr Vector kSquaresVector{.offset = 508160, .elements = 4096, .signatures = 0};
  static constexpr int64_t kCounterOffset = 524544;
};

// Phase 1 of 6: qkv. Waits for hidden; completes qkv.
constexpr MatrixPhase kQkv{
  .index = 0,
  .weights = 0,
  .layer_stride = 93585408,
  .columns = 1536,
  .padded = 1536,
  .rows = 2048,
  .num_tiles = 128,
  .first_cta = 0,
  .input = InputKind::kNormed,
  .input_vector = Plan::kHiddenVector,
  .output = OutputKind::kRotary,
  .output_vector = Plan::kQkvVector,
};

// Phase 4 of 6: o. Waits for heads; completes post_attention.
constexpr MatrixPhase kO{
  .index = 3,
  .weights = 6291456,
  .layer_stride = 93585408,
  .columns = 1536,
  .padded = 1536,
  .rows = 1536,
  .num_tiles = 96,
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
  .weights = 11010048,
  .layer_stride = 93585408,
  .columns = 1536,
  .padded = 1536,
  .rows = 17920,
  .num_tiles = 1120,
  .first_cta = 96,
  .input = InputKind::kNormed,
  .input_vector = Plan::kPostAttentionVector,
  .output = OutputKind::kSwiglu,
  .output_vector = Plan::kFfnVector,
};

// Phase 6 of 6: down. Waits for ffn; completes hidden.
constexpr MatrixPhase kDown{
  .index = 5,
  .weights = 66060288,
  .layer_stride = 93585408,
  .columns = 8960,
  .padded = 8960,
  .rows = 1536,
  .num_tiles = 96,
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
  .weights = 2620391424,
  .layer_stride = 0,
  .columns = 1536,
  .padded = 1536,
  .rows = 151936,
  .num_tiles = 9496,
  .first_cta = 96,
  .input = InputKind::kNormed,
  .input_vector = Plan::kHiddenVector,
  .output = OutputKind::kLogits,
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
  .threads_per_cta = 352,
  .shared_bytes = 216680,
  .tree_costs = {.item_us = 1.5, .mma_us = 0.003, .read_bytes_per_s = 4600000000000.0, .exchange_bytes_per_s = 4600000000000.0},
  .rows = 8,
  .weight_bytes = 3087138816,
  .needed_weight_bytes = 3087138816,
  .max_query_tiles = 3,
  .resident_tokens = 256,
  .workspace_byte = 0,
  .workspace_bytes = 524800,
  .counter_offset = 524544,
  .counter_bytes = 256,
  .matrices =
    {
      {.name = "qkv", .offset = 0, .layer_stride = 93585408, .rows = 2048, .columns = 1536, .padded_columns = 1536, .format = {WeightType::kBf16, 0, false}, .num_tiles = 128, .row_order = RowOrder::kRotary},
      {.name = "o", .offset = 6291456, .layer_stride = 93585408, .rows = 1536, .columns = 1536, .padded_columns = 1536, .format = {WeightType::kBf16, 0, false}, .num_tiles = 96, .row_order = RowOrder::kPlain},
      {.name = "gate_up", .offset = 11010048, .layer_stride = 93585408, .rows = 17920, .columns = 1536, .padded_columns = 1536, .format = {WeightType::kBf16, 0, false}, .num_tiles = 1120, .row_order = RowOrder::kGateUp},
      {.name = "down", .offset = 66060288, .layer_stride = 93585408, .rows = 1536, .columns = 8960, .padded_columns = 8960, .format = {WeightType::kBf16, 0, false}, .num_tiles = 96, .row_order = RowOrder::kPlain},
      {.name = "lm_head", .offset = 2620391424, .layer_stride = 0, .rows = 151936, .columns = 1536, .padded_columns = 1536, .format = {WeightType::kBf16, 0, false}, .num_tiles = 9496, .row_order = RowOrder::kPlain},
    },
};

}  // namespace soliton::generated::rows8
