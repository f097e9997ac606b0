#include "runtime/server/grammar_workers.h"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <system_error>

namespace soliton {
namespace {

constexpr std::chrono::milliseconds kLook{
    20};  // while a task waits for a place, between two looks at whether it is wanted
constexpr size_t kMaxThreads = 512;
constexpr int kNicer = 10;  // than the others

int some_of_the_cores(int share, int least, int most) {
  return std::clamp(static_cast<int>(std::thread::hardware_concurrency()) / share, least, most);
}

}  // namespace

/// What the threads share; it lives as long as something that they are to free.
struct GrammarPool : std::enable_shared_from_this<GrammarPool> {
  using Line = GrammarWorkers::Line;

  GrammarWorkersOptions options;
  std::mutex mutex;
  std::condition_variable came;       // something to be done, or the end
  std::condition_variable slow_came;  // the same for threads of low priority
  std::condition_variable slow_left;  // a slow place is free, or the end
  std::deque<std::shared_ptr<Line>> quick;
  std::deque<std::shared_ptr<Line>> slow;
  std::vector<std::shared_ptr<void>> to_free;
  std::vector<std::thread> threads;
  int num_quick = 0;  // places that are taken
  int num_slow = 0;
  size_t num_idle = 0;  // threads
  size_t num_slow_idle = 0;
  bool stopping = false;

  bool can_run_quick() const { return !quick.empty() && num_quick < options.num_quick; }
  bool can_run_slow() const { return !slow.empty() && num_slow < options.num_slow; }
  bool has_work() const { return can_run_quick() || can_run_slow() || !to_free.empty(); }
  bool wait_for_work(std::unique_lock<std::mutex>& lock, bool has_low_priority);

  void tell();
  void add_thread();
  void work();
  void run_next(std::unique_lock<std::mutex>& lock, bool& has_low_priority);
};

/// Of the calling thread.
void lower_priority(bool& is_low) {
  if (is_low) return;
  is_low = true;
  const auto thread = static_cast<id_t>(::gettid());
  ::setpriority(PRIO_PROCESS, thread, ::getpriority(PRIO_PROCESS, thread) + kNicer);
}

/// With the mutex: there may be work. Those that wait for slow places hold a thread each, so there may be more threads than
/// places.
void GrammarPool::tell() {
  if (can_run_slow() && num_slow_idle > 0) {
    slow_came.notify_one();
    if (!can_run_quick() && to_free.empty()) return;
  }
  came.notify_one();
  if (num_idle > 0 || threads.size() >= kMaxThreads || stopping || !has_work()) return;
  try {
    add_thread();
  } catch (const std::system_error&) {  // those that there are do it later
  }
}

void GrammarPool::add_thread() {
  threads.emplace_back([pool = shared_from_this()] { pool->work(); });
}

/// False at the end.
bool GrammarPool::wait_for_work(std::unique_lock<std::mutex>& lock, bool has_low_priority) {
  size_t& num_waiting = has_low_priority ? num_slow_idle : num_idle;
  ++num_waiting;
  if (has_low_priority) {
    slow_came.wait(lock, [this] { return stopping || can_run_slow(); });
  } else {
    came.wait(lock, [this] { return stopping || has_work(); });
  }
  --num_waiting;
  return !stopping;
}

void GrammarPool::work() {
  bool has_low_priority = false;
  std::unique_lock lock(mutex);
  while (wait_for_work(lock, has_low_priority)) {
    if (to_free.empty() || has_low_priority) {
      run_next(lock, has_low_priority);
      continue;
    }
    std::vector<std::shared_ptr<void>> freed = std::exchange(to_free, {});
    lock.unlock();
    freed.clear();
    lock.lock();
  }
}

void GrammarPool::run_next(std::unique_lock<std::mutex>& lock, bool& has_low_priority) {
  const bool is_slow = has_low_priority || !can_run_quick();
  std::deque<std::shared_ptr<Line>>& lines = is_slow ? slow : quick;
  const std::shared_ptr<Line> line = std::move(lines.front());
  lines.pop_front();
  ++(is_slow ? num_slow : num_quick);
  GrammarWorkers::Task task = std::move(line->tasks.front());
  line->tasks.pop_front();
  tell();  // of what is left
  lock.unlock();
  if (is_slow) lower_priority(has_low_priority);
  const auto began = std::chrono::steady_clock::now();
  {
    GrammarWorkers::Turn turn(shared_from_this(), is_slow, has_low_priority);
    task(turn);
    task = {};
  }
  lock.lock();
  line->is_slow = std::chrono::steady_clock::now() - began > options.quick_time;
  line->is_queued = !line->tasks.empty();
  if (!line->is_queued) return;
  (line->is_slow ? slow : quick).push_back(line);
  tell();  // this thread may be none for it
}

// ---- A task

GrammarWorkers::Turn::Turn(std::shared_ptr<GrammarPool> pool, bool is_slow, bool& has_low_priority)
    : pool_(std::move(pool)), is_slow_(is_slow), has_low_priority_(has_low_priority) {}

GrammarWorkers::Turn::~Turn() {
  const std::lock_guard lock(pool_->mutex);
  if (!has_place_) return;
  --(is_slow_ ? pool_->num_slow : pool_->num_quick);
  if (is_slow_) pool_->slow_left.notify_one();
  pool_->tell();
}

bool GrammarWorkers::Turn::goes_on(const std::function<bool()>& is_unwanted) {
  if (is_unwanted()) return false;
  std::unique_lock lock(pool_->mutex);
  if (pool_->stopping) return false;
  if (is_slow_ || std::chrono::steady_clock::now() - began_ < pool_->options.quick_time) return true;
  is_slow_ = true;
  lower_priority(has_low_priority_);
  has_place_ = false;
  --pool_->num_quick;
  pool_->tell();
  while (pool_->num_slow == pool_->options.num_slow) {
    pool_->slow_left.wait_for(lock, kLook);
    if (pool_->stopping || is_unwanted()) return false;
  }
  has_place_ = true;
  ++pool_->num_slow;
  return true;
}

// ---- From other threads

GrammarWorkers::GrammarWorkers(const GrammarWorkersOptions& options)
    : pool_(std::make_shared<GrammarPool>()) {
  pool_->options = options;
  if (options.num_quick == 0) pool_->options.num_quick = some_of_the_cores(2, 2, 8);
  if (options.num_slow == 0) pool_->options.num_slow = some_of_the_cores(4, 1, 4);
  const std::lock_guard lock(pool_->mutex);
  pool_->add_thread();
}

/// Here, once the workers have ended.
void GrammarWorkers::free_later(GrammarPool& pool, std::shared_ptr<void> object) {
  const std::lock_guard lock(pool.mutex);
  if (pool.stopping) return;
  pool.to_free.push_back(std::move(object));
  pool.tell();
}

void GrammarWorkers::run(const std::shared_ptr<Line>& line, Task task) {
  const std::lock_guard lock(pool_->mutex);
  if (pool_->stopping) return;
  line->tasks.push_back(std::move(task));
  if (line->is_queued) return;
  line->is_queued = true;
  (line->is_slow ? pool_->slow : pool_->quick).push_back(line);
  pool_->tell();
}

void GrammarWorkers::stop() {
  std::vector<std::thread> threads;
  {
    const std::lock_guard lock(pool_->mutex);
    pool_->stopping = true;
    pool_->came.notify_all();
    pool_->slow_came.notify_all();
    pool_->slow_left.notify_all();
    threads = std::exchange(pool_->threads, {});
  }
  for (std::thread& thread : threads) thread.join();
  // Tasks may hold what holds their line.
  for (std::deque<std::shared_ptr<Line>>* const queue : {&pool_->quick, &pool_->slow}) {
    for (const std::shared_ptr<Line>& line : *queue) line->tasks.clear();
    queue->clear();
  }
}

}  // namespace soliton
