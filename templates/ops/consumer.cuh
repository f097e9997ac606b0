// A consumer warp: multiplies its columns of every page by its slice of x, and never meets the other
// consumers.
#pragma once

#include "kernel.cuh"
#include "ops/greedy.cuh"
#include "ops/input.cuh"
#include "ops/timeline.cuh"

namespace soliton {

template <class Plan>
class Consumer {
 public:
  SOLITON_DEVICE Consumer(Context<Plan>& context, int warp) : context_(context), warp_(warp) {}

  /// Learns the step's token; false when the launch is over.
  SOLITON_DEVICE bool begin_step() {
    bool stop = context_.step >= context_.params.num_steps;
    if (context_.step < context_.params.num_forced)
      token_ = load_constant(context_.params.forced_tokens + context_.step);
    if (context_.step > 0) {
      const Choice choice = read_choice(context_);
      // The step before chose a token if it was not followed by a forced one, or was the last.
      if (context_.step >= context_.params.num_forced) {
        token_ = choice.token;
        stop = stop || choice.stop || is_stop_token(context_.params, token_);
      }
    }
    if (warp_ == 0) {
      if (context_.lane == 0) {
        store_shared(&context_.mail().token, token_);
        store_shared(&context_.mail().stop, static_cast<int32_t>(stop));
        if (stop) barrier_arrive(&context_.barriers().stopped);
      }
      warp_arrive(&context_.barriers().token_ready);
    }
    return !stop;
  }
  SOLITON_DEVICE void end_step() { context_.end_step(); }

  template <MatrixPhase kPhase>
  SOLITON_DEVICE void matrix(int layer) {
    begin_phase();
    load_input<kPhase>(layer);
    constexpr int kPages = pages_per_tile(kPhase.padded);
    const TileRun run = context_.tiles(kPhase);
    for (int i = 0; i < run.count; ++i) {
      // Two chains of dependent mma hide their latency.
      float sums[2][4] = {};
      constexpr int kFullPages = kPhase.padded / kPageColumns;
      SOLITON_NO_UNROLL
      for (int page = 0; page < kFullPages; ++page) multiply_page<kPageColumns>(page, sums);
      if constexpr (kFullPages < kPages) {
        multiply_page<page_columns(kPhase.padded, kFullPages)>(kFullPages, sums);
      }
      hand_over_tile(sums);
    }
    end_phase();
  }

  template <AttentionPhase kPhase>
  SOLITON_DEVICE void attention(int layer);

 private:
  static constexpr int kWarps = Plan::kConsumerWarps;

  SOLITON_DEVICE void begin_phase() {
    context_.begin_phase();
    warp_ = fresh(warp_);
    mark(context_, &PhaseRecord::begin);
    phase_begin_ = pages_;
  }
  SOLITON_DEVICE void end_phase() {
    mark(context_, &PhaseRecord::last);
    mark(context_, &PhaseRecord::end);
    note(context_, &PhaseRecord::waited, page_waits_.take());
    context_.end_phase();
  }

  /// This warp's part of x: its columns of page 0, of page 1, ... Never another warp's in any phase, so that
  /// a warp may go on to its next slice while others still read theirs.
  SOLITON_DEVICE unsigned char* x() const {
    return context_.shared + SharedMap<Plan>::kX + warp_ * (Plan::kXBytes / kWarps);
  }

  /// Brings this warp's slice of x into shared memory and reports it to the epilogue, with its sum of
  /// squares.
  template <MatrixPhase kPhase>
  SOLITON_DEVICE void load_input(int layer) {
    using Slice = InputSlice<Plan, kPhase>;
    constexpr bool kNormed = kPhase.input != InputKind::kVector;
    wait_for_grid(context_);
    const uint16_t* norm =
        kNormed ? context_.params.norms +
                      static_cast<int64_t>(kPhase.first_norm + layer * kPhase.norm_stride) * kPhase.columns
                : nullptr;
    Signatures<Plan, kPhase.input_vector> signatures;
    const bool signs = warp_ == 0 && !(kPhase.input == InputKind::kHidden && layer == 0);
    if (signs) signatures.issue(context_);
    float squares = 0.0f;
    for (int batch = 0; batch < Slice::kBatches; ++batch) {
      const auto column = [&](int i) {
        return Slice::column(warp_, (batch * Slice::kBatchLoads + i) * kWarpLanes + context_.lane);
      };
      const auto present = [&](int i) {
        return Slice::kExact ||
               (batch * Slice::kBatchLoads + i) * kWarpLanes + context_.lane < Slice::kGroups;
      };
      uint2 weights[Slice::kBatchLoads];
      if constexpr (kNormed) {
        SOLITON_UNROLL
        for (int i = 0; i < Slice::kBatchLoads; ++i) {
          weights[i] = present(i) && (kPhase.columns == kPhase.padded || column(i) < kPhase.columns)
                           ? load_constant(reinterpret_cast<const uint2*>(norm + column(i)))
                           : make_uint2(0, 0);
        }
      }
      PolledLoads<float4, Slice::kBatchLoads, Plan::kSync> loads;
      if (kPhase.input == InputKind::kHidden && layer == 0) {
        const uint16_t* row = context_.params.embedding + static_cast<int64_t>(token_) * kPhase.columns;
        SOLITON_UNROLL
        for (int i = 0; i < Slice::kBatchLoads; ++i) {
          loads.value[i] = make_float4(0, 0, 0, 0);
          if (present(i) && (kPhase.columns == kPhase.padded || column(i) < kPhase.columns)) {
            loads.value[i] = unpack_bf16(load_constant(reinterpret_cast<const uint2*>(row + column(i))));
          }
        }
      } else {
        const float* vector = context_.template workspace<float>(kPhase.input_vector.offset);
        // A warp whose slice is padding still looks at the vector: that is how it learns that the phase has
        // begun.
        const auto address = [&](int i) {
          const bool padding = kPhase.columns != kPhase.padded && column(i) >= kPhase.columns;
          return reinterpret_cast<const float4*>(vector + (padding ? 0 : column(i)));
        };
        loads.issue(address, present);
        wait_for_words(
            context_, WaitKind::kVector, [&] { return loads.retry(address); },
            [&] { return signatures.retry(context_); });
      }
      if (batch == 0 && kPhase.index == Plan::kFirstResidualPhase && units_ > 0) {
        // During attention this warp's part lay where x goes now. Pairs with the epilogue's arrival once it has taken it.
        context_.wait(context_.barriers().attention_empty, (units_ - 1) & 1, WaitKind::kAttentionEmpty,
                      units_);
      }
      SOLITON_UNROLL
      for (int i = 0; i < Slice::kBatchLoads; ++i) {
        if (!present(i)) continue;
        float4 v = loads.value[i];
        if (kPhase.columns != kPhase.padded && column(i) >= kPhase.columns) v = make_float4(0, 0, 0, 0);
        if constexpr (kNormed) {
          squares += v.x * v.x + v.y * v.y + v.z * v.z + v.w * v.w;
          const float4 w = unpack_bf16(weights[i]);
          v = make_float4(v.x * w.x, v.y * w.y, v.z * w.z, v.w * w.w);
        }
        store_split(x(), ((batch * Slice::kBatchLoads + i) * kWarpLanes + context_.lane) * 4, v);
      }
    }
    report_input(squares);
  }

  /// Pairs with the epilogue's wait for input_read.
  SOLITON_DEVICE void report_input(float squares) {
    for (int mask = kWarpLanes / 2; mask > 0; mask /= 2) squares += shuffle_xor(squares, mask);
    const uint32_t generation = context_.phases_done % kInputGenerations;
    const uint32_t use = context_.phases_done / kInputGenerations;
    // Pairs with the epilogue's arrival in take_input(), two phases ago: always there already.
    if (use > 0) {
      context_.wait(context_.barriers().input_taken[generation], (use - 1) & 1, WaitKind::kInputTaken, use);
    }
    mark(context_, &PhaseRecord::input);
    if constexpr (kTimeline) note(context_, &PhaseRecord::pages, pages_landed());
    if (context_.lane == 0) store_shared(context_.squares(generation, warp_), squares);
    warp_arrive(&context_.barriers().input_read[generation]);  // and x is complete for all lanes
  }

  /// Adds the products of this warp's columns of one page: sums[][0] and [1] belong to row lane / 4 (high and
  /// low part of x), [2] and [3] to row lane / 4 + 8; only lanes with lane % 4 == 0 hold them.
  template <int kColumns>
  SOLITON_DEVICE void multiply_page(int page, float (&sums)[2][4]) {
    constexpr int kBlocks = kColumns / kWarps / kColumnBlock;
    const int slot = wait_page();
    const uint4* weights =
        reinterpret_cast<const uint4*>(page_bytes(slot)) + warp_ * kBlocks * 2 * kWarpLanes + context_.lane;
    const unsigned char* x_slice = x() + page * (kPageColumns / kWarps / kColumnBlock) * kXBlockBytes +
                                   (context_.lane / 4 == 1 ? kXLowOffset : 0) + context_.lane % 4 * 16;
    SOLITON_UNROLL
    for (int block = 0; block < kBlocks; ++block) {
      const uint4 values = load_shared(reinterpret_cast<const uint4*>(x_slice + block * kXBlockBytes));
      mma_bf16(sums[0], load_shared(weights + block * 2 * kWarpLanes), make_uint2(values.x, values.y));
      mma_bf16(sums[1], load_shared(weights + (block * 2 + 1) * kWarpLanes), make_uint2(values.z, values.w));
    }
    release_page(slot);
  }

  /// Adds this warp's part of a tile to the tile ring. Pairs with the epilogue's wait for tile_full.
  SOLITON_DEVICE void hand_over_tile(const float (&sums)[2][4]) {
    if (tiles_ >= Plan::kTileSlots) {
      context_.wait(context_.barriers().tile_empty[tile_slot_], tile_parity_ ^ 1, WaitKind::kTileEmpty,
                    tiles_);
    }
    if (context_.lane % 4 == 0) {
      float* parts = context_.tile_parts(tile_slot_, warp_);
      store_shared(parts + context_.lane / 4, (sums[0][0] + sums[1][0]) + (sums[0][1] + sums[1][1]));
      store_shared(parts + context_.lane / 4 + 8, (sums[0][2] + sums[1][2]) + (sums[0][3] + sums[1][3]));
    }
    warp_arrive(&context_.barriers().tile_full[tile_slot_]);
    ++tiles_;
    if (++tile_slot_ == Plan::kTileSlots) {
      tile_slot_ = 0;
      tile_parity_ ^= 1;
    }
  }

  /// Waits for the next page of the stream and returns its slot. Pairs with the copy's completion; every warp
  /// waits for every page, so its parity is never more than one phase off.
  SOLITON_DEVICE int wait_page() {
    const int slot = slot_;
    page_waits_.begin();
    context_.wait(context_.barriers().page_full[slot], parity_, WaitKind::kPageFull, pages_);
    warp_sync();
    page_waits_.end();
    if (kTimeline && pages_ == phase_begin_) mark(context_, &PhaseRecord::first);
    ++pages_;
    if (++slot_ == Plan::kRingSlots) {
      slot_ = 0;
      parity_ ^= 1;
    }
    return slot;
  }
  /// Pages that have landed and that this warp has not read. Every slot before was waited for: parities are
  /// sound.
  SOLITON_DEVICE uint32_t pages_landed() const {
    int landed = 0;
    while (landed < Plan::kRingSlots) {
      const int slot = slot_ + landed;
      const bool wraps = slot >= Plan::kRingSlots;
      Barrier* full = &context_.barriers().page_full[wraps ? slot - Plan::kRingSlots : slot];
      if (!barrier_peek(full, wraps ? parity_ ^ 1 : parity_)) break;
      ++landed;
    }
    return static_cast<uint32_t>(landed);
  }
  SOLITON_DEVICE const unsigned char* page_bytes(int slot) const {
    return context_.shared + SharedMap<Plan>::kPages + slot * kPageBytes;
  }

  /// Pairs with the producer's wait for page_empty.
  SOLITON_DEVICE void release_page(int slot) { warp_arrive(&context_.barriers().page_empty[slot]); }

  Context<Plan>& context_;
  int warp_;
  int token_ = 0;
  uint32_t pages_ = 0;
  int slot_ = 0;
  uint32_t parity_ = 0;
  uint32_t tiles_ = 0;
  int tile_slot_ = 0;
  uint32_t tile_parity_ = 0;
  uint32_t units_ = 0;        // attention units handed over
  uint32_t phase_begin_ = 0;  // pages_ at the beginning of the phase
  WaitClock page_waits_;
};

}  // namespace soliton

#include "ops/attention.cuh"
