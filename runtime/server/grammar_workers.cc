#include "runtime/server/grammar_workers.h"

#include <algorithm>
#include <system_error>

namespace soliton {
namespace {

constexpr std::chrono::milliseconds kLook{
    20};  // while a task waits for a place, between two looks at whether it is wanted
constexpr size_t kMaxThreads = 512;

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
  std::condition_variable slow_left;  // a slow place is free, or the end
  std::deque<std::shared_ptr<Line>> quick;
  std::deque<std::shared_ptr<Line>> slow;
  std::vector<std::shared_ptr<void>> to_free;
  std::vector<std::thread> threads;
  int num_quick = 0;  // places that are taken
  int num_slow = 0;
  size_t num_idle = 0;  // threads
  bool stopping = false;

  bool can_run_quick() const { return !quick.empty() && num_quick < options.num_quick; }
  bool can_run_slow() const { return !slow.empty() && num_slow < options.num_slow; }
  bool has_work() const { return can_run_quick() || can_run_slow() || !to_free.empty(); }
  bool wait_for_work(std::unique_lock<std::mutex>& lock);

  void tell();
  void add_thread();
  void work();
  void run_next(std::unique_lock<std::mutex>& lock);
};

/// With the mutex: there may be work. Those that wait for slow places hold a thread each, so there may be more threads than
/// places.
void GrammarPool::tell() {
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
bool GrammarPool::wait_for_work(std::unique_lock<std::mutex>& lock) {
  ++num_idle;
  came.wait(lock, [this] { return stopping || has_work(); });
  --num_idle;
  return !stopping;
}

void GrammarPool::work() {
  std::unique_lock lock(mutex);
  while (wait_for_work(lock)) {
    if (to_free.empty()) {
      run_next(lock);
      continue;
    }
    std::vector<std::shared_ptr<void>> freed = std::exchange(to_free, {});
    lock.unlock();
    freed.clear();
    lock.lock();
  }
}

void GrammarPool::run_next(std::unique_lock<std::mutex>& lock) {
  const bool is_slow = !can_run_quick();
  std::deque<std::shared_ptr<Line>>& lines = is_slow ? slow : quick;
  const std::shared_ptr<Line> line = std::move(lines.front());
  lines.pop_front();
  ++(is_slow ? num_slow : num_quick);
  GrammarWorkers::Task task = std::move(line->tasks.front());
  line->tasks.pop_front();
  tell();  // of what is left
  lock.unlock();
  const auto began = std::chrono::steady_clock::now();
  {
    GrammarWorkers::Turn turn(shared_from_this(), is_slow);
    task(turn);
    task = {};
  }
  lock.lock();
  line->is_slow = std::chrono::steady_clock::now() - began > options.quick_time;
  line->is_queued = !line->tasks.empty();
  if (!line->is_queued) return;
  (line->is_slow ? slow : quick).push_back(line);
  tell();
}

// ---- A task

GrammarWorkers::Turn::Turn(std::shared_ptr<GrammarPool> pool, bool is_slow)
    : pool_(std::move(pool)), is_slow_(is_slow) {}

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
