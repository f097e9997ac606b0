#include "runtime/answer/stop_filter.h"

#include <algorithm>
#include <utility>

namespace soliton {
namespace {

/// Bytes of `text` that a text ends with behind `byte`, of which it ended with `begun`, which are not all.
size_t next_begun(const std::string& text, const std::vector<size_t>& borders, size_t begun, char byte) {
  while (begun > 0 && text[begun] != byte) begun = borders[begun - 1];
  return begun + (text[begun] == byte ? 1 : 0);
}

}  // namespace

StopFilter::StopFilter(std::vector<std::string> stops) : begun_(stops.size()) {
  std::vector<Stop> prepared;
  for (std::string& text : stops) {
    std::vector<size_t> borders = {0};
    for (size_t i = 1; i < text.size(); ++i)
      borders.push_back(next_begun(text, borders, borders.back(), text[i]));
    prepared.push_back({std::move(text), std::move(borders)});
  }
  stops_ = std::make_shared<const std::vector<Stop>>(std::move(prepared));
}

/// Takes a byte; the bytes of the stop string that the text has most of now, or of the longest that is complete.
size_t StopFilter::longest_begun(char byte) {
  size_t most = 0;
  for (size_t i = 0; i < begun_.size(); ++i) {
    const Stop& stop = (*stops_)[i];
    begun_[i] = next_begun(stop.text, stop.borders, begun_[i], byte);
    const bool is_complete = begun_[i] == stop.text.size();
    if (is_complete && !stopped_) most = 0;
    stopped_ = stopped_ || is_complete;
    if (is_complete || !stopped_) most = std::max(most, begun_[i]);
  }
  return most;
}

std::string StopFilter::push(std::string_view piece) {
  std::string passed;
  size_t num_passed = 0;  // of what is held
  for (const char byte : piece) {
    if (stopped_) break;
    held_ += byte;
    const size_t end = held_.size() - longest_begun(byte);
    passed.append(held_, num_passed, end - num_passed);
    num_passed = stopped_ ? held_.size() : end;
  }
  held_.erase(0, num_passed);
  return passed;
}

std::string StopFilter::stop_text() const {
  std::string text;
  for (size_t i = 0; stopped_ && i < begun_.size(); ++i) {
    const Stop& stop = (*stops_)[i];
    if (begun_[i] == stop.text.size() && stop.text.size() > text.size()) text = stop.text;
  }
  return text;
}

std::string StopFilter::finish() {
  return std::exchange(held_, {});
}

}  // namespace soliton
