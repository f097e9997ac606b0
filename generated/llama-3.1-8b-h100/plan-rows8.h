// Generated from models/llama-3.1-8b.yaml for h100. Do not edit; run: soliton-gen models/llama-3.1-8b.yaml --gpu h100 --rows 1,8,16,32,64
#pragma once

#include "layout/library.h"
#include "layout/phase.h"

namespace soliton::generated::rows8 {

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

  static constexpr int kRows = 8;
  static constexpr int kNumCtas = 128;
  static constexpr int kThreads = 352;
  static constexpr int kRingSlots = 9;
  static constexpr int kSlotBytes = 16384;
  static constexpr WeightFormat kIntegers{WeightType::kBf16, 0, false};
  static constexpr uint32_t kWindow = 3;  // pages in flight
  static constexpr int kPrefetchPages = 16;
  static constexpr int kPrefetchNs = 1008;
  static constexpr int kInputBuffers = 2;
  static constexpr int kMaxQueryTiles = 2;

  static constexpr int kInputBytes = 32768;
  static constexpr int kTileBytes = 34816;
  static constexpr int kResidualTiles = 2;
  static constexpr int kSharedBytes = 217192;

  // In the workspace.
  static constexpr Vector kQkvVector{.offset = 0, .elements = 49152, .signatures = 0};
  static constexpr Vector kHeadsVector{.offset = 196608, .elements = 32768, .signatures = 0};
  static constexpr Vector kPostAttentionVector{.offset = 327680, .elements = 32768, .signatures = 0};
  static constexpr Vector kFfnVector{.offset = 458752, .elements = 114688, .signatures = 0};
  static constexpr Vector kHiddenVector{.offset = 917504, .elements = 32768, .signatures = 0};
  static constexpr Vector kCandidatesVector{.offset = 1048576, .elements = 2050, .signatures = 0};
  static constexpr Vector kSquaresVector{.offset = 1057024, .elements = 4096, .signatures = 0};
  static constexpr int64_t kCounterOffset = 1073408;
};

// Phase 1 of 6: qkv. Waits for hidden; completes qkv.
constexpr MatrixPhase kQkv{
  .index = 0,
  .weights = 0,
  .layer_stride = 436207616,
  .columns = 4096,
  .padded = 4096,
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
  .weights = 50331648,
  .layer_stride = 436207616,
  .columns = 4096,
  .padded = 4096,
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
  .weights = 83886080,
  .layer_stride = 436207616,
  .columns = 4096,
  .padded = 4096,
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
  .weights = 318767104,
  .layer_stride = 436207616,
  .columns = 14336,
  .padded = 14336,
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
  .weights = 13958643712,
  .layer_stride = 0,
  .columns = 4096,
  .padded = 4096,
  .rows = 128256,
  .num_tiles = 8016,
  .first_cta = 0,
  .input = InputKind::kNormed,
  .input_vector = Plan::kHiddenVector,
  .output = OutputKind::kLogits,
};

constexpr Descriptor kDescriptor{
  .model = "llama-3.1-8b",
  .gpu = "h100",
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
  .facts_hash = 0x3412821c64357f74ull,
  .page_layout = 1,
  .compute_capability = 90,
  .num_ctas = 128,
  .threads_per_cta = 352,
  .shared_bytes = 217192,
  .tree_costs = {.item_us = 1.5, .mma_us = 0.003, .read_bytes_per_s = 3200000000000.0, .exchange_bytes_per_s = 3200000000000.0},
  .rows = 8,
  .weight_bytes = 15009316864,
  .needed_weight_bytes = 15009316864,
  .max_query_tiles = 2,
  .resident_tokens = 256,
  .workspace_byte = 0,
  .workspace_bytes = 1073664,
  .counter_offset = 1073408,
  .counter_bytes = 256,
  .matrices =
    {
      {.name = "qkv", .offset = 0, .layer_stride = 436207616, .rows = 6144, .columns = 4096, .padded_columns = 4096, .format = {WeightType::kBf16, 0, false}, .num_tiles = 384, .row_order = RowOrder::kRotary},
      {.name = "o", .offset = 50331648, .layer_stride = 436207616, .rows = 4096, .columns = 4096, .padded_columns = 4096, .format = {WeightType::kBf16, 0, false}, .num_tiles = 256, .row_order = RowOrder::kPlain},
      {.name = "gate_up", .offset = 83886080, .layer_stride = 436207616, .rows = 28672, .columns = 4096, .padded_columns = 4096, .format = {WeightType::kBf16, 0, false}, .num_tiles = 1792, .row_order = RowOrder::kGateUp},
      {.name = "down", .offset = 318767104, .layer_stride = 436207616, .rows = 4096, .columns = 14336, .padded_columns = 14336, .format = {WeightType::kBf16, 0, false}, .num_tiles = 256, .row_order = RowOrder::kPlain},
      {.name = "lm_head", .offset = 13958643712, .layer_stride = 0, .rows = 128256, .columns = 4096, .padded_columns = 4096, .format = {WeightType::kBf16, 0, false}, .num_tiles = 8016, .row_order = RowOrder::kPlain},
    },
};

}  // namespace soliton::generated::rows8
