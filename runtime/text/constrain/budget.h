// What a grammar may cost: steps, processor time and memory, charged where the work is done, so that a small text that means
// much work is refused when it has cost its share. Whoever waits for it may give up at any time.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>

#include "models/error.h"

namespace soliton::constrain {

struct BudgetLimits {
  int64_t steps = 100'000'000;  // that may be saved up; one is an edge that is looked at, some nanoseconds
  int64_t steps_of_task = 3'000'000;     // that each task adds to what is left of them
  std::chrono::milliseconds time{2000};  // of the processor, for one task
  size_t bytes = size_t{64} << 20;       // of what is found and kept
};

inline constexpr size_t kMaxBytesOfAll = size_t{2} << 30;  // what all grammars of the program keep

/// Of this thread: what others do meanwhile is no fault of the grammar.
std::chrono::nanoseconds processor_time();

/// Whoever waited for it has given up.
class Cancelled : public Error {
 public:
  Cancelled() : Error(ExitCode::kInternal, "grammar: nobody waits for it any more") {}
};

/// Of one grammar. Not for several threads at once.
class Budget {
 public:
  /// `name` is what errors call the grammar.
  explicit Budget(std::string name, const BudgetLimits& limits = {});
  Budget(const Budget&) = delete;
  Budget& operator=(const Budget&) = delete;
  ~Budget();

  /// Asked every some hundred microseconds; a task ends (Cancelled) when it says so. The thread that works asks.
  void cancel_when(std::function<bool()> is_cancelled) { is_cancelled_ = std::move(is_cancelled); }
  /// A task begins, on the calling thread: making a grammar ready, a token, a mask.
  void begin_task();
  /// Throws Cancelled, or Error (kOutOfMemory), naming the grammar and the limit.
  void charge(int64_t steps) {
    unseen_ += steps;
    if (unseen_ >= kStepsBetweenLooks) look();
  }
  /// The same for memory that the grammar keeps until it ends.
  void charge_bytes(size_t bytes);

 private:
  static constexpr int64_t kStepsBetweenLooks = 1 << 16;

  void look();

  std::string name_;
  BudgetLimits limits_;
  std::function<bool()> is_cancelled_;
  int64_t steps_left_;
  int64_t unseen_ = 0;  // steps since the last look
  std::chrono::nanoseconds began_;
  size_t num_bytes_ = 0;
};

}  // namespace soliton::constrain
