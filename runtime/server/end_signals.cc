#include "runtime/server/end_signals.h"

#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <ctime>

namespace soliton {
namespace {

sigset_t end_signals() {
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGINT);
  sigaddset(&signals, SIGTERM);
  return signals;
}

}  // namespace

EndSignals::EndSignals() {
  const sigset_t signals = end_signals();
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  thread_ = std::thread(&EndSignals::work, this);
}

EndSignals::~EndSignals() {
  is_done_ = true;
  {
    const std::lock_guard lock(mutex_);
    changed_.notify_all();
  }
  thread_.join();
}

void EndSignals::hold(std::chrono::milliseconds grace) {
  std::unique_lock lock(mutex_);
  grace_ = grace;
  is_held_ = true;
  changed_.notify_all();
  changed_.wait(lock, [this] { return is_blocked_; });
}

void EndSignals::end(int status) {
  status_ = status;
  end_by(Clock::now() + kLastWords);
}

bool EndSignals::wait(std::chrono::milliseconds time) {
  std::unique_lock lock(mutex_);
  return changed_.wait_for(lock, time, [&] { return count_ > 0; });
}

/// The earliest of all that were named.
void EndSignals::end_by(Clock::time_point limit) {
  Clock::time_point before = limit_;
  while (limit < before && !limit_.compare_exchange_weak(before, limit)) {
  }
}

/// While this thread alone lets them through they do what the program or its parts have said, or else end it.
void EndSignals::wait_until_held() {
  const sigset_t signals = end_signals();
  pthread_sigmask(SIG_UNBLOCK, &signals, nullptr);
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return is_held_ || is_done_; });
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  is_blocked_ = true;
  changed_.notify_all();
}

void EndSignals::work() {
  wait_until_held();
  const sigset_t signals = end_signals();
  constexpr timespec kLook{.tv_sec = 0, .tv_nsec = 50'000'000};
  while (!is_done_) {
    if (const int signal = sigtimedwait(&signals, nullptr, &kLook); signal > 0) {
      if (++count_ > 1) ::_exit(128 + signal);  // as a shell says of a program that a signal ended
      end_by(Clock::now() + grace_ + kLastWords);
      changed_.notify_all();
    }
    // A thread that does not come back, be it from a parser, the device or a full pipe, cannot be made to: whoever told
    // the server to end need not wait for it. Nothing is lost, as all that the server writes is whole once it is written.
    if (Clock::now() >= limit_.load()) ::_exit(status_);
  }
}

}  // namespace soliton
