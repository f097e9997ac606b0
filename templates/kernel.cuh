// The persistent kernel for one row: what all roles of a CTA share, and how its warps become roles.
//
//   producer warp (one lane)  walks the page stream of this CTA and fills the ring
//   consumer warps            multiply: each owns fixed columns of every page, and its own slice of x
//   epilogue warp             sums the parts of a tile in fixed order and writes the few output values
//   watch (one lane)          ends the kernel with a report if the others stop moving
//
// A generated kernel gives the step as a template over the role, so that all three walk the same phases. Each
// role has one piece of code for all matrix phases: code that is run once a layer comes out of L2 every time.
#pragma once

#include "layout/order.h"
#include "layout/phase.h"
#include "ops/fuzz.cuh"
#include "primitives/primitives.h"

namespace soliton {

/// Word offsets in the counter area of the workspace, one cache line each.
constexpr int kStallClaimWord = 0;
constexpr int kGridCounterWord = 32;
constexpr int kPartialCounterWords = 64;  // one line per head block
constexpr int kCounterLineWords = 32;

/// Two generations of what consumers report per phase: one warp can be up to a phase ahead of another.
constexpr int kInputGenerations = 2;

/// Tiles that a consumer sums up at once when their input is too wide for shared memory.
template <class Plan>
constexpr int kTilesAtOnce = Plan::kResidualTiles < 4 ? Plan::kResidualTiles : 4;

/// All barriers of a CTA, in shared memory.
template <class Plan>
struct Barriers {
  Barrier page_full[Plan::kRingSlots];     // producer and copy -> consumers
  Barrier page_empty[Plan::kRingSlots];    // consumers -> producer
  Barrier tile_full[Plan::kTileSlots];     // consumers -> epilogue
  Barrier tile_empty[Plan::kTileSlots];    // epilogue -> consumers
  Barrier input_read[kInputGenerations];   // consumers -> epilogue: this CTA holds the input of the phase
  Barrier input_taken[kInputGenerations];  // epilogue -> consumers: it has read what they reported with it
  Barrier query_full;       // consumers -> consumers, epilogue: q, k, v of a unit are in shared memory
  Barrier attention_full;   // consumers, epilogue -> consumers: all parts of a unit are in shared memory
  Barrier attention_empty;  // consumers -> consumers, epilogue: they are merged and published
  Barrier token_ready;      // consumer warp 0 -> epilogue: the step's token stands in StepDecision
  Barrier step_read;        // epilogue -> producer: all KV of the step before may be read
  Barrier stopped;          // consumer warp 0 -> producer: no further step
  Barrier ended;            // all others -> watch
};

/// What consumer warp 0 tells the epilogue at the beginning of a step.
struct StepDecision {
  int32_t token;
  int32_t stop;
};

/// Parts of an attention unit in shared memory: one of each consumer warp, where its slice of x was, then
/// that of the new token.
template <class Plan>
constexpr int kAttentionParts = Plan::kConsumerWarps + 1;

/// One part of an attention unit: maximum score, sum and output of each head.
template <class Plan>
struct AttentionPart {
  float maximum[kHeadsPerBlock];
  float sum[kHeadsPerBlock];
  float output[kHeadsPerBlock][Plan::kHeadDim];  // not divided by sum
};

/// Consumers, producer and epilogue.
template <class Plan>
constexpr int kWorkingWarps = Plan::kConsumerWarps + 2;

/// What attention has of a unit in shared memory: q of its heads as two f16 a value, high and low part, in the order of
/// the mma's B operands, of two steps at a time; then k and v as floats.
template <int kHeadDim>
struct QueryLayout {
  static constexpr int kQuarter = kHeadDim / 4;  // dims of a lane quad, see KvShape
  static constexpr int kKey = kHeadsPerBlock * kHeadDim;
  static constexpr int kValue = kKey + kHeadDim;
  static constexpr int kBytes = (kValue + kHeadDim) * 4;

  /// Of neighbouring dims, the first of which is even. High parts are columns 0 .. 3 of an operand, low parts the
  /// others; lane 4 g + j has column g.
  static SOLITON_HOST_DEVICE constexpr int query_word(int head, int dim, bool low) {
    const int lane = (head + (low ? kHeadsPerBlock : 0)) * 4 + dim / kQuarter;
    const int step = dim % kQuarter / 4;
    return (step / 2 * kWarpLanes + lane) * 4 + step % 2 * 2 + dim % 4 / 2;
  }
};

/// Shared memory of a CTA, in this order; the planner places the ring first.
template <class Plan>
struct SharedMap {
  static constexpr int kNewTokenWords = Plan::kKv.parts * Plan::kHeadDim;  // of a new token
  static constexpr int kPages = 0;
  static constexpr int kX = kPages + Plan::kRingSlots * Plan::kSlotBytes;
  static constexpr int kTiles = kX + Plan::kXBytes;
  static constexpr int kAttention = kTiles + Plan::kTileSlots * Plan::kConsumerWarps * kTileRows * 4;
  static constexpr int kResidual = kAttention + static_cast<int>(sizeof(AttentionPart<Plan>));
  static constexpr int kNewToken = kResidual + Plan::kResidualTiles * kTileRows * 4;
  static constexpr int kSquares = kNewToken + Plan::kAttentionUnits * kNewTokenWords * 4;
  static constexpr int kQuery = round_up(kSquares + kInputGenerations * Plan::kConsumerWarps * 4, 16);
  static constexpr int kRotations = kQuery + QueryLayout<Plan::kHeadDim>::kBytes;
  static constexpr int kDecision =
      kRotations + (Plan::kHeadNorm ? 0 : Plan::kHeadDim / 2 * static_cast<int>(sizeof(float2)));
  static constexpr int kStatus = round_up(kDecision + static_cast<int>(sizeof(StepDecision)), 16);
  static constexpr int kBarriers = kStatus + kWorkingWarps<Plan> * static_cast<int>(sizeof(WarpStatus));
  static constexpr int kBytes = kBarriers + static_cast<int>(sizeof(Barriers<Plan>));
};

/// What every thread knows. `step` and `phase` say where it stands.
template <class Plan>
struct Context {
  static constexpr int kNumCtas = Plan::kNumCtas;
  static constexpr int kNumWarps = kWorkingWarps<Plan>;

  const LaunchParams& params;
  unsigned char* shared;
  WaitBound bound;
  int cta;
  int lane;
  int step = 0;
  int phase = 0;             // within the step
  uint32_t phases_done = 0;  // since the launch began

  SOLITON_DEVICE Barriers<Plan>& barriers() const {
    return *reinterpret_cast<Barriers<Plan>*>(shared + SharedMap<Plan>::kBarriers);
  }
  SOLITON_DEVICE StepDecision& decision() const {
    return *reinterpret_cast<StepDecision*>(shared + SharedMap<Plan>::kDecision);
  }

  /// Partial sums of a tile: [slot][consumer warp][row].
  SOLITON_DEVICE float* tile_parts(int slot, int warp) const {
    return reinterpret_cast<float*>(shared + SharedMap<Plan>::kTiles) +
           (slot * Plan::kConsumerWarps + warp) * kTileRows;
  }
  SOLITON_DEVICE AttentionPart<Plan>& attention_part(int part) const {
    const int offset = part < Plan::kConsumerWarps
                           ? SharedMap<Plan>::kX + part * (Plan::kXBytes / Plan::kConsumerWarps)
                           : SharedMap<Plan>::kAttention;
    return *reinterpret_cast<AttentionPart<Plan>*>(shared + offset);
  }
  /// k, then v of the new token of one of this CTA's attention units: pairs of f16, part after part.
  SOLITON_DEVICE uint32_t* new_token(int unit) const {
    return reinterpret_cast<uint32_t*>(shared + SharedMap<Plan>::kNewToken) +
           unit * SharedMap<Plan>::kNewTokenWords;
  }
  /// See QueryLayout.
  SOLITON_DEVICE float* query() const { return reinterpret_cast<float*>(shared + SharedMap<Plan>::kQuery); }
  /// cos and sin of the step's position for each pair of dims. Where heads are normed first there are none.
  SOLITON_DEVICE float2* rotations() const {
    return reinterpret_cast<float2*>(shared + SharedMap<Plan>::kRotations);
  }
  /// Sum of squares of a consumer's slice of x.
  SOLITON_DEVICE float* squares(uint32_t generation, int warp) const {
    return reinterpret_cast<float*>(shared + SharedMap<Plan>::kSquares) + generation * Plan::kConsumerWarps +
           warp;
  }

  template <class T>
  SOLITON_DEVICE T* workspace(int64_t offset) const {
    return reinterpret_cast<T*>(static_cast<unsigned char*>(params.workspace) + offset);
  }
  SOLITON_DEVICE uint32_t* counter(int word) const {
    return workspace<uint32_t>(Plan::kCounterOffset) + word;
  }

  SOLITON_DEVICE WaitSite site(WaitKind kind, uint32_t index, uint32_t expected = 0,
                               uint32_t seen = 0) const {
    return {kind, static_cast<uint32_t>(step), static_cast<uint32_t>(phase), index, expected, seen};
  }
  SOLITON_DEVICE void wait(Barrier& barrier, uint32_t parity, WaitKind kind, uint32_t index) const {
    wait_barrier(&barrier, parity, site(kind, index, parity, parity ^ 1), bound);
  }

  /// Where a vector's reader has element `element`; see layout/order.h.
  SOLITON_DEVICE int place(OrderTable table, int layer, int element) const {
    if constexpr (Plan::kOrdered) {
      return load_constant(params.positions +
                           order_offset(Plan::kHidden, Plan::kNumHeads * Plan::kHeadDim, layer, table) +
                           element);
    }
    return element;
  }

  SOLITON_DEVICE int position() const { return params.first_position + step; }
  /// Does this step choose a token?
  SOLITON_DEVICE bool chooses() const { return step >= params.num_input_tokens - 1; }
  /// Pages of the cache that hold tokens of earlier steps.
  SOLITON_DEVICE int cached_pages() const { return ceil_divide(position(), kKvPageTokens); }
  SOLITON_DEVICE AttentionShare attention_share() const {
    return share_attention(Plan::kNumBlocks, cached_pages(), Plan::kMinPagesPerSplit, Plan::kNumCtas, cta);
  }
  /// Tiles of a phase that this CTA computes in this step: the lm_head has none while the prompt is read.
  SOLITON_DEVICE TileRun tiles(const MatrixPhase& matrix) const {
    TileRun run = deal_tiles(matrix.num_tiles, matrix.first_cta, Plan::kNumCtas, cta);
    if (matrix.output == OutputKind::kLogits && !chooses()) run.count = 0;
    return run;
  }
  /// Registers must not fill with addresses of all phases, computed once for the launch.
  SOLITON_DEVICE void begin_phase() {
    lane = opaque(lane);
    cta = opaque(cta);
    set_status(bound, step, phase);
    hold_up(params.delay_seed, phases_done, cta);
  }
  SOLITON_DEVICE void end_phase() {
    ++phase;
    ++phases_done;
  }
  SOLITON_DEVICE void end_step() {
    ++step;
    phase = 0;
  }
};

/// The head block as heads of the model: block b holds query heads first_head .. first_head + count of KV
/// head kv_head.
template <class Plan>
struct HeadBlock {
  static constexpr int kGroup = Plan::kNumHeads / Plan::kNumKvHeads;
  static constexpr int kBlocksPerKvHead = ceil_divide(kGroup, kHeadsPerBlock);
  int kv_head;
  int first_head;
  int count;

  SOLITON_DEVICE explicit HeadBlock(int block) {
    kv_head = block / kBlocksPerKvHead;
    const int within = block % kBlocksPerKvHead * kHeadsPerBlock;
    first_head = kv_head * kGroup + within;
    count = kGroup - within < kHeadsPerBlock ? kGroup - within : kHeadsPerBlock;
  }
  /// Is this the block of its KV head that appends the new token to the cache?
  SOLITON_DEVICE bool appends() const { return first_head == kv_head * kGroup; }
};

/// A matrix phase as it happens in a step.
struct MatrixInstance {
  const MatrixPhase& phase;
  int layer;  // 0 for the lm_head
};

template <class Plan>
SOLITON_DEVICE void init_barriers(Barriers<Plan>& barriers) {
  constexpr int kConsumers = Plan::kConsumerWarps;
  for (int i = 0; i < Plan::kRingSlots; ++i) {
    barrier_init(&barriers.page_full[i], 1);
    barrier_init_warps(&barriers.page_empty[i], kConsumers);
  }
  for (int i = 0; i < Plan::kTileSlots; ++i) {
    barrier_init_warps(&barriers.tile_full[i], kConsumers);
    barrier_init_warps(&barriers.tile_empty[i], 1);
  }
  for (int i = 0; i < kInputGenerations; ++i) {
    barrier_init_warps(&barriers.input_read[i], kConsumers);
    barrier_init_warps(&barriers.input_taken[i], 1);
  }
  barrier_init_warps(&barriers.query_full, kConsumers);
  barrier_init_warps(&barriers.attention_full, kConsumers + 1);
  barrier_init_warps(&barriers.attention_empty, kConsumers);
  barrier_init_warps(&barriers.token_ready, 1);
  barrier_init_warps(&barriers.step_read, 1);
  barrier_init(&barriers.stopped, 1);
  barrier_init(&barriers.ended, kWorkingWarps<Plan>);
  barrier_init_fence();
}

/// Calls body<kind>().
template <class Body>
SOLITON_DEVICE void with_output(OutputKind kind, const Body& body) {
  switch (kind) {
    case OutputKind::kRotary:
      return body.template operator()<OutputKind::kRotary>();
    case OutputKind::kResidual:
      return body.template operator()<OutputKind::kResidual>();
    case OutputKind::kSwiglu:
      return body.template operator()<OutputKind::kSwiglu>();
    case OutputKind::kLogits:
      return body.template operator()<OutputKind::kLogits>();
  }
}

/// Calls body<Width>() for the one of the model's widths that has `columns` in weights of `type`.
template <class Plan, int kIndex = 0, class Body>
SOLITON_DEVICE void with_width(int columns, WeightType type, const Body& body) {
  if constexpr (kIndex + 1 < Plan::kNumWidths) {
    if (columns != Plan::kWidths[kIndex].columns || type != Plan::kWidths[kIndex].format.type) {
      with_width<Plan, kIndex + 1>(columns, type, body);
      return;
    }
  }
  body.template operator()<Plan::kWidths[kIndex]>();
}

}  // namespace soliton

#include "ops/consumer.cuh"
#include "ops/epilogue.cuh"
#include "ops/producer.cuh"

namespace soliton {

/// Body of every generated kernel: `Step` is the generated walk over the phases.
template <class Plan, class Step>
SOLITON_DEVICE void run_roles(const LaunchParams& params) {
  unsigned char* shared = shared_memory();
  const int warp = thread_index() / kWarpLanes;
  Context<Plan> context{params, shared, {}, cta_index(), thread_index() % kWarpLanes};
  WarpStatus* statuses = reinterpret_cast<WarpStatus*>(shared + SharedMap<Plan>::kStatus);
  context.bound = make_wait_bound(statuses);
  if (warp < kWorkingWarps<Plan>) set_status(context.bound, 0, 0);
  if (thread_index() == 0) init_barriers<Plan>(context.barriers());
  cta_sync();

  if (warp < Plan::kConsumerWarps) {
    Consumer<Plan> consumer(context, warp);
    Step::run(consumer);
  } else if (warp == Plan::kConsumerWarps) {
    if (context.lane != 0) return;
    Producer<Plan> producer(context);
    Step::run(producer);
    producer.drain();
  } else if (warp == Plan::kConsumerWarps + 1) {
    Epilogue<Plan> epilogue(context);
    Step::run(epilogue);
  } else {
    if (context.lane == 0) {
      watch_waits(statuses, kWorkingWarps<Plan>, &context.barriers().ended, params,
                  context.counter(kStallClaimWord));
    }
    return;
  }
  if (context.lane == 0) barrier_arrive(&context.barriers().ended);
}

}  // namespace soliton
