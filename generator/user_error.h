// The one error type that a user of soliton-gen sees: a single line that names the file or flag, what was
// expected and what was found. Everything else that is thrown is a bug of ours.
#pragma once

#include <stdexcept>
#include <string>

namespace soliton {

/// Exit codes of soliton-gen by kind of error, so that scripts can tell them apart.
enum class ExitCode : int {
  kSuccess = 0,
  kUsage = 2,        // the command line
  kFile = 3,         // a file or folder is missing, unreadable or not writable
  kContent = 4,      // a file was read, but says something that cannot be
  kPlanRefused = 5,  // all input is sound, but no kernel can be planned from it
  kInternal = 70,    // an error in soliton-gen itself
};

/// An error that the user can mend; what() is one line without a trailing newline.
class UserError : public std::runtime_error {
 public:
  UserError(ExitCode code, const std::string& message) : std::runtime_error(message), code_(code) {}

  /// What the program exits with.
  ExitCode code() const { return code_; }

 private:
  ExitCode code_;
};

}  // namespace soliton
