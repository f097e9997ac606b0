// The Python of tests that ask reference packages, and what it is run for.
#pragma once

#include <sys/wait.h>

#include <cstdlib>
#include <string>

namespace soliton {

/// Exit status of a command of the shell; below 0 if it did not exit.
inline int status_of(const std::string& command) {
  const int status = std::system(command.c_str());
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

/// That of SOLITON_PYTHON, else python3.
inline std::string reference_python() {
  const char* const chosen = std::getenv("SOLITON_PYTHON");
  return chosen == nullptr ? "python3" : chosen;
}

inline bool has_package(const std::string& name) {
  return status_of("'" + reference_python() + "' -c 'import " + name + "' 2> /dev/null") == 0;
}

/// Runs a script of tests/ with arguments for the shell; its exit status.
inline int run_script(const std::string& script, const std::string& arguments) {
  return status_of("'" + reference_python() + "' -B '" SOLITON_SOURCE_DIR "/tests/" + script + "' " +
                   arguments);
}

}  // namespace soliton
