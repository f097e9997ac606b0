// Ctrl-C: the first stops an answer, a second one the program, also where nothing asks for the first.
#pragma once

namespace soliton {

/// The exit status where Ctrl-C cut the one answer that was asked for, or a second one ended the program: as if the
/// signal had.
inline constexpr int kInterruptedStatus = 130;

/// Catches SIGINT from now on. System calls that wait are interrupted.
void catch_interrupts();
/// Forgets those so far.
void forget_interrupts();
/// Whether one has come since.
bool interrupted();

/// While this object lives a second interrupt ends the program at once.
class InterruptsEnd {
 public:
  InterruptsEnd();
  InterruptsEnd(const InterruptsEnd&) = delete;
  InterruptsEnd& operator=(const InterruptsEnd&) = delete;
  ~InterruptsEnd();
};

}  // namespace soliton
