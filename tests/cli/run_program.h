// Runs a built program as a user would, in a folder of its own, and keeps what it said and left behind.
#pragma once

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <optional>
#include <set>
#include <sstream>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "temporary_folder.h"

namespace soliton {

inline std::string read_text(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

inline void write_text(const std::filesystem::path& path, const std::string& text) {
  std::filesystem::remove(path);  // a link or a read-only copy is replaced, not written through
  std::ofstream(path, std::ios::binary) << text;
}

struct Outcome {
  int status = -1;  // exit status, or 128 plus the signal that ended the program
  std::string out;
  std::string err;
};

/// A running program. Its output goes to files, so that no pipe can fill up.
class Process {
 public:
  /// Starts SOLITON_BINARY_DIR/program in `folder`, with `environment` ("NAME=value") added and a file as stdin.
  /// Kernels that it makes for its user go away with this object.
  Process(const std::string& program, std::vector<std::string> arguments, const std::filesystem::path& folder,
          std::vector<std::string> environment = {}, const std::filesystem::path& input = "/dev/null") {
    arguments.insert(arguments.begin(), std::string(SOLITON_BINARY_DIR) + "/" + program);
    std::vector<char*> argv;
    for (std::string& argument : arguments) argv.push_back(argument.data());
    argv.push_back(nullptr);
    pid_ = fork();
    if (pid_ != 0) return;
    unsetenv("SOLITON_KERNELS");
    setenv("XDG_CACHE_HOME", (output_.path() / "cache").c_str(), 1);
    for (std::string& variable : environment) putenv(variable.data());
    const bool ready = chdir(folder.c_str()) == 0 && redirect(input, O_RDONLY, STDIN_FILENO) &&
                       redirect(out(), O_WRONLY | O_CREAT, STDOUT_FILENO) &&
                       redirect(err(), O_WRONLY | O_CREAT, STDERR_FILENO);
    if (ready) execv(argv[0], argv.data());
    _exit(kNotStarted);
  }

  /// Nobody waits for it any more: it goes.
  ~Process() {
    if (ended_) return;
    signal(SIGKILL);
    waitpid(pid_, nullptr, 0);
  }
  Process(const Process&) = delete;

  pid_t pid() const { return pid_; }
  void signal(int number) const { kill(pid_, number); }
  std::string out_so_far() const { return read_text(out()); }
  std::string err_so_far() const { return read_text(err()); }

  Outcome wait() const {
    int status = 0;
    if (waitpid(pid_, &status, 0) != pid_) throw std::runtime_error("waitpid failed");
    ended_ = true;
    return outcome_of(status);
  }
  /// Nothing if it has not ended by then; it is killed.
  std::optional<Outcome> wait_for(std::chrono::milliseconds time) const {
    const auto limit = std::chrono::steady_clock::now() + time;
    int status = 0;
    while (waitpid(pid_, &status, WNOHANG) != pid_) {
      if (std::chrono::steady_clock::now() > limit) {
        signal(SIGKILL);
        wait();
        return std::nullopt;
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    ended_ = true;
    return outcome_of(status);
  }

 private:
  Outcome outcome_of(int status) const {
    constexpr int kSignalBase = 128;
    return {WIFEXITED(status) ? WEXITSTATUS(status) : kSignalBase + WTERMSIG(status), read_text(out()),
            read_text(err())};
  }
  static constexpr int kNotStarted = 126;

  static bool redirect(const std::filesystem::path& path, int flags, int fd) {
    const int file = open(path.c_str(), flags, 0600);
    return file >= 0 && dup2(file, fd) == fd;
  }
  std::filesystem::path out() const { return output_.path() / "out"; }
  std::filesystem::path err() const { return output_.path() / "err"; }

  TemporaryFolder output_;
  pid_t pid_ = -1;
  mutable bool ended_ = false;
};

}  // namespace soliton
