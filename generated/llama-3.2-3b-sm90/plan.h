// Generated from models/llama-3.2-3b.yaml for h200 and h100. Do not edit; run: soliton-gen models/llama-3.2-3b.yaml --gpu h200,h100 --rows 1,8,16,32,64,128,256,512,1024
#pragma once

#include "layout/library.h"

namespace soliton::generated {

// What phases name.
struct Matrices { enum : int { kQkv = 0, kO = 1, kGateUp = 2, kDown = 3, kLmHead = 4 }; };
struct Vectors { enum : int { kQkv = 0, kHeads = 1, kPostAttention = 2, kFfn = 3, kHidden = 4, kCandidates = 5, kSquares = 6 }; };

constexpr PackedMatrix kMatrices[] = {  // in the order of the packed weights
  {.name = "qkv", .layer_kind = 0, .offset = 0, .rows = 5120, .columns = 3072, .padded_columns = 3072, .format = {WeightType::kBf16, 0, false}, .num_tiles = 320, .row_order = RowOrder::kRotary},
  {.name = "o", .layer_kind = 0, .offset = 31457280, .rows = 3072, .columns = 3072, .padded_columns = 3072, .format = {WeightType::kBf16, 0, false}, .num_tiles = 192, .row_order = RowOrder::kPlain},
  {.name = "gate_up", .layer_kind = 0, .offset = 50331648, .rows = 16384, .columns = 3072, .padded_columns = 3072, .format = {WeightType::kBf16, 0, false}, .num_tiles = 1024, .row_order = RowOrder::kGateUp},
  {.name = "down", .layer_kind = 0, .offset = 150994944, .rows = 3072, .columns = 8192, .padded_columns = 8192, .format = {WeightType::kBf16, 0, false}, .num_tiles = 192, .row_order = RowOrder::kPlain},
  {.name = "lm_head", .layer_kind = 1, .offset = 0, .rows = 128256, .columns = 3072, .padded_columns = 3072, .format = {WeightType::kBf16, 0, false}, .num_tiles = 8016, .row_order = RowOrder::kPlain},
};

constexpr Layer kLayers[] = {  // the last stands once, behind all others
  {.kind = 0, .weights = 0, .first_norm = 0},
  {.kind = 0, .weights = 201326592, .first_norm = 2},
  {.kind = 0, .weights = 402653184, .first_norm = 4},
  {.kind = 0, .weights = 603979776, .first_norm = 6},
  {.kind = 0, .weights = 805306368, .first_norm = 8},
  {.kind = 0, .weights = 1006632960, .first_norm = 10},
  {.kind = 0, .weights = 1207959552, .first_norm = 12},
  {.kind = 0, .weights = 1409286144, .first_norm = 14},
  {.kind = 0, .weights = 1610612736, .first_norm = 16},
  {.kind = 0, .weights = 1811939328, .first_norm = 18},
  {.kind = 0, .weights = 2013265920, .first_norm = 20},
  {.kind = 0, .weights = 2214592512, .first_norm = 22},
  {.kind = 0, .weights = 2415919104, .first_norm = 24},
  {.kind = 0, .weights = 2617245696, .first_norm = 26},
  {.kind = 0, .weights = 2818572288, .first_norm = 28},
  {.kind = 0, .weights = 3019898880, .first_norm = 30},
  {.kind = 0, .weights = 3221225472, .first_norm = 32},
  {.kind = 0, .weights = 3422552064, .first_norm = 34},
  {.kind = 0, .weights = 3623878656, .first_norm = 36},
  {.kind = 0, .weights = 3825205248, .first_norm = 38},
  {.kind = 0, .weights = 4026531840, .first_norm = 40},
  {.kind = 0, .weights = 4227858432, .first_norm = 42},
  {.kind = 0, .weights = 4429185024, .first_norm = 44},
  {.kind = 0, .weights = 4630511616, .first_norm = 46},
  {.kind = 0, .weights = 4831838208, .first_norm = 48},
  {.kind = 0, .weights = 5033164800, .first_norm = 50},
  {.kind = 0, .weights = 5234491392, .first_norm = 52},
  {.kind = 0, .weights = 5435817984, .first_norm = 54},
  {.kind = 1, .weights = 5637144576, .first_norm = 56},
};

constexpr ModelDescriptor kModel{
  .name = "llama-3.2-3b",
  .gpu = "sm90",
  .facts =
    {
      .hidden = 3072,
      .ffn = 8192,
      .num_layers = 28,
      .num_heads = 24,
      .num_kv_heads = 8,
      .head_dim = 128,
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
  .facts_hash = 0x5e5970779cfcc80dull,
  .page_layout = 2,
  .compute_capability = 90,
  .num_cards = 2,
  .cards =
    {
      {.name = "h200", .costs = {.item_us = 0.3, .mma_us = 0.002, .read_bytes_per_s = 4600000000000.0, .exchange_bytes_per_s = 2700000000000.0}},
      {.name = "h100", .costs = {.item_us = 0.3, .mma_us = 0.002, .read_bytes_per_s = 3200000000000.0, .exchange_bytes_per_s = 2700000000000.0}},
    },
  .weight_bytes = 6425149440,
  .needed_weight_bytes = 6425149440,
  .matrices = kMatrices,
  .num_matrices = 5,
  .layers = kLayers,
};

constexpr ModelShape kModelShape{
  .layers = kLayers,
  .num_layers = 28,
  .num_heads = 24,
  .num_kv_heads = 8,
  .head_dim = 128,
  .kv_parts = 1,
  .hidden = 3072,
  .qkv_bias = false,
  .head_norm = false,
  .ordered = false,
  .norm_epsilon = 9.999999747378752e-06f,
  .score_scale = 0.127517431974411f,
  .integers = {WeightType::kBf16, 0, false},
};

constexpr Vector kDecodeVectors[] = {  // in the workspace
  {.offset = 0, .elements = 5120, .signatures = 0},  // qkv
  {.offset = 20480, .elements = 3072, .signatures = 0},  // heads
  {.offset = 32768, .elements = 3072, .signatures = 0},  // post_attention
  {.offset = 45056, .elements = 8192, .signatures = 0},  // ffn
  {.offset = 77824, .elements = 3072, .signatures = 0},  // hidden
  {.offset = 90112, .elements = 258, .signatures = 0},  // candidates
};
constexpr KernelPlan kDecodeNumbers{
  .model = kModelShape,
  .matrices = kMatrices, .num_matrices = 5,
  .vectors = kDecodeVectors, .num_vectors = 6,
  .rows = 1, .sync = SyncMode::kSelfValidating, .num_ctas = 128,
  .copies = CopyKind::kBulk, .consumer_warps = 4, .producer_warps = 1,
  .ring_slots = 13, .slot_bytes = 16384, .window = 4, .waiting_window = 3, .kv_window = 3,
  .prefetch_pages = 16,
  .residual_tiles = 2, .num_norms = 57,
  .tile_slots = 4, .chunk_columns = 3072, .min_pages_per_split = 2,
  .partials = {.offset = 91392, .elements = 66560},
  .counter_offset = 357632, .counter_bytes = 1280, .workspace_bytes = 358912,
  .num_regions = 12,
  .regions = {  // offset and bytes in shared memory
    {"pages", 0, 212992},
    {"x", 212992, 12416},
    {"tiles", 225408, 1024},
    {"residual", 226432, 128},
    {"token", 226560, 1040},
    {"squares", 227600, 32},
    {"decision", 227632, 32},
    {"experts", 227664, 0},
    {"zeros", 227664, 0},
    {"waiting", 227664, 4},
    {"status", 227680, 192},
    {"barriers", 227872, 360},
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
  {.offset = 0, .elements = 40960, .signatures = 0},  // qkv
  {.offset = 163840, .elements = 24576, .signatures = 0},  // heads
  {.offset = 262144, .elements = 24576, .signatures = 0},  // post_attention
  {.offset = 360448, .elements = 65536, .signatures = 0},  // ffn
  {.offset = 622592, .elements = 24576, .signatures = 0},  // hidden
  {.offset = 720896, .elements = 2050, .signatures = 0},  // candidates
  {.offset = 729344, .elements = 2048, .signatures = 0},  // squares
};
constexpr KernelPlan kDecodeRows8Numbers{
  .model = kModelShape,
  .matrices = kMatrices, .num_matrices = 5,
  .vectors = kDecodeRows8Vectors, .num_vectors = 7,
  .rows = 8, .sync = SyncMode::kCounter, .num_ctas = 128,
  .copies = CopyKind::kBulk, .consumer_warps = 8, .producer_warps = 1,
  .ring_slots = 10, .slot_bytes = 16384, .window = 3, .waiting_window = 3, .kv_window = 3,
  .prefetch_pages = 16,
  .residual_tiles = 2, .num_norms = 57,
  .input_buffers = 2, .max_query_tiles = 3, .warp_dims = 128,
  .shares_registers = true,
  .squares = Vectors::kSquares,
  .counter_offset = 737536, .counter_bytes = 256, .workspace_bytes = 737792,
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
  {.offset = 0, .elements = 40960, .signatures = 0},  // qkv
  {.offset = 163840, .elements = 24576, .signatures = 0},  // heads
  {.offset = 262144, .elements = 24576, .signatures = 0},  // post_attention
  {.offset = 360448, .elements = 65536, .signatures = 0},  // ffn
  {.offset = 622592, .elements = 24576, .signatures = 0},  // hidden
  {.offset = 720896, .elements = 4098, .signatures = 0},  // candidates
  {.offset = 737536, .elements = 4096, .signatures = 0},  // squares
};
constexpr KernelPlan kDecodeRows16Numbers{
  .model = kModelShape,
  .matrices = kMatrices, .num_matrices = 5,
  .vectors = kDecodeRows16Vectors, .num_vectors = 7,
  .rows = 16, .sync = SyncMode::kCounter, .num_ctas = 128,
  .copies = CopyKind::kBulk, .consumer_warps = 8, .producer_warps = 1,
  .ring_slots = 10, .slot_bytes = 16384, .window = 3, .waiting_window = 3, .kv_window = 3,
  .prefetch_pages = 16,
  .residual_tiles = 2, .num_norms = 57,
  .input_buffers = 2, .max_query_tiles = 3, .warp_dims = 128,
  .shares_registers = true,
  .squares = Vectors::kSquares,
  .counter_offset = 753920, .counter_bytes = 256, .workspace_bytes = 754176,
  .num_regions = 11,
  .regions = {  // offset and bytes in shared memory
    {"pages", 0, 163840},
    {"input", 163840, 32768},
    {"tiles", 196608, 20992},
    {"residual", 217600, 2048},
    {"factors", 219648, 64},
    {"held", 219712, 2752},
    {"decision", 222464, 32},
    {"fenced", 222496, 0},
    {"experts", 222496, 0},
    {"status", 222496, 320},
    {"barriers", 222816, 488},
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
  {.offset = 0, .elements = 81920, .signatures = 0},  // qkv
  {.offset = 327680, .elements = 49152, .signatures = 0},  // heads
  {.offset = 524288, .elements = 49152, .signatures = 0},  // post_attention
  {.offset = 720896, .elements = 131072, .signatures = 0},  // ffn
  {.offset = 1245184, .elements = 49152, .signatures = 0},  // hidden
  {.offset = 1441792, .elements = 8194, .signatures = 0},  // candidates
  {.offset = 1474816, .elements = 8192, .signatures = 0},  // squares
};
constexpr KernelPlan kDecodeRows32Numbers{
  .model = kModelShape,
  .matrices = kMatrices, .num_matrices = 5,
  .vectors = kDecodeRows32Vectors, .num_vectors = 7,
  .rows = 32, .sync = SyncMode::kCounter, .num_ctas = 128,
  .copies = CopyKind::kBulk, .consumer_warps = 8, .producer_warps = 1,
  .ring_slots = 8, .slot_bytes = 16384, .window = 4, .waiting_window = 4, .kv_window = 4,
  .prefetch_pages = 0,
  .residual_tiles = 2, .num_norms = 57,
  .input_buffers = 2, .max_query_tiles = 6, .warp_dims = 128,
  .shares_registers = true,
  .squares = Vectors::kSquares,
  .counter_offset = 1507584, .counter_bytes = 256, .workspace_bytes = 1507840,
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
  {.offset = 0, .elements = 163840, .signatures = 0},  // qkv
  {.offset = 655360, .elements = 98304, .signatures = 0},  // heads
  {.offset = 1048576, .elements = 98304, .signatures = 0},  // post_attention
  {.offset = 1441792, .elements = 262144, .signatures = 0},  // ffn
  {.offset = 2490368, .elements = 98304, .signatures = 0},  // hidden
  {.offset = 2883584, .elements = 16386, .signatures = 0},  // candidates
  {.offset = 2949376, .elements = 8192, .signatures = 0},  // squares
};
constexpr KernelPlan kDecodeRows64Numbers{
  .model = kModelShape,
  .matrices = kMatrices, .num_matrices = 5,
  .vectors = kDecodeRows64Vectors, .num_vectors = 7,
  .rows = 64, .sync = SyncMode::kCounter, .num_ctas = 128,
  .copies = CopyKind::kBulk, .consumer_warps = 8, .producer_warps = 1,
  .ring_slots = 8, .slot_bytes = 16384, .window = 8, .waiting_window = 8, .kv_window = 8,
  .prefetch_pages = 0,
  .residual_tiles = 2, .num_norms = 57,
  .input_buffers = 4, .max_query_tiles = 8, .warp_dims = 128,
  .shares_registers = true,
  .warpgroups = true,
  .squares = Vectors::kSquares,
  .sums = {.offset = 2982144, .elements = 4456448},
  .counter_offset = 20807936, .counter_bytes = 256, .workspace_bytes = 20808192,
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
  {.offset = 0, .elements = 327680, .signatures = 0},  // qkv
  {.offset = 1310720, .elements = 196608, .signatures = 0},  // heads
  {.offset = 2097152, .elements = 196608, .signatures = 0},  // post_attention
  {.offset = 2883584, .elements = 524288, .signatures = 0},  // ffn
  {.offset = 4980736, .elements = 196608, .signatures = 0},  // hidden
  {.offset = 5767168, .elements = 32770, .signatures = 0},  // candidates
  {.offset = 5898496, .elements = 16384, .signatures = 0},  // squares
};
constexpr KernelPlan kDecodeRows128Numbers{
  .model = kModelShape,
  .matrices = kMatrices, .num_matrices = 5,
  .vectors = kDecodeRows128Vectors, .num_vectors = 7,
  .rows = 128, .sync = SyncMode::kCounter, .num_ctas = 128,
  .copies = CopyKind::kBulk, .consumer_warps = 8, .producer_warps = 1,
  .ring_slots = 6, .slot_bytes = 16384, .window = 6, .waiting_window = 6, .kv_window = 6,
  .prefetch_pages = 0,
  .residual_tiles = 2, .num_norms = 57,
  .input_buffers = 3, .max_query_tiles = 8, .warp_dims = 128,
  .shares_registers = true,
  .warpgroups = true,
  .squares = Vectors::kSquares,
  .sums = {.offset = 5964032, .elements = 8912896},
  .counter_offset = 41615616, .counter_bytes = 256, .workspace_bytes = 41615872,
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
  {.offset = 0, .elements = 655360, .signatures = 0},  // qkv
  {.offset = 2621440, .elements = 393216, .signatures = 0},  // heads
  {.offset = 4194304, .elements = 393216, .signatures = 0},  // post_attention
  {.offset = 5767168, .elements = 1048576, .signatures = 0},  // ffn
  {.offset = 9961472, .elements = 393216, .signatures = 0},  // hidden
  {.offset = 11534336, .elements = 65538, .signatures = 0},  // candidates
  {.offset = 11796736, .elements = 32768, .signatures = 0},  // squares
};
constexpr KernelPlan kDecodeRows256Numbers{
  .model = kModelShape,
  .matrices = kMatrices, .num_matrices = 5,
  .vectors = kDecodeRows256Vectors, .num_vectors = 7,
  .rows = 256, .sync = SyncMode::kCounter, .num_ctas = 128,
  .copies = CopyKind::kBulk, .consumer_warps = 8, .producer_warps = 1,
  .ring_slots = 6, .slot_bytes = 16384, .window = 6, .waiting_window = 6, .kv_window = 6,
  .prefetch_pages = 0,
  .residual_tiles = 2, .num_norms = 57,
  .input_buffers = 3, .max_query_tiles = 8, .warp_dims = 128,
  .shares_registers = true,
  .warpgroups = true,
  .squares = Vectors::kSquares,
  .sums = {.offset = 11927808, .elements = 9437184},
  .counter_offset = 49676544, .counter_bytes = 256, .workspace_bytes = 49676800,
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
  {.offset = 0, .elements = 1310720, .signatures = 0},  // qkv
  {.offset = 5242880, .elements = 786432, .signatures = 0},  // heads
  {.offset = 8388608, .elements = 786432, .signatures = 0},  // post_attention
  {.offset = 11534336, .elements = 2097152, .signatures = 0},  // ffn
  {.offset = 19922944, .elements = 786432, .signatures = 0},  // hidden
  {.offset = 23068672, .elements = 65538, .signatures = 0},  // candidates
  {.offset = 23331072, .elements = 65536, .signatures = 0},  // squares
};
constexpr KernelPlan kDecodeRows512Numbers{
  .model = kModelShape,
  .matrices = kMatrices, .num_matrices = 5,
  .vectors = kDecodeRows512Vectors, .num_vectors = 7,
  .rows = 512, .sync = SyncMode::kCounter, .num_ctas = 128,
  .copies = CopyKind::kBulk, .consumer_warps = 8, .producer_warps = 1,
  .ring_slots = 6, .slot_bytes = 16384, .window = 6, .waiting_window = 6, .kv_window = 6,
  .prefetch_pages = 0,
  .residual_tiles = 3, .num_norms = 57,
  .input_buffers = 3, .max_query_tiles = 8, .warp_dims = 128,
  .shares_registers = true,
  .warpgroups = true,
  .squares = Vectors::kSquares,
  .sums = {.offset = 23593216, .elements = 9961472},
  .counter_offset = 63439104, .counter_bytes = 256, .workspace_bytes = 63439360,
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
  {.offset = 0, .elements = 2621440, .signatures = 0},  // qkv
  {.offset = 10485760, .elements = 1572864, .signatures = 0},  // heads
  {.offset = 16777216, .elements = 1572864, .signatures = 0},  // post_attention
  {.offset = 23068672, .elements = 4194304, .signatures = 0},  // ffn
  {.offset = 39845888, .elements = 1572864, .signatures = 0},  // hidden
  {.offset = 46137344, .elements = 65538, .signatures = 0},  // candidates
  {.offset = 46399744, .elements = 131072, .signatures = 0},  // squares
};
constexpr KernelPlan kDecodeRows1024Numbers{
  .model = kModelShape,
  .matrices = kMatrices, .num_matrices = 5,
  .vectors = kDecodeRows1024Vectors, .num_vectors = 7,
  .rows = 1024, .sync = SyncMode::kCounter, .num_ctas = 128,
  .copies = CopyKind::kBulk, .consumer_warps = 8, .producer_warps = 1,
  .ring_slots = 6, .slot_bytes = 16384, .window = 6, .waiting_window = 6, .kv_window = 6,
  .prefetch_pages = 0,
  .residual_tiles = 6, .num_norms = 57,
  .input_buffers = 3, .max_query_tiles = 8, .warp_dims = 128,
  .shares_registers = true,
  .warpgroups = true,
  .squares = Vectors::kSquares,
  .sums = {.offset = 46924032, .elements = 11534336},
  .counter_offset = 93061376, .counter_bytes = 256, .workspace_bytes = 93061632,
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
