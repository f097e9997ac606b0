// What one launch is given, and what it tells the host while it runs.
#pragma once

#include <cstdint>
#include <iterator>

#include "layout/deal.h"
#include "layout/sampling.h"
#include "layout/timeline.h"
#include "layout/tree.h"

namespace soliton {

/// What a warp waits for: a barrier, by its name in layout/one_row.h or layout/several_rows.h, or words in memory.
enum class WaitKind : uint32_t {
  kNone,
  kPageFull,
  kPageEmpty,
  kTileFull,
  kTileEmpty,
  kInputRead,
  kInputTaken,
  kVector,   // an element of an activation vector
  kCounter,  // the grid counter
  kQueryFull,
  kAttentionFull,
  kAttentionEmpty,
  kPartial,  // another CTA's part of attention that is split
  kTokenReady,
  kStepRead,
  kInputFull,
  kInputEmpty,
  kBegun,
  kPhaseDone,
  kExchange,  // another CTA's part of what a choice depends on
  kTilesFull,
  kTilesEmpty,
  kItemDone,
  kPartsFull,
  kStepKnown,
  kAttending,
  kExpertsChosen,
  kExpertsTaken,
  kPicksKnown,
  kLinesReady,
};

constexpr const char* kWaitNames[] = {
    "nothing",     "page_full",   "page_empty",     "tile_full",     "tile_empty",     "input_read",
    "input_taken", "vector",      "grid counter",   "query_full",    "attention_full", "attention_empty",
    "partial",     "token_ready", "step_read",      "input_full",    "input_empty",    "begun",
    "phase_done",  "exchange",    "tiles_full",     "tiles_empty",   "item_done",      "parts_full",
    "step_known",  "attending",   "experts_chosen", "experts_taken", "picks_known",    "lines_ready"};

constexpr const char* wait_name(WaitKind kind) {
  return static_cast<size_t>(kind) < std::size(kWaitNames) ? kWaitNames[static_cast<size_t>(kind)]
                                                           : "unknown";
}

/// Where a wait stands in the step: filled in by whoever waits, reported if the wait is stuck.
struct WaitSite {
  WaitKind kind = WaitKind::kNone;
  uint32_t step = 0;   // token step of this launch
  uint32_t phase = 0;  // index of the phase within the step
  uint32_t index = 0;  // page, tile, element or counter
  uint32_t expected = 0;
  uint32_t seen = 0;
};

/// Where a warp stands, in shared memory: it writes its phase when it begins one and its wait when it has to
/// wait.
struct WarpStatus {
  WaitKind kind = WaitKind::kNone;
  uint32_t index = 0;
  uint32_t expected = 0;
  uint32_t seen = 0;
  uint32_t step = 0;
  uint32_t phase = 0;
  uint32_t unused[2] = {};
};

/// Written once, for the wait that has lasted too long, before the kernel ends.
struct StallReport {
  uint32_t valid = 0;
  uint32_t cta = 0;
  uint32_t thread = 0;
  WaitSite site;
};

/// A generated token as the host sees it, written with one 8-byte store: token in the low half, device time
/// in nanoseconds modulo 2^32 in the high half. kNoRecord until then.
constexpr uint64_t kNoRecord = ~0ull;
/// In place of a token: a logit of the step was NaN or infinite, and the launch ended.
constexpr int32_t kNotFiniteToken = -2;
constexpr int32_t record_token(uint64_t record) {
  return static_cast<int32_t>(record & 0xffffffffu);
}
constexpr uint32_t record_time_ns(uint64_t record) {
  return static_cast<uint32_t>(record >> 32);
}

/// Bytes from what this card has to the same on another card.
struct PeerOffsets {
  int64_t workspace;
  int64_t exchange;  // SamplingView::exchange
  int64_t logits;    // SamplingView::logits
};

/// A kernel of one row: step i (0 <= i < num_steps) feeds input_tokens[i] while i < num_input_tokens, then the
/// token chosen by step i - 1, at position first_position + i. Every step from num_input_tokens - 1 on chooses a
/// token: output i - (num_input_tokens - 1).
///
/// A kernel of R rows: step 0 feeds input_tokens[r] to row r of the tree, step i the token that the row chose
/// in step i - 1. Output i * R + r is the choice of row r in step i; output num_steps * R says when the launch
/// began. With more than one new token at a branch there is one step.
///
/// The launch ends early after a stop token of any row, or once *stop_request is not 0.
struct LaunchParams {
  const void* weights;        // packed pages, see Descriptor::matrices
  const uint16_t* embedding;  // bf16 [vocabulary][hidden]
  const uint16_t*
      norms;  // bf16 [KernelPlan::num_norms][hidden]: those of layer after layer, then those that stand once
  const float* qkv_biases;  // [num_layers][rows of qkv], as the packed rows stand; null without
  const uint16_t*
      head_norms;  // bf16 [num_layers][head_norm_weights()]: of q, then k, see model_dim(); null without
  const float* router_biases;   // [num_layers][route_words()]: of each expert; null without
  const float* rotary;          // [context][ModelShape::rope_tables][head_dim / 2]{cos, sin}
  const int32_t* positions;     // see layout/order.h; null where columns are in natural order
  void* kv_pool;                // see KvShape; of layers without a window
  const int32_t* page_table;    // [ceil(context / 64)]: logical to physical KV page
  void* workspace;              // Descriptor::workspace_bytes, as Descriptor says at launch
  float* logits;                // [outputs][vocabulary], or null
  const int32_t* input_tokens;  // [num_input_tokens], num_input_tokens >= 1
  const int32_t* stop_tokens;   // [num_stop_tokens]
  int32_t num_input_tokens;     // with several rows: their number
  int32_t num_stop_tokens;
  int32_t first_position;
  int32_t num_steps;
  TreeView tree;         // several rows only, as all up to
  float* partials;       // [num_kv_heads * partials_per_head][tree_partial_words], kMissing at launch
  int32_t skips_choice;  // 1: one step that chooses nothing, for all but the last chunk of a prompt
  int16_t logits_block;  // 1 + the only block of rows whose choices are wanted; 0: those of all are
  int16_t logits_bands;  // of its rows the bands that are wanted, see pack_bands(); 0: all are
  SamplingView sampling;
  uint64_t* records;             // host memory, [outputs], kNoRecord at launch
  const uint32_t* stop_request;  // host memory
  StallReport* stall;            // host memory
  uint64_t timeout_ns;           // bound of every wait
  uint32_t prefetch_ns;          // between two pages that a CTA brings into L2 while its ring is full
  PhaseRecord* timeline;         // device memory, see timeline_index(); only for kernels that keep one
  int32_t timeline_step;         // the step that is recorded; -1: none
  uint32_t delay_seed;           // only for kernels compiled with SOLITON_FUZZ, see machine/delay.cuh
  // Of a launch that spans several cards: weights, tables, pool, workspace and all else that is device memory are the
  // card's own. What the host is told, card 0 tells.
  int32_t card;
  PeerOffsets peers[kMaxLaunchCards];  // by card
  const float* layer_biases;  // [num_layers][LayerBiases::words()], then those of logits; null without
  // Of layers with a window: their pool, and its pages by logical page, or at the places of TreeView::pages. A page that no
  // query of the launch reaches any more may stand for a later one too, or for none (any that is there).
  void* window_pool;
  const int32_t* window_pages;
};

}  // namespace soliton
