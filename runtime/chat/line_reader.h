// Lines that a user types at a terminal, with editing and history where stderr, which shows them, is one too. What is
// typed while no line is read is kept for the next one.
#pragma once

#include <filesystem>
#include <memory>
#include <string>

#include "runtime/chat/terminal_mode.h"

namespace soliton {

class LineReader {
 public:
  /// Opens the terminal of stdin; lines are remembered in the file, if a path is given. Switches the process to UTF-8
  /// if its locale is none.
  explicit LineReader(const std::filesystem::path& history_path = {});
  LineReader(const LineReader&) = delete;
  LineReader& operator=(const LineReader&) = delete;
  ~LineReader();

  enum class End { kLine, kEndOfInput, kInterrupted };
  struct Line {
    End end = End::kLine;
    std::string text;  // valid UTF-8 without the line's end; what was typed until an interrupt
  };
  /// Reads a line behind a prompt and a space; catch_interrupts() must have been called.
  Line read(const std::string& prompt);

 private:
  struct Editor;
  Line edit(const std::string& prompt);
  Line read_plain();
  Line read_shown();

  TerminalMode mode_;
  std::unique_ptr<Editor> editor_;  // null: lines come as the terminal gives them
};

}  // namespace soliton
