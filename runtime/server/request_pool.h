// Threads that do what requests ask for beyond reading and writing bytes: parse, render, tokenise. They are few, so that a
// request that takes long costs no more than one of them. Clients take turns, and one has at most half of the threads at a
// time: whoever else asks need not wait for what he asked for.
//
// Their priority is that of the thread that decodes, as that of the threads for grammars is. It wants little of a processor
// and has it at once; but it too waits for locks, be it the allocator's, and a holder of low priority that has been
// interrupted goes on when nobody else wants to: tokens came 100 ms late.
#pragma once

#include <condition_variable>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "runtime/server/fair_queue.h"
#include "runtime/server/http.h"

namespace soliton {

struct RequestPoolOptions {
  int num_threads = 4;
  size_t max_waiting = 1024;        // requests
  size_t max_waiting_of_one = 512;  // client
};

/// Any thread may use it.
class RequestPool {
 public:
  using Options = RequestPoolOptions;
  using Work = std::function<void()>;  // throws nothing

  explicit RequestPool(const Options& options = {});
  RequestPool(const RequestPool&) = delete;
  RequestPool& operator=(const RequestPool&) = delete;
  /// Waits for work that has begun; what waits is given up.
  ~RequestPool();

  /// Has the work done that is to answer a client by `reply`. It goes, unbegun, with a client that leaves before. Returns
  /// false if too many wait.
  bool submit(const std::string& client, const std::shared_ptr<PendingReply>& reply, Work work);
  /// Whether nothing waits or is under way.
  bool is_idle() const;

 private:
  struct Job {
    std::string client;
    uint64_t number = 0;
    Work work;
  };

  void work();
  bool do_next();
  void drop(uint64_t number);

  const Options options_;
  mutable std::mutex mutex_;
  std::condition_variable came_;
  FairQueue<Job> queue_;                // guarded by the mutex, as all below
  std::map<std::string, int> at_work_;  // threads, of each client that has some
  uint64_t num_submitted_ = 0;
  bool ends_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace soliton
