// How many rows a step that feeds prompts may have, so that it lasts no longer than those who decode are to wait for their next
// token: by how long steps have lasted. Each kernel is timed before there are requests, and all steps are from then on. What
// has not been seen is judged by what has: behind a few thousand tokens, where attention takes more and more of a step, twice
// the rows or twice the depth take twice the time at most, and before that kernels differ as they did at first. So a step that
// may be too long is tried only after shorter ones have said that it is not.
//
// And into how many steps the rows of one are divided, where a smaller kernel does them in less time one part after the other.
#pragma once

#include <array>
#include <chrono>
#include <vector>

namespace soliton {

class StepPace {
 public:
  using Clock = std::chrono::steady_clock;
  /// What a step is planned for, of the time that it may take: the host takes some, and no step is as long as another.
  static constexpr double kPlanned = 0.9;

  /// `kernel_rows`: of the kernels that there are, in ascending order; one at least.
  explicit StepPace(std::vector<int> kernel_rows);

  const std::vector<int>& kernel_rows() const { return rows_; }
  /// A step of all of a kernel's rows, with nothing in the cache, lasts so long.
  void calibrate(int rows, double seconds);
  /// A step by the kernel of so many rows, which fed prompts behind `depth` tokens, has lasted so long.
  void took(int rows, int depth, double seconds, Clock::time_point now);
  /// The rows of the largest kernel of which such a step is expected to last `seconds` at most; of the smallest if none is.
  int max_rows(int depth, double seconds, Clock::time_point now) const;
  /// Steps that take the least time for so many rows that decode, of those that have been seen: 1, unless several by a smaller kernel
  /// are faster by more than steps differ.
  int num_parts(int rows) const;

 private:
  /// Of one kernel, at one class of depths.
  struct Seen {
    std::array<double, 2> seconds =
        {};  // of the last two steps, 0: none. One that the host held up does no harm.
    Clock::time_point at = {};

    double shorter() const;
  };
  static constexpr int kClasses = 16;
  static constexpr double kDivided = 0.9;  // of the time of one step, that several may take at most

  static int class_of(int depth);
  size_t kernel_of(int rows) const;
  bool fits(size_t kernel, int depth_class, double seconds, Clock::time_point now) const;
  double by_others(size_t kernel, int depth_class) const;
  double over_kernel(size_t kernel, size_t other, int depth_class) const;

  std::vector<int> rows_;
  std::vector<double> first_s_;                   // [kernel]: see calibrate(); 0: not known
  std::vector<std::array<Seen, kClasses>> seen_;  // [kernel][class of depths]
};

}  // namespace soliton
