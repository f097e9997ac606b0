// Ctrl-C: the first stops an answer, a second one the program, also where nothing asks for the first.
#pragma once

namespace soliton {

/// The exit status after a second Ctrl-C: that of a program which the signal ended.
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
