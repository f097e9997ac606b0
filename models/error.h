// Errors meant for the person who runs a program, and what every program exits with: one line that names the file
// or flag, what was expected and what was found. Broken invariants of our own are kInternal.
#pragma once

#include <fmt/format.h>

#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>

namespace soliton {

/// So that scripts can tell errors apart.
enum class ExitCode : int {
  kSuccess = 0,
  kUsage = 2,        // a flag or its value
  kNotFound = 3,     // a file or folder is missing, unreadable or not writable
  kBadFile = 4,      // a file was read, but is malformed, or says something that cannot be
  kMismatch = 5,     // all is well formed, but does not fit together: model, plan, card, kernel, weights
  kDevice = 6,       // a CUDA call or the kernel itself failed
  kOutOfMemory = 7,  // memory or another limit, such as a context longer than the cache
  kMakeFailed = 8,   // the compiler made no kernel of sound source
  kNotVerified = 9,  // the kernel's answers are not those of the reference
  kInternal = 70,    // a defect of ours
};

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
