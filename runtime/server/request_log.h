// A line for each request that was answered: who asked, and what it took. Never what was asked or answered.
#pragma once

#include <condition_variable>
#include <deque>
#include <mutex>
#include <string>
#include <thread>

#include "runtime/server/answer_format.h"

namespace soliton {

enum class LogFormat { kNone, kText, kJson };

struct RequestRecord {
  std::string id;      // of the answer; empty: there is none
  std::string client;  // its address
  std::string path;
  int status = 200;
  std::string end =
      {};  // of the answer, or why there is none: "stop", "length", "tool_calls", "cancelled", "failed"
  AnswerUsage usage = {};  // of an answer
};

/// Without its end.
std::string log_line(const RequestRecord& record, LogFormat format);

/// Writes lines to stderr by a thread of its own, so that nobody waits for whoever reads them. Lines that come while too many
/// wait are left out, and how many these were is said.
class RequestLog {
 public:
  explicit RequestLog(LogFormat format);
  RequestLog(const RequestLog&) = delete;
  RequestLog& operator=(const RequestLog&) = delete;
  /// Writes what waits.
  ~RequestLog();

  /// Any thread. A line for which there is no memory is left out.
  void put(const RequestRecord& record) noexcept;

 private:
  void work();

  static constexpr size_t kMostWaiting = 4096;

  const LogFormat format_;
  std::mutex mutex_;
  std::condition_variable came_;
  std::deque<std::string> lines_;  // guarded by the mutex, as all below
  size_t num_left_out_ = 0;
  bool ends_ = false;
  std::thread thread_;
};

}  // namespace soliton
