// Generated from models/llama-3.1-70b.yaml for h200 and h100. Do not edit; run: soliton-gen models/llama-3.1-70b.yaml --gpu h200,h100 --rows 1,8,16,32,64,128,256,512,1024
#pragma once

#include "layout/library.h"

namespace soliton::generated {

// What phases name.
struct Matrices { enum : int { kQkv = 0, kO = 1, kGateUp = 2, kDown = 3, kLmHead = 4 }; };
struct Vectors { enum : int { kQkv = 0, kHeads = 1, kPostAttention = 2, kFfn = 3, kHidden = 4, kCandidates = 5, kSquares = 6 }; };

constexpr PackedMatrix kMatrices[] = {  // in the order of the packed weights
  {.name = "qkv", .layer_kind = 0, .offset = 0, .rows = 10240, .columns = 8192, .padded_columns = 8192, .format = {WeightType::kBf16, 0, false}, .num_tiles = 640, .row_order = RowOrder::kRotary},
  {.name = "o", .layer_kind = 0, .offset = 167772160, .rows = 8192, .columns = 8192, .padded_columns = 8192, .format = {WeightType::kBf16, 0, false}, .num_tiles = 512, .row_order = RowOrder::kPlain},
  {.name = "gate_up", .layer_kind = 0, .offset = 301989888, .rows = 57344, .columns = 8192, .padded_columns = 8192, .format = {WeightType::kBf16, 0, false}, .num_tiles = 3584, .row_order = RowOrder::kGateUp},
  {.name = "down", .layer_kind = 0, .offset = 1241513984, .rows = 8192, .columns = 28672, .padded_columns = 28672, .format = {WeightType::kBf16, 0, false}, .num_tiles = 512, .row_order = RowOrder::kPlain},
  {.name = "lm_head", .layer_kind = 1, .offset = 0, .rows = 128256, .columns = 8192, .padded_columns = 8192, .format = {WeightType::kBf16, 0, false}, .num_tiles = 8016, .row_order = RowOrder::kPlain},
};

constexpr Layer kLayers[] = {  // the last stands once, behind all others
  {.kind = 0, .weights = 0, .first_norm = 0},
  {.kind = 0, .weights = 1711276032, .first_norm = 2},
  {.kind = 0, .weights = 3422552064, .first_norm = 4},
  {.kind = 0, .weights = 5133828096, .first_norm = 6},
  {.kind = 0, .weights = 6845104128, .first_norm = 8},
  {.kind = 0, .weights = 8556380160, .first_norm = 10},
  {.kind = 0, .weights = 10267656192, .first_norm = 12},
  {.kind = 0, .weights = 11978932224, .first_norm = 14},
  {.kind = 0, .weights = 13690208256, .first_norm = 16},
  {.kind = 0, .weights = 15401484288, .first_norm = 18},
  {.kind = 0, .weights = 17112760320, .first_norm = 20},
  {.kind = 0, .weights = 18824036352, .first_norm = 22},
  {.kind = 0, .weights = 20535312384, .first_norm = 24},
  {.kind = 0, .weights = 22246588416, .first_norm = 26},
  {.kind = 0, .weights = 23957864448, .first_norm = 28},
  {.kind = 0, .weights = 25669140480, .first_norm = 30},
  {.kind = 0, .weights = 27380416512, .first_norm = 32},
  {.kind = 0, .weights = 29091692544, .first_norm = 34},
  {.kind = 0, .weights = 30802968576, .first_norm = 36},
  {.kind = 0, .weights = 32514244608, .first_norm = 38},
  {.kind = 0, .weights = 34225520640, .first_norm = 40},
  {.kind = 0, .weights = 35936796672, .first_norm = 42},
  {.kind = 0, .weights = 37648072704, .first_norm = 44},
  {.kind = 0, .weights = 39359348736, .first_norm = 46},
  {.kind = 0, .weights = 41070624768, .first_norm = 48},
  {.kind = 0, .weights = 42781900800, .first_norm = 50},
  {.kind = 0, .weights = 44493176832, .first_norm = 52},
  {.kind = 0, .weights = 46204452864, .first_norm = 54},
  {.kind = 0, .weights = 47915728896, .first_norm = 56},
  {.kind = 0, .weights = 49627004928, .first_norm = 58},
  {.kind = 0, .weights = 51338280960, .first_norm = 60},
  {.kind = 0, .weights = 53049556992, .first_norm = 62},
  {.kind = 0, .weights = 54760833024, .first_norm = 64},
  {.kind = 0, .weights = 56472109056, .first_norm = 66},
  {.kind = 0, .weights = 58183385088, .first_norm = 68},
  {.kind = 0, .weights = 59894661120, .first_norm = 70},
  {.kind = 0, .weights = 61605937152, .first_norm = 72},
  {.kind = 0, .weights = 63317213184, .first_norm = 74},
  {.kind = 0, .weights = 65028489216, .first_norm = 76},
  {.kind = 0, .weights = 66739765248, .first_norm = 78},
  {.kind = 0, .weights = 68451041280, .first_norm = 80},
  {.kind = 0, .weights = 70162317312, .first_norm = 82},
  {.kind = 0, .weights = 71873593344, .first_norm = 84},
  {.kind = 0, .weights = 73584869376, .first_norm = 86},
  {.kind = 0, .weights = 75296145408, .first_norm = 88},
  {.kind = 0, .weights = 77007421440, .first_norm = 90},
  {.kind = 0, .weights = 78718697472, .first_norm = 92},
  {.kind = 0, .weights = 80429973504, .first_norm = 94},
  {.kind = 0, .weights = 82141249536, .first_norm = 96},
  {.kind = 0, .weights = 83852525568, .first_norm = 98},
  {.kind = 0, .weights = 85563801600, .first_norm = 100},
  {.kind = 0, .weights = 87275077632, .first_norm = 102},
  {.kind = 0, .weights = 88986353664, .first_norm = 104},
  {.kind = 0, .weights = 90697629696, .first_norm = 106},
  {.kind = 0, .weights = 92408905728, .first_norm = 108},
  {.kind = 0, .weights = 94120181760, .first_norm = 110},
  {.kind = 0, .weights = 95831457792, .first_norm = 112},
  {.kind = 0, .weights = 97542733824, .first_norm = 114},
  {.kind = 0, .weights = 99254009856, .first_norm = 116},
  {.kind = 0, .weights = 100965285888, .first_norm = 118},
  {.kind = 0, .weights = 102676561920, .first_norm = 120},
  {.kind = 0, .weights = 104387837952, .first_norm = 122},
  {.kind = 0, .weights = 106099113984, .first_norm = 124},
  {.kind = 0, .weights = 107810390016, .first_norm = 126},
  {.kind = 0, .weights = 109521666048, .first_norm = 128},
  {.kind = 0, .weights = 111232942080, .first_norm = 130},
  {.kind = 0, .weights = 112944218112, .first_norm = 132},
  {.kind = 0, .weights = 114655494144, .first_norm = 134},
  {.kind = 0, .weights = 116366770176, .first_norm = 136},
  {.kind = 0, .weights = 118078046208, .first_norm = 138},
  {.kind = 0, .weights = 119789322240, .first_norm = 140},
  {.kind = 0, .weights = 121500598272, .first_norm = 142},
  {.kind = 0, .weights = 123211874304, .first_norm = 144},
  {.kind = 0, .weights = 124923150336, .first_norm = 146},
  {.kind = 0, .weights = 126634426368, .first_norm = 148},
  {.kind = 0, .weights = 128345702400, .first_norm = 150},
  {.kind = 0, .weights = 130056978432, .first_norm = 152},
  {.kind = 0, .weights = 131768254464, .first_norm = 154},
  {.kind = 0, .weights = 133479530496, .first_norm = 156},
  {.kind = 0, .weights = 135190806528, .first_norm = 158},
  {.kind = 1, .weights = 136902082560, .first_norm = 160},
};

constexpr ModelDescriptor kModel{
  .name = "llama-3.1-70b",
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
  .facts_hash = 0x83d8e796c00dd24cull,
  .page_layout = 2,
  .compute_capability = 90,
  .num_cards = 2,
  .cards =
    {
      {.name = "h200", .costs = {.item_us = 0.3, .mma_us = 0.002, .read_bytes_per_s = 4600000000000.0, .exchange_bytes_per_s = 2700000000000.0}},
      {.name = "h100", .costs = {.item_us = 0.3, .mma_us = 0.002, .read_bytes_per_s = 3200000000000.0, .exchange_bytes_per_s = 2700000000000.0}},
    },
  .weight_bytes = 139003428864,
  .needed_weight_bytes = 139003428864,
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
  .integers = {WeightType::kBf16, 0, false},
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
  .copies = CopyKind::kBulk, .consumer_warps = 4, .producer_warps = 1,
  .ring_slots = 12, .slot_bytes = 16384, .window = 4, .waiting_window = 3, .kv_window = 3,
  .prefetch_pages = 16,
  .residual_tiles = 4, .num_norms = 161,
  .tile_slots = 4, .chunk_columns = 8192, .min_pages_per_split = 2,
  .partials = {.offset = 255232, .elements = 66560},
  .counter_offset = 521472, .counter_bytes = 2304, .workspace_bytes = 523776,
  .num_regions = 12,
  .regions = {  // offset and bytes in shared memory
    {"pages", 0, 196608},
    {"x", 196608, 32768},
    {"tiles", 229376, 1024},
    {"residual", 230400, 256},
    {"token", 230656, 1040},
    {"squares", 231696, 32},
    {"decision", 231728, 32},
    {"experts", 231760, 0},
    {"zeros", 231760, 0},
    {"waiting", 231760, 4},
    {"status", 231776, 192},
    {"barriers", 231968, 344},
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
    {"experts_chosen", 0, 1, true},
    {"experts_taken", 0, 1, false},
    {"stopped", 1, 1, false},
    {"ended", 1, 6, false},
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
  .ring_slots = 9, .slot_bytes = 16384, .window = 3, .waiting_window = 3, .kv_window = 3,
  .prefetch_pages = 16,
  .residual_tiles = 4, .num_norms = 161,
  .input_buffers = 3, .max_query_tiles = 8, .warp_dims = 128,
  .shares_registers = true,
  .squares = Vectors::kSquares,
  .counter_offset = 2056448, .counter_bytes = 256, .workspace_bytes = 2056704,
  .num_regions = 11,
  .regions = {  // offset and bytes in shared memory
    {"pages", 0, 147456},
    {"input", 147456, 49152},
    {"tiles", 196608, 20480},
    {"residual", 217088, 2048},
    {"factors", 219136, 32},
    {"held", 219168, 2624},
    {"decision", 221792, 32},
    {"fenced", 221824, 4},
    {"experts", 221828, 0},
    {"status", 221840, 320},
    {"barriers", 222160, 488},
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
  {.offset = 2048256, .elements = 4096, .signatures = 0},  // squares
};
constexpr KernelPlan kDecodeRows16Numbers{
  .model = kModelShape,
  .matrices = kMatrices, .num_matrices = 5,
  .vectors = kDecodeRows16Vectors, .num_vectors = 7,
  .rows = 16, .sync = SyncMode::kCounter, .num_ctas = 128,
  .copies = CopyKind::kBulk, .consumer_warps = 8, .producer_warps = 1,
  .ring_slots = 9, .slot_bytes = 16384, .window = 3, .waiting_window = 3, .kv_window = 3,
  .prefetch_pages = 16,
  .residual_tiles = 4, .num_norms = 161,
  .input_buffers = 3, .max_query_tiles = 8, .warp_dims = 128,
  .shares_registers = true,
  .squares = Vectors::kSquares,
  .counter_offset = 2064640, .counter_bytes = 256, .workspace_bytes = 2064896,
  .num_regions = 11,
  .regions = {  // offset and bytes in shared memory
    {"pages", 0, 147456},
    {"input", 147456, 49152},
    {"tiles", 196608, 25088},
    {"residual", 221696, 4096},
    {"factors", 225792, 64},
    {"held", 225856, 2752},
    {"decision", 228608, 32},
    {"fenced", 228640, 0},
    {"experts", 228640, 0},
    {"status", 228640, 320},
    {"barriers", 228960, 488},
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
  .ring_slots = 7, .slot_bytes = 16384, .window = 4, .waiting_window = 4, .kv_window = 4,
  .prefetch_pages = 0,
  .residual_tiles = 4, .num_norms = 161,
  .input_buffers = 2, .max_query_tiles = 12, .warp_dims = 128,
  .shares_registers = true,
  .squares = Vectors::kSquares,
  .counter_offset = 4129024, .counter_bytes = 256, .workspace_bytes = 4129280,
  .num_regions = 11,
  .regions = {  // offset and bytes in shared memory
    {"pages", 0, 114688},
    {"input", 114688, 65536},
    {"tiles", 180224, 33280},
    {"residual", 213504, 8192},
    {"factors", 221696, 128},
    {"held", 221824, 928},
    {"decision", 222752, 32},
    {"fenced", 222784, 0},
    {"experts", 222784, 0},
    {"status", 222784, 320},
    {"barriers", 223104, 440},
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
  .ring_slots = 8, .slot_bytes = 16384, .window = 8, .waiting_window = 8, .kv_window = 8,
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
  .ring_slots = 6, .slot_bytes = 16384, .window = 6, .waiting_window = 6, .kv_window = 6,
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
