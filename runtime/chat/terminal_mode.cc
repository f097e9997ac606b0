#include "runtime/chat/terminal_mode.h"

#include <unistd.h>

#include <csignal>
#include <initializer_list>
#include <utility>

namespace soliton {
namespace {

// For signal handlers. The modes are written before `is_known` and `has_answers` say so.
termios found;
termios for_answers;
volatile std::sig_atomic_t is_known = 0;
volatile std::sig_atomic_t has_answers = 0;
volatile std::sig_atomic_t resized = 0;
volatile std::sig_atomic_t continued = 0;

/// In the background a program that changes the mode is stopped.
bool is_in_foreground() {
  return ::tcgetpgrp(STDIN_FILENO) == ::getpgrp();
}

void take_mode_for_answers() {
  if (has_answers != 0 && is_in_foreground()) ::tcsetattr(STDIN_FILENO, TCSANOW, &for_answers);
}

void on_resize(int) {
  resized = 1;
}

void on_continue(int) {
  take_mode_for_answers();
  continued = 1;
}

/// Stops as without a handler; where nobody could continue the program the system does not stop it.
void on_stop(int number) {
  restore_terminal();
  struct sigaction usual {};
  usual.sa_handler = SIG_DFL;
  struct sigaction own {};
  ::sigaction(number, &usual, &own);
  ::raise(number);  // not blocked: SA_NODEFER
  ::sigaction(number, &own, nullptr);
  take_mode_for_answers();
  continued = 1;
}

/// Ends as without a handler, which SA_RESETHAND has taken away.
void on_end(int number) {
  restore_terminal();
  ::raise(number);
}

/// What the program was told to ignore stays ignored.
void handle(std::initializer_list<int> signals, void (*handler)(int), int flags) {
  struct sigaction action {};
  action.sa_handler = handler;
  action.sa_flags = SA_RESTART | flags;
  for (const int number : signals) {
    struct sigaction before {};
    ::sigaction(number, nullptr, &before);
    if (before.sa_handler != SIG_IGN) ::sigaction(number, &action, nullptr);
  }
}

}  // namespace

TerminalMode::TerminalMode() {
  is_known = ::tcgetattr(STDIN_FILENO, &found) == 0 ? 1 : 0;
  handle({SIGWINCH}, on_resize, 0);
  handle({SIGCONT}, on_continue, 0);
  handle({SIGTSTP}, on_stop, SA_NODEFER);
  handle({SIGTERM, SIGHUP, SIGQUIT}, on_end, SA_RESETHAND);
}

TerminalMode::~TerminalMode() {
  handle({SIGWINCH, SIGCONT, SIGTSTP, SIGTERM, SIGHUP, SIGQUIT}, SIG_DFL, 0);
  restore_terminal();
  is_known = 0;
  has_answers = 0;
}

void TerminalMode::keep_for_answers() {
  has_answers = 0;
  has_answers = ::tcgetattr(STDIN_FILENO, &for_answers) == 0 ? 1 : 0;
}

void TerminalMode::show_typed(bool shown) {
  if (is_known == 0) return;
  termios mode = found;
  if (!shown) mode.c_lflag &= ~static_cast<tcflag_t>(ECHO);
  ::tcsetattr(STDIN_FILENO, TCSANOW, &mode);
  if (!shown) keep_for_answers();
}

bool was_resized() {
  return std::exchange(resized, 0) != 0;
}

bool was_continued() {
  return std::exchange(continued, 0) != 0;
}

void restore_terminal() {
  if (is_known != 0 && is_in_foreground()) ::tcsetattr(STDIN_FILENO, TCSANOW, &found);
}

}  // namespace soliton
