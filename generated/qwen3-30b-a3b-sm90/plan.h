// Generated from models/qwen3-30b-a3b.yaml for h200 and h100. Do not edit; run: soliton-gen models/qwen3-30b-a3b.yaml --gpu h200,h100
#pragma once

#include "layout/library.h"

namespace soliton::generated {

// What phases name.
struct Matrices { enum : int { kQkv = 0, kO = 1, kRouter = 2, kGateUp = 3, kDown = 4, kLmHead = 5 }; };
struct Vectors { enum : int { kQkv = 0, kHeads = 1, kPostAttention = 2, kFfn = 3, kHidden = 4, kCandidates = 5, kRoutes = 6 }; };

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
  .prefetch_pages = 16,
  .residual_tiles = 1, .num_norms = 97,
  .tile_slots = 4, .chunk_columns = 6144, .min_pages_per_split = 2,
  .partials = {.offset = 81152, .elements = 66560},
  .counter_offset = 347392, .counter_bytes = 1280, .workspace_bytes = 348672,
  .num_regions = 11,
  .regions = {  // offset and bytes in shared memory
    {"pages", 0, 196608},
    {"x", 196608, 24576},
    {"tiles", 221184, 1024},
    {"residual", 222208, 64},
    {"token", 222272, 1024},
    {"squares", 223296, 32},
    {"decision", 223328, 32},
    {"experts", 223360, 32},
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

}  // namespace soliton::generated
