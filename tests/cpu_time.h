// How long this thread, or all of the program, has computed: what tests bound where a defect would take the square of a length. Others of a busy
// machine do not count.
#pragma once

#include <time.h>

namespace soliton {

/// The processor time of this thread, or with CLOCK_PROCESS_CPUTIME_ID of the program, since it was made.
class CpuTime {
 public:
  explicit CpuTime(clockid_t clock = CLOCK_THREAD_CPUTIME_ID) : clock_(clock) {}
  double seconds() const { return now() - begin_; }

 private:
  double now() const {
    timespec time{};
    ::clock_gettime(clock_, &time);
    return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
  }
  clockid_t clock_;
  double begin_ = now();
};

}  // namespace soliton
