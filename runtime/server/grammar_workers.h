// Threads that work on the grammars of answers, so that neither the scheduler's nor those of HTTP do. Tasks of one line run
// one behind the other, those of several beside one another:
//
//   run() -> quick places: a few milliseconds --- longer ---> slow places, fewer, when one is free
//               ^ lines whose last task was quick                ^ lines whose last task was slow
//
// A task that takes long gives its quick place to others, so that many slow lines delay a quick one by milliseconds. It says
// now and then that it is at work (Turn::goes_on()), and waits there for a slow place.
#pragma once

#include <chrono>
#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

namespace soliton {

struct GrammarPool;

struct GrammarWorkersOptions {
  int num_quick = 0;  // places; 0: by the processor's cores
  int num_slow = 0;   // the same
  std::chrono::microseconds quick_time{4000};
};

class GrammarWorkers {
 public:
  /// A task's time on a thread.
  class Turn {
   public:
    /// To be asked every millisecond or so. False: the task is to end, as the workers do or `is_unwanted` says so.
    bool goes_on(const std::function<bool()>& is_unwanted);
    /// Frees something large on a thread of the workers, whoever lets it go.
    template <class T>
    std::shared_ptr<T> shared(std::unique_ptr<T> large) {
      return std::shared_ptr<T>(large.release(), [pool = pool_](T* object) {
        free_later(*pool, std::shared_ptr<void>(std::unique_ptr<T>(object)));
      });
    }

   private:
    friend struct GrammarPool;
    Turn(std::shared_ptr<GrammarPool> pool, bool is_slow);
    ~Turn();

    std::shared_ptr<GrammarPool> pool_;
    bool is_slow_;
    bool has_place_ = true;
    std::chrono::steady_clock::time_point began_ = std::chrono::steady_clock::now();
  };
  using Task = std::function<void(Turn&)>;

  /// Of tasks that must not run beside one another.
  struct Line {
    std::deque<Task> tasks = {};
    bool is_queued = false;  // or at work
    bool is_slow = false;
  };

  explicit GrammarWorkers(const GrammarWorkersOptions& options = {});
  GrammarWorkers(const GrammarWorkers&) = delete;
  GrammarWorkers& operator=(const GrammarWorkers&) = delete;
  ~GrammarWorkers() { stop(); }

  /// Any thread. The task must not throw. After stop() nothing is run.
  void run(const std::shared_ptr<Line>& line, Task task);
  /// Ends the threads; what has not begun is never run.
  void stop();

 private:
  static void free_later(GrammarPool& pool, std::shared_ptr<void> object);

  std::shared_ptr<GrammarPool> pool_;
};

}  // namespace soliton
