// SIGINT and SIGTERM: the first one asks the server to end, and nothing that a request does holds the end up.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <thread>

namespace soliton {

/// Signals of all threads that are begun while it lives are taken by one of its own, which needs no other and no lock that
/// another holds. Until hold() they do what they would without it: they end the program.
class EndSignals {
 public:
  EndSignals();
  EndSignals(const EndSignals&) = delete;
  EndSignals& operator=(const EndSignals&) = delete;
  /// The program has ended in order, or goes on.
  ~EndSignals();

  /// From now on signals are counted. The program ends by itself in order, but at the latest when the first one is `grace`
  /// and the time for last words ago. The second one ends it on the spot, with 128 and its number as the status.
  void hold(std::chrono::milliseconds grace);
  /// The program ends with this status, and now: at the latest when the time for last words is over.
  void end(int status);
  /// Waits until one comes, but no longer. Returns whether one has.
  bool wait(std::chrono::milliseconds time);

  /// For clients to take what ended answers are told.
  static constexpr std::chrono::milliseconds kLastWords{1000};

 private:
  using Clock = std::chrono::steady_clock;

  void work();
  void wait_until_held();
  void end_by(Clock::time_point limit);

  std::atomic<int> count_ = 0;
  std::atomic<int> status_ = 0;
  std::atomic<Clock::time_point> limit_ = Clock::time_point::max();  // of the whole program
  std::atomic<bool> is_done_ = false;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool is_held_ = false;  // guarded by the mutex
  bool is_blocked_ = false;
  std::chrono::milliseconds grace_{0};
  std::thread thread_;
};

}  // namespace soliton
