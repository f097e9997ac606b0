// Generated from models/llama-3.2-1b.yaml for h200 and h100. Do not edit; run: soliton-gen models/llama-3.2-1b.yaml --gpu h200,h100 --rows 1,8,16,32,64,128,256,512,1024
#pragma once

#include "layout/library.h"

namespace soliton::generated {

// What phases name.
struct Matrices { enum : int { kQkv = 0, kO = 1, kGateUp = 2, kDown = 3, kLmHead = 4 }; };
struct Vectors { enum : int { kQkv = 0, kHeads = 1, kPostAttention = 2, kFfn = 3, kHidden = 4, kCandidates = 5, kSquares = 6 }; };

constexpr PackedMatrix kMatrices[] = {  // in the order of the packed weights
  {.name = "qkv", .layer_kind = 0, .offset = 0, .rows = 3072, .columns = 2048, .padded_columns = 2048, .format = {WeightType::kBf16, 0, false}, .num_tiles = 192, .row_order = RowOrder::kRotary},
  {.name = "o", .layer_kind = 0, .offset = 12582912, .rows = 2048, .columns = 2048, .padded_columns = 2048, .format = {WeightType::kBf16, 0, false}, .num_tiles = 128, .row_order = RowOrder::kPlain},
  {.name = "gate_up", .layer_kind = 0, .offset = 20971520, .rows = 16384, .columns = 2048, .padded_columns = 2048, .format = {WeightType::kBf16, 0, false}, .num_tiles = 1024, .row_order = RowOrder::kGateUp},
  {.name = "down", .layer_kind = 0, .offset = 88080384, .rows = 2048, .columns = 8192, .padded_columns = 8192, .format = {WeightType::kBf16, 0, false}, .num_tiles = 128, .row_order = RowOrder::kPlain},
  {.name = "lm_head", .layer_kind = 1, .offset = 0, .rows = 128256, .columns = 2048, .padded_columns = 2048, .format = {WeightType::kBf16, 0, false}, .num_tiles = 8016, .row_order = RowOrder::kPlain},
};

constexpr Layer kLayers[] = {  // the last stands once, behind all others
  {.kind = 0, .weights = 0, .first_norm = 0},
  {.kind = 0, .weights = 121634816, .first_norm = 2},
  {.kind = 0, .weights = 243269632, .first_norm = 4},
  {.kind = 0, .weights = 364904448, .first_norm = 6},
  {.kind = 0, .weights = 486539264, .first_norm = 8},
  {.kind = 0, .weights = 608174080, .first_norm = 10},
  {.kind = 0, .weights = 729808896, .first_norm = 12},
  {.kind = 0, .weights = 851443712, .first_norm = 14},
  {.kind = 0, .weights = 973078528, .first_norm = 16},
  {.kind = 0, .weights = 1094713344, .first_norm = 18},
  {.kind = 0, .weights = 1216348160, .first_norm = 20},
  {.kind = 0, .weights = 1337982976, .first_norm = 22},
  {.kind = 0, .weights = 1459617792, .first_norm = 24},
  {.kind = 0, .weights = 1581252608, .first_norm = 26},
  {.kind = 0, .weights = 1702887424, .first_norm = 28},
  {.kind = 0, .weights = 1824522240, .first_norm = 30},
  {.kind = 1, .weights = 1946157056, .first_norm = 32},
};

constexpr ModelDescriptor kModel{
  .name = "llama-3.2-1b",
  .gpu = "sm90",
  .facts =
    {
      .hidden = 2048,
      .ffn = 8192,
      .num_layers = 16,
      .num_heads = 32,
      .num_kv_heads = 8,
      .head_dim = 64,
      .vocabulary = 128256,
      .tied_lm_head = 1,
      .qkv_bias = 0,
      .head_norm = 0,
      .activation = 0,
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
      .rope_factor = 32.0,
      .rope_low_freq_factor = 1.0,
      .rope_high_freq_factor = 4.0,
      .rope_beta_fast = 32.0,
      .rope_beta_slow = 1.0,
      .rope_attention_factor = 1.0,
    },
  .facts_hash = 0x8b51a6ba714df395ull,
  .page_layout = 2,
  .compute_capability = 90,
  .num_cards = 2,
  .cards =
    {
      {.name = "h200", .costs = {.item_us = 0.3, .mma_us = 0.002, .read_bytes_per_s = 4600000000000.0, .exchange_bytes_per_s = 2700000000000.0}},
      {.name = "h100", .costs = {.item_us = 0.3, .mma_us = 0.002, .read_bytes_per_s = 3200000000000.0, .exchange_bytes_per_s = 2700000000000.0}},
    },
  .weight_bytes = 2471493632,
  .needed_weight_bytes = 2471493632,
  .matrices = kMatrices,
  .num_matrices = 5,
  .layers = kLayers,
};

constexpr ModelShape kModelShape{
  .layers = kLayers,
  .num_layers = 16,
  .num_heads = 32,
  .num_kv_heads = 8,
  .head_dim = 64,
  .kv_parts = 1,
  .hidden = 2048,
  .qkv_bias = false,
  .head_norm = false,
  .ordered = false,
  .norm_epsilon = 9.999999747378752e-06f,
  .score_scale = 0.1803368777036667f,
  .integers = {WeightType::kBf16, 0, false},
};

constexpr Vector kDecodeVectors[] = {  // in the workspace
  {.offset = 0, .elements = 3072, .signatures = 0},  // qkv
  {.offset = 12288, .elements = 2048, .signatures = 0},  // heads
  {.offset = 20480, .elements = 2048, .signatures = 0},  // post_attention
  {.offset = 28672, .elements = 8192, .signatures = 0},  // ffn
  {.offset = 61440, .elements = 2048, .signatures = 0},  // hidden
  {.offset = 69632, .elements = 258, .signatures = 0},  // candidates
};
constexpr KernelPlan kDecodeNumbers{
  .model = kModelShape,
  .matrices = kMatrices, .num_matrices = 5,
  .vectors = kDecodeVectors, .num_vectors = 6,
  .rows = 1, .sync = SyncMode::kSelfValidating, .num_ctas = 128,
  .copies = CopyKind::kBulk, .consumer_warps = 4, .producer_warps = 1,
  .ring_slots = 13, .slot_bytes = 16384, .window = 3, .waiting_window = 2, .kv_window = 6,
  .prefetch_pages = 16,
  .residual_tiles = 1, .num_norms = 33,
  .tile_slots = 4, .chunk_columns = 2048, .min_pages_per_split = 2,
  .partials = {.offset = 70912, .elements = 33792},
  .counter_offset = 206080, .counter_bytes = 1280, .workspace_bytes = 207360,
  .num_regions = 12,
  .regions = {  // offset and bytes in shared memory
    {"pages", 0, 212992},
    {"x", 212992, 8192},
    {"tiles", 221184, 1024},
    {"residual", 222208, 64},
    {"token", 222272, 1024},
    {"squares", 223296, 32},
    {"decision", 223328, 32},
    {"experts", 223360, 0},
    {"zeros", 223360, 0},
    {"waiting", 223360, 4},
    {"status", 223376, 192},
    {"barriers", 223568, 360},
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
  {.offset = 0, .elements = 24576, .signatures = 0},  // qkv
  {.offset = 98304, .elements = 16384, .signatures = 0},  // heads
  {.offset = 163840, .elements = 16384, .signatures = 0},  // post_attention
  {.offset = 229376, .elements = 65536, .signatures = 0},  // ffn
  {.offset = 491520, .elements = 16384, .signatures = 0},  // hidden
  {.offset = 557056, .elements = 2050, .signatures = 0},  // candidates
  {.offset = 565504, .elements = 1024, .signatures = 0},  // squares
};
constexpr KernelPlan kDecodeRows8Numbers{
  .model = kModelShape,
  .matrices = kMatrices, .num_matrices = 5,
  .vectors = kDecodeRows8Vectors, .num_vectors = 7,
  .rows = 8, .sync = SyncMode::kCounter, .num_ctas = 128,
  .copies = CopyKind::kBulk, .consumer_warps = 8, .producer_warps = 1,
  .ring_slots = 10, .slot_bytes = 16384, .window = 3, .waiting_window = 3, .kv_window = 6,
  .prefetch_pages = 16,
  .residual_tiles = 1, .num_norms = 33,
  .input_buffers = 2, .max_query_tiles = 4, .warp_dims = 128,
  .shares_registers = true,
  .squares = Vectors::kSquares,
  .counter_offset = 569600, .counter_bytes = 256, .workspace_bytes = 569856,
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
  {.offset = 0, .elements = 24576, .signatures = 0},  // qkv
  {.offset = 98304, .elements = 16384, .signatures = 0},  // heads
  {.offset = 163840, .elements = 16384, .signatures = 0},  // post_attention
  {.offset = 229376, .elements = 65536, .signatures = 0},  // ffn
  {.offset = 491520, .elements = 16384, .signatures = 0},  // hidden
  {.offset = 557056, .elements = 4098, .signatures = 0},  // candidates
  {.offset = 573696, .elements = 2048, .signatures = 0},  // squares
};
constexpr KernelPlan kDecodeRows16Numbers{
  .model = kModelShape,
  .matrices = kMatrices, .num_matrices = 5,
  .vectors = kDecodeRows16Vectors, .num_vectors = 7,
  .rows = 16, .sync = SyncMode::kCounter, .num_ctas = 128,
  .copies = CopyKind::kBulk, .consumer_warps = 8, .producer_warps = 1,
  .ring_slots = 10, .slot_bytes = 16384, .window = 3, .waiting_window = 3, .kv_window = 6,
  .prefetch_pages = 16,
  .residual_tiles = 1, .num_norms = 33,
  .input_buffers = 2, .max_query_tiles = 4, .warp_dims = 128,
  .shares_registers = true,
  .squares = Vectors::kSquares,
  .counter_offset = 581888, .counter_bytes = 256, .workspace_bytes = 582144,
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
  {.offset = 0, .elements = 49152, .signatures = 0},  // qkv
  {.offset = 196608, .elements = 32768, .signatures = 0},  // heads
  {.offset = 327680, .elements = 32768, .signatures = 0},  // post_attention
  {.offset = 458752, .elements = 131072, .signatures = 0},  // ffn
  {.offset = 983040, .elements = 32768, .signatures = 0},  // hidden
  {.offset = 1114112, .elements = 8194, .signatures = 0},  // candidates
  {.offset = 1147136, .elements = 4096, .signatures = 0},  // squares
};
constexpr KernelPlan kDecodeRows32Numbers{
  .model = kModelShape,
  .matrices = kMatrices, .num_matrices = 5,
  .vectors = kDecodeRows32Vectors, .num_vectors = 7,
  .rows = 32, .sync = SyncMode::kCounter, .num_ctas = 128,
  .copies = CopyKind::kBulk, .consumer_warps = 8, .producer_warps = 1,
  .ring_slots = 8, .slot_bytes = 16384, .window = 4, .waiting_window = 4, .kv_window = 8,
  .prefetch_pages = 0,
  .residual_tiles = 1, .num_norms = 33,
  .input_buffers = 2, .max_query_tiles = 8, .warp_dims = 128,
  .shares_registers = true,
  .squares = Vectors::kSquares,
  .counter_offset = 1163520, .counter_bytes = 256, .workspace_bytes = 1163776,
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
  {.offset = 0, .elements = 98304, .signatures = 0},  // qkv
  {.offset = 393216, .elements = 65536, .signatures = 0},  // heads
  {.offset = 655360, .elements = 65536, .signatures = 0},  // post_attention
  {.offset = 917504, .elements = 262144, .signatures = 0},  // ffn
  {.offset = 1966080, .elements = 65536, .signatures = 0},  // hidden
  {.offset = 2228224, .elements = 16386, .signatures = 0},  // candidates
  {.offset = 2294016, .elements = 8192, .signatures = 0},  // squares
};
constexpr KernelPlan kDecodeRows64Numbers{
  .model = kModelShape,
  .matrices = kMatrices, .num_matrices = 5,
  .vectors = kDecodeRows64Vectors, .num_vectors = 7,
  .rows = 64, .sync = SyncMode::kCounter, .num_ctas = 128,
  .copies = CopyKind::kBulk, .consumer_warps = 8, .producer_warps = 1,
  .ring_slots = 8, .slot_bytes = 16384, .window = 8, .waiting_window = 8, .kv_window = 8,
  .prefetch_pages = 0,
  .residual_tiles = 1, .num_norms = 33,
  .input_buffers = 3, .max_query_tiles = 16, .warp_dims = 128,
  .shares_registers = true,
  .warpgroups = true,
  .squares = Vectors::kSquares,
  .sums = {.offset = 2326784, .elements = 4325376},
  .counter_offset = 19628288, .counter_bytes = 256, .workspace_bytes = 19628544,
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
  {.offset = 0, .elements = 196608, .signatures = 0},  // qkv
  {.offset = 786432, .elements = 131072, .signatures = 0},  // heads
  {.offset = 1310720, .elements = 131072, .signatures = 0},  // post_attention
  {.offset = 1835008, .elements = 524288, .signatures = 0},  // ffn
  {.offset = 3932160, .elements = 131072, .signatures = 0},  // hidden
  {.offset = 4456448, .elements = 32770, .signatures = 0},  // candidates
  {.offset = 4587776, .elements = 16384, .signatures = 0},  // squares
};
constexpr KernelPlan kDecodeRows128Numbers{
  .model = kModelShape,
  .matrices = kMatrices, .num_matrices = 5,
  .vectors = kDecodeRows128Vectors, .num_vectors = 7,
  .rows = 128, .sync = SyncMode::kCounter, .num_ctas = 128,
  .copies = CopyKind::kBulk, .consumer_warps = 8, .producer_warps = 1,
  .ring_slots = 6, .slot_bytes = 16384, .window = 6, .waiting_window = 6, .kv_window = 6,
  .prefetch_pages = 0,
  .residual_tiles = 1, .num_norms = 33,
  .input_buffers = 3, .max_query_tiles = 32, .warp_dims = 128,
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
  {.offset = 0, .elements = 393216, .signatures = 0},  // qkv
  {.offset = 1572864, .elements = 262144, .signatures = 0},  // heads
  {.offset = 2621440, .elements = 262144, .signatures = 0},  // post_attention
  {.offset = 3670016, .elements = 1048576, .signatures = 0},  // ffn
  {.offset = 7864320, .elements = 262144, .signatures = 0},  // hidden
  {.offset = 8912896, .elements = 65538, .signatures = 0},  // candidates
  {.offset = 9175296, .elements = 32768, .signatures = 0},  // squares
};
constexpr KernelPlan kDecodeRows256Numbers{
  .model = kModelShape,
  .matrices = kMatrices, .num_matrices = 5,
  .vectors = kDecodeRows256Vectors, .num_vectors = 7,
  .rows = 256, .sync = SyncMode::kCounter, .num_ctas = 128,
  .copies = CopyKind::kBulk, .consumer_warps = 8, .producer_warps = 1,
  .ring_slots = 6, .slot_bytes = 16384, .window = 6, .waiting_window = 6, .kv_window = 6,
  .prefetch_pages = 0,
  .residual_tiles = 1, .num_norms = 33,
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
  {.offset = 0, .elements = 786432, .signatures = 0},  // qkv
  {.offset = 3145728, .elements = 524288, .signatures = 0},  // heads
  {.offset = 5242880, .elements = 524288, .signatures = 0},  // post_attention
  {.offset = 7340032, .elements = 2097152, .signatures = 0},  // ffn
  {.offset = 15728640, .elements = 524288, .signatures = 0},  // hidden
  {.offset = 17825792, .elements = 65538, .signatures = 0},  // candidates
  {.offset = 18088192, .elements = 65536, .signatures = 0},  // squares
};
constexpr KernelPlan kDecodeRows512Numbers{
  .model = kModelShape,
  .matrices = kMatrices, .num_matrices = 5,
  .vectors = kDecodeRows512Vectors, .num_vectors = 7,
  .rows = 512, .sync = SyncMode::kCounter, .num_ctas = 128,
  .copies = CopyKind::kBulk, .consumer_warps = 8, .producer_warps = 1,
  .ring_slots = 6, .slot_bytes = 16384, .window = 6, .waiting_window = 6, .kv_window = 6,
  .prefetch_pages = 0,
  .residual_tiles = 2, .num_norms = 33,
  .input_buffers = 3, .max_query_tiles = 8, .warp_dims = 128,
  .shares_registers = true,
  .warpgroups = true,
  .squares = Vectors::kSquares,
  .sums = {.offset = 18350336, .elements = 9437184},
  .counter_offset = 56099072, .counter_bytes = 256, .workspace_bytes = 56099328,
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
  {.offset = 0, .elements = 1572864, .signatures = 0},  // qkv
  {.offset = 6291456, .elements = 1048576, .signatures = 0},  // heads
  {.offset = 10485760, .elements = 1048576, .signatures = 0},  // post_attention
  {.offset = 14680064, .elements = 4194304, .signatures = 0},  // ffn
  {.offset = 31457280, .elements = 1048576, .signatures = 0},  // hidden
  {.offset = 35651584, .elements = 65538, .signatures = 0},  // candidates
  {.offset = 35913984, .elements = 131072, .signatures = 0},  // squares
};
constexpr KernelPlan kDecodeRows1024Numbers{
  .model = kModelShape,
  .matrices = kMatrices, .num_matrices = 5,
  .vectors = kDecodeRows1024Vectors, .num_vectors = 7,
  .rows = 1024, .sync = SyncMode::kCounter, .num_ctas = 128,
  .copies = CopyKind::kBulk, .consumer_warps = 8, .producer_warps = 1,
  .ring_slots = 6, .slot_bytes = 16384, .window = 6, .waiting_window = 6, .kv_window = 6,
  .prefetch_pages = 0,
  .residual_tiles = 4, .num_norms = 33,
  .input_buffers = 3, .max_query_tiles = 8, .warp_dims = 128,
  .shares_registers = true,
  .warpgroups = true,
  .squares = Vectors::kSquares,
  .sums = {.offset = 36438272, .elements = 10485760},
  .counter_offset = 78381312, .counter_bytes = 256, .workspace_bytes = 78381568,
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
