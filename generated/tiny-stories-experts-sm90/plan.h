// Generated from models/tiny-stories-experts.yaml for h200 and h100. Do not edit; run: soliton-gen models/tiny-stories-experts.yaml --gpu h200,h100 --rows 1,8,16,32,64
#pragma once

#include "layout/library.h"

namespace soliton::generated {

// What phases name.
struct Matrices { enum : int { kQkv = 0, kO = 1, kRouter = 2, kGateUp = 3, kDown = 4, kLmHead = 5 }; };
struct Vectors { enum : int { kQkv = 0, kHeads = 1, kPostAttention = 2, kFfn = 3, kHidden = 4, kCandidates = 5, kRoutes = 6, kSquares = 7, kUnnormed = 8 }; };

constexpr PackedMatrix kMatrices[] = {  // in the order of the packed weights
  {.name = "qkv", .layer_kind = 0, .offset = 0, .rows = 512, .columns = 192, .padded_columns = 256, .format = {WeightType::kBf16, 0, false}, .num_tiles = 32, .row_order = RowOrder::kRotary},
  {.name = "o", .layer_kind = 0, .offset = 262144, .rows = 192, .columns = 256, .padded_columns = 256, .format = {WeightType::kBf16, 0, false}, .num_tiles = 12, .row_order = RowOrder::kPlain},
  {.name = "router", .layer_kind = 0, .offset = 360448, .rows = 8, .columns = 192, .padded_columns = 256, .format = {WeightType::kBf16, 0, false}, .num_tiles = 1, .row_order = RowOrder::kPlain},
  {.name = "gate_up", .layer_kind = 0, .offset = 368640, .rows = 512, .columns = 192, .padded_columns = 256, .format = {WeightType::kBf16, 0, false}, .num_tiles = 32, .row_order = RowOrder::kGateUp, .experts = {ExpertAxis::kRows, 8, 2}},
  {.name = "down", .layer_kind = 0, .offset = 1417216, .rows = 192, .columns = 256, .padded_columns = 256, .format = {WeightType::kBf16, 0, false}, .num_tiles = 12, .row_order = RowOrder::kPlain, .experts = {ExpertAxis::kColumns, 8, 2}},
  {.name = "lm_head", .layer_kind = 1, .offset = 0, .rows = 2048, .columns = 192, .padded_columns = 256, .format = {WeightType::kBf16, 0, false}, .num_tiles = 128, .row_order = RowOrder::kPlain},
};

constexpr Layer kLayers[] = {  // the last stands once, behind all others
  {.kind = 0, .weights = 0, .first_norm = 0},
  {.kind = 0, .weights = 1810432, .first_norm = 2},
  {.kind = 0, .weights = 3620864, .first_norm = 4},
  {.kind = 0, .weights = 5431296, .first_norm = 6},
  {.kind = 1, .weights = 7241728, .first_norm = 8},
};

constexpr ModelDescriptor kModel{
  .name = "tiny-stories-experts",
  .gpu = "sm90",
  .facts =
    {
      .hidden = 192,
      .ffn = 256,
      .num_layers = 4,
      .num_heads = 4,
      .num_kv_heads = 2,
      .head_dim = 64,
      .vocabulary = 2048,
      .tied_lm_head = 1,
      .qkv_bias = 0,
      .head_norm = 1,
      .activation = 0,
      .kv_bits = 16,
      .max_context = 2048,
      .rope_kind = RopeKind::kDefault,
      .rope_original_context = 0,
      .rope_truncate = 1,
      .weight_bits = 16,
      .weight_group = 0,
      .weight_zeros = 0,
      .weight_order = 0,
      .lm_head_bits = 16,
      .num_experts = 8,
      .experts_per_token = 2,
      .expert_ffn = 128,
      .renormalised = 1,
      .norm_epsilon = 1e-06,
      .rope_theta = 10000.0,
      .rope_factor = 1.0,
      .rope_low_freq_factor = 1.0,
      .rope_high_freq_factor = 1.0,
      .rope_beta_fast = 32.0,
      .rope_beta_slow = 1.0,
      .rope_attention_factor = 1.0,
    },
  .facts_hash = 0x104299ead4c2fc0cull,
  .page_layout = 2,
  .compute_capability = 90,
  .num_cards = 2,
  .cards =
    {
      {.name = "h200", .costs = {.item_us = 0.3, .mma_us = 0.002, .read_bytes_per_s = 4600000000000.0, .exchange_bytes_per_s = 2700000000000.0}},
      {.name = "h100", .costs = {.item_us = 0.3, .mma_us = 0.002, .read_bytes_per_s = 3200000000000.0, .exchange_bytes_per_s = 2700000000000.0}},
    },
  .weight_bytes = 8290304,
  .needed_weight_bytes = 3158016,
  .matrices = kMatrices,
  .num_matrices = 6,
  .layers = kLayers,
};

constexpr ModelShape kModelShape{
  .layers = kLayers,
  .num_layers = 4,
  .num_heads = 4,
  .num_kv_heads = 2,
  .head_dim = 64,
  .kv_parts = 1,
  .hidden = 192,
  .qkv_bias = false,
  .head_norm = true,
  .ordered = false,
  .norm_epsilon = 9.999999974752427e-07f,
  .score_scale = 0.1803368777036667f,
  .mixture = {.experts = 8, .chosen = 2, .ffn = 128, .renormalised = true},
  .integers = {WeightType::kBf16, 0, false},
};

constexpr Vector kDecodeVectors[] = {  // in the workspace
  {.offset = 0, .elements = 512, .signatures = 0},  // qkv
  {.offset = 2048, .elements = 256, .signatures = 0},  // heads
  {.offset = 3072, .elements = 192, .signatures = 0},  // post_attention
  {.offset = 3840, .elements = 256, .signatures = 128, .to_second = 1536},  // ffn
  {.offset = 6912, .elements = 192, .signatures = 0},  // hidden
  {.offset = 7680, .elements = 258, .signatures = 0},  // candidates
  {.offset = 8960, .elements = 8, .signatures = 0},  // routes
};
constexpr KernelPlan kDecodeNumbers{
  .model = kModelShape,
  .matrices = kMatrices, .num_matrices = 6,
  .vectors = kDecodeVectors, .num_vectors = 7,
  .rows = 1, .sync = SyncMode::kSelfValidating, .num_ctas = 128,
  .copies = CopyKind::kBulk, .consumer_warps = 4, .producer_warps = 1,
  .ring_slots = 13, .slot_bytes = 16384, .window = 4, .waiting_window = 2, .kv_window = 6,
  .prefetch_pages = 0,
  .residual_tiles = 1, .num_norms = 9,
  .tile_slots = 4, .chunk_columns = 512, .min_pages_per_split = 2,
  .partials = {.offset = 9216, .elements = 33792},
  .counter_offset = 144384, .counter_bytes = 512, .workspace_bytes = 144896,
  .num_regions = 12,
  .regions = {  // offset and bytes in shared memory
    {"pages", 0, 212992},
    {"x", 212992, 6272},
    {"tiles", 219264, 1024},
    {"residual", 220288, 64},
    {"token", 220352, 1024},
    {"squares", 221376, 32},
    {"decision", 221408, 32},
    {"experts", 221440, 8},
    {"zeros", 221456, 0},
    {"waiting", 221456, 4},
    {"status", 221472, 192},
    {"barriers", 221664, 376},
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
    {"experts_chosen", 1, 1, true},
    {"experts_taken", 1, 1, false},
    {"stopped", 1, 1, false},
    {"ended", 1, 6, false},
  },
};

constexpr Vector kDecodeRows8Vectors[] = {  // in the workspace
  {.offset = 0, .elements = 4096, .signatures = 0},  // qkv
  {.offset = 16384, .elements = 2048, .signatures = 0},  // heads
  {.offset = 24576, .elements = 2048, .signatures = 0},  // post_attention
  {.offset = 32768, .elements = 2048, .signatures = 0},  // ffn
  {.offset = 40960, .elements = 2048, .signatures = 0},  // hidden
  {.offset = 49152, .elements = 2050, .signatures = 0},  // candidates
  {.offset = 57600, .elements = 64, .signatures = 0},  // routes
  {.offset = 57856, .elements = 1024, .signatures = 0},  // squares
  {.offset = 61952, .elements = 3072, .signatures = 0},  // unnormed
};
constexpr KernelPlan kDecodeRows8Numbers{
  .model = kModelShape,
  .matrices = kMatrices, .num_matrices = 6,
  .vectors = kDecodeRows8Vectors, .num_vectors = 9,
  .rows = 8, .sync = SyncMode::kCounter, .num_ctas = 128,
  .copies = CopyKind::kBulk, .consumer_warps = 8, .producer_warps = 1,
  .ring_slots = 10, .slot_bytes = 16384, .window = 3, .waiting_window = 3, .kv_window = 6,
  .prefetch_pages = 0,
  .residual_tiles = 1, .num_norms = 9,
  .input_buffers = 2, .max_query_tiles = 2, .warp_dims = 128,
  .shares_registers = true,
  .squares = Vectors::kSquares,
  .counter_offset = 74240, .counter_bytes = 384, .workspace_bytes = 74752,
  .num_regions = 11,
  .regions = {  // offset and bytes in shared memory
    {"pages", 0, 163840},
    {"input", 163840, 34816},
    {"tiles", 198656, 20480},
    {"residual", 219136, 512},
    {"factors", 219648, 32},
    {"held", 219680, 2624},
    {"decision", 222304, 32},
    {"fenced", 222336, 0},
    {"experts", 222336, 424},
    {"status", 222768, 320},
    {"barriers", 223088, 512},
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
    {"picks_known", 1, 8, true},
    {"experts_chosen", 1, 1, true},
    {"lines_ready", 0, 8, true},
    {"experts_taken", 1, 1, false},
    {"stopped", 1, 1, false},
    {"ended", 1, 10, false},
  },
};

constexpr Vector kDecodeRows16Vectors[] = {  // in the workspace
  {.offset = 0, .elements = 4096, .signatures = 0},  // qkv
  {.offset = 16384, .elements = 2048, .signatures = 0},  // heads
  {.offset = 24576, .elements = 2048, .signatures = 0},  // post_attention
  {.offset = 32768, .elements = 2048, .signatures = 0},  // ffn
  {.offset = 40960, .elements = 2048, .signatures = 0},  // hidden
  {.offset = 49152, .elements = 4098, .signatures = 0},  // candidates
  {.offset = 65792, .elements = 128, .signatures = 0},  // routes
  {.offset = 66304, .elements = 2048, .signatures = 0},  // squares
  {.offset = 74496, .elements = 6144, .signatures = 0},  // unnormed
};
constexpr KernelPlan kDecodeRows16Numbers{
  .model = kModelShape,
  .matrices = kMatrices, .num_matrices = 6,
  .vectors = kDecodeRows16Vectors, .num_vectors = 9,
  .rows = 16, .sync = SyncMode::kCounter, .num_ctas = 128,
  .copies = CopyKind::kBulk, .consumer_warps = 8, .producer_warps = 1,
  .ring_slots = 10, .slot_bytes = 16384, .window = 3, .waiting_window = 3, .kv_window = 6,
  .prefetch_pages = 0,
  .residual_tiles = 1, .num_norms = 9,
  .input_buffers = 2, .max_query_tiles = 2, .warp_dims = 128,
  .shares_registers = true,
  .squares = Vectors::kSquares,
  .counter_offset = 99072, .counter_bytes = 384, .workspace_bytes = 99584,
  .num_regions = 11,
  .regions = {  // offset and bytes in shared memory
    {"pages", 0, 163840},
    {"input", 163840, 34816},
    {"tiles", 198656, 20480},
    {"residual", 219136, 1024},
    {"factors", 220160, 64},
    {"held", 220224, 2752},
    {"decision", 222976, 32},
    {"fenced", 223008, 0},
    {"experts", 223008, 680},
    {"status", 223696, 320},
    {"barriers", 224016, 512},
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
    {"picks_known", 1, 8, true},
    {"experts_chosen", 1, 1, true},
    {"lines_ready", 0, 8, true},
    {"experts_taken", 1, 1, false},
    {"stopped", 1, 1, false},
    {"ended", 1, 10, false},
  },
};

constexpr Vector kDecodeRows32Vectors[] = {  // in the workspace
  {.offset = 0, .elements = 8192, .signatures = 0},  // qkv
  {.offset = 32768, .elements = 4096, .signatures = 0},  // heads
  {.offset = 49152, .elements = 4096, .signatures = 0},  // post_attention
  {.offset = 65536, .elements = 4096, .signatures = 0},  // ffn
  {.offset = 81920, .elements = 4096, .signatures = 0},  // hidden
  {.offset = 98304, .elements = 8194, .signatures = 0},  // candidates
  {.offset = 131328, .elements = 256, .signatures = 0},  // routes
  {.offset = 132352, .elements = 4096, .signatures = 0},  // squares
  {.offset = 148736, .elements = 12288, .signatures = 0},  // unnormed
};
constexpr KernelPlan kDecodeRows32Numbers{
  .model = kModelShape,
  .matrices = kMatrices, .num_matrices = 6,
  .vectors = kDecodeRows32Vectors, .num_vectors = 9,
  .rows = 32, .sync = SyncMode::kCounter, .num_ctas = 128,
  .copies = CopyKind::kBulk, .consumer_warps = 8, .producer_warps = 1,
  .ring_slots = 8, .slot_bytes = 16384, .window = 4, .waiting_window = 4, .kv_window = 8,
  .prefetch_pages = 0,
  .residual_tiles = 1, .num_norms = 9,
  .input_buffers = 2, .max_query_tiles = 4, .warp_dims = 128,
  .shares_registers = true,
  .squares = Vectors::kSquares,
  .counter_offset = 197888, .counter_bytes = 384, .workspace_bytes = 198400,
  .num_regions = 11,
  .regions = {  // offset and bytes in shared memory
    {"pages", 0, 131072},
    {"input", 131072, 69632},
    {"tiles", 200704, 20480},
    {"residual", 221184, 2048},
    {"factors", 223232, 128},
    {"held", 223360, 928},
    {"decision", 224288, 32},
    {"fenced", 224320, 0},
    {"experts", 224320, 1192},
    {"status", 225520, 320},
    {"barriers", 225840, 480},
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
    {"picks_known", 1, 8, true},
    {"experts_chosen", 1, 1, true},
    {"lines_ready", 0, 8, true},
    {"experts_taken", 1, 1, false},
    {"stopped", 1, 1, false},
    {"ended", 1, 10, false},
  },
};

constexpr Vector kDecodeRows64Vectors[] = {  // in the workspace
  {.offset = 0, .elements = 16384, .signatures = 0},  // qkv
  {.offset = 65536, .elements = 8192, .signatures = 0},  // heads
  {.offset = 98304, .elements = 8192, .signatures = 0},  // post_attention
  {.offset = 131072, .elements = 8192, .signatures = 0},  // ffn
  {.offset = 163840, .elements = 8192, .signatures = 0},  // hidden
  {.offset = 196608, .elements = 16386, .signatures = 0},  // candidates
  {.offset = 262400, .elements = 512, .signatures = 0},  // routes
  {.offset = 264448, .elements = 8192, .signatures = 0},  // squares
  {.offset = 297216, .elements = 24576, .signatures = 0},  // unnormed
};
constexpr KernelPlan kDecodeRows64Numbers{
  .model = kModelShape,
  .matrices = kMatrices, .num_matrices = 6,
  .vectors = kDecodeRows64Vectors, .num_vectors = 9,
  .rows = 64, .sync = SyncMode::kCounter, .num_ctas = 128,
  .copies = CopyKind::kBulk, .consumer_warps = 8, .producer_warps = 1,
  .ring_slots = 6, .slot_bytes = 16384, .window = 4, .waiting_window = 4, .kv_window = 6,
  .prefetch_pages = 0,
  .residual_tiles = 1, .num_norms = 9,
  .input_buffers = 2, .max_query_tiles = 8, .warp_dims = 128,
  .shares_registers = true,
  .squares = Vectors::kSquares,
  .counter_offset = 395520, .counter_bytes = 384, .workspace_bytes = 396032,
  .num_regions = 11,
  .regions = {  // offset and bytes in shared memory
    {"pages", 0, 98304},
    {"input", 98304, 73728},
    {"tiles", 172032, 40960},
    {"residual", 212992, 4096},
    {"factors", 217088, 256},
    {"held", 217344, 1440},
    {"decision", 218784, 32},
    {"fenced", 218816, 0},
    {"experts", 218816, 2280},
    {"status", 221104, 320},
    {"barriers", 221424, 448},
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
    {"picks_known", 1, 8, true},
    {"experts_chosen", 1, 1, true},
    {"lines_ready", 0, 8, true},
    {"experts_taken", 1, 1, false},
    {"stopped", 1, 1, false},
    {"ended", 1, 10, false},
  },
};

}  // namespace soliton::generated
