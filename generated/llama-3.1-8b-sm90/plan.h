// Generated from models/llama-3.1-8b.yaml for h200 and h100. Do not edit; run: soliton-gen models/llama-3.1-8b.yaml --gpu h200,h100 --rows 1,8,16,32,64,128,256,512,1024
#pragma once

#include "layout/library.h"

namespace soliton::generated {

// What phases name.
struct Matrices { enum : int { kQkv = 0, kO = 1, kGateUp = 2, kDown = 3, kLmHead = 4 }; };
struct Vectors { enum : int { kQkv = 0, kHeads = 1, kPostAttention = 2, kFfn = 3, kHidden = 4, kCandidates = 5, kSquares = 6 }; };

constexpr PackedMatrix kMatrices[] = {  // in the order of the packed weights
  {.name = "qkv", .layer_kind = 0, .offset = 0, .rows = 6144, .columns = 4096, .padded_columns = 4096, .format = {WeightType::kBf16, 0, false}, .num_tiles = 384, .row_order = RowOrder::kRotary},
  {.name = "o", .layer_kind = 0, .offset = 50331648, .rows = 4096, .columns = 4096, .padded_columns = 4096, .format = {WeightType::kBf16, 0, false}, .num_tiles = 256, .row_order = RowOrder::kPlain},
  {.name = "gate_up", .layer_kind = 0, .offset = 83886080, .rows = 28672, .columns = 4096, .padded_columns = 4096, .format = {WeightType::kBf16, 0, false}, .num_tiles = 1792, .row_order = RowOrder::kGateUp},
  {.name = "down", .layer_kind = 0, .offset = 318767104, .rows = 4096, .columns = 14336, .padded_columns = 14336, .format = {WeightType::kBf16, 0, false}, .num_tiles = 256, .row_order = RowOrder::kPlain},
  {.name = "lm_head", .layer_kind = 1, .offset = 0, .rows = 128256, .columns = 4096, .padded_columns = 4096, .format = {WeightType::kBf16, 0, false}, .num_tiles = 8016, .row_order = RowOrder::kPlain},
};

constexpr Layer kLayers[] = {  // the last stands once, behind all others
  {.kind = 0, .weights = 0, .first_norm = 0},
  {.kind = 0, .weights = 436207616, .first_norm = 2},
  {.kind = 0, .weights = 872415232, .first_norm = 4},
  {.kind = 0, .weights = 1308622848, .first_norm = 6},
  {.kind = 0, .weights = 1744830464, .first_norm = 8},
  {.kind = 0, .weights = 2181038080, .first_norm = 10},
  {.kind = 0, .weights = 2617245696, .first_norm = 12},
  {.kind = 0, .weights = 3053453312, .first_norm = 14},
  {.kind = 0, .weights = 3489660928, .first_norm = 16},
  {.kind = 0, .weights = 3925868544, .first_norm = 18},
  {.kind = 0, .weights = 4362076160, .first_norm = 20},
  {.kind = 0, .weights = 4798283776, .first_norm = 22},
  {.kind = 0, .weights = 5234491392, .first_norm = 24},
  {.kind = 0, .weights = 5670699008, .first_norm = 26},
  {.kind = 0, .weights = 6106906624, .first_norm = 28},
  {.kind = 0, .weights = 6543114240, .first_norm = 30},
  {.kind = 0, .weights = 6979321856, .first_norm = 32},
  {.kind = 0, .weights = 7415529472, .first_norm = 34},
  {.kind = 0, .weights = 7851737088, .first_norm = 36},
  {.kind = 0, .weights = 8287944704, .first_norm = 38},
  {.kind = 0, .weights = 8724152320, .first_norm = 40},
  {.kind = 0, .weights = 9160359936, .first_norm = 42},
  {.kind = 0, .weights = 9596567552, .first_norm = 44},
  {.kind = 0, .weights = 10032775168, .first_norm = 46},
  {.kind = 0, .weights = 10468982784, .first_norm = 48},
  {.kind = 0, .weights = 10905190400, .first_norm = 50},
  {.kind = 0, .weights = 11341398016, .first_norm = 52},
  {.kind = 0, .weights = 11777605632, .first_norm = 54},
  {.kind = 0, .weights = 12213813248, .first_norm = 56},
  {.kind = 0, .weights = 12650020864, .first_norm = 58},
  {.kind = 0, .weights = 13086228480, .first_norm = 60},
  {.kind = 0, .weights = 13522436096, .first_norm = 62},
  {.kind = 1, .weights = 13958643712, .first_norm = 64},
};

constexpr ModelDescriptor kModel{
  .name = "llama-3.1-8b",
  .gpu = "sm90",
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
      .rope_factor = 8.0,
      .rope_low_freq_factor = 1.0,
      .rope_high_freq_factor = 4.0,
      .rope_beta_fast = 32.0,
      .rope_beta_slow = 1.0,
      .rope_attention_factor = 1.0,
    },
  .facts_hash = 0x92d38ca2a3ef8184ull,
  .page_layout = 2,
  .compute_capability = 90,
  .num_cards = 2,
  .cards =
    {
      {.name = "h200", .costs = {.item_us = 0.3, .mma_us = 0.002, .read_bytes_per_s = 4600000000000.0, .exchange_bytes_per_s = 2700000000000.0}},
      {.name = "h100", .costs = {.item_us = 0.3, .mma_us = 0.002, .read_bytes_per_s = 3200000000000.0, .exchange_bytes_per_s = 2700000000000.0}},
    },
  .weight_bytes = 15009316864,
  .needed_weight_bytes = 15009316864,
  .matrices = kMatrices,
  .num_matrices = 5,
  .layers = kLayers,
};

constexpr ModelShape kModelShape{
  .layers = kLayers,
  .num_layers = 32,
  .num_heads = 32,
  .num_kv_heads = 8,
  .head_dim = 128,
  .kv_parts = 1,
  .hidden = 4096,
  .qkv_bias = false,
  .head_norm = false,
  .ordered = false,
  .norm_epsilon = 9.999999747378752e-06f,
  .score_scale = 0.127517431974411f,
  .integers = {WeightType::kBf16, 0, false},
};

constexpr Vector kDecodeVectors[] = {  // in the workspace
  {.offset = 0, .elements = 6144, .signatures = 0},  // qkv
  {.offset = 24576, .elements = 4096, .signatures = 0},  // heads
  {.offset = 40960, .elements = 4096, .signatures = 0},  // post_attention
  {.offset = 57344, .elements = 14336, .signatures = 0},  // ffn
  {.offset = 114688, .elements = 4096, .signatures = 0},  // hidden
  {.offset = 131072, .elements = 258, .signatures = 0},  // candidates
};
constexpr KernelPlan kDecodeNumbers{
  .model = kModelShape,
  .matrices = kMatrices, .num_matrices = 5,
  .vectors = kDecodeVectors, .num_vectors = 6,
  .rows = 1, .sync = SyncMode::kSelfValidating, .num_ctas = 128,
  .copies = CopyKind::kBulk, .consumer_warps = 4, .producer_warps = 1,
  .ring_slots = 13, .slot_bytes = 16384, .window = 4, .waiting_window = 3, .kv_window = 3,
  .prefetch_pages = 16,
  .residual_tiles = 2, .num_norms = 65,
  .tile_slots = 4, .chunk_columns = 4096, .min_pages_per_split = 2,
  .partials = {.offset = 132352, .elements = 66560},
  .counter_offset = 398592, .counter_bytes = 1280, .workspace_bytes = 399872,
  .num_regions = 12,
  .regions = {  // offset and bytes in shared memory
    {"pages", 0, 212992},
    {"x", 212992, 16384},
    {"tiles", 229376, 1024},
    {"residual", 230400, 128},
    {"token", 230528, 1040},
    {"squares", 231568, 32},
    {"decision", 231600, 32},
    {"experts", 231632, 0},
    {"zeros", 231632, 0},
    {"waiting", 231632, 4},
    {"status", 231648, 192},
    {"barriers", 231840, 360},
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
  {.offset = 0, .elements = 49152, .signatures = 0},  // qkv
  {.offset = 196608, .elements = 32768, .signatures = 0},  // heads
  {.offset = 327680, .elements = 32768, .signatures = 0},  // post_attention
  {.offset = 458752, .elements = 114688, .signatures = 0},  // ffn
  {.offset = 917504, .elements = 32768, .signatures = 0},  // hidden
  {.offset = 1048576, .elements = 2050, .signatures = 0},  // candidates
  {.offset = 1057024, .elements = 2048, .signatures = 0},  // squares
};
constexpr KernelPlan kDecodeRows8Numbers{
  .model = kModelShape,
  .matrices = kMatrices, .num_matrices = 5,
  .vectors = kDecodeRows8Vectors, .num_vectors = 7,
  .rows = 8, .sync = SyncMode::kCounter, .num_ctas = 128,
  .copies = CopyKind::kBulk, .consumer_warps = 8, .producer_warps = 1,
  .ring_slots = 10, .slot_bytes = 16384, .window = 3, .waiting_window = 3, .kv_window = 3,
  .prefetch_pages = 16,
  .residual_tiles = 2, .num_norms = 65,
  .input_buffers = 2, .max_query_tiles = 4, .warp_dims = 128,
  .shares_registers = true,
  .squares = Vectors::kSquares,
  .counter_offset = 1065216, .counter_bytes = 256, .workspace_bytes = 1065472,
  .num_regions = 11,
  .regions = {  // offset and bytes in shared memory
    {"pages", 0, 163840},
    {"input", 163840, 32768},
    {"tiles", 196608, 20480},
    {"residual", 217088, 1024},
    {"factors", 218112, 32},
    {"held", 218144, 2624},
    {"decision", 220768, 32},
    {"fenced", 220800, 4},
    {"experts", 220804, 0},
    {"status", 220816, 320},
    {"barriers", 221136, 488},
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
  {.offset = 0, .elements = 49152, .signatures = 0},  // qkv
  {.offset = 196608, .elements = 32768, .signatures = 0},  // heads
  {.offset = 327680, .elements = 32768, .signatures = 0},  // post_attention
  {.offset = 458752, .elements = 114688, .signatures = 0},  // ffn
  {.offset = 917504, .elements = 32768, .signatures = 0},  // hidden
  {.offset = 1048576, .elements = 4098, .signatures = 0},  // candidates
  {.offset = 1065216, .elements = 4096, .signatures = 0},  // squares
};
constexpr KernelPlan kDecodeRows16Numbers{
  .model = kModelShape,
  .matrices = kMatrices, .num_matrices = 5,
  .vectors = kDecodeRows16Vectors, .num_vectors = 7,
  .rows = 16, .sync = SyncMode::kCounter, .num_ctas = 128,
  .copies = CopyKind::kBulk, .consumer_warps = 8, .producer_warps = 1,
  .ring_slots = 10, .slot_bytes = 16384, .window = 3, .waiting_window = 3, .kv_window = 3,
  .prefetch_pages = 16,
  .residual_tiles = 2, .num_norms = 65,
  .input_buffers = 2, .max_query_tiles = 4, .warp_dims = 128,
  .shares_registers = true,
  .squares = Vectors::kSquares,
  .counter_offset = 1081600, .counter_bytes = 256, .workspace_bytes = 1081856,
  .num_regions = 11,
  .regions = {  // offset and bytes in shared memory
    {"pages", 0, 163840},
    {"input", 163840, 32768},
    {"tiles", 196608, 25088},
    {"residual", 221696, 2048},
    {"factors", 223744, 64},
    {"held", 223808, 2752},
    {"decision", 226560, 32},
    {"fenced", 226592, 0},
    {"experts", 226592, 0},
    {"status", 226592, 320},
    {"barriers", 226912, 488},
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
  {.offset = 0, .elements = 98304, .signatures = 0},  // qkv
  {.offset = 393216, .elements = 65536, .signatures = 0},  // heads
  {.offset = 655360, .elements = 65536, .signatures = 0},  // post_attention
  {.offset = 917504, .elements = 229376, .signatures = 0},  // ffn
  {.offset = 1835008, .elements = 65536, .signatures = 0},  // hidden
  {.offset = 2097152, .elements = 8194, .signatures = 0},  // candidates
  {.offset = 2130176, .elements = 8192, .signatures = 0},  // squares
};
constexpr KernelPlan kDecodeRows32Numbers{
  .model = kModelShape,
  .matrices = kMatrices, .num_matrices = 5,
  .vectors = kDecodeRows32Vectors, .num_vectors = 7,
  .rows = 32, .sync = SyncMode::kCounter, .num_ctas = 128,
  .copies = CopyKind::kBulk, .consumer_warps = 8, .producer_warps = 1,
  .ring_slots = 8, .slot_bytes = 16384, .window = 4, .waiting_window = 4, .kv_window = 4,
  .prefetch_pages = 0,
  .residual_tiles = 2, .num_norms = 65,
  .input_buffers = 2, .max_query_tiles = 8, .warp_dims = 128,
  .shares_registers = true,
  .squares = Vectors::kSquares,
  .counter_offset = 2162944, .counter_bytes = 256, .workspace_bytes = 2163200,
  .num_regions = 11,
  .regions = {  // offset and bytes in shared memory
    {"pages", 0, 131072},
    {"input", 131072, 65536},
    {"tiles", 196608, 20480},
    {"residual", 217088, 4096},
    {"factors", 221184, 128},
    {"held", 221312, 928},
    {"decision", 222240, 32},
    {"fenced", 222272, 0},
    {"experts", 222272, 0},
    {"status", 222272, 320},
    {"barriers", 222592, 456},
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
  {.offset = 0, .elements = 196608, .signatures = 0},  // qkv
  {.offset = 786432, .elements = 131072, .signatures = 0},  // heads
  {.offset = 1310720, .elements = 131072, .signatures = 0},  // post_attention
  {.offset = 1835008, .elements = 458752, .signatures = 0},  // ffn
  {.offset = 3670016, .elements = 131072, .signatures = 0},  // hidden
  {.offset = 4194304, .elements = 16386, .signatures = 0},  // candidates
  {.offset = 4260096, .elements = 8192, .signatures = 0},  // squares
};
constexpr KernelPlan kDecodeRows64Numbers{
  .model = kModelShape,
  .matrices = kMatrices, .num_matrices = 5,
  .vectors = kDecodeRows64Vectors, .num_vectors = 7,
  .rows = 64, .sync = SyncMode::kCounter, .num_ctas = 128,
  .copies = CopyKind::kBulk, .consumer_warps = 8, .producer_warps = 1,
  .ring_slots = 8, .slot_bytes = 16384, .window = 8, .waiting_window = 8, .kv_window = 8,
  .prefetch_pages = 0,
  .residual_tiles = 2, .num_norms = 65,
  .input_buffers = 4, .max_query_tiles = 8, .warp_dims = 128,
  .shares_registers = true,
  .warpgroups = true,
  .squares = Vectors::kSquares,
  .sums = {.offset = 4292864, .elements = 4456448},
  .counter_offset = 22118656, .counter_bytes = 256, .workspace_bytes = 22118912,
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
  {.offset = 0, .elements = 393216, .signatures = 0},  // qkv
  {.offset = 1572864, .elements = 262144, .signatures = 0},  // heads
  {.offset = 2621440, .elements = 262144, .signatures = 0},  // post_attention
  {.offset = 3670016, .elements = 917504, .signatures = 0},  // ffn
  {.offset = 7340032, .elements = 262144, .signatures = 0},  // hidden
  {.offset = 8388608, .elements = 32770, .signatures = 0},  // candidates
  {.offset = 8519936, .elements = 16384, .signatures = 0},  // squares
};
constexpr KernelPlan kDecodeRows128Numbers{
  .model = kModelShape,
  .matrices = kMatrices, .num_matrices = 5,
  .vectors = kDecodeRows128Vectors, .num_vectors = 7,
  .rows = 128, .sync = SyncMode::kCounter, .num_ctas = 128,
  .copies = CopyKind::kBulk, .consumer_warps = 8, .producer_warps = 1,
  .ring_slots = 6, .slot_bytes = 16384, .window = 6, .waiting_window = 6, .kv_window = 6,
  .prefetch_pages = 0,
  .residual_tiles = 2, .num_norms = 65,
  .input_buffers = 3, .max_query_tiles = 8, .warp_dims = 128,
  .shares_registers = true,
  .warpgroups = true,
  .squares = Vectors::kSquares,
  .sums = {.offset = 8585472, .elements = 8912896},
  .counter_offset = 44237056, .counter_bytes = 256, .workspace_bytes = 44237312,
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
  {.offset = 0, .elements = 786432, .signatures = 0},  // qkv
  {.offset = 3145728, .elements = 524288, .signatures = 0},  // heads
  {.offset = 5242880, .elements = 524288, .signatures = 0},  // post_attention
  {.offset = 7340032, .elements = 1835008, .signatures = 0},  // ffn
  {.offset = 14680064, .elements = 524288, .signatures = 0},  // hidden
  {.offset = 16777216, .elements = 65538, .signatures = 0},  // candidates
  {.offset = 17039616, .elements = 32768, .signatures = 0},  // squares
};
constexpr KernelPlan kDecodeRows256Numbers{
  .model = kModelShape,
  .matrices = kMatrices, .num_matrices = 5,
  .vectors = kDecodeRows256Vectors, .num_vectors = 7,
  .rows = 256, .sync = SyncMode::kCounter, .num_ctas = 128,
  .copies = CopyKind::kBulk, .consumer_warps = 8, .producer_warps = 1,
  .ring_slots = 6, .slot_bytes = 16384, .window = 6, .waiting_window = 6, .kv_window = 6,
  .prefetch_pages = 0,
  .residual_tiles = 2, .num_norms = 65,
  .input_buffers = 3, .max_query_tiles = 8, .warp_dims = 128,
  .shares_registers = true,
  .warpgroups = true,
  .squares = Vectors::kSquares,
  .sums = {.offset = 17170688, .elements = 9437184},
  .counter_offset = 54919424, .counter_bytes = 256, .workspace_bytes = 54919680,
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
  {.offset = 0, .elements = 1572864, .signatures = 0},  // qkv
  {.offset = 6291456, .elements = 1048576, .signatures = 0},  // heads
  {.offset = 10485760, .elements = 1048576, .signatures = 0},  // post_attention
  {.offset = 14680064, .elements = 3670016, .signatures = 0},  // ffn
  {.offset = 29360128, .elements = 1048576, .signatures = 0},  // hidden
  {.offset = 33554432, .elements = 65538, .signatures = 0},  // candidates
  {.offset = 33816832, .elements = 65536, .signatures = 0},  // squares
};
constexpr KernelPlan kDecodeRows512Numbers{
  .model = kModelShape,
  .matrices = kMatrices, .num_matrices = 5,
  .vectors = kDecodeRows512Vectors, .num_vectors = 7,
  .rows = 512, .sync = SyncMode::kCounter, .num_ctas = 128,
  .copies = CopyKind::kBulk, .consumer_warps = 8, .producer_warps = 1,
  .ring_slots = 6, .slot_bytes = 16384, .window = 6, .waiting_window = 6, .kv_window = 6,
  .prefetch_pages = 0,
  .residual_tiles = 4, .num_norms = 65,
  .input_buffers = 3, .max_query_tiles = 8, .warp_dims = 128,
  .shares_registers = true,
  .warpgroups = true,
  .squares = Vectors::kSquares,
  .sums = {.offset = 34078976, .elements = 10485760},
  .counter_offset = 76022016, .counter_bytes = 256, .workspace_bytes = 76022272,
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
  {.offset = 0, .elements = 3145728, .signatures = 0},  // qkv
  {.offset = 12582912, .elements = 2097152, .signatures = 0},  // heads
  {.offset = 20971520, .elements = 2097152, .signatures = 0},  // post_attention
  {.offset = 29360128, .elements = 7340032, .signatures = 0},  // ffn
  {.offset = 58720256, .elements = 2097152, .signatures = 0},  // hidden
  {.offset = 67108864, .elements = 65538, .signatures = 0},  // candidates
  {.offset = 67371264, .elements = 131072, .signatures = 0},  // squares
};
constexpr KernelPlan kDecodeRows1024Numbers{
  .model = kModelShape,
  .matrices = kMatrices, .num_matrices = 5,
  .vectors = kDecodeRows1024Vectors, .num_vectors = 7,
  .rows = 1024, .sync = SyncMode::kCounter, .num_ctas = 128,
  .copies = CopyKind::kBulk, .consumer_warps = 8, .producer_warps = 1,
  .ring_slots = 6, .slot_bytes = 16384, .window = 6, .waiting_window = 6, .kv_window = 6,
  .prefetch_pages = 0,
  .residual_tiles = 8, .num_norms = 65,
  .input_buffers = 3, .max_query_tiles = 8, .warp_dims = 128,
  .shares_registers = true,
  .warpgroups = true,
  .squares = Vectors::kSquares,
  .sums = {.offset = 67895552, .elements = 12582912},
  .counter_offset = 118227200, .counter_bytes = 256, .workspace_bytes = 118227456,
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
