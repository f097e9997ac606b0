// Errors meant for the person who runs the program: one line that names the file or flag, what was expected
// and what was found, and the exit status that goes with it. Broken invariants of our own are kInternal.
#pragma once

#include <fmt/format.h>

#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>

#include "generator/exit_code.h"

namespace soliton {

/// What programs report and exit with. what() is one line: control characters are written as \xNN, so that
/// text taken from a hostile file cannot drive the terminal.
class Error : public std::runtime_error {
 public:
  Error(ExitCode code, std::string_view message);
  ExitCode code() const noexcept { return code_; }

 private:
  ExitCode code_;
};

/// `text` in double quotes for use in a message: cut after `limit` bytes (at a character's start), the cut
/// shown.
std::string in_quotes(std::string_view text, size_t limit = 60);

/// An Error that reads "path: message".
template <class... Args>
Error file_error(ExitCode code, std::string_view path, fmt::format_string<Args...> format, Args&&... args) {
  return Error(code, fmt::format("{}: {}", path, fmt::format(format, std::forward<Args>(args)...)));
}

/// file_error for malformed content.
template <class... Args>
Error bad_file(std::string_view path, fmt::format_string<Args...> format, Args&&... args) {
  return file_error(ExitCode::kBadFile, path, format, std::forward<Args>(args)...);
}

}  // namespace soliton
