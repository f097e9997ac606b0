// What programs print and how they end. Nothing here ends a program because stderr is full or closed: a line that cannot be
// written is counted, and how many there were is said before the next one that can. Answers on stdout are another matter:
// who asked for them must hear that they are lost.
#pragma once

#include <fmt/format.h>

#include <exception>
#include <string_view>

#include "models/error.h"

namespace soliton {

/// Writes all of the text, or returns false with errno set.
bool write_all(int fd, std::string_view text) noexcept;

/// Writes a line, to which its end is added, to stderr at once. From any thread.
void say_line(std::string_view line) noexcept;
/// The same of a formatted line; without memory to format it, it counts as one that could not be written.
template <class... Args>
void say(fmt::format_string<Args...> format, Args&&... args) noexcept {
  try {
    say_line(fmt::format(format, std::forward<Args>(args)...));
  } catch (...) {
    say_line("a message was lost for want of memory");
  }
}

/// Writes text to stdout, which may keep it until it is flushed. That it is lost is found out later, as by flush_stdout().
void print(std::string_view text) noexcept;
/// Whether anything written to stdout so far is known to be lost, as on a full disk or behind a closed pipe.
bool is_stdout_lost() noexcept;
/// Throws Error (kNotFound) if anything written to stdout so far is lost.
void flush_stdout();

/// What programs say of an exception: of want of memory or threads, and of files, as of what they find wrong themselves.
Error as_error(const std::exception& thrown);

/// The exit status of run(argc, argv) once all of stdout is written; what it throws, or any thread, goes to stderr as one line
/// after the program's name. Before it, SIGPIPE is ignored, and standard files that are closed are opened such that they fail: the next
/// file of the program would take their place, and be written to by whoever prints.
int run_program(const char* name, int (*run)(int, char**), int argc, char** argv) noexcept;

}  // namespace soliton
