// Generated from models/qwen3-30b-a3b.yaml for h200 and h100. Do not edit; run: soliton-gen models/qwen3-30b-a3b.yaml --gpu h200,h100 --rows 1,8,16,32,64,256,512,1024
#pragma once

#include "layout/library.h"

namespace soliton::generated {

// What phases name.
struct Matrices { enum : int { kQkv = 0, kO = 1, kRouter = 2, kGateUp = 3, kDown = 4, kLmHead = 5 }; };
struct Vectors { enum : int { kQkv = 0, kHeads = 1, kPostAttention = 2, kFfn = 3, kHidden = 4, kCandidates = 5, kRoutes = 6, kSquares = 7, kUnnormed = 8, kOutputs = 9, kChoices = 10, kGrouped = 11 }; };

constexpr PackedMatrix kMatrices[] = {  // in the order of the packed weights
  {.name = "qkv", .layer_kind = 0, .offset = 0, .rows = 5120, .columns = 2048, .padded_columns = 2048, .format = {WeightType::kBf16, 0, false}, .num_tiles = 320, .row_order = RowOrder::kRotary},
  {.name = "o", .layer_kind = 0, .offset = 20971520, .rows = 2048, .columns = 4096, .padded_columns = 4096, .format = {WeightType::kBf16, 0, false}, .num_tiles = 128, .row_order = RowOrder::kPlain},
  {.name = "router", .layer_kind = 0, .offset = 37748736, .rows = 128, .columns = 2048, .padded_columns = 2048, .format = {WeightType::kBf16, 0, false}, .num_tiles = 8, .row_order = RowOrder::kPlain},
  {.name = "gate_up", .layer_kind = 0, .offset = 38273024, .rows = 12288, .columns = 2048, .padded_columns = 2048, .format = {WeightType::kBf16, 0, false}, .num_tiles = 768, .row_order = RowOrder::kGateUp, .experts = {ExpertAxis::kRows, 128, 8}},
  {.name = "down", .layer_kind = 0, .offset = 843579392, .rows = 2048, .columns = 6144, .padded_columns = 6144, .format = {WeightType::kBf16, 0, false}, .num_tiles = 128, .row_order = RowOrder::kPlain, .experts = {ExpertAxis::kColumns, 128, 8}},
  {.name = "lm_head", .layer_kind = 1, .offset = 0, .rows = 151936, .columns = 2048, .padded_columns = 2048, .format = {WeightType::kBf16, 0, false}, .num_tiles = 9496, .row_order = RowOrder::kPlain},
};

constexpr Layer kLayers[] = {  // the last stands once, behind all others
  {.kind = 0, .weights = 0, .first_norm = 0},
  {.kind = 0, .weights = 1246232576, .first_norm = 2},
  {.kind = 0, .weights = 2492465152, .first_norm = 4},
  {.kind = 0, .weights = 3738697728, .first_norm = 6},
  {.kind = 0, .weights = 4984930304, .first_norm = 8},
  {.kind = 0, .weights = 6231162880, .first_norm = 10},
  {.kind = 0, .weights = 7477395456, .first_norm = 12},
  {.kind = 0, .weights = 8723628032, .first_norm = 14},
  {.kind = 0, .weights = 9969860608, .first_norm = 16},
  {.kind = 0, .weights = 11216093184, .first_norm = 18},
  {.kind = 0, .weights = 12462325760, .first_norm = 20},
  {.kind = 0, .weights = 13708558336, .first_norm = 22},
  {.kind = 0, .weights = 14954790912, .first_norm = 24},
  {.kind = 0, .weights = 16201023488, .first_norm = 26},
  {.kind = 0, .weights = 17447256064, .first_norm = 28},
  {.kind = 0, .weights = 18693488640, .first_norm = 30},
  {.kind = 0, .weights = 19939721216, .first_norm = 32},
  {.kind = 0, .weights = 21185953792, .first_norm = 34},
  {.kind = 0, .weights = 22432186368, .first_norm = 36},
  {.kind = 0, .weights = 23678418944, .first_norm = 38},
  {.kind = 0, .weights = 24924651520, .first_norm = 40},
  {.kind = 0, .weights = 26170884096, .first_norm = 42},
  {.kind = 0, .weights = 27417116672, .first_norm = 44},
  {.kind = 0, .weights = 28663349248, .first_norm = 46},
  {.kind = 0, .weights = 29909581824, .first_norm = 48},
  {.kind = 0, .weights = 31155814400, .first_norm = 50},
  {.kind = 0, .weights = 32402046976, .first_norm = 52},
  {.kind = 0, .weights = 33648279552, .first_norm = 54},
  {.kind = 0, .weights = 34894512128, .first_norm = 56},
  {.kind = 0, .weights = 36140744704, .first_norm = 58},
  {.kind = 0, .weights = 37386977280, .first_norm = 60},
  {.kind = 0, .weights = 38633209856, .first_norm = 62},
  {.kind = 0, .weights = 39879442432, .first_norm = 64},
  {.kind = 0, .weights = 41125675008, .first_norm = 66},
  {.kind = 0, .weights = 42371907584, .first_norm = 68},
  {.kind = 0, .weights = 43618140160, .first_norm = 70},
  {.kind = 0, .weights = 44864372736, .first_norm = 72},
  {.kind = 0, .weights = 46110605312, .first_norm = 74},
  {.kind = 0, .weights = 47356837888, .first_norm = 76},
  {.kind = 0, .weights = 48603070464, .first_norm = 78},
  {.kind = 0, .weights = 49849303040, .first_norm = 80},
  {.kind = 0, .weights = 51095535616, .first_norm = 82},
  {.kind = 0, .weights = 52341768192, .first_norm = 84},
  {.kind = 0, .weights = 53588000768, .first_norm = 86},
  {.kind = 0, .weights = 54834233344, .first_norm = 88},
  {.kind = 0, .weights = 56080465920, .first_norm = 90},
  {.kind = 0, .weights = 57326698496, .first_norm = 92},
  {.kind = 0, .weights = 58572931072, .first_norm = 94},
  {.kind = 1, .weights = 59819163648, .first_norm = 96},
};

constexpr ModelDescriptor kModel{
  .name = "qwen3-30b-a3b",
  .gpu = "sm90",
  .facts =
    {
      .hidden = 2048,
      .ffn = 6144,
      .num_layers = 48,
      .num_heads = 32,
      .num_kv_heads = 4,
      .head_dim = 128,
      .vocabulary = 151936,
      .tied_lm_head = 0,
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
      .num_experts = 128,
      .experts_per_token = 8,
      .expert_ffn = 768,
      .renormalised = 1,
      .norm_epsilon = 1e-06,
      .rope_theta = 1000000.0,
      .rope_factor = 1.0,
      .rope_low_freq_factor = 1.0,
      .rope_high_freq_factor = 1.0,
      .rope_beta_fast = 32.0,
      .rope_beta_slow = 1.0,
      .rope_attention_factor = 1.0,
    },
  .facts_hash = 0x760c713be3fb1320ull,
  .page_layout = 2,
  .compute_capability = 90,
  .num_cards = 2,
  .cards =
    {
      {.name = "h200", .costs = {.item_us = 0.3, .mma_us = 0.002, .read_bytes_per_s = 4600000000000.0, .exchange_bytes_per_s = 2700000000000.0}},
      {.name = "h100", .costs = {.item_us = 0.3, .mma_us = 0.002, .read_bytes_per_s = 3200000000000.0, .exchange_bytes_per_s = 2700000000000.0}},
    },
  .weight_bytes = 60441493504,
  .needed_weight_bytes = 6083313664,
  .matrices = kMatrices,
  .num_matrices = 6,
  .layers = kLayers,
};

constexpr ModelShape kModelShape{
  .layers = kLayers,
  .num_layers = 48,
  .num_heads = 32,
  .num_kv_heads = 4,
  .head_dim = 128,
  .kv_parts = 1,
  .hidden = 2048,
  .qkv_bias = false,
  .head_norm = true,
  .ordered = false,
  .norm_epsilon = 9.999999974752427e-07f,
  .score_scale = 0.127517431974411f,
  .mixture = {.experts = 128, .chosen = 8, .ffn = 768, .renormalised = true},
  .integers = {WeightType::kBf16, 0, false},
};

constexpr Vector kDecodeVectors[] = {  // in the workspace
  {.offset = 0, .elements = 5120, .signatures = 0},  // qkv
  {.offset = 20480, .elements = 4096, .signatures = 0},  // heads
  {.offset = 36864, .elements = 2048, .signatures = 0},  // post_attention
  {.offset = 45056, .elements = 6144, .signatures = 0},  // ffn
  {.offset = 69632, .elements = 2048, .signatures = 0},  // hidden
  {.offset = 77824, .elements = 258, .signatures = 0},  // candidates
  {.offset = 79104, .elements = 512, .signatures = 0},  // routes
};
constexpr KernelPlan kDecodeNumbers{
  .model = kModelShape,
  .matrices = kMatrices, .num_matrices = 6,
  .vectors = kDecodeVectors, .num_vectors = 7,
  .rows = 1, .sync = SyncMode::kSelfValidating, .num_ctas = 128,
  .copies = CopyKind::kBulk, .consumer_warps = 4, .producer_warps = 1,
  .ring_slots = 12, .slot_bytes = 16384, .window = 4, .waiting_window = 2, .kv_window = 3,
  .prefetch_pages = 0,
  .residual_tiles = 1, .num_norms = 97,
  .tile_slots = 4, .chunk_columns = 6144, .min_pages_per_split = 2,
  .partials = {.offset = 81152, .elements = 66560},
  .counter_offset = 347392, .counter_bytes = 1280, .workspace_bytes = 348672,
  .num_regions = 12,
  .regions = {  // offset and bytes in shared memory
    {"pages", 0, 196608},
    {"x", 196608, 24576},
    {"tiles", 221184, 1024},
    {"residual", 222208, 64},
    {"token", 222272, 1024},
    {"squares", 223296, 32},
    {"decision", 223328, 32},
    {"experts", 223360, 32},
    {"zeros", 223392, 0},
    {"waiting", 223392, 4},
    {"status", 223408, 192},
    {"barriers", 223600, 360},
  },
  .num_barriers = 15,
  .barriers = {  // slots, arrivals, of whole warps?
    {"page_full", 12, 1, false},
    {"page_empty", 12, 4, true},
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
  {.offset = 0, .elements = 40960, .signatures = 0},  // qkv
  {.offset = 163840, .elements = 32768, .signatures = 0},  // heads
  {.offset = 294912, .elements = 16384, .signatures = 0},  // post_attention
  {.offset = 360448, .elements = 49152, .signatures = 0},  // ffn
  {.offset = 557056, .elements = 16384, .signatures = 0},  // hidden
  {.offset = 622592, .elements = 2050, .signatures = 0},  // candidates
  {.offset = 631040, .elements = 4096, .signatures = 0},  // routes
  {.offset = 647424, .elements = 1024, .signatures = 0},  // squares
  {.offset = 651520, .elements = 36864, .signatures = 0},  // unnormed
};
constexpr KernelPlan kDecodeRows8Numbers{
  .model = kModelShape,
  .matrices = kMatrices, .num_matrices = 6,
  .vectors = kDecodeRows8Vectors, .num_vectors = 9,
  .rows = 8, .sync = SyncMode::kCounter, .num_ctas = 128,
  .copies = CopyKind::kBulk, .consumer_warps = 8, .producer_warps = 1,
  .ring_slots = 9, .slot_bytes = 16384, .window = 3, .waiting_window = 3, .kv_window = 3,
  .prefetch_pages = 0,
  .residual_tiles = 1, .num_norms = 97,
  .input_buffers = 3, .max_query_tiles = 8, .warp_dims = 128,
  .shares_registers = true,
  .squares = Vectors::kSquares,
  .counter_offset = 798976, .counter_bytes = 384, .workspace_bytes = 799488,
  .num_regions = 11,
  .regions = {  // offset and bytes in shared memory
    {"pages", 0, 147456},
    {"input", 147456, 52224},
    {"tiles", 199680, 20480},
    {"residual", 220160, 512},
    {"factors", 220672, 32},
    {"held", 220704, 2624},
    {"decision", 223328, 32},
    {"fenced", 223360, 0},
    {"experts", 223360, 2824},
    {"status", 226192, 320},
    {"barriers", 226512, 512},
  },
  .num_barriers = 20,
  .barriers = {  // slots, arrivals, of whole warps?
    {"page_full", 9, 1, false},
    {"page_empty", 9, 8, true},
    {"input_full", 3, 1, false},
    {"input_empty", 3, 8, true},
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
  {.offset = 0, .elements = 40960, .signatures = 0},  // qkv
  {.offset = 163840, .elements = 32768, .signatures = 0},  // heads
  {.offset = 294912, .elements = 16384, .signatures = 0},  // post_attention
  {.offset = 360448, .elements = 49152, .signatures = 0},  // ffn
  {.offset = 557056, .elements = 16384, .signatures = 0},  // hidden
  {.offset = 622592, .elements = 4098, .signatures = 0},  // candidates
  {.offset = 639232, .elements = 8192, .signatures = 0},  // routes
  {.offset = 672000, .elements = 2048, .signatures = 0},  // squares
  {.offset = 680192, .elements = 73728, .signatures = 0},  // unnormed
};
constexpr KernelPlan kDecodeRows16Numbers{
  .model = kModelShape,
  .matrices = kMatrices, .num_matrices = 6,
  .vectors = kDecodeRows16Vectors, .num_vectors = 9,
  .rows = 16, .sync = SyncMode::kCounter, .num_ctas = 128,
  .copies = CopyKind::kBulk, .consumer_warps = 8, .producer_warps = 1,
  .ring_slots = 9, .slot_bytes = 16384, .window = 3, .waiting_window = 3, .kv_window = 3,
  .prefetch_pages = 0,
  .residual_tiles = 1, .num_norms = 97,
  .input_buffers = 3, .max_query_tiles = 8, .warp_dims = 128,
  .shares_registers = true,
  .squares = Vectors::kSquares,
  .counter_offset = 975104, .counter_bytes = 384, .workspace_bytes = 975616,
  .num_regions = 11,
  .regions = {  // offset and bytes in shared memory
    {"pages", 0, 147456},
    {"input", 147456, 52224},
    {"tiles", 199680, 22016},
    {"residual", 221696, 1024},
    {"factors", 222720, 64},
    {"held", 222784, 2752},
    {"decision", 225536, 32},
    {"fenced", 225568, 0},
    {"experts", 225568, 4616},
    {"status", 230192, 320},
    {"barriers", 230512, 512},
  },
  .num_barriers = 20,
  .barriers = {  // slots, arrivals, of whole warps?
    {"page_full", 9, 1, false},
    {"page_empty", 9, 8, true},
    {"input_full", 3, 1, false},
    {"input_empty", 3, 8, true},
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
  {.offset = 0, .elements = 81920, .signatures = 0},  // qkv
  {.offset = 327680, .elements = 65536, .signatures = 0},  // heads
  {.offset = 589824, .elements = 32768, .signatures = 0},  // post_attention
  {.offset = 720896, .elements = 98304, .signatures = 0},  // ffn
  {.offset = 1114112, .elements = 32768, .signatures = 0},  // hidden
  {.offset = 1245184, .elements = 8194, .signatures = 0},  // candidates
  {.offset = 1278208, .elements = 16384, .signatures = 0},  // routes
  {.offset = 1343744, .elements = 4096, .signatures = 0},  // squares
  {.offset = 1360128, .elements = 147456, .signatures = 0},  // unnormed
};
constexpr KernelPlan kDecodeRows32Numbers{
  .model = kModelShape,
  .matrices = kMatrices, .num_matrices = 6,
  .vectors = kDecodeRows32Vectors, .num_vectors = 9,
  .rows = 32, .sync = SyncMode::kCounter, .num_ctas = 128,
  .copies = CopyKind::kBulk, .consumer_warps = 8, .producer_warps = 1,
  .ring_slots = 7, .slot_bytes = 16384, .window = 4, .waiting_window = 4, .kv_window = 4,
  .prefetch_pages = 0,
  .residual_tiles = 1, .num_norms = 97,
  .input_buffers = 2, .max_query_tiles = 13, .warp_dims = 128,
  .shares_registers = true,
  .squares = Vectors::kSquares,
  .counter_offset = 1949952, .counter_bytes = 384, .workspace_bytes = 1950464,
  .num_regions = 11,
  .regions = {  // offset and bytes in shared memory
    {"pages", 0, 114688},
    {"input", 114688, 69632},
    {"tiles", 184320, 33280},
    {"residual", 217600, 2048},
    {"factors", 219648, 128},
    {"held", 219776, 928},
    {"decision", 220704, 32},
    {"fenced", 220736, 0},
    {"experts", 220736, 6664},
    {"status", 227408, 320},
    {"barriers", 227728, 464},
  },
  .num_barriers = 20,
  .barriers = {  // slots, arrivals, of whole warps?
    {"page_full", 7, 1, false},
    {"page_empty", 7, 8, true},
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
  {.offset = 0, .elements = 163840, .signatures = 0},  // qkv
  {.offset = 655360, .elements = 131072, .signatures = 0},  // heads
  {.offset = 1179648, .elements = 65536, .signatures = 0},  // post_attention
  {.offset = 1441792, .elements = 196608, .signatures = 0},  // ffn
  {.offset = 2228224, .elements = 65536, .signatures = 0},  // hidden
  {.offset = 2490368, .elements = 16386, .signatures = 0},  // candidates
  {.offset = 2556160, .elements = 32768, .signatures = 0},  // routes
  {.offset = 2687232, .elements = 8192, .signatures = 0},  // squares
  {.offset = 2720000, .elements = 294912, .signatures = 0},  // unnormed
};
constexpr KernelPlan kDecodeRows64Numbers{
  .model = kModelShape,
  .matrices = kMatrices, .num_matrices = 6,
  .vectors = kDecodeRows64Vectors, .num_vectors = 9,
  .rows = 64, .sync = SyncMode::kCounter, .num_ctas = 128,
  .copies = CopyKind::kBulk, .consumer_warps = 8, .producer_warps = 1,
  .ring_slots = 6, .slot_bytes = 16384, .window = 4, .waiting_window = 4, .kv_window = 4,
  .prefetch_pages = 0,
  .residual_tiles = 1, .num_norms = 97,
  .input_buffers = 2, .max_query_tiles = 10, .warp_dims = 128,
  .shares_registers = true,
  .squares = Vectors::kSquares,
  .counter_offset = 3899648, .counter_bytes = 384, .workspace_bytes = 3900160,
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
    {"experts", 218816, 11784},
    {"status", 230608, 320},
    {"barriers", 230928, 448},
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

constexpr Vector kDecodeRows256Vectors[] = {  // in the workspace
  {.offset = 0, .elements = 655360, .signatures = 0},  // qkv
  {.offset = 2621440, .elements = 524288, .signatures = 0},  // heads
  {.offset = 4718592, .elements = 262144, .signatures = 0},  // post_attention
  {.offset = 5767168, .elements = 2592768, .signatures = 0},  // ffn
  {.offset = 16138240, .elements = 262144, .signatures = 0},  // hidden
  {.offset = 17186816, .elements = 65538, .signatures = 0},  // candidates
  {.offset = 17449216, .elements = 32768, .signatures = 0},  // routes
  {.offset = 17580288, .elements = 32768, .signatures = 0},  // squares
  {.offset = 17711360, .elements = 1179648, .signatures = 0},  // unnormed
  {.offset = 22429952, .elements = 13828096, .signatures = 0},  // outputs
  {.offset = 77742336, .elements = 6144, .signatures = 0},  // choices
  {.offset = 77766912, .elements = 6920800, .signatures = 0},  // grouped
};
constexpr KernelPlan kDecodeRows256Numbers{
  .model = kModelShape,
  .matrices = kMatrices, .num_matrices = 6,
  .vectors = kDecodeRows256Vectors, .num_vectors = 12,
  .rows = 256, .sync = SyncMode::kCounter, .num_ctas = 128,
  .copies = CopyKind::kBulk, .consumer_warps = 8, .producer_warps = 1,
  .ring_slots = 6, .slot_bytes = 16384, .window = 6, .waiting_window = 6, .kv_window = 6,
  .prefetch_pages = 0,
  .residual_tiles = 1, .num_norms = 97,
  .input_buffers = 3, .max_query_tiles = 8, .warp_dims = 128,
  .shares_registers = true,
  .warpgroups = true,
  .squares = Vectors::kSquares,
  .sums = {.offset = 105450240, .elements = 8912896},
  .counter_offset = 141101824, .counter_bytes = 384, .workspace_bytes = 141102336,
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
    {"experts", 226752, 2728},
    {"status", 229488, 320},
    {"barriers", 229808, 456},
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
    {"experts_chosen", 1, 1, true},
    {"lines_ready", 0, 8, true},
    {"experts_taken", 1, 1, false},
    {"stopped", 1, 1, false},
    {"ended", 1, 10, false},
  },
};

constexpr Vector kDecodeRows512Vectors[] = {  // in the workspace
  {.offset = 0, .elements = 1310720, .signatures = 0},  // qkv
  {.offset = 5242880, .elements = 1048576, .signatures = 0},  // heads
  {.offset = 9437184, .elements = 524288, .signatures = 0},  // post_attention
  {.offset = 11534336, .elements = 3674112, .signatures = 0},  // ffn
  {.offset = 26230784, .elements = 524288, .signatures = 0},  // hidden
  {.offset = 28327936, .elements = 65538, .signatures = 0},  // candidates
  {.offset = 28590336, .elements = 65536, .signatures = 0},  // routes
  {.offset = 28852480, .elements = 65536, .signatures = 0},  // squares
  {.offset = 29114624, .elements = 2359296, .signatures = 0},  // unnormed
  {.offset = 38551808, .elements = 19595264, .signatures = 0},  // outputs
  {.offset = 116932864, .elements = 12288, .signatures = 0},  // choices
  {.offset = 116982016, .elements = 9807200, .signatures = 0},  // grouped
};
constexpr KernelPlan kDecodeRows512Numbers{
  .model = kModelShape,
  .matrices = kMatrices, .num_matrices = 6,
  .vectors = kDecodeRows512Vectors, .num_vectors = 12,
  .rows = 512, .sync = SyncMode::kCounter, .num_ctas = 128,
  .copies = CopyKind::kBulk, .consumer_warps = 8, .producer_warps = 1,
  .ring_slots = 6, .slot_bytes = 16384, .window = 6, .waiting_window = 6, .kv_window = 6,
  .prefetch_pages = 0,
  .residual_tiles = 2, .num_norms = 97,
  .input_buffers = 3, .max_query_tiles = 8, .warp_dims = 128,
  .shares_registers = true,
  .warpgroups = true,
  .squares = Vectors::kSquares,
  .sums = {.offset = 156210944, .elements = 9437184},
  .counter_offset = 193959680, .counter_bytes = 384, .workspace_bytes = 193960192,
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
    {"experts", 222656, 2888},
    {"status", 225552, 320},
    {"barriers", 225872, 456},
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
    {"experts_chosen", 1, 1, true},
    {"lines_ready", 0, 8, true},
    {"experts_taken", 1, 1, false},
    {"stopped", 1, 1, false},
    {"ended", 1, 10, false},
  },
};

constexpr Vector kDecodeRows1024Vectors[] = {  // in the workspace
  {.offset = 0, .elements = 2621440, .signatures = 0},  // qkv
  {.offset = 10485760, .elements = 2097152, .signatures = 0},  // heads
  {.offset = 18874368, .elements = 1048576, .signatures = 0},  // post_attention
  {.offset = 23068672, .elements = 5824512, .signatures = 0},  // ffn
  {.offset = 46366720, .elements = 1048576, .signatures = 0},  // hidden
  {.offset = 50561024, .elements = 65538, .signatures = 0},  // candidates
  {.offset = 50823424, .elements = 131072, .signatures = 0},  // routes
  {.offset = 51347712, .elements = 131072, .signatures = 0},  // squares
  {.offset = 51872000, .elements = 4718592, .signatures = 0},  // unnormed
  {.offset = 70746368, .elements = 31064064, .signatures = 0},  // outputs
  {.offset = 195002624, .elements = 24576, .signatures = 0},  // choices
  {.offset = 195100928, .elements = 15547200, .signatures = 0},  // grouped
};
constexpr KernelPlan kDecodeRows1024Numbers{
  .model = kModelShape,
  .matrices = kMatrices, .num_matrices = 6,
  .vectors = kDecodeRows1024Vectors, .num_vectors = 12,
  .rows = 1024, .sync = SyncMode::kCounter, .num_ctas = 128,
  .copies = CopyKind::kBulk, .consumer_warps = 8, .producer_warps = 1,
  .ring_slots = 6, .slot_bytes = 16384, .window = 6, .waiting_window = 6, .kv_window = 6,
  .prefetch_pages = 0,
  .residual_tiles = 4, .num_norms = 97,
  .input_buffers = 3, .max_query_tiles = 8, .warp_dims = 128,
  .shares_registers = true,
  .warpgroups = true,
  .squares = Vectors::kSquares,
  .sums = {.offset = 257289728, .elements = 10485760},
  .counter_offset = 299232768, .counter_bytes = 384, .workspace_bytes = 299233280,
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
    {"experts", 222656, 3208},
    {"status", 225872, 320},
    {"barriers", 226192, 456},
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
    {"experts_chosen", 1, 1, true},
    {"lines_ready", 0, 8, true},
    {"experts_taken", 1, 1, false},
    {"stopped", 1, 1, false},
    {"ended", 1, 10, false},
  },
};

}  // namespace soliton::generated
