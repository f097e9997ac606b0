// The kernel of several rows: what all roles of a CTA share. Rows are the new tokens of a tree of branches
// (layout/tree.h): parallel samples, a speculative tree, a chunk of a prompt.
//
//   producer warp (one lane)  walks the page stream of this CTA and fills the ring
//   input loader warp (one lane)    begins the phases: waits for all CTAs, then brings activations to shared memory
//   worker warps              multiply, sum the parts of tiles in fixed order, write the outputs; attention,
//                             and merging its partial results
//   watch (one lane)          ends the kernel with a report if the others stop moving
//
// With many rows activations are too large to be polled word by word as the kernel of one row does: phases
// are separated by a grid-wide counter, and chunks of activations stream through shared memory like weights.
#pragma once

#include "layout/activations.h"
#include "layout/phase.h"
#include "ops/fuzz.cuh"
#include "ops/split.cuh"
#include "primitives/primitives.h"

namespace soliton::rows {

/// Word offsets in the counter area of the workspace, one cache line each.
constexpr int kStallClaimWord = 0;
constexpr int kGridCounterWord = 32;

constexpr int kTilesAtOnce = 4;  // whose sums workers hold at once
constexpr int kPartPlaces = 4;   // of query tiles' parts that one worker hands to another

/// All barriers of a CTA, in shared memory.
template <class Plan>
struct Barriers {
  Barrier page_full[Plan::kRingSlots];       // producer and copy -> workers
  Barrier page_empty[Plan::kRingSlots];      // workers -> producer
  Barrier input_full[Plan::kInputBuffers];   // input loader and copy -> workers
  Barrier input_empty[Plan::kInputBuffers];  // workers -> input loader
  Barrier tiles_full;     // workers -> workers that finish tiles: all parts of the handed tiles are there
  Barrier tiles_empty;    // these -> workers
  Barrier begun;          // input loader -> workers: all CTAs have ended the phase before
  Barrier phase_done;     // workers -> input loader: this CTA has ended the phase
  Barrier query_full[2];  // input loader and copy -> workers: queries and new tokens of an item
  Barrier item_done[2];   // workers -> workers, input loader
  Barrier parts_full;     // workers -> workers: parts of query tiles
  Barrier
      step_known;  // workers that finish tiles -> workers, input loader: StepDecision says whether the step happens
  Barrier step_read;  // input loader -> producer: all KV of the step before may be read
  Barrier stopped;    // input loader -> producer: no further step
  Barrier ended;      // all others -> watch
};

/// What workers say about a step: stop[w] is 1 if a row of worker w ends the launch.
struct StepDecision {
  int32_t stop[kWorkers];
};

/// What a CTA keeps of the tree's plan in shared memory: loads out of L2 are slow where all wait for them.
constexpr int kHeldItems = 8;
template <class Plan>
struct HeldPlan {
  TreeItem items[kHeldItems];  // the first of this CTA
  int32_t first_item;
  int32_t end_item;
  int32_t position[Plan::kRows];  // TreeRow::position; 0 for rows that are not there
  int32_t seen_end[Plan::kRows];
};

template <class Plan>
constexpr RowsShape kShape = rows_shape(Plan::kRows);

template <class Plan>
constexpr int kGroup = Plan::kNumHeads / Plan::kNumKvHeads;

template <class Plan>
constexpr QkvLayout kQkv{kShape<Plan>, Plan::kKv, kGroup<Plan>};

template <class Plan>
constexpr int kColumnWarps = kShape<Plan>.column_warps;

/// Workers, producer, input loader.
constexpr int kWorkingWarps = kWorkers + 2;

/// A part of a query tile that one warp hands to another: accumulators as lanes hold them.
template <class Plan>
constexpr int kPartBytes = (Plan::kHeadDim / 8 + 1) * kWarpLanes * 16;

/// Shared memory of a CTA, in this order; the planner places the ring first.
template <class Plan>
struct SharedMap {
  static constexpr int kPages = 0;
  static constexpr int kInput = kPages + Plan::kRingSlots * Plan::kSlotBytes;
  static constexpr int kTiles = kInput + Plan::kInputBytes;
  static constexpr int kResidual = kTiles + Plan::kTileBytes;
  static constexpr int kFactors = kResidual + Plan::kResidualTiles * kTileRows * Plan::kRows * 4;
  static constexpr int kHeld = kFactors + Plan::kRows * 4;
  static constexpr int kDecision = kHeld + static_cast<int>(sizeof(HeldPlan<Plan>));
  static constexpr int kStatus = round_up(kDecision + static_cast<int>(sizeof(StepDecision)), 16);
  static constexpr int kBarriers = kStatus + kWorkingWarps * static_cast<int>(sizeof(WarpStatus));
  static constexpr int kBytes = kBarriers + static_cast<int>(sizeof(Barriers<Plan>));

  static_assert(kPartPlaces * kPartBytes<Plan> <= Plan::kTileBytes, "parts fit where tiles were");
  static_assert(kShape<Plan>.handed_bytes() <= Plan::kTileBytes);
};

/// What every thread knows. `step` and `phase` say where it stands.
template <class Plan>
struct Context {
  const LaunchParams& params;
  unsigned char* shared;
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

  /// Sums of a handed tile over some of its columns: [row of activations][kTileStride].
  SOLITON_DEVICE float* tile_parts(int tile, int column_warp) const {
    return reinterpret_cast<float*>(shared + SharedMap<Plan>::kTiles) +
           (tile * kColumnWarps<Plan> + column_warp) * Plan::kRows * kTileStride;
  }

  /// RMS norm's factors of the rows, while a phase's input is normed.
  SOLITON_DEVICE float* factors() const {
    return reinterpret_cast<float*>(shared + SharedMap<Plan>::kFactors);
  }

  template <class T>
  SOLITON_DEVICE T* workspace(int64_t offset) const {
    return reinterpret_cast<T*>(static_cast<unsigned char*>(params.workspace) + offset);
  }
  SOLITON_DEVICE uint32_t* counter(int word) const {
    return workspace<uint32_t>(Plan::kCounterOffset) + word;
  }

  /// Tokens of the rows in this step, for this CTA's warps that draw.
  SOLITON_DEVICE int32_t* fed_tokens() const {
    return reinterpret_cast<int32_t*>(params.sampling.exchange +
                                      ExchangeLayout{Plan::kNumCtas}.fed_offset(Plan::kRows)) +
           cta * kMaxSampledRows;
  }

  /// Made where it is needed: registers are few.
  SOLITON_DEVICE WaitBound bound() const {
    return make_wait_bound(reinterpret_cast<WarpStatus*>(shared + SharedMap<Plan>::kStatus));
  }
  SOLITON_DEVICE WaitSite site(WaitKind kind, uint32_t index, uint32_t expected = 0,
                               uint32_t seen = 0) const {
    return {kind, static_cast<uint32_t>(step), static_cast<uint32_t>(phase), index, expected, seen};
  }
  SOLITON_DEVICE void wait(Barrier& barrier, uint32_t parity, WaitKind kind, uint32_t index) const {
    wait_barrier(&barrier, parity, site(kind, index, parity, parity ^ 1), bound());
  }
  /// Waits until all CTAs have ended the phase before. All warps that wait here take part in phase_done: the
  /// parity is never more than one phase off.
  SOLITON_DEVICE void wait_begun() const {
    wait(barriers().begun, phases_done & 1, WaitKind::kPhaseBegun, phases_done);
  }
  /// Waits until it is known whether the step happens. Pairs with the arrivals of workers that finish tiles.
  SOLITON_DEVICE bool step_happens() const {
    wait(barriers().step_known, step & 1, WaitKind::kTokenReady, 0);
    int32_t stop = 0;
    SOLITON_UNROLL
    for (int warp = 0; warp < kShape<Plan>.team_workers(); ++warp)
      stop |= load_shared(&decision().stop[warp]);
    return stop == 0;
  }

  /// Tiles of a phase that this CTA computes.
  SOLITON_DEVICE TileRun tiles(const MatrixPhase& matrix) const {
    TileRun run = deal_tiles(matrix.num_tiles, matrix.first_cta, Plan::kNumCtas, cta);
    if (matrix.output == OutputKind::kLogits && params.skips_choice != 0) run.count = 0;
    return run;
  }
  SOLITON_DEVICE HeldPlan<Plan>& held() const {
    return *reinterpret_cast<HeldPlan<Plan>*>(shared + SharedMap<Plan>::kHeld);
  }
  SOLITON_DEVICE int first_item() const { return load_shared(&held().first_item); }
  SOLITON_DEVICE int end_item() const { return load_shared(&held().end_item); }
  SOLITON_DEVICE TreeItem item(int index) const {
    const int own = index - first_item();
    const auto unpack = [](uint4 a, uint4 b, uint2 c) {
      return TreeItem{.kv_head = static_cast<int>(a.x),
                      .first_page = static_cast<int>(a.y),
                      .tokens = static_cast<int>(a.z),
                      .capacity = static_cast<int>(a.w),
                      .first_row = static_cast<int>(b.x),
                      .end_row = static_cast<int>(b.y),
                      .first_new = static_cast<int>(b.z),
                      .end_new = static_cast<int>(b.w),
                      .first_partial = static_cast<int>(c.x),
                      .undivided = static_cast<int>(c.y)};
    };
    if (own < kHeldItems) {
      const TreeItem* at = held().items + own;
      const uint4* words = reinterpret_cast<const uint4*>(at);
      return unpack(load_shared(words), load_shared(words + 1),
                    load_shared(reinterpret_cast<const uint2*>(&at->first_partial)));
    }
    const TreeItem* at = params.tree.items + index;
    const uint4* words = reinterpret_cast<const uint4*>(at);
    return unpack(load_constant(words), load_constant(words + 1),
                  load_constant(reinterpret_cast<const uint2*>(&at->first_partial)));
  }
  /// Position of a row's token; of a row that is not there any that is sound.
  SOLITON_DEVICE int position(int row) const { return load_shared(&held().position[row]) + step; }

  /// Fills held(), by all threads of the CTA.
  SOLITON_DEVICE void hold_plan() const {
    const TreeView& tree = params.tree;
    const int first = load_constant(tree.first_item + cta);
    const int end = load_constant(tree.first_item + cta + 1);
    const int thread = thread_index();
    if (thread == 0) {
      store_shared(&held().first_item, first);
      store_shared(&held().end_item, end);
    }
    constexpr int kWords = sizeof(TreeItem) / 16;
    if (thread < kHeldItems * kWords && first + thread / kWords < end) {
      store_shared(reinterpret_cast<uint4*>(held().items) + thread,
                   load_constant(reinterpret_cast<const uint4*>(tree.items + first) + thread));
    }
    if (thread < Plan::kRows) {
      const bool live = thread < tree.num_rows;
      store_shared(&held().position[thread], live ? load_constant(&tree.rows[thread].position) : 0);
      store_shared(&held().seen_end[thread], live ? load_constant(&tree.rows[thread].seen_end) : 0);
    }
  }
  SOLITON_DEVICE bool has_work(const TreeItem& item) const {
    return cached_tokens(item, step) > 0 || takes_new_tokens(item, step);
  }

  /// Says that this warp has ended the phase, collective. Pairs with the input loader's wait.
  SOLITON_DEVICE void finish_phase() {
    warp_arrive(&barriers().phase_done);
    end_phase();
  }

  /// Registers must not fill with addresses of all phases, computed once for the launch.
  SOLITON_DEVICE void begin_phase() {
    lane = opaque(lane);
    cta = opaque(cta);
    set_status(bound(), step, phase);
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

/// Query tiles of an item: those that hold a query of its rows.
struct QueryTiles {
  int first;
  int count;
};
template <class Plan>
SOLITON_DEVICE QueryTiles query_tiles(const TreeItem& item) {
  const int first = item.first_row * kGroup<Plan> / kQueryRows;
  return {first, ceil_divide(item.end_row * kGroup<Plan>, kQueryRows) - first};
}

/// Tiles of new tokens that an item takes.
struct TailTiles {
  int first;
  int count;
};
SOLITON_DEVICE TailTiles tail_tiles(const TreeItem& item, int step) {
  if (!takes_new_tokens(item, step)) return {0, 0};
  const int first = item.first_new / kTailTokens;
  return {first, ceil_divide(item.end_new, kTailTokens) - first};
}

/// Where an item's queries and new tokens lie during attention, in shared memory where activations were.
/// Items in turn begin at its start and end at its end: two that fit together can be there at once.
template <class Plan>
struct ItemPlace {
  int queries = 0;  // offsets in shared memory
  int keys = 0;
  int values = 0;
  int bytes = 0;

  SOLITON_DEVICE ItemPlace(const QueryTiles& tiles, const TailTiles& tail, uint32_t turn) {
    constexpr QkvLayout kLayout = kQkv<Plan>;
    const int query_bytes = tiles.count * kLayout.query_tile_bytes();
    const int tail_bytes = tail.count * kLayout.kv.tile_bytes();
    bytes = query_bytes + 2 * tail_bytes;
    queries = SharedMap<Plan>::kInput + (turn % 2 == 0 ? 0 : Plan::kInputBytes - bytes);
    keys = queries + query_bytes;
    values = keys + tail_bytes;
  }
};

/// A matrix phase as it happens in a step.
struct MatrixInstance {
  const MatrixPhase& phase;
  int layer;  // 0 for the lm_head
};

template <class Plan>
SOLITON_DEVICE void init_barriers(Barriers<Plan>& barriers) {
  for (int i = 0; i < Plan::kRingSlots; ++i) {
    barrier_init(&barriers.page_full[i], 1);
    barrier_init_warps(&barriers.page_empty[i], kWorkers);
  }
  for (int i = 0; i < Plan::kInputBuffers; ++i) {
    barrier_init(&barriers.input_full[i], 1);
    barrier_init_warps(&barriers.input_empty[i], kWorkers);
  }
  barrier_init_warps(&barriers.tiles_full, kWorkers);
  barrier_init_warps(&barriers.tiles_empty, kShape<Plan>.finishing_workers());
  barrier_init(&barriers.begun, 1);
  barrier_init_warps(&barriers.phase_done, kWorkers);
  for (int i = 0; i < 2; ++i) {
    barrier_init(&barriers.query_full[i], 1);
    barrier_init_warps(&barriers.item_done[i], kWorkers);
  }
  barrier_init_warps(&barriers.parts_full, kWorkers);
  barrier_init_warps(&barriers.step_known, kShape<Plan>.finishing_workers());
  barrier_init(&barriers.step_read, 1);
  barrier_init(&barriers.stopped, 1);
  barrier_init(&barriers.ended, kWorkingWarps);
  barrier_init_fence();
}

}  // namespace soliton::rows
