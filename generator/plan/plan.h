// The plan: everything that was decided about a kernel, as plain data. partition() and place() fill it,
// verify() refuses it if it could race, deadlock, overlap, skip or repeat, emit() writes it down.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "generator/gpu_spec.h"
#include "generator/graph.h"
#include "layout/activations.h"
#include "layout/deal.h"
#include "layout/kernel_plan.h"
#include "layout/phase.h"
#include "models/model_config.h"

namespace soliton {

/// What the user may decide instead of the planner; 0: the planner decides.
struct PlanChoices {
  int rows = 0;                        // of activations in a step
  std::vector<int> further_rows = {};  // of kernels beside the first, in the same library
  bool leaves_out = false;             // further rows that cannot be planned, instead of refusing them
  int num_cards = 1;                   // that a launch spans; never 0
  int num_ctas = 0;                    // of a card
  int window = 0;
  int waiting_window = 0;
  int consumer_warps = 0;
  int producer_warps = 0;
  int ring_slots = 0;
  int min_pages_per_split = 0;
  int max_splits = 0;
  int column_slices = 0;  // CTAs that share the columns of tiles, where they can
  std::optional<int> prefetch_pages = std::nullopt;
  std::optional<CopyKind> copies = std::nullopt;
  SyncMode sync = SyncMode::kSelfValidating;
  std::string tuned = {};  // what of this a file of overrides decides, for people; empty: nothing
};

struct PlanVector {
  std::string name;
  int element_bytes = 4;
  int elements = 0;    // of all rows, without signatures
  int signatures = 0;  // words, one of each CTA of all cards
  int places = 1;      // 1 or 2, which uses take in turn
  int64_t offset = 0;  // in the workspace

  int64_t bytes() const { return static_cast<int64_t>(element_bytes) * elements + 4ll * signatures; }
  int64_t place_bytes() const { return (bytes() + 15) / 16 * 16; }  // 16-byte accesses
};

struct PlanMatrix {
  std::string name;
  RowOrder row_order = RowOrder::kPlain;
  WeightFormat format = {};
  int rows = 0;
  int columns = 0;
  int padded = 0;
  int num_tiles = 0;
  int card_tiles = 0;  // that a card holds at most, see tiles_of_card()
  int layer_kind = 0;  // of the layers that have one
  int64_t offset = 0;  // in its layer
  ExpertParts experts = {};

  /// Of a card: what a token is multiplied with, and what lies in memory.
  int64_t token_bytes() const { return static_cast<int64_t>(card_tiles) * tile_bytes(format, padded); }
  int64_t layer_bytes() const {
    const int stored = experts.axis == ExpertAxis::kColumns ? experts.columns(columns) : padded;
    return int64_t{experts.count} * experts.rows(card_tiles) * tile_bytes(format, stored);
  }
};

struct PlanPhase {
  std::string name;
  PhaseKind kind = PhaseKind::kMatrix;
  int layer_kind = 0;          // happens in the layers of this kind
  int matrix = -1;             // index, or -1
  int reads = -1;              // vector
  int first_layer_reads = -1;  // vector that layer 0 reads instead, or -1
  int waits_for = -1;          // vector whose arrival lets the phase begin
  int writes = -1;
  int routes = -1;  // vector of the logits that choose its experts, and those of the phases behind it
  InputKind input = InputKind::kVector;
  OutputKind output = OutputKind::kResidual;
  int norm = -1;         // row of the norms, from its layer's first on
  bool appends = false;  // appends the step's keys and values to the cache
  int first_cta = 0;
  int window = 0;         // pages in flight
  int column_slices = 1;  // CTAs that share the columns of a tile, see deal_block(); one row: of a router
  std::vector<TileRun> runs = {};  // of each CTA of a block of rows, of all cards; empty for attention
  double predicted_us = 0;
};

/// Pieces of the workspace that are no vectors.
constexpr const char* kPartialsRegion = "partials";
constexpr const char* kSumsRegion = "sums";
constexpr const char* kCountersRegion = "counters";

/// A piece of shared memory, or of the workspace. All pieces are live for the whole launch.
struct PlanRegion {
  std::string name;
  int64_t offset = 0;
  int64_t bytes = 0;
};

/// A set of mbarriers that one kind of hand-over uses in turn.
struct PlanBarrier {
  std::string name;
  int slots = 1;     // barriers
  int arrivals = 1;  // that complete one of them
  int arrivers = 1;  // threads that arrive, each once per use
  int lead = 1;      // uses by which an arriver or waiter may be ahead of the slowest
};

struct Plan {
  std::string model;
  std::string source;          // what soliton-gen reads it from: "models/llama-3.1-8b.yaml"; empty: not known
  std::string gpu;             // or what several are called
  std::vector<GpuSpec> cards;  // that the library serves; limits are the first's
  std::string tuned;           // PlanChoices::tuned
  ModelFacts facts;
  GpuSpec limits;

  int rows = 1;      // of activations in a step
  int num_ctas = 0;  // of a card
  int num_cards =
      1;  // that a launch spans: each has memory of its own, of which the plan says once how it is laid out
  CopyKind copies = CopyKind::kBulk;
  int consumer_warps = 0;
  int producer_warps = 1;
  int ring_slots = 0;
  int window = 0;          // pages in flight,
  int waiting_window = 0;  // and while its consumers wait for other CTAs
  int prefetch_pages = 0;  // into L2, ahead of a full ring
  int tile_slots = 0;
  int chunk_columns = 0;  // of an input that shared memory holds at once
  int min_pages_per_split = 0;
  int max_splits = kMaxSplits;  // of attention over a head block
  SyncMode sync = SyncMode::kSelfValidating;
  int registers_per_thread = 0;

  // Several rows only, see templates/rows/; consumer_warps are its workers.
  int input_buffers = 0;          // chunks of activations that shared memory holds at once
  int max_query_tiles = 0;        // of an attention item
  int warp_dims = 128;            // output dims of a query tile that one warp's registers hold
  bool shares_registers = false;  // do workers take registers from the other warps?
  bool warpgroups = false;        // do warpgroups multiply?

  std::vector<PlanVector> vectors;
  int squares = -1;  // several rows: which of them has the sums of squares of each CTA's columns,
  int block = -1;    // and, where norms follow blocks, what these give, and its sums of squares
  int block_squares = -1;
  int num_norms = 0;          // rows of LaunchParams::norms
  std::vector<Layer> layers;  // and what stands once, of the last kind
  std::vector<PlanMatrix> matrices;
  std::vector<PlanPhase> phases;  // of one kind of layers after another, each in order
  std::vector<PlanBarrier> barriers;
  std::vector<PlanRegion> shared;
  std::vector<PlanRegion> workspace;
  int64_t weight_bytes = 0;         // of a card
  int64_t needed_weight_bytes = 0;  // of the card that has the most

  /// The kind of what stands once, behind all others.
  int once() const { return layers.empty() ? -1 : layers.back().kind; }
  int all_ctas() const { return num_ctas * num_cards; }
  /// Of these, that multiply a block of rows, see row_blocks(): all blocks' deal the same tiles.
  int block_ctas() const { return all_ctas() / row_blocks(rows); }
  int block_rows() const { return rows / row_blocks(rows); }
  /// The vector of the best token of each CTA, which the last phase writes.
  int candidates() const { return phases.empty() ? -1 : phases.back().writes; }
  int threads() const { return threads_of(working_warps(), shares_registers); }
  int working_warps() const { return consumer_warps + producer_warps + 1; }
  /// Of the layers' matrices.
  WeightFormat layer_format() const { return weight_format(facts, facts.weight_bits); }
  RowsShape shape() const {
    return {rows,           copies,
            layer_format(), further_format(facts),
            warpgroups,     facts.num_experts > 0 && !warpgroups};
  }
  PlanPolicy policy() const { return PlanPolicy(shape()); }
  QkvLayout qkv_layout() const {
    KvShape kv = kv_shape(facts);
    kv.num_kv_heads = kv_heads_of_card(kv.num_kv_heads, num_cards, 0);
    return {shape(), kv.in_f16(), facts.num_heads / facts.num_kv_heads};
  }
  int64_t shared_bytes() const;
  int64_t workspace_bytes() const;
  const PlanRegion& workspace_region(const std::string& name) const;
};

/// One phase as it happens in a step.
struct PhaseInstance {
  int phase = 0;  // index into Plan::phases
  int layer = 0;  // one more than layers have for what stands once
};

/// The phases of one step, in order.
std::vector<PhaseInstance> step_sequence(const Plan& plan);

/// Deals the work and decides the numbers.
Plan partition(const Graph& graph, const ModelConfig& model, const GpuSpec& gpu, const PlanChoices& choices);

/// Memory of a card that a kernel with `context` tokens in its cache needs, in bytes: packed weights, the model's tables,
/// workspace, keys, values and rotations.
int64_t device_bytes(const Plan& plan, int64_t context);
/// Of each token of a long context, whose windows have all that they reach.
int64_t context_token_bytes(const Plan& plan);

/// What is dealt of a matrix phase: tiles, or of a router of one row slices of their columns.
int dealt_tiles(const Plan& plan, const PlanPhase& phase);

/// Has the model a mixture whose rows can be grouped by experts, see layout/grouped_rows.h?
bool can_group(const ModelFacts& facts);
/// Or one whose kernel of so many rows multiplies pairs, see layout/expert_pairs.h?
bool can_pair(const ModelFacts& facts, const GpuSpec& gpu, int rows);
/// The step of a model as the kernel of so many rows has it on a card.
Graph step_of(const ModelFacts& facts, const GpuSpec& gpu, const PlanChoices& choices);

/// Several rows: lets an attention item touch fewer query tiles, so that shared memory has room for a chunk of
/// activations less. False if that is not possible.
bool shrink_input(Plan& plan);

/// Decides which phases share the columns of their tiles among CTAs: among as many as they can up to `most`, or, with 0,
/// as many as lets a CTA move the fewest bytes.
void share_columns(Plan& plan, int most);
/// Bytes of the sums that CTAs exchange, and of the residual stream.
int64_t sums_bytes(const Plan& plan);
/// The phase that could take a sum which an earlier use of its place with the same tag has left; null if there is none.
const PlanPhase* untold_phase(const Plan& plan);

/// Places shared memory, workspace and packed weights. Throws Error if not even the smallest ring fits beside the
/// smallest input.
void place(Plan& plan, const PlanChoices& choices);

/// Fills PlanPhase::predicted_us: the phase's bytes at the read bandwidth, and its wait. CTAs with a tile
/// more in one phase have one less in another, and read ahead: what counts is the sum.
void predict(Plan& plan);

/// Predicted time of one token in microseconds with `context` tokens cached: of all its bytes and waits, or
/// of its chain of phases if that takes longer.
double predicted_token_us(const Plan& plan, int64_t context);

/// A plan as text: for people (plan.txt), and for --dump.
std::string describe(const Plan& plan);

}  // namespace soliton
