// Generated from models/qwen2.5-1.5b.yaml for h200 and h100. Do not edit; run: soliton-gen models/qwen2.5-1.5b.yaml --gpu h200,h100 --rows 1,8,64,128,256,512,1024
#pragma once

#include "layout/library.h"

namespace soliton::generated {

// What phases name.
struct Matrices { enum : int { kQkv = 0, kO = 1, kGateUp = 2, kDown = 3, kLmHead = 4 }; };
struct Vectors { enum : int { kQkv = 0, kHeads = 1, kPostAttention = 2, kFfn = 3, kHidden = 4, kCandidates = 5, kSquares = 6 }; };

constexpr PackedMatrix kMatrices[] = {  // in the order of the packed weights
  {.name = "qkv", .layer_kind = 0, .offset = 0, .rows = 2048, .columns = 1536, .padded_columns = 1536, .format = {WeightType::kBf16, 0, false}, .num_tiles = 128, .row_order = RowOrder::kRotary},
  {.name = "o", .layer_kind = 0, .offset = 6291456, .rows = 1536, .columns = 1536, .padded_columns = 1536, .format = {WeightType::kBf16, 0, false}, .num_tiles = 96, .row_order = RowOrder::kPlain},
  {.name = "gate_up", .layer_kind = 0, .offset = 11010048, .rows = 17920, .columns = 1536, .padded_columns = 1536, .format = {WeightType::kBf16, 0, false}, .num_tiles = 1120, .row_order = RowOrder::kGateUp},
  {.name = "down", .layer_kind = 0, .offset = 66060288, .rows = 1536, .columns = 8960, .padded_columns = 8960, .format = {WeightType::kBf16, 0, false}, .num_tiles = 96, .row_order = RowOrder::kPlain},
  {.name = "lm_head", .layer_kind = 1, .offset = 0, .rows = 151936, .columns = 1536, .padded_columns = 1536, .format = {WeightType::kBf16, 0, false}, .num_tiles = 9496, .row_order = RowOrder::kPlain},
};

constexpr Layer kLayers[] = {  // the last stands once, behind all others
  {.kind = 0, .weights = 0, .first_norm = 0},
  {.kind = 0, .weights = 93585408, .first_norm = 2},
  {.kind = 0, .weights = 187170816, .first_norm = 4},
  {.kind = 0, .weights = 280756224, .first_norm = 6},
  {.kind = 0, .weights = 374341632, .first_norm = 8},
  {.kind = 0, .weights = 467927040, .first_norm = 10},
  {.kind = 0, .weights = 561512448, .first_norm = 12},
  {.kind = 0, .weights = 655097856, .first_norm = 14},
  {.kind = 0, .weights = 748683264, .first_norm = 16},
  {.kind = 0, .weights = 842268672, .first_norm = 18},
  {.kind = 0, .weights = 935854080, .first_norm = 20},
  {.kind = 0, .weights = 1029439488, .first_norm = 22},
  {.kind = 0, .weights = 1123024896, .first_norm = 24},
  {.kind = 0, .weights = 1216610304, .first_norm = 26},
  {.kind = 0, .weights = 1310195712, .first_norm = 28},
  {.kind = 0, .weights = 1403781120, .first_norm = 30},
  {.kind = 0, .weights = 1497366528, .first_norm = 32},
  {.kind = 0, .weights = 1590951936, .first_norm = 34},
  {.kind = 0, .weights = 1684537344, .first_norm = 36},
  {.kind = 0, .weights = 1778122752, .first_norm = 38},
  {.kind = 0, .weights = 1871708160, .first_norm = 40},
  {.kind = 0, .weights = 1965293568, .first_norm = 42},
  {.kind = 0, .weights = 2058878976, .first_norm = 44},
  {.kind = 0, .weights = 2152464384, .first_norm = 46},
  {.kind = 0, .weights = 2246049792, .first_norm = 48},
  {.kind = 0, .weights = 2339635200, .first_norm = 50},
  {.kind = 0, .weights = 2433220608, .first_norm = 52},
  {.kind = 0, .weights = 2526806016, .first_norm = 54},
  {.kind = 1, .weights = 2620391424, .first_norm = 56},
};

constexpr ModelDescriptor kModel{
  .name = "qwen2.5-1.5b",
  .gpu = "sm90",
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
      .activation = 0,
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
  .facts_hash = 0xffbc62c7ec7aac9eull,
  .page_layout = 2,
  .compute_capability = 90,
  .num_cards = 2,
  .cards =
    {
      {.name = "h200", .costs = {.item_us = 0.3, .mma_us = 0.002, .read_bytes_per_s = 4600000000000.0, .exchange_bytes_per_s = 2700000000000.0}},
      {.name = "h100", .costs = {.item_us = 0.3, .mma_us = 0.002, .read_bytes_per_s = 3200000000000.0, .exchange_bytes_per_s = 2700000000000.0}},
    },
  .weight_bytes = 3087138816,
  .needed_weight_bytes = 3087138816,
  .matrices = kMatrices,
  .num_matrices = 5,
  .layers = kLayers,
};

constexpr ModelShape kModelShape{
  .layers = kLayers,
  .num_layers = 28,
  .num_heads = 12,
  .num_kv_heads = 2,
  .head_dim = 128,
  .kv_parts = 1,
  .hidden = 1536,
  .qkv_bias = true,
  .head_norm = false,
  .ordered = false,
  .norm_epsilon = 9.999999974752427e-07f,
  .score_scale = 0.127517431974411f,
  .integers = {WeightType::kBf16, 0, false},
};

constexpr Vector kDecodeVectors[] = {  // in the workspace
  {.offset = 0, .elements = 2048, .signatures = 0},  // qkv
  {.offset = 8192, .elements = 1536, .signatures = 0},  // heads
  {.offset = 14336, .elements = 1536, .signatures = 0},  // post_attention
  {.offset = 20480, .elements = 8960, .signatures = 0, .to_second = 35840},  // ffn
  {.offset = 92160, .elements = 1536, .signatures = 0},  // hidden
  {.offset = 98304, .elements = 258, .signatures = 0},  // candidates
};
constexpr KernelPlan kDecodeNumbers{
  .model = kModelShape,
  .matrices = kMatrices, .num_matrices = 5,
  .vectors = kDecodeVectors, .num_vectors = 6,
  .rows = 1, .sync = SyncMode::kSelfValidating, .num_ctas = 128,
  .copies = CopyKind::kBulk, .consumer_warps = 4, .producer_warps = 1,
  .ring_slots = 13, .slot_bytes = 16384, .window = 3, .waiting_window = 2, .kv_window = 3,
  .prefetch_pages = 16,
  .residual_tiles = 1, .num_norms = 57,
  .tile_slots = 4, .chunk_columns = 1536, .min_pages_per_split = 2,
  .partials = {.offset = 99584, .elements = 66560},
  .counter_offset = 365824, .counter_bytes = 768, .workspace_bytes = 366592,
  .num_regions = 12,
  .regions = {  // offset and bytes in shared memory
    {"pages", 0, 212992},
    {"x", 212992, 12416},
    {"tiles", 225408, 1024},
    {"residual", 226432, 64},
    {"token", 226496, 1040},
    {"squares", 227536, 32},
    {"decision", 227568, 32},
    {"experts", 227600, 0},
    {"zeros", 227600, 0},
    {"waiting", 227600, 4},
    {"status", 227616, 192},
    {"barriers", 227808, 360},
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
  {.offset = 0, .elements = 16384, .signatures = 0},  // qkv
  {.offset = 65536, .elements = 12288, .signatures = 0},  // heads
  {.offset = 114688, .elements = 12288, .signatures = 0},  // post_attention
  {.offset = 163840, .elements = 71680, .signatures = 0},  // ffn
  {.offset = 450560, .elements = 12288, .signatures = 0},  // hidden
  {.offset = 499712, .elements = 2050, .signatures = 0},  // candidates
  {.offset = 508160, .elements = 1024, .signatures = 0},  // squares
};
constexpr KernelPlan kDecodeRows8Numbers{
  .model = kModelShape,
  .matrices = kMatrices, .num_matrices = 5,
  .vectors = kDecodeRows8Vectors, .num_vectors = 7,
  .rows = 8, .sync = SyncMode::kCounter, .num_ctas = 128,
  .copies = CopyKind::kBulk, .consumer_warps = 8, .producer_warps = 1,
  .ring_slots = 10, .slot_bytes = 16384, .window = 3, .waiting_window = 3, .kv_window = 3,
  .prefetch_pages = 16,
  .residual_tiles = 1, .num_norms = 57,
  .input_buffers = 2, .max_query_tiles = 6, .warp_dims = 128,
  .shares_registers = true,
  .squares = Vectors::kSquares,
  .counter_offset = 512256, .counter_bytes = 256, .workspace_bytes = 512512,
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
  {.offset = 0, .elements = 65536, .signatures = 0},  // qkv
  {.offset = 262144, .elements = 49152, .signatures = 0},  // heads
  {.offset = 458752, .elements = 49152, .signatures = 0},  // post_attention
  {.offset = 655360, .elements = 286720, .signatures = 0},  // ffn
  {.offset = 1802240, .elements = 49152, .signatures = 0},  // hidden
  {.offset = 1998848, .elements = 16386, .signatures = 0},  // candidates
  {.offset = 2064640, .elements = 8192, .signatures = 0},  // squares
};
constexpr KernelPlan kDecodeRows64Numbers{
  .model = kModelShape,
  .matrices = kMatrices, .num_matrices = 5,
  .vectors = kDecodeRows64Vectors, .num_vectors = 7,
  .rows = 64, .sync = SyncMode::kCounter, .num_ctas = 128,
  .copies = CopyKind::kBulk, .consumer_warps = 8, .producer_warps = 1,
  .ring_slots = 8, .slot_bytes = 16384, .window = 8, .waiting_window = 8, .kv_window = 8,
  .prefetch_pages = 0,
  .residual_tiles = 1, .num_norms = 57,
  .input_buffers = 4, .max_query_tiles = 8, .warp_dims = 128,
  .shares_registers = true,
  .warpgroups = true,
  .squares = Vectors::kSquares,
  .sums = {.offset = 2097408, .elements = 4325376},
  .counter_offset = 19398912, .counter_bytes = 256, .workspace_bytes = 19399168,
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
  {.offset = 0, .elements = 131072, .signatures = 0},  // qkv
  {.offset = 524288, .elements = 98304, .signatures = 0},  // heads
  {.offset = 917504, .elements = 98304, .signatures = 0},  // post_attention
  {.offset = 1310720, .elements = 573440, .signatures = 0},  // ffn
  {.offset = 3604480, .elements = 98304, .signatures = 0},  // hidden
  {.offset = 3997696, .elements = 32770, .signatures = 0},  // candidates
  {.offset = 4129024, .elements = 16384, .signatures = 0},  // squares
};
constexpr KernelPlan kDecodeRows128Numbers{
  .model = kModelShape,
  .matrices = kMatrices, .num_matrices = 5,
  .vectors = kDecodeRows128Vectors, .num_vectors = 7,
  .rows = 128, .sync = SyncMode::kCounter, .num_ctas = 128,
  .copies = CopyKind::kBulk, .consumer_warps = 8, .producer_warps = 1,
  .ring_slots = 6, .slot_bytes = 16384, .window = 6, .waiting_window = 6, .kv_window = 6,
  .prefetch_pages = 0,
  .residual_tiles = 1, .num_norms = 57,
  .input_buffers = 3, .max_query_tiles = 8, .warp_dims = 128,
  .shares_registers = true,
  .warpgroups = true,
  .squares = Vectors::kSquares,
  .sums = {.offset = 4194560, .elements = 8650752},
  .counter_offset = 38797568, .counter_bytes = 256, .workspace_bytes = 38797824,
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
  {.offset = 0, .elements = 262144, .signatures = 0},  // qkv
  {.offset = 1048576, .elements = 196608, .signatures = 0},  // heads
  {.offset = 1835008, .elements = 196608, .signatures = 0},  // post_attention
  {.offset = 2621440, .elements = 1146880, .signatures = 0},  // ffn
  {.offset = 7208960, .elements = 196608, .signatures = 0},  // hidden
  {.offset = 7995392, .elements = 65538, .signatures = 0},  // candidates
  {.offset = 8257792, .elements = 32768, .signatures = 0},  // squares
};
constexpr KernelPlan kDecodeRows256Numbers{
  .model = kModelShape,
  .matrices = kMatrices, .num_matrices = 5,
  .vectors = kDecodeRows256Vectors, .num_vectors = 7,
  .rows = 256, .sync = SyncMode::kCounter, .num_ctas = 128,
  .copies = CopyKind::kBulk, .consumer_warps = 8, .producer_warps = 1,
  .ring_slots = 6, .slot_bytes = 16384, .window = 6, .waiting_window = 6, .kv_window = 6,
  .prefetch_pages = 0,
  .residual_tiles = 1, .num_norms = 57,
  .input_buffers = 3, .max_query_tiles = 8, .warp_dims = 128,
  .shares_registers = true,
  .warpgroups = true,
  .squares = Vectors::kSquares,
  .sums = {.offset = 8388864, .elements = 8912896},
  .counter_offset = 44040448, .counter_bytes = 256, .workspace_bytes = 44040704,
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
  {.offset = 0, .elements = 524288, .signatures = 0},  // qkv
  {.offset = 2097152, .elements = 393216, .signatures = 0},  // heads
  {.offset = 3670016, .elements = 393216, .signatures = 0},  // post_attention
  {.offset = 5242880, .elements = 2293760, .signatures = 0},  // ffn
  {.offset = 14417920, .elements = 393216, .signatures = 0},  // hidden
  {.offset = 15990784, .elements = 65538, .signatures = 0},  // candidates
  {.offset = 16253184, .elements = 65536, .signatures = 0},  // squares
};
constexpr KernelPlan kDecodeRows512Numbers{
  .model = kModelShape,
  .matrices = kMatrices, .num_matrices = 5,
  .vectors = kDecodeRows512Vectors, .num_vectors = 7,
  .rows = 512, .sync = SyncMode::kCounter, .num_ctas = 128,
  .copies = CopyKind::kBulk, .consumer_warps = 8, .producer_warps = 1,
  .ring_slots = 6, .slot_bytes = 16384, .window = 6, .waiting_window = 6, .kv_window = 6,
  .prefetch_pages = 0,
  .residual_tiles = 2, .num_norms = 57,
  .input_buffers = 3, .max_query_tiles = 8, .warp_dims = 128,
  .shares_registers = true,
  .warpgroups = true,
  .squares = Vectors::kSquares,
  .sums = {.offset = 16515328, .elements = 9437184},
  .counter_offset = 54264064, .counter_bytes = 256, .workspace_bytes = 54264320,
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
  {.offset = 0, .elements = 1048576, .signatures = 0},  // qkv
  {.offset = 4194304, .elements = 786432, .signatures = 0},  // heads
  {.offset = 7340032, .elements = 786432, .signatures = 0},  // post_attention
  {.offset = 10485760, .elements = 4587520, .signatures = 0},  // ffn
  {.offset = 28835840, .elements = 786432, .signatures = 0},  // hidden
  {.offset = 31981568, .elements = 65538, .signatures = 0},  // candidates
  {.offset = 32243968, .elements = 131072, .signatures = 0},  // squares
};
constexpr KernelPlan kDecodeRows1024Numbers{
  .model = kModelShape,
  .matrices = kMatrices, .num_matrices = 5,
  .vectors = kDecodeRows1024Vectors, .num_vectors = 7,
  .rows = 1024, .sync = SyncMode::kCounter, .num_ctas = 128,
  .copies = CopyKind::kBulk, .consumer_warps = 8, .producer_warps = 1,
  .ring_slots = 6, .slot_bytes = 16384, .window = 6, .waiting_window = 6, .kv_window = 6,
  .prefetch_pages = 0,
  .residual_tiles = 3, .num_norms = 57,
  .input_buffers = 3, .max_query_tiles = 8, .warp_dims = 128,
  .shares_registers = true,
  .warpgroups = true,
  .squares = Vectors::kSquares,
  .sums = {.offset = 32768256, .elements = 9961472},
  .counter_offset = 72614144, .counter_bytes = 256, .workspace_bytes = 72614400,
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
