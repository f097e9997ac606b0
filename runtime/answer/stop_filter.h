// Stop strings in text that comes piece by piece: they may begin in one piece and end in another, so text is
// held back while it could still become one.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace soliton {

/// Passes text on up to the stop string that is complete first; of those that end at the same byte, up to the
/// longest. However the text is cut into pieces, all pushes and the finish together give the same. A byte takes steps for
/// each stop string, however long these are (the algorithm of Knuth, Morris and Pratt); copies share them.
class StopFilter {
 public:
  /// No stop string may be empty.
  explicit StopFilter(std::vector<std::string> stops);

  /// The text that can no longer become part of a stop string; empty once stopped().
  std::string push(std::string_view piece);
  /// What was held back, unless stopped().
  std::string finish();
  /// Whether a stop string has come.
  bool stopped() const { return stopped_; }
  /// Which one, once it has; else empty.
  std::string stop_text() const;

 private:
  struct Stop {
    std::string text;
    std::vector<size_t>
        borders;  // [bytes]: of the text up to there, the most bytes, but not all, that it begins and ends with
  };
  size_t longest_begun(char byte);

  std::shared_ptr<const std::vector<Stop>> stops_;
  std::vector<size_t> begun_;  // [stop]: bytes of it at the end of the text so far
  std::string held_;           // the longest end of the text that some stop string begins with
  bool stopped_ = false;
};

}  // namespace soliton
