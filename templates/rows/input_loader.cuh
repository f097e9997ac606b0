// The input loader: one lane that begins each phase. It says when this CTA has ended the phase before, waits until
// all have, and copies what the phase reads of it: chunks of activations, or queries and new tokens of the
// CTA's attention items.
#pragma once

#include "rows/context.cuh"

namespace soliton::rows {

template <class Plan>
class InputLoader {
 public:
  static constexpr RowsShape kRowsShape = kShape<Plan>;

  SOLITON_DEVICE explicit InputLoader(Context<Plan>& context) : context_(context) {}

  SOLITON_DEVICE bool begin_step() {
    begin_phase();
    const bool happens = context_.step_happens();
    if (!happens) barrier_arrive(&context_.barriers().stopped);
    context_.end_phase();
    return happens;
  }
  SOLITON_DEVICE void end_step() { context_.end_step(); }

  SOLITON_DEVICE void matrix(const MatrixInstance& at, const MatrixInstance& /*next*/) {
    const MatrixPhase& phase = at.phase;
    begin_phase();
    // Pairs with the producer's wait in attend(): all layers of this step have been appended to the cache.
    if (phase.output == OutputKind::kLogits) barrier_arrive(&context_.barriers().step_read);
    const TileRun run = context_.tiles(phase);
    const unsigned char* input = context_.template workspace<unsigned char>(phase.input_vector.offset);
    SOLITON_NO_UNROLL
    for (int tile = 0; tile < run.count; tile += kTilesAtOnce) {
      SOLITON_NO_UNROLL
      for (int column = 0; column < phase.padded; column += kRowsShape.chunk_columns()) {
        const int rest = phase.padded - column;
        const int columns = rest < kRowsShape.chunk_columns() ? rest : kRowsShape.chunk_columns();
        push(input + static_cast<int64_t>(column) * kRowsShape.column_bytes(),
             columns * kRowsShape.column_bytes());
      }
    }
    context_.end_phase();
  }

  SOLITON_DEVICE void norm_heads(int /*layer*/) {
    begin_phase();
    context_.end_phase();
  }

  SOLITON_DEVICE void attend(int /*layer*/) {
    begin_phase();
    constexpr QkvLayout kLayout = kQkv<Plan>;
    constexpr int kTailTileBytes = kLayout.kv.tile_bytes();
    const unsigned char* input = context_.template workspace<unsigned char>(Plan::kQkvVector.offset);
    const int end = context_.end_item();
    int bytes_before = 0;  // of the item before, in this phase
    SOLITON_NO_UNROLL
    for (int i = context_.first_item(); i < end; ++i) {
      const TreeItem item = context_.item(i);
      if (!context_.has_work(item)) continue;
      const QueryTiles queries = query_tiles<Plan>(item);
      const TailTiles tail = tail_tiles(item, context_.step);
      const ItemPlace<Plan> place(queries, tail, items_);
      // Pairs with the workers' arrivals when they have ended the item before the last, and the last one.
      if (items_ > 1) wait_item(items_ - 2);
      if (bytes_before + place.bytes > Plan::kInputBytes) wait_item(items_ - 1);
      bytes_before = place.bytes;
      Barrier* full = &context_.barriers().query_full[items_ % 2];
      ++items_;
      barrier_arrive_expect(full, place.bytes);
      const int64_t first_query = kLayout.query_offset(item.kv_head, queries.first * kQueryRows, 0, 0);
      copy_vector(context_.shared + place.queries, input + first_query, place.keys - place.queries, full);
      const int tail_bytes = tail.count * kTailTileBytes;
      if (tail_bytes == 0) continue;
      const int64_t first_tail = tail.first * kTailTileBytes;
      copy_vector(context_.shared + place.keys, input + kLayout.keys_offset(item.kv_head) + first_tail,
                  tail_bytes, full);
      copy_vector(context_.shared + place.values, input + kLayout.values_offset(item.kv_head) + first_tail,
                  tail_bytes, full);
    }
    context_.end_phase();
  }

  SOLITON_DEVICE void merge(int /*layer*/) {
    begin_phase();
    context_.end_phase();
  }

 private:
  /// Ends the phase before for this CTA; waits until all CTAs have ended it.
  SOLITON_DEVICE void begin_phase() {
    context_.begin_phase();
    if (context_.phases_done > 0) {
      context_.wait(context_.barriers().phase_done, (context_.phases_done - 1) & 1, WaitKind::kPhaseEnded,
                    context_.phases_done);
      add_release(context_.counter(kGridCounterWord), 1);
      const uint32_t target = context_.phases_done * Plan::kNumCtas;
      const WaitBound bound = context_.bound();
      Spin spin(bound);
      for (;;) {
        const uint32_t seen = load_acquire(context_.counter(kGridCounterWord));
        if (seen >= target) break;
        spin.pause(context_.site(WaitKind::kCounter, kGridCounterWord, target, seen));
      }
      fence_async();
    }
    barrier_arrive(&context_.barriers().begun);
  }

  SOLITON_DEVICE void wait_item(uint32_t item) const {
    context_.wait(context_.barriers().item_done[item % 2], item / 2 & 1, WaitKind::kAttentionEmpty, item);
  }

  SOLITON_DEVICE void push(const unsigned char* source, int bytes) {
    // Pairs with the workers' arrival in release_input().
    if (chunks_ >= Plan::kInputBuffers) {
      context_.wait(context_.barriers().input_empty[buffer_], parity_ ^ 1, WaitKind::kInputEmpty, chunks_);
    }
    Barrier* full = &context_.barriers().input_full[buffer_];
    barrier_arrive_expect(full, bytes);
    copy_vector(context_.shared + SharedMap<Plan>::kInput + buffer_ * kRowsShape.chunk_bytes(), source, bytes,
                full);
    ++chunks_;
    if (++buffer_ == Plan::kInputBuffers) {
      buffer_ = 0;
      parity_ ^= 1;
    }
  }

  Context<Plan>& context_;
  uint32_t items_ = 0;
  uint32_t chunks_ = 0;
  int buffer_ = 0;
  uint32_t parity_ = 0;
};

}  // namespace soliton::rows
