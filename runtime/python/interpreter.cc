#include <interpreter.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <thread>

namespace nb = nanobind;

namespace interpreter {
namespace {

constexpr std::chrono::seconds kMostForCalls{
    20};  // to end in, when the interpreter does: a launch, or a kernel that is made
constexpr double kBetweenQuestions = 0.02;  // seconds: each takes the GIL

std::mutex mutex;
std::condition_variable left;
int num_calls = 0;                         // guarded by the mutex
std::atomic<bool> ending = false;          // calls are to end
std::atomic<bool> ended = false;           // those that have not are given up
std::atomic<std::thread::id> last_thread;  // the one that ends the interpreter, which goes on

double now_s() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

/// Never returns: what an interpreter that has ended does with a thread that wants it is to end the thread, and with that, as C++ is
/// on its stack, the process.
[[noreturn]] void stay_away() {
  while (true) ::pause();
}

void end_calls() {
  last_thread = std::this_thread::get_id();
  ending = true;
  nb::set_leak_warnings(false);           // daemon threads hold what they hold
  const nb::gil_scoped_release released;  // which calls want, to end
  std::unique_lock lock(mutex);
  left.wait_for(lock, kMostForCalls, [] { return num_calls == 0; });
  ended = true;
}

}  // namespace

void register_end() {
  nb::module_::import_("atexit").attr("register")(nb::cpp_function(end_calls));
}

bool is_ending() {
  return ending;
}

Released::Released() : state_(PyEval_SaveThread()) {}

Released::~Released() {
  if (ended && last_thread.load() != std::this_thread::get_id()) stay_away();
  PyEval_RestoreThread(state_);
}

Call::Call() {
  if (ending && last_thread.load() == std::this_thread::get_id())
    throw nb::builtin_exception(nb::exception_type::runtime_error,
                                "expected a call before the interpreter ends");
  if (ending) {
    PyEval_SaveThread();
    stay_away();
  }
  const std::lock_guard lock(mutex);
  ++num_calls;
}

Call::~Call() {
  {
    const std::lock_guard lock(mutex);
    --num_calls;
  }
  left.notify_all();
}

int Interrupts::ends(void* interrupts) noexcept {
  if (ending) return 1;
  auto& self = *static_cast<Interrupts*>(interrupts);
  if (self.raised_) return 1;
  if (now_s() - self.asked_s_ < kBetweenQuestions) return 0;
  const nb::gil_scoped_acquire acquired;
  if (PyErr_CheckSignals() != 0) self.raised_.emplace();
  self.asked_s_ = now_s();
  return self.raised_ ? 1 : 0;
}

void Interrupts::raise() {
  if (!raised_) return;
  nb::python_error error = std::move(*raised_);
  raised_.reset();
  throw std::move(error);
}

}  // namespace interpreter
