// A consumer warp: multiplies its columns of every page by its slice of x, and never meets the other
// consumers.
#pragma once

#include "kernel.cuh"
#include "ops/greedy.cuh"
#include "ops/input.cuh"
#include "ops/merge.cuh"
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

  SOLITON_DEVICE void matrix(const MatrixInstance& at, const MatrixInstance& /*next*/) {
    const auto& [phase, layer] = at;
    begin_phase();
    const TileRun run = context_.tiles(phase);
    with_width<Plan>(phase.columns, [&]<Width kWidth>() {
      if constexpr (InputSlice<Plan, kWidth>::kChunks == 1) {
        put_squares(load_input<kWidth>(phase, layer, 0));
        mark_input();
        report_input();
        SOLITON_NO_UNROLL
        for (int i = 0; i < run.count; ++i) {
          float sums[2][4] = {};
          multiply_chunk<kWidth>(0, sums);
          hand_over_tile(sums);
        }
      } else {
        multiply_in_chunks<kWidth>(phase, layer, run.count);
      }
    });
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
    // Before anything is put down for the epilogue: pairs with its arrival in take_input(), two phases ago.
    const uint32_t use = context_.phases_done / kInputGenerations;
    if (use > 0) {
      context_.wait(context_.barriers().input_taken[generation()], (use - 1) & 1, WaitKind::kInputTaken, use);
    }
  }
  SOLITON_DEVICE void end_phase() {
    mark(context_, &PhaseRecord::last);
    mark(context_, &PhaseRecord::end);
    note(context_, &PhaseRecord::waited, page_waits_.take());
    context_.end_phase();
  }

  /// Of what this warp reports in this phase.
  SOLITON_DEVICE uint32_t generation() const { return context_.phases_done % kInputGenerations; }

  /// This warp's part of x: its columns of page 0, of page 1, ... Never another warp's in any phase, so that
  /// a warp may go on to its next slice while others still read theirs.
  SOLITON_DEVICE unsigned char* x() const {
    return context_.shared + SharedMap<Plan>::kX + warp_ * (Plan::kXBytes / kWarps);
  }

  /// For a wide input: a few tiles at a time, of all of them one chunk of columns after the other.
  template <Width kWidth>
  SOLITON_DEVICE void multiply_in_chunks(const MatrixPhase& phase, int layer, int num_tiles) {
    constexpr int kChunks = InputSlice<Plan, kWidth>::kChunks;
    constexpr int kTiles = kTilesAtOnce<Plan>;
    for (int first = 0; first == 0 || first < num_tiles; first += kTiles) {
      float sums[kTiles][2][4] = {};
      SOLITON_NO_UNROLL
      for (int chunk = 0; chunk < kChunks; ++chunk) {
        warp_sync();  // before x changes, all lanes have read it
        load_input<kWidth>(phase, layer, chunk);
        if (first == 0 && chunk == 0) mark_input();
        if (first == 0 && chunk == kChunks - 1) report_input();
        SOLITON_UNROLL
        for (int i = 0; i < kTiles; ++i) {
          if (first + i < num_tiles) multiply_chunk<kWidth>(chunk, sums[i]);
        }
      }
      SOLITON_UNROLL
      for (int i = 0; i < kTiles; ++i) {
        if (first + i < num_tiles) hand_over_tile(sums[i]);
      }
    }
  }

  /// Brings a chunk of this warp's slice of x into shared memory and returns its sum of squares if it is
  /// normed.
  template <Width kWidth>
  SOLITON_DEVICE float load_input(const MatrixPhase& phase, int layer, int chunk) {
    using Slice = InputSlice<Plan, kWidth>;
    static_assert(Slice::kChunks == 1 || !kWidth.normed, "one chunk knows one sum of squares");
    wait_for_grid(context_);
    const bool normed = kWidth.normed && phase.input != InputKind::kVector;
    const bool embedded = kWidth.normed && phase.input == InputKind::kHidden && layer == 0;
    const float* vector = context_.template workspace<float>(phase.input_vector.offset);
    const uint16_t* norm =
        context_.params.norms +
        static_cast<int64_t>(phase.first_norm + layer * phase.norm_stride) * kWidth.columns;
    Signatures<Plan> signatures(context_, phase.input_vector);
    if (warp_ == 0 && !embedded) signatures.issue();
    float squares = 0.0f;
    SOLITON_NO_UNROLL
    for (int batch = 0; batch < Slice::kBatches; ++batch) {
      const auto group = [&](int i) {  // within the chunk
        return (batch * Slice::kBatchLoads + i) * kWarpLanes + context_.lane;
      };
      const auto column = [&](int i) { return Slice::column(warp_, chunk * Slice::kChunkGroups + group(i)); };
      const auto present = [&](int i) {
        return Slice::kExact ||
               (group(i) < Slice::kChunkGroups && chunk * Slice::kChunkGroups + group(i) < Slice::kGroups);
      };
      const auto padding = [&](int i) {
        return kWidth.columns != kWidth.padded && column(i) >= kWidth.columns;
      };
      // A warp whose slice is padding still looks at the vector: that is how it learns that the phase has
      // begun.
      const auto address = [&](int i) {
        return reinterpret_cast<const float4*>(vector + (padding(i) ? 0 : column(i)));
      };
      uint2 weights[Slice::kBatchLoads] = {};
      if (normed) {
        SOLITON_UNROLL
        for (int i = 0; i < Slice::kBatchLoads; ++i) {
          if (present(i) && !padding(i))
            weights[i] = load_constant(reinterpret_cast<const uint2*>(norm + column(i)));
        }
      }
      PolledLoads<float4, Slice::kBatchLoads, Plan::kSync> loads;
      if (embedded) {
        const uint16_t* row = context_.params.embedding + static_cast<int64_t>(token_) * kWidth.columns;
        SOLITON_UNROLL
        for (int i = 0; i < Slice::kBatchLoads; ++i) {
          if (present(i) && !padding(i))
            loads.value[i] = unpack_bf16(load_constant(reinterpret_cast<const uint2*>(row + column(i))));
        }
      } else {
        loads.issue(address, present);
        wait_for_words(
            context_, WaitKind::kVector, [&] { return loads.retry(address); },
            [&] { return signatures.retry(); });
      }
      if (batch == 0 && phase.index == Plan::kFirstResidualPhase && units_ > 0) {
        // During attention this warp's part lay where x goes now. Pairs with the consumers' arrivals once it
        // is merged.
        context_.wait(context_.barriers().attention_empty, (units_ - 1) & 1, WaitKind::kAttentionEmpty,
                      units_);
      }
      SOLITON_UNROLL
      for (int i = 0; i < Slice::kBatchLoads; ++i) {
        if (!present(i)) continue;
        float4 v = loads.value[i];
        if (padding(i)) v = make_float4(0, 0, 0, 0);
        if (normed) {
          squares += v.x * v.x + v.y * v.y + v.z * v.z + v.w * v.w;
          const float4 w = unpack_bf16(weights[i]);
          v = make_float4(v.x * w.x, v.y * w.y, v.z * w.z, v.w * w.w);
        }
        store_split(x(), group(i) * 4, v);
      }
    }
    return squares;
  }

  SOLITON_DEVICE void mark_input() const {
    mark(context_, &PhaseRecord::input);
    if constexpr (kTimeline) note(context_, &PhaseRecord::pages, pages_landed());
  }

  /// Puts down the sum of squares of this warp's slice for the epilogue.
  SOLITON_DEVICE void put_squares(float squares) {
    for (int mask = kWarpLanes / 2; mask > 0; mask /= 2) squares += shuffle_xor(squares, mask);
    if (context_.lane == 0) store_shared(context_.squares(generation(), warp_), squares);
  }

  /// Says that this warp has all of its slice. Pairs with the epilogue's wait for input_read.
  SOLITON_DEVICE void report_input() {
    warp_arrive(&context_.barriers().input_read[generation()]);  // and x is complete for all lanes
  }

  /// Adds the products of this warp's columns of one chunk of a tile. Two chains of dependent mma hide their
  /// latency.
  template <Width kWidth>
  SOLITON_DEVICE void multiply_chunk(int chunk, float (&sums)[2][4]) {
    using Slice = InputSlice<Plan, kWidth>;
    constexpr int kRest = kWidth.padded % kPageColumns;  // columns of a short last page
    constexpr int kLastPages = Slice::kFullPages - (Slice::kChunks - 1) * Slice::kChunkPages;
    const int num_pages = chunk < Slice::kChunks - 1 ? Slice::kChunkPages : kLastPages;
    SOLITON_NO_UNROLL
    for (int page = 0; page < num_pages; ++page) multiply_page<kPageColumns>(page, sums);
    if constexpr (kRest > 0) {
      if (chunk == Slice::kChunks - 1) multiply_page<kRest>(kLastPages, sums);
    }
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
