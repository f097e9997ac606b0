// The input loader: the lanes of a warp that copy, which begin each phase. They say when this CTA has ended the phase
// before, wait until all have, and copy what the phase reads of it: chunks of activations, or queries and new tokens of
// the CTA's attention items. What one lane says and reads between CTAs it does for all.
#pragma once

#include "machine/copies.cuh"
#include "machine/ring.cuh"
#include "rows/experts.cuh"
#include "rows/groups.cuh"
#include "rows/items.cuh"

namespace soliton::rows {

template <const KernelPlan& kPlan>
class InputLoader {
 public:
  static constexpr RowsShape kRowsShape = kShape<kPlan>;
  static constexpr int kInputBytes = kPlan.input_bytes();

  SOLITON_DEVICE explicit InputLoader(Context<kPlan>& context) : context_(context), copies_(context.lane) {}

  SOLITON_DEVICE bool begin_step() {
    begin_phase();
    const bool happens = context_.step_happens();
    if (!happens && context_.leads()) barrier_arrive(&context_.barrier(BarrierId::kStopped));
    context_.end_phase();
    return happens;
  }
  SOLITON_DEVICE void end_step() { context_.end_step(); }

  SOLITON_DEVICE void matrix(const MatrixInstance& at, const MatrixInstance& /*next*/) {
    const MatrixPhase& phase = at.phase;
    const ExpertAxis axis = expert_axis<kPlan>(phase);
    // A router writes what workers wait for themselves, and what experts read was there before, or is awaited too.
    begin_phase(is_awaited<kPlan>(axis) ? Writers::kNone : Writers::kAll);
    // Pairs with the producer's wait in attend(): all layers of this step have been appended to the cache.
    if (phase.output == OutputKind::kLogits && context_.leads())
      barrier_arrive(&context_.barrier(BarrierId::kStepRead));
    const unsigned char* input = context_.template workspace<unsigned char>(phase.input_vector.offset);
    if constexpr (kPairs<kPlan>) {  // workers bring what they multiply
      if (axis != ExpertAxis::kNone || takes_units<kPlan>(phase)) return context_.end_phase();
    }
    if constexpr (kGroups<kPlan>) {
      if (axis != ExpertAxis::kNone) {
        push_groups(at, input);
        return context_.end_phase();
      }
    }
    if constexpr (kRowsShape.warpgroups) {
      const TileBlock block = context_.block(phase);
      SOLITON_NO_UNROLL
      for (int tile = 0; tile < block.tiles.count; tile += kTilesAtOnce<kPlan>)
        push_slots(phase, block, input);
    } else {
      if (axis == ExpertAxis::kRows) {
        copies_.announce();
        context_.wait_experts(at.layer);
      }
      const TileRun run = context_.tiles(phase);
      SOLITON_NO_UNROLL
      for (int done = 0; done < run.count;) {
        const int tile = run.first + done * run.stride;
        push_input(phase, tile, input);
        done += context_.tiles_together(phase, tile, run.count - done);
      }
    }
    context_.end_phase();
  }

  SOLITON_DEVICE void norm_heads(int /*layer*/) { pass<PhaseKind::kNormHeads>(); }
  SOLITON_DEVICE void norm_block(const MatrixInstance& /*at*/) { pass<PhaseKind::kNormBlock>(); }
  SOLITON_DEVICE void choose(const MatrixInstance& /*at*/) { pass<PhaseKind::kChoose>(); }
  SOLITON_DEVICE void group(const MatrixInstance& /*at*/) { pass<PhaseKind::kGroup>(); }
  SOLITON_DEVICE void ungroup(const MatrixInstance& /*at*/) { pass<PhaseKind::kUngroup>(); }

  template <int kPhase>
  SOLITON_DEVICE void attend(int /*layer*/) {
    open_phase();
    bool has_begun = false;  // where the first item lies is known before
    const auto begin_once = [&] {
      if (has_begun) return;
      has_begun = true;
      wait_for_all(kPlan.model.head_norm ? Writers::kCard : Writers::kAll);
      // Pairs with the producers' wait behind the pages of attention.
      if (context_.leads()) barrier_arrive(&context_.barrier(BarrierId::kAttending));
    };
    constexpr QkvLayout kLayout = kQkv<kPlan>;
    constexpr int kTailTileBytes = kLayout.kv.tile_bytes();
    constexpr Vector kInput = kPlan.vector(kPlan.phases[kPhase].reads);
    const unsigned char* input = context_.template workspace<unsigned char>(kInput.offset);
    const int end = context_.end_item();
    ItemPlaces<kPlan> places;
    Oldest oldest = {context_.first_item(), items_, {}};
    SOLITON_NO_UNROLL
    for (int i = context_.first_item(); i < end; ++i) {
      const TreeItem item = context_.item(i);
      if (!context_.has_work(item)) continue;
      const ItemParts<kPlan> parts(item, context_.step);
      const int end_before = places.end;
      const int place = places.take(parts.bytes());
      make_room(oldest, end_before, place, places.end);
      Barrier* full = &context_.barrier(BarrierId::kQueryFull, items_ % kItemSlots);
      copies_.begin(full, parts.bytes());
      ++items_;
      const int64_t first_query =
          kLayout.query_offset(item.kv_head, parts.queries.first * kTileQueries<kPlan>, 0, 0);
      const int keys = place + parts.query_bytes();
      begin_once();
      copies_.vector(context_.shared + place, input + first_query, parts.query_bytes(), full);
      if (parts.tail_bytes() > 0) {
        const int64_t first_tail = parts.tail.first * kTailTileBytes;
        copies_.vector(context_.shared + keys, input + kLayout.keys_offset(item.kv_head) + first_tail,
                       parts.tail_bytes(), full);
        copies_.vector(context_.shared + keys + parts.tail_bytes(),
                       input + kLayout.values_offset(item.kv_head) + first_tail, parts.tail_bytes(), full);
      }
      copies_.end(full);
    }
    begin_once();
    context_.end_phase();
  }

 private:
  /// A phase in which workers read what they want themselves, and may wait for it too.
  template <PhaseKind kKind, bool kAwaits = awaits_words(kPlan, kKind)>
  SOLITON_DEVICE void pass() {
    begin_phase(kAwaits ? Writers::kNone : Writers::kAll);
    context_.end_phase();
  }

  /// Of what a phase reads, and of what it writes over the readers: CTAs of all cards, or of this one alone; or nobody in the
  /// phase before.
  enum class Writers { kAll, kCard, kNone };

  /// Ends the phase before for this CTA; waits until all CTAs have ended it, or this card's.
  SOLITON_DEVICE void begin_phase(Writers writers = Writers::kAll) {
    open_phase();
    wait_for_all(writers);
  }
  SOLITON_DEVICE void open_phase() {
    context_.begin_phase();
    copies_.announce();
  }
  SOLITON_DEVICE void wait_for_all(Writers writers) {
    if (context_.leads())
      wait_for_writers(kPlan.num_cards > 1 || writers == Writers::kNone ? writers : Writers::kAll);
    InputCopies::any(false);  // the leading lane has waited
  }
  SOLITON_DEVICE void wait_for_writers(Writers writers) {
    if (context_.phases_done > 0) {
      context_.wait(context_.barrier(BarrierId::kPhaseDone), (context_.phases_done - 1) & 1,
                    WaitKind::kPhaseDone, context_.phases_done);
      const int word = writers == Writers::kCard ? kCardCounterWord : kGridCounterWord;
      uint32_t target = context_.phases_done * kPlan.all_ctas();
      if (writers != Writers::kCard) {
        fence_and_arrive_on_all<kPlan>(context_.params, &PeerOffsets::workspace, context_.counter(word));
        if constexpr (kPlan.num_cards > 1) target -= card_phases_ * kPlan.all_ctas();
      } else {
        add_release(context_.counter(word), 1);
        target = ++card_phases_ * kPlan.num_ctas;
      }
      context_.say_fenced();
      Spin spin(context_.bound());
      while (writers != Writers::kNone) {
        const uint32_t seen = load_arrivals<kPlan>(context_.counter(word));
        if (seen >= target) break;
        spin.go_on(context_.site(WaitKind::kCounter, word, target, seen));
      }
    }
    barrier_arrive(&context_.barrier(BarrierId::kBegun));
    if constexpr (InputCopies::kBulk) fence_async_global();  // for copies of what workers read without one
  }
  /// The first item of the phase that may not have been ended yet, and where those before it lie.
  struct Oldest {
    int index;
    uint32_t turn;
    ItemPlaces<kPlan> before;
  };
  /// Waits until nobody reads what lies at [place, end), nor what was skipped behind end_before, any more, and a barrier
  /// is free. Pairs with the workers' arrivals when they have ended an item.
  SOLITON_DEVICE void make_room(Oldest& oldest, int end_before, int place, int end) {
    const bool wraps = place < end_before;
    SOLITON_NO_UNROLL
    for (; oldest.turn != items_; ++oldest.index) {
      const TreeItem item = context_.item(oldest.index);
      if (!context_.has_work(item)) continue;
      ItemPlaces<kPlan> behind = oldest.before;
      const int at = behind.take(ItemParts<kPlan>(item, context_.step).bytes());
      const bool meets = at < end && behind.end > place;
      if (!meets && !(wraps && at >= end_before) && items_ - oldest.turn < kItemSlots) return;
      copies_.announce();
      context_.wait(context_.barrier(BarrierId::kItemDone, oldest.turn % kItemSlots),
                    oldest.turn / kItemSlots & 1, WaitKind::kItemDone, oldest.turn);
      oldest.before = behind;
      ++oldest.turn;
    }
  }

  /// What the tiles from `tile` on that are multiplied together meet.
  SOLITON_DEVICE void push_input(const MatrixPhase& phase, int tile, const unsigned char* input) {
    if constexpr (kMixes<kPlan>) {
      const ExpertPhase& experts = kExpertTable<kPlan>.phases[phase.number];
      if (experts.axis == ExpertAxis::kColumns) return push_pairs(input);
      if (experts.axis == ExpertAxis::kRows) {
        const ExpertSlot<kPlan> slot(context_, tile / experts.tiles);
        const int first = slot.first_pair();
        return push_rows(input, slot.pairs(), 0, phase.padded, [&](int i) { return slot.row_of(first + i); });
      }
      if (context_.is_gathered(phase.input_vector)) {
        const int first_column = tile % phase.column_slices * phase.padded;
        return push_rows(input, context_.params.tree.num_rows, first_column, phase.padded,
                         [](int i) { return i; });
      }
    }
    constexpr int kChunk = kRowsShape.chunk_columns();
    SOLITON_NO_UNROLL
    for (int column = 0; column < phase.padded; column += kChunk) {
      const int rest = phase.padded - column;
      push(input + static_cast<int64_t>(column) * kRowsShape.column_bytes(),
           (rest < kChunk ? rest : kChunk) * kRowsShape.column_bytes());
    }
  }

  // expert_input.cuh.
  template <class RowOf>
  SOLITON_DEVICE void push_rows(const unsigned char* input, int num_rows, int first_column, int columns,
                                const RowOf& row_of);
  SOLITON_DEVICE void push_pairs(const unsigned char* input);
  SOLITON_DEVICE void push_groups(const MatrixInstance& at, const unsigned char* input);

  /// Where warpgroups multiply: what each slot of pages meets.
  SOLITON_DEVICE void push_slots(const MatrixPhase& phase, const TileBlock& block,
                                 const unsigned char* input) {
    constexpr int kChunkBytes = kRowsShape.chunk_bytes();
    constexpr int kStride = kRowsShape.chunk_stride();
    const bool integers = has_scales<kPlan>(phase.format.type);
    if (takes_digits<kPlan>(phase)) return;  // workers bring it, and make digits of it
    const int columns = slot_columns<kPlan>(phase);
    input += context_.block_of(phase) * kChunkBytes;
    SOLITON_NO_UNROLL
    for (int i = 0; i < block.num_chunks; ++i) {
      const int column = block.first_column + block.chunk(i) * columns;
      const unsigned char* slot = input + static_cast<int64_t>(column / kRowsShape.chunk_columns()) * kStride;
      if (!integers) {
        for (int chunk = 0; chunk < columns / kRowsShape.chunk_columns(); ++chunk)
          push(slot + chunk * kStride, kChunkBytes);
      } else if constexpr (kPlan.model.integers.has_scales()) {
        with_integers<kPlan>(phase.format.type, [&]<WeightFormat kFormat>() {
          push_slot_of_integers<kFormat>(slot, page_of(kFormat, phase.padded, column).columns);
        });
      }
    }
  }
  /// A word has columns of both strips of a unit: where that is several chunks, each has as many of either.
  template <WeightFormat kFormat>
  SOLITON_DEVICE void push_slot_of_integers(const unsigned char* slot, int page_columns) {
    constexpr int kUnitColumns =
        kUnits * kRowsShape.chunk_columns();  // of a page whose units are a chunk each
    constexpr int kStride = kRowsShape.chunk_stride();
    if constexpr (kPlan.has_full_pages()) page_columns = kFormat.page_columns();
    const int unit_chunks = page_columns / kUnitColumns;
    const bool divided = kFormat.page_columns() > kUnitColumns && unit_chunks > 1;
    const int piece = kRowsShape.chunk_bytes() / (divided ? 2 : 1);
    SOLITON_NO_UNROLL
    for (int chunk = 0; chunk < kRowsShape.slot_columns(kFormat) / kRowsShape.chunk_columns(); ++chunk) {
      const int before = divided ? chunk & -unit_chunks : chunk;  // of the units before
      const unsigned char* first =
          slot + (before + (chunk - before) / 2) * kStride + (chunk - before) % 2 * piece;
      push(first, piece, divided ? first + unit_chunks / 2 * kStride : nullptr);
    }
  }

  /// A chunk of one piece, or of two.
  SOLITON_DEVICE void push(const unsigned char* source, int bytes, const unsigned char* second = nullptr) {
    fill_chunk(second != nullptr ? 2 * bytes : bytes, [&](unsigned char* to, Barrier* full) {
      copies_.vector(to, source, bytes, full);
      if (second != nullptr) copies_.vector(to + bytes, second, bytes, full);
    });
  }

  /// fill(where, barrier) copies all `bytes` of the next chunk.
  template <class Fill>
  SOLITON_DEVICE void fill_chunk(int bytes, const Fill& fill) {
    Barrier* full = &context_.barrier(BarrierId::kInputFull, chunk_.slot());
    if (chunks_ >= kPlan.input_buffers) {
      // Pairs with the workers' arrival in release_input().
      Barrier& empty = context_.barrier(BarrierId::kInputEmpty, chunk_.slot());
      copies_.announce_unless(context_.leads() && barrier_peek(&empty, chunk_.parity_before()));
      context_.wait(empty, chunk_.parity_before(), WaitKind::kInputEmpty, chunks_);
    }
    copies_.begin(full, bytes);
    fill(context_.region(RegionId::kInput) + chunk_.slot() * kRowsShape.chunk_bytes(), full);
    copies_.end(full);
    ++chunks_;
    chunk_.advance();
  }

  using InputCopies = Copies<kPlan, 2>;

  Context<kPlan>& context_;
  InputCopies copies_;
  uint32_t card_phases_ = 0;  // of several cards: phases that this one has begun by itself
  uint32_t items_ = 0;
  uint32_t chunks_ = 0;
  RingPosition<kPlan.input_buffers> chunk_;  // of activations
};

}  // namespace soliton::rows
