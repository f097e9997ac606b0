// Generated from models/llama-3.1-70b-gptq.yaml for h200 and h100. Do not edit; run: soliton-gen models/llama-3.1-70b-gptq.yaml --gpu h200,h100 --rows 1,8,16,32,64,128,256,512,1024
#pragma once

#include "layout/library.h"

namespace soliton::generated {

// What phases name.
struct Matrices { enum : int { kQkv = 0, kO = 1, kGateUp = 2, kDown = 3, kLmHead = 4 }; };
struct Vectors { enum : int { kQkv = 0, kHeads = 1, kPostAttention = 2, kFfn = 3, kHidden = 4, kCandidates = 5, kSquares = 6 }; };

constexpr PackedMatrix kMatrices[] = {  // in the order of the packed weights
  {.name = "qkv", .layer_kind = 0, .offset = 0, .rows = 10240, .columns = 8192, .padded_columns = 8192, .format = {WeightType::kInt4, 128, false}, .num_tiles = 640, .row_order = RowOrder::kRotary},
  {.name = "o", .layer_kind = 0, .offset = 43253760, .rows = 8192, .columns = 8192, .padded_columns = 8192, .format = {WeightType::kInt4, 128, false}, .num_tiles = 512, .row_order = RowOrder::kPlain},
  {.name = "gate_up", .layer_kind = 0, .offset = 77856768, .rows = 57344, .columns = 8192, .padded_columns = 8192, .format = {WeightType::kInt4, 128, false}, .num_tiles = 3584, .row_order = RowOrder::kGateUp},
  {.name = "down", .layer_kind = 0, .offset = 320077824, .rows = 8192, .columns = 28672, .padded_columns = 28672, .format = {WeightType::kInt4, 128, false}, .num_tiles = 512, .row_order = RowOrder::kPlain},
  {.name = "lm_head", .layer_kind = 1, .offset = 0, .rows = 128256, .columns = 8192, .padded_columns = 8192, .format = {WeightType::kBf16, 0, false}, .num_tiles = 8016, .row_order = RowOrder::kPlain},
};

constexpr Layer kLayers[] = {  // the last stands once, behind all others
  {.kind = 0, .weights = 0, .first_norm = 0},
  {.kind = 0, .weights = 441188352, .first_norm = 2},
  {.kind = 0, .weights = 882376704, .first_norm = 4},
  {.kind = 0, .weights = 1323565056, .first_norm = 6},
  {.kind = 0, .weights = 1764753408, .first_norm = 8},
  {.kind = 0, .weights = 2205941760, .first_norm = 10},
  {.kind = 0, .weights = 2647130112, .first_norm = 12},
  {.kind = 0, .weights = 3088318464, .first_norm = 14},
  {.kind = 0, .weights = 3529506816, .first_norm = 16},
  {.kind = 0, .weights = 3970695168, .first_norm = 18},
  {.kind = 0, .weights = 4411883520, .first_norm = 20},
  {.kind = 0, .weights = 4853071872, .first_norm = 22},
  {.kind = 0, .weights = 5294260224, .first_norm = 24},
  {.kind = 0, .weights = 5735448576, .first_norm = 26},
  {.kind = 0, .weights = 6176636928, .first_norm = 28},
  {.kind = 0, .weights = 6617825280, .first_norm = 30},
  {.kind = 0, .weights = 7059013632, .first_norm = 32},
  {.kind = 0, .weights = 7500201984, .first_norm = 34},
  {.kind = 0, .weights = 7941390336, .first_norm = 36},
  {.kind = 0, .weights = 8382578688, .first_norm = 38},
  {.kind = 0, .weights = 8823767040, .first_norm = 40},
  {.kind = 0, .weights = 9264955392, .first_norm = 42},
  {.kind = 0, .weights = 9706143744, .first_norm = 44},
  {.kind = 0, .weights = 10147332096, .first_norm = 46},
  {.kind = 0, .weights = 10588520448, .first_norm = 48},
  {.kind = 0, .weights = 11029708800, .first_norm = 50},
  {.kind = 0, .weights = 11470897152, .first_norm = 52},
  {.kind = 0, .weights = 11912085504, .first_norm = 54},
  {.kind = 0, .weights = 12353273856, .first_norm = 56},
  {.kind = 0, .weights = 12794462208, .first_norm = 58},
  {.kind = 0, .weights = 13235650560, .first_norm = 60},
  {.kind = 0, .weights = 13676838912, .first_norm = 62},
  {.kind = 0, .weights = 14118027264, .first_norm = 64},
  {.kind = 0, .weights = 14559215616, .first_norm = 66},
  {.kind = 0, .weights = 15000403968, .first_norm = 68},
  {.kind = 0, .weights = 15441592320, .first_norm = 70},
  {.kind = 0, .weights = 15882780672, .first_norm = 72},
  {.kind = 0, .weights = 16323969024, .first_norm = 74},
  {.kind = 0, .weights = 16765157376, .first_norm = 76},
  {.kind = 0, .weights = 17206345728, .first_norm = 78},
  {.kind = 0, .weights = 17647534080, .first_norm = 80},
  {.kind = 0, .weights = 18088722432, .first_norm = 82},
  {.kind = 0, .weights = 18529910784, .first_norm = 84},
  {.kind = 0, .weights = 18971099136, .first_norm = 86},
  {.kind = 0, .weights = 19412287488, .first_norm = 88},
  {.kind = 0, .weights = 19853475840, .first_norm = 90},
  {.kind = 0, .weights = 20294664192, .first_norm = 92},
  {.kind = 0, .weights = 20735852544, .first_norm = 94},
  {.kind = 0, .weights = 21177040896, .first_norm = 96},
  {.kind = 0, .weights = 21618229248, .first_norm = 98},
  {.kind = 0, .weights = 22059417600, .first_norm = 100},
  {.kind = 0, .weights = 22500605952, .first_norm = 102},
  {.kind = 0, .weights = 22941794304, .first_norm = 104},
  {.kind = 0, .weights = 23382982656, .first_norm = 106},
  {.kind = 0, .weights = 23824171008, .first_norm = 108},
  {.kind = 0, .weights = 24265359360, .first_norm = 110},
  {.kind = 0, .weights = 24706547712, .first_norm = 112},
  {.kind = 0, .weights = 25147736064, .first_norm = 114},
  {.kind = 0, .weights = 25588924416, .first_norm = 116},
  {.kind = 0, .weights = 26030112768, .first_norm = 118},
  {.kind = 0, .weights = 26471301120, .first_norm = 120},
  {.kind = 0, .weights = 26912489472, .first_norm = 122},
  {.kind = 0, .weights = 27353677824, .first_norm = 124},
  {.kind = 0, .weights = 27794866176, .first_norm = 126},
  {.kind = 0, .weights = 28236054528, .first_norm = 128},
  {.kind = 0, .weights = 28677242880, .first_norm = 130},
  {.kind = 0, .weights = 29118431232, .first_norm = 132},
  {.kind = 0, .weights = 29559619584, .first_norm = 134},
  {.kind = 0, .weights = 30000807936, .first_norm = 136},
  {.kind = 0, .weights = 30441996288, .first_norm = 138},
  {.kind = 0, .weights = 30883184640, .first_norm = 140},
  {.kind = 0, .weights = 31324372992, .first_norm = 142},
  {.kind = 0, .weights = 31765561344, .first_norm = 144},
  {.kind = 0, .weights = 32206749696, .first_norm = 146},
  {.kind = 0, .weights = 32647938048, .first_norm = 148},
  {.kind = 0, .weights = 33089126400, .first_norm = 150},
  {.kind = 0, .weights = 33530314752, .first_norm = 152},
  {.kind = 0, .weights = 33971503104, .first_norm = 154},
  {.kind = 0, .weights = 34412691456, .first_norm = 156},
  {.kind = 0, .weights = 34853879808, .first_norm = 158},
  {.kind = 1, .weights = 35295068160, .first_norm = 160},
};

constexpr ModelDescriptor kModel{
  .name = "llama-3.1-70b-gptq",
  .gpu = "sm90",
  .facts =
    {
      .hidden = 8192,
      .ffn = 28672,
      .num_layers = 80,
      .num_heads = 64,
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
      .weight_bits = 4,
      .weight_group = 128,
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
  .facts_hash = 0xfa9b335ca275e7f8ull,
  .page_layout = 2,
  .compute_capability = 90,
  .num_cards = 2,
  .cards =
    {
      {.name = "h200", .costs = {.item_us = 0.3, .mma_us = 0.002, .read_bytes_per_s = 4600000000000.0, .exchange_bytes_per_s = 2700000000000.0}},
      {.name = "h100", .costs = {.item_us = 0.3, .mma_us = 0.002, .read_bytes_per_s = 3200000000000.0, .exchange_bytes_per_s = 2700000000000.0}},
    },
  .weight_bytes = 37396414464,
  .needed_weight_bytes = 37396414464,
  .matrices = kMatrices,
  .num_matrices = 5,
  .layers = kLayers,
};

constexpr ModelShape kModelShape{
  .layers = kLayers,
  .num_layers = 80,
  .num_heads = 64,
  .num_kv_heads = 8,
  .head_dim = 128,
  .kv_parts = 1,
  .hidden = 8192,
  .qkv_bias = false,
  .head_norm = false,
  .ordered = false,
  .norm_epsilon = 9.999999747378752e-06f,
  .score_scale = 0.127517431974411f,
  .integers = {WeightType::kInt4, 128, false},
};

constexpr Vector kDecodeVectors[] = {  // in the workspace
  {.offset = 0, .elements = 10240, .signatures = 0},  // qkv
  {.offset = 40960, .elements = 8192, .signatures = 0},  // heads
  {.offset = 73728, .elements = 8192, .signatures = 0},  // post_attention
  {.offset = 106496, .elements = 28672, .signatures = 0},  // ffn
  {.offset = 221184, .elements = 8192, .signatures = 0},  // hidden
  {.offset = 253952, .elements = 258, .signatures = 0},  // candidates
};
constexpr KernelPlan kDecodeNumbers{
  .model = kModelShape,
  .matrices = kMatrices, .num_matrices = 5,
  .vectors = kDecodeVectors, .num_vectors = 6,
  .rows = 1, .sync = SyncMode::kSelfValidating, .num_ctas = 128,
  .copies = CopyKind::kBulk, .consumer_warps = 8, .producer_warps = 1,
  .ring_slots = 11, .slot_bytes = 16896, .window = 3, .waiting_window = 2, .kv_window = 3,
  .prefetch_pages = 16,
  .residual_tiles = 4, .num_norms = 161,
  .tile_slots = 4, .chunk_columns = 8192, .min_pages_per_split = 2,
  .partials = {.offset = 255232, .elements = 66560},
  .counter_offset = 521472, .counter_bytes = 2304, .workspace_bytes = 523776,
  .num_regions = 12,
  .regions = {  // offset and bytes in shared memory
    {"pages", 0, 185856},
    {"x", 185856, 34816},
    {"tiles", 220672, 2048},
    {"residual", 222720, 256},
    {"token", 222976, 1040},
    {"squares", 224016, 64},
    {"decision", 224080, 64},
    {"experts", 224144, 0},
    {"zeros", 224144, 0},
    {"waiting", 224144, 4},
    {"status", 224160, 320},
    {"barriers", 224480, 328},
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
  {.offset = 0, .elements = 81920, .signatures = 0},  // qkv
  {.offset = 327680, .elements = 65536, .signatures = 0},  // heads
  {.offset = 589824, .elements = 65536, .signatures = 0},  // post_attention
  {.offset = 851968, .elements = 229376, .signatures = 0},  // ffn
  {.offset = 1769472, .elements = 65536, .signatures = 0},  // hidden
  {.offset = 2031616, .elements = 2050, .signatures = 0},  // candidates
  {.offset = 2040064, .elements = 4096, .signatures = 0},  // squares
};
constexpr KernelPlan kDecodeRows8Numbers{
  .model = kModelShape,
  .matrices = kMatrices, .num_matrices = 5,
  .vectors = kDecodeRows8Vectors, .num_vectors = 7,
  .rows = 8, .sync = SyncMode::kCounter, .num_ctas = 128,
  .copies = CopyKind::kBulk, .consumer_warps = 8, .producer_warps = 1,
  .ring_slots = 8, .slot_bytes = 16896, .window = 3, .waiting_window = 3, .kv_window = 3,
  .prefetch_pages = 0,
  .residual_tiles = 4, .num_norms = 161,
  .input_buffers = 2, .max_query_tiles = 8, .warp_dims = 128,
  .shares_registers = true,
  .warpgroups = true,
  .squares = Vectors::kSquares,
  .sums = {.offset = 2056448, .elements = 1900544},
  .counter_offset = 9658624, .counter_bytes = 256, .workspace_bytes = 9658880,
  .num_regions = 11,
  .regions = {  // offset and bytes in shared memory
    {"pages", 0, 135168},
    {"input", 135168, 50176},
    {"tiles", 185344, 20480},
    {"residual", 205824, 0},
    {"factors", 205824, 32},
    {"held", 205856, 2624},
    {"decision", 208480, 32},
    {"fenced", 208512, 4},
    {"experts", 208516, 0},
    {"status", 208528, 320},
    {"barriers", 208848, 456},
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
  {.offset = 0, .elements = 81920, .signatures = 0},  // qkv
  {.offset = 327680, .elements = 65536, .signatures = 0},  // heads
  {.offset = 589824, .elements = 65536, .signatures = 0},  // post_attention
  {.offset = 851968, .elements = 229376, .signatures = 0},  // ffn
  {.offset = 1769472, .elements = 65536, .signatures = 0},  // hidden
  {.offset = 2031616, .elements = 4098, .signatures = 0},  // candidates
  {.offset = 2048256, .elements = 8192, .signatures = 0},  // squares
};
constexpr KernelPlan kDecodeRows16Numbers{
  .model = kModelShape,
  .matrices = kMatrices, .num_matrices = 5,
  .vectors = kDecodeRows16Vectors, .num_vectors = 7,
  .rows = 16, .sync = SyncMode::kCounter, .num_ctas = 128,
  .copies = CopyKind::kBulk, .consumer_warps = 8, .producer_warps = 1,
  .ring_slots = 8, .slot_bytes = 16896, .window = 3, .waiting_window = 3, .kv_window = 3,
  .prefetch_pages = 0,
  .residual_tiles = 4, .num_norms = 161,
  .input_buffers = 2, .max_query_tiles = 8, .warp_dims = 128,
  .shares_registers = true,
  .warpgroups = true,
  .squares = Vectors::kSquares,
  .sums = {.offset = 2081024, .elements = 3801088},
  .counter_offset = 17285376, .counter_bytes = 256, .workspace_bytes = 17285632,
  .num_regions = 11,
  .regions = {  // offset and bytes in shared memory
    {"pages", 0, 135168},
    {"input", 135168, 67584},
    {"tiles", 202752, 22528},
    {"residual", 225280, 0},
    {"factors", 225280, 64},
    {"held", 225344, 2752},
    {"decision", 228096, 32},
    {"fenced", 228128, 4},
    {"experts", 228132, 0},
    {"status", 228144, 320},
    {"barriers", 228464, 456},
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

constexpr Vector kDecodeRows32Vectors[] = {  // in the workspace
  {.offset = 0, .elements = 163840, .signatures = 0},  // qkv
  {.offset = 655360, .elements = 131072, .signatures = 0},  // heads
  {.offset = 1179648, .elements = 131072, .signatures = 0},  // post_attention
  {.offset = 1703936, .elements = 458752, .signatures = 0},  // ffn
  {.offset = 3538944, .elements = 131072, .signatures = 0},  // hidden
  {.offset = 4063232, .elements = 8194, .signatures = 0},  // candidates
  {.offset = 4096256, .elements = 8192, .signatures = 0},  // squares
};
constexpr KernelPlan kDecodeRows32Numbers{
  .model = kModelShape,
  .matrices = kMatrices, .num_matrices = 5,
  .vectors = kDecodeRows32Vectors, .num_vectors = 7,
  .rows = 32, .sync = SyncMode::kCounter, .num_ctas = 128,
  .copies = CopyKind::kBulk, .consumer_warps = 8, .producer_warps = 1,
  .ring_slots = 8, .slot_bytes = 16896, .window = 8, .waiting_window = 8, .kv_window = 8,
  .prefetch_pages = 0,
  .residual_tiles = 4, .num_norms = 161,
  .input_buffers = 6, .max_query_tiles = 8, .warp_dims = 128,
  .shares_registers = true,
  .warpgroups = true,
  .squares = Vectors::kSquares,
  .sums = {.offset = 4129024, .elements = 4456448},
  .counter_offset = 21954816, .counter_bytes = 256, .workspace_bytes = 21955072,
  .num_regions = 11,
  .regions = {  // offset and bytes in shared memory
    {"pages", 0, 135168},
    {"input", 135168, 49152},
    {"tiles", 184320, 33280},
    {"residual", 217600, 0},
    {"factors", 217600, 128},
    {"held", 217728, 928},
    {"decision", 218656, 32},
    {"fenced", 218688, 0},
    {"experts", 218688, 0},
    {"status", 218688, 320},
    {"barriers", 219008, 520},
  },
  .num_barriers = 20,
  .barriers = {  // slots, arrivals, of whole warps?
    {"page_full", 8, 1, false},
    {"page_empty", 8, 8, true},
    {"input_full", 6, 1, false},
    {"input_empty", 6, 8, true},
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
  {.offset = 0, .elements = 327680, .signatures = 0},  // qkv
  {.offset = 1310720, .elements = 262144, .signatures = 0},  // heads
  {.offset = 2359296, .elements = 262144, .signatures = 0},  // post_attention
  {.offset = 3407872, .elements = 917504, .signatures = 0},  // ffn
  {.offset = 7077888, .elements = 262144, .signatures = 0},  // hidden
  {.offset = 8126464, .elements = 16386, .signatures = 0},  // candidates
  {.offset = 8192256, .elements = 8192, .signatures = 0},  // squares
};
constexpr KernelPlan kDecodeRows64Numbers{
  .model = kModelShape,
  .matrices = kMatrices, .num_matrices = 5,
  .vectors = kDecodeRows64Vectors, .num_vectors = 7,
  .rows = 64, .sync = SyncMode::kCounter, .num_ctas = 128,
  .copies = CopyKind::kBulk, .consumer_warps = 8, .producer_warps = 1,
  .ring_slots = 8, .slot_bytes = 16896, .window = 8, .waiting_window = 8, .kv_window = 8,
  .prefetch_pages = 0,
  .residual_tiles = 4, .num_norms = 161,
  .input_buffers = 4, .max_query_tiles = 8, .warp_dims = 128,
  .shares_registers = true,
  .warpgroups = true,
  .squares = Vectors::kSquares,
  .sums = {.offset = 8225024, .elements = 4718592},
  .counter_offset = 27099392, .counter_bytes = 256, .workspace_bytes = 27099648,
  .num_regions = 11,
  .regions = {  // offset and bytes in shared memory
    {"pages", 0, 135168},
    {"input", 135168, 65536},
    {"tiles", 200704, 18432},
    {"residual", 219136, 0},
    {"factors", 219136, 256},
    {"held", 219392, 1440},
    {"decision", 220832, 32},
    {"fenced", 220864, 0},
    {"experts", 220864, 0},
    {"status", 220864, 320},
    {"barriers", 221184, 488},
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
  {.offset = 0, .elements = 655360, .signatures = 0},  // qkv
  {.offset = 2621440, .elements = 524288, .signatures = 0},  // heads
  {.offset = 4718592, .elements = 524288, .signatures = 0},  // post_attention
  {.offset = 6815744, .elements = 1835008, .signatures = 0},  // ffn
  {.offset = 14155776, .elements = 524288, .signatures = 0},  // hidden
  {.offset = 16252928, .elements = 32770, .signatures = 0},  // candidates
  {.offset = 16384256, .elements = 16384, .signatures = 0},  // squares
};
constexpr KernelPlan kDecodeRows128Numbers{
  .model = kModelShape,
  .matrices = kMatrices, .num_matrices = 5,
  .vectors = kDecodeRows128Vectors, .num_vectors = 7,
  .rows = 128, .sync = SyncMode::kCounter, .num_ctas = 128,
  .copies = CopyKind::kBulk, .consumer_warps = 8, .producer_warps = 1,
  .ring_slots = 6, .slot_bytes = 16896, .window = 6, .waiting_window = 6, .kv_window = 6,
  .prefetch_pages = 0,
  .residual_tiles = 4, .num_norms = 161,
  .input_buffers = 3, .max_query_tiles = 8, .warp_dims = 128,
  .shares_registers = true,
  .warpgroups = true,
  .squares = Vectors::kSquares,
  .sums = {.offset = 16449792, .elements = 9437184},
  .counter_offset = 54198528, .counter_bytes = 256, .workspace_bytes = 54198784,
  .num_regions = 11,
  .regions = {  // offset and bytes in shared memory
    {"pages", 0, 101376},
    {"input", 101376, 98304},
    {"tiles", 199680, 20480},
    {"residual", 220160, 0},
    {"factors", 220160, 512},
    {"held", 220672, 2464},
    {"decision", 223136, 32},
    {"fenced", 223168, 0},
    {"experts", 223168, 0},
    {"status", 223168, 320},
    {"barriers", 223488, 440},
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
  {.offset = 0, .elements = 1310720, .signatures = 0},  // qkv
  {.offset = 5242880, .elements = 1048576, .signatures = 0},  // heads
  {.offset = 9437184, .elements = 1048576, .signatures = 0},  // post_attention
  {.offset = 13631488, .elements = 3670016, .signatures = 0},  // ffn
  {.offset = 28311552, .elements = 1048576, .signatures = 0},  // hidden
  {.offset = 32505856, .elements = 65538, .signatures = 0},  // candidates
  {.offset = 32768256, .elements = 32768, .signatures = 0},  // squares
};
constexpr KernelPlan kDecodeRows256Numbers{
  .model = kModelShape,
  .matrices = kMatrices, .num_matrices = 5,
  .vectors = kDecodeRows256Vectors, .num_vectors = 7,
  .rows = 256, .sync = SyncMode::kCounter, .num_ctas = 128,
  .copies = CopyKind::kBulk, .consumer_warps = 8, .producer_warps = 1,
  .ring_slots = 6, .slot_bytes = 16384, .window = 6, .waiting_window = 6, .kv_window = 6,
  .prefetch_pages = 0,
  .residual_tiles = 4, .num_norms = 161,
  .input_buffers = 3, .max_query_tiles = 8, .warp_dims = 128,
  .shares_registers = true,
  .warpgroups = true,
  .squares = Vectors::kSquares,
  .sums = {.offset = 32899328, .elements = 10485760},
  .counter_offset = 74842368, .counter_bytes = 256, .workspace_bytes = 74842624,
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
  {.offset = 0, .elements = 2621440, .signatures = 0},  // qkv
  {.offset = 10485760, .elements = 2097152, .signatures = 0},  // heads
  {.offset = 18874368, .elements = 2097152, .signatures = 0},  // post_attention
  {.offset = 27262976, .elements = 7340032, .signatures = 0},  // ffn
  {.offset = 56623104, .elements = 2097152, .signatures = 0},  // hidden
  {.offset = 65011712, .elements = 65538, .signatures = 0},  // candidates
  {.offset = 65274112, .elements = 65536, .signatures = 0},  // squares
};
constexpr KernelPlan kDecodeRows512Numbers{
  .model = kModelShape,
  .matrices = kMatrices, .num_matrices = 5,
  .vectors = kDecodeRows512Vectors, .num_vectors = 7,
  .rows = 512, .sync = SyncMode::kCounter, .num_ctas = 128,
  .copies = CopyKind::kBulk, .consumer_warps = 8, .producer_warps = 1,
  .ring_slots = 6, .slot_bytes = 16384, .window = 6, .waiting_window = 6, .kv_window = 6,
  .prefetch_pages = 0,
  .residual_tiles = 8, .num_norms = 161,
  .input_buffers = 3, .max_query_tiles = 8, .warp_dims = 128,
  .shares_registers = true,
  .warpgroups = true,
  .squares = Vectors::kSquares,
  .sums = {.offset = 65536256, .elements = 16777216},
  .counter_offset = 132645120, .counter_bytes = 256, .workspace_bytes = 132645376,
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
  {.offset = 0, .elements = 5242880, .signatures = 0},  // qkv
  {.offset = 20971520, .elements = 4194304, .signatures = 0},  // heads
  {.offset = 37748736, .elements = 4194304, .signatures = 0},  // post_attention
  {.offset = 54525952, .elements = 14680064, .signatures = 0},  // ffn
  {.offset = 113246208, .elements = 4194304, .signatures = 0},  // hidden
  {.offset = 130023424, .elements = 65538, .signatures = 0},  // candidates
  {.offset = 130285824, .elements = 131072, .signatures = 0},  // squares
};
constexpr KernelPlan kDecodeRows1024Numbers{
  .model = kModelShape,
  .matrices = kMatrices, .num_matrices = 5,
  .vectors = kDecodeRows1024Vectors, .num_vectors = 7,
  .rows = 1024, .sync = SyncMode::kCounter, .num_ctas = 128,
  .copies = CopyKind::kBulk, .consumer_warps = 8, .producer_warps = 1,
  .ring_slots = 6, .slot_bytes = 16384, .window = 6, .waiting_window = 6, .kv_window = 6,
  .prefetch_pages = 0,
  .residual_tiles = 16, .num_norms = 161,
  .input_buffers = 3, .max_query_tiles = 8, .warp_dims = 128,
  .shares_registers = true,
  .warpgroups = true,
  .squares = Vectors::kSquares,
  .sums = {.offset = 130810112, .elements = 16777216},
  .counter_offset = 197918976, .counter_bytes = 256, .workspace_bytes = 197919232,
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
