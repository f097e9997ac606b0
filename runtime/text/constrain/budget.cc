#include "runtime/text/constrain/budget.h"

#include <algorithm>
#include <atomic>
#include <ctime>

namespace soliton::constrain {
namespace {

std::atomic<size_t> bytes_of_all = 0;

}  // namespace

std::chrono::nanoseconds processor_time() {
  timespec time{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return std::chrono::seconds(time.tv_sec) + std::chrono::nanoseconds(time.tv_nsec);
}

Budget::~Budget() {
  bytes_of_all -= num_bytes_;
}

Budget::Budget(std::string name, const BudgetLimits& limits)
    : name_(std::move(name)), limits_(limits), steps_left_(limits.steps), began_(processor_time()) {}

void Budget::begin_task() {
  steps_left_ = std::min(limits_.steps, steps_left_ + limits_.steps_of_task);
  began_ = processor_time();
}

void Budget::look() {
  steps_left_ = std::max<int64_t>(0, steps_left_ - unseen_);
  unseen_ = 0;
  if (is_cancelled_ && is_cancelled_()) throw Cancelled();
  if (steps_left_ == 0) {
    throw file_error(ExitCode::kOutOfMemory, name_,
                     "expected at most {} steps of work, got more: make it smaller or less ambiguous",
                     limits_.steps);
  }
  if (processor_time() - began_ > limits_.time) {
    throw file_error(ExitCode::kOutOfMemory, name_,
                     "expected at most {} ms of work, got more: make it smaller or less ambiguous",
                     limits_.time.count());
  }
}

void Budget::charge_bytes(size_t bytes) {
  num_bytes_ += bytes;
  if (bytes_of_all += bytes; bytes_of_all > kMaxBytesOfAll) {
    throw file_error(ExitCode::kOutOfMemory, name_,
                     "expected at most {} MB of sets of states of all grammars, got more: try again later",
                     kMaxBytesOfAll >> 20);
  }
  if (num_bytes_ <= limits_.bytes) return;
  throw file_error(ExitCode::kOutOfMemory, name_,
                   "expected at most {} MB of sets of states, got more: make it smaller or less ambiguous",
                   limits_.bytes >> 20);
}

}  // namespace soliton::constrain
