#include "runtime/chat/interrupt.h"

#include <unistd.h>

#include <csignal>

#include "runtime/chat/terminal_mode.h"

namespace soliton {
namespace {

volatile std::sig_atomic_t num_interrupts = 0;
volatile std::sig_atomic_t second_ends = 0;

void count_interrupt(int) {
  if (num_interrupts > 0 && second_ends != 0) {
    // Nothing that is not safe in a signal handler.
    restore_terminal();
    [[maybe_unused]] const ssize_t ignored = ::write(STDERR_FILENO, "\n", 1);
    ::_exit(kInterruptedStatus);
  }
  num_interrupts = 1;
}

}  // namespace

void catch_interrupts() {
  struct sigaction action {};
  action.sa_handler = count_interrupt;
  ::sigaction(SIGINT, &action, nullptr);
}

void forget_interrupts() {
  num_interrupts = 0;
}

bool interrupted() {
  return num_interrupts != 0;
}

InterruptsEnd::InterruptsEnd() {
  second_ends = 1;
}

InterruptsEnd::~InterruptsEnd() {
  second_ends = 0;
}

}  // namespace soliton
