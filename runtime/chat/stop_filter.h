// Stop strings in text that comes piece by piece: they may begin in one piece and end in another, so text is
// held back while it could still become one.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace soliton {

/// Passes text on up to the stop string that is complete first; of those that end at the same byte, up to the
/// longest. However the text is cut into pieces, all pushes and the finish together give the same.
class StopFilter {
 public:
  /// No stop string may be empty.
  explicit StopFilter(std::vector<std::string> stops) : stops_(std::move(stops)) {}

  /// The text that can no longer become part of a stop string; empty once stopped().
  std::string push(std::string_view piece);
  /// What was held back, unless stopped().
  std::string finish();
  /// Whether a stop string has come.
  bool stopped() const { return stopped_; }

 private:
  size_t num_held() const;

  std::vector<std::string> stops_;
  std::string held_;  // the longest end of the text that some stop string begins with
  bool stopped_ = false;
};

}  // namespace soliton
