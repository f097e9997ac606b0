#include "runtime/server/request_pool.h"

#include <algorithm>
#include <utility>

namespace soliton {

RequestPool::RequestPool(const Options& options) : options_(options) {
  for (int i = 0; i < options.num_threads; ++i) threads_.emplace_back(&RequestPool::work, this);
}

RequestPool::~RequestPool() {
  {
    const std::lock_guard lock(mutex_);
    ends_ = true;
  }
  came_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

bool RequestPool::submit(const std::string& client, const std::shared_ptr<PendingReply>& reply, Work work) {
  uint64_t number = 0;
  {
    const std::lock_guard lock(mutex_);
    const bool has_room =
        queue_.size() < options_.max_waiting && queue_.size_of(client) < options_.max_waiting_of_one;
    if (!has_room || ends_) return false;
    number = ++num_submitted_;
    queue_.push(client, {.client = client, .number = number, .work = std::move(work)});
  }
  came_.notify_one();
  reply->on_abandon([this, number] { drop(number); });
  return true;
}

bool RequestPool::is_idle() const {
  const std::lock_guard lock(mutex_);
  return queue_.empty() && at_work_.empty();
}

void RequestPool::work() {
  while (do_next()) {
  }
}

/// Waits for work, and does it. Returns false when the pool ends.
bool RequestPool::do_next() {
  std::unique_lock lock(mutex_);
  std::optional<Job> job;
  const int most_of_one = std::max(1, options_.num_threads / 2);
  const auto may_begin = [&](const std::string& client) {
    const auto own = at_work_.find(client);
    return own == at_work_.end() || own->second < most_of_one;
  };
  came_.wait(lock, [&] { return ends_ || (job = queue_.pop_of(may_begin)); });
  if (ends_) return false;
  const std::string client = job->client;
  ++at_work_[client];
  lock.unlock();
  job->work();
  job.reset();  // with all that the request holds, before others hear of it
  lock.lock();
  if (--at_work_[client] == 0) at_work_.erase(client);
  lock.unlock();
  came_.notify_one();  // one who had to wait for this client's turn
  return true;
}

/// What nobody waits for any more is not begun.
void RequestPool::drop(uint64_t number) {
  std::vector<Job> dropped;  // destroyed without the mutex
  const std::lock_guard lock(mutex_);
  dropped = queue_.take_if([&](const Job& job) { return job.number == number; });
}

}  // namespace soliton
