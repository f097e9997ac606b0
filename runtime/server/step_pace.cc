#include "runtime/server/step_pace.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

namespace soliton {
namespace {

// So long it is believed that steps are too long: then they may be tried again, if others say that they should not be.
constexpr std::chrono::seconds kBelieved{5};

}  // namespace

StepPace::StepPace(std::vector<int> kernel_rows)
    : rows_(std::move(kernel_rows)), first_s_(rows_.size()), seen_(rows_.size()) {}

double StepPace::Seen::shorter() const {
  return seconds[1] == 0 ? seconds[0] : std::min(seconds[0], seconds[1]);
}

/// Each is of twice the depth of the one before.
int StepPace::class_of(int depth) {
  constexpr int kFirstTokens = 4096;  // up to which attention takes little of a step
  return std::min<int>(std::bit_width(static_cast<unsigned>(depth / kFirstTokens)), kClasses - 1);
}

size_t StepPace::kernel_of(int rows) const {
  const auto found = std::lower_bound(rows_.begin(), rows_.end(), rows);
  return static_cast<size_t>(std::min(found, rows_.end() - 1) - rows_.begin());
}

void StepPace::calibrate(int rows, double seconds) {
  const size_t kernel = kernel_of(rows);
  first_s_[kernel] = seconds;
  seen_[kernel][0] = {.seconds = {seconds}};
}

void StepPace::took(int rows, int depth, double seconds, Clock::time_point now) {
  Seen& seen = seen_[kernel_of(rows)][static_cast<size_t>(class_of(depth))];
  seen.seconds = {seconds, seen.seconds[0]};
  seen.at = now;
}

/// How much longer a step of a kernel takes than one of another.
double StepPace::over_kernel(size_t kernel, size_t other, int depth_class) const {
  const bool is_known = first_s_[kernel] > 0 && first_s_[other] > 0;
  if (depth_class == 0 && is_known) return first_s_[kernel] / first_s_[other];
  return std::max(1.0, static_cast<double>(rows_[kernel]) / rows_[other]);
}

/// What a step takes at most, by those of other kernels and depths. Where one class ends and the next begins it takes as long
/// in both.
double StepPace::by_others(size_t kernel, int depth_class) const {
  double most = std::numeric_limits<double>::infinity();
  for (size_t other = 0; other < rows_.size(); ++other) {
    for (int other_class = 0; other_class < kClasses; ++other_class) {
      const double seconds = seen_[other][static_cast<size_t>(other_class)].shorter();
      if (seconds == 0 || (other == kernel && other_class == depth_class)) continue;
      const double over_depth = std::exp2(std::max(0, depth_class - other_class - 1));
      most = std::min(most, seconds * over_kernel(kernel, other, depth_class) * over_depth);
    }
  }
  return most;
}

bool StepPace::fits(size_t kernel, int depth_class, double seconds, Clock::time_point now) const {
  const Seen& own = seen_[kernel][static_cast<size_t>(depth_class)];
  const double own_seconds = own.shorter();
  if (own_seconds > 0 && own_seconds <= seconds) return true;
  if (own_seconds > 0 && now - own.at < kBelieved) return false;
  return by_others(kernel, depth_class) <= seconds;
}

int StepPace::num_parts(int rows) const {
  const size_t kernel = kernel_of(rows);
  double least = kDivided * seen_[kernel][0].shorter();
  int parts = 1;
  for (size_t smaller = 0; smaller < kernel; ++smaller) {
    const double seconds = seen_[smaller][0].shorter();
    const int steps = (rows + rows_[smaller] - 1) / rows_[smaller];
    if (rows_[smaller] == 1 || seconds == 0 || steps * seconds >= least) continue;
    least = steps * seconds;
    parts = steps;
  }
  return parts;
}

int StepPace::max_rows(int depth, double seconds, Clock::time_point now) const {
  const int depth_class = class_of(depth);
  for (size_t kernel = rows_.size(); kernel-- > 0;) {
    if (fits(kernel, depth_class, seconds * kPlanned, now)) return rows_[kernel];
  }
  return rows_.front();
}

}  // namespace soliton
