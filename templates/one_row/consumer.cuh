// A consumer warp: multiplies its columns of every page by its slice of x, and never meets the other
// consumers. Its slice comes by load_input.cuh, products are in multiply.cuh.
#pragma once

#include "machine/ring.cuh"
#include "machine/timeline.cuh"
#include "one_row/choose.cuh"
#include "one_row/context.cuh"
#include "one_row/experts.cuh"
#include "one_row/held_pages.cuh"
#include "one_row/merge.cuh"

namespace soliton::one_row {

template <const KernelPlan& kPlan>
class AttentionState;
template <const KernelPlan& kPlan>
struct OwnTiles;

template <const KernelPlan& kPlan>
class Consumer {
 public:
  SOLITON_DEVICE Consumer(Context<kPlan>& context, int warp) : context_(context), warp_(warp) {}

  /// Learns the step's token; false when the launch is over.
  SOLITON_DEVICE bool begin_step() {
    bool stop = context_.step >= context_.params.num_steps;
    int token = 0;
    if (context_.step < context_.params.num_input_tokens)
      token = load_constant(context_.params.input_tokens + context_.step);
    if (context_.step > 0) {
      const Choice choice = read_choice(context_);
      // The step before chose a token if it was not followed by an input token, or was the last.
      if (context_.step >= context_.params.num_input_tokens) {
        token = choice.token;
        stop = stop || choice.stop || is_last_token(context_.params, token);
      }
    }
    if (context_.lane == 0) {
      StepDecision& decision = context_.decision(warp_);
      store_shared(&decision.token, token);
      store_shared(&decision.stop, static_cast<int32_t>(stop));
      if (stop && warp_ == 0) barrier_arrive(&context_.barrier(BarrierId::kStopped));
    }
    warp_sync();
    if (warp_ == 0) warp_arrive(&context_.barrier(BarrierId::kTokenReady));
    return !stop;
  }
  SOLITON_DEVICE void end_step() { context_.end_step(); }

  SOLITON_DEVICE void matrix(const MatrixInstance& at, const MatrixInstance& /*next*/) {
    const auto& [phase, layer] = at;
    begin_phase();
    const TileRun run = context_.tiles(phase);
    with_width<kPlan>(phase.columns, phase.format.type, [&]<Width kWidth>() {
      if constexpr (InputSlice<kPlan, kWidth>::kChunks == 1) {
        put_squares(load_input<kWidth>(phase, layer, 0));
        mark_input();
        report_input();
        if constexpr (Held<kWidth>::kPages > 0) {
          multiply_tiles<kWidth>(run.count);
        } else {
          SOLITON_NO_UNROLL
          for (int i = 0; i < run.count; ++i) {
            TileSums<kWidth.format> sums;
            if constexpr (RouterSlices<kPlan>::kCount > 1) {
              if (phase.output == OutputKind::kRouter) {
                multiply_slice<kWidth>((run.first + i * run.stride) % RouterSlices<kPlan>::kCount, sums);
                hand_over_tile(sums.rows());
                continue;
              }
            }
            const bool is_free = tile_is_free();
            multiply_chunk<kWidth>(0, sums, i == run.count - 1);
            hand_over_tile(sums.rows(), is_free);
          }
        }
      } else {
        multiply_in_chunks<kWidth>(phase, layer, run.count);
      }
    });
    end_phase();
  }

  template <int kPhase>
  SOLITON_DEVICE void attend(int layer);

 private:
  template <int kPhase>
  SOLITON_DEVICE void stage_unit(const HeadBlock<kPlan>& heads, bool works, int layer,
                                 Signatures<kPlan>& signatures, bool is_first);
  SOLITON_DEVICE int wait_tokens(int slots);
  SOLITON_DEVICE OwnTiles<kPlan> own_tiles(int slot, int slots, int first_seen) const;
  SOLITON_DEVICE void release_tokens(int slots);

  static constexpr int kWarps = kPlan.consumer_warps;
  /// Does the format multiply whole pages, rather than blocks?
  template <WeightFormat kFormat>
  static constexpr bool kTakesPages = kFormat.type != WeightType::kBf16;
  template <WeightFormat kFormat>
  using TileSums = typename Gemv<kFormat>::Sums;
  template <Width kWidth>
  using Held = HeldPages<kPlan, kWidth>;

  SOLITON_DEVICE void begin_phase() {
    context_.begin_phase();
    warp_ = opaque(warp_);
    mark(context_, &PhaseRecord::begin);
    phase_begin_ = pages_;
    // Before anything is put down for the epilogue: pairs with its arrival in take_input(), two phases ago.
    const uint32_t use = context_.phases_done / kInputGenerations;
    if (use > 0) {
      context_.wait(context_.barrier(BarrierId::kInputTaken, generation()), (use - 1) & 1,
                    WaitKind::kInputTaken, use);
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
  SOLITON_DEVICE unsigned char* x() const { return context_.slice(warp_); }

  // The input: one_row/load_input.cuh.
  /// Before the last pages of a phase are released: what would take their places delays the vector that comes next.
  SOLITON_DEVICE void announce_wait() {
    if (kPlan.waiting_window < kPlan.window && warp_ == 0 && context_.lane == 0) context_.say_waiting(page_);
  }
  template <Width kWidth, bool kAhead = false>
  SOLITON_DEVICE float load_input(const MatrixPhase& phase, int layer, int chunk,
                                  typename InputLoads<kPlan, kWidth>::Values* ahead = nullptr);
  SOLITON_DEVICE float embedding_mean(const uint16_t* row) const;
  template <class... Retries>
  SOLITON_DEVICE void wait_for_input(uint32_t tag, const Retries&... retries);

  /// The lane as a number that the compiler knows to be small: most of what is computed of it are shifts.
  SOLITON_DEVICE int known_lane() const {
    return static_cast<int>(static_cast<uint32_t>(context_.lane) % kWarpLanes);
  }

  SOLITON_DEVICE int known_warp() const { return static_cast<int>(static_cast<uint32_t>(warp_) % kWarps); }

  /// Behind it: what integers' zeros are multiplied with.
  SOLITON_DEVICE int32_t* input_sums() const {
    return reinterpret_cast<int32_t*>(x() + kPlan.chunk_columns / kWarps * kXColumnBytes);
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
    warp_arrive(&context_.barrier(BarrierId::kInputRead, generation()));  // and x is complete for all lanes
  }

  // The products: one_row/multiply.cuh.
  template <Width kWidth>
  SOLITON_DEVICE void multiply_chunk(int chunk, TileSums<kWidth.format>& sums, bool ends);
  template <Width kWidth>
  SOLITON_DEVICE void multiply_tiles(int num_tiles);
  template <Width kWidth>
  SOLITON_DEVICE void multiply_in_chunks(const MatrixPhase& phase, int layer, int num_tiles);
  template <Width kWidth, class Input>
  SOLITON_DEVICE void load_held(Input& x) const;
  template <Width kWidth, class Words>
  SOLITON_DEVICE void load_words(Words& words);
  template <Width kWidth, class Words>
  SOLITON_DEVICE void release_words(const Words& words);
  template <Width kWidth, class Input, class Words, class Products>
  SOLITON_DEVICE void multiply_held(const Input& x, const Words& words, Products& products) const;
  template <Width kWidth, class Input, class Products>
  SOLITON_DEVICE void add_held(const Input& x, const Products& products, TileSums<kWidth.format>& sums) const;
  template <Width kWidth>
  SOLITON_DEVICE void multiply_slice(int slice, TileSums<kWidth.format>& sums);
  template <WeightFormat kFormat, int kColumns>
  SOLITON_DEVICE void multiply_pair(int column, TileSums<kFormat>& sums);
  template <WeightFormat kFormat>
  SOLITON_DEVICE GemvPage page_of(int column, const unsigned char* page) const;
  template <WeightFormat kFormat, int kRest>
  SOLITON_DEVICE void multiply_rest(int column, TileSums<kFormat>& sums);
  template <WeightFormat kFormat, int kColumns>
  SOLITON_DEVICE void multiply_page(int column, TileSums<kFormat>& sums);

  /// Where the next tile goes, and how often a tile went there before.
  SOLITON_DEVICE int tile_slot() const { return static_cast<int>(tiles_ % kPlan.tile_slots); }
  SOLITON_DEVICE uint32_t tile_round() const { return tiles_ / kPlan.tile_slots; }
  /// Is there room for this warp's part of the next tile?
  SOLITON_DEVICE bool tile_is_free() const {
    if constexpr (kPlan.copies != CopyKind::kBulk) return false;  // no register for the answer
    return tile_round() == 0 ||
           barrier_peek(&context_.barrier(BarrierId::kTileEmpty, tile_slot()), (tile_round() - 1) & 1);
  }
  /// Adds this warp's part of a tile to the tile ring. Pairs with the epilogue's wait for tile_full.
  /// `is_free`: tile_is_free(), asked before the tile was multiplied, so that the answer is there by now.
  SOLITON_DEVICE void hand_over_tile(float2 rows, bool is_free = false) {
    const int slot = tile_slot();
    if (!is_free && tile_round() > 0) {
      context_.wait(context_.barrier(BarrierId::kTileEmpty, slot), (tile_round() - 1) & 1,
                    WaitKind::kTileEmpty, tiles_);
    }
    if (context_.lane % 4 == 0) {
      float* parts = context_.tile_parts(slot, warp_);
      store_shared(parts + context_.lane / 4, rows.x);
      store_shared(parts + context_.lane / 4 + 8, rows.y);
    }
    warp_release(&context_.barrier(BarrierId::kTileFull, slot));
    ++tiles_;
  }

  /// Waits for the next page of the stream and returns its slot. Pairs with the copy's completion; every warp
  /// waits for every page, so its parity is never more than one phase off.
  SOLITON_DEVICE int wait_page() {
    const int slot = page_.slot();
    page_waits_.begin();
    context_.wait(context_.barrier(BarrierId::kPageFull, slot), page_.parity(), WaitKind::kPageFull, slot);
    warp_sync();
    page_waits_.end();
    if constexpr (kTimeline) {
      if (pages_ == phase_begin_) mark(context_, &PhaseRecord::first);
      ++pages_;
    }
    page_.advance();
    return slot;
  }
  /// Waits for the next `count` pages, at most kMost. They are in page_.slot(0), page_.slot(1), ... until it advances.
  template <int kMost>
  SOLITON_DEVICE void wait_ahead(int count) {
    static_assert(kMost <= kPlan.ring_slots,
                  "else the first would have to be released before the last comes");
    static_assert(kMost <= kWarpLanes);
    const auto full = [&](int ahead) -> Barrier& {
      return context_.barrier(BarrierId::kPageFull, page_.slot(ahead));
    };
    page_waits_.begin();
    bool landed = false;
    if constexpr (kPlan.copies == CopyKind::kBulk) {  // lane i looks at the i-th
      const int lane = known_lane();
      landed = !warp_any(lane < count && !barrier_test(&full(lane), page_.parity(lane)));
    }
    if (!landed) {
      SOLITON_NO_UNROLL
      for (int i = 0; i < count; ++i)
        context_.wait(full(i), page_.parity(i), WaitKind::kPageFull, page_.slot(i));
    }
    warp_sync();
    page_waits_.end();
    if constexpr (kTimeline) {
      if (pages_ == phase_begin_ && count > 0) mark(context_, &PhaseRecord::first);
      pages_ += count;
    }
  }
  /// Waits for the next two, and returns their slots: both are looked at before the first is waited for.
  SOLITON_DEVICE void wait_pair(int (&slots)[2]) {
    Barrier* full[2];
    uint32_t parity[2];
    bool landed[2];
    SOLITON_UNROLL
    for (int i = 0; i < 2; ++i) {
      slots[i] = page_.slot();
      parity[i] = page_.parity();
      full[i] = &context_.barrier(BarrierId::kPageFull, slots[i]);
      page_.advance();
    }
    page_waits_.begin();
    SOLITON_UNROLL
    for (int i = 0; i < 2; ++i) landed[i] = barrier_test(full[i], parity[i]);
    if (!(landed[0] && landed[1])) {
      SOLITON_UNROLL
      for (int i = 0; i < 2; ++i) context_.wait(*full[i], parity[i], WaitKind::kPageFull, slots[i]);
    }
    warp_sync();
    page_waits_.end();
    if constexpr (kTimeline) {
      if (pages_ == phase_begin_) mark(context_, &PhaseRecord::first);
      pages_ += 2;
    }
  }
  /// Pages that have landed and that this warp has not read. Every slot before was waited for: parities are
  /// sound.
  SOLITON_DEVICE uint32_t pages_landed() const {
    int landed = 0;
    for (PackedRingPosition<kPlan.ring_slots> at = page_; landed < kPlan.ring_slots; at.advance()) {
      if (!barrier_peek(&context_.barrier(BarrierId::kPageFull, at.slot()), at.parity())) break;
      ++landed;
    }
    return static_cast<uint32_t>(landed);
  }
  SOLITON_DEVICE const unsigned char* page_bytes(int slot) const {
    return context_.region(RegionId::kPages) + slot * kPlan.slot_bytes;
  }

  /// Pairs with the producer's wait for page_empty.
  SOLITON_DEVICE void release_page(int slot) { warp_release(&context_.barrier(BarrierId::kPageEmpty, slot)); }

  Context<kPlan>& context_;
  int warp_;
  uint32_t pages_ = 0;  // counted for the timeline alone: with integers there is no register left
  PackedRingPosition<kPlan.ring_slots> page_;
  uint32_t tiles_ = 0;
  uint32_t units_ = 0;        // attention units handed over
  uint32_t phase_begin_ = 0;  // pages_ at the beginning of the phase
  float input_up_ = 0;        // InputScale::up of the slice in x()
  WaitClock page_waits_;
};

}  // namespace soliton::one_row
