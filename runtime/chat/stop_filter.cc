#include "runtime/chat/stop_filter.h"

#include <algorithm>
#include <utility>

namespace soliton {

/// Bytes at the end of held_ that a stop string begins with.
size_t StopFilter::num_held() const {
  size_t most = 0;
  for (const std::string& stop : stops_) {
    for (size_t length = std::min(stop.size() - 1, held_.size()); length > most; --length) {
      if (held_.ends_with(std::string_view(stop).substr(0, length))) most = length;
    }
  }
  return most;
}

std::string StopFilter::push(std::string_view piece) {
  std::string passed;
  for (const char byte : piece) {
    if (stopped_) break;
    held_ += byte;
    size_t cut = 0;
    for (const std::string& stop : stops_) {
      if (held_.ends_with(stop)) cut = std::max(cut, stop.size());
    }
    stopped_ = cut > 0;
    const size_t num_kept = stopped_ ? cut : num_held();
    passed.append(held_, 0, held_.size() - num_kept);
    held_.erase(0, stopped_ ? held_.size() : held_.size() - num_kept);
  }
  return passed;
}

std::string StopFilter::finish() {
  return std::exchange(held_, {});
}

}  // namespace soliton
