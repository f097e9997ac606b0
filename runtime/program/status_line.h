// A line on a terminal that is drawn over and over, such as a bar of progress; elsewhere nothing, so that logs stay readable.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

namespace soliton {

/// Not for several threads at once.
class StatusLine {
 public:
  /// `fd` is where to write; errors of that are ignored.
  explicit StatusLine(int fd = 2);
  StatusLine(const StatusLine&) = delete;
  StatusLine& operator=(const StatusLine&) = delete;
  ~StatusLine() { clear(); }

  /// Whether anything is ever shown.
  bool is_terminal() const { return is_terminal_; }
  /// Whether a line would be drawn now: at most ten times a second, on a terminal.
  bool is_due() const;
  /// Draws a line over the one before, cut to the terminal's columns, whether it is due or not.
  void draw(const std::string& line);
  /// Columns that a line may have.
  int columns() const;
  /// Takes the line off the terminal. What is written next stands in its place.
  void clear();

 private:
  using Clock = std::chrono::steady_clock;

  int fd_;
  bool is_terminal_;
  bool is_on_screen_ = false;
  Clock::time_point drawn_ = {};
};

/// "Label [=====>     ]  45% 1843/4096 tokens": of a share from 0 to 1 in at most `columns` bytes. Where room is short the bar
/// goes first, then all but the percentage.
std::string bar_line(const std::string& label, double share, const std::string& numbers, int columns);

/// " 1:05 left", if it goes on as it did: `done` of what is to be done took the time. Empty where that says nothing.
std::string remaining_time(uint64_t done, uint64_t left, double seconds);

/// Of the terminal; 80 where it does not say.
int terminal_columns(int fd);
/// Writes all of it, or what can be written.
void write_to_terminal(int fd, const std::string& text);
/// Takes what stands in the cursor's line off a terminal.
inline constexpr const char* kClearLine = "\r\x1b[K";

}  // namespace soliton
