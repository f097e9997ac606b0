// Generated from models/qwen3-0.6b.yaml for h200 and h100. Do not edit; run: soliton-gen models/qwen3-0.6b.yaml --gpu h200,h100 --rows 1,8,64,128,256,512,1024
#pragma once

#include "layout/library.h"

namespace soliton::generated {

// What phases name.
struct Matrices { enum : int { kQkv = 0, kO = 1, kGateUp = 2, kDown = 3, kLmHead = 4 }; };
struct Vectors { enum : int { kQkv = 0, kHeads = 1, kPostAttention = 2, kFfn = 3, kHidden = 4, kCandidates = 5, kSquares = 6, kUnnormed = 7 }; };

constexpr PackedMatrix kMatrices[] = {  // in the order of the packed weights
  {.name = "qkv", .layer_kind = 0, .offset = 0, .rows = 4096, .columns = 1024, .padded_columns = 1024, .format = {WeightType::kBf16, 0, false}, .num_tiles = 256, .row_order = RowOrder::kRotary},
  {.name = "o", .layer_kind = 0, .offset = 8388608, .rows = 1024, .columns = 2048, .padded_columns = 2048, .format = {WeightType::kBf16, 0, false}, .num_tiles = 64, .row_order = RowOrder::kPlain},
  {.name = "gate_up", .layer_kind = 0, .offset = 12582912, .rows = 6144, .columns = 1024, .padded_columns = 1024, .format = {WeightType::kBf16, 0, false}, .num_tiles = 384, .row_order = RowOrder::kGateUp},
  {.name = "down", .layer_kind = 0, .offset = 25165824, .rows = 1024, .columns = 3072, .padded_columns = 3072, .format = {WeightType::kBf16, 0, false}, .num_tiles = 64, .row_order = RowOrder::kPlain},
  {.name = "lm_head", .layer_kind = 1, .offset = 0, .rows = 151936, .columns = 1024, .padded_columns = 1024, .format = {WeightType::kBf16, 0, false}, .num_tiles = 9496, .row_order = RowOrder::kPlain},
};

constexpr Layer kLayers[] = {  // the last stands once, behind all others
  {.kind = 0, .weights = 0, .first_norm = 0},
  {.kind = 0, .weights = 31457280, .first_norm = 2},
  {.kind = 0, .weights = 62914560, .first_norm = 4},
  {.kind = 0, .weights = 94371840, .first_norm = 6},
  {.kind = 0, .weights = 125829120, .first_norm = 8},
  {.kind = 0, .weights = 157286400, .first_norm = 10},
  {.kind = 0, .weights = 188743680, .first_norm = 12},
  {.kind = 0, .weights = 220200960, .first_norm = 14},
  {.kind = 0, .weights = 251658240, .first_norm = 16},
  {.kind = 0, .weights = 283115520, .first_norm = 18},
  {.kind = 0, .weights = 314572800, .first_norm = 20},
  {.kind = 0, .weights = 346030080, .first_norm = 22},
  {.kind = 0, .weights = 377487360, .first_norm = 24},
  {.kind = 0, .weights = 408944640, .first_norm = 26},
  {.kind = 0, .weights = 440401920, .first_norm = 28},
  {.kind = 0, .weights = 471859200, .first_norm = 30},
  {.kind = 0, .weights = 503316480, .first_norm = 32},
  {.kind = 0, .weights = 534773760, .first_norm = 34},
  {.kind = 0, .weights = 566231040, .first_norm = 36},
  {.kind = 0, .weights = 597688320, .first_norm = 38},
  {.kind = 0, .weights = 629145600, .first_norm = 40},
  {.kind = 0, .weights = 660602880, .first_norm = 42},
  {.kind = 0, .weights = 692060160, .first_norm = 44},
  {.kind = 0, .weights = 723517440, .first_norm = 46},
  {.kind = 0, .weights = 754974720, .first_norm = 48},
  {.kind = 0, .weights = 786432000, .first_norm = 50},
  {.kind = 0, .weights = 817889280, .first_norm = 52},
  {.kind = 0, .weights = 849346560, .first_norm = 54},
  {.kind = 1, .weights = 880803840, .first_norm = 56},
};

constexpr ModelDescriptor kModel{
  .name = "qwen3-0.6b",
  .gpu = "sm90",
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
      .activation = 0,
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
  .facts_hash = 0x88ff2c42f131bb81ull,
  .page_layout = 2,
  .compute_capability = 90,
  .num_cards = 2,
  .cards =
    {
      {.name = "h200", .costs = {.item_us = 0.3, .mma_us = 0.002, .read_bytes_per_s = 4600000000000.0, .exchange_bytes_per_s = 2700000000000.0}},
      {.name = "h100", .costs = {.item_us = 0.3, .mma_us = 0.002, .read_bytes_per_s = 3200000000000.0, .exchange_bytes_per_s = 2700000000000.0}},
    },
  .weight_bytes = 1191968768,
  .needed_weight_bytes = 1191968768,
  .matrices = kMatrices,
  .num_matrices = 5,
  .layers = kLayers,
};

constexpr ModelShape kModelShape{
  .layers = kLayers,
  .num_layers = 28,
  .num_heads = 16,
  .num_kv_heads = 8,
  .head_dim = 128,
  .kv_parts = 1,
  .hidden = 1024,
  .qkv_bias = false,
  .head_norm = true,
  .ordered = false,
  .norm_epsilon = 9.999999974752427e-07f,
  .score_scale = 0.127517431974411f,
  .integers = {WeightType::kBf16, 0, false},
};

constexpr Vector kDecodeVectors[] = {  // in the workspace
  {.offset = 0, .elements = 4096, .signatures = 0},  // qkv
  {.offset = 16384, .elements = 2048, .signatures = 0},  // heads
  {.offset = 24576, .elements = 1024, .signatures = 0},  // post_attention
  {.offset = 28672, .elements = 3072, .signatures = 0, .to_second = 12288},  // ffn
  {.offset = 53248, .elements = 1024, .signatures = 0},  // hidden
  {.offset = 57344, .elements = 258, .signatures = 0},  // candidates
};
constexpr KernelPlan kDecodeNumbers{
  .model = kModelShape,
  .matrices = kMatrices, .num_matrices = 5,
  .vectors = kDecodeVectors, .num_vectors = 6,
  .rows = 1, .sync = SyncMode::kSelfValidating, .num_ctas = 128,
  .copies = CopyKind::kBulk, .consumer_warps = 4, .producer_warps = 1,
  .ring_slots = 13, .slot_bytes = 16384, .window = 2, .waiting_window = 1, .kv_window = 2,
  .prefetch_pages = 16,
  .residual_tiles = 1, .num_norms = 57,
  .tile_slots = 4, .chunk_columns = 2048, .min_pages_per_split = 2,
  .partials = {.offset = 58624, .elements = 66560},
  .counter_offset = 324864, .counter_bytes = 1280, .workspace_bytes = 326144,
  .num_regions = 12,
  .regions = {  // offset and bytes in shared memory
    {"pages", 0, 212992},
    {"x", 212992, 12416},
    {"tiles", 225408, 1024},
    {"residual", 226432, 64},
    {"token", 226496, 1024},
    {"squares", 227520, 32},
    {"decision", 227552, 32},
    {"experts", 227584, 0},
    {"zeros", 227584, 0},
    {"waiting", 227584, 4},
    {"status", 227600, 192},
    {"barriers", 227792, 360},
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
  {.offset = 0, .elements = 32768, .signatures = 0},  // qkv
  {.offset = 131072, .elements = 16384, .signatures = 0},  // heads
  {.offset = 196608, .elements = 8192, .signatures = 0},  // post_attention
  {.offset = 229376, .elements = 24576, .signatures = 0},  // ffn
  {.offset = 327680, .elements = 8192, .signatures = 0},  // hidden
  {.offset = 360448, .elements = 2050, .signatures = 0},  // candidates
  {.offset = 368896, .elements = 1024, .signatures = 0},  // squares
  {.offset = 372992, .elements = 24576, .signatures = 0},  // unnormed
};
constexpr KernelPlan kDecodeRows8Numbers{
  .model = kModelShape,
  .matrices = kMatrices, .num_matrices = 5,
  .vectors = kDecodeRows8Vectors, .num_vectors = 8,
  .rows = 8, .sync = SyncMode::kCounter, .num_ctas = 128,
  .copies = CopyKind::kBulk, .consumer_warps = 8, .producer_warps = 1,
  .ring_slots = 10, .slot_bytes = 16384, .window = 3, .waiting_window = 3, .kv_window = 3,
  .prefetch_pages = 16,
  .residual_tiles = 1, .num_norms = 57,
  .input_buffers = 2, .max_query_tiles = 2, .warp_dims = 128,
  .shares_registers = true,
  .squares = Vectors::kSquares,
  .counter_offset = 471296, .counter_bytes = 256, .workspace_bytes = 471552,
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

constexpr Vector kDecodeRows64Vectors[] = {  // in the workspace
  {.offset = 0, .elements = 131072, .signatures = 0},  // qkv
  {.offset = 524288, .elements = 65536, .signatures = 0},  // heads
  {.offset = 786432, .elements = 32768, .signatures = 0},  // post_attention
  {.offset = 917504, .elements = 98304, .signatures = 0},  // ffn
  {.offset = 1310720, .elements = 32768, .signatures = 0},  // hidden
  {.offset = 1441792, .elements = 16386, .signatures = 0},  // candidates
  {.offset = 1507584, .elements = 8192, .signatures = 0},  // squares
  {.offset = 1540352, .elements = 196608, .signatures = 0},  // unnormed
};
constexpr KernelPlan kDecodeRows64Numbers{
  .model = kModelShape,
  .matrices = kMatrices, .num_matrices = 5,
  .vectors = kDecodeRows64Vectors, .num_vectors = 8,
  .rows = 64, .sync = SyncMode::kCounter, .num_ctas = 128,
  .copies = CopyKind::kBulk, .consumer_warps = 8, .producer_warps = 1,
  .ring_slots = 8, .slot_bytes = 16384, .window = 8, .waiting_window = 8, .kv_window = 8,
  .prefetch_pages = 0,
  .residual_tiles = 1, .num_norms = 57,
  .input_buffers = 4, .max_query_tiles = 8, .warp_dims = 128,
  .shares_registers = true,
  .warpgroups = true,
  .squares = Vectors::kSquares,
  .sums = {.offset = 2326784, .elements = 4325376},
  .counter_offset = 19628288, .counter_bytes = 256, .workspace_bytes = 19628544,
  .num_regions = 11,
  .regions = {  // offset and bytes in shared memory
    {"pages", 0, 131072},
    {"input", 131072, 65536},
    {"tiles", 196608, 33280},
    {"residual", 229888, 0},
    {"factors", 229888, 256},
    {"held", 230144, 1440},
    {"decision", 231584, 32},
    {"fenced", 231616, 0},
    {"experts", 231616, 0},
    {"status", 231616, 320},
    {"barriers", 231936, 488},
  },
  .num_barriers = 20,
  .barriers = {  // slots, arrivals, of whole warps?
    {"page_full", 8, 1, false},
    {"page_empty", 8, 8, true},
    {"input_full", 4, 1, false},
    {"input_empty", 4, 8, true},
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
  {.offset = 0, .elements = 262144, .signatures = 0},  // qkv
  {.offset = 1048576, .elements = 131072, .signatures = 0},  // heads
  {.offset = 1572864, .elements = 65536, .signatures = 0},  // post_attention
  {.offset = 1835008, .elements = 196608, .signatures = 0},  // ffn
  {.offset = 2621440, .elements = 65536, .signatures = 0},  // hidden
  {.offset = 2883584, .elements = 32770, .signatures = 0},  // candidates
  {.offset = 3014912, .elements = 16384, .signatures = 0},  // squares
  {.offset = 3080448, .elements = 393216, .signatures = 0},  // unnormed
};
constexpr KernelPlan kDecodeRows128Numbers{
  .model = kModelShape,
  .matrices = kMatrices, .num_matrices = 5,
  .vectors = kDecodeRows128Vectors, .num_vectors = 8,
  .rows = 128, .sync = SyncMode::kCounter, .num_ctas = 128,
  .copies = CopyKind::kBulk, .consumer_warps = 8, .producer_warps = 1,
  .ring_slots = 6, .slot_bytes = 16384, .window = 6, .waiting_window = 6, .kv_window = 6,
  .prefetch_pages = 0,
  .residual_tiles = 1, .num_norms = 57,
  .input_buffers = 3, .max_query_tiles = 8, .warp_dims = 128,
  .shares_registers = true,
  .warpgroups = true,
  .squares = Vectors::kSquares,
  .sums = {.offset = 4653312, .elements = 8650752},
  .counter_offset = 39256320, .counter_bytes = 256, .workspace_bytes = 39256576,
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

constexpr Vector kDecodeRows256Vectors[] = {  // in the workspace
  {.offset = 0, .elements = 524288, .signatures = 0},  // qkv
  {.offset = 2097152, .elements = 262144, .signatures = 0},  // heads
  {.offset = 3145728, .elements = 131072, .signatures = 0},  // post_attention
  {.offset = 3670016, .elements = 393216, .signatures = 0},  // ffn
  {.offset = 5242880, .elements = 131072, .signatures = 0},  // hidden
  {.offset = 5767168, .elements = 65538, .signatures = 0},  // candidates
  {.offset = 6029568, .elements = 32768, .signatures = 0},  // squares
  {.offset = 6160640, .elements = 786432, .signatures = 0},  // unnormed
};
constexpr KernelPlan kDecodeRows256Numbers{
  .model = kModelShape,
  .matrices = kMatrices, .num_matrices = 5,
  .vectors = kDecodeRows256Vectors, .num_vectors = 8,
  .rows = 256, .sync = SyncMode::kCounter, .num_ctas = 128,
  .copies = CopyKind::kBulk, .consumer_warps = 8, .producer_warps = 1,
  .ring_slots = 6, .slot_bytes = 16384, .window = 6, .waiting_window = 6, .kv_window = 6,
  .prefetch_pages = 0,
  .residual_tiles = 1, .num_norms = 57,
  .input_buffers = 3, .max_query_tiles = 8, .warp_dims = 128,
  .shares_registers = true,
  .warpgroups = true,
  .squares = Vectors::kSquares,
  .sums = {.offset = 9306368, .elements = 8912896},
  .counter_offset = 44957952, .counter_bytes = 256, .workspace_bytes = 44958208,
  .num_regions = 11,
  .regions = {  // offset and bytes in shared memory
    {"pages", 0, 98304},
    {"input", 98304, 98304},
    {"tiles", 196608, 24576},
    {"residual", 221184, 0},
    {"factors", 221184, 1024},
    {"held", 222208, 4512},
    {"decision", 226720, 32},
    {"fenced", 226752, 0},
    {"experts", 226752, 0},
    {"status", 226752, 320},
    {"barriers", 227072, 440},
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

constexpr Vector kDecodeRows512Vectors[] = {  // in the workspace
  {.offset = 0, .elements = 1048576, .signatures = 0},  // qkv
  {.offset = 4194304, .elements = 524288, .signatures = 0},  // heads
  {.offset = 6291456, .elements = 262144, .signatures = 0},  // post_attention
  {.offset = 7340032, .elements = 786432, .signatures = 0},  // ffn
  {.offset = 10485760, .elements = 262144, .signatures = 0},  // hidden
  {.offset = 11534336, .elements = 65538, .signatures = 0},  // candidates
  {.offset = 11796736, .elements = 65536, .signatures = 0},  // squares
  {.offset = 12058880, .elements = 1572864, .signatures = 0},  // unnormed
};
constexpr KernelPlan kDecodeRows512Numbers{
  .model = kModelShape,
  .matrices = kMatrices, .num_matrices = 5,
  .vectors = kDecodeRows512Vectors, .num_vectors = 8,
  .rows = 512, .sync = SyncMode::kCounter, .num_ctas = 128,
  .copies = CopyKind::kBulk, .consumer_warps = 8, .producer_warps = 1,
  .ring_slots = 6, .slot_bytes = 16384, .window = 6, .waiting_window = 6, .kv_window = 6,
  .prefetch_pages = 0,
  .residual_tiles = 1, .num_norms = 57,
  .input_buffers = 3, .max_query_tiles = 8, .warp_dims = 128,
  .shares_registers = true,
  .warpgroups = true,
  .squares = Vectors::kSquares,
  .sums = {.offset = 18350336, .elements = 8912896},
  .counter_offset = 54001920, .counter_bytes = 256, .workspace_bytes = 54002176,
  .num_regions = 11,
  .regions = {  // offset and bytes in shared memory
    {"pages", 0, 98304},
    {"input", 98304, 98304},
    {"tiles", 196608, 24576},
    {"residual", 221184, 0},
    {"factors", 221184, 1024},
    {"held", 222208, 416},
    {"decision", 222624, 32},
    {"fenced", 222656, 0},
    {"experts", 222656, 0},
    {"status", 222656, 320},
    {"barriers", 222976, 440},
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

constexpr Vector kDecodeRows1024Vectors[] = {  // in the workspace
  {.offset = 0, .elements = 2097152, .signatures = 0},  // qkv
  {.offset = 8388608, .elements = 1048576, .signatures = 0},  // heads
  {.offset = 12582912, .elements = 524288, .signatures = 0},  // post_attention
  {.offset = 14680064, .elements = 1572864, .signatures = 0},  // ffn
  {.offset = 20971520, .elements = 524288, .signatures = 0},  // hidden
  {.offset = 23068672, .elements = 65538, .signatures = 0},  // candidates
  {.offset = 23331072, .elements = 131072, .signatures = 0},  // squares
  {.offset = 23855360, .elements = 3145728, .signatures = 0},  // unnormed
};
constexpr KernelPlan kDecodeRows1024Numbers{
  .model = kModelShape,
  .matrices = kMatrices, .num_matrices = 5,
  .vectors = kDecodeRows1024Vectors, .num_vectors = 8,
  .rows = 1024, .sync = SyncMode::kCounter, .num_ctas = 128,
  .copies = CopyKind::kBulk, .consumer_warps = 8, .producer_warps = 1,
  .ring_slots = 6, .slot_bytes = 16384, .window = 6, .waiting_window = 6, .kv_window = 6,
  .prefetch_pages = 0,
  .residual_tiles = 2, .num_norms = 57,
  .input_buffers = 3, .max_query_tiles = 8, .warp_dims = 128,
  .shares_registers = true,
  .warpgroups = true,
  .squares = Vectors::kSquares,
  .sums = {.offset = 36438272, .elements = 9437184},
  .counter_offset = 74187008, .counter_bytes = 256, .workspace_bytes = 74187264,
  .num_regions = 11,
  .regions = {  // offset and bytes in shared memory
    {"pages", 0, 98304},
    {"input", 98304, 98304},
    {"tiles", 196608, 24576},
    {"residual", 221184, 0},
    {"factors", 221184, 1024},
    {"held", 222208, 416},
    {"decision", 222624, 32},
    {"fenced", 222656, 0},
    {"experts", 222656, 0},
    {"status", 222656, 320},
    {"barriers", 222976, 440},
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
