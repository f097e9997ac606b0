// The mode of the terminal at stdin during a chat.
//
//   while a line is typed   as the line editor wants it
//   while an answer comes   typed text is kept for the next line and not shown, Ctrl-D with it; Ctrl-C and Ctrl-Z are
//                           signals as ever
//   stopped by Ctrl-Z, and however the program ends, if not by SIGKILL   as it was found
#pragma once

#include <termios.h>

namespace soliton {

/// One at a time. Takes SIGTSTP, SIGCONT, SIGWINCH, and the signals that end a program.
class TerminalMode {
 public:
  /// Remembers the mode that is found.
  TerminalMode();
  TerminalMode(const TerminalMode&) = delete;
  TerminalMode& operator=(const TerminalMode&) = delete;
  /// Restores it.
  ~TerminalMode();

  /// Tells that the mode for answers is the one that the terminal has now.
  void keep_for_answers();
  /// For a program without a line editor: lines are shown, answers are not mixed with what is typed meanwhile.
  void show_typed(bool shown);
};

/// Whether the window has changed since this was asked last,
bool was_resized();
/// or the program has been stopped and goes on.
bool was_continued();

/// The mode that was found, if there is a TerminalMode. Safe in a signal handler.
void restore_terminal();

}  // namespace soliton
