// Finds pairs of accesses that the memory model of primitives.h leaves unordered. Every thread has a
// ClockPair; shadow cells remember the last write of each 4 bytes and the reads since. (Accesses of
// 2 bytes split a cell, those of one byte its halves.)
//
//   barriers, warp collectives, cta_sync   pass on both clocks
//   fence_device                           keeps a copy F of `writes`
//   fence_system                           the same, and keeps it as the copy S for other cards
//   store_relaxed -> load_relaxed          passes on F and `reads`; to another card S instead of F
//   add_release -> load_acquire            passes on both clocks
//   add_fenced_system -> load_acquire      passes on S and `reads`
//   accesses of different cards            are atomic only if both are of system scope
//   add_relaxed, add_shared                pass on nothing; who reads the sum must be ordered after every addition
//   fence_async_global -> copy_page               the copy's source is read with a copy A of `writes`; that of a piece with
//                                          the thread's own
//   fence_async_shared -> warpgroup_multiply
//                                          an operand in shared memory is read as by any load; who stored it has fenced it
//   copy of a piece -> wait_copies         passes on what the copy has written
//
// A copy is done by a pseudo-thread: one for every (CTA, barrier ordinal modulo kEnginesPerCta), of pieces one for every
// (CTA, warp modulo 4, lane modulo 4).
#pragma once

#include <array>
#include <memory>
#include <string>
#include <vector>

#include "primitives/emulation/emulator.h"
#include "primitives/emulation/regions.h"
#include "primitives/emulation/vector_clock.h"

namespace soliton::emulation {

constexpr int kEnginesPerCta = 16;
constexpr int kLaneCount = 32;

struct RaceShape {
  int num_ctas = 0;
  int threads_per_cta = 0;
  int shared_bytes = 0;
  const unsigned char* shared = nullptr;  // of all CTAs, one after another
  int shared_stride = 0;
  int ctas_per_card = 0;  // 0: there is one card
};

/// One side of a race.
struct RaceSide {
  int thread = -1;  // id over all CTAs; from num_threads on: a copy engine
  Access access = Access::kLoad;
};

struct Race {
  RaceSide now;
  RaceSide before;
  const char* reason = "is not ordered after";
  const std::string* region = nullptr;
  size_t offset = 0;  // within it
};

class RaceDetector {
 private:
  struct Message;

 public:
  /// A store, or an addition, to another card: made by a thread as it stood then, it lands later.
  struct Remote {
    int thread = 0;
    Epoch epoch = 0;
    Access access = Access::kSystemRelaxedStore;
    SharedClocks clocks = {};
    ClockPair released = {};  // by an addition
    std::shared_ptr<Message> message = nullptr;
  };

  RaceDetector(const RaceShape& shape, std::vector<Region> regions);
  ~RaceDetector();

  /// Empty if [address, address + bytes) is memory that a thread of `cta` may touch, else what is wrong.
  std::string check_bounds(Space space, int cta, const void* address, size_t bytes);
  /// Records an access of a thread; false, and *race, if it conflicts with an earlier one.
  bool access(int thread, Access access, Space space, const void* address, size_t bytes, Race* race);
  /// An access of system scope that writes another card's memory, from its making on,
  Remote begin_remote(int thread, Access access);
  /// and as it lands: false, and *race, as in access().
  bool land_remote(const Remote& remote, void* address, size_t bytes, Race* race);
  /// Must it have landed before what the thread does behind a fence_system?
  bool is_known(int thread, const Remote& remote) const {
    return threads_[thread].clocks.writes[remote.thread] >= remote.epoch;
  }
  /// Whose memory an address lies in: -1 if it is the host's or shared.
  int card_of_address(const void* address);

  /// A copy issued by `thread` on barrier `barrier_ordinal`, or of a piece if that is -1; *engine and *epoch say what
  /// its landing completes.
  bool copy(int thread, int barrier_ordinal, void* shared, const void* global, size_t bytes, int* engine,
            Epoch* epoch, Race* race);

  void merge_warp(int first_thread);
  void merge_cta(int cta);
  void release_to(int thread, ClockPair& clocks);
  /// `id` is another than 0 and that of no other clocks.
  void acquire_from(int thread, const ClockPair& clocks, uint64_t id);
  /// An id for acquire_from().
  uint64_t next_id() { return ++num_ids_; }
  void land(int engine, Epoch epoch, ClockPair& clocks) const;
  void see_copies(int thread, int engine, Epoch epoch);
  void fence_device(int thread);
  void fence_system(int thread);
  void fence_async_global(int thread);
  void fence_async_shared(int thread);

 private:
  struct Read {
    int thread;
    Epoch epoch;
    Access access;
  };
  struct Write {
    int thread;
    Epoch epoch;
    Access access;
  };
  struct Cell {
    int writer = -1;
    Epoch write_epoch = 0;
    Access write_access = Access::kStore;
    // Since that write. Plain ones that others are ordered after are there too if these came since the last pruning.
    std::vector<Read> reads;
    size_t pruned = 0;                                  // how many of them that left
    Read first_atomic = {-1, 0, Access::kRelaxedLoad};  // of all of these reads; -1: there is none
    std::shared_ptr<Message> message;
    std::unique_ptr<std::array<Cell, 2>> halves;
    void split();
  };
  struct CopyReads {
    size_t begin, end;  // bytes within the block
    int engine;
    Epoch epoch;
  };
  struct Block {
    std::unique_ptr<Cell[]> cells;  // Made by the first access that is not a copy: weights never need any.
    std::vector<CopyReads> copies;  // while there are no cells
  };
  struct Thread {
    ClockPair clocks;
    SnapshotPointer fenced;       // F
    SnapshotPointer fenced_wide;  // S
    SnapshotPointer async;        // A
    Epoch fenced_operands = 0;    // operands of products are fenced that it stored up to this epoch
    uint64_t last_id = 0;         // of what it acquired last
    uint64_t acquired = 0;        // what since the lanes of the warp last had equal clocks; 0: nothing
    std::shared_ptr<const ClockPair> shared;  // its clocks since it had acquired
    uint64_t shared_acquired = 0;             // that; 0: nothing is shared
  };
  struct Warp {
    std::array<Epoch, kLaneCount> own{};        // epochs of its lanes when they last met
    std::shared_ptr<const ClockPair> clocks{};  // that they had then, if a lane has asked since
  };
  struct Shadow {
    uintptr_t begin = 0;
    size_t bytes = 0;
    std::string name;
    int card = -1;
    std::vector<Block> blocks;
  };

  Shadow* find(Space space, int cta, uintptr_t address);
  Block& block(Shadow& shadow, size_t offset, bool with_cells);
  template <class Visit>
  bool for_each_cell(Shadow& shadow, size_t offset, size_t bytes, Visit visit);
  template <class Visit>
  static bool visit_parts(Cell& cell, size_t size, size_t at, size_t bytes, const Visit& visit);
  bool read(int thread, Access access, Cell& cell, const VectorClock& writes, Race* race);
  /// Has its writer, if that is a thread, made it known to products and copies since?
  bool is_fenced(const Cell& cell, Race* race) const;
  std::shared_ptr<Message> add_to(const Cell& cell, const Write& last, const Write& addition,
                                  const ClockPair& released);
  ClockPair released(int thread, Access access) const;
  /// Clocks: a type with writes(thread) and reads(thread), of the thread that writes.
  template <class Clocks>
  bool write(const Write& now, Cell& cell, const Clocks& clocks, Race* race);
  int card_of(int thread) const {
    return shape_.ctas_per_card == 0 ? 0 : thread / shape_.threads_per_cta / shape_.ctas_per_card;
  }
  bool are_atomic(int thread, Access access, int other, Access other_access) const;
  void receive(int thread, const Message& message);
  std::shared_ptr<Message> make_message(int thread, Access access);
  bool note_acquired(int thread, uint64_t id);
  void level(int first_thread);
  SnapshotPointer snapshot(int thread, const VectorClock& clock) const;
  SharedClocks shared_clocks(int thread);
  void meet(int first_thread);
  void forget_acquired(int thread);
  Epoch epoch(int thread) const;
  void tick(int thread);

  RaceShape shape_;
  int num_threads_;
  std::vector<Thread> threads_;
  std::vector<Warp> warps_;
  std::vector<Epoch> engine_epochs_;
  std::vector<Shadow> shared_;  // [cta]
  std::vector<Shadow> global_;  // sorted
  Shadow* last_global_ = nullptr;
  uint64_t num_ids_ = 0;
};

}  // namespace soliton::emulation
