// One launch of the emulation: its fibers, barriers, copies in flight, checks, and how it ends.
#pragma once

#include <deque>
#include <memory>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "primitives/emulation/emulator.h"
#include "primitives/emulation/fibers.h"
#include "primitives/emulation/race_detector.h"

namespace soliton::emulation {

/// An mbarrier.
struct BarrierState {
  Barrier* address = nullptr;
  int cta = 0;
  int ordinal = 0;  // within the CTA, in order of barrier_init
  int count = 0;    // arrivals of one phase
  int pending = 0;  // arrivals that this phase still lacks
  int64_t transaction_bytes = 0;
  uint64_t phase = 0;
  uint64_t arrivals = 0;  // of all phases
  uint64_t warps = 0;     // that have arrived, see BarrierCount
  Fiber* waiters = nullptr;
  int initialiser = 0;    // fiber id
  bool fenced = false;    // by barrier_init_fence
  ClockPair arriving{};   // of all phases so far and of the arrivals of this one
  ClockPair completed{};  // of all phases so far
  uint64_t id = 0;        // of `completed`, see RaceDetector::acquire_from()

  bool test(uint32_t parity) const { return (phase & 1) != parity; }
};

struct PendingCopy {
  void* shared = nullptr;
  const void* global = nullptr;
  int bytes = 0;
  BarrierState* barrier = nullptr;  // of a bulk copy, or null:
  int thread = -1;                  // id of the thread that copies a piece,
  uint64_t set = 0;                 // and which of its sets that is in
  int engine = 0;
  Epoch epoch = 0;
};

/// What a thread copies in pieces: its sets from number `first` on that have not been waited for, the last of which is
/// not committed yet.
struct PieceCopies {
  struct Set {
    int in_flight = 0;
    Epoch epoch = 0;  // of its last piece
  };
  uint64_t first = 0;
  std::deque<Set> sets = {1, Set{}};
  int engine = -1;
};

/// What a thread's warpgroup multiplies asynchronously.
struct Products {
  struct Sums {
    void* c = nullptr;  // hold no number until they are there
    std::vector<uint32_t> values;
  };
  bool fenced = false;
  uint64_t num_sets = 0;  // since the launch began
  std::vector<Product> issued;
  std::deque<std::vector<Product>> committed;  // sets
  std::vector<Sums> sums;
};

/// An address, and a CTA that stores there.
struct RemotePlace {
  void* address = nullptr;
  int cta = 0;
  bool operator==(const RemotePlace&) const = default;
};

struct RemoteStore;

/// Of one place, in the order in which they were made.
struct RemoteLine {
  RemoteStore* first = nullptr;
  RemoteStore* last = nullptr;
};

/// A store, or an addition, on its way to another card.
struct RemoteStore {
  Access access = Access::kSystemRelaxedStore;
  RemotePlace place = {};
  size_t bytes = 0;
  unsigned char value[16] = {};
  uint64_t number = 0;             // in the order in which they are made
  size_t index = 0;                // in RemoteStores
  RemoteLine* line = nullptr;      // of this place,
  RemoteStore* next = nullptr;     // and the next one in it
  RaceDetector::Remote race = {};  // of checked launches
};

/// Those on their way. Of one place they leave in the order in which they were made.
class RemoteStores {
 public:
  void add(std::unique_ptr<RemoteStore> store);
  bool empty() const { return all_.empty(); }
  size_t size() const { return all_.size(); }
  /// In an order that no address decides.
  const RemoteStore& operator[](size_t index) const { return *all_[index]; }
  /// Takes out the first one of a line, unless that is behind number `last`: null then, or if there is none.
  std::unique_ptr<RemoteStore> take_first(RemoteLine& line, uint64_t last);

 private:
  struct Hash {
    size_t operator()(const RemotePlace& place) const;
  };
  std::vector<std::unique_ptr<RemoteStore>> all_;
  std::unordered_map<RemotePlace, RemoteLine, Hash> lines_;  // some of them empty
  uint64_t num_made_ = 0;
};

class Launch {
 public:
  Launch(Kernel kernel, const std::vector<CardLaunch>& cards, const LaunchShape& shape,
         EmulationControl& control);
  /// `enter_fiber` must call run_fiber of this launch.
  std::string run(StackPool& stacks, FiberEntry enter_fiber);

  void check_access(Access access, Space space, const void* address, size_t bytes);
  void collective(Operation operation, const char* name, void* operand);
  MmaOperand* put_off(Operation operation, const char* name);
  void begin_batch();
  void end_batch();
  void synchronise_cta();
  void fence_device();
  void fence_system();
  void fence_async_global();
  void fence_async_shared();
  void load_wide(Access access, const void* address, void* value, size_t bytes);
  void store_wide(Access access, void* address, const void* value, size_t bytes);
  void land_stores_before();  // what the running thread does next
  void init_barrier(Barrier* barrier, int arrivals);
  void fence_barrier_init();
  void arrive(Barrier* barrier, int bytes);
  void release_by_warp(Barrier* barrier, int times);
  bool test_barrier(Barrier* barrier, uint32_t parity);
  void wait_barrier(Barrier* barrier, uint32_t parity, const WaitSite& site);
  bool skips_wait(WaitKind kind) const { return holds(FaultKind::kSkipWait) && kind == options_.fault.wait; }
  bool drops_hints() const { return holds(FaultKind::kDropHints); }
  void copy_page(void* shared, const void* global, int bytes, Barrier* barrier);
  void copy_piece(void* shared, const void* global);
  void commit_copies();
  void wait_copies(int sets);
  void issue_product(const Product& product);
  void fence_products();
  void commit_products();
  void wait_products(int sets_left);
  void make_product(const Product& product);
  void pause(const WaitSite& site);
  [[noreturn]] void fail_demand(const char* what);
  void note_host_load() { scheduler_.current().polls_host = true; }

  /// Runs the kernel in the fiber that was just entered, and never returns.
  [[noreturn]] void run_fiber();

 private:
  struct Cta {
    int returned = 0;
    int synchronising = 0;
    int num_barriers = 0;
  };

  /// Ends the launch: all fibers are abandoned as they stand.
  [[noreturn]] void fail(std::string text);
  [[noreturn]] void fail_race(const Race& race);
  [[noreturn]] void fail_mixed(const char* name, const char* others);
  [[noreturn]] void fail_no_barrier(const Barrier* barrier, const char* user);
  [[noreturn]] void fail_stuck(const char* what);
  void maybe_preempt() {
    if (checking) [[unlikely]]
      preempt_at_random();
  }
  void preempt_at_random();
  /// The running fiber can not go on: runs others until it can, or ends the launch.
  void give_way();
  /// Nobody is ready: lands copies, lets pollers look again, or ends the launch.
  void advance_idle();
  bool host_may_help();
  /// Checks a copy that the running thread issues, and begins it.
  void issue(PendingCopy copy, const char* name);
  void note_piece(const PendingCopy& copy);
  // remote_stores.cc
  Access scoped(Access access) const;
  int card_of(const void* address) const;
  /// Ends the launch if the running thread may not touch an address of another card in this way.
  void check_scope(Access access, const void* address);
  bool is_before(const RemoteStore& store) const;
  void land_some_stores();
  void land_store(size_t index);
  void land_store(std::unique_ptr<RemoteStore> store);
  void land(size_t index);
  PieceCopies& pieces();
  std::vector<BarrierCount> count_barriers() const;
  void complete_if_due(BarrierState& barrier);
  BarrierState& find_barrier(Barrier* barrier, const char* user);
  bool holds(FaultKind kind) const { return options_.fault.kind == kind; }
  Products& products();
  /// Ends the launch if the warps of a warpgroup have not made the same number of sets.
  void check_warpgroups();
  Cta& cta() { return ctas_[running->cta]; }

  Kernel kernel_;
  const std::vector<CardLaunch>& cards_;
  const LaunchParams& params_;  // of the first card that launches
  LaunchShape shape_;
  EmulationControl& control_;
  const EmulationOptions options_;
  Scheduler scheduler_;
  std::vector<Cta> ctas_;
  std::unique_ptr<unsigned char[], void (*)(void*)> shared_;
  size_t shared_stride_ = 0;
  std::vector<std::unique_ptr<BarrierState>> barriers_;
  std::vector<Products> products_;  // by thread, once there are any
  std::vector<PendingCopy> copies_;
  RemoteStores stores_;
  std::vector<std::pair<RemoteLine*, uint64_t>> before_;  // see land_stores_before(), with their numbers
  std::vector<Region> regions_;                           // with several cards: sorted by address
  std::vector<PieceCopies> pieces_;                       // by thread id, once any has copied a piece
  std::unique_ptr<RaceDetector> races_;
  std::string error_;
  int num_returned_ = 0;
  uint64_t polled_stores_ = 0;  // num_stores when all pollers last looked
  int quiet_rounds_ = 0;        // in which all pollers looked and nothing was stored
  uint64_t idle_since_ns_ = 0;  // that we wait for the host; 0: we do not
};

}  // namespace soliton::emulation
