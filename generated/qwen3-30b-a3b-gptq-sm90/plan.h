// Generated from models/qwen3-30b-a3b-gptq.yaml for h200 and h100. Do not edit; run: soliton-gen models/qwen3-30b-a3b-gptq.yaml --gpu h200,h100 --rows 1,8,16,32,256,512,1024
#pragma once

#include "layout/library.h"

namespace soliton::generated {

// What phases name.
struct Matrices { enum : int { kQkv = 0, kO = 1, kRouter = 2, kGateUp = 3, kDown = 4, kLmHead = 5 }; };
struct Vectors { enum : int { kQkv = 0, kHeads = 1, kPostAttention = 2, kFfn = 3, kHidden = 4, kCandidates = 5, kRoutes = 6, kSquares = 7, kUnnormed = 8, kOutputs = 9, kChoices = 10, kGrouped = 11 }; };

constexpr PackedMatrix kMatrices[] = {  // in the order of the packed weights
  {.name = "qkv", .layer_kind = 0, .offset = 0, .rows = 5120, .columns = 2048, .padded_columns = 2048, .format = {WeightType::kInt4, 128, false}, .num_tiles = 320, .row_order = RowOrder::kRotary},
  {.name = "o", .layer_kind = 0, .offset = 5406720, .rows = 2048, .columns = 4096, .padded_columns = 4096, .format = {WeightType::kInt4, 128, false}, .num_tiles = 128, .row_order = RowOrder::kPlain},
  {.name = "router", .layer_kind = 0, .offset = 9732096, .rows = 128, .columns = 2048, .padded_columns = 2048, .format = {WeightType::kBf16, 0, false}, .num_tiles = 8, .row_order = RowOrder::kPlain},
  {.name = "gate_up", .layer_kind = 0, .offset = 10256384, .rows = 12288, .columns = 2048, .padded_columns = 2048, .format = {WeightType::kInt4, 128, false}, .num_tiles = 768, .row_order = RowOrder::kGateUp, .experts = {ExpertAxis::kRows, 128, 8}},
  {.name = "down", .layer_kind = 0, .offset = 217874432, .rows = 2048, .columns = 6144, .padded_columns = 6144, .format = {WeightType::kInt4, 128, false}, .num_tiles = 128, .row_order = RowOrder::kPlain, .experts = {ExpertAxis::kColumns, 128, 8}},
  {.name = "lm_head", .layer_kind = 1, .offset = 0, .rows = 151936, .columns = 2048, .padded_columns = 2048, .format = {WeightType::kBf16, 0, false}, .num_tiles = 9496, .row_order = RowOrder::kPlain},
};

constexpr Layer kLayers[] = {  // the last stands once, behind all others
  {.kind = 0, .weights = 0, .first_norm = 0},
  {.kind = 0, .weights = 321683456, .first_norm = 2},
  {.kind = 0, .weights = 643366912, .first_norm = 4},
  {.kind = 0, .weights = 965050368, .first_norm = 6},
  {.kind = 0, .weights = 1286733824, .first_norm = 8},
  {.kind = 0, .weights = 1608417280, .first_norm = 10},
  {.kind = 0, .weights = 1930100736, .first_norm = 12},
  {.kind = 0, .weights = 2251784192, .first_norm = 14},
  {.kind = 0, .weights = 2573467648, .first_norm = 16},
  {.kind = 0, .weights = 2895151104, .first_norm = 18},
  {.kind = 0, .weights = 3216834560, .first_norm = 20},
  {.kind = 0, .weights = 3538518016, .first_norm = 22},
  {.kind = 0, .weights = 3860201472, .first_norm = 24},
  {.kind = 0, .weights = 4181884928, .first_norm = 26},
  {.kind = 0, .weights = 4503568384, .first_norm = 28},
  {.kind = 0, .weights = 4825251840, .first_norm = 30},
  {.kind = 0, .weights = 5146935296, .first_norm = 32},
  {.kind = 0, .weights = 5468618752, .first_norm = 34},
  {.kind = 0, .weights = 5790302208, .first_norm = 36},
  {.kind = 0, .weights = 6111985664, .first_norm = 38},
  {.kind = 0, .weights = 6433669120, .first_norm = 40},
  {.kind = 0, .weights = 6755352576, .first_norm = 42},
  {.kind = 0, .weights = 7077036032, .first_norm = 44},
  {.kind = 0, .weights = 7398719488, .first_norm = 46},
  {.kind = 0, .weights = 7720402944, .first_norm = 48},
  {.kind = 0, .weights = 8042086400, .first_norm = 50},
  {.kind = 0, .weights = 8363769856, .first_norm = 52},
  {.kind = 0, .weights = 8685453312, .first_norm = 54},
  {.kind = 0, .weights = 9007136768, .first_norm = 56},
  {.kind = 0, .weights = 9328820224, .first_norm = 58},
  {.kind = 0, .weights = 9650503680, .first_norm = 60},
  {.kind = 0, .weights = 9972187136, .first_norm = 62},
  {.kind = 0, .weights = 10293870592, .first_norm = 64},
  {.kind = 0, .weights = 10615554048, .first_norm = 66},
  {.kind = 0, .weights = 10937237504, .first_norm = 68},
  {.kind = 0, .weights = 11258920960, .first_norm = 70},
  {.kind = 0, .weights = 11580604416, .first_norm = 72},
  {.kind = 0, .weights = 11902287872, .first_norm = 74},
  {.kind = 0, .weights = 12223971328, .first_norm = 76},
  {.kind = 0, .weights = 12545654784, .first_norm = 78},
  {.kind = 0, .weights = 12867338240, .first_norm = 80},
  {.kind = 0, .weights = 13189021696, .first_norm = 82},
  {.kind = 0, .weights = 13510705152, .first_norm = 84},
  {.kind = 0, .weights = 13832388608, .first_norm = 86},
  {.kind = 0, .weights = 14154072064, .first_norm = 88},
  {.kind = 0, .weights = 14475755520, .first_norm = 90},
  {.kind = 0, .weights = 14797438976, .first_norm = 92},
  {.kind = 0, .weights = 15119122432, .first_norm = 94},
  {.kind = 1, .weights = 15440805888, .first_norm = 96},
};

constexpr ModelDescriptor kModel{
  .name = "qwen3-30b-a3b-gptq",
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
      .weight_bits = 4,
      .weight_group = 128,
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
  .facts_hash = 0x410363935f0e2db4ull,
  .page_layout = 2,
  .compute_capability = 90,
  .num_cards = 2,
  .cards =
    {
      {.name = "h200", .costs = {.item_us = 0.3, .mma_us = 0.002, .read_bytes_per_s = 4600000000000.0, .exchange_bytes_per_s = 2700000000000.0}},
      {.name = "h100", .costs = {.item_us = 0.3, .mma_us = 0.002, .read_bytes_per_s = 3200000000000.0, .exchange_bytes_per_s = 2700000000000.0}},
    },
  .weight_bytes = 16063135744,
  .needed_weight_bytes = 2048917504,
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
  .integers = {WeightType::kInt4, 128, false},
};

constexpr Vector kDecodeVectors[] = {  // in the workspace
  {.offset = 0, .elements = 5120, .signatures = 0},  // qkv
  {.offset = 20480, .elements = 4096, .signatures = 0},  // heads
  {.offset = 36864, .elements = 2048, .signatures = 0},  // post_attention
  {.offset = 45056, .elements = 6144, .signatures = 0, .to_second = 24576},  // ffn
  {.offset = 94208, .elements = 2048, .signatures = 0},  // hidden
  {.offset = 102400, .elements = 260, .signatures = 0},  // candidates
  {.offset = 103680, .elements = 512, .signatures = 0},  // routes
};
constexpr KernelPlan kDecodeNumbers{
  .model = kModelShape,
  .matrices = kMatrices, .num_matrices = 6,
  .vectors = kDecodeVectors, .num_vectors = 7,
  .rows = 1, .sync = SyncMode::kSelfValidating, .num_ctas = 129,
  .copies = CopyKind::kBulk, .consumer_warps = 8, .producer_warps = 1,
  .ring_slots = 11, .slot_bytes = 16896, .window = 4, .waiting_window = 1, .kv_window = 3,
  .prefetch_pages = 0,
  .residual_tiles = 1, .num_norms = 97,
  .tile_slots = 4, .chunk_columns = 6144, .min_pages_per_split = 2,
  .partials = {.offset = 105728, .elements = 67080},
  .counter_offset = 374272, .counter_bytes = 1280, .workspace_bytes = 375552,
  .num_regions = 12,
  .regions = {  // offset and bytes in shared memory
    {"pages", 0, 185856},
    {"x", 185856, 26112},
    {"tiles", 211968, 2048},
    {"residual", 214016, 64},
    {"token", 214080, 1024},
    {"squares", 215104, 64},
    {"decision", 215168, 64},
    {"experts", 215232, 32},
    {"zeros", 215264, 0},
    {"waiting", 215264, 4},
    {"status", 215280, 320},
    {"barriers", 215600, 344},
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
    {"experts_chosen", 1, 1, true},
    {"experts_taken", 1, 1, false},
    {"stopped", 1, 1, false},
    {"ended", 1, 10, false},
  },
};

constexpr Vector kDecodeRows8Vectors[] = {  // in the workspace
  {.offset = 0, .elements = 40960, .signatures = 0},  // qkv
  {.offset = 163840, .elements = 32768, .signatures = 0},  // heads
  {.offset = 294912, .elements = 16384, .signatures = 0},  // post_attention
  {.offset = 360448, .elements = 49152, .signatures = 0},  // ffn
  {.offset = 557056, .elements = 16384, .signatures = 0},  // hidden
  {.offset = 622592, .elements = 2066, .signatures = 0},  // candidates
  {.offset = 631040, .elements = 4096, .signatures = 0},  // routes
  {.offset = 647424, .elements = 2048, .signatures = 0},  // squares
  {.offset = 655616, .elements = 36864, .signatures = 0},  // unnormed
  {.offset = 803072, .elements = 131072, .signatures = 0},  // outputs
};
constexpr KernelPlan kDecodeRows8Numbers{
  .model = kModelShape,
  .matrices = kMatrices, .num_matrices = 6,
  .vectors = kDecodeRows8Vectors, .num_vectors = 10,
  .rows = 8, .sync = SyncMode::kCounter, .num_ctas = 129,
  .copies = CopyKind::kBulk, .consumer_warps = 8, .producer_warps = 1,
  .ring_slots = 8, .slot_bytes = 16896, .window = 3, .waiting_window = 3, .kv_window = 3,
  .prefetch_pages = 0,
  .residual_tiles = 1, .num_norms = 97,
  .input_buffers = 3, .max_query_tiles = 8, .warp_dims = 128,
  .shares_registers = true,
  .squares = Vectors::kSquares,
  .counter_offset = 1327360, .counter_bytes = 384, .workspace_bytes = 1327872,
  .num_regions = 11,
  .regions = {  // offset and bytes in shared memory
    {"pages", 0, 135168},
    {"input", 135168, 65536},
    {"tiles", 200704, 20480},
    {"residual", 221184, 512},
    {"factors", 221696, 32},
    {"held", 221728, 2624},
    {"decision", 224352, 32},
    {"fenced", 224384, 0},
    {"experts", 224384, 2904},
    {"status", 227296, 320},
    {"barriers", 227616, 512},
  },
  .num_barriers = 20,
  .barriers = {  // slots, arrivals, of whole warps?
    {"page_full", 8, 1, false},
    {"page_empty", 8, 8, true},
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
    {"lines_ready", 2, 8, true},
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
  {.offset = 622592, .elements = 4130, .signatures = 0},  // candidates
  {.offset = 639232, .elements = 8192, .signatures = 0},  // routes
  {.offset = 672000, .elements = 4096, .signatures = 0},  // squares
  {.offset = 688384, .elements = 73728, .signatures = 0},  // unnormed
  {.offset = 983296, .elements = 262144, .signatures = 0},  // outputs
};
constexpr KernelPlan kDecodeRows16Numbers{
  .model = kModelShape,
  .matrices = kMatrices, .num_matrices = 6,
  .vectors = kDecodeRows16Vectors, .num_vectors = 10,
  .rows = 16, .sync = SyncMode::kCounter, .num_ctas = 129,
  .copies = CopyKind::kBulk, .consumer_warps = 8, .producer_warps = 1,
  .ring_slots = 8, .slot_bytes = 16896, .window = 3, .waiting_window = 3, .kv_window = 3,
  .prefetch_pages = 0,
  .residual_tiles = 1, .num_norms = 97,
  .input_buffers = 3, .max_query_tiles = 8, .warp_dims = 128,
  .shares_registers = true,
  .squares = Vectors::kSquares,
  .counter_offset = 2031872, .counter_bytes = 384, .workspace_bytes = 2032384,
  .num_regions = 11,
  .regions = {  // offset and bytes in shared memory
    {"pages", 0, 135168},
    {"input", 135168, 68096},
    {"tiles", 203264, 20480},
    {"residual", 223744, 1024},
    {"factors", 224768, 64},
    {"held", 224832, 672},
    {"decision", 225504, 32},
    {"fenced", 225536, 0},
    {"experts", 225536, 4696},
    {"status", 230240, 320},
    {"barriers", 230560, 512},
  },
  .num_barriers = 20,
  .barriers = {  // slots, arrivals, of whole warps?
    {"page_full", 8, 1, false},
    {"page_empty", 8, 8, true},
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
    {"lines_ready", 2, 8, true},
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
  {.offset = 1245184, .elements = 8258, .signatures = 0},  // candidates
  {.offset = 1278464, .elements = 16384, .signatures = 0},  // routes
  {.offset = 1344000, .elements = 8192, .signatures = 0},  // squares
  {.offset = 1376768, .elements = 147456, .signatures = 0},  // unnormed
  {.offset = 1966592, .elements = 524288, .signatures = 0},  // outputs
};
constexpr KernelPlan kDecodeRows32Numbers{
  .model = kModelShape,
  .matrices = kMatrices, .num_matrices = 6,
  .vectors = kDecodeRows32Vectors, .num_vectors = 10,
  .rows = 32, .sync = SyncMode::kCounter, .num_ctas = 129,
  .copies = CopyKind::kBulk, .consumer_warps = 8, .producer_warps = 1,
  .ring_slots = 8, .slot_bytes = 16896, .window = 4, .waiting_window = 4, .kv_window = 4,
  .prefetch_pages = 0,
  .residual_tiles = 1, .num_norms = 97,
  .input_buffers = 2, .max_query_tiles = 8, .warp_dims = 128,
  .shares_registers = true,
  .squares = Vectors::kSquares,
  .counter_offset = 4063744, .counter_bytes = 384, .workspace_bytes = 4064256,
  .num_regions = 11,
  .regions = {  // offset and bytes in shared memory
    {"pages", 0, 135168},
    {"input", 135168, 51072},
    {"tiles", 186240, 31360},
    {"residual", 217600, 2048},
    {"factors", 219648, 128},
    {"held", 219776, 928},
    {"decision", 220704, 32},
    {"fenced", 220736, 0},
    {"experts", 220736, 6996},
    {"status", 227744, 320},
    {"barriers", 228064, 496},
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
    {"lines_ready", 2, 8, true},
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
  {.offset = 17186816, .elements = 66050, .signatures = 0},  // candidates
  {.offset = 17451264, .elements = 32768, .signatures = 0},  // routes
  {.offset = 17582336, .elements = 65536, .signatures = 0},  // squares
  {.offset = 17844480, .elements = 1179648, .signatures = 0},  // unnormed
  {.offset = 22563072, .elements = 13828096, .signatures = 0},  // outputs
  {.offset = 77875456, .elements = 6144, .signatures = 0},  // choices
  {.offset = 77900032, .elements = 6920800, .signatures = 0},  // grouped
};
constexpr KernelPlan kDecodeRows256Numbers{
  .model = kModelShape,
  .matrices = kMatrices, .num_matrices = 6,
  .vectors = kDecodeRows256Vectors, .num_vectors = 12,
  .rows = 256, .sync = SyncMode::kCounter, .num_ctas = 129,
  .copies = CopyKind::kBulk, .consumer_warps = 8, .producer_warps = 1,
  .ring_slots = 6, .slot_bytes = 16384, .window = 6, .waiting_window = 6, .kv_window = 6,
  .prefetch_pages = 0,
  .residual_tiles = 1, .num_norms = 97,
  .input_buffers = 3, .max_query_tiles = 8, .warp_dims = 128,
  .shares_registers = true,
  .warpgroups = true,
  .squares = Vectors::kSquares,
  .sums = {.offset = 105583360, .elements = 8982528},
  .counter_offset = 141513472, .counter_bytes = 384, .workspace_bytes = 141513984,
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
  {.offset = 28327936, .elements = 66562, .signatures = 0},  // candidates
  {.offset = 28594432, .elements = 65536, .signatures = 0},  // routes
  {.offset = 28856576, .elements = 65536, .signatures = 0},  // squares
  {.offset = 29118720, .elements = 2359296, .signatures = 0},  // unnormed
  {.offset = 38555904, .elements = 19595264, .signatures = 0},  // outputs
  {.offset = 116936960, .elements = 12288, .signatures = 0},  // choices
  {.offset = 116986112, .elements = 9807200, .signatures = 0},  // grouped
};
constexpr KernelPlan kDecodeRows512Numbers{
  .model = kModelShape,
  .matrices = kMatrices, .num_matrices = 6,
  .vectors = kDecodeRows512Vectors, .num_vectors = 12,
  .rows = 512, .sync = SyncMode::kCounter, .num_ctas = 130,
  .copies = CopyKind::kBulk, .consumer_warps = 8, .producer_warps = 1,
  .ring_slots = 6, .slot_bytes = 16384, .window = 6, .waiting_window = 6, .kv_window = 6,
  .prefetch_pages = 0,
  .residual_tiles = 2, .num_norms = 97,
  .input_buffers = 3, .max_query_tiles = 8, .warp_dims = 128,
  .shares_registers = true,
  .warpgroups = true,
  .squares = Vectors::kSquares,
  .sums = {.offset = 156215040, .elements = 9584640},
  .counter_offset = 194553600, .counter_bytes = 384, .workspace_bytes = 194554112,
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
  {.offset = 50561024, .elements = 67586, .signatures = 0},  // candidates
  {.offset = 50831616, .elements = 131072, .signatures = 0},  // routes
  {.offset = 51355904, .elements = 131072, .signatures = 0},  // squares
  {.offset = 51880192, .elements = 4718592, .signatures = 0},  // unnormed
  {.offset = 70754560, .elements = 31064064, .signatures = 0},  // outputs
  {.offset = 195010816, .elements = 24576, .signatures = 0},  // choices
  {.offset = 195109120, .elements = 15547200, .signatures = 0},  // grouped
};
constexpr KernelPlan kDecodeRows1024Numbers{
  .model = kModelShape,
  .matrices = kMatrices, .num_matrices = 6,
  .vectors = kDecodeRows1024Vectors, .num_vectors = 12,
  .rows = 1024, .sync = SyncMode::kCounter, .num_ctas = 132,
  .copies = CopyKind::kBulk, .consumer_warps = 8, .producer_warps = 1,
  .ring_slots = 6, .slot_bytes = 16384, .window = 6, .waiting_window = 6, .kv_window = 6,
  .prefetch_pages = 0,
  .residual_tiles = 4, .num_norms = 97,
  .input_buffers = 3, .max_query_tiles = 8, .warp_dims = 128,
  .shares_registers = true,
  .warpgroups = true,
  .squares = Vectors::kSquares,
  .sums = {.offset = 257297920, .elements = 10813440},
  .counter_offset = 300551680, .counter_bytes = 384, .workspace_bytes = 300552192,
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
