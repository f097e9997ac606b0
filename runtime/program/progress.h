// Progress of a long read or upload on stderr: a bar with GB/s and the time left where stderr is a terminal,
// one final line where it is not, so that logs stay readable.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <mutex>
#include <string>

namespace soliton {

/// Counts bytes from any number of threads and shows them.
class Progress {
 public:
  /// `label` opens the line; `total_bytes` is what add() will have been told at the end; `fd` is where to
  /// write. Writes nothing but the bar and the final line, and ignores errors of writing them.
  Progress(std::string label, uint64_t total_bytes, int fd = 2);
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;
  /// Takes an unfinished bar off the terminal, so that an error message starts on a clean line.
  ~Progress();

  /// Reports that `bytes` more are done. Thread-safe; draws at most ten times a second.
  void add(uint64_t bytes);
  /// The same of bytes that were there before: they cost no time, and do not count for the rate.
  void add_present(uint64_t bytes);
  /// Bytes that were reported have to be done again.
  void take_back(uint64_t bytes);
  /// Writes a line above the bar.
  void note(const std::string& line);
  /// Replaces the bar by one line with the bytes, the time and GB/s (1e9 bytes; MB/s where it is slow). Later calls do
  /// nothing.
  void finish();
  /// Bytes reported so far, those that were present too.
  uint64_t done_bytes() const { return done_bytes_.load(std::memory_order_relaxed); }

 private:
  using Clock = std::chrono::steady_clock;
  double seconds() const;
  void draw();

  const std::string label_;
  const uint64_t total_bytes_;
  const int fd_;
  const bool is_terminal_;
  const Clock::time_point start_ = Clock::now();
  std::atomic<uint64_t> done_bytes_{0};
  std::atomic<uint64_t> present_bytes_{0};  // of these
  std::mutex drawing_;                      // guards what follows
  double last_drawn_ = 0;                   // seconds since start_
  bool bar_on_screen_ = false;
  bool finished_ = false;
};

/// The bar as text of at most `columns` bytes, without control characters:
/// "Weights [=====>     ]  45% 7.20/16.06 GB 5.1 GB/s 0:02 left". Where room is short, the bar goes first,
/// then all but the percentage. Of the bytes that are done `present_bytes` took no time.
std::string progress_line(const std::string& label, uint64_t done_bytes, uint64_t total_bytes, double seconds,
                          int columns, uint64_t present_bytes = 0);

}  // namespace soliton
