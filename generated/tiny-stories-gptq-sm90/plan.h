// Generated from models/tiny-stories-gptq.yaml for h200 and h100. Do not edit; run: soliton-gen models/tiny-stories-gptq.yaml --gpu h200,h100 --rows 1,8,16,32,64,128
#pragma once

#include "layout/library.h"

namespace soliton::generated {

// What phases name.
struct Matrices { enum : int { kQkv = 0, kO = 1, kGateUp = 2, kDown = 3, kLmHead = 4 }; };
struct Vectors { enum : int { kQkv = 0, kHeads = 1, kPostAttention = 2, kFfn = 3, kHidden = 4, kCandidates = 5, kSquares = 6 }; };

constexpr PackedMatrix kMatrices[] = {  // in the order of the packed weights
  {.name = "qkv", .layer_kind = 0, .offset = 0, .rows = 512, .columns = 256, .padded_columns = 512, .format = {WeightType::kInt4, 32, false}, .num_tiles = 32, .row_order = RowOrder::kRotary},
  {.name = "o", .layer_kind = 0, .offset = 147456, .rows = 256, .columns = 256, .padded_columns = 512, .format = {WeightType::kInt4, 32, false}, .num_tiles = 16, .row_order = RowOrder::kPlain},
  {.name = "gate_up", .layer_kind = 0, .offset = 221184, .rows = 1536, .columns = 256, .padded_columns = 512, .format = {WeightType::kInt4, 32, false}, .num_tiles = 96, .row_order = RowOrder::kGateUp},
  {.name = "down", .layer_kind = 0, .offset = 663552, .rows = 256, .columns = 768, .padded_columns = 1024, .format = {WeightType::kInt4, 32, false}, .num_tiles = 16, .row_order = RowOrder::kPlain},
  {.name = "lm_head", .layer_kind = 1, .offset = 0, .rows = 2048, .columns = 256, .padded_columns = 256, .format = {WeightType::kBf16, 0, false}, .num_tiles = 128, .row_order = RowOrder::kPlain},
};

constexpr Layer kLayers[] = {  // the last stands once, behind all others
  {.kind = 0, .weights = 0, .first_norm = 0},
  {.kind = 0, .weights = 811008, .first_norm = 2},
  {.kind = 0, .weights = 1622016, .first_norm = 4},
  {.kind = 0, .weights = 2433024, .first_norm = 6},
  {.kind = 0, .weights = 3244032, .first_norm = 8},
  {.kind = 0, .weights = 4055040, .first_norm = 10},
  {.kind = 1, .weights = 4866048, .first_norm = 12},
};

constexpr ModelDescriptor kModel{
  .name = "tiny-stories-gptq",
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
  .facts_hash = 0x33ef313b1939ed92ull,
  .page_layout = 2,
  .compute_capability = 90,
  .num_cards = 2,
  .cards =
    {
      {.name = "h200", .costs = {.item_us = 0.3, .mma_us = 0.002, .read_bytes_per_s = 4600000000000.0, .exchange_bytes_per_s = 2700000000000.0}},
      {.name = "h100", .costs = {.item_us = 0.3, .mma_us = 0.002, .read_bytes_per_s = 3200000000000.0, .exchange_bytes_per_s = 2700000000000.0}},
    },
  .weight_bytes = 5914624,
  .needed_weight_bytes = 3702784,
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
  .integers = {WeightType::kInt4, 32, false},
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
  .copies = CopyKind::kBulk, .consumer_warps = 8, .producer_warps = 1,
  .ring_slots = 11, .slot_bytes = 18432, .window = 3, .waiting_window = 1, .kv_window = 6,
  .prefetch_pages = 16,
  .residual_tiles = 1, .num_norms = 13,
  .tile_slots = 4, .chunk_columns = 2048, .min_pages_per_split = 2,
  .partials = {.offset = 13568, .elements = 33792},
  .counter_offset = 148736, .counter_bytes = 512, .workspace_bytes = 149248,
  .num_regions = 12,
  .regions = {  // offset and bytes in shared memory
    {"pages", 0, 202752},
    {"x", 202752, 12544},
    {"tiles", 215296, 2048},
    {"residual", 217344, 64},
    {"token", 217408, 1024},
    {"squares", 218432, 64},
    {"decision", 218496, 64},
    {"experts", 218560, 0},
    {"zeros", 218560, 0},
    {"waiting", 218560, 4},
    {"status", 218576, 320},
    {"barriers", 218896, 328},
  },
  .num_barriers = 15,
  .barriers = {  // slots, arrivals, of whole warps?
    {"page_full", 11, 1, false},
    {"page_empty", 11, 8, true},
    {"tile_full", 4, 8, true},
    {"tile_empty", 4, 1, true},
    {"input_read", 2, 8, true},
    {"input_taken", 2, 1, true},
    {"query_full", 1, 8, true},
    {"attention_full", 1, 9, true},
    {"attention_empty", 1, 8, true},
    {"token_ready", 1, 1, true},
    {"step_read", 1, 1, true},
    {"experts_chosen", 0, 1, true},
    {"experts_taken", 0, 1, false},
    {"stopped", 1, 1, false},
    {"ended", 1, 10, false},
  },
};

constexpr Vector kDecodeRows8Vectors[] = {  // in the workspace
  {.offset = 0, .elements = 4096, .signatures = 0},  // qkv
  {.offset = 16384, .elements = 4096, .signatures = 0},  // heads
  {.offset = 32768, .elements = 4096, .signatures = 0},  // post_attention
  {.offset = 49152, .elements = 8192, .signatures = 0},  // ffn
  {.offset = 81920, .elements = 4096, .signatures = 0},  // hidden
  {.offset = 98304, .elements = 2050, .signatures = 0},  // candidates
  {.offset = 106752, .elements = 1024, .signatures = 0},  // squares
};
constexpr KernelPlan kDecodeRows8Numbers{
  .model = kModelShape,
  .matrices = kMatrices, .num_matrices = 5,
  .vectors = kDecodeRows8Vectors, .num_vectors = 7,
  .rows = 8, .sync = SyncMode::kCounter, .num_ctas = 128,
  .copies = CopyKind::kBulk, .consumer_warps = 8, .producer_warps = 1,
  .ring_slots = 8, .slot_bytes = 18432, .window = 3, .waiting_window = 3, .kv_window = 6,
  .prefetch_pages = 0,
  .residual_tiles = 1, .num_norms = 13,
  .input_buffers = 2, .max_query_tiles = 2, .warp_dims = 128,
  .shares_registers = true,
  .warpgroups = true,
  .squares = Vectors::kSquares,
  .sums = {.offset = 110848, .elements = 278528},
  .counter_offset = 1224960, .counter_bytes = 256, .workspace_bytes = 1225216,
  .num_regions = 11,
  .regions = {  // offset and bytes in shared memory
    {"pages", 0, 147456},
    {"input", 147456, 53248},
    {"tiles", 200704, 20480},
    {"residual", 221184, 0},
    {"factors", 221184, 32},
    {"held", 221216, 2624},
    {"decision", 223840, 32},
    {"fenced", 223872, 4},
    {"experts", 223876, 0},
    {"status", 223888, 320},
    {"barriers", 224208, 456},
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

constexpr Vector kDecodeRows16Vectors[] = {  // in the workspace
  {.offset = 0, .elements = 4096, .signatures = 0},  // qkv
  {.offset = 16384, .elements = 4096, .signatures = 0},  // heads
  {.offset = 32768, .elements = 4096, .signatures = 0},  // post_attention
  {.offset = 49152, .elements = 8192, .signatures = 0},  // ffn
  {.offset = 81920, .elements = 4096, .signatures = 0},  // hidden
  {.offset = 98304, .elements = 4098, .signatures = 0},  // candidates
  {.offset = 114944, .elements = 2048, .signatures = 0},  // squares
};
constexpr KernelPlan kDecodeRows16Numbers{
  .model = kModelShape,
  .matrices = kMatrices, .num_matrices = 5,
  .vectors = kDecodeRows16Vectors, .num_vectors = 7,
  .rows = 16, .sync = SyncMode::kCounter, .num_ctas = 128,
  .copies = CopyKind::kBulk, .consumer_warps = 8, .producer_warps = 1,
  .ring_slots = 6, .slot_bytes = 18432, .window = 3, .waiting_window = 3, .kv_window = 6,
  .prefetch_pages = 0,
  .residual_tiles = 1, .num_norms = 13,
  .input_buffers = 2, .max_query_tiles = 2, .warp_dims = 128,
  .shares_registers = true,
  .warpgroups = true,
  .squares = Vectors::kSquares,
  .sums = {.offset = 123136, .elements = 557056},
  .counter_offset = 2351360, .counter_bytes = 256, .workspace_bytes = 2351616,
  .num_regions = 11,
  .regions = {  // offset and bytes in shared memory
    {"pages", 0, 110592},
    {"input", 110592, 73728},
    {"tiles", 184320, 22528},
    {"residual", 206848, 0},
    {"factors", 206848, 64},
    {"held", 206912, 2752},
    {"decision", 209664, 32},
    {"fenced", 209696, 4},
    {"experts", 209700, 0},
    {"status", 209712, 320},
    {"barriers", 210032, 424},
  },
  .num_barriers = 20,
  .barriers = {  // slots, arrivals, of whole warps?
    {"page_full", 6, 1, false},
    {"page_empty", 6, 8, true},
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

constexpr Vector kDecodeRows32Vectors[] = {  // in the workspace
  {.offset = 0, .elements = 8192, .signatures = 0},  // qkv
  {.offset = 32768, .elements = 8192, .signatures = 0},  // heads
  {.offset = 65536, .elements = 8192, .signatures = 0},  // post_attention
  {.offset = 98304, .elements = 16384, .signatures = 0},  // ffn
  {.offset = 163840, .elements = 8192, .signatures = 0},  // hidden
  {.offset = 196608, .elements = 8194, .signatures = 0},  // candidates
  {.offset = 229632, .elements = 4096, .signatures = 0},  // squares
};
constexpr KernelPlan kDecodeRows32Numbers{
  .model = kModelShape,
  .matrices = kMatrices, .num_matrices = 5,
  .vectors = kDecodeRows32Vectors, .num_vectors = 7,
  .rows = 32, .sync = SyncMode::kCounter, .num_ctas = 128,
  .copies = CopyKind::kBulk, .consumer_warps = 8, .producer_warps = 1,
  .ring_slots = 10, .slot_bytes = 18432, .window = 8, .waiting_window = 8, .kv_window = 10,
  .prefetch_pages = 0,
  .residual_tiles = 1, .num_norms = 13,
  .input_buffers = 2, .max_query_tiles = 4, .warp_dims = 128,
  .shares_registers = true,
  .warpgroups = true,
  .squares = Vectors::kSquares,
  .sums = {.offset = 246016, .elements = 2162688},
  .counter_offset = 8896768, .counter_bytes = 256, .workspace_bytes = 8897024,
  .num_regions = 11,
  .regions = {  // offset and bytes in shared memory
    {"pages", 0, 184320},
    {"input", 184320, 16384},
    {"tiles", 200704, 18432},
    {"residual", 219136, 0},
    {"factors", 219136, 128},
    {"held", 219264, 928},
    {"decision", 220192, 32},
    {"fenced", 220224, 0},
    {"experts", 220224, 0},
    {"status", 220224, 320},
    {"barriers", 220544, 488},
  },
  .num_barriers = 20,
  .barriers = {  // slots, arrivals, of whole warps?
    {"page_full", 10, 1, false},
    {"page_empty", 10, 8, true},
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
  {.offset = 65536, .elements = 16384, .signatures = 0},  // heads
  {.offset = 131072, .elements = 16384, .signatures = 0},  // post_attention
  {.offset = 196608, .elements = 32768, .signatures = 0},  // ffn
  {.offset = 327680, .elements = 16384, .signatures = 0},  // hidden
  {.offset = 393216, .elements = 16386, .signatures = 0},  // candidates
  {.offset = 459008, .elements = 8192, .signatures = 0},  // squares
};
constexpr KernelPlan kDecodeRows64Numbers{
  .model = kModelShape,
  .matrices = kMatrices, .num_matrices = 5,
  .vectors = kDecodeRows64Vectors, .num_vectors = 7,
  .rows = 64, .sync = SyncMode::kCounter, .num_ctas = 128,
  .copies = CopyKind::kBulk, .consumer_warps = 8, .producer_warps = 1,
  .ring_slots = 8, .slot_bytes = 18432, .window = 8, .waiting_window = 8, .kv_window = 8,
  .prefetch_pages = 0,
  .residual_tiles = 1, .num_norms = 13,
  .input_buffers = 3, .max_query_tiles = 8, .warp_dims = 128,
  .shares_registers = true,
  .warpgroups = true,
  .squares = Vectors::kSquares,
  .sums = {.offset = 491776, .elements = 4325376},
  .counter_offset = 17793280, .counter_bytes = 256, .workspace_bytes = 17793536,
  .num_regions = 11,
  .regions = {  // offset and bytes in shared memory
    {"pages", 0, 147456},
    {"input", 147456, 49152},
    {"tiles", 196608, 18432},
    {"residual", 215040, 0},
    {"factors", 215040, 256},
    {"held", 215296, 1440},
    {"decision", 216736, 32},
    {"fenced", 216768, 0},
    {"experts", 216768, 0},
    {"status", 216768, 320},
    {"barriers", 217088, 472},
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
  {.offset = 131072, .elements = 32768, .signatures = 0},  // heads
  {.offset = 262144, .elements = 32768, .signatures = 0},  // post_attention
  {.offset = 393216, .elements = 65536, .signatures = 0},  // ffn
  {.offset = 655360, .elements = 32768, .signatures = 0},  // hidden
  {.offset = 786432, .elements = 32770, .signatures = 0},  // candidates
  {.offset = 917760, .elements = 16384, .signatures = 0},  // squares
};
constexpr KernelPlan kDecodeRows128Numbers{
  .model = kModelShape,
  .matrices = kMatrices, .num_matrices = 5,
  .vectors = kDecodeRows128Vectors, .num_vectors = 7,
  .rows = 128, .sync = SyncMode::kCounter, .num_ctas = 128,
  .copies = CopyKind::kBulk, .consumer_warps = 8, .producer_warps = 1,
  .ring_slots = 4, .slot_bytes = 18432, .window = 4, .waiting_window = 4, .kv_window = 4,
  .prefetch_pages = 0,
  .residual_tiles = 1, .num_norms = 13,
  .input_buffers = 3, .max_query_tiles = 16, .warp_dims = 128,
  .shares_registers = true,
  .warpgroups = true,
  .squares = Vectors::kSquares,
  .sums = {.offset = 983296, .elements = 8650752},
  .counter_offset = 35586304, .counter_bytes = 256, .workspace_bytes = 35586560,
  .num_regions = 11,
  .regions = {  // offset and bytes in shared memory
    {"pages", 0, 73728},
    {"input", 73728, 98304},
    {"tiles", 172032, 20480},
    {"residual", 192512, 0},
    {"factors", 192512, 512},
    {"held", 193024, 2464},
    {"decision", 195488, 32},
    {"fenced", 195520, 0},
    {"experts", 195520, 0},
    {"status", 195520, 320},
    {"barriers", 195840, 408},
  },
  .num_barriers = 20,
  .barriers = {  // slots, arrivals, of whole warps?
    {"page_full", 4, 1, false},
    {"page_empty", 4, 8, true},
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
