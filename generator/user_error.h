// The one error type that a user of soliton-gen sees: a single line that names the file or flag, what was
// expected and what was found. Everything else that is thrown is a bug of ours.
#pragma once

#include <stdexcept>
#include <string>

#include "generator/exit_code.h"

namespace soliton {

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
