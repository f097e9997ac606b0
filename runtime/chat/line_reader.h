// Lines that a user types at a terminal, with editing and history where stderr, which shows them, is one too.
#pragma once

#include <memory>
#include <string>

namespace soliton {

class LineReader {
 public:
  /// Opens the terminal of stdin. Switches the process to UTF-8 if its locale is none.
  LineReader();
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

  std::unique_ptr<Editor> editor_;  // null: lines come as the terminal gives them
};

}  // namespace soliton
