// Generated from models/tiny-stories.yaml for cpu. Do not edit; run: soliton-gen models/tiny-stories.yaml --gpu cpu --rows 1,8
#pragma once

#include "layout/library.h"

namespace soliton::generated {

// What phases name.
struct Matrices { enum : int { kQkv = 0, kO = 1, kGateUp = 2, kDown = 3, kLmHead = 4 }; };
struct Vectors { enum : int { kQkv = 0, kHeads = 1, kPostAttention = 2, kFfn = 3, kHidden = 4, kCandidates = 5, kSquares = 6 }; };

constexpr PackedMatrix kMatrices[] = {  // in the order of the packed weights
  {.name = "qkv", .layer_kind = 0, .offset = 0, .rows = 512, .columns = 256, .padded_columns = 256, .format = {WeightType::kBf16, 0, false}, .num_tiles = 32, .row_order = RowOrder::kRotary},
  {.name = "o", .layer_kind = 0, .offset = 262144, .rows = 256, .columns = 256, .padded_columns = 256, .format = {WeightType::kBf16, 0, false}, .num_tiles = 16, .row_order = RowOrder::kPlain},
  {.name = "gate_up", .layer_kind = 0, .offset = 393216, .rows = 1536, .columns = 256, .padded_columns = 256, .format = {WeightType::kBf16, 0, false}, .num_tiles = 96, .row_order = RowOrder::kGateUp},
  {.name = "down", .layer_kind = 0, .offset = 1179648, .rows = 256, .columns = 768, .padded_columns = 768, .format = {WeightType::kBf16, 0, false}, .num_tiles = 16, .row_order = RowOrder::kPlain},
  {.name = "lm_head", .layer_kind = 1, .offset = 0, .rows = 2048, .columns = 256, .padded_columns = 256, .format = {WeightType::kBf16, 0, false}, .num_tiles = 128, .row_order = RowOrder::kPlain},
};

constexpr Layer kLayers[] = {  // the last stands once, behind all others
  {.kind = 0, .weights = 0, .first_norm = 0},
  {.kind = 0, .weights = 1572864, .first_norm = 2},
  {.kind = 0, .weights = 3145728, .first_norm = 4},
  {.kind = 0, .weights = 4718592, .first_norm = 6},
  {.kind = 0, .weights = 6291456, .first_norm = 8},
  {.kind = 0, .weights = 7864320, .first_norm = 10},
  {.kind = 1, .weights = 9437184, .first_norm = 12},
};

constexpr ModelDescriptor kModel{
  .name = "tiny-stories",
  .gpu = "cpu",
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
      .weight_bits = 16,
      .weight_group = 0,
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
  .facts_hash = 0xbb784bc3e32a7146ull,
  .page_layout = 2,
  .compute_capability = 0,
  .num_cards = 1,
  .cards =
    {
      {.name = "cpu", .costs = {.item_us = 1.5, .mma_us = 0.003, .read_bytes_per_s = 1000000000.0, .exchange_bytes_per_s = 1000000000.0}},
    },
  .weight_bytes = 10485760,
  .needed_weight_bytes = 10485760,
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
  .integers = {WeightType::kBf16, 0, false},
};

constexpr Vector kDecodeVectors[] = {  // in the workspace
  {.offset = 0, .elements = 512, .signatures = 0},  // qkv
  {.offset = 2048, .elements = 256, .signatures = 0},  // heads
  {.offset = 3072, .elements = 256, .signatures = 0},  // post_attention
  {.offset = 4096, .elements = 768, .signatures = 0},  // ffn
  {.offset = 7168, .elements = 256, .signatures = 0},  // hidden
  {.offset = 8192, .elements = 6, .signatures = 0},  // candidates
};
constexpr KernelPlan kDecodeNumbers{
  .model = kModelShape,
  .matrices = kMatrices, .num_matrices = 5,
  .vectors = kDecodeVectors, .num_vectors = 6,
  .rows = 1, .sync = SyncMode::kSelfValidating, .num_ctas = 2,
  .copies = CopyKind::kBulk, .consumer_warps = 2, .producer_warps = 1,
  .ring_slots = 13, .slot_bytes = 16384, .window = 4, .waiting_window = 3, .kv_window = 6,
  .prefetch_pages = 16,
  .residual_tiles = 8, .num_norms = 13,
  .tile_slots = 4, .chunk_columns = 512, .min_pages_per_split = 2,
  .partials = {.offset = 8448, .elements = 528},
  .counter_offset = 10752, .counter_bytes = 512, .workspace_bytes = 11264,
  .num_regions = 12,
  .regions = {  // offset and bytes in shared memory
    {"pages", 0, 212992},
    {"x", 212992, 4160},
    {"tiles", 217152, 512},
    {"residual", 217664, 512},
    {"token", 218176, 1024},
    {"squares", 219200, 16},
    {"decision", 219216, 16},
    {"experts", 219232, 0},
    {"zeros", 219232, 0},
    {"waiting", 219232, 4},
    {"status", 219248, 128},
    {"barriers", 219376, 360},
  },
  .num_barriers = 15,
  .barriers = {  // slots, arrivals, of whole warps?
    {"page_full", 13, 1, false},
    {"page_empty", 13, 2, true},
    {"tile_full", 4, 2, true},
    {"tile_empty", 4, 1, true},
    {"input_read", 2, 2, true},
    {"input_taken", 2, 1, true},
    {"query_full", 1, 2, true},
    {"attention_full", 1, 3, true},
    {"attention_empty", 1, 2, true},
    {"token_ready", 1, 1, true},
    {"step_read", 1, 1, true},
    {"experts_chosen", 0, 1, true},
    {"experts_taken", 0, 1, false},
    {"stopped", 1, 1, false},
    {"ended", 1, 4, false},
  },
};

constexpr Vector kDecodeRows8Vectors[] = {  // in the workspace
  {.offset = 0, .elements = 4096, .signatures = 0},  // qkv
  {.offset = 16384, .elements = 2048, .signatures = 0},  // heads
  {.offset = 24576, .elements = 2048, .signatures = 0},  // post_attention
  {.offset = 32768, .elements = 6144, .signatures = 0},  // ffn
  {.offset = 57344, .elements = 2048, .signatures = 0},  // hidden
  {.offset = 65536, .elements = 34, .signatures = 0},  // candidates
  {.offset = 65792, .elements = 1024, .signatures = 0},  // squares
};
constexpr KernelPlan kDecodeRows8Numbers{
  .model = kModelShape,
  .matrices = kMatrices, .num_matrices = 5,
  .vectors = kDecodeRows8Vectors, .num_vectors = 7,
  .rows = 8, .sync = SyncMode::kCounter, .num_ctas = 2,
  .copies = CopyKind::kBulk, .consumer_warps = 8, .producer_warps = 1,
  .ring_slots = 10, .slot_bytes = 16384, .window = 3, .waiting_window = 3, .kv_window = 6,
  .prefetch_pages = 16,
  .residual_tiles = 8, .num_norms = 13,
  .input_buffers = 2, .max_query_tiles = 2, .warp_dims = 128,
  .shares_registers = true,
  .squares = Vectors::kSquares,
  .counter_offset = 69888, .counter_bytes = 256, .workspace_bytes = 70144,
  .num_regions = 11,
  .regions = {  // offset and bytes in shared memory
    {"pages", 0, 163840},
    {"input", 163840, 32768},
    {"tiles", 196608, 20480},
    {"residual", 217088, 4096},
    {"factors", 221184, 32},
    {"held", 221216, 2624},
    {"decision", 223840, 32},
    {"fenced", 223872, 4},
    {"experts", 223876, 0},
    {"status", 223888, 320},
    {"barriers", 224208, 488},
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

}  // namespace soliton::generated
