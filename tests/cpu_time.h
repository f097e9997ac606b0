// How long this thread has computed: what tests bound where a defect would take the square of a length. Others of a busy
// machine do not count.
#pragma once

#include <time.h>

namespace soliton {

/// The processor time of this thread since it was made.
class CpuTime {
 public:
  double seconds() const { return now() - begin_; }

 private:
  static double now() {
    timespec time{};
    ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
  }
  double begin_ = now();
};

}  // namespace soliton
