// Generated from models/tiny-stories.yaml for h200 and h100. Do not edit; run: soliton-gen models/tiny-stories.yaml --gpu h200,h100 --rows 1,8,16,32,64,128
#pragma once

#include "layout/library.h"

namespace soliton::generated {

// What phases name.
struct Matrices { enum : int { kQkv = 0, kO = 1, kGateUp = 2, kDown = 3, kLmHead = 4 }; };
struct Vectors { enum : int { kQkv = 0, kHeads = 1, kPostAttention = 2, kFfn = 3, kHidden = 4, kCandidates = 5, kSquares = 6 }; };

constexpr PackedMatrix kMatrices[] = {  // in the order of the packed weights
  {.name = "qkv", .layer_kind = 0, .offset = 0, .rows = 512, .columns = 256, .padded_columns = 256, .format = {WeightType::kBf16, 0, false}, .num_tiles = 32, .row_order = RowOrder::kRotary},
  {.name = "o", .layer_kind = 0, .offset = 262144, .rows = 256, .columns = 256, .padded_columns = 256, .format = {WeightType::kBf16, 0, false}, .num_tiles = 16, .row_order = RowOrder::kPlain},
  {.name = "gate_up", .layer_kind = 0, .offset = 393216, .rows = 1536, .columns = 256, .padded_columns = 256, .format = {WeightType::kBf16, 0, false}, .num_tiles = 96, .row_order = RowOrder::kGateUp},
  {.name = "down", .layer_kind = 0, .offset = 1179648, .rows = 256, .columns = 768, .padded_columns = 768, .format = {WeightType::kBf16, 0, false}, .num_tiles = 16, .row_order = RowOrder::kPlain},
  {.name = "lm_head", .layer_kind = 1, .offset = 0, .rows = 2048, .columns = 256, .padded_columns = 256, .format = {WeightType::kBf16, 0, false}, .num_tiles = 128, .row_order = RowOrder::kPlain},
};

constexpr Layer kLayers[] = {  // the last stands once, behind all others
  {.kind = 0, .weights = 0, .first_norm = 0},
  {.kind = 0, .weights = 1572864, .first_norm = 2},
  {.kind = 0, .weights = 3145728, .first_norm = 4},
  {.kind = 0, .weights = 4718592, .first_norm = 6},
  {.kind = 0, .weights = 6291456, .first_norm = 8},
  {.kind = 0, .weights = 7864320, .first_norm = 10},
  {.kind = 1, .weights = 9437184, .first_norm = 12},
};

constexpr ModelDescriptor kModel{
  .name = "tiny-stories",
  .gpu = "sm90",
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
      .activation = 0,
      .kv_bits = 16,
      .max_context = 2048,
      .rope_kind = RopeKind::kLlama3,
      .rope_original_context = 256,
      .rope_truncate = 1,
      .weight_bits = 16,
      .weight_group = 0,
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
  .facts_hash = 0xbb784bc3e32a7146ull,
  .page_layout = 2,
  .compute_capability = 90,
  .num_cards = 2,
  .cards =
    {
      {.name = "h200", .costs = {.item_us = 0.3, .mma_us = 0.002, .read_bytes_per_s = 4600000000000.0, .exchange_bytes_per_s = 2700000000000.0}},
      {.name = "h100", .costs = {.item_us = 0.3, .mma_us = 0.002, .read_bytes_per_s = 3200000000000.0, .exchange_bytes_per_s = 2700000000000.0}},
    },
  .weight_bytes = 10485760,
  .needed_weight_bytes = 10485760,
  .matrices = kMatrices,
  .num_matrices = 5,
  .layers = kLayers,
};

constexpr ModelShape kModelShape{
  .layers = kLayers,
  .num_layers = 6,
  .num_heads = 4,
  .num_kv_heads = 2,
  .head_dim = 64,
  .kv_parts = 1,
  .hidden = 256,
  .qkv_bias = false,
  .head_norm = false,
  .ordered = false,
  .norm_epsilon = 9.999999747378752e-06f,
  .score_scale = 0.1803368777036667f,
  .integers = {WeightType::kBf16, 0, false},
};

constexpr Vector kDecodeVectors[] = {  // in the workspace
  {.offset = 0, .elements = 512, .signatures = 0},  // qkv
  {.offset = 2048, .elements = 256, .signatures = 0},  // heads
  {.offset = 3072, .elements = 256, .signatures = 0},  // post_attention
  {.offset = 4096, .elements = 768, .signatures = 128, .to_second = 3584},  // ffn
  {.offset = 11264, .elements = 256, .signatures = 0},  // hidden
  {.offset = 12288, .elements = 258, .signatures = 0},  // candidates
};
constexpr KernelPlan kDecodeNumbers{
  .model = kModelShape,
  .matrices = kMatrices, .num_matrices = 5,
  .vectors = kDecodeVectors, .num_vectors = 6,
  .rows = 1, .sync = SyncMode::kSelfValidating, .num_ctas = 128,
  .copies = CopyKind::kBulk, .consumer_warps = 4, .producer_warps = 1,
  .ring_slots = 13, .slot_bytes = 16384, .window = 2, .waiting_window = 1, .kv_window = 4,
  .prefetch_pages = 16,
  .residual_tiles = 1, .num_norms = 13,
  .tile_slots = 4, .chunk_columns = 512, .min_pages_per_split = 2,
  .partials = {.offset = 13568, .elements = 33792},
  .counter_offset = 148736, .counter_bytes = 512, .workspace_bytes = 149248,
  .num_regions = 12,
  .regions = {  // offset and bytes in shared memory
    {"pages", 0, 212992},
    {"x", 212992, 6272},
    {"tiles", 219264, 1024},
    {"residual", 220288, 64},
    {"token", 220352, 1024},
    {"squares", 221376, 32},
    {"decision", 221408, 32},
    {"experts", 221440, 0},
    {"zeros", 221440, 0},
    {"waiting", 221440, 4},
    {"status", 221456, 192},
    {"barriers", 221648, 360},
  },
  .num_barriers = 15,
  .barriers = {  // slots, arrivals, of whole warps?
    {"page_full", 13, 1, false},
    {"page_empty", 13, 4, true},
    {"tile_full", 4, 4, true},
    {"tile_empty", 4, 1, true},
    {"input_read", 2, 4, true},
    {"input_taken", 2, 1, true},
    {"query_full", 1, 4, true},
    {"attention_full", 1, 5, true},
    {"attention_empty", 1, 4, true},
    {"token_ready", 1, 1, true},
    {"step_read", 1, 1, true},
    {"experts_chosen", 0, 1, true},
    {"experts_taken", 0, 1, false},
    {"stopped", 1, 1, false},
    {"ended", 1, 6, false},
  },
};

constexpr Vector kDecodeRows8Vectors[] = {  // in the workspace
  {.offset = 0, .elements = 4096, .signatures = 0},  // qkv
  {.offset = 16384, .elements = 2048, .signatures = 0},  // heads
  {.offset = 24576, .elements = 2048, .signatures = 0},  // post_attention
  {.offset = 32768, .elements = 6144, .signatures = 0},  // ffn
  {.offset = 57344, .elements = 2048, .signatures = 0},  // hidden
  {.offset = 65536, .elements = 2050, .signatures = 0},  // candidates
  {.offset = 73984, .elements = 1024, .signatures = 0},  // squares
};
constexpr KernelPlan kDecodeRows8Numbers{
  .model = kModelShape,
  .matrices = kMatrices, .num_matrices = 5,
  .vectors = kDecodeRows8Vectors, .num_vectors = 7,
  .rows = 8, .sync = SyncMode::kCounter, .num_ctas = 128,
  .copies = CopyKind::kBulk, .consumer_warps = 8, .producer_warps = 1,
  .ring_slots = 10, .slot_bytes = 16384, .window = 3, .waiting_window = 3, .kv_window = 6,
  .prefetch_pages = 16,
  .residual_tiles = 1, .num_norms = 13,
  .input_buffers = 2, .max_query_tiles = 2, .warp_dims = 128,
  .shares_registers = true,
  .squares = Vectors::kSquares,
  .counter_offset = 78080, .counter_bytes = 256, .workspace_bytes = 78336,
  .num_regions = 11,
  .regions = {  // offset and bytes in shared memory
    {"pages", 0, 163840},
    {"input", 163840, 32768},
    {"tiles", 196608, 20480},
    {"residual", 217088, 512},
    {"factors", 217600, 32},
    {"held", 217632, 2624},
    {"decision", 220256, 32},
    {"fenced", 220288, 4},
    {"experts", 220292, 0},
    {"status", 220304, 320},
    {"barriers", 220624, 488},
  },
  .num_barriers = 20,
  .barriers = {  // slots, arrivals, of whole warps?
    {"page_full", 10, 1, false},
    {"page_empty", 10, 8, true},
    {"input_full", 2, 1, false},
    {"input_empty", 2, 8, true},
    {"tiles_full", 1, 8, true},
    {"tiles_empty", 1, 4, true},
    {"begun", 1, 1, false},
    {"attending", 1, 1, false},
    {"phase_done", 1, 8, true},
    {"query_full", 8, 1, false},
    {"item_done", 8, 8, true},
    {"parts_full", 12, 1, true},
    {"step_known", 1, 4, true},
    {"step_read", 1, 1, false},
    {"picks_known", 0, 8, true},
    {"experts_chosen", 0, 1, true},
    {"lines_ready", 0, 8, true},
    {"experts_taken", 0, 1, false},
    {"stopped", 1, 1, false},
    {"ended", 1, 10, false},
  },
};

constexpr Vector kDecodeRows16Vectors[] = {  // in the workspace
  {.offset = 0, .elements = 4096, .signatures = 0},  // qkv
  {.offset = 16384, .elements = 2048, .signatures = 0},  // heads
  {.offset = 24576, .elements = 2048, .signatures = 0},  // post_attention
  {.offset = 32768, .elements = 6144, .signatures = 0},  // ffn
  {.offset = 57344, .elements = 2048, .signatures = 0},  // hidden
  {.offset = 65536, .elements = 4098, .signatures = 0},  // candidates
  {.offset = 82176, .elements = 2048, .signatures = 0},  // squares
};
constexpr KernelPlan kDecodeRows16Numbers{
  .model = kModelShape,
  .matrices = kMatrices, .num_matrices = 5,
  .vectors = kDecodeRows16Vectors, .num_vectors = 7,
  .rows = 16, .sync = SyncMode::kCounter, .num_ctas = 128,
  .copies = CopyKind::kBulk, .consumer_warps = 8, .producer_warps = 1,
  .ring_slots = 10, .slot_bytes = 16384, .window = 3, .waiting_window = 3, .kv_window = 6,
  .prefetch_pages = 16,
  .residual_tiles = 1, .num_norms = 13,
  .input_buffers = 2, .max_query_tiles = 2, .warp_dims = 128,
  .shares_registers = true,
  .squares = Vectors::kSquares,
  .counter_offset = 90368, .counter_bytes = 256, .workspace_bytes = 90624,
  .num_regions = 11,
  .regions = {  // offset and bytes in shared memory
    {"pages", 0, 163840},
    {"input", 163840, 32768},
    {"tiles", 196608, 20480},
    {"residual", 217088, 1024},
    {"factors", 218112, 64},
    {"held", 218176, 2752},
    {"decision", 220928, 32},
    {"fenced", 220960, 0},
    {"experts", 220960, 0},
    {"status", 220960, 320},
    {"barriers", 221280, 488},
  },
  .num_barriers = 20,
  .barriers = {  // slots, arrivals, of whole warps?
    {"page_full", 10, 1, false},
    {"page_empty", 10, 8, true},
    {"input_full", 2, 1, false},
    {"input_empty", 2, 8, true},
    {"tiles_full", 1, 8, true},
    {"tiles_empty", 1, 4, true},
    {"begun", 1, 1, false},
    {"attending", 1, 1, false},
    {"phase_done", 1, 8, true},
    {"query_full", 8, 1, false},
    {"item_done", 8, 8, true},
    {"parts_full", 12, 1, true},
    {"step_known", 1, 4, true},
    {"step_read", 1, 1, false},
    {"picks_known", 0, 8, true},
    {"experts_chosen", 0, 1, true},
    {"lines_ready", 0, 8, true},
    {"experts_taken", 0, 1, false},
    {"stopped", 1, 1, false},
    {"ended", 1, 10, false},
  },
};

constexpr Vector kDecodeRows32Vectors[] = {  // in the workspace
  {.offset = 0, .elements = 8192, .signatures = 0},  // qkv
  {.offset = 32768, .elements = 4096, .signatures = 0},  // heads
  {.offset = 49152, .elements = 4096, .signatures = 0},  // post_attention
  {.offset = 65536, .elements = 12288, .signatures = 0},  // ffn
  {.offset = 114688, .elements = 4096, .signatures = 0},  // hidden
  {.offset = 131072, .elements = 8194, .signatures = 0},  // candidates
  {.offset = 164096, .elements = 4096, .signatures = 0},  // squares
};
constexpr KernelPlan kDecodeRows32Numbers{
  .model = kModelShape,
  .matrices = kMatrices, .num_matrices = 5,
  .vectors = kDecodeRows32Vectors, .num_vectors = 7,
  .rows = 32, .sync = SyncMode::kCounter, .num_ctas = 128,
  .copies = CopyKind::kBulk, .consumer_warps = 8, .producer_warps = 1,
  .ring_slots = 8, .slot_bytes = 16384, .window = 4, .waiting_window = 4, .kv_window = 8,
  .prefetch_pages = 0,
  .residual_tiles = 1, .num_norms = 13,
  .input_buffers = 2, .max_query_tiles = 4, .warp_dims = 128,
  .shares_registers = true,
  .squares = Vectors::kSquares,
  .counter_offset = 180480, .counter_bytes = 256, .workspace_bytes = 180736,
  .num_regions = 11,
  .regions = {  // offset and bytes in shared memory
    {"pages", 0, 131072},
    {"input", 131072, 65536},
    {"tiles", 196608, 20480},
    {"residual", 217088, 2048},
    {"factors", 219136, 128},
    {"held", 219264, 928},
    {"decision", 220192, 32},
    {"fenced", 220224, 0},
    {"experts", 220224, 0},
    {"status", 220224, 320},
    {"barriers", 220544, 456},
  },
  .num_barriers = 20,
  .barriers = {  // slots, arrivals, of whole warps?
    {"page_full", 8, 1, false},
    {"page_empty", 8, 8, true},
    {"input_full", 2, 1, false},
    {"input_empty", 2, 8, true},
    {"tiles_full", 1, 8, true},
    {"tiles_empty", 1, 8, true},
    {"begun", 1, 1, false},
    {"attending", 1, 1, false},
    {"phase_done", 1, 8, true},
    {"query_full", 8, 1, false},
    {"item_done", 8, 8, true},
    {"parts_full", 12, 1, true},
    {"step_known", 1, 8, true},
    {"step_read", 1, 1, false},
    {"picks_known", 0, 8, true},
    {"experts_chosen", 0, 1, true},
    {"lines_ready", 0, 8, true},
    {"experts_taken", 0, 1, false},
    {"stopped", 1, 1, false},
    {"ended", 1, 10, false},
  },
};

constexpr Vector kDecodeRows64Vectors[] = {  // in the workspace
  {.offset = 0, .elements = 16384, .signatures = 0},  // qkv
  {.offset = 65536, .elements = 8192, .signatures = 0},  // heads
  {.offset = 98304, .elements = 8192, .signatures = 0},  // post_attention
  {.offset = 131072, .elements = 24576, .signatures = 0},  // ffn
  {.offset = 229376, .elements = 8192, .signatures = 0},  // hidden
  {.offset = 262144, .elements = 16386, .signatures = 0},  // candidates
  {.offset = 327936, .elements = 8192, .signatures = 0},  // squares
};
constexpr KernelPlan kDecodeRows64Numbers{
  .model = kModelShape,
  .matrices = kMatrices, .num_matrices = 5,
  .vectors = kDecodeRows64Vectors, .num_vectors = 7,
  .rows = 64, .sync = SyncMode::kCounter, .num_ctas = 128,
  .copies = CopyKind::kBulk, .consumer_warps = 8, .producer_warps = 1,
  .ring_slots = 8, .slot_bytes = 16384, .window = 8, .waiting_window = 8, .kv_window = 8,
  .prefetch_pages = 0,
  .residual_tiles = 1, .num_norms = 13,
  .input_buffers = 3, .max_query_tiles = 8, .warp_dims = 128,
  .shares_registers = true,
  .warpgroups = true,
  .squares = Vectors::kSquares,
  .sums = {.offset = 360704, .elements = 4325376},
  .counter_offset = 17662208, .counter_bytes = 256, .workspace_bytes = 17662464,
  .num_regions = 11,
  .regions = {  // offset and bytes in shared memory
    {"pages", 0, 131072},
    {"input", 131072, 49152},
    {"tiles", 180224, 26624},
    {"residual", 206848, 0},
    {"factors", 206848, 256},
    {"held", 207104, 1440},
    {"decision", 208544, 32},
    {"fenced", 208576, 0},
    {"experts", 208576, 0},
    {"status", 208576, 320},
    {"barriers", 208896, 472},
  },
  .num_barriers = 20,
  .barriers = {  // slots, arrivals, of whole warps?
    {"page_full", 8, 1, false},
    {"page_empty", 8, 8, true},
    {"input_full", 3, 1, false},
    {"input_empty", 3, 8, true},
    {"tiles_full", 1, 8, true},
    {"tiles_empty", 1, 8, true},
    {"begun", 1, 1, false},
    {"attending", 1, 1, false},
    {"phase_done", 1, 8, true},
    {"query_full", 8, 1, false},
    {"item_done", 8, 8, true},
    {"parts_full", 12, 1, true},
    {"step_known", 1, 8, true},
    {"step_read", 1, 1, false},
    {"picks_known", 0, 8, true},
    {"experts_chosen", 0, 1, true},
    {"lines_ready", 0, 8, true},
    {"experts_taken", 0, 1, false},
    {"stopped", 1, 1, false},
    {"ended", 1, 10, false},
  },
};

constexpr Vector kDecodeRows128Vectors[] = {  // in the workspace
  {.offset = 0, .elements = 32768, .signatures = 0},  // qkv
  {.offset = 131072, .elements = 16384, .signatures = 0},  // heads
  {.offset = 196608, .elements = 16384, .signatures = 0},  // post_attention
  {.offset = 262144, .elements = 49152, .signatures = 0},  // ffn
  {.offset = 458752, .elements = 16384, .signatures = 0},  // hidden
  {.offset = 524288, .elements = 32770, .signatures = 0},  // candidates
  {.offset = 655616, .elements = 16384, .signatures = 0},  // squares
};
constexpr KernelPlan kDecodeRows128Numbers{
  .model = kModelShape,
  .matrices = kMatrices, .num_matrices = 5,
  .vectors = kDecodeRows128Vectors, .num_vectors = 7,
  .rows = 128, .sync = SyncMode::kCounter, .num_ctas = 128,
  .copies = CopyKind::kBulk, .consumer_warps = 8, .producer_warps = 1,
  .ring_slots = 6, .slot_bytes = 16384, .window = 6, .waiting_window = 6, .kv_window = 6,
  .prefetch_pages = 0,
  .residual_tiles = 1, .num_norms = 13,
  .input_buffers = 3, .max_query_tiles = 16, .warp_dims = 128,
  .shares_registers = true,
  .warpgroups = true,
  .squares = Vectors::kSquares,
  .sums = {.offset = 721152, .elements = 8650752},
  .counter_offset = 35324160, .counter_bytes = 256, .workspace_bytes = 35324416,
  .num_regions = 11,
  .regions = {  // offset and bytes in shared memory
    {"pages", 0, 98304},
    {"input", 98304, 98304},
    {"tiles", 196608, 20480},
    {"residual", 217088, 0},
    {"factors", 217088, 512},
    {"held", 217600, 2464},
    {"decision", 220064, 32},
    {"fenced", 220096, 0},
    {"experts", 220096, 0},
    {"status", 220096, 320},
    {"barriers", 220416, 440},
  },
  .num_barriers = 20,
  .barriers = {  // slots, arrivals, of whole warps?
    {"page_full", 6, 1, false},
    {"page_empty", 6, 8, true},
    {"input_full", 3, 1, false},
    {"input_empty", 3, 8, true},
    {"tiles_full", 1, 8, true},
    {"tiles_empty", 1, 8, true},
    {"begun", 1, 1, false},
    {"attending", 1, 1, false},
    {"phase_done", 1, 8, true},
    {"query_full", 8, 1, false},
    {"item_done", 8, 8, true},
    {"parts_full", 12, 1, true},
    {"step_known", 1, 8, true},
    {"step_read", 1, 1, false},
    {"picks_known", 0, 8, true},
    {"experts_chosen", 0, 1, true},
    {"lines_ready", 0, 8, true},
    {"experts_taken", 0, 1, false},
    {"stopped", 1, 1, false},
    {"ended", 1, 10, false},
  },
};

}  // namespace soliton::generated
