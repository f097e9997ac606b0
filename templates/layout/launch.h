// What one launch is given, and what it tells the host while it runs.
#pragma once

#include <cstdint>

#include "layout/deal.h"
#include "layout/sampling.h"
#include "layout/timeline.h"
#include "layout/tree.h"

namespace soliton {

/// Where a wait that ended without success stood.
enum class WaitKind : uint32_t {
  kNone = 0,
  kPageFull,        // a page has not landed
  kPageEmpty,       // a consumer has not released a ring slot
  kTileFull,        // a consumer has not added its part of a tile
  kTileEmpty,       // the epilogue has not taken a tile
  kInputRead,       // a consumer has not reported that it holds its input
  kInputTaken,      // the epilogue has not read what the consumers reported two phases ago
  kVector,          // an element of an activation vector has not arrived
  kCounter,         // the grid counter has not reached its target
  kQueryFull,       // a consumer has not brought its share of an attention unit's q, k and v
  kAttentionFull,   // a warp has not handed over its part of an attention unit
  kAttentionEmpty,  // a warp may still read what shared memory has of an attention unit
  kPartial,         // another CTA's part of a split attention unit has not arrived
  kTokenReady,      // a consumer has not said which token the step has
  kPhaseGate,       // the producer waits for an earlier token before it may read its KV page
  kInputFull,       // a chunk of activations has not landed
  kInputEmpty,      // a consumer has not released a chunk of activations
  kPhaseBegun,      // the input loader has not begun the phase
  kPhaseEnded,      // a warp of this CTA has not ended the phase
  kExchange,        // another CTA has not added its part to what a choice depends on
};

constexpr const char* wait_name(WaitKind kind) {
  switch (kind) {
    case WaitKind::kNone:
      return "nothing";
    case WaitKind::kPageFull:
      return "page full";
    case WaitKind::kPageEmpty:
      return "page empty";
    case WaitKind::kTileFull:
      return "tile full";
    case WaitKind::kTileEmpty:
      return "tile empty";
    case WaitKind::kInputRead:
      return "input read";
    case WaitKind::kInputTaken:
      return "input taken";
    case WaitKind::kVector:
      return "vector";
    case WaitKind::kCounter:
      return "grid counter";
    case WaitKind::kQueryFull:
      return "query full";
    case WaitKind::kAttentionFull:
      return "attention full";
    case WaitKind::kAttentionEmpty:
      return "attention empty";
    case WaitKind::kPartial:
      return "partial";
    case WaitKind::kTokenReady:
      return "token ready";
    case WaitKind::kPhaseGate:
      return "phase gate";
    case WaitKind::kInputFull:
      return "input full";
    case WaitKind::kInputEmpty:
      return "input empty";
    case WaitKind::kPhaseBegun:
      return "phase begun";
    case WaitKind::kPhaseEnded:
      return "phase ended";
    case WaitKind::kExchange:
      return "exchange";
  }
  return "unknown";
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
  const float* qkv_biases;      // [num_layers][rows of qkv], as the packed rows stand; null without
  const uint16_t* head_norms;   // bf16 [num_layers][q, k][head_dim]; null without
  const float* rotary;          // [context][head_dim / 2]{cos, sin}
  const int32_t* positions;     // see layout/order.h; null where columns are in natural order
  void* kv_pool;                // see KvShape
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
};

}  // namespace soliton
