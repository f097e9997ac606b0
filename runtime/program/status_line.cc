#include "runtime/program/status_line.h"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <string_view>

namespace soliton {

StatusLine::StatusLine(int fd) : fd_(fd), is_terminal_(::isatty(fd) == 1) {}

bool StatusLine::is_due() const {
  constexpr std::chrono::milliseconds kRedraw{100};
  return is_terminal_ && Clock::now() - drawn_ >= kRedraw;
}

void StatusLine::draw(const std::string& line) {
  if (!is_terminal_) return;
  drawn_ = Clock::now();
  write_to_terminal(fd_, kClearLine + line.substr(0, static_cast<size_t>(columns())));
  is_on_screen_ = true;
}

/// A full last column would wrap.
int StatusLine::columns() const {
  return std::max(0, terminal_columns(fd_) - 1);
}

void StatusLine::clear() {
  if (is_on_screen_) write_to_terminal(fd_, kClearLine);
  is_on_screen_ = false;
}

std::string bar_line(const std::string& label, double share, const std::string& numbers, int columns) {
  constexpr int kPercent = 100;
  constexpr int kMaxBarColumns = 40;
  constexpr int kMinBarColumns = 8;
  constexpr int kAroundBar = 4;  // " [" and "] "
  share = std::clamp(share, 0.0, 1.0);
  const std::string percent = fmt::format("{:3}%", static_cast<int>(share * kPercent));
  const std::string all = fmt::format("{} {}", percent, numbers);
  const int room = columns - static_cast<int>(label.size() + all.size()) - kAroundBar;
  if (room >= kMinBarColumns) {
    const int width = std::min(room, kMaxBarColumns);
    const int filled = static_cast<int>(share * width);
    std::string bar(static_cast<size_t>(filled), '=');
    if (filled < width) bar += '>';
    return fmt::format("{} [{:{}}] {}", label, bar, width, all);
  }
  const bool has_room = static_cast<int>(label.size() + all.size()) < columns;
  const std::string line = fmt::format("{} {}", label, has_room ? all : percent);
  return line.substr(0, static_cast<size_t>(std::max(columns, 0)));
}

std::string remaining_time(uint64_t done, uint64_t left, double seconds) {
  if (done == 0 || left == 0) return "";
  constexpr double kMaxSeconds = 359999;  // 99:59:59
  constexpr int kMinute = 60;
  constexpr int kHour = 3600;
  const double remaining = seconds * static_cast<double>(left) / static_cast<double>(done);
  const auto whole = static_cast<int>(std::ceil(std::min(remaining, kMaxSeconds)));
  if (whole < kHour) return fmt::format(" {}:{:02} left", whole / kMinute, whole % kMinute);
  return fmt::format(" {}:{:02}:{:02} left", whole / kHour, whole % kHour / kMinute, whole % kMinute);
}

int terminal_columns(int fd) {
  constexpr int kDefaultColumns = 80;
  winsize size{};
  return ::ioctl(fd, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : kDefaultColumns;
}

void write_to_terminal(int fd, const std::string& text) {
  std::string_view left = text;
  while (!left.empty()) {
    const ssize_t written = ::write(fd, left.data(), left.size());
    if (written <= 0) return;
    left.remove_prefix(static_cast<size_t>(written));
  }
}

}  // namespace soliton
