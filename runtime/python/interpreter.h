// Calls that may take long, beside an interpreter that has signals and an end: without the GIL, which callbacks of other threads may
// want meanwhile; ended by Ctrl-C; and not left running into an interpreter that is gone.
#pragma once

#include <nanobind/nanobind.h>

#include <optional>

namespace interpreter {

/// Registers what ends calls when the interpreter does: daemon threads may be in one.
void register_end();

/// Lets go of the GIL. Where the interpreter has ended meanwhile, the thread never comes back: whatever it did with Python would
/// end the process.
class Released {
 public:
  Released();
  ~Released();
  Released(const Released&) = delete;
  Released& operator=(const Released&) = delete;

 private:
  PyThreadState* state_;
};

/// A call of the library, from the moment that its thread has the GIL until it has it again. Raises RuntimeError at the end of the
/// interpreter.
class Call {
 public:
  Call();
  ~Call();
  Call(const Call&) = delete;
  Call& operator=(const Call&) = delete;
};

/// Whether calls are to end at once, as the interpreter does.
bool is_ending();

/// Ctrl-C, as the library asks for it between launches.
class Interrupts {
 public:
  /// For soliton_session_ask() and soliton_tree_ask(): ends a call for whose thread Python has an exception by now.
  static int ends(void* interrupts) noexcept;
  /// Raises it.
  void raise();

 private:
  std::optional<nanobind::python_error> raised_;
  double asked_s_ = 0;
};

}  // namespace interpreter
