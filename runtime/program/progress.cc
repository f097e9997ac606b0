// Draws the progress bar; see progress.h.
#include "runtime/program/progress.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>

#include "runtime/program/status_line.h"

namespace soliton {
namespace {

constexpr double kGigabyte = 1e9;
constexpr double kRedrawSeconds = 0.1;

/// "5.1 GB/s"; of what a network brings "11.2 MB/s".
std::string show_rate(uint64_t bytes, double seconds) {
  constexpr double kMegabyte = 1e6;
  constexpr double kLeastGigabytes = 0.1;
  const double rate = seconds > 0 ? static_cast<double>(bytes) / seconds : 0;
  return rate >= kLeastGigabytes * kGigabyte ? fmt::format("{:.1f} GB/s", rate / kGigabyte)
                                             : fmt::format("{:.1f} MB/s", rate / kMegabyte);
}

}  // namespace

std::string progress_line(const std::string& label, uint64_t done_bytes, uint64_t total_bytes, double seconds,
                          int columns, uint64_t present_bytes) {
  const uint64_t new_bytes = done_bytes - std::min(present_bytes, done_bytes);
  const double share =
      total_bytes == 0 ? 1.0 : static_cast<double>(done_bytes) / static_cast<double>(total_bytes);
  const std::string numbers =
      fmt::format("{:.2f}/{:.2f} GB {}{}", static_cast<double>(done_bytes) / kGigabyte,
                  static_cast<double>(total_bytes) / kGigabyte, show_rate(new_bytes, seconds),
                  remaining_time(new_bytes, total_bytes - std::min(done_bytes, total_bytes), seconds));
  return bar_line(label, share, numbers, columns);
}

Progress::Progress(std::string label, uint64_t total_bytes, int fd)
    : label_(std::move(label)), total_bytes_(total_bytes), fd_(fd), is_terminal_(::isatty(fd) == 1) {}

Progress::~Progress() {
  const std::lock_guard lock(drawing_);
  if (bar_on_screen_) write_to_terminal(fd_, kClearLine);
}

void Progress::add(uint64_t bytes) {
  done_bytes_.fetch_add(bytes, std::memory_order_relaxed);
  if (!is_terminal_) return;
  // Whoever finds another thread drawing leaves the drawing to it.
  const std::unique_lock lock(drawing_, std::try_to_lock);
  if (lock.owns_lock()) draw();
}

void Progress::add_present(uint64_t bytes) {
  present_bytes_.fetch_add(bytes, std::memory_order_relaxed);
  add(bytes);
}

void Progress::take_back(uint64_t bytes) {
  done_bytes_.fetch_sub(bytes, std::memory_order_relaxed);
  const uint64_t present = present_bytes_.load(std::memory_order_relaxed);
  present_bytes_.fetch_sub(std::min(bytes, present), std::memory_order_relaxed);
}

void Progress::note(const std::string& line) {
  const std::lock_guard lock(drawing_);
  write_to_terminal(fd_, fmt::format("{}{}\n", bar_on_screen_ ? kClearLine : "", line));
  bar_on_screen_ = false;
}

void Progress::finish() {
  const std::lock_guard lock(drawing_);
  if (finished_) return;
  finished_ = true;
  const uint64_t done = done_bytes() - present_bytes_.load(std::memory_order_relaxed);
  const double elapsed = seconds();
  write_to_terminal(
      fd_, fmt::format("{}{}: {:.2f} GB in {:.1f} s ({})\n", bar_on_screen_ ? kClearLine : "", label_,
                       static_cast<double>(done) / kGigabyte, elapsed, show_rate(done, elapsed)));
  bar_on_screen_ = false;
}

double Progress::seconds() const {
  return std::chrono::duration<double>(Clock::now() - start_).count();
}

/// The caller holds drawing_.
void Progress::draw() {
  const double now = seconds();
  if (finished_ || now - last_drawn_ < kRedrawSeconds) return;
  last_drawn_ = now;
  const int columns = terminal_columns(fd_) - 1;  // a full last column would wrap
  write_to_terminal(fd_, fmt::format("{}{}", kClearLine,
                                     progress_line(label_, done_bytes(), total_bytes_, now, columns,
                                                   present_bytes_.load(std::memory_order_relaxed))));
  bar_on_screen_ = true;
}

}  // namespace soliton
